"""Keeps a damaged text index from costing a message: writes go past it, and it is flagged for a rebuild.

While the key `index_stale` of state_meta is there, the index triggers do nothing. Rebuilding and taking the flag away
belong to `upkeep.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from core.errors import StoreError
from core.store.database import Database
from core.store.indexes import INDEXED, INDEXES
from core.store.upkeep import flag

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
    """Makes every index an empty one that can be opened, whatever became of it, and flags them all for a rebuild.

    FTS5 refuses 'delete-all' and even DROP for an index it cannot open, so its own tables are set to what those of a
    new index hold, taken from a new index.
    """
    flag(connection)
    connection.execute("CREATE VIRTUAL TABLE temp.blank USING fts5(text)")
    for table, _, _ in INDEXED:
        for part, columns in _PARTS:
            connection.execute(f"CREATE TABLE IF NOT EXISTS main.{table}_{part} ({columns}")
            connection.execute(f"DELETE FROM main.{table}_{part}")
            connection.execute(f"INSERT INTO main.{table}_{part} SELECT * FROM temp.blank_{part}")
    connection.execute("DROP TABLE temp.blank")
    for line in INDEXES.splitlines():
        if line.startswith(_SETTINGS):
            connection.execute(line)


_PARTS = (
    ("data", "id INTEGER PRIMARY KEY, block BLOB)"),
    ("idx", "segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID"),
    ("docsize", "id INTEGER PRIMARY KEY, sz BLOB)"),
    ("config", "k PRIMARY KEY, v) WITHOUT ROWID"),
)
"""The tables behind an index with external content (https://sqlite.org/fts5.html, "FTS5 Data Structures")."""

_SETTINGS = tuple(f"INSERT INTO {table} ({table}, rank) VALUES" for table, _, _ in INDEXED)
"""How the lines begin that give an index its settings when it is made."""


def _past(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    flag(connection)
    return work(connection)


def _anew(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    empty_indexes(connection)
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
