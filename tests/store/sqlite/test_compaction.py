"""Deleted bytes go from free pages, from the indexes and from the log, in small steps that others
can write between."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from core.store.rows import request_checkpoint, request_compaction
from core.store.sqlite.database import Database
from tests.fixtures.forgetting import left_of
from tests.fixtures.new_database import write_earlier
from tests.fixtures.stored_history import StoredHistory


def free_pages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


async def test_compaction_without_deleted_rows_does_no_step(database: Database) -> None:
    assert not await database.compact_step()
    assert await database.compact(0.0)


async def test_freed_pages_of_the_database_contain_no_text(database: Database) -> None:
    stored = StoredHistory(database)
    (session,) = await stored.session()
    for size in (10, 5_000, 60_000, 700_000):
        await stored.say(session, "Zanzibar " * (size // 9), kind="quote", role="tool")
    await database.checkpoint()
    assert left_of("Zanzibar", database.path) == ["state.db"]
    await stored.execute("DELETE FROM messages")
    assert await database.read(free_pages) > 180
    await database.write(request_checkpoint)
    assert await database.compact(60.0)
    assert left_of("Zanzibar", database.path) == []
    assert await stored.execute("PRAGMA integrity_check") == [("ok",)]


async def test_pages_freed_by_an_older_version_are_overwritten_once(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    write_earlier(
        path, 2, "INSERT INTO state_meta (key, value) VALUES ('erasure_compaction', 'emptying')"
    )
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE gone (text TEXT)")
        connection.executemany(
            "INSERT INTO gone VALUES (:text)", [{"text": "Zanzibar " * 8_000}] * 5
        )
        connection.execute("DROP TABLE gone")
        connection.commit()
    assert left_of("Zanzibar", path) == ["state.db"]
    async with Database.open(path) as database:
        assert await database.read(free_pages) > 50
        assert await database.compact(60.0)
        assert left_of("Zanzibar", path) == []


async def test_database_compaction_runs_in_steps_and_continues_in_another_process(
    database: Database,
) -> None:
    stored = StoredHistory(database)
    for number in range(40):
        await stored.session([f"Zanzibar {number}", "yes"])
    await stored.execute("UPDATE messages SET text = 'gone' WHERE role = 'user'")
    assert left_of("zanzibar", database.path)
    await database.write(request_compaction)
    await database.write(request_checkpoint)
    assert await database.compact_step()
    assert not await database.compact(0.0), "there was no time for it"
    await stored.session(["somebody writes between two steps", "yes"])
    async with Database.open(database.path) as other:
        while await other.compact_step():
            pass
        assert await other.compact(0.0)
    assert left_of("zanzibar", database.path) == []
