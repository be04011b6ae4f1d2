"""Finds facts: by words, by the names they hold, by what they say of one thing; and what a curator should look at.

Every statement goes through the one scope predicate. Ranks nothing but by age and bm25; `core.facts.ranking` does.

Whose facts are to be looked after next, and whether the house is quiet. Only reads; nothing of what is said.
Which messages were read for facts: a mark for each session, moved in the transaction that keeps what was read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from core.store import fact_rows, rows
from core.store.fact_rows import Fact
from core.store.facts import Facts
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, message_of, scope_parameter, session_of, visible
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import write_facts
from core.store.sqlite.text_index import scoped
from core.types import Message, Scope, Session

Scopes = frozenset[Scope]

CANDIDATES = 200
COMMON = 2_000
"""A word that is in more facts than this is not looked for where a rarer one is asked too."""
WORKING_LIFE = timedelta(days=14)
EPISODE_LIFE = timedelta(days=365)
DOUBTFUL = 0.25
"""Less trust than this is worth a look."""


class FactSearch:
    """Fills the role `core.facts.search_role.FactSearch` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def candidates(
        self, terms: Sequence[str], keys: Sequence[str], scopes: Scopes, limit: int = CANDIDATES
    ) -> list[tuple[Fact, float, int]]:
        """Facts with any of `terms` (see `core.text.terms`) or of the names `keys` (see `core.text.names`), as (fact,
        text score, how many of the names). The text score is bm25 from above 0, 0 without a word in common. At
        most `limit`."""

        def work(connection: sqlite3.Connection) -> list[tuple[Fact, float, int]]:
            scores = _by_text(connection, terms, scopes, limit)
            names = _by_name(connection, keys, scopes, limit)
            chosen = sorted({*scores, *names}, key=lambda id: (-names.get(id, 0), -scores.get(id, 0.0), -id))[:limit]
            return [
                (fact, scores.get(fact.id, 0.0), names.get(fact.id, 0)) for fact in _facts(connection, chosen, scopes)
            ]

        return await self._database.read(work)

    async def of_entities(self, keys: Sequence[str], scopes: Scopes, limit: int = 10) -> list[Fact]:
        """The facts about all of these names together: open ones first, then the latest. With one name that is all that
        is known about it. The rarest name is asked first, so that a common one costs nothing."""

        def work(connection: sqlite3.Connection) -> list[Fact]:
            found: list[int] = []
            for scope in scopes:
                found += _together(connection, keys, scope, limit)
            facts = _facts(connection, found, scopes)
            return sorted(facts, key=lambda fact: (not fact.is_open, -(fact.last_at or fact.created_at).timestamp()))[
                :limit
            ]

        return await self._database.read(work)

    async def related(self, keys: Sequence[str], scopes: Scopes, limit: int = 10) -> list[tuple[str, int]]:
        """The names that stand in facts together with these, as (name as written, in how many), most first."""

        def work(connection: sqlite3.Connection) -> list[tuple[str, int]]:
            found = connection.execute(
                f"""
                WITH near AS (
                    SELECT fact_entities.fact_id AS fact_id, fact_entities.entity_id AS entity_id FROM entities
                    JOIN fact_entities ON fact_entities.entity_id = entities.id
                    WHERE {visible("entities.scope_id")} AND entities.name IN (SELECT value FROM json_each(:names))
                    ORDER BY fact_entities.fact_id DESC LIMIT :most
                )
                SELECT entities.shown AS shown, COUNT(DISTINCT near.fact_id) AS facts FROM near
                JOIN fact_entities ON fact_entities.fact_id = near.fact_id
                JOIN entities ON entities.id = fact_entities.entity_id
                WHERE {visible("entities.scope_id")} AND entities.name NOT IN (SELECT value FROM json_each(:names))
                GROUP BY entities.name ORDER BY facts DESC, entities.name LIMIT :limit
                """,
                {
                    "scopes": scope_parameter(scopes),
                    "names": json.dumps(list(keys)),
                    "limit": rows.bounded(limit),
                    "most": 1000,
                },
            )
            return [(row["shown"], row["facts"]) for row in found]

        return await self._database.read(work)

    async def conflicts(self, scopes: Scopes, limit: int = 50) -> list[list[Fact]]:
        """Open facts of one attribute that say different things, of different people or accounts, each group the latest
        first."""

        def work(connection: sqlite3.Connection) -> list[list[Fact]]:
            return _groups(
                connection,
                f"""
                SELECT {fact_rows.COLUMNS}, attribute AS grouped FROM facts
                WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND attribute IN (
                    SELECT attribute FROM facts
                    WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND attribute IS NOT NULL
                    GROUP BY attribute HAVING COUNT(DISTINCT value) > 1 LIMIT :limit
                )
                ORDER BY attribute, last_at DESC, id DESC
                """,
                scopes,
                limit,
            )

        return await self._database.read(work)

    async def replaced(self, attribute: str, scopes: Scopes, limit: int = 10) -> list[Fact]:
        """All that was ever said of one attribute, the latest first."""
        return await self._listed(
            f"""
            SELECT {fact_rows.COLUMNS} FROM facts WHERE {visible("facts.scope_id")} AND attribute = :attribute
            ORDER BY closed_at IS NOT NULL, COALESCE(valid_from, created_at) DESC, id DESC LIMIT :limit
            """,
            scopes,
            limit,
            attribute=attribute,
        )

    async def duplicates(self, scopes: Scopes, limit: int = 50) -> list[list[Fact]]:
        """Open facts of one person that have the same attribute and value, each group the latest first: two tellings of
        one thing. Those that are only alike in their words are for the curator to tell."""

        def work(connection: sqlite3.Connection) -> list[list[Fact]]:
            return _groups(
                connection,
                f"""
                SELECT {fact_rows.COLUMNS}, scope_id || ' ' || account || ' ' || attribute || ' ' || value AS grouped
                FROM facts WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND value <> ''
                    AND (scope_id, account, attribute, value) IN (
                        SELECT scope_id, account, attribute, value FROM facts
                        WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND attribute IS NOT NULL
                        GROUP BY scope_id, account, attribute, value HAVING COUNT(*) > 1 LIMIT :limit
                    )
                ORDER BY grouped, last_at DESC, id DESC
                """,
                scopes,
                limit,
            )

        return await self._database.read(work)

    async def stale(self, scopes: Scopes, now: datetime, limit: int = 50) -> list[Fact]:
        """Open facts, none of them pinned, that are likely over or doubtful and not noted so since they were said,
        oldest first: what held until a moment that has passed, what mattered for some days only, what happened over a
        year ago, what was called wrong."""
        return await self._listed(
            f"""
            SELECT {fact_rows.COLUMNS} FROM facts
            WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND is_pinned = 0 AND (
                valid_to <= :now OR trust < :doubtful
                OR (kind = 'working' AND last_at < :working) OR (kind = 'episode' AND last_at < :episode)
            ) AND NOT EXISTS (
                SELECT 1 FROM fact_changes
                WHERE fact_changes.fact_id = facts.id AND action = 'flag' AND at >= facts.last_at
            )
            ORDER BY last_at, id LIMIT :limit
            """,
            scopes,
            limit,
            now=rows.timestamp(now),
            doubtful=DOUBTFUL,
            working=rows.timestamp(now - WORKING_LIFE),
            episode=rows.timestamp(now - EPISODE_LIFE),
        )

    async def of_messages(self, message_ids: Sequence[int], scopes: Scopes) -> list[Fact]:
        """The facts that were taken from these messages."""
        return await self._listed(
            f"""
            SELECT {fact_rows.COLUMNS} FROM facts WHERE {visible("facts.scope_id")}
                AND message_id IN (SELECT value FROM json_each(:messages)) ORDER BY id LIMIT :limit
            """,
            scopes,
            -1,
            messages=json.dumps([rows.bounded(message_id) for message_id in message_ids]),
        )

    async def _listed(self, statement: str, scopes: Scopes, limit: int, **values: object) -> list[Fact]:
        bound = {"scopes": scope_parameter(scopes), "limit": rows.bounded(limit), **values}
        return await self._database.read(
            lambda connection: [fact_rows.fact_of(row) for row in connection.execute(statement, bound)]
        )


