"""Deleted bytes go from free pages, from the indexes and from the log, in small steps that others can write between."""

from __future__ import annotations

import sqlite3

from core.store.sqlite.database import Database
from core.store.sqlite.erase_bytes import ByteErasure, want, want_pages
from tests.fixtures.annals import Annals
from tests.fixtures.forgetful import left_of


def free_pages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


async def test_nothing_is_done_where_nothing_was_deleted(database: Database) -> None:
    compaction = ByteErasure(database)
    assert not await compaction.step()
    assert await compaction.run(0.0)


async def test_free_pages_are_filled_with_zeros(database: Database) -> None:
    annals = Annals(database)
    (session,) = await annals.session()
    for size in (10, 5_000, 60_000, 700_000):
        await annals.say(session, "Zanzibar " * (size // 9), kind="quote", role="tool")
    await database.checkpoint()
    assert left_of("Zanzibar", database.path) == ["state.db"]
    await annals.execute("DELETE FROM messages")
    assert await database.read(free_pages) > 180
    await database.write(want_pages)
    assert await ByteErasure(database).run(60.0)
    assert left_of("Zanzibar", database.path) == []
    assert await annals.execute("SELECT COUNT(*) FROM zeros") == [(0,)]
    assert await annals.execute("PRAGMA integrity_check") == [("ok",)]


async def test_it_is_cut_into_steps_and_goes_on_in_another_process(database: Database) -> None:
    annals = Annals(database)
    for number in range(40):
        await annals.session([f"Zanzibar {number}", "yes"])
    await annals.execute("UPDATE messages SET text = 'gone' WHERE role = 'user'")
    assert left_of("zanzibar", database.path)
    await database.write(want)
    await database.write(want_pages)
    assert await ByteErasure(database).step()
    assert not await ByteErasure(database).run(0.0), "there was no time for it"
    await annals.session(["somebody writes between two steps", "yes"])
    async with Database.open(database.path) as other:
        compaction = ByteErasure(other)
        while await compaction.step():
            pass
        assert not await compaction.is_wanted()
    assert left_of("zanzibar", database.path) == []
