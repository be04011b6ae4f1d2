"""List and continue conversations of several sessions, and undo their messages.

A session that is too long, or that was idle for long enough, continues in a child session of the
same lineage (`root_id`). A branch begins its own lineage. Undone messages get the kind ``undone``,
which is never shown. They keep their position, so redo can show them again.

All functions run inside their caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from core.store import rows
from core.store.engine import Connection, in_list
from core.store.rows import MESSAGE_COLUMNS, int64_or_zero, read_message, read_session
from core.store.search.chunks import rechunk_sessions
from core.store.usage_limits import record_prefix_break
from core.store.visibility import encode_list, scope_parameter, visible
from core.types import Message, Scope, Session

IS_PERSONS_MESSAGE = "role = 'user' AND kind <> 'summary' AND (kind <> 'command' OR text = '')"
"""The SQL condition that a person wrote a message, even if it was erased or undone later."""
WITH_TURN_PARTS = f"""
WITH RECURSIVE parts (id, until_id) AS (
    SELECT CAST(:id AS BIGINT), CAST(9223372036854775807 AS BIGINT)
    UNION ALL
    SELECT child.id, (
        SELECT COALESCE(MIN(id), 9223372036854775807) FROM messages
        WHERE session_id = child.id AND {IS_PERSONS_MESSAGE}
    )
    FROM parts JOIN sessions ON sessions.id = parts.id AND sessions.end_reason = 'compression'
    JOIN sessions AS child ON child.parent_id = parts.id
        AND child.root_id = COALESCE(sessions.root_id, sessions.id)
    WHERE parts.until_id = 9223372036854775807
)
"""
"""Selects session ``:id``, and the child sessions that continue its last turn after a compression.

In a child session, the turn ends before the message `until_id`, the first message of a person in
that session. If it has no such message, the turn may continue in the next child session.
"""

CONTINUED_REASONS = ("compression", "length", "idle", "daily", "tools")
"""End reasons of sessions that continue in a child."""
MAX_HOPS = 100
"""The maximum number of children that `find_tip` follows."""
MAX_LISTED = 1_000
"""The maximum number of conversations in one list."""
_ROOT = "COALESCE({0}.root_id, {0}.id)"


def _is_listed(table: str) -> str:
    """Return the SQL condition that a session appears in the list of conversations."""
    return (
        f"{table}.message_count > 0 AND NOT {table}.is_delegated AND {visible(f'{table}.scope_id')}"
    )


_IS_BEFORE = "(sessions.last_at, sessions.id) < (:before_at, :before_id)"
# The condition that a session contains the latest message of its lineage.
_IS_LATEST = f"""
NOT EXISTS (
    SELECT 1 FROM sessions AS later
    WHERE {_ROOT.format("later")} = {_ROOT.format("sessions")} AND {_is_listed("later")}
        AND (later.last_at, later.id) > (sessions.last_at, sessions.id)
)
"""
# Selects the session with the latest message of each lineage, latest first.
_SELECT_LATEST = f"""
{rows.SELECT_SESSIONS}
WHERE {_is_listed("sessions")} AND (:needle IS NULL OR instr(bare(sessions.title), :needle) > 0)
    AND (:roots IS NULL OR {in_list(_ROOT.format("sessions"), "roots")})
    AND {_IS_BEFORE} AND {_IS_LATEST}
ORDER BY sessions.last_at DESC, sessions.id DESC LIMIT :limit
"""
# Selects the same in one scope. An index has this order, so only the first rows are read.
_SELECT_LATEST_IN_SCOPE = f"""
{rows.SELECT_SESSIONS}
WHERE sessions.scope_id = (SELECT id FROM scopes WHERE key = :scope)
    AND {_is_listed("sessions")} AND {_IS_BEFORE} AND {_IS_LATEST}
