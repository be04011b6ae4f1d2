"""Which facts are listed as doubtful: stale, over or contradicted ones, until a person has judged them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from core.facts.provider import FactRanking, KnownFacts
from core.store.facts import Fact, Facts
from core.store.sqlite.database import Database
from core.types import Account, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.facts_memory import ZONE
from tests.fixtures.samples import ANA, BOB, NOON

HERS = frozenset((ANA,))


async def test_what_is_stale_over_or_contradicted_is_doubted_until_it_is_judged(
    database: Database, clock: SteadyClock
) -> None:
    facts = Facts(database, clock)
    known = KnownFacts(facts, FactRanking(), ZONE)

    async def learn(content: str, scope: Scope = ANA, **changes: Any) -> Fact:
        values = {"kind": "identity", "created_at": clock.now(), **changes}
        return await facts.learn(Fact(scope=scope, content=content, origin="rule", **values))

    passing = await learn("I am in Faro this week", kind="working")
    lease = await learn("The lease of the flat runs", valid_to=NOON + timedelta(days=20))
    party = await learn("I went to the party in Rome", kind="episode")
    rome = await learn("Ana lives in Rome", attribute="ana|home", value="rome")
    account = Account(platform="telegram", user_id="42")
    clock.advance(minutes=1)
    porto = await learn("Ana lives in Porto", attribute="ana|home", value="porto", account=account)
    pinned = await learn("The code is 4711", kind="working")
    await facts.pin(pinned.id, HERS)
    await learn("Ana lives in Bonn", BOB, attribute="ana|home", value="bonn")

    async def doubts() -> dict[int, str]:
        return await known.doubts(await facts.page(HERS), HERS, clock.now())

    assert await doubts() == {rome.id: f"says otherwise than f{porto.id}"}
    clock.advance(days=400)
    assert await doubts() == {
        rome.id: f"says otherwise than f{porto.id}",
        passing.id: "it mattered for some days, and was not said again",
        lease.id: "the time is over until which it was said to hold",
        party.id: "it happened over a year ago",
    }
    await facts.feedback(party.id, HERS, is_right=True)
    await facts.correct(passing.id, HERS, "I was in Faro that week")
    assert set(await doubts()) == {rome.id, lease.id}
    clock.advance(days=1)
    await learn("I went to the party in Rome", kind="episode", message_id=7, created_at=clock.now())
    assert party.id not in await doubts(), "it was said again"
    assert rome.id not in await known.doubts([rome, porto], frozenset((BOB,)), clock.now())
