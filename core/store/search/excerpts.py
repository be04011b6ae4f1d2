"""Load the parts of a session that recall shows: messages around a match, both ends, or a preview.

A lineage is a session together with the sessions that it continues or that continue it. Excerpts
contain only messages that `schema.IS_SHOWN` selects. Every statement contains the access condition
of `core.store.visibility`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from core.store import rows
from core.store.engine import IS_SHOWN, LISTED_ID, Connection, Row, listed
from core.store.query import (
    MAX_FIRST_MESSAGES,
    MAX_LAST_MESSAGES,
    FoundSession,
    Hit,
    SearchQuery,
    ShownMessage,
    TextKind,
)
from core.store.rows import (
    SESSION_SUMMARY_COLUMNS,
    SESSION_SUMMARY_WIDTH,
    int64_or_zero,
    read_session,
    to_datetime,
)
from core.store.visibility import encode_list, scope_parameter, session_filters, visible
from core.text.normalize import shorten
from core.types import Origin, Role, Session

BOOKEND_MESSAGES = 3
"""A match is shown with this many messages from each end of its lineage."""
PREVIEW_CHARS = 160
QUOTE_CHARS = 100
MAX_WINDOW_MESSAGES = 100
BROWSE_MAX = 100
"""The maximum number of sessions on a page of recent sessions."""
MAX_ID = 2**63 - 1

# --- Parts of statements ---

PLATFORM_ID = """COALESCE(
    CASE messages.origin WHEN 'job' THEN NULL ELSE messages.external_id END, messages.posted_id
)"""
"""The message's id on its platform: `external_id` if a person sent the message, `posted_id` if
Mneme did.

The `external_id` of a job's message isn't a platform id.
"""
_ADDRESS_AND_SCOPE = """
    CROSS JOIN addresses ON addresses.id = sessions.address_id
    CROSS JOIN scopes ON scopes.id = sessions.scope_id
"""
_MESSAGE = f"""messages.id, messages.role, messages.sender_name, messages.sender_id,
    messages.origin, messages.created_at, messages.text, {PLATFORM_ID}, messages.quoted"""
_FROM_SESSION = f"FROM messages WHERE messages.session_id = :session AND {IS_SHOWN}"
_NOT_HIDDEN_HERE = "messages.id NOT BETWEEN :hidden_first AND :hidden_last"
"""The SQL condition that the model's context doesn't already contain a message of the session."""
_NOT_HIDDEN = f""" AND NOT EXISTS (
    SELECT 1 FROM {listed("hidden", "span")}
    WHERE CAST(json_extract(span.value, '$[0]') AS INTEGER) = messages.session_id
        AND messages.id BETWEEN CAST(json_extract(span.value, '$[1]') AS INTEGER)
            AND CAST(json_extract(span.value, '$[2]') AS INTEGER)
)"""
"""The same condition for messages of any session.

`:hidden` is a JSON list of the spans in the model's context: [session id, first id, last id].
"""
_LINEAGE = f"""
    SELECT id FROM sessions WHERE id = :session OR COALESCE(root_id, id) = :root
        AND NOT is_delegated AND {visible("sessions.scope_id")}
"""


def _select_bookend(direction: str) -> str:
    """Return the body of a SELECT statement for a lineage's first messages.

    With the direction "DESC", it selects the last messages. The statement must define `parts`, the
    sessions of the lineage. For N messages, SQLite reads only N sessions, because a long
    conversation has hundreds of sessions.
    """
    ids = f"""SELECT messages.id FROM messages
        WHERE messages.session_id = parts.id AND {IS_SHOWN} {_NOT_HIDDEN} ORDER BY 1 {direction}"""
    return f"""{_MESSAGE} FROM (
        SELECT id FROM parts ORDER BY ({ids} LIMIT 1) {direction} NULLS LAST LIMIT :bookend
    ) AS parts CROSS JOIN messages ON messages.id IN ({ids} LIMIT :bookend)
    ORDER BY messages.id {direction} LIMIT :bookend"""


# --- Statements ---

_SURROUNDINGS = f"""
    WITH parts (id) AS ({_LINEAGE})
    SELECT * FROM (SELECT 0, {_select_bookend("")}) AS beginning
    UNION ALL
    SELECT * FROM (
        SELECT 1, {_MESSAGE} {_FROM_SESSION} AND messages.id < :anchor AND {_NOT_HIDDEN_HERE}
        ORDER BY messages.id DESC LIMIT :window
    ) AS before
    UNION ALL
    SELECT 2, {_MESSAGE} FROM messages
    WHERE messages.id = :anchor AND messages.session_id = :session
    UNION ALL
    SELECT * FROM (
        SELECT 3, {_MESSAGE} {_FROM_SESSION} AND messages.id > :anchor AND {_NOT_HIDDEN_HERE}
        ORDER BY messages.id LIMIT :window
    ) AS after
    UNION ALL
    SELECT * FROM (SELECT 4, {_select_bookend("DESC")}) AS ending
    UNION ALL
    SELECT 5,
        (SELECT COUNT(*) {_FROM_SESSION} AND messages.id < :anchor AND {_NOT_HIDDEN_HERE}
            AND :is_counted),
        NULL, NULL, NULL, NULL,
        (SELECT COUNT(*) {_FROM_SESSION} AND messages.id > :anchor AND {_NOT_HIDDEN_HERE}
            AND :is_counted),
        NULL, NULL, NULL
