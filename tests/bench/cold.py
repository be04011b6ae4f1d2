"""Measures what a new process costs until it is ready.

The benchmark compares `mneme --help`, a recall, `mneme chat` until its prompt with a bare prompt of
prompt_toolkit, and a start until the first poll of Telegram with a bare echo bot.

It measures the processor time (user and system) of the process, as the median of several runs. It
can measure another checkout in the same run, alternately. Memory is read from /proc, so this needs
Linux.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.gateway import ECHO_BOT, KEY, ROOT, START_S, cpu_s, memory_mb
from tests.fixtures.bot_api import BotApi
from tests.fixtures.messages_api import MessagesApi

RUNS = 5
COMMANDS = {"mneme --help": ["--help"], "mneme recall ferry": ["recall", "ferry"]}
STOP_S = 40.0
PROMPT_S = 60.0
# What prompt_toolkit sends to a terminal when its prompt takes keys.
BRACKETED_PASTE = b"\x1b[?2004h"
CHAT = ["-m", "gateway.cli.main", "chat"]
BARE_PROMPT = ["-c", "from prompt_toolkit import prompt; prompt('> ')"]
_COUNT_MODULES = "import sys; sys.argv[0] = 'mneme'; from gateway.cli.main import main\n"
_COUNT_MODULES += "try: main()\nfinally: print(len(sys.modules), file=sys.stderr)"


async def measure(folder: Path, before: Path | None = None) -> str:
    """Return a Markdown table."""
    if sys.platform != "linux":
        return "left out: there is no /proc"
    trees = [ROOT] if before is None else [before, ROOT]
    homes = {root: folder / f"home {number}" for number, root in enumerate(trees)}
    for root, home in homes.items():
        _fill(home, root)
    lines = ["| process | tree | CPU ms | modules | MB |", "|---|---|---|---|---|"]
    for name, arguments in COMMANDS.items():
        costs: dict[Path, list[float]] = {root: [] for root in trees}
        for _ in range(RUNS):
            for root in trees:
                costs[root].append(_run(arguments, homes[root], root))
        for root in trees:
            lines.append(
                _line(name, root, before, costs[root], str(_modules(arguments, homes[root], root)))
            )
    lines += _measure_prompts(homes, before)
    for kind in (ECHO_BOT, "no model", "model"):
        kind_trees = [ROOT] if kind == ECHO_BOT else trees
        costs = {root: [] for root in kind_trees}
        memory = dict.fromkeys(kind_trees, 0.0)
        for _ in range(RUNS):
            for root in kind_trees:
                cost, memory[root] = await _start(folder, root, kind)
                costs[root].append(cost)
        for root in kind_trees:
            cells = _line(f"start, {kind}", root, before, costs[root], "", f"{memory[root]:.0f}")
            lines.append(cells)
    return "\n".join(lines)


def _measure_prompts(homes: Mapping[Path, Path], before: Path | None) -> list[str]:
    """Return the rows for a bare prompt and for `mneme chat`, relative to the bare prompt."""
    bare: list[float] = []
    costs: dict[Path, list[float]] = {root: [] for root in homes}
    for _ in range(RUNS):
        bare.append(_reach_prompt(BARE_PROMPT, homes[ROOT], ROOT))
        for root, home in homes.items():
            costs[root].append(_reach_prompt(CHAT, home, root))
    lines = [_line("a bare prompt of prompt_toolkit", ROOT, before, bare, "")]
    for root in homes:
        ratio = statistics.median(costs[root]) / statistics.median(bare)
        name = f"mneme chat until its prompt ({ratio:.1f} times the bare one)"
        lines.append(_line(name, root, before, costs[root], ""))
    return lines


def _reach_prompt(arguments: Sequence[str], home: Path, root: Path) -> float:
    """Return the processor time in seconds until the prompt of a program accepts keys."""
    process, main = pty.fork()
    if process == 0:
        os.chdir(root)
        os.execve(sys.executable, [sys.executable, *arguments], _environment(home))
    shown = b""
    while BRACKETED_PASTE not in shown:
        is_ready, _, _ = select.select([main], [], [], PROMPT_S)
        assert is_ready, shown
        shown += os.read(main, 65536)
    os.kill(process, signal.SIGKILL)
    _, _, usage = os.wait4(process, 0)
    os.close(main)
    return usage.ru_utime + usage.ru_stime


def _line(
    name: str,
    root: Path,
    before: Path | None,
    costs: Sequence[float],
    modules: str,
    memory: str = "",
) -> str:
    tree = "before" if root == before else "this"
    return f"| {name} | {tree} | {1000 * statistics.median(costs):.0f} | {modules} | {memory} |"


def _fill(home: Path, root: Path) -> None:
    """Import messages with the measured checkout, because versions differ in the schema."""
    home.mkdir()
    (home / "mneme.toml").write_text("[owner]\ntelegram = [1000]\n")
    lines = [
        {
            "session": "1",
            "role": "user",
            "text": f"The ferry number {number} leaves at nine from the old harbour.",
            "at": "2026-11-20T09:00:00+00:00",
            "id": str(number),
        }
        for number in range(20)
    ]
    file = home / "history.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _run(["import", str(file)], home, root)


def _environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "MNEME_HOME": str(home), "TERM": "xterm"}


def _run(arguments: Sequence[str], home: Path, root: Path) -> float:
    """Return the processor time of a command in seconds."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway.cli.main", *arguments],
        cwd=root,
        env=_environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return usage.ru_utime + usage.ru_stime


def _modules(arguments: Sequence[str], home: Path, root: Path) -> int:
    """Return the number of modules that a command has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", _COUNT_MODULES, *arguments],
        cwd=root,
        env=_environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    return int(done.stderr.split()[-1])


async def _start(folder: Path, root: Path, kind: str) -> tuple[float, float]:
    """Return the processor time in seconds until the first poll, and the resident memory in MB."""
    home = folder / f"start {len(os.listdir(folder))}"
    home.mkdir()
    (home / "mneme.toml").write_text("[owner]\ntelegram = [1000]\n")
    async with BotApi() as api, MessagesApi(key=KEY) as model:
        environment = _environment(home)
        environment |= {"TELEGRAM_BOT_TOKEN": api.token, "MNEME_TELEGRAM_API_URL": api.url}
        if kind == "model":
            environment |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url}
        command = ["gateway.cli.main", "run"]
        if kind == ECHO_BOT:
            command = ["tests.bench.echo_bot", api.token, api.url]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *command),
            cwd=root,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await api.wait_for(lambda: api.called("getUpdates"), START_S)
            return cpu_s(process.pid), memory_mb(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(STOP_S):
                await process.wait()
