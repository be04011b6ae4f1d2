"""Fills, rebuilds, merges and checks the text indexes over messages and chunks.

A chunk is a run of 8 to 16 messages of a session that is indexed as one document. A question finds
a chunk even if its words are spread over several messages. A very long message is a chunk of its
own. Chunks are created some time after their messages are stored. Search reads the messages without
a chunk (those after `CHUNKED_UNTIL_KEY`) directly. When a message changes, a trigger removes its
chunk from the index, and `index_pending` indexes the chunk again. Each term of a chunk is prefixed
with the id of its scope, so that a search reads only entries of its own scopes.

The caller of a function that takes a connection must have begun a write transaction. Each call does
one small step, so that other writers wait only briefly.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, starmap
from operator import attrgetter, itemgetter
from typing import NamedTuple

from core.errors import StoreError
from core.store.engine import IS_SHOWN, Connection, Row, in_list
from core.store.rows import get_meta, set_meta
from core.store.sqlite.fact_index import (
    find_fact_index_damage,
    rebuild_fact_index,
    rebuild_file_index,
)
from core.store.sqlite.schema import (
    CHUNKED_UNTIL_KEY,
    INDEX_TABLES,
    REBUILD_CURSOR_KEY,
    STALE_KEY,
    VERSION_KEY,
    merge_table,
    reset_index,
)
from core.store.visibility import encode_list
from core.text.normalize import TERMS_VERSION

CHUNK_MESSAGES = 8
"""A chunk grows to 16 messages, twice this number. With the 17th message, the first 8 become a full
chunk, and the other 9 become the next chunk.

Chunks find as much as whole sessions would, and a search reads less.
"""
LONG_MESSAGE_CHARS = 4_096
"""A message that is longer than this is a chunk of its own. Platforms send no messages that long.

Otherwise a chunk of long messages could be so large that indexing it blocks all other writers.
"""
STEP_MESSAGES = 500
STEP_CHARS = 50_000
"""A step ends after this many characters, so that other writers don't wait long."""
STEP_CHUNKS = 20
LAG_MESSAGES = 32
"""Up to this many new messages aren't indexed yet, because reading them directly is cheaper."""
REBUILD_MESSAGES = 2_000
MERGE_PAGES = 16

# --- Chunks ---

_REMOVE_FROM_INDEX = """
INSERT INTO chunks_fts (chunks_fts, rowid, terms)
SELECT 'delete', id, terms FROM chunk_texts WHERE id = :id
"""
_SHOWN_MESSAGES = f"""
SELECT id, length(text) AS chars FROM messages
WHERE session_id = :session AND id BETWEEN :first AND :last AND {IS_SHOWN}
ORDER BY id
"""
# All messages after the last one that was considered for a chunk, also those that aren't shown.
_NEW_MESSAGES = f"""
SELECT messages.id, messages.session_id, sessions.scope_id, {IS_SHOWN} AS is_shown,
    length(messages.text) AS chars
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.id > :until ORDER BY messages.id LIMIT :count
"""
_CHANGED_CHUNKS = """
SELECT id, (
    SELECT TOTAL(length(text)) FROM messages
    WHERE session_id = chunks.session_id AND messages.id BETWEEN first_id AND last_id
) AS chars
FROM chunks WHERE is_indexed = 0 LIMIT :limit
"""
_LAST_CHUNK = """
SELECT chunks.*, COALESCE(length(messages.text), 0) AS last_message_chars
FROM chunks LEFT JOIN messages ON messages.id = chunks.last_id
WHERE chunks.session_id = :session ORDER BY position DESC LIMIT 1
"""
_CHUNKS_FROM = "SELECT id, first_id FROM chunks WHERE session_id = :session AND last_id >= :first"
_INSERT_CHUNK = """
INSERT INTO chunks (session_id, scope_id, position, first_id, last_id, message_count)
VALUES (:session, :scope, :position, :first, :last, :message_count) RETURNING id
"""
_IS_FRESH = """
SELECT 1 FROM state_meta WHERE key = :key AND value = :version AND NOT EXISTS (
    SELECT 1 FROM state_meta WHERE key = :stale
)
"""


