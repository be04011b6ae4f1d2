"""Mneme as a systemd user unit, for Linux and WSL. The only module that calls systemd."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.errors import ConfigError
from core.text.normalize import language_data
from gateway.local.service_manager import call_program, require_file, write_service_file

UNIT = "mneme.service"
_UNIT_TEXT: str = language_data("setup", "gateway")["service"]["systemd_unit"]


class Systemd:
    """The service of one home. `program` is the command line of mneme without its arguments."""

    needs_linger = True

    def __init__(self, home: Path, program: Sequence[str], user_folder: Path | None = None) -> None:
        self.home = home
        self.path = (user_folder or Path.home()) / ".config" / "systemd" / "user" / UNIT
        self._program = program

    def render(self) -> str:
        command = " ".join(_quote(word) for word in [*self._program, "run"])
        # The journal of erasures is a file next to the home.
        return _UNIT_TEXT.format(
            command=command,
            home=_escape(str(self.home)),
            folder=_escape(str(self.home.parent)),
        ).lstrip("\n")

    def install(self) -> Path:
        # Fails with a sentence where no systemd runs for this user, before anything is written.
        call_program(["systemctl", "--user", "show-environment"])
        write_service_file(self.path, self.render())
        call_program(["systemctl", "--user", "daemon-reload"])
        try:
            call_program(["systemctl", "--user", "enable", "--now", UNIT])
        except ConfigError:
            # Otherwise, systemd would try to start it again and again.
            call_program(["systemctl", "--user", "disable", "--now", UNIT], is_checked=False)
            self.path.unlink(missing_ok=True)
            call_program(["systemctl", "--user", "daemon-reload"], is_checked=False)
            raise
        return self.path

    def uninstall(self) -> Path:
        require_file(self.path)
        call_program(["systemctl", "--user", "disable", "--now", UNIT])
        self.path.unlink()
        call_program(["systemctl", "--user", "daemon-reload"])
        return self.path

    def start(self) -> None:
        require_file(self.path)
        call_program(["systemctl", "--user", "start", UNIT])

    def stop(self) -> None:
        require_file(self.path)
        call_program(["systemctl", "--user", "stop", UNIT])

    def is_active(self) -> bool:
        state = call_program(["systemctl", "--user", "is-active", UNIT], is_checked=False)
        return state == "active"

    def read_log(self, lines: int) -> str:
        return call_program(
            ["journalctl", "--user", "--unit", UNIT, "--lines", str(lines), "--no-pager"]
        )


def _quote(word: str) -> str:
    """Quote a word of a command line for systemd."""
    escaped = _escape(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'


def _escape(text: str) -> str:
    """Escape the specifiers of systemd, such as %h."""
    return text.replace("%", "%%")
