"""One process a bot token on one machine: a second one would take away half of the messages.

A file lock, so that the system releases it however its process ends. Where there is none (Windows, a folder that
cannot be written) nothing is locked, and the platform's own refusal has to do.
"""

from __future__ import annotations

import os
import sys
import tempfile
from hashlib import sha256
from io import TextIOWrapper
from pathlib import Path

import structlog

from core.errors import ConfigError

if sys.platform != "win32":
    import fcntl

NAME_DIGITS = 16

_log = structlog.get_logger(__name__)


class PollLock:
    """`server`: the root of the platform's API; the same token at another server is another bot."""

    def __init__(self, platform: str, server: str, token: str) -> None:
        digits = sha256(f"{server} {token}".encode()).hexdigest()[:NAME_DIGITS]
        self._platform = platform
        self._name = f"{platform}-{digits}.lock"
        self._file: TextIOWrapper | None = None

    def acquire(self) -> None:
        """Once is enough; again does nothing. Raises ConfigError, naming the process that holds the lock."""
        if self._file is not None or sys.platform == "win32":
            return
        folder = Path(tempfile.gettempdir()) / f"mneme-{os.getuid()}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            file = (folder / self._name).open("a+", encoding="ascii")
        except OSError as error:
            _log.warning("no lock for the token", platform=self._platform, error=str(error))
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            with file:
                file.seek(0)
                process = file.read().strip() or "unknown"
            raise ConfigError(
                f"{self._platform}: process {process} on this machine uses the same bot token. Stop that process, or "
                "give this one a bot of its own."
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
