"""Finds the service manager of this system, checks folders, and starts Mneme in the background."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from config.operating_system import PLATFORM, SYSTEM, System
from config.settings import Settings
from config.variables import child_environment
from core.errors import ConfigError
from core.privacy.home_files import LOG_FILE
from gateway.local import launchd, systemd
from gateway.local.service_manager import ServiceManager, read_last_lines
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import SHELL, Texts
from gateway.upkeep.catalog import backup_folder

START_S = 30.0
POLL_S = 0.2


def find_manager(
    home: Path,
    system: System = SYSTEM,
    texts: Texts = SHELL,
    other_folders: Sequence[Path] = (),
) -> ServiceManager:
    """Return the service manager of this system. Raises ConfigError if there is none.

    `other_folders` are folders outside the home that Mneme writes to.
    """
    program = [sys.executable, "-m", "gateway.cli.main"]
    if system == "macos":
        return launchd.Launchd(home, program)
    if system == "linux":
        return systemd.Systemd(home, program, other_folders=other_folders)
    words = texts.tables("setup")["service"]["no_manager"]
    raise ConfigError(words.format(system=PLATFORM))


def load_manager(settings: Settings) -> ServiceManager:
    """Return the service manager for the home of these settings.

    Raises ConfigError if there is none.
    """
    return find_manager(settings.home, other_folders=[backup_folder(settings)])


def find_closed_folder(settings: Settings) -> Path | None:
    """Return a folder of the settings that the installed service may not write in, or None."""
    try:
        return load_manager(settings).find_closed_folder()
    except ConfigError:
        return None


def start_gateway(settings: Settings) -> bool:
    """Start Mneme in the background: its service if one is installed, or else a process.

    Returns whether Mneme runs now. If not, it has needed more than `START_S` seconds so far. The
    process goes on when this one ends, and writes to the log in the home. Raises ConfigError, with
    the last line of the log, if Mneme can't start.
    """
    process = None
    if not _start_service(settings):
        process = _start_process(settings.home)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if is_running(settings.home):
            return True
        if process is not None and process.poll() is not None:
            raise ConfigError(read_last_lines(settings.home / LOG_FILE, 1))
        time.sleep(POLL_S)
    return False


def _start_service(settings: Settings) -> bool:
    """Start the service of the home, and return whether one is installed.

    Raises ConfigError if the service can't be started.
    """
    try:
        manager = load_manager(settings)
    except ConfigError:
        return False
    if not manager.path.exists():
        return False
    manager.start()
    return True


def _start_process(home: Path) -> subprocess.Popen[bytes]:
    with open(home / LOG_FILE, "ab", opener=_open_privately) as log:
        return subprocess.Popen(
            [sys.executable, "-m", "gateway.cli.main", "run"],
            env=child_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