def is_stale(connection: Connection) -> bool:
    """Whether the indexes were built by another version, or are flagged for a rebuild."""
    values = {"stale": STALE_KEY, "key": VERSION_KEY, "version": str(TERMS_VERSION)}
    return connection.execute(_IS_FRESH, values).fetchone() is None


def last_chunked_id(connection: Connection) -> int:
    """Return the id of the last message that was considered for a chunk, or 0."""
    return int(get_meta(connection, CHUNKED_UNTIL_KEY) or 0)


def index_pending(connection: Connection, count: int = STEP_MESSAGES) -> int:
    """Index up to `count` new messages and up to `STEP_CHUNKS` changed chunks.

    Returns the number of these messages and chunks, which is 0 if the index is up to date.
    """
    changed_chunks = _take_step(connection.execute(_CHANGED_CHUNKS, {"limit": STEP_CHUNKS}))
    chunk_ids = [row["id"] for row in changed_chunks]
    new_messages = _take_step(
        connection.execute(_NEW_MESSAGES, {"until": last_chunked_id(connection), "count": count})
    )
    if new_messages:
        shown_messages = [row for row in new_messages if row["is_shown"]]
        shown_messages.sort(key=itemgetter("session_id", "scope_id", "id"))
        for (session_id, scope_id), group in groupby(
            shown_messages, key=itemgetter("session_id", "scope_id")
        ):
            messages = [_ChunkMessage(row["id"], row["chars"]) for row in group]
            chunk_ids += _append_to_chunks(connection, session_id, scope_id, messages)
        set_meta(connection, CHUNKED_UNTIL_KEY, str(new_messages[-1]["id"]))
    _index_chunks(connection, chunk_ids)
    return len(changed_chunks) + len(new_messages)


def _take_step(rows: Iterable[Row]) -> list[Row]:
    """Return the first rows, until their `chars` add up to at least `STEP_CHARS`."""
    step: list[Row] = []
    chars = 0
    for row in rows:
        step.append(row)
        chars += row["chars"]
        if chars >= STEP_CHARS:
            break
    return step


def _index_chunks(connection: Connection, chunk_ids: list[int]) -> None:
    """Add chunks to the index with one statement, because FTS5 writes a segment per statement."""
    values = {"ids": encode_list(chunk_ids)}
    condition = in_list("id", "ids")
    connection.execute(f"UPDATE chunks SET is_indexed = 1 WHERE {condition}", values)
    connection.execute(
        "INSERT INTO chunks_fts (rowid, terms) "
        f"SELECT id, terms FROM chunk_texts WHERE {condition}",
        values,
    )


def is_behind(connection: Connection, lag: int) -> bool:
    """Whether more than `lag` new messages, or any changed chunk, must still be indexed."""
    has_changed_chunk = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM chunks WHERE is_indexed = 0)"
    ).fetchone()[0]
    if has_changed_chunk:
        return True
    return latest_message_id(connection) - last_chunked_id(connection) > lag


def latest_message_id(connection: Connection) -> int:
    """Return the highest message id, or 0 if there are no messages."""
    return int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0])


class _ChunkMessage(NamedTuple):
    """A message that becomes part of a chunk."""

    id: int
    chars: int

    @property
    def is_long(self) -> bool:
        """Whether the message is a chunk of its own."""
        return self.chars > LONG_MESSAGE_CHARS


