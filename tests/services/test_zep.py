"""What only Zep has: facts with the time in which they hold, facts that come later, long turns, and
two deployments."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, DeliveryError
from core.memory.plugins import Plugins
from core.memory.provider import Forgotten
from core.memory.service import Entry, RemoteMemory, RemoteService, SyncItem, format_memory
from core.store.notes import NoteChange
from tests.fixtures.provider_contract import SAID
from tests.fixtures.provider_harness import ANA, ProviderHarness, harness
from tests.services.doubles.double import running
from tests.services.doubles.zep import ZepDouble
from tests.services.registry import SERVICES

pytestmark = pytest.mark.slow
CLOUD, LIBRARY = SERVICES["zep, cloud"], SERVICES["zep, graphiti"]
NOW = datetime.now(UTC)
needs_library = pytest.mark.skipif(
    find_spec("graphiti_core") is None, reason="Graphiti is not here: `make services` has it"
)


@pytest.fixture
async def zep() -> AsyncIterator[ZepDouble]:
    async with running(double := ZepDouble()):
        yield double


BRAGA, FARO = "My sister Ines moved and lives in Braga.", "My sister Ines moved to Faro."
# It begins at the same time as another fact, and ends none.
YOGA = "My sister Ines began yoga."


@dataclass(frozen=True, kw_only=True)
class FilledGraphiti:
    """Graphiti with a graph of turns, ten days apart."""

    provider: RemoteService
    own: Any

    async def run(self, do: Callable[[RemoteService, str], Coroutine[Any, Any, Any]]) -> Any:
        return await self.own._run(lambda: do(self.provider, self.provider.space(ANA)))

    async def add(self, number: int, text: str) -> None:
        at = NOW - timedelta(days=30 - 10 * number)
        item = SyncItem(key=_key_of(text), kind="turn", lines=[("user", text)], at=at)
        await self.run(lambda provider, space: provider.keep(space, item))

    async def forget(self, text: str) -> None:
        await self.run(
            lambda provider, space: provider.erase(Entry(key=_key_of(text), space=space))
        )

    async def read_facts(self) -> dict[str, RemoteMemory]:
        asked = "Where does my sister Ines live?"
        memories = await self.run(lambda provider, space: provider.find(space, asked, 5))
        return {memory.text: memory for memory in memories}

    def day(self, number: int) -> str:
        return (NOW - timedelta(days=30 - 10 * number)).date().isoformat()


def _key_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@asynccontextmanager
async def graphiti_with(home: Path, *texts: str) -> AsyncIterator[FilledGraphiti]:
    async with running(LIBRARY.double()) as double:
        provider = LIBRARY.made(home, double)
        assert isinstance(provider, RemoteService)
        async with harness(home, [provider], timeout_s=60) as one:
            own = one.memory.externals["zep"]
            await own.call(60, "is_available")
            graphiti = FilledGraphiti(provider=provider, own=own)
            for number, text in enumerate(texts):
                await graphiti.add(number, text)
            yield graphiti


async def forget(one: ProviderHarness, *texts: str) -> None:
    rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
    gone = [row.id for row in rows if row.text in texts]
    for number in gone:
        await one.database.execute(
            "UPDATE messages SET kind = 'command', text = '' WHERE id = :id", {"id": number}
        )
    assert await one.queue.forget(gone)
    one.worker.wake()


async def tell(one: ProviderHarness, *texts: str) -> None:
    """Send each line on a separate day."""
    for number, text in enumerate(texts, 1):
        await one.turn(text)
        await one.carried(number)
        one.clock.advance(days=1)


@pytest.mark.parametrize(
    ("until", "text"),
    [
        ("", "Ana lives in Porto (2026-05-03)"),
        ("2026-06-01T09:00:00Z", "Ana lives in Porto (2026-05-03, over since 2026-06-01)"),
        ("2999-06-01T09:00:00Z", "Ana lives in Porto (2026-05-03, until 2999-06-01)"),
    ],
)
def test_zep_memory_is_shown_with_its_start_and_end_date(until: str, text: str) -> None:
    memory = RemoteMemory(
        id="1", text="Ana lives in\nPorto", at="2026-05-03T10:00:00Z", until=until
    )
    assert format_memory(memory) == text


async def test_zep_fact_that_is_no_longer_valid_is_marked_and_returned_last(
    zep: ZepDouble, home: Path
) -> None:
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        (edge,) = zep.edges.values()
        edge["invalid_at"] = "2026-06-01T00:00:00Z"
        (line,) = await one.recalled(SAID)
        assert ", over since 2026-06-01)" in line
        await one.turn("Ines moved to Braga.")
        await one.carried(2)
        current, former = await one.recalled(SAID)
        assert "Braga" in current
        assert "over since" not in current
        assert "Porto" in former


@pytest.mark.parametrize("is_tool", [True, False])
async def test_fact_holds_again_when_the_one_that_ended_it_is_deleted(
    zep: ZepDouble, home: Path, is_tool: bool
) -> None:
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await tell(one, SAID, BRAGA)
        zep.end(SAID, by=BRAGA)
        assert "over since" in (await one.recalled(SAID))[1]
        if is_tool:
            tools = {tool.name: tool for tool in await one.memory.tools()}
            (fact,) = [edge["uuid"] for edge in zep.edges.values() if edge["fact"] == BRAGA]
            await tools["zep_delete"].run({"memory_id": fact}, await one.context(ANA))
        else:
            await forget(one, BRAGA)
            await one.carried(3)
        (line,) = await one.recalled(SAID)
        assert SAID in line
        assert "over since" not in line


async def test_fact_ends_with_the_next_one_when_the_one_between_is_forgotten(
    zep: ZepDouble, home: Path
) -> None:
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await tell(one, SAID, BRAGA, FARO)
        zep.end(SAID, by=BRAGA)
        zep.end(BRAGA, by=FARO)
        days = {edge["fact"]: edge["valid_at"][:10] for edge in zep.edges.values()}
        await forget(one, BRAGA)
        await one.watch.until(lambda: BRAGA not in zep.texts())
        (line,) = [line for line in await one.recalled(SAID) if SAID in line]
        assert f"over since {days[FARO]}" in line
        await forget(one, FARO)
        await one.watch.until(lambda: FARO not in zep.texts())
        (line,) = await one.recalled(SAID)
        assert "over since" not in line


async def test_fact_stays_over_when_an_unrelated_one_of_the_same_day_is_forgotten(
    zep: ZepDouble, home: Path
) -> None:
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await tell(one, SAID, BRAGA, YOGA)
        edges = {edge["fact"]: edge for edge in zep.edges.values()}
        edges[YOGA]["valid_at"] = edges[BRAGA]["valid_at"]
        zep.end(SAID, by=BRAGA)
        await forget(one, YOGA)
        await one.watch.until(lambda: YOGA not in zep.texts())
        (line,) = [line for line in await one.recalled(SAID) if SAID in line]
        assert f"over since {edges[BRAGA]['valid_at'][:10]}" in line


async def test_fact_ends_with_the_next_one_left_when_two_in_between_are_forgotten(
    zep: ZepDouble, home: Path
) -> None:
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await one.turn(SAID)
        await one.turn(BRAGA, FARO)
        await one.turn(YOGA)
        await one.carried(3)
        edges = {edge["fact"]: edge for edge in zep.edges.values()}
        for number, text in enumerate((SAID, BRAGA, FARO, YOGA), 1):
            edges[text]["valid_at"] = f"2026-05-0{number}T10:00:00Z"
        zep.end(SAID, by=BRAGA)
        zep.end(BRAGA, by=FARO)
        zep.end(FARO, by=YOGA)
        await forget(one, BRAGA, FARO)
        await one.watch.until(lambda: zep.texts() == [SAID, YOGA])
        (line,) = [line for line in await one.recalled(SAID) if SAID in line]
        assert "over since 2026-05-04" in line


async def test_fact_that_ended_otherwise_stays_over(zep: ZepDouble, home: Path) -> None:
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await tell(one, SAID, BRAGA)
        (edge,) = [edge for edge in zep.edges.values() if edge["fact"] == SAID]
        edge["invalid_at"] = "2026-01-01T00:00:00Z"
        await forget(one, BRAGA)
        await one.carried(3)
        (line,) = await one.recalled(SAID)
        assert "over since 2026-01-01" in line


async def test_zep_fact_stays_while_another_message_that_states_it_is_left(
    zep: ZepDouble, home: Path
) -> None:
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await one.turn(f"  {SAID}")
        await one.turn(SAID)
        await one.turn("Our boat is called Molly.")
        await one.carried(3)
        assert len(zep.episodes) == 3
        await forget(one, SAID, "Our boat is called Molly.")
        await one.carried(5)
        assert zep.texts() == [SAID]
        assert len(zep.episodes) == 1
        (edge,) = zep.edges.values()
        assert set(zep.episodes) <= set(edge["episode_uuids"])


@pytest.mark.parametrize("is_at_once", [True, False])
async def test_zep_fact_is_deleted_once_every_message_that_stated_it_is_forgotten(
    zep: ZepDouble, home: Path, is_at_once: bool
) -> None:
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await one.turn(f"  {SAID}")
        await one.turn(SAID)
        await one.carried(2)
        batches = [(SAID, f"  {SAID}")] if is_at_once else [(SAID,), (f"  {SAID}",)]
        for texts in batches:
            await forget(one, *texts)
        await one.watch.until(lambda: not zep.episodes)
        assert set(one.ends) == {"done"}
        assert zep.texts() == []
        assert await one.recalled(SAID) == []


async def test_zep_fact_from_two_parts_of_one_turn_is_deleted_with_the_turn(
    zep: ZepDouble, home: Path
) -> None:
    provider = CLOUD.made(home, zep)
    assert isinstance(provider, RemoteService)
    async with harness(home, [provider]) as one:
        own = one.memory.externals["zep"]
        await own.call(20, "is_available")
        lines = [("user", SAID), ("assistant", "x" * 8_900), ("user", SAID)]
        item = SyncItem(key="a" * 32, kind="turn", lines=lines, at=NOW)  # type: ignore[arg-type]
        await own._run(lambda: provider.sync_item(ANA, item))
        (edge,) = zep.edges.values()
        assert len(edge["episode_uuids"]) == len(zep.episodes) == 2
        (entry,) = provider.record.find_entries(provider.space(ANA), mark="")
        assert await own._run(lambda: provider.holds(entry))
        await own._run(lambda: provider.erase_all([entry]))
        assert zep.texts() == []
        assert zep.episodes == {}


async def test_zep_fact_whose_messages_were_all_deleted_still_counts_as_stored(
    zep: ZepDouble, home: Path
) -> None:
    provider = CLOUD.made(home, zep)
    assert isinstance(provider, RemoteService)
    async with harness(home, [provider]) as one:
        own = one.memory.externals["zep"]
        await own.call(20, "is_available")
        for key in ("a" * 32, "b" * 32):
            item = SyncItem(key=key, kind="turn", lines=[("user", SAID)], at=NOW)
            await own._run(lambda item=item: provider.sync_item(ANA, item))
        entries = provider.record.find_entries(provider.space(ANA), mark="")
        zep.episodes.clear()
        assert await own._run(lambda: provider.holds(entries[0]))


async def test_episode_without_facts_yet_is_deleted_when_it_has_them(
    zep: ZepDouble, home: Path
) -> None:
    zep.is_late = True
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        await forget(one, SAID)
        await one.carried(2)
        assert one.ends == ["done", "postponed"]
        zep.work()
        assert zep.texts() == [SAID]
        await one.later(seconds=6)
        await one.carried(3)
        assert zep.texts() == []


async def test_user_that_vanished_in_the_cloud_is_created_again(zep: ZepDouble, home: Path) -> None:
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        zep.users.clear()
        zep.episodes.clear()
        zep.edges.clear()
        assert await one.recalled(SAID) == []
        await one.turn("Our boat is called Molly.")
        await one.carried(2)
        zep.users.clear()
        await one.turn("Our cat is called Tom.")
        await forget(one, SAID)
        await one.carried(4)
        assert set(one.ends) == {"done"}
        assert "Tom" in "\n".join(await one.recalled("What is our cat called?"))


async def test_waiting_for_facts_of_an_episode_is_no_failure(zep: ZepDouble, home: Path) -> None:
    zep.is_late = True
    async with harness(home, [CLOUD.made(home, zep)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        await forget(one, SAID)
        for number in range(2, 7):
            await one.carried(number)
            await one.later(seconds=6)
        assert one.ends[1:6] == ["postponed"] * 5
        assert one.memory.states["zep"].startswith("works")
        assert one.notices == []


async def test_long_turn_becomes_several_zep_episodes_that_are_erased_together(
    zep: ZepDouble, home: Path
) -> None:
    provider = CLOUD.made(home, zep)
    assert isinstance(provider, RemoteService)
    async with harness(home, [provider]) as one:
        own = one.memory.externals["zep"]
        await own.call(20, "is_available")
        lines = [("user", f"Sentence {number} is long. " * 100) for number in range(12)]
        item = SyncItem(key="a" * 32, kind="turn", lines=[*lines, ("user", "x" * 20_000)], at=NOW)  # type: ignore[list-item]
        ids = await own._run(lambda: provider.sync_item(ANA, item))
        assert len(ids) == len(zep.episodes) > 2
        assert all(len(episode["content"]) <= 10_000 for episode in zep.episodes.values())
        (entry,) = provider.record.find_entries(provider.space(ANA), mark="")
        await own._run(lambda: provider.erase(entry))
        assert zep.episodes == {}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"deployment": "bogus"}, "deployment of zep should be one of: cloud, graphiti."),
        ({"deployment": "graphiti"}, "zep needs llm_url"),
        (
            {"deployment": "graphiti", "llm_url": "http://x", "graph_url": "redis://x"},
            "graph_url of zep should begin with",
        ),
    ],
)
def test_zep_with_an_unset_key_names_the_problem_of_another_option_too(
    home: Path, options: dict[str, str], problem: str
) -> None:
    table = {"key": "ZEP_API_KEY", **options}
    with pytest.raises(ConfigError, match="variable ZEP_API_KEY is not set") as caught:
        Plugins(home).create_provider("zep", table, {})
    assert problem in str(caught.value)


@needs_library
async def test_graphiti_marks_a_fact_that_a_later_one_ended(home: Path) -> None:
    async with graphiti_with(home, SAID, BRAGA) as graphiti:
        facts = await graphiti.read_facts()
        assert facts[SAID].until[:10] == graphiti.day(1)
        assert "over since" in format_memory(facts[SAID])
        assert facts[BRAGA].until == ""


@needs_library
@pytest.mark.parametrize("is_tool", [True, False])
async def test_graphiti_fact_holds_again_when_the_one_that_ended_it_is_deleted(
    home: Path, is_tool: bool
) -> None:
    async with graphiti_with(home, SAID, BRAGA) as graphiti:
        if is_tool:
            ids = {text: fact.id for text, fact in (await graphiti.read_facts()).items()}
            assert await graphiti.run(lambda provider, space: provider.take_out(space, ids[BRAGA]))
        else:
            await graphiti.forget(BRAGA)
        facts = await graphiti.read_facts()
        assert list(facts) == [SAID]
        assert facts[SAID].until == ""
        assert "over since" not in format_memory(facts[SAID])


@needs_library
async def test_graphiti_fact_ends_with_the_next_one_when_the_one_between_is_forgotten(
    home: Path,
) -> None:
    async with graphiti_with(home, SAID, BRAGA, FARO) as graphiti:
        facts = await graphiti.read_facts()
        assert [facts[text].until[:10] for text in (SAID, BRAGA)] == [
            graphiti.day(1),
            graphiti.day(2),
        ]
        await graphiti.forget(BRAGA)
        facts = await graphiti.read_facts()
        assert facts[SAID].until[:10] == graphiti.day(2)
        await graphiti.forget(FARO)
        facts = await graphiti.read_facts()
        assert {text: fact.until for text, fact in facts.items()} == {SAID: ""}


@needs_library
@pytest.mark.parametrize("texts", [(YOGA, BRAGA), (BRAGA, YOGA)])
@pytest.mark.parametrize("forgotten", [YOGA, BRAGA])
async def test_graphiti_fact_is_current_again_only_without_the_one_that_ended_it(
    home: Path, texts: tuple[str, str], forgotten: str
) -> None:
    async with graphiti_with(home, SAID) as graphiti:
        for text in texts:
            await graphiti.add(1, text)
        await graphiti.forget(forgotten)
        facts = await graphiti.read_facts()
        assert facts[SAID].until[:10] == (graphiti.day(1) if forgotten == YOGA else "")


@needs_library
@pytest.mark.parametrize("kind", ["turn", "note"])
async def test_graphiti_forgets_what_is_still_being_added(home: Path, kind: str) -> None:
    item = SyncItem(key="a" * 32, kind="turn", lines=[("user", SAID)], at=NOW)
    note = NoteChange(id=1, scope=ANA, target="user", action="add", at=NOW, after=SAID)
    removal = replace(note, id=2, action="remove", before=SAID, after=None)
    async with running(LIBRARY.double()) as double:
        provider = LIBRARY.made(home, double)
        assert isinstance(provider, RemoteService)

        async def add() -> None:
            if kind == "turn":
                await provider.sync_item(ANA, item, messages=[1])
            else:
                await provider.on_memory_write(note)

        async def erase() -> None:
            if kind == "turn":
                await provider.on_forget(Forgotten(scope=ANA, messages=(1,)))
            else:
                await provider.on_memory_write(removal)

        async def finish_additions() -> None:
            await asyncio.gather(*provider._engine._additions.values())  # type: ignore[attr-defined]

        async with harness(home, [provider], timeout_s=60) as one:
            own = one.memory.externals["zep"]
            await own.call(60, "is_available")
            double.is_asked.clear()
            double.fault = "hanging"
            addition = asyncio.create_task(own._run(add))
            await double.is_asked.wait()
            # The outbox gives up, but the addition continues.
            addition.cancel()
            await asyncio.wait([addition])
            erasure = asyncio.create_task(own._run(erase))
            # An erasure that doesn't wait for the addition ends meanwhile.
            await asyncio.wait([erasure], timeout=0.5)
            double.fault = "well"
            double.may_go.set()
            await erasure
            await own._run(finish_additions)
            assert double.texts() == []
            assert await one.recalled(SAID) == []
        assert provider.record.find_entries(provider.space(ANA), [1], [1]) == []


@needs_library
async def test_graphiti_with_a_slow_model_is_not_called_broken(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.memory.services._graphiti.ADDITION_WAIT_S", 0.1)
    async with running(LIBRARY.double()) as double:
        provider = LIBRARY.made(home, double)
        async with harness(home, [provider], timeout_s=60) as one, one.working():
            await one.memory.externals["zep"].call(60, "is_available")
            double.fault = "hanging"
            await one.turn(SAID)
            for number in range(1, 5):
                await one.carried(number)
                await one.later(seconds=6)
            assert one.ends[:4] == ["postponed"] * 4
            assert one.memory.states["zep"].startswith("works")
            double.fault = "well"
            double.may_go.set()
            while "done" not in one.ends:
                await one.carried(len(one.ends) + 1)
                await one.later(seconds=6)
            assert double.texts() == [SAID]


@needs_library
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"llm_url": "http://127.0.0.1:9"}, r"zep \(llm_url\) cannot be reached"),
        ({"graph_url": "bolt://127.0.0.1:9"}, "graph of zep (cannot be reached|gave no answer)"),
    ],
)
async def test_probe_of_graphiti_names_the_missing_part(
    home: Path, options: dict[str, Any], why: str
) -> None:
    async with running(LIBRARY.double()) as double:
        provider = LIBRARY.made(home, double, embedder_url=double.url, **options)
        try:
            with pytest.raises(DeliveryError, match=why):
                await provider.probe()
        finally:
            await provider.shutdown()


@needs_library
async def test_graphiti_library_runs_with_its_telemetry_turned_off(home: Path) -> None:
    async with (
        running(LIBRARY.double()) as double,
        harness(home, [LIBRARY.made(home, double)], timeout_s=60) as one,
    ):
        await one.memory.externals["zep"].call(60, "is_available")
        from graphiti_core.telemetry import telemetry

        assert not telemetry.is_telemetry_enabled()


@pytest.mark.skipif(find_spec("graphiti_core") is not None, reason="its library is here")
def test_missing_library_is_named_with_the_command_that_installs_it(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"pip install \"mneme-gateway\[graphiti\]\""):
        Plugins(home).create_provider(
            "zep", {"deployment": "graphiti", "llm_url": "http://127.0.0.1:9"}, {}
        )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"deployment": "server"}, "should be one of: cloud, graphiti"),
        ({"deployment": "cloud"}, "needs the key"),
        ({"deployment": "graphiti"}, "needs llm_url"),
        (
            {"deployment": "graphiti", "llm_url": "a", "graph_url": "b"},
            "llm_url should be an address",
        ),
        (
            {"deployment": "graphiti", "llm_url": "http://a", "embedder_url": "b"},
            "embedder_url should be an address",
        ),
        (
            {"deployment": "graphiti", "llm_url": "http://a", "graph_url": "kuzu://b"},
            "graph_url of zep should begin with",
        ),
        ({}, "deployment is missing"),
    ],
)
def test_zep_options_that_exclude_each_other_are_refused_with_a_sentence(
    home: Path, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        Plugins(home).create_provider("zep", options, {})
