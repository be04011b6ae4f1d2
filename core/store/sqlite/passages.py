"""What recall shows of a session: windows, first and last messages, counts, previews, recent sessions.

Only what people may see (kind chat, user and assistant, not empty); every statement goes through the scope predicate.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any

from core.store import rows
from core.store.query import READ_FIRST, READ_LAST, FoundSession, Hit, SearchQuery, ShownMessage
from core.store.rows import SHOWN_COLUMNS, SHOWN_SESSION, Connection, bounded, moment, session_of, visible
from core.store.sqlite.schema import SHOWN
from core.store.sqlite.text_index import session_filters
from core.text.normalize import shortened
from core.types import Session

BOOKEND = 3
PREVIEW_CHARS = 160
QUOTED_SHOWN = 100
WINDOW_MAX = 100
BROWSE_MAX = 100
ENDLESS = 2**63 - 1

_PLACES = """
    CROSS JOIN addresses ON addresses.id = sessions.address_id CROSS JOIN scopes ON scopes.id = sessions.scope_id
"""
PLATFORM_ID = "COALESCE(CASE messages.origin WHEN 'job' THEN NULL ELSE messages.external_id END, messages.posted_id)"
"""Under which id the platform has a message: what a person said came with one, an answer got one."""
_ITEM = f"""messages.id, messages.role, messages.sender_name, messages.sender_id, messages.origin, messages.created_at,
messages.text, {PLATFORM_ID}, messages.quoted"""
_OF_SESSION = f"FROM messages WHERE messages.session_id = :session AND {SHOWN}"

_OPEN = "messages.id NOT BETWEEN :hidden_first AND :hidden_last"
"""Outside of the model's window."""

_OUTSIDE = """ AND NOT EXISTS (
    SELECT 1 FROM json_each(:hidden) AS span WHERE json_extract(span.value, '$[0]') = messages.session_id
    AND messages.id BETWEEN json_extract(span.value, '$[1]') AND json_extract(span.value, '$[2]')
)"""
_PARTS = f"""
    SELECT id FROM sessions WHERE id = :session OR COALESCE(root_id, id) = :root
        AND NOT is_delegated AND {visible("sessions.scope_id")}
"""
_ENDS = f"SELECT messages.id FROM messages WHERE messages.session_id = parts.id AND {SHOWN} {_OUTSIDE} ORDER BY 1 {{0}}"
_AT_THE_END = f"""{_ITEM} FROM (
    SELECT id FROM parts ORDER BY ({_ENDS} LIMIT 1) {{0}} NULLS LAST LIMIT :bookend
) AS parts CROSS JOIN messages ON messages.id IN ({_ENDS} LIMIT :bookend) ORDER BY messages.id {{0}} LIMIT :bookend"""
"""Of so many parts as messages: a conversation without end has hundreds."""
_AROUND = f"""
    WITH parts (id) AS ({_PARTS})
    SELECT * FROM (SELECT 0, {_AT_THE_END.format("")})
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
    SELECT * FROM (SELECT 4, {_AT_THE_END.format("DESC")})
    UNION ALL
    SELECT 5, (SELECT COUNT(*) {_OF_SESSION} AND messages.id < :anchor AND {_OPEN} AND :is_counted),
        (SELECT COUNT(*) {_OF_SESSION} AND messages.id > :anchor AND {_OPEN} AND :is_counted),
        NULL, NULL, NULL, NULL, NULL, NULL, NULL
"""
"""By part: first messages of the lineage, those before the anchor in its session, the anchor, those after it, last
messages of the lineage; and how many there are before and after the anchor. One statement, because each costs as much
as reading ten rows."""
_COUNT = f"""
    WITH parts (id) AS ({_PARTS})
    SELECT COUNT(*) FROM parts CROSS JOIN messages ON messages.session_id = parts.id WHERE {SHOWN} {_OUTSIDE}
"""
_MATCHING = f"""
    SELECT {SHOWN_SESSION}, messages.id, messages.role, messages.created_at, messages.external_id, messages.text,
        messages.tools, messages.quoted, messages.sender_name, {PLATFORM_ID},
        (SELECT link_base FROM addresses WHERE id = messages.address_id)
    FROM json_each(:ids) CROSS JOIN messages ON messages.id = json_each.value
    CROSS JOIN sessions ON sessions.id = messages.session_id {_PLACES}
    WHERE {visible("sessions.scope_id")}
"""
_CHILD = "SELECT 1 FROM sessions AS child WHERE child.parent_id = sessions.id"
_SESSION_BY_ID = f"""
    SELECT {SHOWN_SESSION} FROM sessions {_PLACES} WHERE sessions.id = :id AND {visible("sessions.scope_id")}
"""
_SESSION_OF_MESSAGE = f"""
    SELECT {SHOWN_SESSION} FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id {_PLACES}
    WHERE messages.id = :id AND messages.kind = 'chat' AND {visible("sessions.scope_id")}
"""
_FIRST = f"""
    SELECT messages.id FROM messages WHERE messages.session_id = sessions.id AND {SHOWN} ORDER BY messages.id LIMIT 1
"""


