"""Plans of the server: each read for a person has the scope as a condition."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest

from core.search.recall import Recall
from core.store.engine import Connection
from core.store.facts.facts import Facts
from core.store.postgres.connection import StoreConnection, StoreCursor
from core.store.postgres.database import Database
from core.store.postgres.dialect import translate
from core.store.postgres.schema import SCHEMA
from core.store.query import SearchQuery
from core.text.terms import query_terms
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA as KEPT_SCOPE
from tests.fixtures.search_queries import search_query
from tests.fixtures.store_reads import list_reads, reads_personal_data
from tests.fixtures.stored_history import ANA, BEN, ROOM, StoredHistory
from tests.store.postgres.test_statements import write_numbers
from tests.store.test_scope_filter import KeptRows, kept  # noqa: F401

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
# Parts of statements that begin like one.
PARTS = {"core.store.messages._HISTORY_PARTS"}
# A join with the table of scopes, which only adds the scope's key to each row.
JOIN_WITH_SCOPES = re.compile(r"\w+\.id = \w+\.scope_id|\w+\.scope_id = \w+\.id")
SETTINGS = "SET enable_seqscan TO off"

Query = tuple[str, Any]


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    async with Database.open(postgres_url) as opened:
        yield opened


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    """The statements that read personal data, with their values, as they are run."""
    execute = StoreConnection.execute
    noted: list[Query] = []

    def note(connection: StoreConnection, statement: str, values: Any = (), /) -> StoreCursor:
        is_read = statement.lstrip().startswith(("SELECT", "WITH"))
        if is_read and reads_personal_data(statement):
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


async def fill(database: Database) -> int:
    """Store conversations and a fact in each of three scopes. Return the first message's id."""
    stored = StoredHistory(database)
    message_ids: list[int] = []
    for scope in (ANA, BEN, ROOM):
        for number in range(30):
            message_ids += await stored.session(
                [f"The ferry {number} leaves at nine", "The bus goes to Porto"], scope=scope
            )
        await database.write(partial(add_fact, scope=scope))
    recall = Recall(database, SteadyClock())
    while await recall.tend():
        pass
    return message_ids[1]


def list_unscoped(node: dict[str, Any], is_scoped: bool = False) -> Iterator[str]:
    """Yield the tables of an index that a part of a plan reads without a condition on the scope."""
    is_scoped |= any("scope_id" in str(node.get(name, "")) for name in CONDITIONS)
    table = str(node.get("Relation Name", ""))
    if table.startswith(INDEXES) and not is_scoped:
        yield table
    for child in node.get("Plans", []):
        yield from list_unscoped(child, is_scoped)


def list_conditions(node: Any) -> Iterator[str]:
    """Yield all conditions of a plan, also those of its subplans."""
    if isinstance(node, dict):
        yield from (str(node[name]) for name in CONDITIONS if name in node)
        for child in node.values():
            yield from list_conditions(child)
    elif isinstance(node, list):
        for child in node:
            yield from list_conditions(child)


def has_scope(plan: dict[str, Any]) -> bool:
    """Return whether a plan has a condition on a scope's id or key."""
    conditions = JOIN_WITH_SCOPES.sub("", " ".join(list_conditions(plan)))
    return "scope_id" in conditions or "(key = " in conditions


def explain(connection: StoreConnection, queries: Iterable[Query]) -> dict[str, dict[str, Any]]:
    """Return the plan of each statement."""
    connection.execute(SETTINGS)
    plans = {}
    for statement, values in queries:
        row = connection.execute(f"EXPLAIN (FORMAT JSON) {statement}", values).fetchone()
        assert row is not None
        plans[statement] = row[0][0]["Plan"]
    return plans


def list_excepted() -> set[str]:
    """Return the statements that `tests/store/test_scope_statements.py` lists with a reason."""
    return {" ".join(read.sql.split()) for read in list_reads() if not read.has_scope}


def make_queries(first_message_id: int) -> list[SearchQuery]:
    """Return a query of each shape, and with each filter that adds a condition."""
    ask = partial(search_query, scopes=frozenset({ANA}))
    texts = (
        *QUERIES,
        "ferry from:ana",
        "ferry has:file",
        "ferry in:contract.pdf",
        "ferry title:trip",
    )
    return [
        *(ask(text=text) for text in texts),
        ask(),
        ask(around=first_message_id),
        ask(session_id=1),
        ask(text="ferry", session_id=1),
    ]


async def test_every_search_of_an_index_has_the_scope_as_a_condition_in_its_plan(
    database: Database, queries: list[Query]
) -> None:
    first_message_id = await fill(database)
    queries.clear()
    recall = Recall(database, SteadyClock())
    for query in make_queries(first_message_id):
        results = await recall.recall(query)
        assert results.sessions or "ferry " in query.text, query.text
    facts = Facts(database, SteadyClock())
    candidates = await facts.find_candidates(query_terms("ferry"), [], frozenset({ANA}))
    assert len(candidates[0][1]) == 1

    plans = await database.read(partial(explain, queries=list(queries)))
    read = {name for name in INDEXES if any(name in statement for statement in plans)}
    assert read == set(INDEXES)
    unscoped_tables = {sql: list(list_unscoped(plan)) for sql, plan in plans.items()}
    assert {sql: tables for sql, tables in unscoped_tables.items() if tables} == {}
    excepted = list_excepted()
    others = [sql for sql, plan in plans.items() if not has_scope(plan)]
    assert [sql for sql in others if " ".join(sql.split()) not in excepted] == []


async def test_every_store_reader_has_the_scope_as_a_condition_in_its_plan(
    database: Database,
    queries: list[Query],
    kept: KeptRows,  # noqa: F811
) -> None:
    queries.clear()
    for read in kept.readers.values():
        await read(kept.session.id, kept.job_id, frozenset((KEPT_SCOPE,)))
    plans = await database.read(partial(explain, queries=list(queries)))
    assert len(plans) >= 20
    excepted = list_excepted()
    others = [sql for sql, plan in plans.items() if not has_scope(plan)]
    assert [sql for sql in others if " ".join(sql.split()) not in excepted] == []


def test_every_constant_statement_with_a_scope_has_it_in_its_plan(postgres_url: str) -> None:
    unscoped: list[str] = []
    parts: set[str] = set()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {SCHEMA}")
        connection.execute(SETTINGS)
        connection.execute("SET plan_cache_mode TO force_generic_plan")
        for read in list_reads():
            if not (read.has_scope and read.is_statement):
                continue
            try:
                plan = explain_constant(connection, read.sql)
            except psycopg.Error:
                parts.add(read.name)
                continue
            if not has_scope(plan):
                unscoped.append(read.name)
    assert unscoped == []
    assert parts == PARTS


def explain_constant(connection: psycopg.Connection, statement: str) -> dict[str, Any]:
    """Return the plan of a statement for any values. Raises psycopg.Error for a part of one."""
    sql = write_numbers(translate(statement).sql)
    connection.execute(f"PREPARE statement AS {sql}".encode())
    try:
        count = len(set(re.findall(r"\$\d+", sql)))
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        row = connection.execute(
            f"EXPLAIN (FORMAT JSON) EXECUTE statement {values}".encode()
        ).fetchone()
        assert row is not None
        plan: dict[str, Any] = row[0][0]["Plan"]
        return plan
    finally:
        connection.execute("DEALLOCATE statement")