def _by_text(connection: sqlite3.Connection, terms: Sequence[str], scopes: Scopes, limit: int) -> dict[int, float]:
    """Text scores by fact id."""
    scope_ids = [
        int(row["id"])
        for row in connection.execute(
            f"SELECT id FROM scopes WHERE {visible('scopes.id')}", {"scopes": scope_parameter(scopes)}
        )
    ]
    words = _telling(connection, [scoped(scope_id, term) for scope_id in scope_ids for term in terms])
    if not words:
        return {}
    found = connection.execute(
        """
        SELECT rowid AS id, rank AS score FROM facts_fts WHERE facts_fts MATCH :words ORDER BY rank LIMIT :limit
        """,
        {"words": " OR ".join(f'"{word}"' for word in words), "limit": limit},
    )
    # A word that is in over half of all facts has a negative weight in FTS5's bm25; it still counts a little.
    return {row["id"]: max(1e-6, -row["score"]) for row in found}


def _telling(connection: sqlite3.Connection, words: Sequence[str]) -> list[str]:
    """The words that are in some fact, without those that are in very many, unless there are only such: then the rarest
    of them. What is everywhere tells nothing, and to rank by it costs by the number of facts."""
    found = {
        row["term"]: row["doc"]
        for row in connection.execute(
            "SELECT term, doc FROM facts_vocabulary WHERE term IN (SELECT value FROM json_each(:words))",
            {"words": json.dumps(list(words))},
        )
    }
    rare = [word for word, count in found.items() if count <= COMMON]
    return rare or sorted(found, key=found.__getitem__)[:1]


