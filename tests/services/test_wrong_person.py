"""Whom a memory service tells what, in a house in which everybody has spoken everywhere: the table
of `tests/end_to_end/test_wrong_person.py`, with a row for each service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.memory.provider import sync_hooks_of
from core.store.sync import PLATFORM, SyncQueue, SyncTask
from core.types import Request
from tests.end_to_end.test_wrong_person import COLUMNS, zoo
from tests.fixtures.populated_home import HOMES, PopulatedHome, direct
from tests.fixtures.scripted_model import calls, says
from tests.services.doubles.double import KEY, Double, running
from tests.services.registry import SERVICES, Service, each

pytestmark = pytest.mark.slow

ASKED = "What is the ferry captain at the pier called?"
Zoo = tuple[Path, dict[str, dict[str, str]]]
__all__ = ["zoo"]


@asynccontextmanager
async def house(
    home: Path, zoo: Zoo, service: Service, double: Double
) -> AsyncIterator[PopulatedHome]:
    """Open the populated home with the service on, which got all messages."""
    service.place(home, double)
    options = service.table(double)
    written = "\n".join(f"{name} = {json.dumps(value)}" for name, value in options.items())
    table = f"\n[memory.providers.{service.name}]\nlimit = 12\n{written}\n"
    async with PopulatedHome.open(home, zoo[1], zoo[0], table, {"SERVICE_KEY": KEY}) as made:
        services, memory = made.harness.services, made.harness.memory
        assert not memory.warnings
        provider = memory.externals[service.name].provider
        queue = SyncQueue(
            services.database, services.clock, hooks={service.name: sync_hooks_of(provider)}
        )
        await queue.catch_up(datetime.fromtimestamp(0, UTC))
        await carried(made)
        yield made


async def carried(made: PopulatedHome) -> None:
    """Deliver the waiting items to the service."""
    outbox, clock = made.harness.services.outbox, made.harness.services.clock
    while due := [item for item in await outbox.list_due(clock.now()) if item.kind == PLATFORM]:
        for item in due:
            assert item.answer is not None
            if task := SyncTask.parse(item.key, item.answer.text):
                await made.harness.memory.deliver(task)
            await outbox.mark_done(item.key)


def lines(requests: list[Request], name: str) -> str:
    """Return the service's lines in the request to the model."""
    texts = [str(text) for request in requests for text in _texts(request.messages[-1]["content"])]
    return "\n".join(
        line for text in texts for line in text.splitlines() if f"{name}:" in line
    ).casefold()


def _texts(content: Any) -> Iterator[str]:
    for block in content:
        yield str(block.get("text") or block.get("content") or "").replace("\\n", "\n")


@pytest.mark.parametrize("name", each())
async def test_memory_service_returns_no_memory_of_another_person_in_any_place(
    home: Path, zoo: Zoo, name: str
) -> None:
    service = SERVICES[name]
    async with running(service.double()) as double, house(home, zoo, service, double) as made:
        assert sum("ferry captain" in text for text in double.texts()) == len(HOMES), (
            "each was told once"
        )
        await made.harness.services.people.migrate_group("telegram", "-100", "-1009")
        for title, column in COLUMNS.items():
            if column.after is not None or not column.is_heard:
                continue
            # What a session holds already is not sent again.
            await made.hear("/new", column.place)
            before = len(made.model.requests)
            await made.hear(ASKED, column.place, says("Ok."))
            shown = lines(list(made.model.requests[before:]), service.name)
            assert {animal for animal in HOMES if animal in shown} == column.seen, title
            if service.search_tool:
                before = len(made.model.requests)
                searched = calls((service.search_tool, {"query": ASKED, "limit": 12}))
                await made.hear("Look into it", column.place, searched, says("Ok."))
                shown = lines(list(made.model.requests[before + 1 :]), service.name)
                assert {animal for animal in HOMES if animal in shown} == column.seen, (
                    f"{title}: tool"
                )


@pytest.mark.parametrize("name", each())
async def test_memory_service_is_searched_only_with_words_that_the_person_typed(
    home: Path, zoo: Zoo, name: str
) -> None:
    service = SERVICES[name]
    async with running(service.double()) as double, house(home, zoo, service, double) as made:
        double.sent.clear()
        await made.hear(
            "Where is the captain of the walrus?", direct("owner"), says("Ok."), origin="forwarded"
        )
        await made.hear(f"{ASKED}\n\nThe zebra of somebody else.", direct("owner"), says("Ok."))
        await made.hear("/incognito", direct("owner"))
        await made.hear("Where is the secret ocelot?", direct("owner"), says("Ok."))
        await asyncio.gather(*made.harness.memory._tasks)
        await carried(made)
        # byterover is asked with commas between the words.
        sent = "\n".join(double.sent).replace(",", " ")
        assert "ferry captain" in sent
        assert [animal for animal in ("walrus", "zebra", "ocelot") if animal in sent] == []