ORDER BY sessions.last_at DESC, sessions.id DESC LIMIT :limit
"""
# Up to this many scopes are read one by one. More scopes are read with a single statement.
MAX_SCOPES_WALKED = 50
# Later than all times, and higher than all ids.
_LAST_AT = 1e12
_LAST_ID = 2**62
_COUNT_PER_ROOT = f"""
SELECT {_ROOT.format("sessions")}, SUM(message_count) FROM sessions
WHERE {in_list(_ROOT.format("sessions"), "roots")} AND {_is_listed("sessions")} GROUP BY 1
"""
# Follows the chain of child sessions that continue session :id, and selects the last one.
_SELECT_TIP = f"""
WITH RECURSIVE line (id, hops) AS (
    SELECT id, 0 FROM sessions WHERE id = :id AND {visible()}
    UNION ALL
    SELECT (
        SELECT MAX(child.id) FROM sessions AS child
        WHERE child.parent_id = sessions.id AND child.id > sessions.id AND NOT child.is_delegated
            AND child.address_id = sessions.address_id AND child.scope_id = sessions.scope_id
    ), hops + 1
    FROM line JOIN sessions ON sessions.id = line.id
    WHERE hops < {MAX_HOPS} AND {in_list("sessions.end_reason", "continued")}
)
{rows.SELECT_SESSIONS}
WHERE sessions.id = (SELECT id FROM line WHERE id IS NOT NULL ORDER BY hops DESC LIMIT 1)
"""
# The sessions of the lineage of session :id, the branches that begin in it, and the session that it
# branches off from.
_SELECT_RELATIVES = f"""
{rows.SELECT_SESSIONS}
WHERE {_is_listed("sessions")} AND sessions.id IN (
    SELECT own.id FROM sessions AS own WHERE {_ROOT.format("own")} = :root
    UNION SELECT branch.id FROM sessions AS own
        JOIN sessions AS branch ON branch.parent_id = own.id WHERE {_ROOT.format("own")} = :root
    UNION SELECT first.parent_id FROM sessions AS first WHERE first.id = :root
)
ORDER BY sessions.id LIMIT :limit
"""
# Selects the messages of people and tools in a session, without undone messages and summaries for
# the model.
_SELECT_TRANSCRIPT_PAGE = f"""
SELECT {MESSAGE_COLUMNS} FROM sessions CROSS JOIN messages ON messages.session_id = sessions.id
WHERE sessions.id = :id AND {visible()} AND messages.kind IN ('chat', 'quote', 'command', 'notice')
    AND (messages.text <> '' OR messages.blocks IS NOT NULL)
"""
_SELECT_EARLIER = f"""{_SELECT_TRANSCRIPT_PAGE}
    AND messages.id < :bound ORDER BY messages.id DESC LIMIT :limit
"""
_SELECT_LATER = f"""{_SELECT_TRANSCRIPT_PAGE}
    AND messages.id >= :bound ORDER BY messages.id LIMIT :limit
"""
MAX_RELATIVES = 200
_PART_IDS = """
SELECT part.id FROM sessions JOIN sessions AS part
    ON COALESCE(part.root_id, part.id) = COALESCE(sessions.root_id, sessions.id)
    AND part.address_id = sessions.address_id AND part.scope_id = sessions.scope_id
