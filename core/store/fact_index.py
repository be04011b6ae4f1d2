"""Keeps the text index of the facts in order: made anew where it is damaged, and in small steps where folding changed.

A damaged index costs neither a fact nor the edit of a message. Everything in it is made from the facts themselves.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from core.errors import StoreError
from core.folding import VERSION
from core.store import fact_rows, upkeep
from core.store.database import Database
from core.store.fact_tables import FACTS_CONTENT, FACTS_RANK, FACTS_VERSION
from core.store.rows import keep_meta, meta

T = TypeVar("T")

STEP_FACTS = 500
_CURSOR = "facts_cursor"
"""Key of `state_meta`: the facts up to this id are folded anew."""


class FactIndex:
    """A chore of the caretaker."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tend(self) -> bool:
        """Folds the next facts anew where the index was made by another version; True while there is more to do."""
        if await self._database.read(lambda connection: meta(connection, FACTS_VERSION)) == str(VERSION):
            return False
        return await self._database.write(_fold)


async def write_facts(database: Database, work: Callable[[sqlite3.Connection], T]) -> T:
    """`Database.write` for work that changes facts. Where it fails, and the index is found to be damaged, the index is
    made anew and the work done again; any other failure is raised as it is."""
    try:
        return await database.write(work)
    except StoreError as error:
        if not isinstance(error.__cause__, sqlite3.DatabaseError):
            raise
    return await database.write(lambda connection: _again(connection, work))


def mend(connection: sqlite3.Connection) -> bool:
    """Makes the index anew where it cannot be used or does not hold what it should; False where all is well."""
    try:
        connection.execute("SELECT rowid FROM facts_fts WHERE facts_fts MATCH 'x' LIMIT 1").fetchall()
        connection.execute("INSERT INTO facts_fts (facts_fts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError:
        upkeep.blank(connection, "facts_fts")
        connection.execute(FACTS_CONTENT)
        connection.execute("DELETE FROM facts_fts_content")
        # FTS5 keeps in mind what it has read of its tables; this makes it look again.
        connection.execute("INSERT INTO facts_fts (facts_fts) VALUES ('rebuild')")
        connection.execute(FACTS_RANK)
        _index(connection, 0, -1)
        return True
    return False


def _again(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    mend(connection)
    return work(connection)


def _fold(connection: sqlite3.Connection) -> bool:
    last = _index(connection, int(meta(connection, _CURSOR) or 0), STEP_FACTS)
    if last is not None:
        keep_meta(connection, _CURSOR, str(last))
        return True
    keep_meta(connection, FACTS_VERSION, str(VERSION))
    connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": _CURSOR})
    return False


def _index(connection: sqlite3.Connection, after: int, count: int) -> int | None:
    """Puts the next facts into the index as they are folded now; the id of the last, None when there was none."""
    last = None
    for row in connection.execute(
        f"SELECT {fact_rows.COLUMNS} FROM facts WHERE id > :after ORDER BY id LIMIT :count",
        {"after": after, "count": count},
    ).fetchall():
        fact_rows.index(connection, row["id"], row["scope_id"], fact_rows.fact_of(row))
        last = int(row["id"])
    return last
