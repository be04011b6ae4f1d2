"""The indexes follow the messages through every change, and survive damage."""

from __future__ import annotations

import json

import pytest

from core.errors import StoreError
from core.search.recall import Recall
from core.store.engine import NO_CONDITION, Connection
from core.store.rows import scoped_term
from core.store.search import chunks
from core.store.sqlite.database import Database
from core.text import terms
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query
from tests.fixtures.stored_history import ANA, StoredHistory


@pytest.fixture
def stored(database: Database) -> StoredHistory:
    return StoredHistory(database)


@pytest.fixture
def recall(database: Database, clock: SteadyClock) -> Recall:
    return Recall(database, clock)


async def _ids(stored: StoredHistory, table: str, expression: str) -> list[object]:
    rows = await stored.execute(
        f"SELECT rowid FROM {table} WHERE {table} MATCH :e ORDER BY rowid", e=expression
    )
    return [row[0] for row in rows]


async def _found(recall: Recall, text: str) -> list[int]:
    findings = await recall.recall(search_query(scopes=frozenset({ANA}), text=text, messages=50))
    return sorted(hit.message_id for hit in findings.messages)


async def test_insert_fills_each_index_with_its_scripts(
    stored: StoredHistory, recall: Recall
) -> None:
    _session, first, second = await stored.session(["Café in Porto", "修改youer服务端 👍"])
    assert await _ids(stored, "messages_fts", "cafe") == [first]
    assert await _ids(stored, "messages_fts", "youer") == [second]
    assert await _ids(stored, "messages_fts", '"服务 务端"') == [second]
    assert await _ids(stored, "messages_fts", "修改 u1f44d") == [second]
    assert await recall.verify() == []


async def test_tool_calls_are_indexed_together_with_the_text(
    stored: StoredHistory, recall: Recall
) -> None:
    session = (await stored.session())[0]
    message = await stored.say(
        session, "", role="assistant", tools='reminder {"text": "牛奶 milk"}'
    )
    assert await _ids(stored, "messages_fts", "tools : milk") == [message]
    assert await _found(recall, "milk") == await _found(recall, "牛奶") == [message]


async def test_text_beyond_ascii_is_added_to_the_search_indexes_of_other_scripts(
    stored: StoredHistory, recall: Recall
) -> None:
    session = (await stored.session())[0]
    await stored.say(session, "plain words", tools='search {"text": "plain"}', role="assistant")
    behind_nul = await stored.say(session, "ends here\0数据库")
    in_tools = await stored.say(session, "plain", role="assistant", tools="数据库")
    symbol = await stored.say(session, "well 👍")
    assert await _ids(stored, "messages_fts", '"数据 据库"') == [behind_nul, in_tools]
    assert await _ids(stored, "messages_fts", "数据 OR u1f44d") == [behind_nul, in_tools, symbol]
    assert await recall.verify() == []


async def test_messages_other_than_chat_are_not_indexed(
    stored: StoredHistory, recall: Recall
) -> None:
    session = (await stored.session())[0]
    for kind in ("quote", "command", "notice"):
        await stored.say(session, f"secret 数据库 {kind}", kind=kind)
    assert (await stored.execute("SELECT COUNT(*) FROM messages_fts_docsize"))[0][0] == 0
    assert await recall.verify() == []


async def test_search_index_follows_updates_and_deletions_of_messages(
    stored: StoredHistory, recall: Recall
) -> None:
    _session, first, second = await stored.session(["the ferry 数据库", "the train 数据库"])
    await stored.execute("UPDATE messages SET text = 'the boat 服务端' WHERE id = :id", id=first)
    assert await _found(recall, "ferry") == []
    assert await _found(recall, "boat") == await _found(recall, "服务端") == [first]
    assert await _found(recall, "数据库") == [second]
    await stored.execute("UPDATE messages SET kind = 'notice' WHERE id = :id", id=second)
    assert await _found(recall, "数据库") == []
    await stored.execute(
        "UPDATE messages SET kind = 'chat', tools = 'shell ls' WHERE id = :id", id=second
    )
    assert await _found(recall, "数据库") == await _found(recall, "shell") == [second]
    await stored.execute("DELETE FROM messages WHERE id = :id", id=second)
    assert await _found(recall, "数据库") == []
    assert await recall.verify() == []