WHERE sessions.id = :session
"""
"""Selects the sessions of a conversation at its address. A branch also shows messages of its parent
sessions, but these sessions aren't selected, because the branch can't change them."""


def list_latest(
    connection: Connection,
    scopes: frozenset[Scope],
    limit: int,
    needle: str | None = None,
    roots: Collection[int] | None = None,
    before: Session | None = None,
) -> list[Session]:
    """List up to `limit` conversations with messages, latest first.

    At most `MAX_LISTED` conversations are listed. Each conversation is represented by the session
    with its latest message. The session's `messages` counts all messages of the conversation.
    `needle` selects titles that contain this text. `roots` selects lineages with these ids. To get
    the next page, pass the last session of this page as `before`.
    """
    most = max(0, min(limit, MAX_LISTED))
    values: dict[str, object] = {
        "scopes": scope_parameter(scopes),
        "before_at": _LAST_AT if before is None else before.last_at or before.started_at,
        "before_id": _LAST_ID if before is None else before.id,
        "needle": needle,
        "roots": None if roots is None else encode_list(roots),
        "limit": most,
    }
    if needle is None and roots is None and len(scopes) <= MAX_SCOPES_WALKED:
        sessions = _walk_scopes(connection, scopes, values)[:most]
    else:
        sessions = [read_session(row) for row in connection.execute(_SELECT_LATEST, values)]
    values["roots"] = encode_list(session.root_id or session.id for session in sessions)
    counts_by_root = {row[0]: row[1] for row in connection.execute(_COUNT_PER_ROOT, values)}
    return [replace(session, messages=counts_by_root[session.root_id]) for session in sessions]


def _walk_scopes(
    connection: Connection, scopes: frozenset[Scope], values: Mapping[str, object]
) -> list[Session]:
    """Return the latest conversations of each scope, latest first."""
    sessions: list[Session] = []
    for scope in scopes:
        statement_values = {**values, "scope": rows.clean(scope.key)}
        for row in connection.execute(_SELECT_LATEST_IN_SCOPE, statement_values):
            sessions.append(read_session(row))
    sessions.sort(key=lambda session: (session.last_at or session.started_at, session.id))
    return sessions[::-1]


def find_tip(connection: Connection, session_id: int, scopes: frozenset[Scope]) -> Session | None:
    """Return the last session of a conversation, which may be the given session itself.

    Follow at most `MAX_HOPS` child sessions, but no branches or delegated sessions. Returns None if
    the session isn't visible in these scopes.
    """
    values = {
        "id": int64_or_zero(session_id),
        "scopes": scope_parameter(scopes),
        "continued": encode_list(CONTINUED_REASONS),
    }
    row = connection.execute(_SELECT_TIP, values).fetchone()
    return None if row is None else read_session(row)


def list_relatives(
    connection: Connection, session: Session, scopes: frozenset[Scope]
) -> list[Session]:
    """List the visible sessions that are related to a session, oldest first.

    These are the sessions of its lineage, its branches, and the session that it branches off from.
    At most `MAX_RELATIVES` are listed.
    """
    values = {
        "root": session.root_id or session.id,
        "scopes": scope_parameter(scopes),
        "limit": MAX_RELATIVES,
    }
    return [read_session(row) for row in connection.execute(_SELECT_RELATIVES, values)]


def load_transcript_page(
    connection: Connection,
    session_id: int,
    scopes: frozenset[Scope],
    bound: int,
    limit: int,
    *,
    is_later: bool,
) -> list[Message]:
    """List messages of a session before the message `bound`, oldest first.

    With `is_later`, list the messages from `bound` on instead. Tool calls and results are included.
    The list is empty if the session isn't visible.
    """
    values = {
        "id": int64_or_zero(session_id),
        "scopes": scope_parameter(scopes),
        "bound": bound,
        "limit": limit,
    }
    statement = _SELECT_LATER if is_later else _SELECT_EARLIER
    messages = [read_message(row) for row in connection.execute(statement, values)]
    return messages if is_later else messages[::-1]


# --- Undo and redo ---

# Selects the messages of a session and those that it carries over, except deliveries of jobs. These
# are shown messages, erased messages (commands without text), and messages that the command :origin
# has already hidden.
_SELECT_UNDOABLE = f"""
SELECT {MESSAGE_COLUMNS} FROM sessions AS own JOIN messages ON messages.session_id = own.id
    OR messages.session_id IN ({_PART_IDS})
    AND messages.id >= own.parent_from AND messages.id < own.parent_until
WHERE own.id = :session AND messages.origin <> 'job' AND (
    messages.kind IN ('chat', 'quote')
    OR messages.kind = 'command' AND messages.text = '' AND messages.role = 'user'
    OR messages.id IN (
        SELECT message_id FROM undone_messages AS undone WHERE undone.origin = :origin
    )
) ORDER BY messages.id
"""
_RECORD_UNDONE = f"""
INSERT INTO undone_messages (message_id, kind, session_id, origin, at)
SELECT id, kind, :session, :origin, :at FROM messages
WHERE {in_list("id", "ids")} AND kind IN ('chat', 'quote')
ON CONFLICT (message_id) DO UPDATE SET
    kind = excluded.kind, session_id = :session, origin = :origin, at = :at, redone_by = NULL
