"""Keeps a damaged text index from costing a message: writes go past it, and it is flagged for a rebuild.

While the key `index_stale` of state_meta is there, the index triggers do nothing. Rebuilding and taking the flag away
belong to `upkeep.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from core.errors import StoreError
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import mend
from core.store.sqlite.index_maintenance import TABLES, blank, flag

T = TypeVar("T")


async def write_text(database: Database, work: Callable[[sqlite3.Connection], T]) -> T:
    """`Database.write` for work that changes indexed text.

    Where SQLite reports what a damaged index looks like, the same work is tried again with the triggers at rest, and
    once more with the indexes emptied: SQLite opens an index even for a trigger that does nothing, and one whose head
    is damaged cannot be opened. When that succeeds, the index was at fault and stays flagged; when not, everything is
    rolled back and the last error is raised.
    """
    try:
        return await database.write(work)
    except StoreError as error:
        if not _is_index_damage(error):
            raise
    try:
        return await database.write(lambda connection: _past(connection, work))
    except StoreError as error:
        if not _is_index_damage(error):
            raise
    return await database.write(lambda connection: _anew(connection, work))


def empty_indexes(connection: sqlite3.Connection) -> None:
    """Makes every index an empty one that can be opened, whatever became of it, and flags them all for a rebuild."""
    flag(connection)
    for table in TABLES:
        blank(connection, table)


def _past(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    flag(connection)
    return work(connection)


def _anew(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    empty_indexes(connection)
    # What is taken from a message goes with it, so its index must be one that can be opened too.
    mend(connection)
    return work(connection)


def _is_index_damage(error: StoreError) -> bool:
    """A broken FTS5 table aborts a statement as corrupt, as a bare `constraint failed` or as one that cannot open.

    Constraints of our own tables name the table or the kind of constraint in front of these two words.
    """
    cause = error.__cause__
    if not isinstance(cause, sqlite3.DatabaseError):
        return False
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CONSTRAINT:
        return str(cause) == "constraint failed"
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