"""
"""Selects the messages around an anchor. The first column is the part that a row belongs to:

0. the first messages of the lineage
1. the messages before the anchor in its session, the last one first
2. the anchor
3. the messages after the anchor in its session
4. the last messages of the lineage, the last one first
5. a single row with the number of messages before the anchor as the id, and the number after it as
   the time

All parts are in one statement because running a statement costs as much as reading ten rows.
"""
_COUNT_LINEAGE = f"""
    WITH parts (id) AS ({_LINEAGE})
    SELECT COUNT(*) FROM parts CROSS JOIN messages ON messages.session_id = parts.id
    WHERE {IS_SHOWN} {_NOT_HIDDEN}
"""
# Selects the fields of `MatchRow` for the messages in `:ids`, each with the columns of its session.
_MATCHES = f"""
    SELECT {SESSION_SUMMARY_COLUMNS}, messages.id, messages.role, messages.created_at,
        messages.external_id, messages.text, messages.tools, messages.quoted,
        messages.sender_name, messages.origin, {PLATFORM_ID},
        (SELECT link_base FROM addresses WHERE id = messages.address_id)
    FROM {listed("ids")} CROSS JOIN messages ON messages.id = {LISTED_ID}
    CROSS JOIN sessions ON sessions.id = messages.session_id {_ADDRESS_AND_SCOPE}
    WHERE {visible("sessions.scope_id")}
"""
_SESSION_BY_ID = f"""
    SELECT {SESSION_SUMMARY_COLUMNS} FROM sessions {_ADDRESS_AND_SCOPE}
    WHERE sessions.id = :id AND {visible("sessions.scope_id")}
"""
_SESSION_OF_MESSAGE = f"""
    SELECT {SESSION_SUMMARY_COLUMNS}
    FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id {_ADDRESS_AND_SCOPE}
    WHERE messages.id = :id AND messages.kind = 'chat' AND {visible("sessions.scope_id")}
"""
_CHILD = "SELECT 1 FROM sessions AS child WHERE child.parent_id = sessions.id"
_FIRST_MESSAGE_ID = f"""
    SELECT messages.id FROM messages WHERE messages.session_id = sessions.id AND {IS_SHOWN}
    ORDER BY messages.id LIMIT 1
