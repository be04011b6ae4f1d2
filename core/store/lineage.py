"""Conversations of several sessions: which are listed, where one that was named goes on, and its last turns undone.

A session that grew too long, or rested long enough, goes on in a child of its lineage (`root_id`); a branch begins a
lineage of its own. What is undone is of kind ``undone``, which nobody and nothing is shown; it keeps its place, so it
can be brought back. Functions run inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from core.store import rows
from core.store.rows import MESSAGE_COLUMNS, Connection, bounded, message_of, scope_parameter, session_of, visible
from core.store.sqlite.indexing import rechunked
from core.store.sqlite.schema import in_list, list_value
from core.store.usage import disturb
from core.types import Message, Scope, Session

ASKED = "role = 'user' AND kind <> 'summary' AND (kind <> 'command' OR text = '')"
"""What a person has said, also where it is erased or undone since."""
PARTS_OF_TURN = f"""
WITH RECURSIVE parts (id, until_id) AS (
    SELECT CAST(:id AS INTEGER), 9223372036854775807
    UNION ALL
    SELECT child.id, (
        SELECT COALESCE(MIN(id), 9223372036854775807) FROM messages WHERE session_id = child.id AND {ASKED}
    ) FROM parts JOIN sessions ON sessions.id = parts.id AND sessions.end_reason = 'compression'
    JOIN sessions AS child ON child.parent_id = parts.id AND child.root_id = COALESCE(sessions.root_id, sessions.id)
    WHERE parts.until_id = 9223372036854775807
)
"""
"""Session ``:id`` and, of a turn in whose middle it was condensed, the rest, which stands in its child."""

CONTINUED = ("compression", "length", "idle", "daily")
"""For what a session ends that goes on in a child."""
HOPS = 100
LIMIT = 1_000
"""Most conversations of one list."""
_ROOT = "COALESCE({0}.root_id, {0}.id)"


def _listed(table: str) -> str:
    return f"{table}.messages > 0 AND NOT {table}.is_delegated AND {visible(f'{table}.scope_id')}"


_LATEST = f"""
{rows.SESSIONS}
WHERE {_listed("sessions")} AND (:needle IS NULL OR instr(bare(sessions.title), :needle))
    AND (:roots IS NULL OR {in_list(_ROOT.format("sessions"), "roots")})
    AND NOT EXISTS (
        SELECT 1 FROM sessions AS later WHERE {_ROOT.format("later")} = {_ROOT.format("sessions")}
            AND {_listed("later")} AND (later.last_at, later.id) > (sessions.last_at, sessions.id)
    )
ORDER BY sessions.last_at DESC, sessions.id DESC LIMIT :limit
"""
_SIZES = f"""
SELECT {_ROOT.format("sessions")}, SUM(messages) FROM sessions
WHERE {in_list(_ROOT.format("sessions"), "roots")} AND {_listed("sessions")} GROUP BY 1
"""
_TIP = f"""
WITH RECURSIVE line (id, hops) AS (
    SELECT id, 0 FROM sessions WHERE id = :id AND {visible()}
    UNION ALL
    SELECT (
        SELECT MAX(child.id) FROM sessions AS child
        WHERE child.parent_id = sessions.id AND child.id > sessions.id AND NOT child.is_delegated
            AND child.address_id = sessions.address_id AND child.scope_id = sessions.scope_id
    ), hops + 1
    FROM line JOIN sessions ON sessions.id = line.id
    WHERE hops < {HOPS} AND {in_list("sessions.end_reason", "continued")}
)
{rows.SESSIONS} WHERE sessions.id = (SELECT id FROM line WHERE id IS NOT NULL ORDER BY hops DESC LIMIT 1)
"""
PARTS = """
SELECT part.id FROM sessions JOIN sessions AS part ON COALESCE(part.root_id, part.id)
    = COALESCE(sessions.root_id, sessions.id) AND part.address_id = sessions.address_id
    AND part.scope_id = sessions.scope_id
