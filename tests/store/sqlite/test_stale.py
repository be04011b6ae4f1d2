"""A damaged text index costs no message and no word: it is flagged, written past, and can be built anew."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreError
from core.store.sessions import Conversations
from core.store.sqlite import indexing, text_index
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import empty_indexes, write_text
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, CHAT, message, opened

pytestmark = pytest.mark.slow

MINE: frozenset[Scope] = frozenset((ANA,))


def _rebuilt(connection: sqlite3.Connection) -> list[str]:
    while indexing.rebuild(connection):
        pass
    return indexing.wrong(connection)


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
async def test_a_damaged_index_costs_no_message(tmp_path: Path, clock: SteadyClock, damage: str) -> None:
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
        rows = await conversations.history(made, MINE)
        assert [row.text for row in rows] == ["before 東京都 the damage", "three 大阪城"]
        found = await conversations.find(made.id, MINE)
        assert found is not None
        assert found.messages == 2
        await database.write(empty_indexes)
        assert await database.write(_rebuilt) == []
        assert await database.read(_rows("SELECT * FROM messages_fts_config")) == settings
        hits = await database.read(
            _rows("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'three OR two OR one'")
        )
        assert hits == [(rows[1].id,)]


async def test_a_damaged_index_is_emptied_and_can_be_rebuilt(database: Database, clock: SteadyClock) -> None:
    conversations = Conversations(database, clock)
    made = await opened(conversations, "before")
    await database.write(
        lambda connection: connection.execute("UPDATE messages_fts_data SET block = zeroblob(7) WHERE id = 10").close()
    )
    async with Database.open(database.path) as other:
        await Conversations(other, clock).append([message(made.id, "after")])
    assert await database.read(text_index.is_stale)
    assert await database.read(_rows("SELECT COUNT(*) FROM messages_fts_docsize")) == [(0,)]
    assert await database.write(_rebuilt) == []
    assert not await database.read(text_index.is_stale)


async def test_an_error_that_is_no_damage_flags_nothing(database: Database, clock: SteadyClock) -> None:
    with pytest.raises(StoreError, match="no session 99"):
        await Conversations(database, clock).append([message(99)])
    for statement in ("INSERT INTO messages (id) VALUES (1)", "SELECT nothing", "INSERT INTO accounts VALUES (1, 2)"):
        with pytest.raises(StoreError):
            await write_text(database, lambda connection, wrong=statement: connection.execute(wrong).close())  # type: ignore[misc]
    assert not await database.read(text_index.is_stale)