"""


@lru_cache(maxsize=64)
def _recent_sessions_sql(condition: str, filters: str, later_filters: str) -> str:
    """Return a statement that selects the latest session of each lineage in the scope ``:scope``.

    A session is listed if it has a shown message that meets `condition`, unless a later session of
    its lineage is listed. `filters` apply to the table `sessions`. `later_filters` are the same
    conditions for `later`, the later sessions of the lineage.

    The statement reads one scope, because an index already sorts the sessions of each scope.
    """
    message = f"SELECT 1 FROM messages WHERE {IS_SHOWN}{condition} AND messages.session_id ="
    has_message = f"AND EXISTS ({message} sessions.id)" if condition else ""
    # `sessions` is joined with its first message, for the preview. A session without a parent and
    # without a child is alone in its lineage, so later sessions needn't be searched.
    return f"""
        SELECT {SESSION_SUMMARY_COLUMNS}, substr(messages.text, 1, {PREVIEW_CHARS})
        FROM scopes CROSS JOIN sessions ON sessions.scope_id = scopes.id
        CROSS JOIN addresses ON addresses.id = sessions.address_id
        CROSS JOIN messages ON messages.id = ({_FIRST_MESSAGE_ID})
        WHERE scopes.key = :scope {filters} {has_message}
            AND (sessions.root_id IS NULL AND NOT EXISTS ({_CHILD}) OR NOT EXISTS (
                SELECT 1 FROM sessions AS later
                CROSS JOIN addresses AS later_address ON later_address.id = later.address_id
                WHERE COALESCE(later.root_id, later.id) = COALESCE(sessions.root_id, sessions.id)
                    AND (later.last_at, later.id) > (sessions.last_at, sessions.id)
                    AND {visible("later.scope_id")} {later_filters}
                    AND EXISTS ({message} later.id)
            ))
        ORDER BY sessions.last_at DESC, sessions.id DESC LIMIT :limit
    """


# --- Queries ---


class MatchRow(NamedTuple):
    """A matching message, with the values that the results show."""

    session_id: int
    message_id: int
    role: Role
    # Seconds since 1970.
    created_at: float
    external_id: str | None
    text: str
    # A tool call as searchable text.
    tool_call: str | None
    # An encoded quote: see `describe_quote`.
    quote: str | None
    sender: str | None
    origin: Origin
    link: str | None


class MatchedSession(NamedTuple):
    """A session that contains matches, together with its matches."""

    session: Session
    # The id of its best message.
    anchor: int
    hits: tuple[Hit, ...] = ()
    score: float = 0.0


class SessionExcerpts:
    """Loads excerpts of the sessions that a query may see."""

    def __init__(self, connection: Connection, query: SearchQuery) -> None:
        self._connection = connection
        self._query = query
        self._scopes = scope_parameter(query.scopes)
        spans = [list(map(int64_or_zero, span)) for span in query.hidden]
        self._hidden = json.dumps(spans)

    def load_matches(
        self, message_ids: Iterable[int], session_ids: Collection[int]
    ) -> tuple[list[MatchRow], dict[int, Session]]:
        """Return the visible messages among `message_ids`, and their sessions by id.

        Messages of sessions outside `session_ids` are left out.
        """
        matches: list[MatchRow] = []
        sessions: dict[int, Session] = {}
        values = {"ids": encode_list(message_ids), "scopes": self._scopes}
        for row in self._connection.execute(_MATCHES, values):
            session_id = row[0]
            if session_id in session_ids and session_id not in sessions:
                sessions[session_id] = read_session(row[:SESSION_SUMMARY_WIDTH])
            *fields, platform_id, link_base = row[SESSION_SUMMARY_WIDTH:]
            link = message_link(link_base, platform_id)
            matches.append(MatchRow._make((session_id, *fields, link)))
        return matches, sessions

    def find_session(self, id_: int, *, is_of_message: bool = False) -> Session | None:
        """Return a session by its id, or None if the query may not see it.

        With `is_of_message`, `id_` is the id of one of the session's messages.
        """
        statement = _SESSION_OF_MESSAGE if is_of_message else _SESSION_BY_ID
        values = {"id": int64_or_zero(id_), "scopes": self._scopes}
        row = self._connection.execute(statement, values).fetchone()
        return None if row is None else read_session(row[:SESSION_SUMMARY_WIDTH])

    def load_surroundings(
        self, session: Session, anchor: int, bookend: int = BOOKEND_MESSAGES
    ) -> FoundSession:
        """Load the messages around the message `anchor`, and those at both ends of the lineage.

        A search for a turn loads only the messages around the anchor, because counting the messages
        of a long session would take as long as the search itself.
        """
        values = self._surroundings_values(session, anchor, bookend)
        message_rows = self._connection.execute(_SURROUNDINGS, values).fetchall()
        return _build_found_session(MatchedSession(session, anchor), message_rows)

    def load_all_surroundings(self, matched: Sequence[MatchedSession]) -> list[FoundSession]:
        """Load the surroundings of the best match of each session."""
        values = [
            self._surroundings_values(match.session, match.anchor, BOOKEND_MESSAGES)
            for match in matched
        ]
        results = self._connection.fetch_each(_SURROUNDINGS, values)
        return list(map(_build_found_session, matched, results))

    def _surroundings_values(
        self, session: Session, anchor: int, bookend: int
    ) -> dict[str, object]:
        """Return the parameters of `_SURROUNDINGS`."""
        is_turn = self._query.kind is TextKind.TURN
        hidden_first, hidden_last = self._hidden_span(session)
        return {
            **self._lineage_values(session),
            "anchor": anchor,
            "window": max(0, min(self._query.limits.window, MAX_WINDOW_MESSAGES)),
            "bookend": 0 if is_turn else bookend,
            "is_counted": not is_turn,
            "hidden_first": hidden_first,
            "hidden_last": hidden_last,
        }

    def _hidden_span(self, session: Session) -> tuple[int, int]:
        """Return the ids of a session's first and last message in the model's context.

        If the context has none of its messages, both ids are `MAX_ID`, which no message has.
        """
        span = (MAX_ID, MAX_ID)
        for session_id, first_id, last_id in self._query.hidden:
            if session_id == session.id:
                span = (int64_or_zero(first_id), int64_or_zero(last_id))
        return span

    def _lineage_values(self, session: Session) -> dict[str, object]:
        """Return the parameters of `_LINEAGE` and `_NOT_HIDDEN` for a session's lineage."""
        return {
            "session": session.id,
            "root": session.root_id,
            "scopes": self._scopes,
            "hidden": self._hidden,
        }

    def load_overview(self, session: Session) -> FoundSession:
        """Load the first and last messages of a session's lineage as one window.

        `messages_after` is the number of messages that the window omits.
        """
        ends = self.load_surroundings(session, 0, MAX_FIRST_MESSAGES)
        # In a short lineage, the last messages are among the first ones.
        window = list(ends.bookend_start)
        for message in ends.bookend_end[-MAX_LAST_MESSAGES:]:
            if message not in ends.bookend_start:
                window.append(message)
        preview = None
        if ends.bookend_start:
            preview = " ".join(ends.bookend_start[0].text[:PREVIEW_CHARS].split())
        values = self._lineage_values(session)
        message_count = self._connection.execute(_COUNT_LINEAGE, values).fetchone()[0]
        return FoundSession(
            session=session,
            preview=preview,
            window=tuple(window),
            messages_after=message_count - len(window),
        )

    def list_recent(self, page: slice) -> tuple[list[FoundSession], bool]:
        """Return one page of recent sessions, newest first, and whether there are more pages.

        Each lineage appears once, with its latest session.
        """
        query = self._query
        condition = _NOT_HIDDEN if query.hidden else ""
        if query.filters.after is not None:
            condition += " AND messages.created_at >= :after"
        if query.filters.before is not None:
            condition += " AND messages.created_at < :before"
        filters, parameters = session_filters(query)
        later_filters, _ = session_filters(query, "later", "later_address")
        statement = _recent_sessions_sql(condition, filters, later_filters)
        values = {
            **parameters,
            "scopes": self._scopes,
            "hidden": self._hidden,
            # One session more than the page needs shows that another page follows.
            "limit": page.stop + 1,
        }
        recent: list[Row] = []
        for scope in query.scopes:
            recent += self._connection.execute(statement, {**values, "scope": scope}).fetchall()
        if len(query.scopes) > 1:
            recent.sort(key=lambda row: (row["last_at"], row["id"]), reverse=True)
        sessions = []
        for row in recent[page]:
            session = read_session(row[:SESSION_SUMMARY_WIDTH])
            preview = " ".join(row[SESSION_SUMMARY_WIDTH].split())
            sessions.append(FoundSession(session=session, preview=preview))
        return sessions, len(recent) > page.stop


