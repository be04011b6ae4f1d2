"""Allows one process per bot token on a machine. Two processes would each get half of the messages.

The lock is a file lock, so the operating system releases it even if the process is killed. If the
folder isn't writable, there is no lock, and only the platform can refuse the second process.
"""

import os
import tempfile
from hashlib import sha256
from pathlib import Path

import structlog
from filelock import AsyncFileLock, Timeout

from core.errors import ConfigError

DIGEST_CHARS = 16
# How long to wait for the lock. A process that shuts down releases it within eight seconds.
LOCK_TIMEOUT_S = 10.0
POLL_INTERVAL_S = 0.25

_log = structlog.get_logger(__name__)


class PollLock:
    """A lock on a bot token.

    `server` is the root URL of the platform's API. The same token at another server is another bot.
    """

    def __init__(self, platform: str, server: str, token: str) -> None:
        digest = sha256(f"{server} {token}".encode()).hexdigest()[:DIGEST_CHARS]
        self._platform = platform
        self._file_name = f"{platform}-{digest}.lock"
        self._lock: AsyncFileLock | None = None

    async def acquire(self) -> None:
        """Acquire the lock, waiting for another process that is shutting down.

        A second call does nothing. Raises ConfigError with the other process's id if that process
        keeps the lock. If locking isn't possible, this is only logged.
        """
        if self._lock is not None:
            return
        folder = Path(tempfile.gettempdir()) / f"mneme-{os.getuid()}"
        path = folder / self._file_name
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder.stat().st_uid != os.getuid():
                raise PermissionError(f"{folder} belongs to another user")
            lock = AsyncFileLock(
                path,
                LOCK_TIMEOUT_S,
                0o600,
                poll_interval=POLL_INTERVAL_S,
                on_acquired=_write_process_id,
            )
            await lock.acquire()
            self._lock = lock
        except Timeout as error:
            process = path.read_text() or "unknown"
            raise ConfigError("token_in_use", platform=self._platform, process=process) from error
        except OSError as error:
            _log.warning("no lock for the token", platform=self._platform, error=str(error))

    async def release(self) -> None:
        """Release the lock. Does nothing if it isn't acquired."""
        if self._lock is not None:
            await self._lock.release()
            self._lock = None


def _write_process_id(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
