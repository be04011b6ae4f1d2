"""Runs Mneme as a launchd agent on macOS. This is the only module that calls launchd."""

from __future__ import annotations

import os
import plistlib
from collections.abc import Sequence
from pathlib import Path

from gateway.local.service_manager import (
    call_program,
    choose_service_file,
    read_last_lines,
    require_file,
    write_service_file,
)

LABEL = "org.mneme.gateway"
LOG_FILE = "service.log"


class Launchd:
    """The launchd agent of one home.

    `program` is the command line of mneme without its arguments.
    """

    needs_linger = False

    def __init__(self, home: Path, program: Sequence[str], user_folder: Path | None = None) -> None:
        self.home = home
        folder = (user_folder or Path.home()) / "Library" / "LaunchAgents"
        self.path = choose_service_file(folder, LABEL, ".plist", home, _is_for_home)
        self._label = self.path.stem
        self._program = program
        self._target = f"gui/{os.getuid()}"

    def render(self) -> str:
        log = str(self.home / LOG_FILE)
        content = {
            "Label": self._label,
            "ProgramArguments": [*self._program, "run"],
            "EnvironmentVariables": {"MNEME_HOME": str(self.home)},
            "RunAtLoad": True,
            # A process that fails is started again. A process that was stopped isn't.
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ProcessType": "Background",
            # Only the user may read the files of the process.
            "Umask": 0o077,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }
        return plistlib.dumps(content).decode()

    def find_closed_folder(self) -> Path | None:
        # launchd closes no folder.
        return None

    def install(self) -> Path:
        write_service_file(self.path, self.render())
        call_program(["launchctl", "bootout", self._service], is_checked=False)
        call_program(["launchctl", "bootstrap", self._target, str(self.path)])
        return self.path

    def uninstall(self) -> Path:
        require_file(self.path)
        call_program(["launchctl", "bootout", self._service], is_checked=False)
        self.path.unlink()
        return self.path

    def start(self) -> None:
        require_file(self.path)
        call_program(["launchctl", "bootstrap", self._target, str(self.path)], is_checked=False)
        call_program(["launchctl", "kickstart", self._service])

    def stop(self) -> None:
        require_file(self.path)
        call_program(["launchctl", "bootout", self._service])

    def is_active(self) -> bool:
        return "state = running" in call_program(
            ["launchctl", "print", self._service], is_checked=False
        )

    def read_log(self, lines: int) -> str:
        return read_last_lines(self.home / LOG_FILE, lines)

    @property
    def _service(self) -> str:
        return f"{self._target}/{self._label}"


def _is_for_home(path: Path, home: Path) -> bool:
    try:
        content = plistlib.loads(path.read_bytes())
    except (plistlib.InvalidFileException, ValueError):
        return False
    return bool(content.get("EnvironmentVariables", {}).get("MNEME_HOME") == str(home))
