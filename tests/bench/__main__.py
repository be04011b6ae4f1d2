"""Prints what Mneme costs and how well it finds, each figure as a ratio to something measured in the same run.

``python -m tests.bench [--only cache|recall|speed] [--sessions N]``. Recall and speed need the project's shared
benchmark folder beside the checkout (or where MNEME_SHARED says); without it they are left out, visibly.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.cache import measure

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BENCHES = ["cache", "recall", "speed"]


def main() -> int:
    """Runs the benchmarks that were asked for, all by default; 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--only", action="append", choices=BENCHES, help="this one; may be given again")
    parser.add_argument("--sessions", type=int, default=1000, help="how big speed is; 1,000 are 20,000 messages")
    asked = parser.parse_args()
    which = asked.only or BENCHES
    shared = Path(os.environ.get("MNEME_SHARED", ROOT.parent / "shared"))
    failed = False
    if "cache" in which:
        sys.stdout.write("## The prefix cache: 50 turns, tools in every third, notes in every fifth, one restart\n\n")
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(asyncio.run(measure(Path(folder))) + "\n\n")
        sys.stdout.flush()
    if "recall" in which:
        data = shared / "data" / "locomo-dev.json"
        command = [str(shared / "bench" / "recall" / "run.py"), str(data), "--plugin", f"{HERE / 'locomo.py'}:Mneme"]
        failed |= _run("Recall: questions as typed, no model", command, "--by-kind")
    if "speed" in which:
        command = [str(shared / "bench" / "speed" / "run.py"), "--stores", "floor"]
        command += ["--plugin", f"{HERE / 'speed.py'}:Mneme", "--sessions", str(asked.sessions)]
        failed |= _run("Speed: ratios are to bare SQLite, of one run", command)
    return int(failed)


def _run(title: str, command: list[str], *more: str) -> bool:
    sys.stdout.write(f"## {title}\n\n")
    sys.stdout.flush()
    if not Path(command[0]).exists():
        sys.stdout.write(f"left out: there is no {command[0]}\n\n")
        return False
    done = subprocess.run([sys.executable, *command, *more], cwd=ROOT, check=False)
    sys.stdout.write("\n")
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
