"""Keeps the chunk index: stretches of 8 to 16 messages as documents, so that a question finds the session.

Behind the writers: what comes after `chunked_until` is read at search; a changed chunk leaves the index (by trigger)
until `advance` puts it back. Terms carry their scope's number, so that an owner of little searches little.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from core.store.engine import Connection
from core.store.rows import meta, set_meta
from core.store.sqlite.dialect import in_list, list_value
from core.store.sqlite.index_schema import SHOWN

CHUNK_MESSAGES = 8
"""A chunk grows to twice this, then its first half is sealed. As good as whole sessions, and less to read."""
STEP_MESSAGES = 500
LAG_MESSAGES = 32
"""New messages are taken in when there are so many; fewer are cheaper to read than to index."""
UNTIL = "chunked_until"
_UNINDEX = (
    "INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id = :id"
)
_MEMBERS = f"""
    SELECT id FROM messages WHERE session_id = :session_id AND id BETWEEN :first_id AND :last_id AND {SHOWN} ORDER BY id
"""
_ADD = """
    INSERT INTO chunks (session_id, scope_id, place, first_id, last_id, messages)
    VALUES (:session, :scope, :place, :first, :last, :messages) RETURNING id
"""


def advance(connection: Connection, count: int = STEP_MESSAGES) -> int:
    """Takes in `count` more messages and what waits to be indexed again; returns how many, 0 when all is done."""
    waiting = [row[0] for row in connection.execute("SELECT id FROM chunks WHERE is_indexed = 0 LIMIT 20")]
    changed = list(waiting)
    rows = connection.execute(
        f"""
        SELECT messages.id, messages.session_id, sessions.scope_id, {SHOWN} AS is_shown
        FROM messages JOIN sessions ON sessions.id = messages.session_id
        WHERE messages.id > :until ORDER BY messages.id LIMIT :count
        """,
        {"until": until(connection), "count": count},
    ).fetchall()
    if rows:
        shown = sorted((row["session_id"], row["scope_id"], row["id"]) for row in rows if row["is_shown"])
        for (session_id, scope_id), group in groupby(shown, key=lambda one: one[:2]):
            changed += _extend(connection, session_id, scope_id, [message_id for _, _, message_id in group])
        set_meta(connection, UNTIL, str(rows[-1]["id"]))
    _index(connection, changed)
    return len(waiting) + len(rows)


def is_behind(connection: Connection, lag: int) -> bool:
    """Whether more than `lag` messages, or any changed chunk, wait to be taken in."""
    waiting = connection.execute("SELECT EXISTS (SELECT 1 FROM chunks WHERE is_indexed = 0)").fetchone()[0]
    return bool(waiting) or latest(connection) - until(connection) > lag


def latest(connection: Connection) -> int:
    return int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0])


def until(connection: Connection) -> int:
    return int(meta(connection, UNTIL) or 0)


def clear(connection: Connection) -> None:
    """Begins anew, over an index that is empty."""
    connection.execute("DELETE FROM chunks")
    connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": UNTIL})


def _extend(connection: Connection, session_id: int, scope_id: int, message_ids: list[int]) -> list[int]:
    """Returns the chunks to index; whether messages come one by one or at once, the chunks are the same."""
    last = connection.execute(
        "SELECT * FROM chunks WHERE session_id = :session ORDER BY place DESC LIMIT 1", {"session": session_id}
    ).fetchone()
    place = 0
    if last is not None:
        place = last["place"] + 1
        if last["messages"] <= 2 * CHUNK_MESSAGES:
            place = last["place"]
            message_ids = [row[0] for row in connection.execute(_MEMBERS, dict(last))] + message_ids
            connection.execute(_UNINDEX, {"id": last["id"]})
            connection.execute("DELETE FROM chunks WHERE id = :id", {"id": last["id"]})
    made: list[int] = []
    while message_ids:
        size = len(message_ids) if len(message_ids) <= 2 * CHUNK_MESSAGES else CHUNK_MESSAGES
        part, message_ids = message_ids[:size], message_ids[size:]
        row = {"session": session_id, "scope": scope_id, "place": place}
        row |= {"first": part[0], "last": part[-1], "messages": len(part)}
        made += [added[0] for added in connection.execute(_ADD, row)]
        place += 1
    return made


def _index(connection: Connection, ids: Sequence[int]) -> None:
    """All in one statement: with one for each, FTS5 would write a segment for each."""
    these, listed = {"ids": list_value(ids)}, in_list("id", "ids")
    connection.execute(f"UPDATE chunks SET is_indexed = 1 WHERE {listed}", these)
    connection.execute(f"INSERT INTO chunks_fts (rowid, terms) SELECT id, terms FROM chunk_texts WHERE {listed}", these)
