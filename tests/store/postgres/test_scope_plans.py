"""Plans of the server: searches read only the scopes that a person may see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from core.search.recall import Recall
from core.store.engine import Connection
from core.store.facts.facts import Facts
from core.store.postgres.connection import StoreConnection, StoreCursor
from core.store.postgres.database import Database
from core.text.terms import query_terms
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query
from tests.fixtures.stored_history import ANA, BEN, ROOM, StoredHistory

pytestmark = pytest.mark.slow

INDEXES = ("message_index", "chunk_index", "chunk_vocabulary", "chunk_lengths", "fact_terms")
CONDITIONS = ("Index Cond", "Recheck Cond", "Filter", "Join Filter", "Hash Cond", "Merge Cond")
QUERIES = (
    "When does the ferry leave?",
    '"the ferry leaves"',
    "ferr* -bus",
    "ferry OR bus",
)
# The number of a person's messages is so small that the server would rather read a whole table.
SETTINGS = "SET enable_seqscan TO off"

Query = tuple[str, Any]


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    async with Database.open(postgres_url) as opened:
        yield opened


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    """The statements that read an index, with their values, as they are run."""
    execute = StoreConnection.execute
    noted: list[Query] = []

    def note(connection: StoreConnection, statement: str, values: Any = (), /) -> StoreCursor:
        is_read = statement.lstrip().startswith(("SELECT", "WITH"))
        if is_read and any(name in statement for name in INDEXES):
            noted.append((statement, values))
        return execute(connection, statement, values)

    monkeypatch.setattr(StoreConnection, "execute", note)
    return noted


def add_fact(connection: Connection, scope: Scope) -> None:
    row = connection.execute(
        "INSERT INTO facts (scope_id, content, comparison_form, kind, trust, created_at, last_at, "
        "origin) SELECT id, 'Takes the ferry', 'takes the ferry', 'identity', 0.6, 0, 0, 'rule' "
        "FROM scopes WHERE key = :scope RETURNING id",
        {"scope": scope},
    ).fetchone()
    connection.index.index_fact(connection, row[0])


async def fill(database: Database) -> None:
    stored = StoredHistory(database)
    for scope in (ANA, BEN, ROOM):
        for number in range(30):
            await stored.session(
                [f"The ferry {number} leaves at nine", "The bus goes to Porto"], scope=scope
            )
        await database.write(partial(add_fact, scope=scope))
    recall = Recall(database, SteadyClock())
    while await recall.tend():
        pass


def list_unscoped(node: dict[str, Any], is_scoped: bool = False) -> Iterator[str]:
    """Yield the tables of an index that a part of a plan reads without a condition on the scope."""
    is_scoped |= any("scope_id" in str(node.get(name, "")) for name in CONDITIONS)
    table = str(node.get("Relation Name", ""))
    if table.startswith(INDEXES) and not is_scoped:
        yield table
    for child in node.get("Plans", []):
        yield from list_unscoped(child, is_scoped)


async def test_every_search_of_an_index_has_the_scope_as_a_condition_in_its_plan(
    database: Database, queries: list[Query]
) -> None:
    await fill(database)
    queries.clear()
    recall = Recall(database, SteadyClock())
    for text in QUERIES:
        results = await recall.recall(search_query(scopes=frozenset({ANA}), text=text))
        assert results.sessions, text
    facts = Facts(database, SteadyClock())
    candidates = await facts.find_candidates(query_terms("ferry"), [], frozenset({ANA}))
    assert len(candidates[0][1]) == 1
    asked = list(queries)

    def explain(connection: StoreConnection) -> dict[str, list[str]]:
        connection.execute(SETTINGS)
        plans = {}
        for statement, values in asked:
            row = connection.execute(f"EXPLAIN (FORMAT JSON) {statement}", values).fetchone()
            assert row is not None
            plans[statement] = list(list_unscoped(row[0][0]["Plan"]))
        return plans

    plans = await database.read(explain)
    read = {name for name in INDEXES if any(name in statement for statement in plans)}
    assert read == set(INDEXES)
    assert {statement: tables for statement, tables in plans.items() if tables} == {}
