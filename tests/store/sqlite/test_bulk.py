"""Indexing many messages at once: the indexes end up as the triggers would have left them, or not changed at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from core.store.sessions import Conversations, append
from core.store.sqlite import indexing, text_index
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import indexed_at_once
from core.types import Message
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import message, opened

TEXTS = ("the ferry to 東京都 leaves", "Ana 👍", "Привет", "plain words", "修改youer服务端")


def _matching(word: str) -> Callable[[sqlite3.Connection], list[int]]:
    statement = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH :word ORDER BY rowid"
    return lambda connection: [row[0] for row in connection.execute(statement, {"word": word})]


def _adding(session_id: int, **changes: Any) -> Callable[[sqlite3.Connection], None]:
    made: list[Message] = [message(session_id, text, **changes) for text in TEXTS]

    def work(connection: sqlite3.Connection) -> None:
        with indexed_at_once(connection):
            for one in made:
                append(connection, one)

    return work


async def test_at_once_is_as_by_triggers(database: Database, clock: SteadyClock) -> None:
    session = await opened(Conversations(database, clock), "the ferry before")
    await database.write(_adding(session.id))
    await database.write(_adding(session.id, kind="command"))
    assert await database.read(_matching("ferry")) == [1, 2]
    assert await database.write(indexing.wrong) == []
    assert not await database.read(text_index.is_stale)


async def test_what_fails_changes_nothing(database: Database, clock: SteadyClock) -> None:
    session = await opened(Conversations(database, clock), "the ferry before")

    def work(connection: sqlite3.Connection) -> None:
        _adding(session.id)(connection)
        with indexed_at_once(connection):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(work)
    assert await database.read(_matching("ferry")) == [1]
    assert not await database.read(text_index.is_stale)
    assert await database.write(indexing.wrong) == []


async def test_what_waits_for_a_rebuild_goes_on_waiting(database: Database, clock: SteadyClock) -> None:
    session = await opened(Conversations(database, clock), "the ferry before")
    await database.write(indexing.flag)
    await database.write(_adding(session.id))
    assert await database.read(text_index.is_stale)
    assert await database.read(_matching("ferry")) == [1]
    while await database.write(indexing.rebuild):
        pass
    assert await database.read(_matching("ferry")) == [1, 2]
    assert await database.write(indexing.wrong) == []