def _by_name(connection: sqlite3.Connection, keys: Sequence[str], scopes: Scopes, limit: int) -> dict[int, int]:
    """How many of the names, by fact id; of a name with very many facts the latest."""
    found: dict[int, int] = {}
    entities = connection.execute(
        f"""
        SELECT id FROM entities WHERE {visible("entities.scope_id")}
            AND name IN (SELECT value FROM json_each(:names)) ORDER BY facts LIMIT 20
        """,
        {"scopes": scope_parameter(scopes), "names": json.dumps(list(keys))},
    ).fetchall()
    for entity in entities:
        for row in connection.execute(
            "SELECT fact_id FROM fact_entities WHERE entity_id = :entity ORDER BY fact_id DESC LIMIT :limit",
            {"entity": entity["id"], "limit": limit},
        ):
            found[row["fact_id"]] = found.get(row["fact_id"], 0) + 1
    return found


def _together(connection: sqlite3.Connection, keys: Sequence[str], scope: Scope, limit: int) -> list[int]:
    """The facts of one scope about all of the names: open ones first, each the latest first."""
    names = list(dict.fromkeys(key for key in keys if key))
    entities = connection.execute(
        f"""
        SELECT id FROM entities WHERE {visible("entities.scope_id")}
            AND name IN (SELECT value FROM json_each(:names)) ORDER BY facts
        """,
        {"scopes": scope_parameter((scope,)), "names": json.dumps(names)},
    ).fetchall()
    if not names or len(entities) < len(names):
        return []
    values = {"rarest": entities[0]["id"], "others": json.dumps([row["id"] for row in entities[1:]])}
    found: list[int] = []
    for is_open in (True, False):
        if len(found) < limit:
            asked = {**values, "is_open": is_open, "limit": limit - len(found)}
            found += [row["fact_id"] for row in connection.execute(_TOGETHER, asked)]
    return found


