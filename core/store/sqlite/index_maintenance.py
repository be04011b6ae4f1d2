"""Keeps the text indexes in order: builds them anew after damage, merges them, checks them. One small step a call.

Functions over a connection, each called inside one write transaction of its own, so that writers never wait long.

Many messages in one transaction: the index triggers rest meanwhile, and the indexes take all of them at the end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from core.store import rows
from core.store.rows import keep_meta, meta
from core.store.sqlite import chunk_index
from core.store.sqlite.text_index import CHUNKS, CURSOR, INDEXED, INDEXES, STALE
from core.text.normalize import VERSION

REBUILD_MESSAGES = 2_000
MERGE_PAGES = 16

_VERSION_KEY = "index_version"
_FRESH = """
SELECT 1 FROM state_meta WHERE key = :key AND value = :version AND NOT EXISTS (
    SELECT 1 FROM state_meta WHERE key = :stale
)
"""
TABLES = (*(table for table, _, _ in INDEXED), CHUNKS)


def is_stale(connection: sqlite3.Connection) -> bool:
    """Whether the indexes are known not to hold what the messages say."""
    values = {"stale": STALE, "key": _VERSION_KEY, "version": str(VERSION)}
    return connection.execute(_FRESH, values).fetchone() is None


def flag(connection: sqlite3.Connection) -> None:
    """Says that the indexes must be built anew, from the first message."""
    keep_meta(connection, STALE, "1")
    connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": CURSOR})


def rebuild(connection: sqlite3.Connection, count: int = REBUILD_MESSAGES) -> int:
    """Indexes the next `count` messages of a rebuild, which it begins when none is under way; returns how many were
    there to index, 0 when the rebuild is complete. Rows written meanwhile are reached in their turn."""
    if meta(connection, CURSOR) is None:
        keep_meta(connection, STALE, "1")
        keep_meta(connection, CURSOR, "0")
        for table in TABLES:
            _empty(connection, table)
        chunk_index.clear(connection)
    cursor = int(meta(connection, CURSOR) or 0)
    last, found = connection.execute(
        "SELECT MAX(id), COUNT(*) FROM (SELECT id FROM messages WHERE id > :cursor ORDER BY id LIMIT :count)",
        {"cursor": cursor, "count": count},
    ).fetchone()
    if not found:
        keep_meta(connection, _VERSION_KEY, str(VERSION))
        connection.execute("DELETE FROM state_meta WHERE key IN (:stale, :cursor)", {"stale": STALE, "cursor": CURSOR})
        return 0
    for table, view, columns in INDEXED:
        connection.execute(
            f"INSERT INTO {table} (rowid, {columns}) SELECT id, {columns} FROM {view} "
            "WHERE id > :cursor AND id <= :last ORDER BY id",
            {"cursor": cursor, "last": last},
        )
    keep_meta(connection, CURSOR, str(last))
    return int(found)


def blank(connection: sqlite3.Connection, table: str) -> None:
    """Makes an index an empty one that can be opened, whatever became of it: FTS5 refuses 'delete-all' and even DROP
    for one that it cannot open, so the tables behind it are set to what those of a new index hold."""
    connection.execute("CREATE VIRTUAL TABLE temp.blank USING fts5(text)")
    for part, columns in _PARTS:
        connection.execute(f"CREATE TABLE IF NOT EXISTS main.{table}_{part} ({columns}")
        connection.execute(f"DELETE FROM main.{table}_{part}")
        connection.execute(f"INSERT INTO main.{table}_{part} SELECT * FROM temp.blank_{part}")
    connection.execute("DROP TABLE temp.blank")
    for line in INDEXES.splitlines():
        if line.startswith(f"INSERT INTO {table} ({table}, rank) VALUES"):
            connection.execute(line)


_PARTS = (
    ("data", "id INTEGER PRIMARY KEY, block BLOB)"),
    ("idx", "segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID"),
    ("docsize", "id INTEGER PRIMARY KEY, sz BLOB)"),
    ("config", "k PRIMARY KEY, v) WITHOUT ROWID"),
)
"""The tables behind an index with external content (https://sqlite.org/fts5.html, "FTS5 Data Structures")."""


def _empty(connection: sqlite3.Connection, table: str) -> None:
    try:
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    except sqlite3.DatabaseError:
        blank(connection, table)


def merge(connection: sqlite3.Connection, pages: int = MERGE_PAGES) -> bool:
    """One small step towards fewer segments in every index; False when there was nothing to merge."""
    has_worked = False
    for table in TABLES:
        before = connection.total_changes
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)", {"pages": pages})
        has_worked |= connection.total_changes - before >= 2
    return has_worked


def wrong(connection: sqlite3.Connection) -> list[str]:
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


_CHUNKS_OF = """
SELECT chunks.id FROM json_each(:ids) CROSS JOIN messages ON messages.id = json_each.value
CROSS JOIN chunks ON chunks.session_id = messages.session_id AND messages.id BETWEEN chunks.first_id AND chunks.last_id
WHERE chunks.is_indexed = 1
"""


@contextmanager
def indexed_at_once(connection: sqlite3.Connection) -> Iterator[None]:
    """Inside a write transaction: messages that are inserted in the block are indexed when it ends. Only inserts belong
    in it. While the indexes wait to be rebuilt nothing is indexed; the rebuild comes to these messages in its turn."""
    last = connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0]
    with _resting(connection) as rests:
        yield
        if rests:
            _index(connection, "id > :last", {"last": last})


@contextmanager
def reindexed_at_once(connection: sqlite3.Connection, ids: Sequence[int]) -> Iterator[None]:
    """The same for a block that deletes messages and inserts others with the same ids."""
    these = {"ids": rows.dump(ids)}
    with _resting(connection) as rests:
        if rests:
            _unindex(connection, these)
        yield
        if rests:
            _index(connection, "id IN (SELECT value FROM json_each(:ids))", these)


@contextmanager
def _resting(connection: sqlite3.Connection) -> Iterator[bool]:
    """Whether the triggers rest for this block only. Nobody else sees the flag: it goes before the transaction ends."""
    if meta(connection, STALE) is not None:
        yield False
        return
    keep_meta(connection, STALE, "1")
    yield True
    connection.execute("DELETE FROM state_meta WHERE key = :stale", {"stale": STALE})


def _index(connection: sqlite3.Connection, condition: str, parameters: Mapping[str, object]) -> None:
    for table, view, columns in INDEXED:
        connection.execute(
            f"INSERT INTO {table} (rowid, {columns}) SELECT id, {columns} FROM {view} WHERE {condition} ORDER BY id",
            parameters,
        )


def _unindex(connection: sqlite3.Connection, these: Mapping[str, object]) -> None:
    """What the triggers do before a message goes."""
    for table, view, columns in INDEXED:
        connection.execute(
            f"INSERT INTO {table} ({table}, rowid, {columns}) SELECT 'delete', id, {columns} FROM {view} "
            "WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id",
            these,
        )
    connection.execute(
        "INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts "
        f"WHERE id IN ({_CHUNKS_OF})",
        these,
    )
    connection.execute(f"UPDATE chunks SET is_indexed = 0 WHERE id IN ({_CHUNKS_OF})", these)
