"""What recall shows of a session: windows, first and last messages, counts, previews, recent sessions.

Only what people may see (kind chat, user and assistant, not empty); every statement goes through the scope predicate.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from core.store.engine import Connection
from core.store.query import READ_FIRST, READ_LAST, FoundSession, SearchQuery, ShownMessage
from core.store.rows import bounded, moment, scope_parameter, session_of, visible
from core.store.sqlite.schema import SHOWN, in_list, list_value
from core.store.sqlite.text_index import session_filters
from core.types import Role, Session

BOOKEND = 3
PREVIEW_CHARS = 160
WINDOW_MAX = 100
BROWSE_MAX = 100

_SESSION = """sessions.id, addresses.platform, addresses.chat_id, addresses.thread_id, addresses.link_base,
    scopes.key AS scope_key, sessions.started_at, sessions.last_at, sessions.ended_at, sessions.end_reason,
    sessions.title, sessions.external_id, sessions.parent_id, sessions.root_id, sessions.messages"""
"""What is shown of a session. Its system prompt, 10 KB and more, is not."""
_PLACES = """
    CROSS JOIN addresses ON addresses.id = sessions.address_id CROSS JOIN scopes ON scopes.id = sessions.scope_id
"""
PLATFORM_ID = "COALESCE(messages.external_id, messages.posted_id)"
"""Under which id the platform has a message: what a person said came with one, an answer got one."""
_OPENED = f"""
    SELECT {_SESSION}, (
        SELECT json_group_array(id)
        FROM (SELECT id FROM messages WHERE messages.session_id = sessions.id AND {SHOWN} ORDER BY id)
    )
    FROM sessions {_PLACES} WHERE {visible("sessions.scope_id")}
"""
"""A session, and the ids of what may be shown of it: to read them off their index is cheaper than asking for each
part."""
_BY_ID = f"{_OPENED} AND {in_list('sessions.id', 'ids')}"
_OF_MESSAGE = f"{_OPENED} AND sessions.id = (SELECT session_id FROM messages WHERE id = :id AND kind = 'chat')"
_MESSAGES = f"""
    SELECT messages.id, messages.session_id, messages.role, messages.created_at, messages.text,
        {PLATFORM_ID}, (SELECT link_base FROM addresses WHERE id = messages.address_id),
        messages.sender_name, messages.sender_id, messages.origin,
        messages.external_id, messages.tools
    FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
    WHERE {in_list("messages.id", "ids")} AND {visible("sessions.scope_id")}
"""
_OUTSIDE = """ AND NOT EXISTS (
    SELECT 1 FROM json_each(:hidden) AS span WHERE json_extract(span.value, '$[0]') = messages.session_id
    AND messages.id BETWEEN json_extract(span.value, '$[1]') AND json_extract(span.value, '$[2]')
)"""
_CHILD = "SELECT 1 FROM sessions AS child WHERE child.parent_id = sessions.id"
_BEGINNING = f"""
    SELECT substr(messages.text, 1, {PREVIEW_CHARS}) FROM messages
    WHERE messages.session_id = sessions.id AND {SHOWN} ORDER BY messages.id LIMIT 1
"""


class OpenedSession(NamedTuple):
    """A session, and the ids, ascending, of what may be shown of it outside of the model's window."""

    session: Session
    ids: list[int]


class Stretch(NamedTuple):
    """Which messages of a session are to be shown: its first and last ones and those around an anchor; and how many lie
    before and after these."""

    session: Session
    anchor: int
    first: list[int]
    window: list[int]
    last: list[int]
    before: int
    after: int


class MatchedMessage(NamedTuple):
    """A message that was found; `tools` is what it called, as text."""

    session_id: int
    role: Role
    at: datetime
    text: str
    link: str | None
    external_id: str | None
    tools: str | None


