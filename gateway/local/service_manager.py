"""Defines what the service managers of Linux and macOS share: service files and calls."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from config.files import replace_file
from core.errors import ConfigError
from gateway.texts.catalog import SHELL as texts

CALL_TIMEOUT_S = 60.0


class ServiceManager(Protocol):
    """Runs Mneme in the background for one home."""

    home: Path
    # The file that describes the service.
    path: Path

    @property
    def needs_linger(self) -> bool:
        """Return whether the service stops at logout because lingering isn't enabled."""

    def render(self) -> str:
        """Return the content of the service file."""

    def find_closed_folder(self) -> Path | None:
        """Return a folder that the gateway writes to but the installed service can't, or None.

        If the service isn't installed, the result is None.
        """

    def install(self) -> Path:
        """Write the service file and start the service. Raises ConfigError if that fails."""

    def uninstall(self) -> Path:
        """Stop the service and delete its file. Raises ConfigError if it isn't installed."""

    def start(self) -> None:
        """Start the service. Raises ConfigError if it isn't installed."""

    def stop(self) -> None:
        """Stop the service. Raises ConfigError if it isn't installed."""

    def is_active(self) -> bool:
        """Return whether the service is running."""

    def read_log(self, lines: int) -> str:
        """Return the last lines of the log."""


def call_program(arguments: Sequence[str], *, is_checked: bool = True) -> str:
    """Run a program and return its output.

    Raises ConfigError with the first line of its error output if it fails or is missing.
    """
    try:
        process = subprocess.run(
            arguments, capture_output=True, text=True, timeout=CALL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        words = texts.tables("setup")["service"]["cannot_run"]
        raise ConfigError(words.format(program=arguments[0], reason=error)) from error
    if process.returncode and is_checked:
        lines = (process.stderr or process.stdout).strip().splitlines()
        # systemctl also writes messages about successes to its error output.
        reasons = [line for line in lines if not line.startswith("Created symlink")]
        reason = reasons[0] if reasons else f"code {process.returncode}"
        words = texts.tables("setup")["service"]["call_failed"]
        raise ConfigError(words.format(command=" ".join(arguments), reason=reason))
    return process.stdout.strip()


def choose_service_file(
    folder: Path, name: str, suffix: str, home: Path, is_for_home: Callable[[Path, Path], bool]
) -> Path:
    """Return the path of the service file for a home.

    The first home gets the short name. Each further home on the same machine gets a different name,
    so that it doesn't replace the service of the first home.
    """
    short_path = folder / f"{name}{suffix}"
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:8]
    numbered_path = folder / f"{name}-{digest}{suffix}"
    if numbered_path.exists() or (short_path.exists() and not is_for_home(short_path, home)):
        return numbered_path
    return short_path


def write_service_file(path: Path, content: str) -> None:
    """Write a service file that only the user can change."""
    os.makedirs(path.parent, exist_ok=True)
    replace_file(path, content.encode())


def require_file(path: Path) -> None:
    """Raise ConfigError if the service isn't installed."""
    if not path.exists():
        raise ConfigError(texts.tables("setup")["service"]["not_installed"])


def read_last_lines(path: Path, lines: int) -> str:
    """Return the last lines of a log file, or a sentence if the file doesn't exist."""
    if not path.exists():
        return texts.compose("no_log", path=path)
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
