"""Finds the service manager of this system, and checks the folders that the settings name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from config.operating_system import PLATFORM, SYSTEM, System
from config.settings import Settings
from core.errors import ConfigError
from gateway.local import launchd, systemd
from gateway.local.service_manager import ServiceManager
from gateway.texts.catalog import SHELL, Texts
from gateway.upkeep.catalog import backup_folder


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
