"""Converts errors of SQLite to sentences that say what to do, and closes cursors after an error."""

from __future__ import annotations

import contextlib
import sqlite3
import traceback
from collections.abc import Iterator
from pathlib import Path

from core.errors import StoreDamagedError, StoreError

_DAMAGED = (
    "{path} is damaged ({text}). Run `mneme check`, or restore a backup. "
    "`mneme check --repair` saves what can still be read."
)
_DISK_FAULT = "it is full or has a fault. Make room and try again."
LOST = (
    "{path} was removed, replaced or cut off while Mneme was running. "
    "Stop Mneme and restore a backup."
)
LOCKED = "{path} is locked by another program. Close it and try again."
ERROR_SENTENCES = {
    "not a database": _DAMAGED,
    "malformed": _DAMAGED,
    "readonly": "{path} is read-only. Give the user that runs Mneme the right to write it.",
    "full": "The disk that holds {path} is full. Make room and try again; nothing stored was lost.",
    "disk I/O error": f"The disk that holds {{path}} cannot be used: {_DISK_FAULT}",
    "locked": LOCKED,
}
"""Sentences for people, by a part of SQLite's error message."""


def is_busy(error: sqlite3.DatabaseError) -> bool:
    """Whether another connection holds a lock."""
    # The lowest byte is the primary result code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def to_store_error(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    """Convert an error of SQLite to a StoreError with a sentence that says what to do.

    Returns a StoreDamagedError if the file is damaged.
    """
    text = str(error)
    sentence = "{path}: {text}"
    for part, known_sentence in ERROR_SENTENCES.items():
        if part in text:
            sentence = known_sentence
            break
    error_type = StoreDamagedError if sentence is _DAMAGED else StoreError
    return error_type(sentence.format(path=path, text=text))


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite in the `with` block to StoreError."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise to_store_error(path, error) from error


def close_cursors(error: BaseException) -> None:
    """Close the cursors that the frames of an error hold.

    ROLLBACK doesn't end a cursor that still has rows. Such a cursor would keep the connection at
    the current state of the data, even in later transactions.
    """
    current: BaseException | None = error
    while current is not None:
        traceback.clear_frames(current.__traceback__)
        current = current.__context__
