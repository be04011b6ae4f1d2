"""What the service managers of Linux and macOS have in common: files and called programs."""

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
        """Whether the service runs only while the person is logged in, until they allow more."""

    def render(self) -> str:
        """Return the content of the service's file."""

    def install(self) -> Path:
        """Write the file and start the service. Raises ConfigError if it fails."""

    def uninstall(self) -> Path:
        """Stop the service and delete its file. Raises ConfigError if it isn't installed."""

    def start(self) -> None:
        """Start the service. Raises ConfigError if it isn't installed."""

    def stop(self) -> None:
        """Stop the service. Raises ConfigError if it isn't installed."""

    def is_active(self) -> bool:
        """Return whether the service runs."""

    def read_log(self, lines: int) -> str:
        """Return the last lines of the log."""


def call_program(arguments: Sequence[str], *, is_checked: bool = True) -> str:
    """Run a program and return what it prints.

    Raises ConfigError with its first line about an error if it fails or is missing.
    """
    try:
        done = subprocess.run(
            arguments, capture_output=True, text=True, timeout=CALL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        words = texts.tables("setup")["service"]["cannot_run"]
        raise ConfigError(words.format(program=arguments[0], reason=error)) from error
    if done.returncode and is_checked:
        lines = (done.stderr or done.stdout).strip().splitlines()
        # systemctl also reports successes.
        reasons = [line for line in lines if not line.startswith("Created symlink")]
        reason = reasons[0] if reasons else f"code {done.returncode}"
        words = texts.tables("setup")["service"]["call_failed"]
        raise ConfigError(words.format(command=" ".join(arguments), reason=reason))
    return done.stdout.strip()


def choose_service_file(
    folder: Path, name: str, suffix: str, home: Path, is_for_home: Callable[[Path, Path], bool]
) -> Path:
    """Return the file of a home's service.

    The first home gets the short name. Another home on the same machine gets a name of its own, so
    that it doesn't replace the first one's service.
    """
    short = folder / f"{name}{suffix}"
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:8]
    own = folder / f"{name}-{digest}{suffix}"
    if own.exists() or (short.exists() and not is_for_home(short, home)):
        return own
    return short


def write_service_file(path: Path, content: str) -> None:
    """Write a service's file so that only the user can change it."""
    os.makedirs(path.parent, exist_ok=True)
    replace_file(path, content.encode())


def require_file(path: Path) -> None:
    """Raise ConfigError if the service isn't installed."""
    if not path.exists():
        raise ConfigError(texts.tables("setup")["service"]["not_installed"])


def read_last_lines(path: Path, lines: int) -> str:
    """Return the last lines of a log file, or a sentence if there is none."""
    if not path.exists():
        return texts.compose("no_log", path=path)
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