WHERE sessions.id = :session
"""
"""The sessions of a conversation at its address: a branch shares what was said before it, but may not change it."""


def latest(
    connection: Connection,
    scopes: frozenset[Scope],
    limit: int,
    needle: str | None = None,
    roots: Collection[int] | None = None,
) -> list[Session]:
    """Conversations that have messages, latest first, at most 1,000, each as the part in which something was said last,
    with the `messages` of all; with `needle` in its title, or of these `roots`."""
    values: dict[str, object] = {"scopes": scope_parameter(scopes), "needle": needle}
    values |= {"roots": None if roots is None else list_value(roots), "limit": max(0, min(limit, LIMIT))}
    found = [session_of(row) for row in connection.execute(_LATEST, values)]
    values["roots"] = list_value(session.root_id or session.id for session in found)
    sizes = {row[0]: row[1] for row in connection.execute(_SIZES, values)}
    return [replace(session, messages=sizes[session.root_id]) for session in found]


def tip(connection: Connection, session_id: int, scopes: frozenset[Scope]) -> Session | None:
    """Where a conversation goes on: the session that continues this one, or this; None where it may not be seen.
    Follows neither branches nor delegations, at most 100 times."""
    values = {"id": bounded(session_id), "scopes": scope_parameter(scopes), "continued": list_value(CONTINUED)}
    row = connection.execute(_TIP, values).fetchone()
    return None if row is None else session_of(row)


_UNDOABLE = f"""
SELECT {MESSAGE_COLUMNS} FROM sessions AS own JOIN messages ON messages.session_id = own.id
    OR messages.session_id IN ({PARTS}) AND messages.id >= own.opens_at AND messages.id < own.closes_at
WHERE own.id = :session AND messages.origin <> 'job' AND (
    messages.kind IN ('chat', 'quote') OR messages.kind = 'command' AND messages.text = '' AND messages.role = 'user'
    OR messages.id IN (SELECT message_id FROM undone WHERE undone.origin = :origin)
) ORDER BY messages.id
"""
_HIDE = f"""
INSERT INTO undone (message_id, kind, session_id, origin, at)
SELECT id, kind, :session, :origin, :at FROM messages
WHERE {in_list("id", "ids")} AND kind IN ('chat', 'quote')
ON CONFLICT (message_id) DO UPDATE SET
    kind = excluded.kind, session_id = :session, origin = :origin, at = :at, back = NULL
"""
_MARK = f"UPDATE messages SET kind = 'undone' WHERE {in_list('id', 'ids')} AND kind IN ('chat', 'quote')"
_SHOW = f"""
UPDATE messages SET kind = (SELECT undone.kind FROM undone WHERE message_id = messages.id)
WHERE {in_list("id", "ids")} AND kind = 'undone'
"""
_DELEGATED = f"""
SELECT messages.id, messages.session_id FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE sessions.is_delegated AND messages.id BETWEEN :first AND :last
    AND sessions.parent_id IN (SELECT session_id FROM messages WHERE {in_list("id", "ids")})
