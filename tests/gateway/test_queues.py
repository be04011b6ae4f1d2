"""One turn at a time for an address, others beside it; what waited is taken together; /stop reaches
in."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.settings import Settings
from core.ports import DeliveryRecord
from core.store.mailbox import InboxEntry
from core.types import Address, Answer, Command, Inbound, Scope, Sender
from gateway.delivery import Delivery
from gateway.queues import ConversationQueues, EventKind, PendingEvent
from tests.fixtures.virtual_time import VirtualTimeLoop

AT = datetime(2026, 11, 20, tzinfo=UTC)


class NoReply:
    def begin(self, receipt: DeliveryRecord) -> None:
        raise AssertionError("not begun by a queue")

    def show(self, text: str) -> None:
        raise AssertionError("not shown by a queue")

    async def finish(self, answer: Answer) -> None:
        raise AssertionError("not finished by a queue")

    async def abandon(self, *, is_withdrawn: bool = False) -> None:
        return None


def event(
    number: int, chat: str = "1", *, is_plain: bool = True, is_overheard: bool = False
) -> PendingEvent:
    inbound = Inbound(
        kind="message",
        address=Address(platform="telegram", chat_id=chat),
        scope=Scope.account("telegram", chat),
        sender=Sender(id=chat, name="Ana"),
        text=f"m{number}",
        message_id=str(number),
        sent_at=AT,
        is_direct=True,
        command=None if is_plain else Command(name="title"),
    )
    entry = InboxEntry(id=number, inbound=inbound, received_at=AT)
    return PendingEvent(
        entry=entry,
        reply=NoReply(),
        scope=inbound.scope,
        outbox_item=Delivery.draft_outbox_item(inbound),
        command=inbound.command,
        kind=EventKind.MESSAGE if is_plain else EventKind.COMMAND,
        is_addressed=not is_overheard,
    )


async def served(
    queues: ConversationQueues,
    one: PendingEvent,
    log: list[list[int]],
    gate: asyncio.Event | None = None,
) -> None:
    async with queues.wait_for_turn(one) as batch:
        log.append(batch.entry_ids)
        if gate is not None and batch.events:
            await gate.wait()


@pytest.mark.parametrize(("gap_s", "batches"), [(0.2, [[1, 2, 3]]), (0.4, [[1], [2], [3]])])
def test_parts_that_arrive_within_the_default_gather_time_are_one_batch(
    gap_s: float, batches: list[list[int]], tmp_path: Path
) -> None:
    gather_s = Settings.load({"MNEME_HOME": str(tmp_path)}).turn.gather_s
    log: list[list[int]] = []

    async def receive_parts() -> None:
        queues = ConversationQueues(gather_s=gather_s)
        serving = []
        for number in (1, 2, 3):
            part = event(number)
            queues.add(part)
            serving.append(asyncio.create_task(served(queues, part, log)))
            await asyncio.sleep(gap_s)
        await asyncio.gather(*serving)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(receive_parts())
    assert [batch for batch in log if batch] == batches


async def test_waiting_events_are_taken_together_in_order_and_a_command_alone() -> None:
    queues, log, gate = ConversationQueues(), list[list[int]](), asyncio.Event()
    events = [event(1), event(2), event(3), event(4, is_plain=False), event(5), event(6)]
    for one in events:
        queues.add(one)
    log_task = [asyncio.create_task(served(queues, one, log, gate)) for one in events]
    gate.set()
    await asyncio.gather(*log_task)
    assert [batch for batch in log if batch] == [[1, 2, 3], [4], [5, 6]]


async def test_an_overheard_message_is_not_answered_along_with_an_addressed_one() -> None:
    queues, log = ConversationQueues(), list[list[int]]()
    events = [event(1), event(2, is_overheard=True), event(3)]
    for one in events:
        queues.add(one)
    await asyncio.gather(*(served(queues, one, log) for one in events))
    assert [batch for batch in log if batch] == [[1], [2], [3]]


async def test_event_of_another_chat_is_served_while_a_slow_one_is_running() -> None:
    queues, log, gate = ConversationQueues(), list[list[int]](), asyncio.Event()
    slow, quick = event(1, "1"), event(2, "2")
    queues.add(slow)
    queues.add(quick)
    running = asyncio.create_task(served(queues, slow, log, gate))
    async with asyncio.timeout(5):
        await served(queues, quick, log)
    assert not running.done()
    gate.set()
    await running


async def test_no_event_is_lost_when_serving_starts_out_of_order() -> None:
    queues, log = ConversationQueues(), list[list[int]]()
    first, second = event(1), event(2)
    queues.add(first)
    queues.add(second)
    await served(queues, second, log)
    await served(queues, first, log)
    assert log == [[2], [1]]


async def test_event_held_by_the_rate_limit_is_served_before_a_later_arriving_event() -> None:
    """A command that was held, such as /incognito, counts for what was said after it."""
    rest_s, log = [60.0], list[list[int]]()
    queues = ConversationQueues(lambda _: rest_s[0])
    events = [event(1), event(2, is_plain=False), event(3)]
    for one in events:
        one.counts_against_limits = True
    tasks = []
    for one in events:
        queues.add(one)
        tasks.append(asyncio.create_task(served(queues, one, log)))
        if one is not events[-1]:
            await asyncio.sleep(0)
    rest_s[0] = 0.0
    queues._release_held()
    await asyncio.gather(*tasks)
    assert log == [[1], [2], [3]]


async def test_stop_cancels_only_the_turn_that_is_running() -> None:
    queues, one = ConversationQueues(), event(1)
    assert queues.stop(one.inbound.address) is False
    queues.add(one)
    begun = asyncio.Event()

    async def turn() -> bool:
        async with queues.wait_for_turn(one):
            try:
                async with queues.stoppable_turn(one.inbound.address, lambda: True) as running:
                    begun.set()
                    await asyncio.Event().wait()
            except TimeoutError:
                return running.expired()
            return False

    task = asyncio.create_task(turn())
    await begun.wait()
    assert queues.stop(one.inbound.address) is True
    assert await task is True
    assert queues.stop(one.inbound.address) is False


async def test_cancelled_event_leaves_the_conversation_queue() -> None:
    queues, log, gate = ConversationQueues(), list[list[int]](), asyncio.Event()
    one, two = event(1), event(2, is_plain=False)
    for each in (one, two):
        queues.add(each)
    running = asyncio.create_task(served(queues, one, log, gate))
    waiting = asyncio.create_task(served(queues, two, log))
    await asyncio.wait([waiting], timeout=0.01)
    waiting.cancel()
    gate.set()
    await asyncio.gather(running, waiting, return_exceptions=True)
    three = event(3)
    queues.add(three)
    await served(queues, three, log)
    assert log == [[1], [3]]
