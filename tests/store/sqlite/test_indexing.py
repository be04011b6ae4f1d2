"""The text indexes follow messages and facts, come through damage, and are rebuilt."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreError
from core.search.recall import Recall
from core.search.term_weights import TermWeights, choose_chunk_terms, choose_chunks
from core.store.engine import Connection
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact
from core.store.messages import append_message
from core.store.query import SearchQuery
from core.store.rows import scoped_term, set_meta
from core.store.search import chunks
from core.store.search.text_search import VERSION_KEY, TextSearch, is_stale
from core.store.sessions import Conversations
from core.store.sqlite import schema
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import repair_fact_index
from core.store.sqlite.indexing import (
    defer_indexing,
    reset_indexes,
)
from core.store.sqlite.schema import INDEX_TABLES, SCHEMA_VERSION, ChunkTerms, register_functions
from core.store.sqlite.text_index import StoreConnection
from core.text import normalize
from core.text.normalize import LONG_TEXT_CHARS, SCOPE_MARKER
from core.text.terms import date_terms, message_terms, names_in
from core.types import Message, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.new_database import write_earlier
from tests.fixtures.samples import ANA as SENDER
from tests.fixtures.samples import CHAT, NOON, message, opened, session
from tests.fixtures.search_queries import search_query, with_fields
from tests.fixtures.stored_history import ANA, BEN, StoredHistory

ASK = search_query(scopes=frozenset({ANA}), text="What did we decide about the ferry?", messages=20)


@pytest.fixture
def stored(database: Database) -> StoredHistory:
    return StoredHistory(database)


@pytest.fixture
def recall(database: Database, clock: SteadyClock) -> Recall:
    return Recall(database, clock)


async def _all_taken_in(recall: Recall, database: Database) -> None:
    while await database.write(chunks.index_pending):
        pass
    while await recall.tend():
        pass


async def _sizes(stored: StoredHistory) -> list[object]:
    rows = await stored.execute("SELECT message_count FROM chunks ORDER BY session_id, position")
    return [row[0] for row in rows]


async def test_search_index_chunks_grow_to_their_size_and_are_then_closed(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    session = (await stored.session([f"line {n}" for n in range(10)]))[0]
    await _all_taken_in(recall, database)
    assert await _sizes(stored) == [10]
    for n in range(10):
        await stored.say(session, f"more {n}")
    await _all_taken_in(recall, database)
    assert await _sizes(stored) == [8, 12]
    await stored.session([f"other {n}" for n in range(50)])
    await _all_taken_in(recall, database)
    assert await _sizes(stored) == [8, 12, 8, 8, 8, 8, 8, 10]
    assert await stored.execute("SELECT chunk_count FROM chunk_counts") == [(8,)]
    assert await recall.verify() == []


@pytest.mark.parametrize("step", [1, 7, 16, 40])
async def test_chunks_do_not_depend_on_the_step(
    stored: StoredHistory, recall: Recall, database: Database, step: int
) -> None:
    await stored.session([f"line {n}" for n in range(37)])
    while await database.write(lambda connection: chunks.index_pending(connection, step)):
        pass
    assert await _sizes(stored) == [8, 8, 8, 13]
    assert await recall.verify() == []


@pytest.mark.parametrize("step", [1, 2, 7, 40])
async def test_very_long_message_is_a_chunk_of_its_own_at_any_step(
    stored: StoredHistory, recall: Recall, database: Database, step: int
) -> None:
    long_text = "ferry " * 700
    texts = ["a", "b", long_text, "c", long_text, long_text, *(f"line {n}" for n in range(20))]
    await stored.session(texts)
    while await database.write(lambda connection: chunks.index_pending(connection, step)):
        pass
    assert await _sizes(stored) == [2, 1, 1, 1, 1, 8, 12]
    assert await recall.verify() == []


async def test_step_of_indexing_ends_after_50_000_characters(
    stored: StoredHistory, database: Database
) -> None:
    texts = ["ferry " * 5_000] * 5
    await stored.session(texts)
    # Two of these messages have more than 50,000 characters.
    steps = [await database.write(chunks.index_pending) for _ in range(4)]
    assert steps == [2, 2, 1, 0]
    await stored.execute("UPDATE messages SET text = text || 'x'")
    steps = [await database.write(chunks.index_pending) for _ in range(4)]
    assert steps == [2, 2, 1, 0]
    await database.write(chunks.flag_for_rebuild)
    steps = [await database.write(chunks.rebuild_step) for _ in range(4)]
    assert steps == [2, 2, 1, 0]


async def test_search_index_chunk_whose_last_message_was_deleted_takes_new_messages(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    session, *_, last = await stored.session(["a", "b", "c"])
    await _all_taken_in(recall, database)
    await stored.execute("DELETE FROM messages WHERE id = :id", id=last)
    await stored.say(session, "d")
    await _all_taken_in(recall, database)
    assert await _sizes(stored) == [3]
    assert await recall.verify() == []


async def test_message_that_is_in_no_chunk_yet_is_found(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    await stored.session(["nothing of the kind", "at all"])
    _, old = await stored.session(["We decided against the ferry last year"])
    await _all_taken_in(recall, database)
    session, new = await stored.session(["We decided to take the ferry"])
    findings = await recall.recall(ASK)
    assert {hit.message_id for hit in findings.messages} == {old, new}
    assert findings.sessions[0].session.id == session
    assert findings.note is None
    assert findings.sessions[0].matches[0].snippet == "We >>>decided<<< to take the >>>ferry<<<"


async def test_a_changed_message_is_found_as_it_is_now(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    _, first, second = await stored.session(["We decided on the ferry", "fine"])
    await _all_taken_in(recall, database)
    await stored.execute("UPDATE messages SET text = 'We chose a train' WHERE id = :id", id=first)
    assert (await recall.recall(ASK)).sessions == ()
    assert await recall.verify() == []
    await _all_taken_in(recall, database)
    findings = await recall.recall(replace(ASK, text="Which train did we choose?"))
    assert findings.messages[0].message_id == first
    await stored.execute("DELETE FROM messages WHERE session_id = 1")
    await _all_taken_in(recall, database)
    assert (await recall.recall(ASK)).sessions == ()
    assert second not in [row[0] for row in await stored.execute("SELECT id FROM messages")]
    assert await recall.verify() == []


def test_terms_of_a_long_message_that_a_search_has_computed_are_used_for_its_chunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "\u56fe\u4e66\u9986 Ferry " * 200
    at = datetime(2026, 11, 20, 23, 59, tzinfo=UTC)

    def index() -> str:
        chunk = ChunkTerms()
        chunk.step(7, text, "Ana", at.timestamp())
        return chunk.finalize()

    expected = index()
    assert expected.startswith("7x")
    assert " 7xana " in expected
    message_terms(text, "Ana", at.toordinal())

    def fail(_: str) -> list[str]:
        raise AssertionError("the terms are known")

    monkeypatch.setattr(schema, "terms_of", fail)
    assert index() == expected


def test_the_terms_of_a_chunk_do_not_depend_on_the_seed_of_hashes() -> None:
    program = (
        "from core.store.sqlite.schema import ChunkTerms\n"
        "terms = ChunkTerms()\n"
        "for day in range(9):\n"
        "    terms.step(1, 'ferry', 'Ana', 1.7e9 + day * 86400)\n"
        "print(terms.finalize())\n"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(made) == 1
    assert "1xferri" in made.pop()


async def test_an_index_of_the_version_before_is_healthy_after_upkeep(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    await stored.session(["We take the ferry", "at noon"])
    await _all_taken_in(recall, database)
    await stored.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')")
    await stored.execute("INSERT INTO chunks_fts (rowid, terms) VALUES (1, '1xnoon 1xferri')")
    await stored.execute("UPDATE state_meta SET value = '4' WHERE key = 'index_version'")
    assert "flagged for a rebuild" in (await recall.verify())[0]
    await _all_taken_in(recall, database)
    assert await recall.verify() == []
    assert len((await recall.recall(ASK)).messages) >= 1


async def test_erased_words_are_removed_from_the_search_index_vocabulary(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    _, first = await stored.session(["the zanzibar password"])
    await _all_taken_in(recall, database)
    assert await stored.execute(
        "SELECT COUNT(*) FROM chunk_vocabulary WHERE term LIKE '%zanzibar'"
    ) == [(1,)]
    await stored.execute("UPDATE messages SET text = '', kind = 'notice' WHERE id = :id", id=first)
    assert await stored.execute(
        "SELECT COUNT(*) FROM chunk_vocabulary WHERE term LIKE '%zanzibar'"
    ) == [(0,)]


async def test_search_of_the_index_returns_nothing_of_other_scopes(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    mine = (await stored.session(["the ferry was decided"], scope=ANA))[0]
    yours = (await stored.session(["we decided on the ferry, the ferry"], scope=BEN))[0]
    for _ in range(2):
        assert [found.session.id for found in (await recall.recall(ASK)).sessions] == [mine]
        other = await recall.recall(replace(ASK, scopes=frozenset({BEN})))
        assert [found.session.id for found in other.sessions] == [yours]
        assert (await recall.recall(replace(ASK, scopes=frozenset()))).sessions == ()
        both = await recall.recall(replace(ASK, scopes=frozenset({ANA, BEN})))
        assert {found.session.id for found in both.sessions} == {mine, yours}
        await _all_taken_in(recall, database)


async def test_filters_and_the_models_window_hold_for_questions(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    session, user, assistant = await stored.session(
        ["Shall we decide on the ferry", "The ferry it is"]
    )
    _, other = await stored.session(["ferry tickets"], platform="discord", title="Tickets")
    for _ in range(2):
        found = await recall.recall(with_fields(ASK, roles=("assistant",)))
        assert [hit.message_id for hit in found.messages] == [assistant]
        found = await recall.recall(with_fields(ASK, platforms=("discord",)))
        assert [hit.message_id for hit in found.messages] == [other]
        found = await recall.recall(with_fields(ASK, title="ticket"))
        assert [hit.message_id for hit in found.messages] == [other]
        hidden = ((session, assistant, assistant),)
        found = await recall.recall(replace(ASK, hidden=hidden))
        assert {hit.message_id for hit in found.messages} == {user, other}
        await _all_taken_in(recall, database)


async def test_rebuilt_search_index_gives_the_same_recall_results(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    await stored.session(["We decided on the ferry", *(f"line {n}" for n in range(40))])
    await _all_taken_in(recall, database)
    before = await recall.recall(ASK)
    await recall.rebuild()
    await _all_taken_in(recall, database)
    after = await recall.recall(ASK)
    assert replace(after, took_ms=0) == replace(before, took_ms=0)
    assert await recall.verify() == []


async def test_question_in_chinese_finds_its_message_at_once_and_when_indexed(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    await stored.session(["明天的会议取消了"])
    session, answer = await stored.session(["我们决定把数据库迁移到新的服务器"])
    for _ in range(2):
        findings = await recall.recall(replace(ASK, text="数据库要迁移到哪里?"))
        assert findings.sessions[0].session.id == session
        assert findings.messages[0].message_id == answer
        await _all_taken_in(recall, database)


async def test_a_question_right_after_an_import_is_answered_from_all_of_it(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    _, answer = await stored.session(["We decided to take the ferry"])
    await stored.execute(
        """
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1200)
        INSERT INTO messages (session_id, address_id, role, text, created_at)
        SELECT 1, 1, 'user', 'line ' || n, n FROM numbers
        """
    )
    assert (await recall.recall(ASK)).messages[0].message_id == answer


async def test_search_in_a_small_scope_finds_its_messages_next_to_a_large_scope(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    _, mine, also = await stored.session(["my ferry 数据库 缓存", "other words"], scope=ANA)
    for number in range(6):
        await stored.session([f"ferry {n} 数据库 缓存 {number}" for n in range(20)], scope=BEN)
    await _all_taken_in(recall, database)
    for typed in (
        "ferry",
        "缓存",
        "数据库",
        "ferry 缓存",
        "ferry -words",
        "ferr*",
        "What about my ferry?",
    ):
        found = await recall.recall(replace(ASK, text=typed))
        assert [hit.message_id for hit in found.messages][:1] == [mine]
        assert {hit.message_id for hit in found.messages} <= {mine, also}
    assert (await recall.recall(replace(ASK, text=f"{SCOPE_MARKER}2"))).sessions == ()


async def test_search_ranks_the_newest_matches_first_and_still_includes_older_ones(
    stored: StoredHistory, recall: Recall, database: Database
) -> None:
    made = [
        (await stored.session([f"the ferry of day {n}", "ferry " * (9 - n)]))[0] for n in range(6)
    ]
    await _all_taken_in(recall, database)

    def ranked(found: int, query: SearchQuery) -> list[int]:
        opened = sqlite3.connect(database.path, factory=StoreConnection)
        with contextlib.closing(opened) as connection:
            register_functions(connection)
            return [
                root
                for _, root, *_ in TextSearch(connection, query).best_chunks(
                    [scoped_term(1, "ferri")], [], found, limit=2
                )
            ]

    assert ranked(2, ASK) == sorted(made)
    assert ranked(6, ASK) == [*made[-2:], *made[:-2]]
    assert ranked(6, with_fields(ASK, session_id=made[1])) == [made[1]]


def test_search_in_a_large_database_selects_chunks_by_rare_terms() -> None:
    assert choose_chunk_terms({"ferri": 30, "ana": 900, "absent": 0}, 1_000) == (
        ["absent", "ferri", "ana"],
        [],
    )
    assert choose_chunk_terms({"ana": 2_000, "ferri": 30, "kayak": 1_500}, 10_000) == (
        ["ferri", "kayak"],
        ["ana"],
    )
    assert choose_chunk_terms({"ferri": 30, "ana": 6_000, "kayak": 7_000}, 90_000) == (
        ["ferri"],
        ["ana"],
    )
    assert choose_chunk_terms({"ferri": 30, "ana": 9_000}, 10_000) == (["ferri"], [])
    assert choose_chunk_terms({"ana": 9_000, "absent": 0}, 10_000) == (["absent", "ana"], [])


def test_dates_are_lent_twice_to_the_words_except_dates_in_most_chunks() -> None:
    january, year = date_terms(date(2025, 1, 9))[2:4]
    frequencies = {"ferri": 30, january: 400, year: 900}
    weights = TermWeights(dict.fromkeys(frequencies, 1.0), frequencies, "ferry", {})
    by_words, by_dates = choose_chunks(weights, replace(ASK, periods=((1, 31),)), 1_000)
    assert by_words.leading == {"ferri": 30}
    assert by_words.lending == [january, january]
    assert by_dates.leading == {january: 400, year: 900}


TEXTS = ("the ferry to 東京都 leaves", "Ana 👍", "Привет", "plain words", "修改youer服务端")


def _matching(word: str) -> Callable[[StoreConnection], list[int]]:
    statement = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH :word ORDER BY rowid"
    return lambda connection: [row[0] for row in connection.execute(statement, {"word": word})]


def _adding(session_id: int, **changes: Any) -> Callable[[StoreConnection], None]:
    made: list[Message] = [message(session_id, text, **changes) for text in TEXTS]

    def work(connection: StoreConnection) -> None:
        with defer_indexing(connection):
            for one in made:
                append_message(connection, one)

    return work


async def test_deferred_indexing_leaves_a_sound_index_with_all_messages(
    database: Database, clock: SteadyClock
) -> None:
    session = await opened(Conversations(database, clock), "the ferry before")
    await database.write(_adding(session.id))
    await database.write(_adding(session.id, kind="command"))
    assert await database.read(_matching("ferry")) == [1, 2]
    assert await database.write(chunks.find_index_damage) == []
    assert not await database.read(is_stale)


async def test_failed_write_leaves_rows_and_index_unchanged(
    database: Database, clock: SteadyClock
) -> None:
    session = await opened(Conversations(database, clock), "the ferry before")

    def work(connection: StoreConnection) -> None:
        _adding(session.id)(connection)
        with defer_indexing(connection):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(work)
    assert await database.read(_matching("ferry")) == [1]
    assert not await database.read(is_stale)
    assert await database.write(chunks.find_index_damage) == []


async def test_index_flagged_for_a_rebuild_stays_flagged_after_writes(
    database: Database, clock: SteadyClock
) -> None:
    session = await opened(Conversations(database, clock), "the ferry before")
    await database.write(chunks.flag_for_rebuild)
    await database.write(_adding(session.id))
    assert await database.read(is_stale)
    assert await database.read(_matching("ferry")) == [1]
    while await database.write(chunks.rebuild_step):
        pass
    assert await database.read(_matching("ferry")) == [1, 2]
    assert await database.write(chunks.find_index_damage) == []


pytestmark = pytest.mark.slow

MINE: frozenset[Scope] = frozenset((SENDER,))


def _rebuilt(connection: StoreConnection) -> list[str]:
    while chunks.rebuild_step(connection):
        pass
    return chunks.find_index_damage(connection)


def _rows(statement: str) -> Any:
    return lambda connection: [tuple(row) for row in connection.execute(statement)]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE messages_fts_data SET block = zeroblob(10)",
        "UPDATE messages_fts_data SET block = x'ffffffffffffffffffff'",
        "UPDATE messages_fts_data SET block = x'ffffffffffffffffffff' WHERE id > 10",
        "DELETE FROM messages_fts_data",
        "DELETE FROM messages_fts_data WHERE id > 10",
        "DELETE FROM messages_fts_idx",
        "DROP TABLE messages_fts_data",
        "DROP TABLE messages_fts_docsize",
        "DROP TABLE messages_fts_config",
        "UPDATE messages_fts_config SET v = 99 WHERE k = 'version'",
        "UPDATE chunks_fts_data SET block = x'ffffffffffffffffffff'",
        "DELETE FROM chunks_fts_data",
        "DROP TABLE chunks_fts_idx",
    ],
)
async def test_damaged_search_index_does_not_prevent_storing_a_message(
    tmp_path: Path, clock: SteadyClock, damage: str
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        made = await opened(Conversations(database, clock), "before 東京都 the damage")
        settings = await database.read(_rows("SELECT * FROM messages_fts_config"))
        await database.write(lambda connection: connection.execute(damage).close())
    async with Database.open(path) as database:
        conversations = Conversations(database, clock)
        for text in ("one 大阪府", "two 京都府"):
            await conversations.append([message(made.id, text, external_id=text[:3])])
        assert await conversations.amend(CHAT, "two", "three 大阪城")
        assert await conversations.amend(CHAT, "one", None)
        rows = await conversations.load_history(made, MINE)
        assert [row.text for row in rows] == ["before 東京都 the damage", "three 大阪城"]
        found = await conversations.find(made.id, MINE)
        assert found is not None
        assert found.messages == 2
        await database.write(reset_indexes)
        assert await database.write(_rebuilt) == []
        assert await database.read(_rows("SELECT * FROM messages_fts_config")) == settings
        hits = await database.read(
            _rows("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'three OR two OR one'")
        )
        assert hits == [(rows[1].id,)]


async def test_a_damaged_index_is_emptied_and_can_be_rebuilt(
    database: Database, clock: SteadyClock
) -> None:
    conversations = Conversations(database, clock)
    made = await opened(conversations, "before")
    await database.write(
        lambda connection: connection.execute(
            "UPDATE messages_fts_data SET block = zeroblob(7) WHERE id = 10"
        ).close()
    )
    async with Database.open(database.path) as other:
        await Conversations(other, clock).append([message(made.id, "after")])
    assert await database.read(is_stale)
    assert await database.read(_rows("SELECT COUNT(*) FROM messages_fts_docsize")) == [(0,)]
    assert await database.write(_rebuilt) == []
    assert not await database.read(is_stale)


async def test_database_error_that_is_not_damage_does_not_mark_the_index_as_stale(
    database: Database, clock: SteadyClock
) -> None:
    with pytest.raises(StoreError, match="no session 99"):
        await Conversations(database, clock).append([message(99)])
    for statement in (
        "INSERT INTO messages (id) VALUES (1)",
        "SELECT nothing",
        "INSERT INTO accounts VALUES (1, 2)",
    ):
        with pytest.raises(StoreError):
            await database.write_indexed(
                lambda connection, wrong=statement: connection.execute(wrong).close(),  # type: ignore[misc]
            )
    assert not await database.read(is_stale)


OWN = frozenset((SENDER,))
DAMAGE = (
    "UPDATE facts_fts_data SET block = x'ffffffffffffffffffff'",
    "DELETE FROM facts_fts_data",
    "DROP TABLE facts_fts_docsize",
    "DROP TABLE facts_fts_content",
    "DELETE FROM facts_fts_config",
)


def fact(content: str, message_id: int | None = None) -> Fact:
    return Fact(
        scope=SENDER, content=content, kind="identity", origin="rule", created_at=NOON, message_id=message_id
    )  # fmt: skip


def _run(statement: str, connection: StoreConnection) -> None:
    connection.execute(statement)


async def found(database: Database, *terms: str) -> list[str]:
    """What the index finds, by text alone."""
    ((_, known),) = await Facts(database, SteadyClock()).find_candidates(terms, [], OWN)
    return [fact.content for fact, _, _ in known]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damaged_fact_index_does_not_prevent_storing_or_editing_facts(
    tmp_path: Path, clock: SteadyClock, damage: str
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        conversations = Conversations(database, clock)
        made = await opened(conversations)
        said = (await conversations.append([message(made.id, "I like tea", external_id="1")]))[0]
        await Facts(database, clock).learn(fact("I like tea", said.id))
        await Facts(database, clock).learn(fact("I like olives"))
        await database.write(lambda connection: connection.execute(damage).close())
    async with Database.open(path) as database:
        conversations = Conversations(database, clock)
        await conversations.append([message(made.id, "and cake", external_id="2")])
        assert await conversations.amend(CHAT, "1", "I like mate")
        await Facts(database, clock).learn(fact("I like honey"))
        assert set(await found(database, "like")) == {"I like olives", "I like honey"}
        assert not await database.write(repair_fact_index), "it is whole again"


async def test_fact_index_of_another_version_is_rebuilt(
    database: Database, clock: SteadyClock
) -> None:
    for content in ("I like tea", "I like olives", "I like honey"):
        await Facts(database, clock).learn(fact(content))
    recall = Recall(database, clock)
    await database.write(
        lambda connection: connection.execute("UPDATE facts_fts SET terms = 'old'").close()
    )
    assert not await recall.tend()
    assert await found(database, "oliv", "honei") == [], "it was made by this version"
    await database.write(lambda connection: set_meta(connection, VERSION_KEY, "0"))
    while await recall.tend():
        pass
    assert set(await found(database, "oliv", "honei")) == {"I like olives", "I like honey"}
    assert await recall.verify() == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM facts_fts WHERE rowid < 3", "Missing or left over: 2."),
        (
            "INSERT INTO facts_fts (rowid, terms) VALUES (9, 'x')",
            "Missing or left over: 1.",
        ),
        (
            "UPDATE facts_fts_data SET block = x'ffffffffffffffffffff'",
            "The search index of the facts is damaged",
        ),
        ("DROP TABLE facts_fts_content", "The search index of the facts is damaged"),
    ],
)
async def test_check_finds_a_damaged_index_and_repair_rebuilds_it(
    tmp_path: Path, clock: SteadyClock, damage: str, said: str
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        assert await Recall(database, clock).verify() == []
        for content in ("I live in Porto", "I like olives", "I met Ben"):
            await Facts(database, clock).learn(replace(fact(content), entities=names_in(content)))
        assert await Recall(database, clock).verify() == []
        await database.write(partial(_run, damage))
    async with Database.open(path) as database:
        index = Recall(database, clock)
        assert said in " ".join(await index.verify())
        await index.rebuild()
        assert await index.verify() == []
        assert await found(database, "oliv") == ["I like olives"]
        assert [
            known.content
            for known in await Facts(database, SteadyClock()).find_by_entities(["porto"], OWN)
        ] == ["I live in Porto"]


@pytest.mark.parametrize("version", [1, SCHEMA_VERSION])
async def test_index_of_a_new_or_upgraded_store_keeps_few_segments_while_messages_arrive(
    version: int, tmp_path: Path
) -> None:
    """A search looks up each of its words in each segment, and in each of a person's chats."""
    path = tmp_path / "state.db"
    write_earlier(path, version)
    async with Database.open(path) as database:
        stored = StoredHistory(database)
        for number in range(120):
            await stored.session([f"ferry number {number}"])
            await database.write(chunks.index_pending)
        for table in INDEX_TABLES:
            [[structure]] = await stored.execute(f"SELECT block FROM {table}_data WHERE id = 10")
            # A cookie of 4 bytes, the number of levels, and the number of segments.
            assert isinstance(structure, bytes)
            assert 1 <= structure[5] <= 21, table


