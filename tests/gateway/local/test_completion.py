"""Completion of commands and arguments in bash, zsh and fish: `mneme completion`."""

from __future__ import annotations

import asyncio
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.fixtures.command_line import good, mneme
from tests.fixtures.scripted_terminal import ScriptedTerminal
from tests.fixtures.sweeps import list_cases

pytestmark = pytest.mark.slow

# How each shell starts with the file `setup` as its only configuration.
START = {
    "bash": ["bash", "--noprofile", "--rcfile", "setup", "-i"],
    "zsh": ["zsh", "-i"],
    "fish": ["fish", "--no-config", "--interactive", "--init-command", "source setup"],
}
SETUP = {
    "bash": "PS1='ready> '\n",
    "zsh": "PS1='ready> '; autoload -U compinit; compinit -u -D\n",
    "fish": "function fish_prompt; echo 'ready> '; end\n",
}


def start_shell(name: str, home: Path, side: int) -> subprocess.Popen[bytes]:
    """Start a shell whose terminal is `side`, which can interrupt it."""
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home.parent),
        "MNEME_HOME": str(home),
        "TERM": "xterm",
        "LANG": "C.UTF-8",
    }
    return subprocess.Popen(
        START[name],
        cwd=home.parent,
        env=environ,
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
        preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
    )


@asynccontextmanager
async def open_shell(home: Path, name: str, script: str) -> AsyncIterator[ScriptedTerminal]:
    """Open a shell in a terminal that completes with this script."""
    folder = home.parent
    for file in ("setup", ".zshrc"):
        (folder / file).write_text(SETUP[name] + script)
    main, side = pty.openpty()
    ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 300, 0, 0))
    process = await asyncio.to_thread(start_shell, name, home, side)
    os.close(side)
    try:
        terminal = ScriptedTerminal(process, main)  # type: ignore[arg-type]
        await terminal.expect("ready>")
        yield terminal
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)
        asyncio.get_running_loop().remove_reader(main)
        os.close(main)


def test_completion_is_installed_only_when_asked_and_removed_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home.parent))
    before = sorted(os.listdir(home.parent))
    for name in ("bash", "zsh", "fish"):
        assert "_MNEME_COMPLETE" in good(home, "completion", name)
    assert sorted(os.listdir(home.parent)) == before
    path = home.parent / ".config" / "fish" / "completions" / "mneme.fish"
    assert str(path) in good(home, "completion", "fish", "--install")
    assert "_MNEME_COMPLETE" in path.read_text()
    good(home, "completion", "fish", "--remove")
    assert not path.exists()
    assert "nothing to remove" in mneme(home, "completion", "fish", "--remove").stderr


def complete(home: Path, line: str) -> list[str]:
    """Return what bash suggests for the last word of a line."""
    environ = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    return good(home, **environ, _MNEME_COMPLETE="complete_bash").split("\n")[:-1]


def test_shell_completes_the_arguments_of_commands(home: Path) -> None:
    (home / "mneme.toml").write_text(
        '[mcp.linear]\ncommand = "linear"\n[access]\npeople = ["telegram:42"]\n'
    )
    good(home, "remind", "tomorrow at 9 call Ana")
    good(home, "memory", "add", "Ana likes green tea")
    good(home, "backup")
    (backup,) = home.with_name("home.backups").glob("mneme-*")
    assert {"add", "pause", "remove"} <= {*complete(home, "mneme cron ")}
    assert complete(home, "mneme cron pause ") == ["1"]
    assert complete(home, "mneme memory remove Ana") == ["Ana\\ likes\\ green\\ tea"]
    assert not any(complete(home, "mneme memory remove green te"))
    assert complete(home, "mneme people re") == ["remove", "revoke"]
    assert complete(home, "mneme people remove ") == ["telegram:42"]
    assert complete(home, "mneme config get backup.e") == ["backup.every", "backup.encrypt_to"]
    assert complete(home, "mneme mcp remove ") == ["linear"]
    assert complete(home, "mneme config set general.language d") == ["de"]
    assert complete(home, "mneme config set general.zone Europe/Lis") == ["Europe/Lisbon"]
    assert complete(home, "mneme setup --zone Europe/Lis") == ["Europe/Lisbon"]
    assert "mem0" in complete(home, "mneme memory setup m")
    assert complete(home, "mneme restore ") == [str(backup)]


@pytest.mark.parametrize("name", list_cases(["bash", "zsh", "fish"], "bash"))
async def test_tab_completes_an_argument_and_runs_nothing_that_a_text_contains(
    home: Path, name: str
) -> None:
    """Reminders and notes may contain texts of other people."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    attack = "$(touch pwned) `touch pwned` ; touch pwned; \\$(touch pwned) \\`touch pwned` \"'*\\"
    good(home, "remind", f"tomorrow at 9 call {attack}")
    good(home, "memory", "add", f"zebra: {attack}")
    async with open_shell(home, name, good(home, "completion", name)) as terminal:
        terminal.press("mneme cron pause \t")
        await terminal.expect("mneme cron pause 1")
        terminal.press("\x15mneme memory unpin zeb\t")
        await terminal.expect("mneme memory unpin zebra")
        await terminal.expect("pwned")
        terminal.press("\r")
        await terminal.expect("zebra")
        terminal.press("\x15echo fini''shed\r")
        await terminal.expect("finished")
    assert not (home.parent / "pwned").exists()


@pytest.mark.parametrize("name", list_cases(["bash", "zsh", "fish"], "zsh"))
async def test_tab_completes_an_account_after_its_colon_and_a_note_in_quotes(
    home: Path, name: str
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    (home / "mneme.toml").write_text('[access]\npeople = ["telegram:42"]\n')
    good(home, "memory", "add", "zebra: costs $5 *")
    async with open_shell(home, name, good(home, "completion", name)) as terminal:
        terminal.press("mneme people remove telegram:\t")
        await terminal.expect("mneme people remove telegram:42")
        terminal.press('\x15mneme memory remove "zeb\t')
        await terminal.expect('"zebra: costs')
        terminal.press("\r")
        await terminal.expect("Removed")


def test_zsh_script_of_an_older_version_gets_nothing_to_evaluate(home: Path) -> None:
    good(home, "memory", "add", "Ana likes green tea")
    asked = {"_TYPER_COMPLETE_ARGS": "mneme memory remove ", "_MNEME_COMPLETE": "complete_zsh"}
    assert good(home, **asked) == "_files\n"


def test_shell_completion_creates_no_home_and_shows_no_error(home: Path) -> None:
    (home / "mneme.toml").write_text("[model\n")
    for line in ("mneme cron pause ", "mneme config get m", "mneme mcp remove "):
        assert not any(complete(home, line))
    assert os.listdir(home) == ["mneme.toml"]