def _build_found_session(matched: MatchedSession, rows_by_part: Sequence[Any]) -> FoundSession:
    """Build the result for a session from the rows of `_SURROUNDINGS`."""
    *message_rows, counts = rows_by_part
    first, before, here, after, last = _messages_by_part(
        message_rows, matched.session, matched.anchor
    )
    return FoundSession(
        session=matched.session,
        score=matched.score,
        matches=matched.hits,
        bookend_start=tuple(first),
        window=(*reversed(before), *here, *after),
        bookend_end=tuple(reversed(last)),
        messages_before=max(0, counts[1] - len(before)),
        messages_after=max(0, int(counts[6]) - len(after)),
    )


def _messages_by_part(
    message_rows: Iterable[Any], session: Session, anchor: int
) -> tuple[list[ShownMessage], ...]:
    """Group the rows of `_SURROUNDINGS` into five lists of messages, one for each part.

    In a short session, a message may belong to several parts. Each message is decoded once.
    """
    parts: tuple[list[ShownMessage], ...] = ([], [], [], [], [])
    messages: dict[int, ShownMessage] = {}
    for row in message_rows:
        # Unpacking by position takes half as long as reading columns by name.
        part, id_, role, sender, sender_id, origin, created_at, text, platform_id, quote = row
        if id_ not in messages:
            messages[id_] = ShownMessage(
                message_id=id_,
                role=role,
                sender=sender,
                at=to_datetime(created_at),
                text=text,
                is_anchor=id_ == anchor,
                link=message_link(session.link_base, platform_id),
                sender_id=sender_id,
                origin=origin,
                quoted=describe_quote(quote),
            )
        parts[part].append(messages[id_])
    return parts


def describe_quote(encoded: str | None) -> str | None:
    """Describe a quote by its author and the beginning of its text: ``Ana: See you at 5``.

    Returns None if there is no quote, or if the quote is empty.
    """
    if encoded is None:
        return None
    quote = rows.load_quote(encoded)
    if quote is None:
        return None
    author = "Mneme" if quote.is_ours else quote.name
    if quote.kind == "forward":
        author = f"forwarded from {author}" if author else "forwarded"
    description = ": ".join(part for part in (author, quote.text) if part)
    return shorten(description, QUOTE_CHARS) or None


def message_link(link_base: str | None, platform_id: str | None) -> str | None:
    """Return the URL of a message on its platform.

    Returns None if the platform has no links to messages, or if the message's id isn't a number.
    """
    if not link_base or not platform_id or not platform_id.isdecimal():
        return None
    return f"{link_base}{platform_id}"
