"""Notice if another program removes, replaces or truncates the files of an open state.db."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from config.operating_system import sync_file

COPY_BYTES = 1_000_000  # how much of a removed log is copied at once


class FileGuard:
    """Notices if state.db or its log is removed, replaced or truncated while it is open.

    SQLite keeps using its open files even if they were deleted. Rows in a deleted file would be
    lost at the next start, and another process could overwrite rows in a file that it considers its
    own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log_paths = (f"{path}-wal", f"{path}-shm")
        # An open descriptor keeps the content of a removed log readable.
        self._log_descriptor: int | None = None
        self._copy: tuple[int, int] | None = None
        self.remember()

    def remember(self) -> None:
        """Remember the current files as those that SQLite has open."""
        self._file = _identify(self._path)
        self._log = [*map(_identify, self._log_paths)]
        self.close()
        with contextlib.suppress(OSError):
            self._log_descriptor = os.open(self._log_paths[0], os.O_RDONLY)
        self.file_bytes = 0
        # Whether the file became smaller, which only damage and VACUUM do.
        self.is_smaller = False
        self.is_file_there()  # stores the current size

    def is_file_there(self) -> bool:
        """Return whether state.db is still the file that was opened and hasn't become smaller."""
        try:
            stat = os.stat(self._path)
        except OSError:
            return False
        if stat.st_size < self.file_bytes:
            self.is_smaller = True
            return False
        self.file_bytes = stat.st_size
        self.is_smaller = False
        return (stat.st_dev, stat.st_ino) == self._file

    def is_log_there(self) -> bool:
        """Return whether the log and its index of locks are still the opened files."""
        return [*map(_identify, self._log_paths)] == self._log

    def put_log_back(self) -> None:
        """Write the content of a removed log to a new log at the same path.

        No connection may write meanwhile. The next start finds everything in the new log, which
        the open connections don't use. Raises OSError.
        """
        if self._log_descriptor is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._log_paths[0])
        if _identify(self._log_paths[0]) == self._log[0]:
            return  # only the index was removed
        copy = Path(f"{self._log_paths[0]}.part")
        with open(copy, "wb", opener=_open_private) as file:
            offset = 0
            while chunk := os.pread(self._log_descriptor, COPY_BYTES, offset):
                file.write(chunk)
                offset += len(chunk)
            file.flush()
            sync_file(file.fileno())
        copy.replace(self._log_paths[0])
        self._copy = _identify(self._log_paths[0])
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove_copy(self) -> None:
        """Delete a log that was put back, once its content is in state.db."""
        if self._copy is not None and _identify(self._log_paths[0]) == self._copy:
            os.unlink(self._log_paths[0])
        self._copy = None

    def close(self) -> None:
        """Close the log."""
        if self._log_descriptor is not None:
            os.close(self._log_descriptor)
            self._log_descriptor = None


def _open_private(path: str, flags: int) -> int:
    """Open a file that only the user can read."""
    return os.open(path, flags, 0o600)


def _identify(path: str | Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if the file can't be accessed."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
