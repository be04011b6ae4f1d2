"""Rebuilds, merges and checks the text indexes, a small step a call; bulk inserts; writes past a damaged index.

Functions over a connection run inside one write transaction of their caller, so that writers never wait long.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from core.errors import StoreError
from core.store.engine import Connection
from core.store.rows import meta, set_meta
from core.store.sqlite import chunk_index
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import mend
from core.store.sqlite.index_schema import CURSOR, STALE, TABLES, blank, merge_table
from core.store.sqlite.text_index import VERSION_KEY, is_stale
from core.text.normalize import VERSION
from core.types import ErasureEpoch

T = TypeVar("T")

REBUILD_MESSAGES = 2_000
MERGE_PAGES = 16


def flag(connection: Connection) -> None:
    """Says that the indexes must be built anew, from the first message."""
    set_meta(connection, STALE, "1")
    connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": CURSOR})


def rebuild(connection: Connection, count: int = REBUILD_MESSAGES) -> int:
    """Indexes the next `count` messages, beginning a rebuild when none is under way; returns how many, 0 at the end."""
    if meta(connection, CURSOR) is None:
        set_meta(connection, STALE, "1")
        set_meta(connection, CURSOR, "0")
        for table in TABLES:
            _empty(connection, table)
        chunk_index.clear(connection)
    cursor = int(meta(connection, CURSOR) or 0)
    last, found = connection.execute(
        "SELECT MAX(id), COUNT(*) FROM (SELECT id FROM messages WHERE id > :cursor ORDER BY id LIMIT :count)",
        {"cursor": cursor, "count": count},
    ).fetchone()
    if not found:
        set_meta(connection, VERSION_KEY, str(VERSION))
        connection.execute("DELETE FROM state_meta WHERE key IN (:stale, :cursor)", {"stale": STALE, "cursor": CURSOR})
        return 0
    _index(connection, "id > :cursor AND id <= :last", {"cursor": cursor, "last": last})
    set_meta(connection, CURSOR, str(last))
    return int(found)


def _empty(connection: Connection, table: str) -> None:
    try:
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    except sqlite3.DatabaseError:
        blank(connection, table)


def merge(connection: Connection, pages: int = MERGE_PAGES) -> bool:
    """One small step towards fewer segments in every index; False when there was nothing to merge."""
    return sum(merge_table(connection, table, pages) for table in TABLES) > 0


def wrong(connection: Connection) -> list[str]:
    """Sentences about each index that is damaged or does not agree with the messages; empty when all is well."""
    if is_stale(connection):
        return ["The search indexes are flagged for a rebuild, which has not been finished yet."]
    sentences = []
    for table in TABLES:
        try:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            sentences.append(f"The search index {table} does not agree with the messages ({error}).")
    return sentences


@contextmanager
def indexed_at_once(connection: Connection) -> Iterator[None]:
    """In a write transaction: messages inserted in the block are indexed when it ends, or by a pending rebuild."""
    if meta(connection, STALE) is not None:
        yield
        return
    last = connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0]
    # The triggers rest while this flag is set; nobody else sees it.
    set_meta(connection, STALE, "1")
    yield
    connection.execute("DELETE FROM state_meta WHERE key = :stale", {"stale": STALE})
    _index(connection, "id > :last", {"last": last})


def _index(connection: Connection, condition: str, parameters: Mapping[str, object]) -> None:
    connection.execute(
        "INSERT INTO messages_fts (rowid, text, tools, scope) "
        f"SELECT id, text, tools, scope FROM messages_words WHERE {condition} ORDER BY id",
        parameters,
    )


async def write_text(database: Database, work: Callable[[Connection], T], epoch: ErasureEpoch | None = None) -> T:
    """`Database.write` for work that changes indexed text.

    On index damage it is tried again with the indexes emptied and flagged for a rebuild; if that fails, all is rolled
    back and the error raised.
    """
    try:
        return await database.write(work, epoch)
    except StoreError as error:
        if not _is_index_damage(error):
            raise
    return await database.write(lambda connection: _anew(connection, work), epoch)


def empty_indexes(connection: Connection) -> None:
    """Makes every index an empty one that can be opened, whatever became of it, and flags them all for a rebuild."""
    flag(connection)
    for table in TABLES:
        blank(connection, table)


def _anew(connection: Connection, work: Callable[[Connection], T]) -> T:
    empty_indexes(connection)
    # What is taken from a message goes with it, so its index must be one that can be opened too.
    mend(connection)
    return work(connection)


def _is_index_damage(error: StoreError) -> bool:
    """A broken FTS5 table is corrupt, cannot be opened, or gives a bare `constraint failed`; our own constraints are
    named."""
    cause = error.__cause__
    if not isinstance(cause, sqlite3.DatabaseError):
        return False
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CONSTRAINT:
        return str(cause) == "constraint failed"
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