async def test_update_of_unindexed_message_columns_leaves_the_search_index_unchanged(
    stored: StoredHistory,
) -> None:
    _session, first = await stored.session(["ferry"])
    before = await stored.execute("SELECT COUNT(*), SUM(length(block)) FROM messages_fts_data")
    await stored.execute(
        "UPDATE messages SET usage = '{}', sent = '[]', blocks = '[]' WHERE id = :id", id=first
    )
    assert (
        await stored.execute("SELECT COUNT(*), SUM(length(block)) FROM messages_fts_data") == before
    )


async def _damage(stored: StoredHistory, table: str) -> None:
    await stored.execute(f"UPDATE {table}_data SET block = randomblob(8) WHERE id > 10")


async def test_damaged_search_index_loses_no_message_and_is_repaired(
    database: Database, stored: StoredHistory, recall: Recall
) -> None:
    _session, _first = await stored.session(["the ferry 数据库 leaves"])
    await _damage(stored, "messages_fts")
    await database.read(lambda connection: None)

    def append(connection):  # type: ignore[no-untyped-def]
        connection.execute(
            "INSERT INTO messages (session_id, address_id, role, text, created_at) VALUES (1, 1, 'user', :text, 0)",
            {"text": "another ferry 数据库 arrives"},
        )

    await database.write_indexed(append)
    assert (await stored.execute("SELECT COUNT(*) FROM messages"))[0][0] == 2
    if not await stored.execute("SELECT 1 FROM state_meta WHERE key = 'index_stale'"):
        assert await recall.verify() != []
        await recall.rebuild()
    while await recall.tend():
        pass
    assert await recall.verify() == []
    assert (
        await stored.execute(
            "SELECT key FROM state_meta WHERE key LIKE 'index_stale' OR key = 'index_cursor'"
        )
        == []
    )
    assert len(await _found(recall, "ferry")) == len(await _found(recall, "数据库")) == 2


async def test_a_search_over_a_damaged_index_still_answers(
    stored: StoredHistory, recall: Recall
) -> None:
    _session, first, _second = await stored.session(["the ferry leaves", "at noon"])
    await _damage(stored, "messages_fts")
    assert await _found(recall, "ferry") == [first]
    assert await recall.verify() == []


async def test_messages_changed_while_the_search_index_is_marked_stale_are_found_after_reindexing(
    stored: StoredHistory, recall: Recall
) -> None:
    session, first = await stored.session(["ferry one"])
    await stored.execute("INSERT INTO state_meta VALUES ('index_stale', '1')")
    second = await stored.say(session, "ferry two")
    await stored.execute("UPDATE messages SET text = 'boat one' WHERE id = :id", id=first)
    assert await recall.verify() != []
    assert await _found(recall, "ferry") == [second]
    assert await recall.verify() == []


async def test_a_change_during_a_rebuild_begins_it_again(
    stored: StoredHistory, recall: Recall
) -> None:
    _session, first, second = await stored.session(["ferry one", "ferry two"])
    await stored.execute("INSERT INTO state_meta VALUES ('index_stale', '1')")
    assert await recall.tend()
    assert await stored.execute("SELECT value FROM state_meta WHERE key = 'index_cursor'") == [
        (str(second),)
    ]
    await stored.execute("UPDATE messages SET text = 'boat one' WHERE id = :id", id=first)
    assert await stored.execute("SELECT value FROM state_meta WHERE key = 'index_cursor'") == []
    while await recall.tend():
        pass
    assert await _found(recall, "ferry") == [second]
    assert await recall.verify() == []


async def test_changed_version_of_text_folding_rebuilds_the_search_index(
    stored: StoredHistory, recall: Recall
) -> None:
    await stored.session(["ferry"])
    await stored.execute("UPDATE state_meta SET value = '0' WHERE key = 'index_version'")
    while await recall.tend():
        pass
    assert await stored.execute("SELECT value FROM state_meta WHERE key = 'index_version'") != [
        ("0",)
    ]
    assert await recall.verify() == []


async def test_search_index_upkeep_merges_segments_until_nothing_is_left_to_do(
    stored: StoredHistory, recall: Recall
) -> None:
    await stored.session([f"message number {n} 数据库{n}" for n in range(40)])
    before = (await stored.execute("SELECT COUNT(DISTINCT segid) FROM messages_fts_idx"))[0][0]
    steps = 0
    while await recall.tend():
        steps += 1
    after = (await stored.execute("SELECT COUNT(DISTINCT segid) FROM messages_fts_idx"))[0][0]
    assert steps > 0
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert after <= max(before, 4)
    assert not await recall.tend()
    assert await recall.verify() == []


