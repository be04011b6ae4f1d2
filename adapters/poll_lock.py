"""One process a bot token on one machine: a second one would take away half of the messages.

A file lock, so that the system releases it however its process ends. Where there is none (Windows, a folder that
cannot be written) nothing is locked, and the platform's own refusal has to do.
"""

import os
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import structlog
from filelock import AsyncFileLock, Timeout

from core.errors import ConfigError
from core.text.normalize import language_data

NAME_DIGITS = 16
PATIENCE_S = 10.0
"""A process that was asked to end takes up to eight seconds."""
LOOK_S = 0.25

_log = structlog.get_logger(__name__)


class PollLock:
    """`server`: the root of the platform's API; the same token at another server is another bot."""

    def __init__(self, platform: str, server: str, token: str) -> None:
        digits = sha256(f"{server} {token}".encode()).hexdigest()[:NAME_DIGITS]
        self._platform = platform
        self._name = f"{platform}-{digits}.lock"
        self._lock: AsyncFileLock | None = None

    async def acquire(self) -> None:
        """Once is enough; again does nothing. Waits for a process that is ending; raises ConfigError, naming the
        process that holds the lock."""
        if self._lock is not None or sys.platform == "win32":
            return
        folder = Path(tempfile.gettempdir()) / f"mneme-{os.getuid()}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder.stat().st_uid != os.getuid():
                raise PermissionError(f"{folder} belongs to somebody else")
            lock = AsyncFileLock(folder / self._name, PATIENCE_S, 0o600, poll_interval=LOOK_S, on_acquired=_sign)
            await lock.acquire()
            self._lock = lock
        except Timeout as error:
            process, refusal = (folder / self._name).read_text(), language_data("refusals", "adapters")["in_use"]
            raise ConfigError(refusal.format(platform=self._platform, process=process or "unknown")) from error
        except OSError as error:
            _log.warning("no lock for the token", platform=self._platform, error=str(error))

    async def release(self) -> None:
        if self._lock is not None:
            await self._lock.release()
            self._lock = None


def _sign(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