class Passages:
    """What may be shown of sessions to whoever asks `query`."""

    def __init__(self, connection: Connection, query: SearchQuery) -> None:
        self._connection = connection
        self._query = query
        self._scopes = rows.scope_parameter(query.scopes)

    def matching(
        self, ids: Iterable[int], shown: Collection[int]
    ) -> tuple[list[tuple[int, Sequence[Any]]], dict[int, Session]]:
        """(session id, (id, role, time, external id, text, tools, quoted, sender, link)) of the messages, and their
        sessions among `shown`."""
        messages: list[tuple[int, Sequence[Any]]] = []
        sessions: dict[int, Session] = {}
        for row in self._connection.execute(_MATCHING, {"ids": json.dumps(list(ids)), "scopes": self._scopes}):
            if row[0] in shown and row[0] not in sessions:
                sessions[row[0]] = session_of(row[:SHOWN_COLUMNS])
            *fields, platform_id, link_base = row[SHOWN_COLUMNS:]
            messages.append((row[0], [*fields, link(link_base, platform_id)]))
        return messages, sessions

    def session(self, id_: int, *, is_of_message: bool = False) -> Session | None:
        """A session, or that of a message, that may be shown; None for one of another scope as for one that is not
        there."""
        statement = _SESSION_OF_MESSAGE if is_of_message else _SESSION_BY_ID
        row = self._connection.execute(statement, {"id": bounded(id_), "scopes": self._scopes}).fetchone()
        return None if row is None else session_of(row[:SHOWN_COLUMNS])

    def surroundings(
        self,
        session: Session,
        anchor: int,
        bookend: int = BOOKEND,
        matches: tuple[Hit, ...] = (),
        score: float = 0.0,
    ) -> FoundSession:
        """The window around the `anchor` in its session, counts of what lies outside, and `bookend` of the first and
        last messages of the lineage; for a turn the window alone: to count the messages of a long session takes as long
        as to find it."""
        is_counted = not self._query.is_turn
        window_size = max(0, min(self._query.window, WINDOW_MAX))
        values: dict[str, object] = {"session": session.id, "anchor": anchor, "window": window_size}
        values["is_counted"] = is_counted
        values |= {"bookend": bookend if is_counted else 0, **self._of_lineage(session)}
        # Beyond the last id where none of the session is in the model's window.
        values |= {"hidden_first": ENDLESS, "hidden_last": ENDLESS}
        for session_id, first_id, last_id in self._query.hidden:
            if session_id == session.id:
                values |= {"hidden_first": bounded(first_id), "hidden_last": bounded(last_id)}
        *parted, counts = self._connection.execute(_AROUND, values).fetchall()
        parts: tuple[list[ShownMessage], ...] = ([], [], [], [], [])
        # In a short session most messages are in more than one part.
        known: dict[int, ShownMessage] = {}
        for row in parted:
            # By place, which takes half the time of names.
            part, id_, role, sender, sender_id, origin, at, text, platform_id, quoted = row
            if id_ not in known:
                opened = link(session.link_base, platform_id)
                shown = ShownMessage(id_, role, sender, moment(at), text, id_ == anchor, opened, sender_id, origin)
                known[id_] = shown if quoted is None else shown._replace(quoted=answered(quoted))
            parts[part].append(known[id_])
        first, before, here, after, last = parts
        window = (*before[::-1], *here, *after)
        return FoundSession(
            session=session,
            score=score,
            matches=matches,
            bookend_start=tuple(first),
            window=window,
            bookend_end=tuple(last[::-1]),
            messages_before=max(0, counts[1] - len(before)),
            messages_after=max(0, counts[2] - len(after)),
        )

    def reading(self, session: Session) -> FoundSession:
        """The first 20 and last 10 messages of a session's lineage; `messages_after` counts what lies between."""
        whole = self.surroundings(session, 0, READ_FIRST)
        first = whole.bookend_start
        window = (*first, *(item for item in whole.bookend_end[-READ_LAST:] if item not in first))
        values = {"session": session.id, **self._of_lineage(session)}
        return FoundSession(
            session=session,
            preview=" ".join(first[0].text[:PREVIEW_CHARS].split()) if first else None,
            window=window,
            messages_after=self._connection.execute(_COUNT, values).fetchone()[0] - len(window),
        )

    def _of_lineage(self, session: Session) -> dict[str, object]:
        spans = [list(map(bounded, span)) for span in self._query.hidden]
        return {"root": session.root_id, "scopes": self._scopes, "hidden": json.dumps(spans)}

    def recent(self, page: slice) -> tuple[list[FoundSession], bool]:
        """The latest session of each lineage, newest first: those of a page, and whether there are more."""
        query = self._query
        spans = [list(map(bounded, span)) for span in query.hidden]
        narrowed, wanted = session_filters(query)
        narrowed_later, _ = session_filters(query, "later", "place")
        within = _OUTSIDE if spans else ""
        if query.after is not None:
            within += " AND messages.created_at >= :after"
        if query.before is not None:
            within += " AND messages.created_at < :before"
        values = {**wanted, "scopes": self._scopes, "hidden": json.dumps(spans), "limit": page.stop + 1}
        statement = _browsing(within, narrowed, narrowed_later)
        found: list[Sequence[Any]] = []
        for scope in query.scopes:
            found += self._connection.execute(statement, {**values, "scope": scope}).fetchall()
        if len(query.scopes) > 1:
            found.sort(key=lambda row: (row[7], row[0]), reverse=True)
        shown = [(session_of(row[:SHOWN_COLUMNS]), " ".join(row[-1].split())) for row in found[page]]
        return [FoundSession(session=session, preview=preview) for session, preview in shown], len(found) > page.stop