"""
_HIDE_MESSAGES = f"""
UPDATE messages SET kind = 'undone' WHERE {in_list("id", "ids")} AND kind IN ('chat', 'quote')
"""
_SHOW_MESSAGES = f"""
UPDATE messages SET kind = (
    SELECT undone.kind FROM undone_messages AS undone WHERE message_id = messages.id
)
WHERE {in_list("id", "ids")} AND kind = 'undone'
"""
_RECORD_REDONE = (
    f"UPDATE undone_messages SET redone_by = :origin WHERE {in_list('message_id', 'ids')}"
)
_SELECT_DELEGATED = f"""
SELECT messages.id, messages.session_id
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE sessions.is_delegated AND messages.id BETWEEN :first AND :last
    AND sessions.parent_id IN (SELECT session_id FROM messages WHERE {in_list("id", "ids")})
ORDER BY messages.id DESC
"""
"""Selects messages of the delegated sessions that were created while ``:ids`` were answered."""
_COUNT_MESSAGES = f"""
UPDATE sessions SET message_count = (
    SELECT COUNT(*) FROM messages WHERE session_id = sessions.id AND kind = 'chat'
)
WHERE id IN (SELECT session_id FROM messages WHERE {in_list("messages.id", "ids")})
"""
_SELECT_FROM_UNDONE = f"""
SELECT {MESSAGE_COLUMNS}
FROM undone_messages AS undone JOIN messages ON messages.id = undone.message_id
WHERE messages.session_id NOT IN ({rows.DELEGATED_SESSION_IDS})
"""
_SELECT_UNDONE = f"""
{_SELECT_FROM_UNDONE} AND messages.kind = 'undone' AND undone.origin = :origin ORDER BY messages.id
"""
_SELECT_REDONE = f"{_SELECT_FROM_UNDONE} AND undone.redone_by = :origin ORDER BY messages.id"
_SELECT_LAST_UNDONE = f"""
{_SELECT_FROM_UNDONE} AND messages.kind = 'undone' AND undone.origin = (
    SELECT undone.origin
    FROM undone_messages AS undone JOIN messages ON messages.id = undone.message_id
    WHERE undone.session_id IN ({_PART_IDS}) AND messages.kind = 'undone'
        AND undone.origin = COALESCE(:undo_origin, undone.origin)
        AND NOT EXISTS (
            SELECT 1 FROM undone_messages AS hidden JOIN messages AS question
                ON question.id = hidden.message_id AND hidden.origin = undone.origin
            WHERE question.role = 'user' GROUP BY hidden.origin
            HAVING MAX(question.kind) <> 'undone'
        )
    ORDER BY undone.at DESC, undone.message_id LIMIT 1
)
ORDER BY messages.id
"""
"""Selects the messages that the last undo command, or the command ``:undo_origin``, has hidden.

A command is skipped if the question that it hid was erased later. `MAX(kind)` is 'undone' if any
question is still hidden, because 'undone' sorts after all other kinds.
"""
_FROM_PARTS = f"FROM messages WHERE session_id IN ({_PART_IDS})"
_SELECT_OTHER_ANSWER = f"""
WITH answers AS (
    SELECT id, kind {_FROM_PARTS} AND role <> 'user' AND origin <> 'job'
        AND id > COALESCE(
            (SELECT MAX(id) {_FROM_PARTS} AND {IS_PERSONS_MESSAGE} AND id < :first), 0
        )
        AND id < COALESCE(
            (SELECT MIN(id) {_FROM_PARTS} AND {IS_PERSONS_MESSAGE} AND id > :last),
            9223372036854775807
        )
)
SELECT id,
    (SELECT MIN(at) FROM undone_messages JOIN answers ON answers.id = message_id) - 0.001 AS at
FROM answers WHERE kind IN ('chat', 'quote') AND NOT {in_list("id", "ids")}
"""
"""Selects the shown answer to the question that the messages ``:ids`` also answer.

The answers to a question are all messages between it and the next message of a person. `at` is
earlier than all other undos of these answers, so that redo shows the selected answer last.
"""
_SELECT_AFFECTED_SESSIONS = f"""
SELECT id FROM sessions WHERE ended_at IS NULL AND (
    id = :session
    OR parent_id IN (SELECT session_id FROM messages WHERE {in_list("messages.id", "ids")})
)
"""
"""Selects the open sessions whose next request won't begin with their last request: the session
itself, and the children of the sessions that contain the messages ``:ids``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRequest:
    """A /undo, /undo back or /retry command. Handling it twice has the same effect as once."""

    session: Session
    # The stable key of the command.
    origin: str
    at: datetime
    # For redo: the key of the command to take back, or None for the last command.
    undo_origin: str | None = None

    @property
    def parameters(self) -> dict[str, object]:
        return {
            "session": self.session.id,
            "origin": self.origin,
            "at": self.at,
            "undo_origin": self.undo_origin,
        }


