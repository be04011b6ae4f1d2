"""What only mem0 has: memories that come later, tools that change them, and three ways to reach
it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, ToolError
from core.memory.plugins import Plugins
from core.types import Scope
from tests.fixtures.provider_contract import SAID
from tests.fixtures.provider_harness import ANA, BEN, harness
from tests.services.doubles.double import running
from tests.services.doubles.mem0 import Mem0Double
from tests.services.registry import SERVICES

PLATFORM, SERVER = SERVICES["mem0, platform"], SERVICES["mem0, self-hosted"]


@pytest.fixture(params=[True, False], ids=["platform", "self-hosted"])
async def mem0(request: pytest.FixtureRequest) -> AsyncIterator[Mem0Double]:
    double = Mem0Double(is_platform=request.param)
    async with running(double):
        yield double


async def test_mem0_tools_update_and_delete_only_memories_of_their_own_person(
    mem0: Mem0Double, home: Path
) -> None:
    service = PLATFORM if mem0.is_platform else SERVER
    async with harness(home, [service.made(home, mem0)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        (number,) = mem0.memories
        tools = {tool.name: tool for tool in await one.memory.tools()}
        mine, other, room = [
            await one.context(scope) for scope in (ANA, BEN, Scope.group("telegram", "-5"))
        ]
        shown = await tools["mem0_search"].run({"query": SAID}, mine)
        assert shown.startswith(f"mem0:{number} {SAID}")
        changed = {"memory_id": f"mem0:{number}", "text": "My sister Ines lives in Faro."}
        for context, why in ((other, "There is no memory"), (room, "In a group")):
            with pytest.raises(ToolError, match=why):
                await tools["mem0_update"].run(changed, context)
            with pytest.raises(ToolError, match=why):
                await tools["mem0_delete"].run({"memory_id": number}, context)
        with pytest.raises(ToolError, match="There is no memory"):
            await tools["mem0_delete"].run({"memory_id": "0" * 8}, mine)
        with pytest.raises(ToolError):
            await tools["mem0_delete"].run({"memory_id": "../../v1/ping"}, mine)
        assert mem0.texts() == [SAID]
        await tools["mem0_update"].run(changed, mine)
        assert mem0.texts() == ["My sister Ines lives in Faro."]
        await tools["mem0_delete"].run({"memory_id": number}, mine)
        assert mem0.texts() == []


async def test_memory_that_mem0_makes_late_is_erased_when_it_exists(home: Path) -> None:
    async with running(mem0 := Mem0Double(is_platform=True)):
        mem0.is_late = True
        async with harness(home, [PLATFORM.made(home, mem0)]) as one, one.working():
            await one.turn(SAID)
            await one.carried(1)
            rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
            gone = [row.id for row in rows]
            for number in gone:
                erased = "UPDATE messages SET kind = 'command', text = '' WHERE id = :id"
                await one.database.execute(erased, {"id": number})
            await one.queue.forget(gone)
            one.worker.wake()
            await one.carried(2)
            assert one.ends == ["done", "postponed"]
            mem0.work()
            assert mem0.texts() == [SAID]
            await one.later(seconds=6)
            await one.carried(4)
            assert mem0.texts() == []


async def test_search_for_copies_reads_all_pages_of_mem0(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.memory.services.mem0.PAGE_SIZE", 2)
    mem0 = Mem0Double(is_platform=True)
    async with running(mem0), harness(home, [PLATFORM.made(home, mem0)]) as one, one.working():
        for number in range(5):
            await one.turn(f"Key number {number} hangs behind the door.")
        await one.carried(5)
        mem0.fault = "lost"
        await one.turn(SAID)
        await one.carried(6)
        mem0.fault = "well"
        await one.later(seconds=2)
        await one.carried(7)
        assert mem0.texts().count(SAID) == 1


@pytest.mark.skipif(find_spec("mem0") is not None, reason="its library is here")
def test_mem0_without_its_library_is_refused_with_the_command_to_install_it(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"pip install \"mneme-gateway\[mem0\]\""):
        Plugins(home).create_provider(
            "mem0", {"deployment": "embedded", "llm_url": "http://127.0.0.1:9"}, {}
        )


async def test_several_erasures_read_the_list_of_mem0_memories_only_once(
    mem0: Mem0Double, home: Path
) -> None:
    service = PLATFORM if mem0.is_platform else SERVER
    async with harness(home, [service.made(home, mem0)]) as one, one.working():
        for number in range(12):
            await one.turn(f"Key number {number} hangs behind the door.")
        await one.carried(12)
        rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
        gone = [row.id for row in rows[:20]]
        for number in gone:
            await one.database.execute(
                "UPDATE messages SET kind = 'command', text = '' WHERE id = :id", {"id": number}
            )
        mem0.asked.clear()
        await one.queue.forget(gone)
        one.worker.wake()
        await one.watch.until(lambda: len(one.outbox.ends) > 12)
        assert mem0.texts() == [
            "Key number 10 hangs behind the door.",
            "Key number 11 hangs behind the door.",
        ]
        listed = [one for one in mem0.asked if one in ("POST /v3/memories/", "GET /memories")]
        assert len(listed) == 2
        assert (home / "providers" / "mem0" / "told.jsonl").read_text().count('"key"') == 2


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"deployment": "cloud"}, "should be one of: platform, self_hosted, embedded"),
        ({"deployment": "platform"}, "needs the key"),
        ({"deployment": "self_hosted"}, "needs the url"),
        ({"deployment": "embedded"}, "needs llm_url"),
        ({"deployment": "self_hosted", "url": "mem0"}, "should be an address"),
        (
            {"deployment": "self_hosted", "url": "http://x", "namespace": "a/b"},
            "namespace should be",
        ),
        ({}, "deployment is missing"),
    ],
)
def test_memory_service_options_that_exclude_each_other_are_refused_with_a_sentence(
    home: Path, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        Plugins(home).create_provider("mem0", options, {})
