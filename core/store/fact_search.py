"""Finds facts: by words, by the names they hold, by what they say of one thing; and what a curator should look at.

Every statement goes through the one scope predicate. Ranks nothing but by age and bm25; `core.facts.ranking` does.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from core.records import Fact
from core.store import fact_rows, rows
from core.store.scope_filter import scope_parameter, visible
from core.store.sqlite.chunk_terms import scoped
from core.store.sqlite.database import Database
from core.types import Scope

Scopes = frozenset[Scope]

CANDIDATES = 200
COMMON = 2_000
"""A word that is in more facts than this is not looked for where a rarer one is asked too."""
WORKING_LIFE = timedelta(days=14)
EPISODE_LIFE = timedelta(days=365)
DOUBTFUL = 0.25
"""Less trust than this is worth a look."""


class FactSearch:
    """Fills the role `core.facts.search_role.Lookup` over state.db."""

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
