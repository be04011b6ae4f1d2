"""Checks the double of mem0's platform: mem0's own client understands it, and sends the same
requests as Mneme. Also checks that mem0's library sends nothing to its vendor, and is closed after
its last task."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from aiohttp import web

from core.errors import ConfigError, DeliveryError, Refused
from core.memory.plugins import Plugins
from core.memory.service import RemoteService, SyncItem
from core.store.notes import NoteChange
from tests.fixtures.provider_contract import SAID
from tests.fixtures.provider_harness import ANA, ProviderHarness, harness
from tests.services.doubles.double import KEY, Double, running
from tests.services.doubles.mem0 import Mem0Double
from tests.services.engines.conftest import EngineSubject
from tests.services.engines.engine import DIMENSIONS, models
from tests.services.model_server import mem0_facts
from tests.services.registry import SERVICES

pytestmark = pytest.mark.skipif(
    find_spec("mem0") is None, reason="mem0 is not here: `make services` has it"
)


@pytest.mark.parametrize("engine", ["mem0"], indirect=True)
async def test_mem0_library_runs_with_its_telemetry_turned_off(
    subject: EngineSubject, home: Path
) -> None:
    async with harness(home, [subject.made(home)]) as one:
        await one.memory.externals["mem0"].call(20, "is_available")
        from mem0.memory import telemetry

        assert telemetry.MEM0_TELEMETRY is False


class _Embeddings(Double):
    """A server that asks for a key, and has a model of three numbers."""

    def routes(self) -> Sequence[web.RouteDef]:
        return [web.post("/embeddings", self._embed)]

    async def _embed(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"index": 0, "embedding": [0.0, 0.0, 1.0]}]})


async def test_probe_of_the_mem0_library_requests_an_embedding(home: Path) -> None:
    async def tried(**changed: Any) -> str:
        options = {
            "deployment": "embedded",
            "llm_url": server.url,
            "key": "MODEL_KEY",
            "embedder_dims": 3,
            **changed,
        }
        provider = Plugins(home).create_provider(
            "mem0", options, {"MODEL_KEY": KEY, "WRONG_KEY": "another"}
        )
        try:
            return str(await provider.probe())
        finally:
            await provider.shutdown()

    async with running(server := _Embeddings()):
        assert "its library in this process" in await tried()
        with pytest.raises(DeliveryError, match="the key is not accepted"):
            await tried(key="WRONG_KEY")
        with pytest.raises(ConfigError, match="embeddings of 3 numbers: set embedder_dims"):
            await tried(embedder_dims=1536)
        with pytest.raises(Refused, match="is its url right"):
            await tried(embedder_url=f"{server.url}/v2")
    with pytest.raises(DeliveryError, match="cannot be reached"):
        await tried()


async def test_mem0_library_is_closed_only_after_its_pending_write(home: Path) -> None:
    is_asked, may_answer = Event(), Event()

    def slowly(body: dict[str, Any]) -> str:
        is_asked.set()
        may_answer.wait()
        return mem0_facts(body)

    def made() -> RemoteService:
        options = {"deployment": "embedded", "llm_url": url, "embedder_dims": DIMENSIONS}
        provider = Plugins(home).create_provider("mem0", options, {})
        assert isinstance(provider, RemoteService)
        return provider

    with models(slowly) as url:
        provider, space = made(), "mneme-person-1"
        await provider.initialize(home)
        told = SyncItem(
            key="told", kind="turn", lines=[("user", SAID)], at=datetime(2026, 5, 3, tzinfo=UTC)
        )
        keeping = asyncio.create_task(provider.keep(space, told))
        await asyncio.to_thread(is_asked.wait)
        keeping.cancel()
        await asyncio.wait([keeping])
        closing = asyncio.create_task(provider.shutdown())
        # A client that closes too early would do so now, and a later write would end the process.
        await asyncio.wait([closing], timeout=1.0)
        may_answer.set()
        await closing
        after = made()
        await after.initialize(home)
        assert [one.text for one in await after.find(space, SAID, 5)] == [SAID]
        await after.shutdown()


async def lives_on(one: ProviderHarness, double: Mem0Double) -> set[str]:
    """Send a turn twice, and add, replace and remove a note. Returns the ids."""
    numbers: set[str] = set()
    double.fault = "lost"
    await one.turn("My brother Rui lives in Braga.")
    await one.carried(3)
    double.fault = "well"
    await one.later(seconds=2)
    await one.carried(4)
    assert double.texts() == ["My brother Rui lives in Braga."]
    tea, mate = "Ana likes green tea.", "Ana likes bitter mate."
    for before, after in ((None, tea), (tea, mate), (mate, None)):
        action = "add" if before is None else "remove" if after is None else "replace"
        at = one.clock.now()
        await one.notes.log_changes(
            NoteChange(scope=ANA, target="user", action=action, before=before, after=after, at=at)
        )
        count = len(one.ends)
        await one.memory.on_memory_write()
        await one.carried(count + 1)
        numbers |= set(double.memories)
    assert double.texts() == ["My brother Rui lives in Braga."]
    return numbers


async def test_our_mem0_client_sends_the_same_requests_as_the_vendors_client(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "mem0"))
    from mem0 import MemoryClient

    async with running(double := Mem0Double(is_platform=True)):
        provider = SERVICES["mem0, platform"].made(home, double)
        assert isinstance(provider, RemoteService)
        async with harness(home, [provider]) as one, one.working():
            await one.memory.start()
            await asyncio.gather(*one.memory._tasks)
            at_start = list(double.asked)
            double.asked.clear()
            space = provider.space(ANA)

            def vendor() -> str:
                client = MemoryClient(api_key=KEY, host=double.url)
                client.add([{"role": "user", "content": SAID}], user_id=space, infer=True)
                (found,) = client.search(SAID, filters={"user_id": space}, top_k=8)["results"]
                (listed,) = client.get_all(filters={"user_id": space}, page=1, page_size=100)[
                    "results"
                ]
                assert (
                    found["memory"] == listed["memory"] == client.get(found["id"])["memory"] == SAID
                )
                client.update(found["id"], text="My sister Ines lives in Faro.")
                client.delete(found["id"])
                client.client.close()
                return str(found["id"])

            number = await asyncio.to_thread(vendor)
            theirs = {one.replace(number, "ID") for one in double.asked}
            assert double.texts() == []
            double.asked.clear()
            await one.turn(SAID)
            await one.carried(1)
            assert await one.recalled(SAID)
            (number,) = double.memories
            tools = {tool.name: tool for tool in await one.memory.tools()}
            context = await one.context(ANA)
            await tools["mem0_update"].run(
                {"memory_id": number, "text": "My sister Ines lives in Faro."}, context
            )
            rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
            erased = "UPDATE messages SET kind = 'command', text = '' WHERE id = :id"
            for row in rows:
                await one.database.execute(erased, {"id": row.id})
            await one.queue.forget([row.id for row in rows])
            one.worker.wake()
            await one.carried(2)
            numbers = {number, *await lives_on(one, double)}
        asked = [line for line in at_start + double.asked if "/v1/event/" not in line]
        ours = {line.replace(name, "ID") for line in asked for name in numbers if name in line}
        ours |= {line for line in asked if not any(name in line for name in numbers)}
        assert ours == theirs
