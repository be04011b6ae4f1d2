"""The command line is ready soon: a command waits for nothing that only others need."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.forked import ROOT
from tests.fixtures.scripted_terminal import open_terminal

LATER = ("dateparser", "discord", "ijson", "markdown_it", "openai", "telegram")
"""Packages, and below modules of ours, that a command loads when it comes to need them."""
OURS_LATER = ("core.transfer.source", "core.facts.claims", "core.search.expansion", "gateway.app")


# What a search in the shell never needs. Each of them takes 5 to 300 milliseconds to load.
NOT_FOR_RECALL = (
    *("aiohttp", "anthropic", "apscheduler", "dateparser", "discord", "filelock"),
    *("httpx", "httpx2", "icalendar", "mcp", "openai", "rich", "telegram", "yaml"),
    *("core.agent", "core.facts", "core.models.connections", "core.tools", "core.transfer"),
    *("core.dates.parsing", "core.dates.requests.reader", "core.memory.services"),
    *("core.scheduling.tool", "core.skills.yaml_mapping"),
    *("gateway.app", "gateway.commands.sessions", "gateway.local", "gateway.upkeep"),
)


def run(script: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_a_command_loads_nothing_that_only_others_need() -> None:
    named = (*LATER, *OURS_LATER)
    script = f"import sys, gateway.cli.main as main\nmain.app()\nprint(*(name for name in {named} if name in sys.modules))"
    assert run(script) == (0, "\n", "")


@pytest.mark.slow
def test_chat_with_a_running_mneme_loads_only_the_screen_and_the_connection() -> None:
    needless = ("gateway.services", "gateway.delivery", "gateway.commands", "rich.markdown")
    script = (
        "import sys, gateway.cli.run, gateway.local.chat, adapters.terminal.screen\n"
        f"print(*(name for name in {needless} if name in sys.modules))"
    )
    assert run(script) == (0, "\n", "")


@pytest.mark.slow
def test_chat_loads_neither_numpy_nor_other_languages_before_its_prompt(home: Path) -> None:
    script = (
        "import sys\n"
        "sys.argv = ['mneme', 'chat']\n"
        "from gateway.cli.main import main\n"
        "from gateway.texts.text_files import load_file\n"
        "try: main()\n"
        "finally:\n"
        "    print({'numpy', 'httpx', 'babel'} & sys.modules.keys(), file=sys.stderr)\n"
        "    print(load_file.cache_info().currsize, file=sys.stderr)"
    )
    environment = {**os.environ, "MNEME_HOME": str(home), "PYTHONPATH": str(ROOT), "LANG": "C"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "set()\n1\n")


@pytest.mark.slow
def test_cold_recall_loads_no_module_that_only_other_commands_need(home: Path) -> None:
    script = (
        "import sys\n"
        "sys.argv = ['mneme', 'recall', 'ferry']\n"
        "from gateway.cli.main import main\n"
        "try: main()\n"
        f"finally: print(*({{*{NOT_FOR_RECALL}}} & sys.modules.keys()), file=sys.stderr)"
    )
    environment = {**os.environ, "MNEME_HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "\n")
    assert "ferry" in done.stdout


def test_interrupt_while_loading_shows_no_stack_trace() -> None:
    script = "import gateway.cli.main as main\ndef app(words): raise KeyboardInterrupt\nmain.app = app\nmain.main()"
    code, out, error = run(script)
    assert (code != 0, out, error) == (True, "", "")


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_is_heard_also_if_the_program_that_starts_us_ignores_it(
    home: Path,
) -> None:
    """As in a script with ``trap '' INT``: who presses Ctrl-C wants to leave all the same."""
    terminal, inside = pty.openpty()
    with subprocess.Popen(
        [
            "sh",
            "-c",
            "trap '' INT; exec \"$@\"",
            "-",
            sys.executable,
            "-m",
            "gateway.cli.main",
            "setup",
        ],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={
            **os.environ,
            "MNEME_HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "TERM": "xterm",
            "LC_ALL": "en_GB.UTF-8",
        },
    ) as process:
        os.close(inside)
        try:
            shown = b""
            while b"time zone" not in shown.lower() or not shown.endswith(b": "):
                shown += os.read(terminal, 10_000)
            # A key that is pressed just before the program begins to read isn't heard, so a person
            # presses it again. A terminal says with an error that its last writer has gone.
            with contextlib.suppress(OSError):
                while True:
                    process.send_signal(signal.SIGINT)
                    while select.select([terminal], [], [], 2)[0]:
                        shown += os.read(terminal, 10_000)
            assert process.wait(60) == 130
        finally:
            process.kill()
            os.close(terminal)
    assert b"Setup has stopped." in shown


def test_list_of_commands_in_the_language_of_the_shell_loads_no_settings() -> None:
    """Loading the settings takes three times as long as all of the help."""
    script = (
        "import sys\n"
        "sys.argv = ['mneme', '--help']\n"
        "from gateway.cli.main import main\n"
        "try: main()\n"
        "finally: print(*({'pydantic', 'config.settings', 'babel'} & sys.modules.keys()), file=sys.stderr)"
    )
    environment = {**os.environ, "LC_ALL": "de_DE.UTF-8", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "\n")
    assert "Aufruf: mneme" in done.stdout


@pytest.mark.slow
def test_list_of_commands_loads_no_command_and_names_each_one() -> None:
    script = (
        "import sys, gateway.cli.main as main\n"
        "from typer.main import get_command\n"
        "def read(words):\n"
        "    return sorted(get_command(main.app(words)).commands)\n"
        "listed = read(['--help'])\n"
        "loaded = [name for name in sys.modules if name.startswith(('core.', 'gateway.cli.'))]\n"
        "assert loaded == ['gateway.cli.main'], loaded\n"
        "assert listed == read([]), (listed, read([]))\n"
        "print(len(sys.modules) < 1500, len(listed))"
    )
    code, out, error = run(script)
    assert (code, error) == (0, "")
    is_small, count = out.split()
    assert is_small == "True"
    assert int(count) >= 25


@pytest.mark.slow
async def test_typing_while_a_chat_starts_is_shown_once_by_its_prompt(home: Path) -> None:
    async with open_terminal(home, "chat") as terminal:
        while terminal.is_echoing:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        terminal.type("My bicycle is green.")
        terminal.press("Where is")
        assert "bicycle" not in await terminal.expect("/quit leaves")
        await terminal.expect("> My bicycle is green.")
        await terminal.expect("I've saved that.")
        await terminal.expect("> Where is")
        terminal.type(" my bicycle?")
        await terminal.expect("> Where is my bicycle?")
        await terminal.expect("My bicycle is green.")
        await terminal.expect(">")
        terminal.type("/quit")
        assert await terminal.end() == 0
        assert terminal.is_echoing


@pytest.mark.slow
async def test_ctrl_d_while_a_chat_starts_leaves_it_at_its_prompt(home: Path) -> None:
    async with open_terminal(home, "chat") as terminal:
        while terminal.is_echoing:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        terminal.press("\x04")
        await terminal.expect("/quit leaves")
        assert await terminal.end() == 0


@pytest.mark.slow
async def test_setup_before_the_first_run_with_a_terminal_shows_what_is_typed(home: Path) -> None:
    async with open_terminal(home, "run", "--terminal") as terminal:
        await terminal.expect("Set it up now?")
        assert terminal.is_echoing
        terminal.type("n")
        await terminal.expect("/quit leaves")
        terminal.press("\x04")
        assert await terminal.end() == 0


@pytest.mark.slow
async def test_chat_that_does_not_start_leaves_the_terminal_echoing(home: Path) -> None:
    (home / "mneme.toml").write_text("[general]\nzone = 'Nowhere'\n")
    async with open_terminal(home, "chat") as terminal:
        await terminal.expect("isn't a time zone")
        assert await terminal.end() != 0
        assert terminal.is_echoing
