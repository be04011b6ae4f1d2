"""Convert SQLite's errors to sentences that say what to do, and handle locks and cursors."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import StoreDamagedError, StoreError

# The keys of sentences for people, by a part of SQLite's error message.
ERROR_KEYS = {
    "readonly": "store_read_only",
    "full": "store_disk_full",
    "disk I/O error": "store_disk_fault",
    "locked": "store_locked",
}

LOCK_TIMEOUT_S = 4.0  # writes fail when another program has locked the file for this long
LOCK_EPISODE_S = 10.0
"""After a lock reached its time limit, the next writes fail at once. If no write has noticed a lock
for this long, the next lock counts as a new one."""
LOCK_GAP_S = 1.0
"""The same for a lock that hasn't reached its time limit. A waiting write tries more often, so no
write was waiting, and the file may have been unlocked."""


def is_busy(error: sqlite3.DatabaseError) -> bool:
    """Return whether an error means that another connection holds a lock."""
    # The lowest byte is the primary result code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def to_store_error(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    """Convert an error of SQLite to a StoreError. Its sentence says what to do.

    Returns a StoreDamagedError if the file is damaged.
    """
    text = str(error)
    if "not a database" in text or "malformed" in text:
        return StoreDamagedError("store_damaged", path=path, text=text)
    for part, key in ERROR_KEYS.items():
        if part in text:
            return StoreError(key, path=path)
    return StoreError(f"{path}: {text}")


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite in the `with` block to StoreError."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise to_store_error(path, error) from error


def close_cursors(error: BaseException) -> None:
    """Close the cursors that are referenced from an error's stack frames.

    ROLLBACK doesn't end a cursor that still has rows. Such a cursor would make the connection read
    old data, even in later transactions.
    """
    current: BaseException | None = error
    while current is not None:
        traceback.clear_frames(current.__traceback__)
        current = current.__context__


@dataclass
class LockWait:
    """Measures how long another program has locked the file.

    The time limit starts when the lock is first noticed, not when a write begins to wait.
    Otherwise, each queued write would wait for the whole limit in turn.
    """

    timeout_s: float = LOCK_TIMEOUT_S
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    # When the current lock was first noticed. None while the file isn't locked.
    began_at: float | None = field(default=None, init=False)
    # When a lock was last noticed.
    _noticed_at: float = field(default=0.0, init=False)

    def note_lock(self) -> None:
        """Record that a write found the file locked."""
        now = self.now()
        gap_s = LOCK_EPISODE_S if self.is_over else LOCK_GAP_S
        if self.began_at is None or now - self._noticed_at > gap_s:
            self.began_at = now
        self._noticed_at = now

    def note_success(self) -> None:
        """Record that a write found the file unlocked."""
        self.began_at = None

    @property
    def is_over(self) -> bool:
        """Whether the current lock has reached the time limit."""
        return self.began_at is not None and self._noticed_at - self.began_at >= self.timeout_s