def _append_to_chunks(
    connection: Connection, session_id: int, scope_id: int, messages: list[_ChunkMessage]
) -> list[int]:
    """Divide new messages of a session into chunks. Returns the ids of the chunks to index.

    If the last chunk of the session isn't full, its messages are divided again together with the
    new ones. The chunks are therefore the same whether messages are added one at a time or all at
    once.
    """
    last = connection.execute(_LAST_CHUNK, {"session": session_id}).fetchone()
    position = 0
    if last is not None:
        is_full = (
            last["message_count"] > 2 * CHUNK_MESSAGES
            or last["last_message_chars"] > LONG_MESSAGE_CHARS
            or messages[0].is_long
        )
        position = last["position"] + 1 if is_full else last["position"]
        if not is_full:
            values = {"session": session_id, "first": last["first_id"], "last": last["last_id"]}
            rows = connection.execute(_SHOWN_MESSAGES, values)
            messages = [*starmap(_ChunkMessage, rows), *messages]
            _delete_chunk(connection, last["id"])
    chunk_ids: list[int] = []
    for part in _divide(messages):
        values = {
            "session": session_id,
            "scope": scope_id,
            "position": position,
            "first": part[0].id,
            "last": part[-1].id,
            "message_count": len(part),
        }
        (row,) = connection.execute(_INSERT_CHUNK, values).fetchall()
        chunk_ids.append(row["id"])
        position += 1
    return chunk_ids


def _divide(messages: Sequence[_ChunkMessage]) -> Iterator[Sequence[_ChunkMessage]]:
    """Yield the messages of each chunk."""
    for is_long, group in groupby(messages, key=attrgetter("is_long")):
        rest = list(group)
        while rest:
            if is_long:
                size = 1
            elif len(rest) > 2 * CHUNK_MESSAGES:
                size = CHUNK_MESSAGES
            else:
                size = len(rest)
            yield rest[:size]
            rest = rest[size:]


def _delete_chunk(connection: Connection, chunk_id: int) -> None:
    connection.execute(_REMOVE_FROM_INDEX, {"id": chunk_id})
    connection.execute("DELETE FROM chunks WHERE id = :id", {"id": chunk_id})


@contextmanager
def rechunk_sessions(connection: Connection, first_ids: Mapping[int, int]) -> Iterator[None]:
    """Divide sessions into chunks again after the `with` block has made hidden messages visible.

    `first_ids` maps the id of each session to the first message that becomes visible. The chunks
    that end at this message or later are deleted and created again.
    """
    if is_stale(connection):
        yield
        return
    last_id = last_chunked_id(connection)
    starts: dict[int, int] = {}
    for session_id, first_id in first_ids.items():
        starts[session_id] = first_id
        values = {"session": session_id, "first": first_id}
        for chunk in connection.execute(_CHUNKS_FROM, values).fetchall():
            _delete_chunk(connection, chunk["id"])
            starts[session_id] = min(starts[session_id], chunk["first_id"])
    yield
    for session_id, first_id in starts.items():
        scope_id = connection.execute(
            "SELECT scope_id FROM sessions WHERE id = :session", {"session": session_id}
        ).fetchone()["scope_id"]
        values = {"session": session_id, "first": first_id, "last": last_id}
        messages = [*starmap(_ChunkMessage, connection.execute(_SHOWN_MESSAGES, values))]
        if messages:
            _append_to_chunks(connection, session_id, scope_id, messages)


# --- Rebuilding, merging and checking ---


def flag_for_rebuild(connection: Connection) -> None:
    """Record that the indexes must be rebuilt from the first message on."""
    set_meta(connection, STALE_KEY, "1")
    _delete_meta(connection, REBUILD_CURSOR_KEY)


