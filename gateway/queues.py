"""One lane for each address: its turns run one after the other, in order of arrival; other lanes run beside it.

Plain messages that waited while a turn ran are taken together. `/stop` reaches into a running turn from outside.

One admitted event on its way through the house.
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
    """An entry with the way back beside it. Plain ones (no commands) may be taken together with their neighbours; an
    overheard one is kept without an answer. `is_stopped`: its turn was, and is not begun anew."""

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
    """All lanes. `join` at admission keeps the order of arrival; `enter` waits for the turn."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Queue] = {}

    def join(self, ticket: PendingEvent) -> None:
        """Takes a place at the end of the lane of the ticket's address."""
        self._lanes.setdefault(ticket.entry.inbound.address.key, _Queue()).waiting.append(ticket)

    @asynccontextmanager
    async def enter(self, ticket: PendingEvent) -> AsyncIterator[tuple[PendingEvent, ...]]:
        """Waits for the ticket's turn; yields what is taken together with it, itself first. Empty when an earlier
        ticket took it along."""
        if ticket.is_taken:
            # Its lane may have run empty and be gone by now.
            yield ()
            return
        key = ticket.entry.inbound.address.key
        lane = self._lanes[key]
        try:
            async with lane.lock:
                yield self._take(lane, ticket)
        finally:
            if ticket in lane.waiting:
                lane.waiting.remove(ticket)
            if not lane.waiting and not lane.lock.locked() and self._lanes.get(key) is lane:
                del self._lanes[key]

    @asynccontextmanager
    async def stoppable(self, address: Address) -> AsyncIterator[asyncio.Timeout]:
        """Inside, the turn of the address can be stopped; a stopped one raises TimeoutError here, with
        ``expired()`` true."""
        lane = self._lanes[address.key]
        try:
            async with asyncio.timeout(None) as running:
                lane.running = running
                yield running
        finally:
            lane.running = None

    def stop(self, address: Address) -> bool:
        """Stops the running turn of an address; False when none runs."""
        lane = self._lanes.get(address.key)
        if lane is None or lane.running is None:
            return False
        if lane.running.when() is None:
            lane.running.reschedule(asyncio.get_running_loop().time())
        return True

    def amend(self, inbound: Inbound) -> PendingEvent | None:
        """An edit or deletion of a message that still waits: an edited one is asked as it is now, a deleted one not at
        all. Returned, so that its entry can follow."""
        lane = self._lanes.get(inbound.address.key, _Queue())
        for ticket in list(lane.waiting):
            if ticket.entry.inbound.message_id != inbound.message_id or ticket.entry.inbound.kind != "message":
                continue
            if inbound.kind == "delete":
                ticket.is_taken = True
                lane.waiting.remove(ticket)
                return ticket
            ticket.entry = replace(ticket.entry, inbound=replace(ticket.entry.inbound, text=inbound.text))
            return ticket
        return None

    @staticmethod
    def _take(lane: _Queue, ticket: PendingEvent) -> tuple[PendingEvent, ...]:
        if ticket.is_taken:
            return ()
        taken = [ticket]
        is_first = lane.waiting[0] is ticket
        lane.waiting.remove(ticket)
        while is_first and ticket.is_plain and lane.waiting:
            if not lane.waiting[0].is_plain or lane.waiting[0].is_overheard != ticket.is_overheard:
                break
            taken.append(lane.waiting.popleft())
        for one in taken:
            one.is_taken = True
        return tuple(taken)