_TOGETHER = """
SELECT first.fact_id AS fact_id FROM fact_entities AS first CROSS JOIN facts ON facts.id = first.fact_id
WHERE first.entity_id = :rarest AND (facts.closed_at IS NULL) = :is_open AND NOT EXISTS (
    SELECT 1 FROM json_each(:others) AS other WHERE NOT EXISTS (
        SELECT 1 FROM fact_entities AS second
        WHERE second.entity_id = other.value AND second.fact_id = first.fact_id
    )
)
ORDER BY first.fact_id DESC LIMIT :limit
"""
"""The facts of the rarest name that hold the others too, the latest first; the tables are read in this order."""


def _facts(connection: sqlite3.Connection, fact_ids: Sequence[int], scopes: Scopes) -> list[Fact]:
    """The facts of these ids, in their order."""
    found = {
        row["id"]: fact_rows.fact_of(row)
        for row in connection.execute(
            f"""
            SELECT {fact_rows.COLUMNS} FROM facts
            WHERE facts.id IN (SELECT value FROM json_each(:ids)) AND {visible("facts.scope_id")}
            """,
            {"ids": json.dumps(list(fact_ids)), "scopes": scope_parameter(scopes)},
        )
    }
    return [found[fact_id] for fact_id in fact_ids if fact_id in found]


def _groups(connection: sqlite3.Connection, statement: str, scopes: Scopes, limit: int) -> list[list[Fact]]:
    groups: dict[str, list[Fact]] = {}
    for row in connection.execute(statement, {"scopes": scope_parameter(scopes), "limit": rows.bounded(limit)}):
        groups.setdefault(row["grouped"], []).append(fact_rows.fact_of(row))
    return list(groups.values())


class FactRota:
    """Fills the role `core.facts.curator_role.FactRota` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def following(self, scope: Scope | None) -> Scope | None:
        """The scope with open facts that comes after this one (None: the first); None after the last."""

        def work(connection: sqlite3.Connection) -> Scope | None:
            row = connection.execute(
                """
                SELECT key FROM scopes WHERE key > :after AND EXISTS (
                    SELECT 1 FROM facts WHERE facts.scope_id = scopes.id AND closed_at IS NULL
                ) ORDER BY key LIMIT 1
                """,
                {"after": scope.key if scope else ""},
            ).fetchone()
            return None if row is None else Scope(key=row["key"])

        return await self._database.read(work)

    async def last_change(self) -> int:
        """Counts up whenever a fact is learned or changed."""
        return await self._database.read(
            lambda connection: int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM fact_changes").fetchone()[0])
        )

    async def past(self, scope: Scope) -> list[tuple[int, str, datetime]]:
        """When each fact of a scope was doubted last, and when a change of it was taken back, as (fact, ``flag`` or
        ``undo``, when)."""

        def work(connection: sqlite3.Connection) -> list[tuple[int, str, datetime]]:
            found = connection.execute(
                f"""
                SELECT fact_id, action, MAX(at) AS at FROM fact_changes
                WHERE {visible("fact_changes.scope_id")} AND action IN ('flag', 'undo') GROUP BY fact_id, action
                """,
                {"scopes": scope_parameter(frozenset((scope,)))},
            )
            return [(row["fact_id"], row["action"], rows.moment(row["at"])) for row in found]

        return await self._database.read(work)

    async def last_said_at(self) -> datetime | None:
        """When somebody was last there: when a message came, was stored or was answered, also incognito; None when
        nobody ever was."""

        def work(connection: sqlite3.Connection) -> datetime | None:
            row = connection.execute(
                """
                SELECT MAX(at) FROM (
                    SELECT created_at AS at FROM messages WHERE id = (SELECT MAX(id) FROM messages)
                    UNION ALL SELECT MAX(at) FROM answered
                    UNION ALL SELECT MAX(received_at) FROM inbox
                )
                """
            ).fetchone()
            return rows.maybe_moment(row[0])

        return await self._database.read(work)


_OWN = """
messages.role = 'user' AND messages.kind = 'chat' AND messages.text <> '' AND NOT messages.sender_is_nobody
    AND messages.origin = 'typed' AND messages.created_at >= :since
