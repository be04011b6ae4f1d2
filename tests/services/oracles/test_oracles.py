"""Checks the doubles of services without an engine here, and our requests, with the vendors'
clients.

A provider makes all its calls to its double. Then the vendor's own client, in an environment that
`tests/services/setup.sh` has made, is called with the same values over a fresh double: it must send
what we have sent, understand the answers, and leave behind what we have left behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.memory.service import Entry, RemoteService
from core.store.notes import NoteChange
from tests.fixtures.provider_contract import ASKED, SAID
from tests.fixtures.provider_harness import ANA, ProviderHarness, harness
from tests.services.doubles.double import KEY, Double, running
from tests.services.doubles.honcho import HonchoDouble
from tests.services.doubles.zep import ZepDouble
from tests.services.engines.engine import ROOT, installed
from tests.services.registry import SERVICES

pytestmark = pytest.mark.slow

Call = tuple[str, str, dict[str, str], str]
CLIENTS: Mapping[str, str] = {
    "honcho": "honcho",
    "supermemory": "supermemory, ns",
    "supermemory-v4": "supermemory, v4",
    "zep": "zep, cloud",
    "letta": "letta",
}
"""By environment: the service."""
NOT_OF_A_CLIENT = ("/openapi.json",)
BEES, BOAT = "Ana keeps bees behind the house.", "Our boat is called Molly."


async def lives(one: ProviderHarness, double: Double) -> None:
    """Make every call that a provider can get."""
    await one.memory.start()
    await asyncio.gather(*one.memory._tasks)
    await one.turn(SAID)
    await one.turn(BOAT)
    await one.carried(2)
    double.fault = "lost"
    await one.turn("My brother Rui lives in Braga.")
    await one.carried(3)
    double.fault = "well"
    await one.later(seconds=2)
    await one.carried(4)
    assert "Porto" in "\n".join(await one.recalled(ASKED))
    for before, after in (
        (None, "Ana likes green tea."),
        ("Ana likes green tea.", "Ana likes bitter mate."),
        ("Ana likes bitter mate.", None),
    ):
        action = "add" if before is None else "remove" if after is None else "replace"
        at = one.clock.now()
        await one.notes.log_changes(
            NoteChange(scope=ANA, target="user", action=action, before=before, after=after, at=at)
        )
        await one.memory.on_memory_write()
        await one.carried(len(one.ends) + 1)
    await uses_tools(one)
    if isinstance(double, HonchoDouble):
        double.cards |= {place: ["Likes bitter mate"] for place in double.peers}
    if isinstance(double, ZepDouble):
        double.end(BOAT, by=SAID)
    (external,) = one.memory.externals.values()
    assert isinstance(external.provider, RemoteService)
    # What it is not known to have.
    unknown = Entry(key="0" * 32, space=external.provider.space(ANA))
    assert not await external._run(partial(external.provider.holds, unknown))
    rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
    gone = [row.id for row in rows if row.text == SAID]
    for number in gone:
        erased = "UPDATE messages SET kind = 'command', text = '' WHERE id = :id"
        await one.database.execute(erased, {"id": number})
    before_it = len(one.ends)
    await one.queue.forget(gone)
    one.worker.wake()
    await one.carried(before_it + 2)
    assert "Porto" not in "\n".join(await one.recalled(ASKED))
    assert {*one.ends} == {"done", "postponed"}


async def uses_tools(one: ProviderHarness) -> None:
    """Use each tool: one stores a text, and another deletes it."""
    tools = {tool.name: tool for tool in await one.memory.tools()}
    context = await one.context(ANA)

    async def found(name: str) -> str:
        shown = await tools[name].run({"query": "who keeps bees?"}, context)
        return next(line.split(" ")[0] for line in shown.splitlines() if "bees" in line)

    if "honcho_conclude" in tools:
        await tools["honcho_conclude"].run({"conclusion": BEES}, context)
        await tools["honcho_reasoning"].run({"query": "who keeps bees?"}, context)
        await tools["honcho_profile"].run({}, context)
        await tools["honcho_context"].run({"query": "who keeps bees?"}, context)
        await tools["honcho_conclude"].run({"delete_id": await found("honcho_search")}, context)
    elif "zep_add" in tools or "letta_insert" in tools:
        name, add = ("zep", "zep_add") if "zep_add" in tools else ("letta", "letta_insert")
        await tools[add].run({"content": BEES}, context)
        await tools[f"{name}_delete"].run({"memory_id": await found(f"{name}_search")}, context)
    else:
        await tools["supermemory_store"].run({"content": BEES}, context)
        assert BEES in await tools["supermemory_profile"].run({}, context) or await found(
            "supermemory_search"
        )
        await tools["supermemory_forget"].run(
            {"memory_id": await found("supermemory_search")}, context
        )


@pytest.mark.parametrize("client", CLIENTS)
async def test_the_vendors_client_sends_what_we_send_and_understands_the_double(
    client: str, home: Path
) -> None:
    if why := installed(client, "bin/python"):
        pytest.skip(f"{client} is not here: {why}")
    service = SERVICES[CLIENTS[client]]
    async with (
        running(service.double()) as ours,
        harness(home, [service.made(home, ours)]) as one,
        one.working(),
    ):
        await lives(one, ours)
    asked = [one for one in ours.calls if one[1] not in NOT_OF_A_CLIENT]
    async with running(service.double()) as theirs:
        said = await replayed(client, theirs.url, asked)
    assert [
        one for one in map(plain, asked) if one not in [plain(sent) for sent in theirs.calls]
    ] == []
    assert [*theirs.texts()] == [*ours.texts()]
    assert any("Porto" in text for text in found_by(asked, said)), (
        "it has read what the double has found"
    )
    assert not any("Porto" in text for text in theirs.texts())


def found_by(asked: Sequence[Call], said: Sequence[Any]) -> list[str]:
    return [json.dumps(one) for call, one in zip(asked, said, strict=True) if "/search" in call[1]]


async def replayed(client: str, url: str, asked: Sequence[Call]) -> list[Any]:
    """Return how the vendor's client understood each answer."""
    given = [(method, path, query, json.loads(body or "{}")) for method, path, query, body in asked]
    command = [
        str(ROOT / client / "bin" / "python"),
        str(Path(__file__).with_name("replay.py")),
        client,
        url,
    ]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=-1, stdout=-1, stderr=-1, env={"SERVICE_KEY": KEY}
    )
    said, wrong = await process.communicate(json.dumps(given).encode())
    assert process.returncode == 0, wrong.decode()[-2_000:]
    return list(json.loads(said))


def plain(call: Call) -> tuple[str, str, dict[str, str], object]:
    """Return a request without differences in form, such as those of times and of empty bodies."""
    method, path, query, body = call
    return method, path, query, _plain(json.loads(body or "{}") or {})


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return value
    return value