@pytest.mark.parametrize("column", ["text", "tools"])
async def test_words_of_a_long_message_are_listed_before_the_write_that_others_wait_for(
    database: Database, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    conversations = Conversations(database, SteadyClock())
    opened_session = await conversations.ensure(session())
    writes: list[str] = []
    monkeypatch.setattr(database, "write_indexed", note_call(writes, database.write_indexed))
    split = note_call(writes, normalize.split_unspaced)
    monkeypatch.setattr(normalize, "split_unspaced", split)
    long = message(
        opened_session.id, **{"text": "", column: f"{column} \u4e2d\u6587" * LONG_TEXT_CHARS}
    )
    await conversations.append([long])
    assert writes == ["split_unspaced", "write_indexed"]


def note_call(calls: list[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that also notes the name of the called one."""

    def call(*arguments: Any, **options: Any) -> Any:
        calls.append(function.__name__)
        return function(*arguments, **options)

    return call


@pytest.mark.parametrize("column", ["text", "tools"])
async def test_long_message_or_tool_call_is_not_indexed_on_the_event_loop(
    database: Database, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    writing_threads: list[threading.Thread] = []

    def note_thread(connection: Connection, message: Message) -> Message:
        writing_threads.append(threading.current_thread())
        return append_message(connection, message)

    conversations = Conversations(database, SteadyClock())
    opened_session = await conversations.ensure(session())
    monkeypatch.setattr("core.store.sessions.append_message", note_thread)
    # All disks are fast enough for short writes on the event loop.
    monkeypatch.setattr("core.store.sqlite.database.SHORT_WRITE_S", 3_600.0)
    long = message(opened_session.id, **{"text": "", column: "中" * LONG_TEXT_CHARS})
    await conversations.append([long])
    assert len(writing_threads) == 1
    assert writing_threads[0] is not threading.main_thread()
