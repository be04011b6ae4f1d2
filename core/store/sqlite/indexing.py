"""Fill, rebuild, merge and check the FTS5 indexes over messages and chunks.

Call functions that take a connection inside a write transaction. Each call does one small step, so
other writers wait only briefly.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from core.errors import StoreError, word_clause
from core.store.engine import Connection, in_list
from core.store.rows import get_meta, set_meta
from core.store.search.chunks import flag_for_rebuild
from core.store.search.text_search import STALE_KEY, latest_message_id
from core.store.sqlite.fact_index import (
    find_fact_index_damage,
    rebuild_fact_index,
    rebuild_file_index,
)
from core.store.sqlite.schema import INDEX_TABLES, merge_table, reset_index
from core.store.visibility import encode_list

_REMOVE_FROM_INDEX = """
INSERT INTO chunks_fts (chunks_fts, rowid, terms)
SELECT 'delete', id, terms FROM chunk_texts WHERE id = :id
"""


def index_chunks(connection: Connection, chunk_ids: Sequence[int]) -> None:
    """Add chunks to the index with one statement, because FTS5 writes one segment per statement."""
    values = {"ids": encode_list(chunk_ids)}
    condition = in_list("id", "ids")
    connection.execute(f"UPDATE chunks SET is_indexed = 1 WHERE {condition}", values)
    connection.execute(
        "INSERT INTO chunks_fts (rowid, terms) "
        f"SELECT id, terms FROM chunk_texts WHERE {condition}",
        values,
    )


def remove_chunk(connection: Connection, chunk_id: int) -> None:
    """Remove a chunk from the index."""
    connection.execute(_REMOVE_FROM_INDEX, {"id": chunk_id})


def index_messages(connection: Connection, after: int, last: int) -> None:
    """Add the chat messages with ids greater than `after` and up to `last` to the index."""
    _index_messages(connection, "id > :after AND id <= :last", {"after": after, "last": last})


def _index_messages(
    connection: Connection, condition: str, parameters: Mapping[str, object]
) -> None:
    """Add the messages that meet an SQL condition to the index over messages."""
    connection.execute(
        "INSERT INTO messages_fts (rowid, text, tools, scope) "
        f"SELECT id, text, tools, scope FROM messages_words WHERE {condition} ORDER BY id",
        parameters,
    )


@contextmanager
def defer_indexing(connection: Connection) -> Iterator[None]:
    """Index the messages that the `with` block inserts, all at once when the block ends.

    If a rebuild is pending, do nothing, because the rebuild indexes all messages.
    """
    if get_meta(connection, STALE_KEY) is not None:
        yield
        return
    last_id = latest_message_id(connection)
    # While this key is set, the triggers do nothing. Other transactions never see it.
    set_meta(connection, STALE_KEY, "1")
    yield
    connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": STALE_KEY})
    _index_messages(connection, "id > :last", {"last": last_id})


def begin_rebuild(connection: Connection) -> None:
    """Empty the indexes over messages and chunks, and rebuild those over facts and files."""
    for table in INDEX_TABLES:
        try:
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
        except sqlite3.DatabaseError:
            reset_index(connection, table)
    rebuild_fact_index(connection)
    rebuild_file_index(connection)


def merge_indexes(connection: Connection, pages: int) -> bool:
    """Merge some segments of the indexes over messages and chunks.

    Returns False if there was nothing to merge.
    """
    # A list, because `any` over a generator would skip the second index once the first has work.
    results = [merge_table(connection, table, pages) for table in INDEX_TABLES]
    return any(results)


def find_damage(connection: Connection) -> list[str]:
    """Check all text indexes, and return one sentence per problem."""
    sentences = find_fact_index_damage(connection)
    for table in INDEX_TABLES:
        try:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            sentences.append(word_clause("damage_index", table=table, reason=str(error)))
    return sentences


# --- Writing in spite of a damaged index ---


def reset_indexes(connection: Connection) -> None:
    """Empty the indexes over messages and chunks, even damaged ones, and flag a rebuild."""
    flag_for_rebuild(connection)
    for table in INDEX_TABLES:
        reset_index(connection, table)


def is_index_damage(error: StoreError) -> bool:
    """Return whether an error was caused by a damaged FTS5 table.

    For a damaged table, SQLite reports corruption, a general error, or "constraint failed" without
    the name of a constraint. For our own tables, the error names the constraint.
    """
    cause = error.__cause__
    if not isinstance(cause, sqlite3.DatabaseError):
        return False
    # The lowest byte is the primary result code.
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CONSTRAINT:
        return str(cause) == "constraint failed"
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
