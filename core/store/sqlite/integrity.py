"""Finds damage in state.db."""

from __future__ import annotations

from core.store.rows import Connection
from core.store.sqlite.database import Database

MAX_REPORTED_PROBLEMS = 5


async def find_damage(database: Database) -> list[str]:
    """Check the file and return a sentence about each problem."""

    def check(connection: Connection) -> list[str]:
        lines = connection.execute(f"PRAGMA quick_check({MAX_REPORTED_PROBLEMS})")
        problems = [str(line[0]) for line in lines if line[0] != "ok"]
        broken_rows = connection.execute("PRAGMA foreign_key_check").fetchall()
        for row in broken_rows[:MAX_REPORTED_PROBLEMS]:
            problems.append(f"a row of {row[0]} refers to nothing")
        return problems

    return await database.read(check)