"""
"""What a person has said in earnest."""
_NEW = "messages.id > COALESCE((SELECT message_id FROM fact_marks WHERE session_id = messages.session_id), 0)"
_EDITED = "messages.id IN (SELECT message_id FROM fact_rereads)"


class FactBacklog:
    """Fills the role `core.facts.backlog_role.FactBacklog` over state.db; `facts` learns."""

    def __init__(self, database: Database, facts: Facts) -> None:
        self._database = database
        self._facts = facts

    async def behind(self, since: datetime) -> Sequence[Session]:
        """The sessions with messages since a moment that were not read, but imported ones; open or ended."""

        def work(connection: sqlite3.Connection) -> list[Session]:
            found = connection.execute(
                f"""
                {SESSIONS} WHERE sessions.scope_id IN (SELECT id FROM scopes) AND sessions.last_at >= :since
                    AND sessions.end_reason IS NOT 'import' AND EXISTS (
                        SELECT 1 FROM messages
                        WHERE messages.session_id = sessions.id AND {_OWN} AND ({_NEW} OR {_EDITED})
                    )
                ORDER BY sessions.id
                """,
                {"since": rows.timestamp(since)},
            )
            return [session_of(row) for row in found]

        return await self._database.read(work)

    async def unread(self, session_id: int, since: datetime, limit: int) -> Sequence[Message]:
        """Those of a session, oldest first."""

        def work(connection: sqlite3.Connection) -> list[Message]:
            found = connection.execute(
                f"""
                SELECT {MESSAGE_COLUMNS} FROM messages
                WHERE messages.session_id = :session AND {_OWN} AND {_NEW}
                UNION
                SELECT {MESSAGE_COLUMNS} FROM messages
                WHERE messages.session_id = :session AND {_OWN} AND {_EDITED}
                ORDER BY id LIMIT :limit
                """,
                {"session": session_id, "since": rows.timestamp(since), "limit": limit},
            )
            return [message_of(row) for row in found]

        return await self._database.read(work)

    async def keep(self, read: Sequence[Message], facts: Sequence[tuple[Fact, str]]) -> Sequence[Fact]:
        """Learns and marks in one transaction. Of what was edited meanwhile nothing is learned; it is read again. Of
        what another process has read meanwhile nothing is learned either."""

        def work(connection: sqlite3.Connection) -> list[Fact]:
            unread = _unread(connection, [message.id for message in read])
            for message in read:
                connection.execute(
                    """
                    INSERT INTO fact_marks (session_id, message_id) VALUES (:session, :message)
                    ON CONFLICT (session_id) DO UPDATE SET message_id = MAX(message_id, excluded.message_id)
                    """,
                    {"session": message.session_id, "message": message.id},
                )
                connection.execute(
                    """
                    DELETE FROM fact_rereads WHERE message_id = :message
                        AND :text = (SELECT text FROM messages WHERE id = :message)
                    """,
                    {"message": message.id, "text": message.text},
                )
            return [self._facts.take(connection, fact, heard) for fact, heard in facts if fact.message_id in unread]

        return await write_facts(self._database, work)

    async def source(self, message_id: int) -> tuple[Scope, str] | None:
        """Whose a message is and on which platform it was said; None when it is gone."""

        def work(connection: sqlite3.Connection) -> tuple[Scope, str] | None:
            row = connection.execute(
                f"{SESSIONS} WHERE sessions.id = (SELECT session_id FROM messages WHERE id = :id)", {"id": message_id}
            ).fetchone()
            if row is None:
                return None
            session = session_of(row)
            return session.scope, session.address.platform

        return await self._database.read(work)


def _unread(connection: sqlite3.Connection, message_ids: Sequence[int]) -> set[int]:
    """Those of these messages that have not been read yet."""
    found = connection.execute(
        f"SELECT id FROM messages WHERE id IN (SELECT value FROM json_each(:ids)) AND ({_NEW} OR {_EDITED})",
        {"ids": json.dumps(list(message_ids))},
    )
    return {row["id"] for row in found}
