"""Many messages in one transaction: the index triggers rest meanwhile, and the indexes take all of them at the end.

FTS5 writes out what it has gathered before every statement that may fail halfway, which each insert by a trigger is: a
segment a message, merged 64 at a time. At once the same messages cost less than half.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from core.store import codec
from core.store.rows import keep_meta, meta
from core.store.sqlite.text_index import INDEXED, STALE

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
    these = {"ids": codec.dump(ids)}
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
