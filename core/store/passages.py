"""Reads what recall shows of a session: windows, first and last messages, counts, previews, recent sessions.

Only messages that people may see (kind chat, user and assistant, not empty) over the index `messages_shown`; a session
that is not shown is never read. Every statement goes through the scope predicate.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from core.search import Found, Item, Query
from core.store.chunk_terms import SHOWN
from core.store.matches import bounded, session_filters
from core.store.rows import SESSIONS, moment, session_of
from core.store.sight import scope_parameter, visible
from core.types import Session

BOOKEND = 3
READ_FIRST, READ_LAST = 20, 10
PREVIEW_CHARS = 160
WINDOW_MAX = 100
BROWSE_MAX = 100
ENDLESS = 2**63 - 1

_ITEM = "messages.id, messages.role, messages.sender_name, messages.created_at, messages.text, messages.external_id"
_OF_SESSION = f"FROM messages WHERE messages.session_id = :session AND {SHOWN}"

_OPEN = "messages.id NOT BETWEEN :hidden_first AND :hidden_last"
"""Outside of the model's window."""

_AROUND = f"""
    SELECT * FROM (SELECT 0, {_ITEM} {_OF_SESSION} AND {_OPEN} ORDER BY messages.id LIMIT :bookend)
    UNION ALL
    SELECT * FROM (
        SELECT 1, {_ITEM} {_OF_SESSION} AND messages.id < :anchor AND {_OPEN} ORDER BY messages.id DESC LIMIT :window
    )
    UNION ALL
    SELECT 2, {_ITEM} FROM messages WHERE messages.id = :anchor AND messages.session_id = :session
    UNION ALL
    SELECT * FROM (
        SELECT 3, {_ITEM} {_OF_SESSION} AND messages.id > :anchor AND {_OPEN}
        ORDER BY messages.id LIMIT :window
    )
    UNION ALL
    SELECT * FROM (SELECT 4, {_ITEM} {_OF_SESSION} AND {_OPEN} ORDER BY messages.id DESC LIMIT :bookend)
    UNION ALL
    SELECT 5, (SELECT COUNT(*) {_OF_SESSION} AND messages.id < :anchor AND {_OPEN}),
        (SELECT COUNT(*) {_OF_SESSION} AND messages.id > :anchor AND {_OPEN}), NULL, NULL, NULL, NULL
"""
"""By part: first messages, those before the anchor, the anchor, those after it, last messages; and how many there are
before and after it. One statement, because each costs as much as reading ten rows."""
_FIRST = f"SELECT 0, {_ITEM} {_OF_SESSION} AND {_OPEN} ORDER BY messages.id LIMIT :count"
_LAST = f"SELECT 4, {_ITEM} {_OF_SESSION} AND {_OPEN} ORDER BY messages.id DESC LIMIT :count"
_COUNT = f"SELECT COUNT(*) {_OF_SESSION} AND {_OPEN}"
_PREVIEW = f"SELECT substr(messages.text, 1, {PREVIEW_CHARS}) {_OF_SESSION} ORDER BY messages.id LIMIT 1"
_OUTSIDE = """ AND NOT EXISTS (
    SELECT 1 FROM json_each(:hidden) AS span WHERE json_extract(span.value, '$[0]') = messages.session_id
    AND messages.id BETWEEN json_extract(span.value, '$[1]') AND json_extract(span.value, '$[2]')
)"""
_BEGINNING = f"""
    SELECT substr(messages.text, 1, {PREVIEW_CHARS}) FROM messages
    WHERE messages.session_id = listed.id AND {SHOWN} ORDER BY messages.id LIMIT 1
"""


def sessions(connection: sqlite3.Connection, ids: Sequence[int], query: Query) -> dict[int, Session]:
    """The sessions of these ids that the query may see."""
    statement = (
        f"{SESSIONS} WHERE sessions.id IN (SELECT value FROM json_each(:ids)) AND {visible('sessions.scope_id')}"
    )
    parameters = {"ids": json.dumps(list(ids)), "scopes": scope_parameter(query.scopes)}
    return {row["id"]: session_of(row) for row in connection.execute(statement, parameters)}


def surroundings(
    connection: sqlite3.Connection, session: Session, anchor: int, query: Query, bookend: int = BOOKEND
) -> Found:
    """A session with the window around one of its messages, counts of what lies outside, and up to `bookend` of its
    first and last messages; in a short one these are the same."""
    values = {
        "session": session.id,
        "anchor": anchor,
        "window": max(0, min(query.window, WINDOW_MAX)),
        **_hidden(session, query),
        "bookend": bookend,
    }
    *rows, counts = connection.execute(_AROUND, values).fetchall()
    parts: tuple[list[Item], ...] = ([], [], [], [], [])
    for row in rows:
        parts[row[0]].append(_item(row, session, anchor))
    first, before, here, after, last = parts
    window = (*before[::-1], *here, *after)
    if not window:
        return Found(session=session)
    return Found(
        session=session,
        bookend_start=tuple(first),
        window=window,
        bookend_end=tuple(last[::-1]),
        messages_before=counts[1] - len(before),
        messages_after=counts[2] - len(after),
    )


