"""Divide messages into chunks, and keep the text indexes over messages and chunks up to date.

A chunk is a run of 8 to 16 messages of a session that is indexed as one document. So a question
finds the chunk even if its words are spread over several messages. A very long message is a chunk
of its own.

Chunks are created some time after their messages are stored. Until then, a search reads the new
messages (those after `CHUNKED_UNTIL_KEY`) directly. When a message changes, a trigger removes its
chunk from the index, and `index_pending` adds the chunk again. Each indexed term starts with the id
of its scope, so a search reads only entries of its own scopes.

Call functions that take a connection inside a write transaction. Each call does one small step, so
other writers wait only briefly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, starmap
from operator import attrgetter, itemgetter
from typing import NamedTuple

from core.errors import word_clause
from core.store.engine import IS_SHOWN, Connection, Row
from core.store.rows import get_meta, set_meta
from core.store.search.text_search import (
    CHUNKED_UNTIL_KEY,
    STALE_KEY,
    VERSION_KEY,
    is_stale,
    last_chunked_id,
)
from core.text.normalize import TERMS_VERSION

REBUILD_CURSOR_KEY = "index_cursor"
"""A key in `state_meta` for the last message id that a running rebuild has indexed."""
CHUNK_MESSAGES = 8
"""A chunk grows to 16 messages, twice this number. With the 17th message, the first 8 become a full
chunk, and the other 9 become the next chunk.

Searches with chunks find as much as searches with whole sessions, and read less.
"""
LONG_MESSAGE_CHARS = 4_096
"""A longer message is a chunk of its own. Platforms send no messages that long. A chunk of several
such messages could block all other writers while it is indexed."""
STEP_MESSAGES = 500
STEP_CHARS = 50_000
"""A step ends after this many characters, so that other writers don't wait long."""
STEP_CHUNKS = 20
REBUILD_MESSAGES = 2_000
MERGE_PAGES = 16

# --- Chunks ---

_SHOWN_MESSAGES = f"""
SELECT id, length(text) AS chars FROM messages
WHERE session_id = :session AND id BETWEEN :first AND :last AND {IS_SHOWN}
ORDER BY id
"""
# Selects all messages after the last one that was put into a chunk or skipped.
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


def index_pending(connection: Connection, count: int = STEP_MESSAGES) -> int:
    """Index up to `count` new messages and up to `STEP_CHUNKS` changed chunks.

    Returns how many messages and chunks were indexed. The result is 0 if the index is up to date.
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
    if chunk_ids:
        connection.index.index_chunks(connection, chunk_ids)
    return len(changed_chunks) + len(new_messages)


def _take_step(rows: Iterable[Row]) -> list[Row]:
    """Return the first rows whose `chars` together reach `STEP_CHARS`, or all rows."""
    step: list[Row] = []
    chars = 0
    for row in rows:
        step.append(row)
        chars += row["chars"]
        if chars >= STEP_CHARS:
            break
    return step


class _ChunkMessage(NamedTuple):
    """A message that becomes part of a chunk."""

    id: int
    chars: int

    @property
    def is_long(self) -> bool:
        """Whether the message becomes a chunk of its own."""
        return self.chars > LONG_MESSAGE_CHARS


def _append_to_chunks(
    connection: Connection, session_id: int, scope_id: int, messages: list[_ChunkMessage]
) -> list[int]:
    """Divide new messages of a session into chunks, and return the ids of the chunks to index.

    If the session's last chunk isn't full, its messages are divided again together with the new
    ones. So the chunks are the same whether messages arrive one at a time or all at once.
    """
    last = connection.execute(_LAST_CHUNK, {"session": session_id}).fetchone()
    position = 0
    if last is not None and _is_full(last, messages[0]):
        position = last["position"] + 1
    elif last is not None:
        position = last["position"]
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


def _is_full(chunk: Row, next_message: _ChunkMessage) -> bool:
    """Return whether a chunk is too full for the next message of its session."""
    return (
        chunk["message_count"] > 2 * CHUNK_MESSAGES
        or chunk["last_message_chars"] > LONG_MESSAGE_CHARS
        or next_message.is_long
    )


def _divide(messages: Sequence[_ChunkMessage]) -> Iterator[Sequence[_ChunkMessage]]:
    """Yield the messages of each chunk."""
    for is_long, group in groupby(messages, key=attrgetter("is_long")):
        remaining = list(group)
        while remaining:
            if is_long:
                size = 1
            elif len(remaining) > 2 * CHUNK_MESSAGES:
                size = CHUNK_MESSAGES
            else:
                size = len(remaining)
            yield remaining[:size]
            remaining = remaining[size:]


def _delete_chunk(connection: Connection, chunk_id: int) -> None:
    connection.index.remove_chunk(connection, chunk_id)
    connection.execute("DELETE FROM chunks WHERE id = :id", {"id": chunk_id})


@contextmanager
def rechunk_sessions(connection: Connection, first_ids: Mapping[int, int]) -> Iterator[None]:
    """Divide sessions into chunks again, after the `with` block has made messages visible.

    `first_ids` maps each session's id to the first message that becomes visible. The chunks that
    contain or follow this message are deleted and created again.
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
    """Record that the indexes must be rebuilt from the first message."""
    set_meta(connection, STALE_KEY, "1")
    _delete_meta(connection, REBUILD_CURSOR_KEY)


def rebuild_step(connection: Connection, count: int = REBUILD_MESSAGES) -> int:
    """Start a rebuild if none is running, then index its next `count` messages.

    Returns the number of indexed messages. The result is 0 when the rebuild is finished.
    """
    if get_meta(connection, REBUILD_CURSOR_KEY) is None:
        set_meta(connection, STALE_KEY, "1")
        set_meta(connection, REBUILD_CURSOR_KEY, "0")
        connection.index.begin_rebuild(connection)
        connection.execute("DELETE FROM chunks")
        _delete_meta(connection, CHUNKED_UNTIL_KEY)
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
    connection.index.index_messages(connection, cursor, last_id)
    set_meta(connection, REBUILD_CURSOR_KEY, str(last_id))
    return len(messages)


def _delete_meta(connection: Connection, key: str) -> None:
    connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": key})


def merge_step(connection: Connection, pages: int = MERGE_PAGES) -> bool:
    """Merge parts of the indexes. Returns False if there was nothing to merge."""
    return connection.index.merge(connection, pages)


def find_index_damage(connection: Connection) -> list[str]:
    """Check all text indexes, and return one sentence per problem."""
    if is_stale(connection):
        return [word_clause("damage_unfinished")]
    return connection.index.find_damage(connection)


def flag_if_damaged(connection: Connection) -> bool:
    """Flag the indexes for a rebuild if one of them is damaged. Returns whether one is."""
    is_damaged = bool(find_index_damage(connection))
    if is_damaged:
        flag_for_rebuild(connection)
    return is_damaged