@lru_cache(maxsize=64)
def _browsing(within: str, narrowed: str, narrowed_later: str) -> str:
    """The sessions of one `:scope`, in which an index has their order. One is listed when something of the time asked
    for and outside the model's window (`within`) may be shown, and no later session of its lineage is listed in its
    stead."""
    shown = f"SELECT 1 FROM messages WHERE {SHOWN}{within} AND messages.session_id ="
    return f"""
        SELECT {SHOWN_SESSION}, substr(messages.text, 1, {PREVIEW_CHARS})
        FROM scopes CROSS JOIN sessions ON sessions.scope_id = scopes.id
        CROSS JOIN addresses ON addresses.id = sessions.address_id
        CROSS JOIN messages ON messages.id = ({_FIRST})
        WHERE scopes.key = :scope {narrowed} {f"AND EXISTS ({shown} sessions.id)" if within else ""}
            AND (sessions.root_id IS NULL AND NOT EXISTS ({_CHILD}) OR NOT EXISTS (
                SELECT 1 FROM sessions AS later CROSS JOIN addresses AS place ON place.id = later.address_id
                WHERE COALESCE(later.root_id, later.id) = COALESCE(sessions.root_id, sessions.id)
                    AND (later.last_at, later.id) > (sessions.last_at, sessions.id)
                    AND {visible("later.scope_id")} {narrowed_later} AND EXISTS ({shown} later.id)
            ))
        ORDER BY sessions.last_at DESC, sessions.id DESC LIMIT :limit
    """


def answered(encoded: str | None) -> str | None:
    """What a message answers, or whose words it passes on, shortly."""
    quoted = rows.load_quoted(encoded)
    if quoted is None:
        return None
    who = "Mneme" if quoted.is_ours else quoted.name
    if quoted.kind == "forward":
        who = f"forwarded from {who}" if who else "forwarded"
    return shortened(": ".join(filter(None, (who, quoted.text))), QUOTED_SHOWN) or None


def link(base: str | None, platform_id: str | None) -> str | None:
    """Where a message can be opened on its platform; None where it has no such links, or the id is none of its own."""
    return f"{base}{platform_id}" if base and platform_id and platform_id.isdecimal() else None