def list_undoable(connection: Connection, request: UndoRequest) -> list[Message]:
    """List the messages that this command may hide or has already hidden, oldest first.

    These are the messages since the session began or was last compressed, except deliveries of
    jobs. Messages that were erased later are included.
    """
    return _list_messages(connection, _SELECT_UNDOABLE, request.parameters)


def undo(connection: Connection, request: UndoRequest, ids: Collection[int]) -> list[Message]:
    """Hide messages, unless this command has already hidden some.

    Returns the messages that this command has hidden, oldest first.
    """
    values = {
        **request.parameters,
        "ids": encode_list(ids),
        "first": min(ids, default=0),
        "last": max(ids, default=0),
    }
    is_done = connection.execute(
        "SELECT 1 FROM undone_messages WHERE origin = :origin", values
    ).fetchone()
    if not is_done:
        # The messages of delegated sessions are hidden with the answer that used them.
        delegated_ids = [row["id"] for row in connection.execute(_SELECT_DELEGATED, values)]
        values["ids"] = encode_list([*ids, *delegated_ids])
        connection.execute(_RECORD_UNDONE, values)
        connection.execute(_HIDE_MESSAGES, values)
        _update_sessions(connection, values)
    return _list_messages(connection, _SELECT_UNDONE, values)


def redo(connection: Connection, request: UndoRequest) -> list[Message]:
    """Show the last hidden messages again, and return them, oldest first.

    If they are the older answer to a question, hide the newer answer. The list is empty if no
    messages are hidden.
    """
    shown_before = _list_messages(connection, _SELECT_REDONE, request.parameters)
    if shown_before:
        return shown_before  # the same request was already handled
    hidden_messages = _list_messages(connection, _SELECT_LAST_UNDONE, request.parameters)
    if not hidden_messages:
        return []

    hidden_ids = [message.id for message in hidden_messages]
    values = {
        **request.parameters,
        "ids": encode_list(hidden_ids),
        "first": hidden_ids[0],
        "last": hidden_ids[-1],
    }
    delegated_rows = connection.execute(_SELECT_DELEGATED, values).fetchall()
    delegated_ids = [row["id"] for row in delegated_rows]
    values["ids"] = encode_list([*hidden_ids, *delegated_ids])
    # The first hidden message of each session. The loop ends with the oldest message, which
    # replaces later ones of the same session.
    first_ids = {message.session_id: message.id for message in reversed(hidden_messages)}
    first_ids |= {row["session_id"]: row["id"] for row in delegated_rows}
    with rechunk_sessions(connection, first_ids):
        connection.execute(_SHOW_MESSAGES, values)
    connection.execute(_RECORD_REDONE, values)
    _update_sessions(connection, values)

    if all(message.role != "user" for message in hidden_messages):
        _hide_other_answer(connection, request, values)
    return _list_messages(connection, _SELECT_REDONE, values)


def _hide_other_answer(
    connection: Connection, request: UndoRequest, values: Mapping[str, object]
) -> None:
    """Hide the newer answer to a question whose older answer is shown again."""
    other_answer = connection.execute(_SELECT_OTHER_ANSWER, values).fetchall()
    if other_answer:
        at = rows.to_datetime(other_answer[0]["at"])
        undo(connection, replace(request, at=at), [row["id"] for row in other_answer])


def _list_messages(
    connection: Connection, statement: str, values: Mapping[str, object]
) -> list[Message]:
    return [read_message(row) for row in connection.execute(statement, values)]


def _update_sessions(connection: Connection, values: Mapping[str, object]) -> None:
    """Update the message counts of changed sessions, and mark their cached prefix as invalid."""
    connection.execute(_COUNT_MESSAGES, values)
    for row in connection.execute(_SELECT_AFFECTED_SESSIONS, values).fetchall():
        record_prefix_break(connection, row["id"], "undo")
