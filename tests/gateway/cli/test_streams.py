"""The command line with its standard streams closed, full or of another kind: it ends, with a
sentence at most."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.forked import ROOT, ForkedProcess

pytestmark = pytest.mark.slow


def shell(home: Path, command: str) -> tuple[int, str, str]:
    """What a shell makes of a command line in which ``mneme`` stands for ours; it has to end by
    itself."""
    variables = {
        **os.environ,
        "MNEME_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    script = f'mneme() {{ "{sys.executable}" -m gateway.cli.main "$@"; }}\n{command}'
    done = subprocess.run(
        ["sh", "-c", script], env=variables, capture_output=True, text=True, timeout=30, check=False
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "command",
    ["mneme chat <&-", "mneme run <&-", "mneme recall - <&-", "mneme recall x >&- 2>&- <&-"],
)
def test_command_without_standard_streams_ends_without_an_error(home: Path, command: str) -> None:
    code, _, error = shell(home, command)
    assert (code, error) == (0, "")


def test_import_of_empty_stdin_fails_with_one_sentence(home: Path) -> None:
    code, out, error = shell(home, "mneme import - <&-")
    assert (code, out, error.count("\n")) == (1, "", 1)
    assert error == "stdin is empty.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments", ["sessions list", "--help", "--version", "check", "memory list"]
)
def test_command_whose_output_disk_is_full_fails_with_one_sentence(
    home: Path, arguments: str
) -> None:
    told = home / "told"
    with Path("/dev/full").open("r+b", buffering=0) as full, told.open("wb") as errors:
        streams = (full.fileno(), full.fileno(), errors.fileno())
        code = ForkedProcess(arguments.split(), {"MNEME_HOME": str(home)}, home, streams).wait(30)
    assert (code, told.read_text()) == (1, "Reading or writing failed: No space left on device.\n")


def test_unreadable_stdin_is_treated_as_ended_input(home: Path) -> None:
    assert shell(home, "mneme chat 0>/dev/null")[0] == 0
    assert shell(home, "mneme recall - 0>/dev/null")[0] in (0, 1)


def test_unexpected_error_of_a_command_is_printed_as_one_sentence(home: Path) -> None:
    script = (
        "import sys, gateway.cli.main, gateway.cli.shell, asyncio\n"
        "def work():\n"
        "    async def broken():\n"
        "        raise ZeroDivisionError('by\\x1bnought')\n"
        "    with gateway.cli.shell.exit_on_error():\n"
        "        asyncio.run(broken())\n"
        "made = gateway.cli.main.app\n"
        "def app(words):\n"
        "    root = made()\n"
        "    root.command('break')(work)\n"
        "    return root\n"
        "gateway.cli.main.app = app\n"
        "sys.argv = ['mneme', 'break']\n"
        "gateway.cli.main.main()\n"
    )
    (home / "broken.py").write_text(script)
    code, out, error = shell(home, f'"{sys.executable}" "{home}/broken.py"')
    assert (code, out) == (1, "")
    assert (
        error == "Mneme failed: ZeroDivisionError bynought, broken.py line 4. Please report this.\n"
    )


def test_log_file_records_the_start_and_the_stop_of_the_gateway(home: Path) -> None:
    (home / "mneme.toml").write_text("[model]\ncheap = 'small'\n")
    assert shell(home, "echo hello | mneme chat")[0] == 0
    log = (home / "mneme.log").read_text()
    assert log.count("model.cheap is now called model.helper") == 1
    for event in ("Mneme starts", f"home={home}", "a platform has ended", "has stopped"):
        assert event in log