class Passages:
    """What may be shown of sessions to whoever asks `query`."""

    def __init__(self, connection: Connection, query: SearchQuery) -> None:
        self._connection = connection
        self._query = query
        self._scopes = scope_parameter(query.scopes)

    def sessions(self, ids: Iterable[int]) -> dict[int, OpenedSession]:
        """By id those that may be shown; one of another scope is left out like one that is not there."""
        return {one.session.id: one for one in self._opened(_BY_ID, {"ids": list_value(map(bounded, ids))})}

    def session_of_message(self, message_id: int) -> OpenedSession | None:
        """The session of a message that may be shown; None where there is none."""
        return next(self._opened(_OF_MESSAGE, {"id": bounded(message_id)}), None)

    def _opened(self, statement: str, values: Mapping[str, object]) -> Iterator[OpenedSession]:
        hidden = {id_: (first, last) for id_, first, last in (self._query.hidden.spans if self._query.hidden else ())}
        for row in self._connection.execute(statement, {**values, "scopes": self._scopes}).fetchall():
            ids: list[int] = json.loads(row[-1])
            if row[0] in hidden:
                first, last = hidden[row[0]]
                ids = [id_ for id_ in ids if not first <= id_ <= last]
            yield OpenedSession(session_of(row), ids)

    def around(self, opened: OpenedSession, anchor: int, bookend: int = BOOKEND) -> Stretch:
        """The window around the `anchor`, and `bookend` of the first and last messages."""
        session, ids = opened
        size = max(0, min(self._query.window, WINDOW_MAX))
        first, end = max(0, bisect_left(ids, anchor) - size), bisect_right(ids, anchor)
        window = [*ids[first : bisect_left(ids, anchor)], anchor, *ids[end : end + size]]
        last = ids[max(0, len(ids) - bookend) :]
        return Stretch(session, anchor, ids[:bookend], window, last, first, max(0, len(ids) - end - size))

    def shown(
        self, stretches: Sequence[Stretch], matched: Collection[int] = ()
    ) -> tuple[list[FoundSession], dict[int, MatchedMessage]]:
        """The sessions with the messages of their stretches; and the `matched` messages by id."""
        ids = {*matched, *chain.from_iterable((*one.first, *one.window, *one.last) for one in stretches)}
        values = {"ids": list_value(ids), "scopes": self._scopes}
        anchors = {one.anchor for one in stretches}
        items: dict[int, ShownMessage] = {}
        found: dict[int, MatchedMessage] = {}
        # By place, which takes half the time of names.
        for row in self._connection.execute(_MESSAGES, values):
            id_, session_id, role, created_at, text, platform_id, link_base, name, sender_id, origin, *rest = row
            at, opened = moment(created_at), link(link_base, platform_id)
            items[id_] = ShownMessage(id_, role, name, at, text, id_ in anchors, opened, sender_id, origin)
            if id_ in matched:
                found[id_] = MatchedMessage(session_id, role, at, text, opened, *rest)
        sessions = [
            FoundSession(
                session=one.session,
                bookend_start=tuple(map(items.__getitem__, one.first)),
                window=tuple(map(items.__getitem__, one.window)),
                bookend_end=tuple(map(items.__getitem__, one.last)),
                messages_before=one.before,
                messages_after=one.after,
            )
            for one in stretches
        ]
        return sessions, found

    def reading(self, opened: OpenedSession) -> FoundSession:
        """A session's first 20 and last 10 messages; `messages_after` counts what lies between."""
        session, ids = opened
        window = [*ids[:READ_FIRST], *ids[READ_FIRST:][-READ_LAST:]]
        [found], _ = self.shown([Stretch(session, 0, [], window, [], 0, len(ids) - len(window))])
        return replace(found, preview=_line(found.window[0].text[:PREVIEW_CHARS]) if window else None)

    def recent(self, page: slice) -> tuple[list[FoundSession], bool]:
        """The latest session of each lineage, newest first: those of a page, and whether there are more."""
        query = self._query
        spans = [list(map(bounded, span)) for span in (query.hidden.spans if query.hidden else ())]
        narrowed, wanted = session_filters(query)
        narrowed_later, _ = session_filters(query, "later", "place")
        within = _OUTSIDE if spans else ""
        if query.after is not None:
            within += " AND messages.created_at >= :after"
        if query.before is not None:
            within += " AND messages.created_at < :before"
        values = {**wanted, "scopes": self._scopes, "hidden": json.dumps(spans), "limit": page.stop + 1}
        rows = self._connection.execute(_browsing(within, narrowed, narrowed_later), values).fetchall()
        found = [FoundSession(session=session_of(row), preview=_line(row[-1])) for row in rows[page]]
        return found, len(rows) > page.stop


@lru_cache(maxsize=64)
def _browsing(within: str, narrowed: str, narrowed_later: str) -> str:
    """A session is listed when something of the time asked for and outside the model's window (`within`) may be shown,
    and no later session of its lineage is listed in its stead."""
    platforms = "JOIN addresses ON addresses.id = sessions.address_id" if "addresses." in narrowed else ""
    shown = f"SELECT 1 FROM messages WHERE {SHOWN}{within} AND messages.session_id ="
    # The scopes of the listed sessions stand for the table of all, so that their names are read once.
    return f"""
        SELECT {_SESSION}, ({_BEGINNING}) FROM (
            SELECT latest.id AS session_id, own.key AS key
            FROM scopes AS own CROSS JOIN sessions AS latest ON latest.id IN (
                SELECT sessions.id FROM sessions {platforms}
                WHERE sessions.scope_id = own.id AND EXISTS ({shown} sessions.id) {narrowed}
                AND (sessions.root_id IS NULL AND NOT EXISTS ({_CHILD}) OR NOT EXISTS (
                    SELECT 1 FROM sessions AS later CROSS JOIN addresses AS place ON place.id = later.address_id
                    WHERE COALESCE(later.root_id, later.id) = COALESCE(sessions.root_id, sessions.id)
                        AND (later.last_at, later.id) > (sessions.last_at, sessions.id)
                        AND {visible("later.scope_id")} {narrowed_later} AND EXISTS ({shown} later.id)
                ))
                ORDER BY sessions.last_at DESC LIMIT :limit
            )
            WHERE {visible("own.id")} ORDER BY latest.last_at DESC, latest.id DESC LIMIT :limit
        ) AS scopes
        CROSS JOIN sessions ON sessions.id = scopes.session_id
        CROSS JOIN addresses ON addresses.id = sessions.address_id
        ORDER BY sessions.last_at DESC, sessions.id DESC
    """


def link(base: str | None, platform_id: str | None) -> str | None:
    """Where a message can be opened on its platform; None where it has no such links, or the id is none of its own."""
    return f"{base}{platform_id}" if base and platform_id and platform_id.isdecimal() else None


def _line(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())
