"""One queue for each address: its turns run one after the other, in order of arrival; other queues run beside it.

Plain messages that waited while a turn ran are taken together. `/stop` reaches into a running turn from outside.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from core.ports import Reply
from core.store.inbox import InboxEntry
from core.store.outbox import OutboxItem
from core.types import Address, Inbound, Scope


@dataclass(slots=True, kw_only=True, eq=False)
class PendingEvent:
    """An inbox entry, the reply to it and the outbox item of its answer. Plain ones (no commands) may be taken together
    with their neighbours; an overheard one is stored without an answer; one that `is_beside` waits in no queue.
    `is_stopped`: its turn is not begun anew. `changes`: edits and deletions that came before it was stored."""

    entry: InboxEntry
    reply: Reply
    scope: Scope
    outbox_item: OutboxItem
    is_plain: bool
    is_overheard: bool = False
    is_beside: bool = False
    is_taken: bool = False
    has_begun: bool = False
    is_stopped: bool = False
    is_answered: bool = False
    changes: list[Inbound] = field(default_factory=list)

    @property
    def inbound(self) -> Inbound:
        return self.entry.inbound


@dataclass(slots=True)
class _Queue:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: deque[PendingEvent] = field(default_factory=deque)
    taken: tuple[PendingEvent, ...] = ()
    running: asyncio.Timeout | None = None


class ConversationQueues:
    """All queues. `join` at admission keeps the order of arrival; `enter` waits for the turn."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    def join(self, event: PendingEvent) -> None:
        self._queues.setdefault(event.inbound.address.key, _Queue()).waiting.append(event)

    @asynccontextmanager
    async def enter(self, event: PendingEvent) -> AsyncIterator[tuple[PendingEvent, ...]]:
        """Waits for the event's turn; yields it and what is taken together with it, nothing if it was itself taken
        along."""
        if event.is_taken:
            # Its queue may have run empty and be gone by now.
            yield ()
            return
        key = event.inbound.address.key
        queue = self._queues[key]
        try:
            async with queue.lock:
                queue.taken = self._take(queue, event)
                try:
                    yield queue.taken
                finally:
                    queue.taken = ()
        finally:
            if event in queue.waiting:
                queue.waiting.remove(event)
            if not queue.waiting and not queue.lock.locked() and self._queues.get(key) is queue:
                del self._queues[key]

    @asynccontextmanager
    async def stoppable(self, address: Address) -> AsyncIterator[asyncio.Timeout]:
        """A turn stopped inside raises TimeoutError here, with ``expired()`` true."""
        queue = self._queues[address.key]
        try:
            async with asyncio.timeout(None) as running:
                queue.running = running
                yield running
        finally:
            queue.running = None

    def stop(self, address: Address) -> bool:
        """False when no turn runs there."""
        queue = self._queues.get(address.key)
        if queue is None or queue.running is None:
            return False
        if queue.running.when() is None:
            queue.running.reschedule(asyncio.get_running_loop().time())
        return True

    def find(self, inbound: Inbound) -> PendingEvent | None:
        """The message that an edit or a deletion is about, if it waits or is being answered."""
        queue = self._queues.get(inbound.address.key, _Queue())
        for event in (*queue.waiting, *queue.taken):
            if event.inbound.message_id == inbound.message_id and event.inbound.kind == "message":
                return event
        return None

    def withdraw(self, event: PendingEvent) -> None:
        """Takes an event that waits out of its queue."""
        event.is_taken = True
        self._queues[event.inbound.address.key].waiting.remove(event)

    @staticmethod
    def _take(queue: _Queue, event: PendingEvent) -> tuple[PendingEvent, ...]:
        if event.is_taken:
            return ()
        taken = [event]
        is_first = queue.waiting[0] is event
        queue.waiting.remove(event)
        while is_first and event.is_plain and queue.waiting:
            if not queue.waiting[0].is_plain or queue.waiting[0].is_overheard != event.is_overheard:
                break
            taken.append(queue.waiting.popleft())
        for one in taken:
            one.is_taken = True
        return tuple(taken)
