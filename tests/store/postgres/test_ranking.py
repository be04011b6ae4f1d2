"""Rankings of messages and chunks on PostgreSQL, compared with those of state.db."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.search.query import plan_any_word
from core.search.recall import Recall
from core.store.engine import Connection, Database, T
from core.store.postgres.connection import StoreConnection
from core.store.postgres.database import Database as PostgresDatabase
from core.store.rows import scoped_term
from core.store.search import text_search
from core.store.search.text_search import TextSearch
from core.store.sqlite.database import Database as SqliteDatabase
from tests.fixtures.clock import SteadyClock
from tests.fixtures.new_database import place
from tests.fixtures.search_queries import search_query
from tests.fixtures.stored_history import ANA, StoredHistory

pytestmark = pytest.mark.slow

ASK = search_query(scopes=frozenset({ANA}), text="ferry")
EVERYWHERE = "harbour"
WORDS = ("kayak", "anchor", "sail", "rope", "captain", "island", "cliff", "storm")


@pytest.fixture
async def server_store(postgres_url: str) -> AsyncIterator[Database]:
    async with PostgresDatabase.open(postgres_url) as database:
        yield database


@pytest.fixture
async def file_store(tmp_path: Path) -> AsyncIterator[Database]:
    async with SqliteDatabase.open(place(tmp_path / "state.db")) as database:
        yield database


def write_sessions() -> list[list[str]]:
    """Return the texts of 60 sessions.

    Each session has the word EVERYWHERE, and each other word up to eight times.
    """
    choice = random.Random(40)
    sessions = []
    for number in range(60):
        counts = {word: choice.choice((0, 0, 0, 0, 0, 1, 2, 3, 4, 6, 8)) for word in WORDS}
        # The last number gives each session a length of its own.
        words = [word for word, count in counts.items() for _ in range(count)]
        filler = [f"filler{number}"] * 4 * (number % 3)
        sessions.append([" ".join([EVERYWHERE, *words, *filler])])
    return sessions


async def fill(database: Database, sessions: list[list[str]]) -> None:
    stored = StoredHistory(database)
    for lines in sessions:
        await stored.session(lines)
    recall = Recall(database, SteadyClock())
    while await recall.tend():
        pass


def search(work: Callable[[TextSearch], T]) -> Callable[[Connection], T]:
    return lambda connection: work(TextSearch(connection, ASK))


def rank_chunks(index: TextSearch) -> list[tuple[int, Any]]:
    terms = [scoped_term(1, term) for term in (EVERYWHERE, *WORDS)]
    chunks = index.best_chunks(terms, [], match_count=60)
    return [(chunk.chunk_id, pytest.approx(chunk.score, abs=1e-3)) for chunk in chunks]


def rank_messages(index: TextSearch) -> list[int]:
    return [match.message_id for match in index.find_messages(plan_any_word("kayak anchor"))]


async def test_both_engines_rank_chunks_in_the_same_order(
    server_store: Database, file_store: Database
) -> None:
    sessions = write_sessions()
    await fill(server_store, sessions)
    await fill(file_store, sessions)
    ranked = await server_store.read(search(rank_chunks))
    assert len(ranked) == 60
    assert ranked == await file_store.read(search(rank_chunks))


def rank_chunks_with_lent_words(index: TextSearch) -> list[tuple[int, Any]]:
    leading = [scoped_term(1, term) for term in WORDS[:3]]
    once, twice = scoped_term(1, WORDS[3]), scoped_term(1, WORDS[4])
    chunks = index.best_chunks(leading, [once, twice, twice], match_count=60)
    return [(chunk.chunk_id, pytest.approx(chunk.score, abs=1e-3)) for chunk in chunks]


async def test_lent_words_weigh_the_same_on_both_engines(
    server_store: Database, file_store: Database
) -> None:
    sessions = write_sessions()
    await fill(server_store, sessions)
    await fill(file_store, sessions)
    ranked = await server_store.read(search(rank_chunks_with_lent_words))
    assert 30 < len(ranked) < 60
    assert ranked == await file_store.read(search(rank_chunks_with_lent_words))


async def test_word_in_most_chunks_has_almost_no_weight_on_postgres(server_store: Database) -> None:
    await fill(server_store, write_sessions())
    term = scoped_term(1, EVERYWHERE)

    def rank(index: TextSearch) -> list[tuple[int, float]]:
        chunks = index.best_chunks([term], [], match_count=60)
        return [(chunk.chunk_id, chunk.score) for chunk in chunks]

    ranked = await server_store.read(search(rank))
    assert len(ranked) == 60
    assert min(score for _, score in ranked) > -1e-3


async def test_matches_after_the_first_joined_ones_follow_in_order_and_once(
    server_store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(server_store, write_sessions())
    chunks = await server_store.read(search(rank_chunks))
    messages = await server_store.read(search(rank_messages))
    assert len(messages) > 20
    monkeypatch.setattr(text_search, "FIRST_CHUNKS", 7)
    monkeypatch.setattr(text_search, "FIRST_MESSAGES", 7)
    assert await server_store.read(search(rank_chunks)) == chunks
    assert await server_store.read(search(rank_messages)) == messages


def list_nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from list_nodes(child)


async def test_search_for_many_words_looks_up_each_word_in_the_index_on_postgres(
    server_store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(server_store, write_sessions())
    await server_store.write(lambda connection: connection.index.merge(connection, 0))
    execute = StoreConnection.execute
    plans: list[dict[str, Any]] = []

    def explain(connection: StoreConnection, statement: str, values: Any = (), /) -> Any:
        if "AS terms (scope_id, query" in statement:
            row = execute(connection, f"EXPLAIN (FORMAT JSON) {statement}", values).fetchone()
            assert row is not None
            plans.append(row[0][0]["Plan"])
        return execute(connection, statement, values)

    monkeypatch.setattr(StoreConnection, "execute", explain)
    await server_store.read(search(rank_chunks))
    conditions = [str(node.get("Join Filter", "")) for node in list_nodes(plans[0])]
    assert not any("@@" in condition for condition in conditions)
