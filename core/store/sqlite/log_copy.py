"""Keep the content of a write-ahead log that another program removes readable."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from config.files import sync_path
from config.operating_system import sync_file

COPY_BYTES = 1_000_000  # how much of a removed log is copied at once


class LogCopy:
    """Keeps the log open, and writes its content to a new log after it was removed."""

    def __init__(self, path: Path) -> None:
        """`path` is that of state.db."""
        self._folder = path.parent
        self._log_path = f"{path}-wal"
        # An open descriptor keeps the content of a removed log readable.
        self._descriptor: int | None = None
        self._copy: os.stat_result | None = None
        self.keep_open()

    def keep_open(self) -> None:
        """Open the current log instead of the one before."""
        self.close()
        with contextlib.suppress(OSError):
            self._descriptor = os.open(self._log_path, os.O_RDONLY)

    def put_back(self) -> None:
        """Write the content of a removed log to a new log at the same path.

        No connection may write meanwhile. The next start finds everything in the new log, which
        the open connections don't use. Raises OSError.
        """
        if self._descriptor is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._log_path)
        if _is_at(self._log_path, os.fstat(self._descriptor)):
            return  # only the index was removed
        copy = Path(f"{self._log_path}.part")
        with open(copy, "wb", opener=_open_private) as file:
            offset = 0
            while chunk := os.pread(self._descriptor, COPY_BYTES, offset):
                file.write(chunk)
                offset += len(chunk)
            file.flush()
            sync_file(file.fileno())
        copy.replace(self._log_path)
        self._copy = os.stat(self._log_path)
        sync_path(self._folder)

    def remove(self) -> None:
        """Delete a log that was put back, once its content is in state.db."""
        if self._copy is not None and _is_at(self._log_path, self._copy):
            os.unlink(self._log_path)
        self._copy = None

    def close(self) -> None:
        """Close the log."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _open_private(path: str, flags: int) -> int:
    """Open a file that only the user can read."""
    return os.open(path, flags, 0o600)


def _is_at(path: str, stat: os.stat_result) -> bool:
    """Return whether a path leads to the file that `stat` describes."""
    try:
        return os.path.samestat(os.stat(path), stat)
    except OSError:
        return False
