"""One queue for each address: its turns run one after the other, in order of arrival; other queues run beside it.

Plain messages that waited while a turn ran are taken together. `/stop` reaches into a running turn from outside.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from core.ports import Reply
from core.store.inbox import InboxEntry
from core.types import Address, Inbound, Scope


@dataclass(slots=True, kw_only=True, eq=False)
class PendingEvent:
    """An inbox entry and the reply to it. Plain ones (no commands) may be taken together with their neighbours; an
    overheard one is stored without an answer. `is_stopped`: its turn is not begun anew."""

    entry: InboxEntry
    reply: Reply
    scope: Scope
    is_plain: bool
    is_overheard: bool = False
    is_taken: bool = False
    has_begun: bool = False
    is_stopped: bool = False
    is_answered: bool = False


@dataclass(slots=True)
class _Queue:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: deque[PendingEvent] = field(default_factory=deque)
    running: asyncio.Timeout | None = None


class ConversationQueues:
    """All queues. `join` at admission keeps the order of arrival; `enter` waits for the turn."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    def join(self, event: PendingEvent) -> None:
        self._queues.setdefault(event.entry.inbound.address.key, _Queue()).waiting.append(event)

    @asynccontextmanager
    async def enter(self, event: PendingEvent) -> AsyncIterator[tuple[PendingEvent, ...]]:
        """Waits for the event's turn; yields it and what is taken together with it, nothing if it was itself taken
        along."""
        if event.is_taken:
            # Its queue may have run empty and be gone by now.
            yield ()
            return
        key = event.entry.inbound.address.key
        queue = self._queues[key]
        try:
            async with queue.lock:
                yield self._take(queue, event)
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

    def amend(self, inbound: Inbound) -> PendingEvent | None:
        """Edits or removes a message that still waits; returned so that its entry can follow."""
        queue = self._queues.get(inbound.address.key, _Queue())
        for event in list(queue.waiting):
            if event.entry.inbound.message_id != inbound.message_id or event.entry.inbound.kind != "message":
                continue
            if inbound.kind == "delete":
                event.is_taken = True
                queue.waiting.remove(event)
                return event
            event.entry = replace(event.entry, inbound=replace(event.entry.inbound, text=inbound.text))
            return event
        return None

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
