"""Draws docs/chat.svg, the picture of the README: ``python -m tests.tools.draw_picture [FILE]``.

A real `mneme chat` runs in an empty home without a model; rich draws what it says.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 84
LINES = (
    "/remember My sister Ana lives in Porto and her birthday is on 3 May.",
    "When is Ana's birthday?",
    "remind me tomorrow at 9 to call Ana",
)


def run_chat() -> list[tuple[str, str]]:
    """Return each line with the answer that a real chat gave."""
    exchanges = []
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "MNEME_HOME": f"{home}/mneme", "TZ": "Europe/Lisbon"}
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
            environment.pop(name, None)
        command = [sys.executable, "-m", "gateway.cli.main", "chat"]
        for line in LINES:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                input=f"{line}\n",
                capture_output=True,
                text=True,
                check=True,
            )
            exchanges.append((line, done.stdout.strip()))
    return exchanges


def draw(file: Path) -> None:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line, answer in run_chat():
        console.print(Text(f"> {line}", style="bold cyan"))
        console.print(Text(answer), highlight=False)
        console.print()
    file.write_text(console.export_svg(title="mneme chat"), encoding="utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "chat.svg")