def rebuild_step(connection: Connection, count: int = REBUILD_MESSAGES) -> int:
    """Start a rebuild if none is running, then index its next `count` messages.

    Returns the number of indexed messages, which is 0 when the rebuild is finished.
    """
    if get_meta(connection, REBUILD_CURSOR_KEY) is None:
        _begin_rebuild(connection)
    cursor = int(get_meta(connection, REBUILD_CURSOR_KEY) or 0)
    messages = _take_step(
        connection.execute(
            "SELECT id, length(text) AS chars FROM messages "
            "WHERE id > :cursor ORDER BY id LIMIT :count",
            {"cursor": cursor, "count": count},
        )
    )
    if not messages:
        set_meta(connection, VERSION_KEY, str(TERMS_VERSION))
        _delete_meta(connection, STALE_KEY)
        _delete_meta(connection, REBUILD_CURSOR_KEY)
        return 0
    last_id = messages[-1]["id"]
    _index_messages(connection, "id > :cursor AND id <= :last", {"cursor": cursor, "last": last_id})
    set_meta(connection, REBUILD_CURSOR_KEY, str(last_id))
    return len(messages)


def _begin_rebuild(connection: Connection) -> None:
    """Empty the indexes over messages and chunks, and rebuild those over facts and files."""
    set_meta(connection, STALE_KEY, "1")
    set_meta(connection, REBUILD_CURSOR_KEY, "0")
    for table in INDEX_TABLES:
        try:
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
        except sqlite3.DatabaseError:
            reset_index(connection, table)
    connection.execute("DELETE FROM chunks")
    _delete_meta(connection, CHUNKED_UNTIL_KEY)
    rebuild_fact_index(connection)
    rebuild_file_index(connection)


def _delete_meta(connection: Connection, key: str) -> None:
    connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": key})


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
    """Collect the messages that the `with` block inserts, and index all of them when it ends.

    If a rebuild is pending, nothing is indexed here, because the rebuild indexes all messages.
    """
    if get_meta(connection, STALE_KEY) is not None:
        yield
        return
    last_id = latest_message_id(connection)
    # While this key is set, the triggers do nothing. Other transactions never see it.
    set_meta(connection, STALE_KEY, "1")
    yield
    _delete_meta(connection, STALE_KEY)
    _index_messages(connection, "id > :last", {"last": last_id})


def merge_step(connection: Connection, pages: int = MERGE_PAGES) -> bool:
    """Merge some segments of the indexes over messages and chunks.

    Returns False if there was nothing to merge.
    """
    # A list, because `any` over a generator would skip the second index once the first has work.
    results = [merge_table(connection, table, pages) for table in INDEX_TABLES]
    return any(results)


def has_files(connection: Connection) -> bool:
    """Return whether any file is kept, so that other searches needn't look for files."""
    return connection.execute("SELECT 1 FROM message_files LIMIT 1").fetchone() is not None


def find_index_damage(connection: Connection) -> list[str]:
    """Check all text indexes. Returns a sentence about each problem."""
    if is_stale(connection):
        return ["The search indexes are flagged for a rebuild, which has not been finished yet."]
    sentences = find_fact_index_damage(connection)
    for table in INDEX_TABLES:
        try:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            sentences.append(
                f"The search index {table} does not agree with the messages ({error})."
            )
    return sentences


def flag_if_damaged(connection: Connection) -> bool:
    """Flag the indexes for a rebuild if any index is damaged. Returns whether one is damaged."""
    is_damaged = bool(find_index_damage(connection))
    if is_damaged:
        flag_for_rebuild(connection)
    return is_damaged


# --- Writing in spite of a damaged index ---


def reset_indexes(connection: Connection) -> None:
    """Empty the indexes over messages and chunks, damaged or not, and flag a rebuild."""
    flag_for_rebuild(connection)
    for table in INDEX_TABLES:
        reset_index(connection, table)


def is_index_damage(error: StoreError) -> bool:
    """Whether an error comes from a damaged FTS5 table.

    A damaged table makes SQLite report corruption, a general error, or "constraint failed" without
    the name of a constraint. For our own tables, the message names the constraint.
    """
    cause = error.__cause__
    if not isinstance(cause, sqlite3.DatabaseError):
        return False
    # The lowest byte is the primary result code.
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CONSTRAINT:
        return str(cause) == "constraint failed"
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
