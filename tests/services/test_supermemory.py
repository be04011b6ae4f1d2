"""What only supermemory has: two dialects, documents that are appended to, memories that come
later, and a profile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, DeliveryError, ToolError
from core.memory.plugins import Plugins
from core.store.notes import NoteChange
from core.types import Scope
from tests.fixtures.provider_contract import ASKED, SAID
from tests.fixtures.provider_harness import ANA, BEN, harness
from tests.services.doubles.double import running
from tests.services.doubles.supermemory import SupermemoryDouble
from tests.services.registry import SERVICES, Service

BY_DIALECT = {"ns": SERVICES["supermemory, ns"], "v4": SERVICES["supermemory, v4"]}


@pytest.fixture(params=BY_DIALECT)
async def supermemory(request: pytest.FixtureRequest) -> AsyncIterator[SupermemoryDouble]:
    double = SupermemoryDouble(dialect=request.param)
    async with running(double):
        yield double


def service_of(supermemory: SupermemoryDouble) -> Service:
    return BY_DIALECT[supermemory.dialect]


async def test_turn_whose_supermemory_response_was_lost_is_not_appended_twice(
    supermemory: SupermemoryDouble, home: Path
) -> None:
    async with (
        harness(home, [service_of(supermemory).made(home, supermemory)]) as one,
        one.working(),
    ):
        supermemory.fault = "lost"
        await one.turn(SAID)
        await one.carried(1)
        (sent,) = [name for name in supermemory.asked if name.endswith(("/document", "/documents"))]
        assert sent.startswith("POST")
        supermemory.fault = "well"
        await one.later(seconds=2)
        await one.carried(2)
        assert one.ends == ["postponed", "done"]
        (document,) = supermemory.documents.values()
        assert len(document["said"]) == 1


async def test_memory_being_made_by_supermemory_is_erased_when_it_exists(
    supermemory: SupermemoryDouble, home: Path
) -> None:
    supermemory.is_late = True
    async with (
        harness(home, [service_of(supermemory).made(home, supermemory)]) as one,
        one.working(),
    ):
        await one.turn(SAID)
        await one.carried(1)
        assert "Porto" in "\n".join(await one.recalled(ASKED)), (
            "its text is found before there is a memory"
        )
        rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
        gone = [row.id for row in rows]
        for number in gone:
            erased = "UPDATE messages SET kind = 'command', text = '' WHERE id = :id"
            await one.database.execute(erased, {"id": number})
        await one.queue.forget(gone)
        one.worker.wake()
        await one.carried(2)
        assert one.ends == ["done", "postponed"]
        supermemory.work()
        await one.later(seconds=6)
        await one.carried(4)
        assert (supermemory.texts(), supermemory.memories) == ([], {})


async def test_note_that_is_a_url_is_stored_in_supermemory_without_being_opened(
    supermemory: SupermemoryDouble, home: Path
) -> None:
    address = "https://example.org/what-i-read"
    async with (
        harness(home, [service_of(supermemory).made(home, supermemory)]) as one,
        one.working(),
    ):
        change = NoteChange(
            scope=ANA, target="user", action="add", before=None, after=address, at=one.clock.now()
        )
        await one.notes.log_changes(change)
        await one.memory.on_memory_write()
        await one.carried(1)
        assert supermemory.texts() == [f"note: {address}"]
        assert supermemory.opened == []


async def test_forget_tool_of_a_memory_service_deletes_only_memories_of_its_own_person(
    supermemory: SupermemoryDouble, home: Path
) -> None:
    async with (
        harness(home, [service_of(supermemory).made(home, supermemory)]) as one,
        one.working(),
    ):
        await one.turn(SAID)
        await one.carried(1)
        (number,) = supermemory.memories
        tools = {tool.name: tool for tool in await one.memory.tools()}
        mine, other, room = [
            await one.context(scope) for scope in (ANA, BEN, Scope.group("telegram", "-5"))
        ]
        assert f"supermemory:{number}" in await tools["supermemory_search"].run(
            {"query": SAID}, mine
        )
        forget = tools["supermemory_forget"]
        for context, why in ((other, "There is no memory"), (room, "In a group")):
            with pytest.raises(ToolError, match=why):
                await forget.run({"memory_id": f"supermemory:{number}"}, context)
        assert "no longer recalls it" in await forget.run(
            {"memory_id": f"supermemory:{number}"}, mine
        )
        with pytest.raises(ToolError, match="There is no memory"):
            await forget.run({"memory_id": number}, mine)
        assert f"supermemory:{number}" not in await tools["supermemory_search"].run(
            {"query": SAID}, mine
        )


async def test_supermemory_profile_tool_shows_only_the_profile_of_the_person_who_asks(
    supermemory: SupermemoryDouble, home: Path
) -> None:
    async with (
        harness(home, [service_of(supermemory).made(home, supermemory)]) as one,
        one.working(),
    ):
        for text in (SAID, "My brother Rui lives in Braga."):
            await one.turn(text)
        await one.carried(2)
        profile = {tool.name: tool for tool in await one.memory.tools()}["supermemory_profile"]
        shown = await profile.run({}, await one.context(ANA))
        assert ("Porto" in shown, "Braga" in shown) == (True, True)
        assert await profile.run({}, await one.context(BEN)) == "It has nothing to say."


async def test_supermemory_search_mode_memories_returns_only_extracted_memories(
    supermemory: SupermemoryDouble, home: Path
) -> None:
    supermemory.is_late = True
    provider = service_of(supermemory).made(home, supermemory, search_mode="memories")
    async with harness(home, [provider]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        assert await one.recalled(ASKED) == []
        supermemory.work()
        assert "Porto" in "\n".join(await one.recalled(ASKED))


async def test_supermemory_with_an_unknown_dialect_is_refused_in_a_sentence(home: Path) -> None:
    async with running(SupermemoryDouble(dialect="v4")) as double:
        provider = BY_DIALECT["ns"].made(home, double)
        async with harness(home, [provider]) as one:
            with pytest.raises(DeliveryError, match="doesn't support this dialect"):
                await one.memory.externals["supermemory"].call(5, "probe")


async def test_search_for_copies_reads_all_pages_of_supermemory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.memory.services.supermemory.PAGE_SIZE", 2)
    double = SupermemoryDouble(dialect="v4")
    double.is_filtering = False
    async with (
        running(double),
        harness(home, [BY_DIALECT["v4"].made(home, double)]) as one,
        one.working(),
    ):
        for number in range(5):
            await one.turn(f"Key number {number} hangs behind the door.")
        await one.carried(5)
        double.fault = "lost"
        await one.turn(SAID)
        await one.carried(6)
        double.fault = "well"
        await one.later(seconds=2)
        await one.carried(7)
        assert sum(SAID in text for text in double.texts()) == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "needs the key"),
        ({"url": "http://127.0.0.1:6767", "api": "v3"}, "api of supermemory should be one of"),
        ({"url": "http://127.0.0.1:6767", "search_mode": "all"}, "search_mode"),
        ({"url": "http://127.0.0.1:6767", "dreaming": "never"}, "dreaming"),
    ],
)
def test_memory_service_options_that_exclude_each_other_are_refused_with_a_sentence(
    home: Path, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        Plugins(home).create_provider("supermemory", options, {})
