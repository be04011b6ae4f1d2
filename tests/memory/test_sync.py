"""What a memory service is told, and when: each turn once, however it is put together, and the past
on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.store.mailbox import OutboxCounts
from core.types import CarryOver, Scope
from tests.fixtures.memory_service import KEY, MemoryService, memory_service
from tests.fixtures.provider_harness import ANA, ProviderHarness, harness, provider
from tests.fixtures.stored_history import StoredHistory

pytestmark = pytest.mark.slow
EVER = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
async def service() -> AsyncIterator[MemoryService]:
    async with memory_service() as opened:
        yield opened


def life(home: Path, service: MemoryService) -> AbstractAsyncContextManager[ProviderHarness]:
    jotter = provider(
        home, "jotter", {"url": service.url, "key": "JOTTER_KEY"}, {"JOTTER_KEY": KEY}
    )
    return harness(home, [jotter])


def asked(service: MemoryService) -> Sequence[str]:
    """What people said, as the service has it, in order."""
    texts = [text for _, text in service.held.values()]
    return [
        line.removeprefix("user: ")
        for text in texts
        for line in text.split("\n")
        if line.startswith("user: ")
    ]


async def test_turn_without_its_first_message_is_not_sent_again(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one, one.working():
        await one.turn("the secret", "and the rest")
        await one.carried(1)
        session = await one.session()
        first = (await one.conversations.load_history(session, frozenset({ANA})))[0]
        await StoredHistory(one.database).execute(
            "UPDATE messages SET kind = 'command', text = '' WHERE id = :id", id=first.id
        )
        await one.turn("something new")
        await one.carried(2)
    assert asked(service) == ["the secret", "and the rest", "something new"]


async def test_past_turns_are_sent_to_a_memory_service_on_demand_and_only_once(
    home: Path, service: MemoryService
) -> None:
    many = 8
    async with life(home, service) as one:
        for number in range(many):
            await one.turn(f"long ago {number}", scope=Scope.account("telegram", str(100 + number)))
        await one.turn("the task", platform="cron")
        await StoredHistory(one.database).execute("DELETE FROM outbox")
        await StoredHistory(one.database).execute("DELETE FROM sync_watermarks")
        one.clock.advance(days=40)
        await one.turn("lately")
    async with life(home, service) as one, one.working():
        one.clock.advance(days=40)
        await one.memory.start()
        await one.carried(1)
        assert asked(service) == ["lately"], "what was said before is told to nobody unasked"
        assert await one.queue.catch_up(EVER) == many
        await one.carried(1 + many)
        assert sorted(asked(service)) == sorted(
            ["lately", *(f"long ago {number}" for number in range(many))]
        )
        assert await one.queue.catch_up(EVER) == 0, "all of it is known"
        assert await one.outbox.count_items("memory:jotter:") == OutboxCounts(held=0, due=0, dead=0)
    assert len(service.told) == len(service.held) == many + 1


async def test_dead_item_of_a_service_is_sent_when_a_person_asks(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one, one.working():
        service.mood = "refusing"
        await one.turn("one")
        await one.carried(1)
        assert one.ends == ["buried"]
        counts = await one.outbox.count_items("memory:jotter:")
        assert counts == OutboxCounts(held=0, due=0, dead=1)
        assert "the service says 422" in counts.error
        service.mood = "well"
        assert await one.outbox.retry_dead("memory:jotter:") == 1
        one.worker.wake()
        await one.carried(2)
        assert asked(service) == ["one"]
        assert (await one.outbox.count_items("memory:jotter:")).dead == 0


async def test_turn_compressed_in_its_middle_is_sent_to_a_service_whole_and_forgotten_whole(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one, one.working():
        await one.turn("the plan")
        await one.carried(1)
        first = await one.session()
        question = one._row(first, "user", "and the quay?", None)
        call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
        calling = replace(one._row(first, "assistant", "", None), blocks=(call,), tool_name="look")
        said, _ = await one.conversations.append([question, calling])
        last = first
        for number in range(2):
            # Each time more than the window holds was found.
            child = replace(
                last,
                id=0,
                parent_id=last.id,
                carry_over=CarryOver(parent_from=said.id),
                started_at=one.clock.now(),
            )
            summary = replace(one._row(last, "user", "a summary", None), kind="summary")
            last = await one.conversations.create(child, "compression", summary=summary)
            await one.memory.on_session_end(first, [])
            if not number:
                await one.conversations.append([replace(calling, session_id=last.id)])
        (answer,) = await one.conversations.append(
            [one._row(last, "assistant", "It is long.", None)]
        )
        await one.over(last)
        await one.turn("something new")
        await one.carried(3)
        assert asked(service) == ["the plan", "and the quay?", "something new"]
        assert [text for _, text in service.held.values()][1].endswith("assistant: It is long.")
        assert service.ids[f"memory:jotter:{first.id}:{said.id}:sync_turn"] >= {said.id, answer.id}
        await StoredHistory(one.database).execute(
            "UPDATE messages SET kind = 'command', text = '' WHERE id = :id", id=answer.id
        )
        assert await one.queue.forget([answer.id]) == ["jotter"]
        await one.carried(5)
        assert "It is long." not in str(service.held)
        assert "and the quay?" in asked(service), "the rest is told anew"
