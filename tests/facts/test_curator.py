"""The curator: what it doubts, what it never touches, and how little it does at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from config.settings import CuratorOptions
from core.facts.curator import Curator
from core.store.fact_search import FactSearch
from core.store.facts import Fact, Facts
from core.store.inbox import Inbox
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.text.names import names_in
from core.types import Account, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, BOB, inbound, opened

OPTIONS = CuratorOptions(enabled=True, idle_s=600.0, every_s=300.0, again_s=86400.0, max_changes=20, max_s=2.0)
HERS = Account(platform="telegram", user_id="42")


@dataclass
class _World:
    facts: Facts
    curator: Curator
    clock: SteadyClock
    conversations: Conversations

    async def know(self, content: str, **changes: Any) -> Fact:
        self.clock.advance(minutes=1)
        base: dict[str, Any] = {
            "scope": ANA,
            "kind": "identity",
            "origin": "rule",
            "created_at": self.clock.now(),
            "entities": names_in(content),
            "account": HERS,
        }
        return await self.facts.learn(Fact(content=content, **{**base, **changes}))

    async def find(self, fact: Fact) -> Fact:
        found = await self.facts.find(fact.id, frozenset((fact.scope,)))
        assert found is not None
        return found

    async def deeds(self, *scopes: Scope) -> list[tuple[int, str, str]]:
        """What it has done, oldest first, as (fact, what, why)."""
        changes = await self.facts.changes(frozenset(scopes or (ANA,)), 1_000)
        return [
            (change.fact_id, change.action, change.reason) for change in reversed(changes) if change.action == "flag"
        ]


@pytest.fixture
def world(database: Database, clock: SteadyClock) -> _World:
    facts = Facts(database, clock)
    curator = Curator(facts, FactSearch(database), clock, OPTIONS)
    return _World(facts, curator, clock, Conversations(database, clock))


async def test_what_is_pinned_stays_as_it_is(world: _World) -> None:
    van = await world.know("I drive a van", kind="working")
    await world.facts.pin(van.id, frozenset((ANA,)))
    world.clock.advance(days=400)
    assert await world.curator.tend() == 0


async def test_facts_that_differ_in_a_number_or_a_name_or_a_scope_are_not_nearly_the_same(world: _World) -> None:
    for text in ("Room 12 is free and has a view", "Room 13 is free and has a view", "Box Ben is free and has a view"):
        await world.know(text)
    await world.know("Room 12 is free and has some view", scope=BOB)
    assert await world.curator.tend() == 0


async def test_what_is_stale_or_contradicted_or_nearly_the_same_is_doubted_once(world: _World) -> None:
    passing = await world.know("I am in Faro this week", kind="working")
    over = await world.know("The lease of the flat runs", valid_to=world.clock.now() + timedelta(days=20))
    party = await world.know("I went to the party in Rome", kind="episode")
    wrong = await world.know("I drive a van")
    for _ in range(3):
        await world.facts.feedback(wrong.id, frozenset((ANA,)), is_right=False)
    birthday = await world.know("Ana's birthday is on 3 May", attribute="ana|birthday", value="3.5", account=None)
    later = await world.know("Ana's birthday is on 4 May", attribute="ana|birthday", value="4.5")
    world.clock.advance(days=400)
    tall = await world.know("The tall blue cupboard in the hall holds winter coats")
    near = await world.know("The tall blue cupboard in the hall holds all winter boots coats")
    assert await world.curator.tend() == 6
    assert sorted(await world.deeds()) == [
        (passing.id, "flag", "it mattered for some days, and was not said again"),
        (over.id, "flag", "the time is over until which it was said to hold"),
        (party.id, "flag", "it happened over a year ago"),
        (wrong.id, "flag", "it was called wrong"),
        (birthday.id, "flag", f"says otherwise than f{later.id}"),
        (tall.id, "flag", f"says nearly the same as f{near.id}"),
    ]
    assert all([(await world.find(fact)).is_open for fact in (passing, over, party, wrong, birthday, tall)])
    world.clock.advance(days=2)
    assert await world.curator.tend() == 0


async def test_it_waits_until_nobody_is_there_and_rests_when_nothing_changed(world: _World) -> None:
    await opened(world.conversations, "hello")
    await world.know("I drive a van", kind="working")
    world.clock.moment = datetime(2026, 11, 20, 12, 5, tzinfo=UTC)
    assert await world.curator.tend() == 0
    world.clock.advance(days=20)
    assert await world.curator.tend() == 1
    await world.know("I ride a bike", kind="working", created_at=datetime(2026, 10, 1, tzinfo=UTC))
    assert await world.curator.tend() == 1
    assert await world.curator.tend() == 0


async def test_what_leaves_no_message_is_a_talk_too(world: _World, database: Database) -> None:
    await world.know("I drive a van", kind="working", created_at=datetime(2026, 10, 1, tzinfo=UTC))
    inbox = Inbox(database, world.clock)
    entry = await inbox.accept(inbound("1", text="hello"), world.clock.now())
    assert entry is not None
    assert await world.curator.tend() == 0, "somebody waits for an answer"
    world.clock.advance(minutes=11)
    await inbox.close([entry])
    assert await world.curator.tend() == 0, "it was answered just now, incognito for instance"
    world.clock.advance(minutes=11)
    assert await world.curator.tend() == 1


async def test_it_works_in_portions_over_all_scopes(world: _World) -> None:
    old = datetime(2026, 10, 1, tzinfo=UTC)
    scopes = [ANA, BOB]
    for number in range(OPTIONS.max_changes + 5):
        for scope in scopes:
            await world.know(f"Box {number} is on shelf {number}", scope=scope, kind="working", created_at=old)
    done = [await world.curator.tend() for _ in range(4)]
    assert done == [OPTIONS.max_changes, OPTIONS.max_changes, 10, 0]
    assert len(await world.deeds(*scopes)) == 2 * (OPTIONS.max_changes + 5)


async def test_one_that_was_stopped_in_the_middle_is_gone_on_with_and_nothing_is_done_twice(
    world: _World, database: Database
) -> None:
    old = datetime(2026, 10, 1, tzinfo=UTC)
    for number in range(3):
        await world.know(f"Box {number} is on shelf {number}", kind="working", created_at=old)
    slow = OPTIONS.model_copy(update={"max_changes": 2})
    lives = [Curator(world.facts, FactSearch(database), world.clock, slow) for _ in range(4)]
    assert [await life.tend() for life in lives] == [2, 1, 0, 0], "each life begins with the first fact again"
    assert len(await world.deeds()) == 3
