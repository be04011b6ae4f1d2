"""Much history at once: few transactions, indexes that stay small, and odd ids known again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from core.store.search.text_search import is_stale
from core.store.sqlite.database import Database
from tests.transfer.test_archive import exported, line, sessions, take


def _segments(connection: sqlite3.Connection) -> int:
    return int(
        connection.execute("SELECT COUNT(DISTINCT segid) FROM messages_fts_idx").fetchone()[0]
    )


async def test_many_sessions_share_a_transaction(database: Database) -> None:
    await take(
        database, [line(f"ferry {number}", session=f"s{number // 10}") for number in range(2200)]
    )
    assert await database.read(_segments) == 2, "one for each transaction: 2,000 and 200"
    assert [one["message_count"] for one in await sessions(database)] == [10] * 220


async def test_a_damaged_index_takes_no_message_from_an_import(tmp_path: Path) -> None:
    for table in ("messages_fts_data", "chunks_fts_data"):
        path = tmp_path / f"{table}.db"
        async with Database.open(path) as database:
            await take(database, [line("before the damage")])
            damage = f"UPDATE {table} SET block = x'ffffffffffffffffffff'"
            await database.write(
                lambda connection, damage=damage: connection.execute(damage).close()  # type: ignore[misc]
            )
        async with Database.open(path) as database:
            assert (await take(database, [line("after it", session="s2")])).imported_count == 1
            assert [one["text"] for one in await exported(database)] == [
                "before the damage",
                "after it",
            ]
            assert await database.read(is_stale) == (table == "messages_fts_data")


async def test_ids_that_are_no_plain_text_are_known_again(database: Database) -> None:
    odd = ["a\0b", "a\0c", "\ud83d", "\ufffd", "'\"", " "]
    lines = [line(f"text {number}", id=one) for number, one in enumerate(odd)]
    first = await take(database, lines)
    assert (first.imported_count, first.known_count) == (5, 1), (
        "a lone surrogate is stored as U+FFFD"
    )
    assert (await take(database, [*lines, *lines])).known_count == 12