def reading(connection: sqlite3.Connection, session: Session, query: Query) -> Found:
    """A session to read: its first 20 and last 10 messages as the window; `messages_after` counts what lies between
    the two."""
    parameters = {"session": session.id, **_hidden(session, query)}
    first = [_item(row, session) for row in connection.execute(_FIRST, {**parameters, "count": READ_FIRST})]
    last = [_item(row, session) for row in connection.execute(_LAST, {**parameters, "count": READ_LAST})]
    known = {item.message_id for item in first}
    window = first + [item for item in last[::-1] if item.message_id not in known]
    total = connection.execute(_COUNT, parameters).fetchone()[0]
    return Found(
        session=session,
        preview=preview(connection, session.id),
        window=tuple(window),
        messages_after=total - len(window),
    )


def message_place(connection: sqlite3.Connection, message_id: int, query: Query) -> tuple[int, int] | None:
    """(session, lineage) of a message that may be shown; None for one of another scope as for one that is not there."""
    row = connection.execute(
        f"""
        SELECT messages.session_id, COALESCE(sessions.root_id, sessions.id)
        FROM messages JOIN sessions ON sessions.id = messages.session_id
        WHERE messages.id = :message AND messages.kind = 'chat' AND {visible("sessions.scope_id")}
        """,
        {"message": bounded(message_id), "scopes": scope_parameter(query.scopes)},
    ).fetchone()
    return None if row is None else (row[0], row[1])


def preview(connection: sqlite3.Connection, session_id: int) -> str | None:
    """How a session begins, on one line."""
    row = connection.execute(_PREVIEW, {"session": session_id}).fetchone()
    return None if row is None else _line(row[0])


def recent(connection: sqlite3.Connection, query: Query, limit: int) -> list[Found]:
    """The `limit` sessions spoken in last, newest first, one for each lineage. Looks at no more of each scope."""
    conditions, parameters = _browsing(query)
    statement = f"""
        SELECT listed.*, ({_BEGINNING}) AS beginning FROM (
            {SESSIONS}
            WHERE sessions.id IN (
                SELECT latest.id FROM scopes AS own CROSS JOIN sessions AS latest ON latest.id IN (
                    SELECT sessions.id FROM sessions JOIN addresses ON addresses.id = sessions.address_id
                    WHERE sessions.scope_id = own.id AND {conditions}
                    ORDER BY sessions.last_at DESC LIMIT :limit
                )
                WHERE {visible("own.id")}
            )
            ORDER BY sessions.last_at DESC, sessions.id DESC LIMIT :limit
        ) AS listed
        ORDER BY listed.last_at DESC, listed.id DESC
    """
    rows = connection.execute(statement, {**parameters, "limit": limit})
    return [Found(session=session_of(row), preview=_line(row["beginning"])) for row in rows]


def _browsing(query: Query) -> tuple[str, dict[str, Any]]:
    """A session is listed when something in it may be shown, it is not wholly in the model's window, and no later
    session of its lineage stands for it."""
    spans = [list(map(bounded, span)) for span in (query.hidden.spans if query.hidden else ())]
    parameters: dict[str, Any] = {"scopes": scope_parameter(query.scopes), "hidden": json.dumps(spans)}
    narrowed, wanted = session_filters(query)
    within = ""
    if query.after is not None:
        within += " AND messages.created_at >= :after"
    if query.before is not None:
        within += " AND messages.created_at < :before"
    shown = f"SELECT 1 FROM messages WHERE messages.session_id = sessions.id AND {SHOWN}{within}"
    condition = f"""
        EXISTS ({shown}{_OUTSIDE if spans else ""})
        AND NOT EXISTS (
            SELECT 1 FROM sessions AS child WHERE child.parent_id = sessions.id AND child.scope_id = sessions.scope_id
            AND child.last_at >= sessions.last_at
            AND EXISTS (SELECT 1 FROM messages WHERE messages.session_id = child.id AND {SHOWN}{within})
        ) {narrowed}
    """
    return condition, {**parameters, **wanted}


def _hidden(session: Session, query: Query) -> dict[str, int]:
    """Between which ids the messages of a session stand in the model's window; after the last there is, where none
    do."""
    for session_id, first, last in query.hidden.spans if query.hidden else ():
        if session_id == session.id:
            return {"hidden_first": bounded(first), "hidden_last": bounded(last)}
    return {"hidden_first": ENDLESS, "hidden_last": ENDLESS}


def link(base: str | None, external_id: str | None) -> str | None:
    """Where a message can be opened on its platform; None where it has no such links."""
    return f"{base}{external_id}" if base and external_id else None


def _item(row: sqlite3.Row, session: Session, anchor: int | None = None) -> Item:
    """An item of a row that begins with its part; by place, which is half the time that names take."""
    return Item(
        message_id=row[1],
        role=row[2],
        sender=row[3],
        at=moment(row[4]),
        text=row[5],
        is_anchor=row[1] == anchor,
        link=link(session.link_base, row[6]),
    )


def _line(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())
