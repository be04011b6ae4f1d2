"""Finds facts by words, names and attributes, what contradicts what, and messages not yet read for facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from core.store import rows
from core.store.engine import Connection, Row
from core.store.epoch import taken
from core.store.facts import COLUMNS, Fact, Facts, Scopes, fact_of
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, message_of, scope_parameter, session_of, visible
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value
from core.store.sqlite.fact_index import text_scores, write_facts
from core.types import ErasureEpoch, Message, Scope, Session

CANDIDATES = 200

_NAMED = f"""
SELECT fact_entities.fact_id AS fact_id, COUNT(*) AS names FROM entities
JOIN fact_entities ON fact_entities.entity_id = entities.id
WHERE {visible("entities.scope_id")} AND {in_list("entities.name", "names")}
GROUP BY fact_entities.fact_id
"""
"""How many of the names are in which fact."""
_BY_NAME = f"{_NAMED} ORDER BY names DESC, fact_id DESC LIMIT :limit"
_TOGETHER = f"""
SELECT {COLUMNS} FROM facts WHERE id IN (SELECT fact_id FROM ({_NAMED}) WHERE names = :count)
ORDER BY closed_at IS NOT NULL, last_at DESC, id DESC LIMIT :limit
"""
_RELATED = f"""
SELECT entities.shown AS shown, COUNT(*) AS facts FROM ({_NAMED}) AS near
JOIN fact_entities ON fact_entities.fact_id = near.fact_id JOIN entities ON entities.id = fact_entities.entity_id
WHERE NOT {in_list("entities.name", "names")}
GROUP BY entities.name ORDER BY facts DESC, entities.name LIMIT :limit
"""
_CONFLICTS = f"""
SELECT {COLUMNS} FROM facts
WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND attribute IN (
    SELECT attribute FROM facts
    WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND attribute IS NOT NULL
    GROUP BY attribute HAVING COUNT(DISTINCT value) > 1 LIMIT :limit
)
ORDER BY attribute, last_at DESC, id DESC
"""
_BY_IDS = f"SELECT {COLUMNS} FROM facts WHERE {in_list('facts.id', 'ids')} AND {visible('facts.scope_id')}"
_REPLACED = f"""
SELECT {COLUMNS} FROM facts WHERE {visible("facts.scope_id")} AND attribute = :attribute
ORDER BY closed_at IS NOT NULL, COALESCE(valid_from, created_at) DESC, id DESC LIMIT :limit
"""
_JUDGED = f"""
SELECT fact_id, MAX(at) AS at FROM fact_changes
WHERE {visible("scope_id")} AND {in_list("fact_id", "ids")} AND action IN ('trust', 'correct', 'pin', 'unpin')
GROUP BY fact_id
"""


class FactSearch:
    """Reads the facts of scopes in state.db. Ranks nothing but by age and bm25; `core.facts.ranking` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def candidates(
        self, terms: Sequence[str], keys: Sequence[str], scopes: Scopes, limit: int = CANDIDATES
    ) -> list[tuple[Fact, float, int]]:
        """At most `limit` (fact, bm25 from above 0 or 0, how many of the names `keys`) with any of the terms or
        names."""

        def work(connection: Connection) -> list[tuple[Fact, float, int]]:
            values = {"scopes": scope_parameter(scopes), "names": list_value(keys), "limit": limit}
            own = connection.execute(f"SELECT id FROM scopes WHERE {visible('scopes.id')}", values)
            scores = text_scores(connection, terms, [int(row["id"]) for row in own], limit)
            names = {row["fact_id"]: row["names"] for row in connection.execute(_BY_NAME, values)}
            chosen = sorted({*scores, *names}, key=lambda id: (-names.get(id, 0), -scores.get(id, 0.0), -id))[:limit]
            found = map(fact_of, connection.execute(_BY_IDS, values | {"ids": list_value(chosen)}))
            return [(fact, scores.get(fact.id, 0.0), names.get(fact.id, 0)) for fact in found]

        return await self._database.read(work)

    async def of_entities(self, keys: Sequence[str], scopes: Scopes, limit: int = 10) -> list[Fact]:
        """The facts about all of these names together: open ones first, then the latest."""
        names = {key for key in keys if key}
        found = await self._select(_TOGETHER, scopes, limit, names=list_value(names), count=len(names))
        return [fact_of(row) for row in found]

    async def related(self, keys: Sequence[str], scopes: Scopes, limit: int = 10) -> list[tuple[str, int]]:
        """The names that stand in facts together with these, as (name as written, in how many), most first."""
        found = await self._select(_RELATED, scopes, limit, names=list_value(keys))
        return [(row["shown"], row["facts"]) for row in found]

    async def conflicts(self, scopes: Scopes, limit: int = 50) -> list[list[Fact]]:
        """Open facts of one attribute that say different things, each group the latest first."""
        found = await self._select(_CONFLICTS, scopes, limit)
        return [list(map(fact_of, group)) for _, group in groupby(found, lambda row: row["attribute"])]

    async def replaced(self, attribute: str, scopes: Scopes, limit: int = 10) -> list[Fact]:
        """All that was ever said of one attribute, the latest first."""
        return [fact_of(row) for row in await self._select(_REPLACED, scopes, limit, attribute=attribute)]

    async def judged_at(self, fact_ids: Sequence[int], scopes: Scopes) -> dict[int, datetime]:
        """When a person last judged, corrected or pinned each of these facts, by id."""
        found = await self._select(_JUDGED, scopes, ids=list_value(fact_ids))
        return {row["fact_id"]: rows.moment(row["at"]) for row in found}

    async def _select(self, statement: str, scopes: Scopes, limit: int = -1, **values: object) -> list[Row]:
        bound = {"scopes": scope_parameter(scopes), "limit": rows.bounded(limit), **values}
        return await self._database.fetch_all(statement, bound)


