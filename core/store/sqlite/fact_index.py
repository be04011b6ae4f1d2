"""The text index of the facts and the names they hold: written, searched, checked, made anew where damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from core.errors import StoreError
from core.store.engine import Connection, Row
from core.store.rows import clean, insert, meta, set_meta
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value
from core.store.sqlite.index_schema import blank, scoped
from core.store.sqlite.schema import FACTS_CONTENT, FACTS_RANK, FACTS_VERSION
from core.text.names import entity_key, hints_of
from core.text.normalize import VERSION
from core.text.terms import terms_of
from core.types import ErasureEpoch

T = TypeVar("T")

COMMON = 2_000
"""A word that is in more facts than this is not looked for where a rarer one is asked too."""
_INDEXED = "SELECT id, scope_id, content, speaker, attribute FROM facts"
_NAME = """
INSERT INTO entities (scope_id, name, shown) VALUES (:scope, :name, :shown)
ON CONFLICT (scope_id, name) DO UPDATE SET shown = shown RETURNING id
"""
_TIE = """
INSERT INTO fact_entities (entity_id, fact_id) VALUES (:entity, :fact) ON CONFLICT (entity_id, fact_id) DO NOTHING
"""


def index_fact(connection: Connection, fact_id: int) -> None:
    values: dict[str, object] = {"id": fact_id}
    values["terms"], values["hints"] = _terms(connection.execute(f"{_INDEXED} WHERE id = :id", values).fetchone())
    connection.execute("DELETE FROM facts_fts WHERE rowid = :id", values)
    connection.execute("INSERT INTO facts_fts (rowid, terms, hints) VALUES (:id, :terms, :hints)", values)


def keep_names(connection: Connection, fact_id: int, scope_id: int, names: Iterable[str]) -> None:
    connection.execute("DELETE FROM fact_entities WHERE fact_id = :fact", {"fact": fact_id})
    for shown in map(clean, names):
        if name := entity_key(shown):
            entity_id = insert(connection, _NAME, {"scope": scope_id, "name": name, "shown": shown})
            connection.execute(_TIE, {"entity": entity_id, "fact": fact_id})


def text_scores(connection: Connection, terms: Sequence[str], scope_ids: Sequence[int], limit: int) -> dict[int, float]:
    """bm25 above 0 by fact id. A word in very many facts counts only where all words are such, then the rarest."""
    words = [scoped(scope_id, term) for scope_id in scope_ids for term in terms]
    counted = connection.execute(
        f"SELECT term, doc FROM facts_vocabulary WHERE {in_list('term', 'words')}", {"words": list_value(words)}
    )
    found = {row["term"]: row["doc"] for row in counted}
    chosen = [word for word, count in found.items() if count <= COMMON] or sorted(found, key=found.__getitem__)[:1]
    if not chosen:
        return {}
    ranked = connection.execute(
        "SELECT rowid AS id, rank AS score FROM facts_fts WHERE facts_fts MATCH :words ORDER BY rank LIMIT :limit",
        {"words": " OR ".join(f'"{word}"' for word in chosen), "limit": limit},
    )
    # A word that is in over half of all facts has a negative weight in FTS5's bm25; it still counts a little.
    return {row["id"]: max(1e-6, -row["score"]) for row in ranked}


class FactIndex:
    """Keeps the index in order, as a chore of the maintenance and for `mneme check`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tend(self) -> bool:
        """Makes the index anew where another version made it; at once, since a person's facts are few."""
        if await self._database.read(lambda connection: meta(connection, FACTS_VERSION)) != str(VERSION):
            await self.rebuild()
        return False

    async def verify(self) -> list[str]:
        """What is wrong with the index, as sentences; empty when it agrees with the facts."""
        damage = await self._database.write(_damage)
        return damage or await self._database.read(lambda connection: list(_disagreements(connection)))

    async def rebuild(self) -> int:
        """Makes the index anew; returns how many facts there are."""

        def work(connection: Connection) -> int:
            _renew(connection)
            set_meta(connection, FACTS_VERSION, str(VERSION))
            return int(connection.execute("SELECT COUNT(*) FROM facts").fetchone()[0])

        return await self._database.write(work)


async def write_facts(database: Database, work: Callable[[Connection], T], epoch: ErasureEpoch | None = None) -> T:
    """`Database.write` for facts; on index damage the index is made anew and the work done again."""
    try:
        return await database.write(work, epoch)
    except StoreError as error:
        if not isinstance(error.__cause__, sqlite3.DatabaseError):
            raise
    await database.write(mend, epoch)
    return await database.write(work, epoch)


def mend(connection: Connection) -> bool:
    """Makes the index anew where it cannot be used or does not hold what it should; False where all is well."""
    is_damaged = bool(_damage(connection))
    if is_damaged:
        _renew(connection)
    return is_damaged


def _terms(row: Row) -> tuple[str, str]:
    words, hints = (*terms_of(row["content"]), *terms_of(row["speaker"])), hints_of(row["attribute"])
    held, asked = (" ".join(scoped(row["scope_id"], term) for term in terms) for terms in (words, hints))
    return held, asked


def _damage(connection: Connection) -> list[str]:
    try:
        connection.execute("SELECT rowid FROM facts_fts WHERE facts_fts MATCH 'x' LIMIT 1").fetchall()
        connection.execute("INSERT INTO facts_fts (facts_fts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        return [f"The search index of the facts is damaged ({error})."]
    return []


def _renew(connection: Connection) -> None:
    blank(connection, "facts_fts")
    connection.execute(FACTS_CONTENT)
    connection.execute("DELETE FROM facts_fts_content")
    # FTS5 keeps in mind what it has read of its tables; this makes it look again.
    connection.execute("INSERT INTO facts_fts (facts_fts) VALUES ('rebuild')")
    connection.execute(FACTS_RANK)
    for row in connection.execute("SELECT id FROM facts").fetchall():
        index_fact(connection, row["id"])


def _disagreements(connection: Connection) -> Iterator[str]:
    if meta(connection, FACTS_VERSION) != str(VERSION):
        yield "The search index of the facts is of an earlier version and has not been made anew yet."
        return
    held = {row[0]: (row[1], row[2]) for row in connection.execute("SELECT id, c0, c1 FROM facts_fts_content")}
    wrong = sum(held.pop(row["id"], None) != _terms(row) for row in connection.execute(_INDEXED))
    if wrong:
        yield f"Facts that their search index does not hold as they are: {wrong:,}."
    if held:
        yield f"Facts that their search index holds and that are gone: {len(held):,}."
