"""The command line is ready soon: a command waits for nothing that only others need."""

from __future__ import annotations

import subprocess
import sys

import pytest

LATER = ("dateparser", "discord", "ijson", "markdown_it", "openai", "telegram")
"""Packages, and below modules of ours, that a command loads when it comes to need them."""
OURS_LATER = ("core.transfer.source", "core.facts.claims", "core.search.expansion", "gateway.app")


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


def test_who_ends_it_while_it_is_loading_sees_no_trace() -> None:
    script = "import gateway.cli.main as main\ndef app(words): raise KeyboardInterrupt\nmain.app = app\nmain.main()"
    code, out, error = run(script)
    assert (code != 0, out, error) == (True, "", "")


@pytest.mark.slow
def test_list_of_commands_loads_no_command_and_says_what_each_one_says_itself() -> None:
    script = (
        "import sys, gateway.cli.main as main\n"
        "from typer.main import get_command\n"
        "def read(words):\n"
        "    commands = get_command(main.app(words)).commands\n"
        "    return {name: command.get_short_help_str(1000) for name, command in commands.items()}\n"
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
