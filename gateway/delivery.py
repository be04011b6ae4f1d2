"""The way an answer leaves, once: at once if it can, else from the outbox, where reminders and notices lie as well.

A delivery that fails is tried again later, with growing patience; one that succeeded never leaves twice, and none
overtakes an older one of its address. What the store cannot take at the moment is written when it can.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

import structlog

from adapters.streaming import QuietReply
from core.errors import DeliveryError, MnemeError, StoreError
from core.memory.manager import MemoryManager
from core.ports import Clock, DeliveryRecord, Reply
from core.store.mailbox import INTENDED, Inbox, Outbox, OutboxItem
from core.store.sync import SyncTask
from core.types import Address, Answer, Inbound
from gateway.supervisor import contained

TRIES = 12
TRIES_OF_MEMORY = 60  # what a memory service is to be told loses nothing by being two days late
_LONGEST_WAIT = timedelta(hours=1)
SHORTEST_REST_S = 0.5  # what is due and cannot be taken at the moment must not make the loop spin
LONGEST_REST_S = 5.0  # an item that was finished elsewhere without a call holds up what is behind it no longer
STORE_REST_S = 2.0
RESTS_S = (0.5, 1.0, 2.0)
"""Before each further try of what is incognito: it is written nowhere, so its reply is all that can deliver it."""
ReplyFactory = Callable[[Address, str | None], Reply]
Write = Callable[[], Awaitable[object]]
T = TypeVar("T")


class _Record:
    """Fills the role DeliveryRecord. `keep` stores what was posted; None: for what is not in the outbox."""

    def __init__(
        self, key: str, posted: Sequence[str] = (), keep: Callable[[Sequence[str]], Awaitable[None]] | None = None
    ) -> None:
        self.key = key
        self.posted = [message_id for message_id in posted if message_id != INTENDED]
        self.is_uncertain = INTENDED in posted
        self._keep = keep

    async def intend(self) -> None:
        await self._store([*self.posted, INTENDED])

    async def retract(self) -> None:
        await self._store(self.posted)

    async def record(self, message_id: str, *, is_last: bool = False) -> None:
        self.posted.append(message_id)
        if not is_last:
            await self._store(self.posted)

    async def _store(self, posted: Sequence[str]) -> None:
        if self._keep is not None:
            await self._keep(tuple(posted))


class Delivery:
    """`replies`: how to reply on each platform that is open now; may grow. `run` delivers what lies in the outbox, one
    item at a time for each address, all addresses side by side; nothing that a platform or the store does ends it."""

    def __init__(self, inbox: Inbox, outbox: Outbox, clock: Clock, replies: Mapping[str, ReplyFactory]) -> None:
        self.inbox = inbox
        self.outbox = outbox
        self._clock = clock
        self._replies = replies
        self._called = asyncio.Event()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """The lock of each address that something is being delivered to, and of those that wait for it."""
        self._left: set[str] = set()
        """Keys of what is left to `run`, which is called whenever something else has been sent."""
        self._records: WeakValueDictionary[str, _Record] = WeakValueDictionary()
        """By key of what is being delivered: what was posted is stored as the delivery ends, at the latest."""
        self._unwritten: deque[Write] = deque()
        self._has_unseen = True
        """Whether an answer may wait for its person to come by."""
        self.on_memory_given_up: Callable[[str], Awaitable[None]] | None = None
        """Gets the key of what a memory service is never told before that is marked dead; again after a crash in
        between."""
        self._log = structlog.get_logger("delivery")

    @staticmethod
    def draft(inbound: Inbound) -> OutboxItem:
        """The outbox item for the answer to an event, not stored. That of an interaction names the person: once the
        interaction has expired, a private answer has to find another way there."""
        is_quoting = not inbound.is_direct and inbound.kind == "message"
        quoted = inbound.message_id if is_quoting else None
        return OutboxItem(
            key=f"turn:{inbound.address.key}:{inbound.kind}:{inbound.message_id}",
            kind="answer",
            address=inbound.address,
            reply_to=f"@{inbound.sender.id}" if inbound.is_interaction else quoted,
        )

    def begin(self, outbox_item: OutboxItem, reply: Reply) -> None:
        """Shows typing; what is posted is recorded."""

        async def keep(posted: Sequence[str]) -> None:
            await self._write(partial(self.outbox.set_posted, outbox_item.key, posted))

        record = self._records[outbox_item.key] = _Record(outbox_item.key, outbox_item.posted, keep)
        reply.begin(record)

    async def deliver(self, outbox_item: OutboxItem, reply: Reply, answer: Answer) -> bool:
        """Sends the final answer through a reply that has begun. False when it did not arrive: it is tried again later,
        or dead when that is hopeless (of what is incognito only this reply can deliver it). It is left to `run`
        where an older answer has yet to leave for the same address, unless it is a notice, which stands in no order."""
        is_once = outbox_item.answer is None and self.inbox.is_incognito(outbox_item.address)
        if is_once or outbox_item.kind == "notice":
            # A notice which hangs holds up no answer.
            return await self._send(outbox_item, reply, answer, is_once=is_once)
        async with self._locks.setdefault(outbox_item.address.key, asyncio.Lock()):
            # Where that cannot be read, a person waits: better out of order than not at all.
            if not await self._read(self.outbox.is_behind(outbox_item.key), False):
                is_sent = await self._send(outbox_item, reply, answer)
                self._left.discard(outbox_item.key)
                if self._left:
                    self.wake()
                return is_sent
        await self._leave(outbox_item, reply, answer)
        return False

    async def fail(self, outbox_item: OutboxItem, error: MnemeError, *, is_once: bool = False) -> None:
        """Postpones a delivery that failed, or marks it dead when that is hopeless."""
        is_permanent = isinstance(error, DeliveryError) and error.is_permanent
        is_memory = outbox_item.kind == "memory"
        tries = TRIES_OF_MEMORY if is_memory else TRIES
        if is_permanent or is_once or outbox_item.attempts + 1 >= tries:
            self._log.warning("undeliverable", key=outbox_item.key, error=error.logged)
            if is_memory and self.on_memory_given_up is not None:
                await self._write(partial(self.on_memory_given_up, outbox_item.key))
            self._has_unseen = True
            await self._write(partial(self.outbox.fail, outbox_item.key, str(error)))
            return
        asked_s = error.retry_after_s if isinstance(error, DeliveryError) else None
        wait = timedelta(seconds=max(asked_s or 0.0, 2.0**outbox_item.attempts))
        next_at = self._clock.now() + min(wait, _LONGEST_WAIT)
        self._log.info("not delivered yet", key=outbox_item.key, error=error.logged, next_at=next_at.isoformat())
        await self._write(partial(self.outbox.fail, outbox_item.key, str(error), next_at))
        self.wake()

    async def unseen(self, inbound: Inbound) -> list[OutboxItem]:
        """Answers to interactions that could not reach the person who is here now, where they alone read."""
        if not self._has_unseen or not (inbound.is_interaction or inbound.is_direct):
            return []
        found = await self._read(self.outbox.unseen(), None)
        self._has_unseen = found is None or bool(found)
        platform, person = inbound.address.platform, f"@{inbound.sender.id}"
        return [item for item in found or () if (item.address.platform, item.reply_to) == (platform, person)]

    def wake(self) -> None:
        """Something in the outbox may be due."""
        self._called.set()

    async def run(self) -> None:
        """Delivers until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._called.clear()
                try:
                    while self._unwritten:
                        await self._unwritten[0]()
                        self._unwritten.popleft()
                    for outbox_item in await self.outbox.due(self._clock.now(), tuple(self._replies)):
                        # What is claimed is due no more, and nothing behind it is.
                        await self.outbox.claim(outbox_item.key)
                        tasks.create_task(self._deliver_due(outbox_item), name=f"delivery {outbox_item.key}")
                    next_at = await self.outbox.next_at(tuple(self._replies))
                    rest_s = LONGEST_REST_S
                    if next_at is not None:
                        rest_s = min(max((next_at - self._clock.now()).total_seconds(), SHORTEST_REST_S), rest_s)
                except StoreError as error:
                    self._log.error("the outbox cannot be used", error=str(error))
                    rest_s = STORE_REST_S
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(rest_s):
                        await self._called.wait()

    async def tell(self, inbound: Inbound, reply: Reply, answer: Answer, *, has_begun: bool = False) -> None:
        """Says something that need not be kept (a pairing code to a stranger), or that cannot be."""
        try:
            with contained():
                if not has_begun:
                    reply.begin(_Record(f"tell:{inbound.address.key}:{inbound.message_id}"))
                await reply.finish(answer)
        except DeliveryError as error:
            self._log.info("not told", address=inbound.address.key, error=str(error))

    async def _send(self, outbox_item: OutboxItem, reply: Reply, answer: Answer, *, is_once: bool = False) -> bool:
        """`is_once`: no later process or reply can deliver it, so it is tried again here."""
        rests_s = iter(RESTS_S if is_once else ())
        while True:
            try:
                with contained(outbox_item.attempts):
                    await reply.finish(answer)
                break
            except MnemeError as error:
                is_hopeless = isinstance(error, DeliveryError) and (error.is_permanent or error.retry_after_s)
                rest_s = None if is_hopeless else next(rests_s, None)
                if rest_s is None:
                    await self.fail(outbox_item, error, is_once=is_once)
                    return False
            await asyncio.sleep(rest_s)
        record = self._records.get(outbox_item.key)
        await self._write(partial(self.outbox.done, outbox_item.key, () if record is None else tuple(record.posted)))
        return True

    async def _leave(self, outbox_item: OutboxItem, reply: Reply, answer: Answer) -> None:
        """`run` may take an answer only once its reply has ended and all its messages are recorded."""
        self._left.add(outbox_item.key)
        try:
            with contained():
                await reply.abandon()
        except MnemeError as error:
            self._log.warning("abandoned", key=outbox_item.key, error=str(error))
        left = replace(outbox_item, answer=answer, next_at=self._clock.now())
        await self._write(partial(self.outbox.put, left, is_own=True))
        self.wake()

    async def _read(self, read: Awaitable[T], otherwise: T) -> T:
        try:
            return await read
        except StoreError as error:
            self._log.error("the outbox cannot be read", error=str(error))
            return otherwise

    async def _write(self, write: Write) -> None:
        """When the store is out of order, writes later, in the same order."""
        try:
            await write()
        except StoreError as error:
            self._log.error("the outbox cannot be written, so this is written later", error=str(error))
            self._unwritten.append(write)
            self.wake()

    async def _deliver_due(self, outbox_item: OutboxItem) -> None:
        assert outbox_item.answer is not None, "what is due has content"
        try:
            with contained(outbox_item.attempts):
                reply = self._replies[outbox_item.address.platform](outbox_item.address, outbox_item.reply_to)
                self.begin(outbox_item, reply)
        except DeliveryError as error:
            await self.fail(outbox_item, error)
        else:
            await self.deliver(outbox_item, reply, outbox_item.answer)
        self.wake()


def memory_reply(memory: MemoryManager) -> Reply:
    """To a memory service: the key of the record says everything, but for the ids in the answer."""

    async def send(record: DeliveryRecord, answer: Answer) -> None:
        task = SyncTask.parse(record.key, answer.text)
        if task is None:
            raise DeliveryError(f"no memory understands {record.key}", is_permanent=True)
        await memory.deliver(task)

    return QuietReply(send)
