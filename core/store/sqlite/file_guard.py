"""Notice if another program removes, replaces or truncates the files of an open state.db."""

from __future__ import annotations

import os
from pathlib import Path


class FileGuard:
    """Notices if state.db or its log is removed, replaced or truncated while it is open.

    SQLite keeps using its open files even if they were deleted. Rows in a deleted file would be
    lost at the next start, and another process could overwrite rows in a file that it considers its
    own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log_paths = (f"{path}-wal", f"{path}-shm")
        self.remember()

    def remember(self) -> None:
        """Remember the current files as those that SQLite has open."""
        self._file = _identify(self._path)
        self._log = [*map(_identify, self._log_paths)]
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


def _identify(path: str | Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if the file can't be accessed."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