_OWN = """
messages.role = 'user' AND messages.kind = 'chat' AND messages.text <> '' AND NOT messages.sender_is_nobody
    AND messages.origin = 'typed' AND messages.created_at >= :since
"""
"""What a person has said in earnest."""
_NEW = "messages.id > COALESCE((SELECT message_id FROM fact_marks WHERE session_id = messages.session_id), 0)"
_EDITED = "messages.id IN (SELECT message_id FROM fact_rereads)"
_BEHIND = f"""
{SESSIONS} WHERE sessions.scope_id IN (SELECT id FROM scopes) AND sessions.last_at >= :since
    AND sessions.end_reason IS NOT 'import' AND EXISTS (
        SELECT 1 FROM messages WHERE messages.session_id = sessions.id AND {_OWN} AND ({_NEW} OR {_EDITED})
    )
ORDER BY sessions.id
"""
_UNREAD = f"""
SELECT {MESSAGE_COLUMNS} FROM messages WHERE messages.session_id = :session AND {_OWN} AND {_NEW}
UNION
SELECT {MESSAGE_COLUMNS} FROM messages WHERE messages.session_id = :session AND {_OWN} AND {_EDITED}
ORDER BY id LIMIT :limit
"""
_MARK = """
INSERT INTO fact_marks (session_id, message_id) VALUES (:session, :message)
ON CONFLICT (session_id) DO UPDATE SET message_id = MAX(message_id, excluded.message_id)
"""
_REREAD = """
DELETE FROM fact_rereads
WHERE message_id = :message AND :text = (SELECT text FROM messages WHERE id = :message)
"""


class FactBacklog:
    """Which messages were read for facts: a mark for each session, moved in the transaction in which `facts` learns."""

    def __init__(self, database: Database, facts: Facts) -> None:
        self._database = database
        self._facts = facts

    async def behind(self, since: datetime) -> Sequence[Session]:
        """The sessions with messages since a moment that were not read, but imported ones; open or ended."""
        values = {"since": rows.timestamp(since)}
        return [session_of(row) for row in await self._database.fetch_all(_BEHIND, values)]

    async def unread(
        self, session: Session, since: datetime, limit: int
    ) -> tuple[ErasureEpoch | None, Sequence[Message]]:
        """Those of a session, oldest first, as of an epoch; none while something there is being erased."""

        def work(connection: Connection) -> tuple[ErasureEpoch | None, Sequence[Message]]:
            epoch = taken(connection, scope_parameter(frozenset((session.scope,))))
            return epoch, _unread(connection, session.id, since, limit) if epoch else ()

        return await self._database.read(work)

    async def keep(
        self, read: Sequence[Message], facts: Sequence[tuple[Fact, str]], since: datetime, limit: int
    ) -> Sequence[Message]:
        """Learns and marks in one transaction; nothing of what was edited or read by another process meanwhile. Returns
        what is `unread` then."""

        def work(connection: Connection) -> Sequence[Message]:
            found = connection.execute(
                f"SELECT id FROM messages WHERE {in_list('id', 'ids')} AND ({_NEW} OR {_EDITED})",
                {"ids": list_value(message.id for message in read)},
            )
            unread = {row["id"] for row in found}
            for message in read:
                connection.execute(_MARK, {"session": message.session_id, "message": message.id})
                connection.execute(_REREAD, {"message": message.id, "text": message.text})
            for fact, heard in facts:
                if fact.message_id in unread:
                    self._facts.take(connection, fact, heard)
            return _unread(connection, read[0].session_id, since, limit)

        return await write_facts(self._database, work)

    async def source(self, message_id: int) -> tuple[Scope, str] | None:
        """Whose a message is and on which platform it was said; None when it is gone."""
        statement = f"{SESSIONS} WHERE sessions.id = (SELECT session_id FROM messages WHERE id = :id)"
        row = await self._database.fetch_one(statement, {"id": message_id})
        if row is None:
            return None
        session = session_of(row)
        return session.scope, session.address.platform


def _unread(connection: Connection, session_id: int, since: datetime, limit: int) -> list[Message]:
    values = {"session": session_id, "since": rows.timestamp(since), "limit": limit}
    return [message_of(row) for row in connection.execute(_UNREAD, values)]
