"""Delivers what is due in the outbox: reminders, what memory services are told, answers that a crash held up.

One item at a time for each address, in order, all addresses side by side; a failure is tried again later, with
growing patience. Nothing that a platform or the store does ends the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

import structlog

from core.errors import DeliveryError, StoreError
from core.memory.manager import MemoryManager
from core.ports import Clock, DeliveryRecord, Reply
from core.store.outbox import Outbox, OutboxItem
from core.store.sync import SyncTask
from core.types import Address, Answer
from gateway.delivery import Delivery
from gateway.supervisor import contained

SHORTEST_REST_S = 0.5  # what is due and cannot be taken at the moment must not make the loop spin
LONGEST_REST_S = 5.0  # an item that was finished elsewhere without a call holds up what is behind it no longer
STORE_REST_S = 2.0
ReplyFactory = Callable[[Address, str | None], Reply]


class OutboxWorker:
    """`replies`: how to reply on each platform that is open now; may grow."""

    def __init__(self, outbox: Outbox, delivery: Delivery, replies: Mapping[str, ReplyFactory], clock: Clock) -> None:
        self._outbox = outbox
        self._delivery = delivery
        self._replies = replies
        self._clock = clock
        self._called = asyncio.Event()
        self._busy: set[str] = set()
        """Addresses that something is being delivered to, and keys of notices."""
        self._log = structlog.get_logger("outbox")
        delivery.on_due = self.wake

    def wake(self) -> None:
        self._called.set()

    async def run(self) -> None:
        """Delivers until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._called.clear()
                try:
                    await self._delivery.write_pending()
                    await self._start_due(tasks)
                    rest_s = await self._rest_s()
                except StoreError as error:
                    self._log.error("the outbox cannot be used", error=str(error))
                    rest_s = STORE_REST_S
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(rest_s):
                        await self._called.wait()

    async def _start_due(self, tasks: asyncio.TaskGroup) -> None:
        # An item that fails while the outbox is read may still look due in what was read.
        busy = frozenset(self._busy)
        for outbox_item in await self._outbox.due(self._clock.now(), tuple(self._replies)):
            place = outbox_item.key if outbox_item.kind == "notice" else outbox_item.address.key
            if place not in busy:
                self._busy.add(place)
                tasks.create_task(self._deliver(outbox_item, place), name=f"delivery {outbox_item.key}")

    async def _deliver(self, outbox_item: OutboxItem, place: str) -> None:
        try:
            await self._outbox.claim(outbox_item.key)
            assert outbox_item.answer is not None, "what is due has content"
            try:
                with contained(outbox_item.attempts):
                    reply_to = self._replies[outbox_item.address.platform]
                    reply = reply_to(outbox_item.address, outbox_item.reply_to)
                    self._delivery.begin(outbox_item, reply)
            except DeliveryError as error:
                await self._delivery.fail(outbox_item, error)
            else:
                await self._delivery.deliver(outbox_item, reply, outbox_item.answer)
            self.wake()
        except StoreError as error:
            self._log.error("an item cannot be claimed", key=outbox_item.key, error=str(error))
        finally:
            self._busy.discard(place)

    async def _rest_s(self) -> float:
        next_at = await self._outbox.next_at(tuple(self._replies))
        if next_at is None:
            return LONGEST_REST_S
        return min(max((next_at - self._clock.now()).total_seconds(), SHORTEST_REST_S), LONGEST_REST_S)


class ProviderReply:
    """Fills the role Reply: the key of its record says everything, but for the ids in the answer."""

    def __init__(self, memory: MemoryManager) -> None:
        self._memory = memory
        self._key = ""

    def begin(self, record: DeliveryRecord) -> None:
        self._key = record.key

    def show(self, text: str) -> None:
        """Nobody looks."""

    async def finish(self, answer: Answer) -> None:
        task = SyncTask.parse(self._key, answer.text)
        if task is None:
            raise DeliveryError(f"no memory understands {self._key}", is_permanent=True)
        await self._memory.deliver(task)

    async def abandon(self) -> None:
        """Nothing was begun."""