async def test_rebuild_of_the_index_returns_the_count_of_messages(
    stored: StoredHistory, recall: Recall
) -> None:
    await stored.session(["one", "two", "three"])
    assert await recall.rebuild() == 3
    assert await _found(recall, "two") != []


async def test_an_index_that_cannot_be_deleted_from_is_an_error_of_ours(
    stored: StoredHistory,
) -> None:
    _session, _first = await stored.session(["ferry"])
    await _damage(stored, "messages_fts")
    with pytest.raises(StoreError):
        await stored.execute(
            "INSERT INTO messages_fts (messages_fts, rank) VALUES ('integrity-check', 1)"
        )


@pytest.mark.parametrize("table", ["messages_fts", "chunks_fts"])
async def test_search_index_upkeep_repairs_damage_it_finds(
    stored: StoredHistory, recall: Recall, table: str
) -> None:
    session, first, _ = await stored.session(["the ferry leaves", "at noon"])
    for n in range(40):
        await stored.say(session, f"line {n} of many")
    while await recall.tend():
        pass
    await _damage(stored, table)
    await stored.execute("UPDATE chunks SET is_indexed = 0")
    for _ in range(100):
        if not await recall.tend():
            break
    if await recall.verify():
        await recall.rebuild()
    while await recall.tend():
        pass
    assert await recall.verify() == []
    findings = await recall.recall(
        search_query(scopes=frozenset({ANA}), text="When does the ferry leave?", messages=1)
    )
    assert [hit.message_id for hit in findings.messages] == [first]


def test_the_terms_of_long_texts_are_made_once_and_only_the_latest_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terms, "CACHED_LONG_CHARS", 3_000)
    remembered = terms._LongTextCache()
    one, other, third = (f"{word} and more. " * 80 for word in ("Porto", "Lisbon", "Faro"))
    first = remembered(one, "Ana", 1)
    assert first == terms._message_terms(one, "Ana", 1)
    assert remembered(other, "Ana", 1)[0][0] == "lisbon"
    assert remembered(one, "Ana", 1) is first
    # Said by another it is not the same; and the one that was not asked for since goes.
    assert remembered(third, "Bo", 1)[1] == ("bo",)
    assert remembered(one, "Ana", 1) is first
    assert [key[0] for key in remembered._terms] == [third, one]
    assert remembered("x " * 2_000, "", 1)[0]
    assert not remembered._terms


async def test_chunks_of_many_scopes_are_ranked_scope_by_scope_with_unchanged_scores(
    database: Database, stored: StoredHistory
) -> None:
    scopes = [Scope.account("telegram", str(number)) for number in range(1, 6)]
    for number, scope in enumerate(scopes):
        await stored.session(["ferry harbour " * (number + 1), "ferry at nine"], scope=scope)
    while await database.write(chunks.index_pending):
        pass

    def rank(
        connection: Connection,
    ) -> tuple[list[tuple[int, float]], list[tuple[int, float]], int]:
        rows = connection.execute("SELECT DISTINCT scope_id FROM chunks ORDER BY scope_id")
        scope_ids = [row[0] for row in rows]
        leading = [scoped_term(scope_id, "harbour") for scope_id in scope_ids]
        lending = [scoped_term(scope_id, "ferri") for scope_id in scope_ids]
        index = connection.index
        (ranking,) = index.rank_chunks(connection, leading, lending, 5, 100, NO_CONDITION)
        ranked = connection.execute(f"{ranking.sql} ORDER BY id", ranking.values)
        as_one = connection.execute(
            "SELECT rowid, rank FROM chunks_fts WHERE chunks_fts MATCH :expression ORDER BY rowid",
            {"expression": f"({_any_of(leading)}) AND ({_any_of([*leading, *lending])})"},
        )
        expression_count = len(json.loads(str(ranking.values["expressions"])))
        return [tuple(row) for row in ranked], [tuple(row) for row in as_one], expression_count

    by_scope, as_one, expression_count = await database.read(rank)
    assert len(by_scope) == 5
    assert by_scope == as_one
    assert expression_count == 5


def _any_of(terms: list[str]) -> str:
    return " OR ".join(f'"{term}"' for term in terms)
