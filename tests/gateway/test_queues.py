"""One turn at a time for an address, others beside it; what waited is taken together; /stop reaches in."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from core.ports import DeliveryRecord
from core.store.inbox import InboxEntry
from core.types import Address, Answer, Inbound, Scope, Sender
from gateway.queues import ConversationQueues, PendingEvent

AT = datetime(2026, 11, 20, tzinfo=UTC)


class NoReply:
    def begin(self, receipt: DeliveryRecord) -> None:
        raise AssertionError("not begun by a lane")

    def show(self, text: str) -> None:
        raise AssertionError("not shown by a lane")

    async def finish(self, answer: Answer) -> None:
        raise AssertionError("not finished by a lane")

    async def abandon(self) -> None:
        return None


def ticket(number: int, chat: str = "1", *, is_plain: bool = True, is_overheard: bool = False) -> PendingEvent:
    inbound = Inbound(
        kind="message",
        address=Address(platform="telegram", chat_id=chat),
        scope=Scope.account("telegram", chat),
        sender=Sender(id=chat, name="Ana"),
        text=f"m{number}",
        message_id=str(number),
        sent_at=AT,
        is_direct=True,
    )
    entry = InboxEntry(id=number, inbound=inbound, received_at=AT)
    return PendingEvent(entry=entry, reply=NoReply(), scope=inbound.scope, is_plain=is_plain, is_overheard=is_overheard)


async def served(
    lanes: ConversationQueues, one: PendingEvent, log: list[list[int]], gate: asyncio.Event | None = None
) -> None:
    async with lanes.enter(one) as batch:
        log.append([taken.entry.id for taken in batch])
        if gate is not None and batch:
            await gate.wait()


async def test_what_waited_is_taken_together_in_order_and_a_command_stands_alone() -> None:
    lanes, log, gate = ConversationQueues(), list[list[int]](), asyncio.Event()
    tickets = [ticket(1), ticket(2), ticket(3), ticket(4, is_plain=False), ticket(5), ticket(6)]
    for one in tickets:
        lanes.join(one)
    log_task = [asyncio.create_task(served(lanes, one, log, gate)) for one in tickets]
    gate.set()
    await asyncio.gather(*log_task)
    assert [batch for batch in log if batch] == [[1, 2, 3], [4], [5, 6]]


async def test_an_overheard_message_is_not_answered_along_with_an_addressed_one() -> None:
    lanes, log = ConversationQueues(), list[list[int]]()
    tickets = [ticket(1), ticket(2, is_overheard=True), ticket(3)]
    for one in tickets:
        lanes.join(one)
    await asyncio.gather(*(served(lanes, one, log) for one in tickets))
    assert [batch for batch in log if batch] == [[1], [2], [3]]


async def test_other_addresses_run_beside() -> None:
    lanes, log, gate = ConversationQueues(), list[list[int]](), asyncio.Event()
    slow, quick = ticket(1, "1"), ticket(2, "2")
    lanes.join(slow)
    lanes.join(quick)
    running = asyncio.create_task(served(lanes, slow, log, gate))
    async with asyncio.timeout(5):
        await served(lanes, quick, log)
    assert not running.done()
    gate.set()
    await running


async def test_no_ticket_is_lost_when_serving_starts_out_of_order() -> None:
    lanes, log = ConversationQueues(), list[list[int]]()
    first, second = ticket(1), ticket(2)
    lanes.join(first)
    lanes.join(second)
    await served(lanes, second, log)
    await served(lanes, first, log)
    assert log == [[2], [1]]


async def test_stop_ends_the_running_turn_only() -> None:
    lanes, one = ConversationQueues(), ticket(1)
    assert lanes.stop(one.entry.inbound.address) is False
    lanes.join(one)
    begun = asyncio.Event()

    async def turn() -> bool:
        async with lanes.enter(one):
            try:
                async with lanes.stoppable(one.entry.inbound.address) as running:
                    begun.set()
                    await asyncio.Event().wait()
            except TimeoutError:
                return running.expired()
            return False

    task = asyncio.create_task(turn())
    await begun.wait()
    assert lanes.stop(one.entry.inbound.address) is True
    assert await task is True
    assert lanes.stop(one.entry.inbound.address) is False


async def test_a_cancelled_waiter_leaves_no_place_behind() -> None:
    lanes, log, gate = ConversationQueues(), list[list[int]](), asyncio.Event()
    one, two = ticket(1), ticket(2, is_plain=False)
    for each in (one, two):
        lanes.join(each)
    running = asyncio.create_task(served(lanes, one, log, gate))
    waiting = asyncio.create_task(served(lanes, two, log))
    await asyncio.wait([waiting], timeout=0.01)
    waiting.cancel()
    gate.set()
    await asyncio.gather(running, waiting, return_exceptions=True)
    three = ticket(3)
    lanes.join(three)
    await served(lanes, three, log)
    assert log == [[1], [3]]
