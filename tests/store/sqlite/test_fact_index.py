"""The index of the facts: damage costs no fact and no edit of a message, and a new folding is caught up with."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from core.search.recall import Recall
from core.store.facts import Fact, Facts
from core.store.rows import set_meta
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import mend
from core.store.sqlite.text_index import VERSION_KEY
from core.text.terms import names_in
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, CHAT, NOON, message, opened

OWN = frozenset((ANA,))
DAMAGE = (
    "UPDATE facts_fts_data SET block = x'ffffffffffffffffffff'",
    "DELETE FROM facts_fts_data",
    "DROP TABLE facts_fts_docsize",
    "DROP TABLE facts_fts_content",
    "DELETE FROM facts_fts_config",
)


def fact(content: str, message_id: int | None = None) -> Fact:
    return Fact(
        scope=ANA, content=content, kind="identity", origin="rule", created_at=NOON, message_id=message_id
    )  # fmt: skip


def _run(statement: str, connection: sqlite3.Connection) -> None:
    connection.execute(statement)


async def found(database: Database, *terms: str) -> list[str]:
    """What the index finds, by text alone."""
    return [known.content for known, _, _ in await Facts(database, SteadyClock()).candidates(terms, [], OWN)]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_costs_no_fact_and_no_edit(tmp_path: Path, clock: SteadyClock, damage: str) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        conversations = Conversations(database, clock)
        made = await opened(conversations)
        said = (await conversations.append([message(made.id, "I like tea", external_id="1")]))[0]
        await Facts(database, clock).learn(fact("I like tea", said.id))
        await Facts(database, clock).learn(fact("I like olives"))
        await database.write(lambda connection: connection.execute(damage).close())
    async with Database.open(path) as database:
        conversations = Conversations(database, clock)
        await conversations.append([message(made.id, "and cake", external_id="2")])
        assert await conversations.amend(CHAT, "1", "I like mate")
        await Facts(database, clock).learn(fact("I like honey"))
        assert set(await found(database, "like")) == {"I like olives", "I like honey"}
        assert not await database.write(mend), "it is whole again"


async def test_what_was_folded_otherwise_is_folded_anew(database: Database, clock: SteadyClock) -> None:
    for content in ("I like tea", "I like olives", "I like honey"):
        await Facts(database, clock).learn(fact(content))
    recall = Recall(database, clock)
    await database.write(lambda connection: connection.execute("UPDATE facts_fts SET terms = 'old'").close())
    assert not await recall.tend()
    assert await found(database, "oliv", "honei") == [], "it was made by this version"
    await database.write(lambda connection: set_meta(connection, VERSION_KEY, "0"))
    while await recall.tend():
        pass
    assert set(await found(database, "oliv", "honei")) == {"I like olives", "I like honey"}
    assert await recall.verify() == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM facts_fts WHERE rowid < 3", "or that it holds and that are gone: 2."),
        ("INSERT INTO facts_fts (rowid, terms) VALUES (9, 'x')", "or that it holds and that are gone: 1."),
        ("UPDATE facts_fts_data SET block = x'ffffffffffffffffffff'", "The search index of the facts is damaged"),
        ("DROP TABLE facts_fts_content", "The search index of the facts is damaged"),
    ],
)
async def test_a_check_finds_what_is_wrong_and_a_repair_mends_it(
    tmp_path: Path, clock: SteadyClock, damage: str, said: str
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        assert await Recall(database, clock).verify() == []
        for content in ("I live in Porto", "I like olives", "I met Ben"):
            await Facts(database, clock).learn(replace(fact(content), entities=names_in(content)))
        assert await Recall(database, clock).verify() == []
        await database.write(partial(_run, damage))
    async with Database.open(path) as database:
        index = Recall(database, clock)
        assert said in " ".join(await index.verify())
        await index.rebuild()
        assert await index.verify() == []
        assert await found(database, "oliv") == ["I like olives"]
        assert [known.content for known in await Facts(database, SteadyClock()).of_entities(["porto"], OWN)] == [
            "I live in Porto"
        ]