ORDER BY messages.id DESC
"""
"""What was said in sessions that were made for what is hidden, or was."""
_COUNT = f"""
UPDATE sessions SET messages = (SELECT COUNT(*) FROM messages WHERE session_id = sessions.id AND kind = 'chat')
WHERE id IN (SELECT session_id FROM messages WHERE {in_list("messages.id", "ids")})
"""
_OF = f"""
SELECT {MESSAGE_COLUMNS} FROM undone JOIN messages ON messages.id = undone.message_id
WHERE messages.session_id NOT IN ({rows.DELEGATED}) AND"""
_UNDONE = f"{_OF} messages.kind = 'undone' AND undone.origin = :origin ORDER BY messages.id"
_BACK = f"{_OF} undone.back = :origin ORDER BY messages.id"
_ACT = "SELECT {0} FROM undone AS act JOIN messages AS part ON part.id = act.message_id AND act.origin = undone.origin"
_LAST_UNDONE = f"""
{_OF} messages.kind = 'undone' AND undone.origin = (
    SELECT undone.origin FROM undone JOIN messages ON messages.id = undone.message_id
    WHERE undone.session_id IN ({PARTS}) AND messages.kind = 'undone' AND undone.origin = COALESCE(:act, undone.origin)
        AND NOT EXISTS ({_ACT.format(1)} WHERE part.role = 'user' GROUP BY act.origin HAVING MAX(part.kind) <> 'undone')
    ORDER BY undone.at DESC, undone.message_id LIMIT 1
)
ORDER BY messages.id
"""
"""Not the answer to what was erased since."""
_OF_ALL = f"FROM messages WHERE session_id IN ({PARTS}) AND"
_INSTEAD = f"""
WITH answers AS (
    SELECT id, kind {_OF_ALL} role <> 'user' AND origin <> 'job'
        AND id > COALESCE((SELECT MAX(id) {_OF_ALL} {ASKED} AND id < :first), 0)
        AND id < COALESCE((SELECT MIN(id) {_OF_ALL} {ASKED} AND id > :last), 9223372036854775807)
)
SELECT id, (SELECT MIN(at) FROM undone JOIN answers ON answers.id = message_id) - 0.001 AS at FROM answers
WHERE kind IN ('chat', 'quote') AND NOT {in_list("id", "ids")}
"""
"""The other answer to the same question, and when it would have to be hidden to come back as the last of all."""
_TOUCHED = f"""
SELECT id FROM sessions WHERE ended_at IS NULL AND (
    id = :session OR parent_id IN (SELECT session_id FROM messages WHERE {in_list("messages.id", "ids")})
)
"""
"""Whose next request does not extend the last one: also of branches that share what is undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """One /undo or /retry: in which session, under the stable key of its command, and when. After a crash it is done
    again, and finds what it did. `act`: the key of the one that is to be brought back; None for the last."""

    session: Session
    origin: str
    at: datetime
    act: str | None = None

    @property
    def values(self) -> dict[str, object]:
        return {"session": self.session.id, "origin": self.origin, "at": self.at, "act": self.act}


def undoable(connection: Connection, undoing: Undoing) -> list[Message]:
    """What this command may undo, or has undone, oldest first: what the model sees word for word, up to where the
    session began or was condensed, and not what jobs have delivered; with what was erased of it since."""
    return _messages(connection, _UNDOABLE, undoing.values)


def undo(connection: Connection, undoing: Undoing, ids: Collection[int]) -> list[Message]:
    """Hides messages; returns those that this command has hidden, oldest first."""
    values = {**undoing.values, "ids": list_value(ids), "first": min(ids, default=0), "last": max(ids, default=0)}
    if not connection.execute("SELECT 1 FROM undone WHERE origin = :origin", values).fetchone():
        values["ids"] = list_value([*ids, *(row["id"] for row in connection.execute(_DELEGATED, values))])
        connection.execute(_HIDE, values)
        connection.execute(_MARK, values)
        _settle(connection, values)
    return _messages(connection, _UNDONE, values)


def bring_back(connection: Connection, undoing: Undoing) -> list[Message]:
    """Shows again what was hidden last, in the stead of the answer that was given anew, and returns it; empty where
    there is nothing."""
    done = _messages(connection, _BACK, undoing.values)
    found = [] if done else _messages(connection, _LAST_UNDONE, undoing.values)
    if not found:
        return done
    values = {**undoing.values, "ids": list_value(message.id for message in found)}
    values |= {"first": found[0].id, "last": found[-1].id}
    first = {message.session_id: message.id for message in reversed(found)}
    made = connection.execute(_DELEGATED, values).fetchall()
    values["ids"] = list_value([message.id for message in found] + [row["id"] for row in made])
    with rechunked(connection, first | {row["session_id"]: row["id"] for row in made}):
        connection.execute(_SHOW, values)
    connection.execute(f"UPDATE undone SET back = :origin WHERE {in_list('message_id', 'ids')}", values)
    _settle(connection, values)
    instead = connection.execute(_INSTEAD, values).fetchall()
    if instead and all(message.role != "user" for message in found):
        undo(connection, replace(undoing, at=rows.moment(instead[0]["at"])), [row["id"] for row in instead])
    return _messages(connection, _BACK, values)


def _messages(connection: Connection, statement: str, values: Mapping[str, object]) -> list[Message]:
    return [message_of(row) for row in connection.execute(statement, values)]


def _settle(connection: Connection, values: Mapping[str, object]) -> None:
    connection.execute(_COUNT, values)
    for row in connection.execute(_TOUCHED, values).fetchall():
        disturb(connection, row["id"], "undo")
