"""Keeps the text index of the facts in order: made anew where it is damaged, and in small steps where folding changed.

A damaged index costs neither a fact nor the edit of a message. Everything in it is made from the facts themselves.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import TypeVar

from core.errors import StoreError
from core.store import fact_rows
from core.store.rows import keep_meta, meta
from core.store.sqlite import index_maintenance
from core.store.sqlite.database import Database
from core.store.sqlite.schema import FACTS_CONTENT, FACTS_RANK, FACTS_VERSION
from core.text.names import names_in
from core.text.normalize import VERSION

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

    async def verify(self) -> list[str]:
        """What is wrong with the index and the names, as sentences; empty when they agree with the facts."""
        sentences = await self._database.write(_damage)
        return sentences or await self._database.read(lambda connection: [*_astray(connection), *_misnamed(connection)])

    async def rebuild(self) -> int:
        """Makes the index anew and puts the names in order; returns how many facts there are."""

        def work(connection: sqlite3.Connection) -> int:
            _renew(connection)
            keep_meta(connection, FACTS_VERSION, str(VERSION))
            connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": _CURSOR})
            _rename(connection)
            return int(connection.execute("SELECT COUNT(*) FROM facts").fetchone()[0])

        return await self._database.write(work)


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
    if not _damage(connection):
        return False
    _renew(connection)
    return True


def _damage(connection: sqlite3.Connection) -> list[str]:
    try:
        connection.execute("SELECT rowid FROM facts_fts WHERE facts_fts MATCH 'x' LIMIT 1").fetchall()
        connection.execute("INSERT INTO facts_fts (facts_fts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        return [f"The search index of the facts is damaged ({error})."]
    return []


def _renew(connection: sqlite3.Connection) -> None:
    index_maintenance.blank(connection, "facts_fts")
    connection.execute(FACTS_CONTENT)
    connection.execute("DELETE FROM facts_fts_content")
    # FTS5 keeps in mind what it has read of its tables; this makes it look again.
    connection.execute("INSERT INTO facts_fts (facts_fts) VALUES ('rebuild')")
    connection.execute(FACTS_RANK)
    _index(connection, 0, -1)


def _astray(connection: sqlite3.Connection) -> Iterator[str]:
    """Facts that the index does not hold as they are, and what it holds of none."""
    if meta(connection, FACTS_VERSION) != str(VERSION):
        yield "The search index of the facts is of an earlier version and has not been made anew yet."
        return
    held = {row[0]: (row[1], row[2]) for row in connection.execute("SELECT id, c0, c1 FROM facts_fts_content")}
    wrong = 0
    for row in connection.execute(f"SELECT {fact_rows.COLUMNS} FROM facts"):
        wrong += held.pop(row["id"], None) != fact_rows.terms(row["scope_id"], fact_rows.fact_of(row))
    if wrong:
        yield f"Facts that their search index does not hold as they are: {wrong:,}."
    if held:
        yield f"Facts that their search index holds and that are gone: {len(held):,}."


def _misnamed(connection: sqlite3.Connection) -> Iterator[str]:
    """Ties between facts and names that cannot be, and names that count their facts wrong."""
    ties = connection.execute(f"SELECT COUNT(*) FROM fact_entities WHERE {_UNTIED}").fetchone()[0]
    if ties:
        yield f"Ties between facts and names that lead nowhere: {ties:,}."
    names = connection.execute(f"SELECT COUNT(*) FROM entities WHERE facts <> {_COUNTED} OR facts = 0").fetchone()[0]
    if names:
        yield f"Names that count their facts wrong: {names:,}."


def _rename(connection: sqlite3.Connection) -> None:
    """Takes out ties that cannot be, counts anew, and gives facts that have lost all their names those they hold."""
    connection.execute(f"DELETE FROM fact_entities WHERE {_UNTIED}")
    connection.execute(f"UPDATE entities SET facts = {_COUNTED}")
    connection.execute("DELETE FROM entities WHERE facts = 0")
    for row in connection.execute(
        f"SELECT {fact_rows.COLUMNS} FROM facts WHERE id NOT IN (SELECT fact_id FROM fact_entities)"
    ).fetchall():
        fact_rows.keep_names(connection, row["id"], row["scope_id"], names_in(row["content"]))


_COUNTED = "(SELECT COUNT(*) FROM fact_entities WHERE fact_entities.entity_id = entities.id)"
_UNTIED = """
NOT EXISTS (
    SELECT 1 FROM facts JOIN entities ON entities.scope_id = facts.scope_id
    WHERE facts.id = fact_entities.fact_id AND entities.id = fact_entities.entity_id
)
"""


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
