"""Runs Mneme as a systemd user unit on Linux and WSL.

This is the only module that calls systemd.
"""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Sequence
from pathlib import Path

from core.errors import ConfigError
from core.text.normalize import language_data
from gateway.local.service_manager import (
    call_program,
    choose_service_file,
    require_file,
    write_service_file,
)
from gateway.texts.catalog import SHELL as texts

# For each user whose services run without a login, systemd keeps a file with the user's name in
# this folder.
LINGER_FOLDER = Path("/var/lib/systemd/linger")
_UNIT_TEXT: str = language_data("setup", "gateway")["service"]["systemd_unit"]


class Systemd:
    """The systemd unit of one home.

    `program` is the command line of mneme without its arguments.
    """

    def __init__(
        self,
        home: Path,
        program: Sequence[str],
        user_folder: Path | None = None,
        other_folders: Sequence[Path] = (),
    ) -> None:
        self.home = home
        folder = (user_folder or Path.home()) / ".config" / "systemd" / "user"
        self.path = choose_service_file(folder, "mneme", ".service", home, self._is_for_home)
        self._unit = self.path.name
        self._program = program
        self._other_folders = [
            folder for folder in other_folders if not folder.is_relative_to(home)
        ]
        self._journal = home.with_name(f"{home.name}.erasures")

    @property
    def needs_linger(self) -> bool:
        return not (LINGER_FOLDER / getpass.getuser()).exists()

    def render(self) -> str:
        command = " ".join(_quote(word) for word in [*self._program, "run"])
        # The "-" lets the service start while a file is missing or a disk isn't connected.
        others = [f'"-{_escape(str(path))}"' for path in (self._journal, *self._other_folders)]
        folders = [f'"{_escape(str(self.home))}"', *others]
        return _UNIT_TEXT.format(
            command=command, home=_escape(str(self.home)), folders=" ".join(folders)
        ).lstrip("\n")

    def find_closed_folder(self) -> Path | None:
        if not self.path.exists():
            return None
        unit = self.path.read_text(encoding="utf-8", errors="replace")
        for folder in self._other_folders:
            if f'"-{_escape(str(folder))}"' not in unit:
                return folder
        return None

    def install(self) -> Path:
        self._require_systemd()
        # systemd can't make a missing file or folder writable.
        self._journal.touch(0o600)
        for folder in self._other_folders:
            # If its parent is missing, the folder is on a disk that isn't connected.
            with contextlib.suppress(OSError):
                folder.mkdir(mode=0o700, exist_ok=True)
        write_service_file(self.path, self.render())
        call_program(["systemctl", "--user", "daemon-reload"])
        try:
            call_program(["systemctl", "--user", "enable", self._unit])
            # Restart a running service, so that it uses the new file.
            call_program(["systemctl", "--user", "restart", self._unit])
        except ConfigError:
            # Otherwise, systemd would try to start it again and again.
            call_program(["systemctl", "--user", "disable", "--now", self._unit], is_checked=False)
            self.path.unlink(missing_ok=True)
            call_program(["systemctl", "--user", "daemon-reload"], is_checked=False)
            raise
        return self.path

    def uninstall(self) -> Path:
        require_file(self.path)
        call_program(["systemctl", "--user", "disable", "--now", self._unit])
        self.path.unlink()
        call_program(["systemctl", "--user", "daemon-reload"])
        return self.path

    def start(self) -> None:
        require_file(self.path)
        call_program(["systemctl", "--user", "start", self._unit])

    def stop(self) -> None:
        require_file(self.path)
        call_program(["systemctl", "--user", "stop", self._unit])

    def is_active(self) -> bool:
        state = call_program(["systemctl", "--user", "is-active", self._unit], is_checked=False)
        return state == "active"

    def read_log(self, lines: int) -> str:
        return call_program(
            ["journalctl", "--user", "--unit", self._unit, "--lines", str(lines), "--no-pager"]
        )

    def _require_systemd(self) -> None:
        """Raise ConfigError if systemd doesn't run for this user.

        No file has been written at this point.
        """
        try:
            call_program(["systemctl", "--user", "show-environment"])
        except ConfigError as error:
            words = texts.tables("setup")["service"]["no_systemd"]
            raise ConfigError(words.format(reason=error)) from error

    @staticmethod
    def _is_for_home(path: Path, home: Path) -> bool:
        line = f'Environment="MNEME_HOME={_escape(str(home))}"'
        return line in path.read_text(encoding="utf-8", errors="replace").splitlines()


def _quote(word: str) -> str:
    """Quote a word of a command line for a systemd unit."""
    return f'"{_escape(word).replace("$", "$$")}"'


def _escape(text: str) -> str:
    """Escape a text between quotation marks, and systemd's specifiers in it, such as %h."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
