"""One queue for each address: its turns run one after the other, in order of arrival; other queues run beside it.

Plain messages that waited while a turn ran are taken together, and so is a burst: an album, what is forwarded together,
the parts of a long text, or what somebody adds before anything was answered. `/stop` reaches into a running turn.
What is said faster than it may be answered is held, and queued together once it may.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, MutableSequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile

from core.ports import Reply
from core.store.mailbox import InboxEntry, OutboxItem
from core.types import Address, Command, Inbound, Scope

BURST_S = 1.2
"""What comes within this time belongs together."""
BURST_MOST = 10
"""With more than this the answer is not begun anew: what comes then waits for the next turn."""
PART_CHARS = 3800
"""Longer texts may be parts: clients split what is over 4,096 characters."""


@dataclass(slots=True, kw_only=True, eq=False)
class PendingEvent:
    """An inbox entry, the reply to it and the outbox item of its answer. Plain ones (no commands) may be taken together
    with their neighbours; an overheard one is stored without an answer; one that `is_beside` waits in no queue.
    `command`: see `Commands.given`. `is_stopped`: its turn is not begun anew. `joined_at`: on the loop's clock.
    `is_dropped`: whoever wrote it is not served any more. `changes`: edits and deletions that came before it was
    stored. `is_metered`: not the owner's. `along`: what was held and is taken with it, which has its `place` and its
    outbox item then. `is_ready`: it stands in its queue, or was taken."""

    entry: InboxEntry
    reply: Reply
    scope: Scope
    outbox_item: OutboxItem
    command: Command | None = None
    is_overheard: bool = False
    is_beside: bool = False
    is_taken: bool = False
    has_begun: bool = False
    is_stopped: bool = False
    is_answered: bool = False
    is_dropped: bool = False
    is_metered: bool = False
    joined_at: float = 0.0
    is_ready: asyncio.Event = field(default_factory=asyncio.Event)
    changes: list[Inbound] = field(default_factory=list)
    along: list[PendingEvent] = field(default_factory=list)
    place: Address = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.inbound.address

    @property
    def inbound(self) -> Inbound:
        return self.entry.inbound

    @property
    def is_plain(self) -> bool:
        return self.inbound.kind == "message" and self.command is None

    @property
    def is_part(self) -> bool:
        """Whether more of the same may follow at once."""
        inbound = self.inbound
        return inbound.group_id is not None or inbound.origin == "forwarded" or len(inbound.text) >= PART_CHARS

    def goes_with(self, other: PendingEvent) -> bool:
        return self.is_plain and other.is_plain and self.is_overheard == other.is_overheard


@dataclass(slots=True)
class _Queue:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: deque[PendingEvent] = field(default_factory=deque)
    taken: list[PendingEvent] = field(default_factory=list)
    running: asyncio.Timeout | None = None
    interrupt: Callable[[], bool] = bool
    """Whether the running turn is given up, to be begun anew with what comes in now."""
    is_extended: bool = False


class ConversationQueues:
    """All queues. `join` at admission keeps the order of arrival; `enter` waits for the turn. `rest_s`: in how many
    seconds a turn for an event may begin; 0 where it may now, and is counted. What is at an address that `is_apart` is
    answered nowhere else."""

    def __init__(
        self,
        rest_s: Callable[[Inbound], float] = lambda _: 0.0,
        is_apart: Callable[[Address], bool] = lambda _: False,
    ) -> None:
        self._queues: dict[str, _Queue] = {}
        self._held: dict[Hashable, list[PendingEvent]] = {}
        self._rest_s = rest_s
        self._is_apart = is_apart
        self._timer: asyncio.TimerHandle | None = None

    def join(self, event: PendingEvent) -> None:
        queue = self._queues.get(event.place.key)
        group = (event.scope, event.inbound.account, event.place.chat_id)
        # A command costs nothing, and neither does what is answered with what waits; but it comes after what is held.
        is_free = not event.is_plain or bool(queue and queue.waiting and queue.waiting[-1].goes_with(event))
        is_behind = any(one.place == event.place for one in self._held.get(group, []))
        if event.is_metered and not event.is_overheard and (is_behind or not is_free):
            self._held.setdefault(group, []).append(event)
            self._release()
        else:
            self._queue(event)

    def _release(self) -> None:
        """Queues what may be answered by now: all that somebody said in a chat, together where they said the last."""
        rests = []
        for held in self._held.values():
            while held:
                if not held[0].is_plain:
                    self._queue(held.pop(0))
                elif rest_s := self._rest_s(held[0].inbound):
                    rests.append(rest_s)
                    break
                else:
                    plain = takewhile(lambda event: event.is_plain, held)
                    said = [event for event in plain if self._are_together(held[0], event)]
                    left = set(held).difference(said)
                    held[:] = [event for event in held if event in left]
                    self._lead(said)
        self._held = {group: held for group, held in self._held.items() if held}
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(min(rests), self._release) if rests else None

    def _are_together(self, one: PendingEvent, other: PendingEvent) -> bool:
        return one.place == other.place or not (self._stays(one) or self._stays(other))

    def _stays(self, event: PendingEvent) -> bool:
        """Whether it is answered nowhere else; also where a command comes before it, which may make it so."""
        queue = self._queues.get(event.place.key, _Queue())
        return self._is_apart(event.place) or not all(one.is_plain for one in (*queue.waiting, *queue.taken))

    def _lead(self, events: list[PendingEvent]) -> None:
        """Queues the newest, with the others along."""
        events[-1].along = events[:-1]
        self._queue(events[-1])

    def _queue(self, event: PendingEvent) -> None:
        queue = self._queues.setdefault(event.place.key, _Queue())
        event.joined_at = asyncio.get_running_loop().time()
        event.is_ready.set()
        queue.waiting.append(event)
        if queue.running is not None and queue.running.when() is None and queue.waiting[0] is event:
            last = queue.taken[-1]
            is_near = event.joined_at - last.joined_at <= BURST_S and event.inbound.sender.id == last.inbound.sender.id
            if is_near and last.goes_with(event) and len(queue.taken) < BURST_MOST and queue.interrupt():
                queue.is_extended = True
                queue.running.reschedule(event.joined_at)

    @asynccontextmanager
    async def enter(self, event: PendingEvent) -> AsyncIterator[list[PendingEvent]]:
        """Waits for the event's turn; yields it and what is taken together with it, nothing if it was itself taken
        along."""
        was_held = not event.is_ready.is_set()
        await event.is_ready.wait()
        if event.is_taken:
            # Its queue may have run empty and be gone by now.
            yield []
            return
        key = event.place.key
        queue = self._queues[key]
        try:
            if not was_held:
                # What waited here until now was said before, and is woken up only now.
                await asyncio.sleep(0)
            async with queue.lock:
                await _settle(queue, event)
                queue.taken = _take(queue, event)
                try:
                    yield queue.taken
                finally:
                    queue.taken = []
        finally:
            if event in queue.waiting:
                queue.waiting.remove(event)
            if not queue.waiting and not queue.lock.locked() and self._queues.get(key) is queue:
                del self._queues[key]

    @asynccontextmanager
    async def stoppable(self, address: Address, interrupt: Callable[[], bool]) -> AsyncIterator[asyncio.Timeout]:
        """A turn that is stopped, or extended where it lets one `interrupt` it, raises TimeoutError here, with
        ``expired()`` true."""
        queue = self._queues[address.key]
        queue.interrupt, queue.is_extended = interrupt, False
        try:
            async with asyncio.timeout(None) as running:
                queue.running = running
                yield running
        finally:
            queue.running = None

    async def extend(self, address: Address) -> bool:
        """Whether the turn that has just ended is to be begun anew; what came in then is added to what `enter` gave."""
        queue = self._queues[address.key]
        if queue.is_extended and queue.waiting and queue.waiting[0].goes_with(queue.taken[-1]):
            first = queue.waiting[0]
            await _settle(queue, first)
            queue.taken += _take(queue, first)
        return queue.is_extended

    def stop(self, address: Address) -> bool:
        """False when no turn runs there."""
        queue = self._queues.get(address.key)
        if queue is None or queue.running is None:
            return False
        queue.is_extended = False
        if queue.running.when() is None:
            queue.running.reschedule(asyncio.get_running_loop().time())
        return True

    def find(self, inbound: Inbound) -> PendingEvent | None:
        """The message that an edit or a deletion is about, if it waits or is being answered."""
        wanted = (inbound.address, inbound.message_id, "message")
        for event in chain(*self._lists(), *(queue.taken for queue in self._queues.values())):
            if (event.inbound.address, event.inbound.message_id, event.inbound.kind) == wanted:
                return event
        return None

    def withdraw(self, event: PendingEvent) -> None:
        """Takes out an event that waits."""
        event.is_taken = True
        event.is_ready.set()
        for events in [events for events in self._lists() if event in events]:
            events.remove(event)
        if event.along:
            self._lead(event.along)

    def _lists(self) -> Iterator[MutableSequence[PendingEvent]]:
        """All that wait."""
        yield from self._held.values()
        for queue in self._queues.values():
            yield queue.waiting
            yield from (event.along for event in queue.waiting)


def _together(queue: _Queue, event: PendingEvent) -> list[PendingEvent]:
    """The event, and what goes with it of those that wait behind it, if it is the first."""
    if queue.waiting[0] is not event:
        return [event]
    return [event, *takewhile(event.goes_with, islice(queue.waiting, 1, None))]


async def _settle(queue: _Queue, event: PendingEvent) -> None:
    """Waits while more of the same may follow."""
    while not event.is_taken:
        together = _together(queue, event)
        rest_s = together[-1].joined_at + BURST_S - asyncio.get_running_loop().time()
        is_whole = not any(one.is_part for one in (*queue.taken, *together))
        if is_whole or rest_s <= 0 or len(together) < len(queue.waiting):
            return
        await asyncio.sleep(rest_s)


def _take(queue: _Queue, event: PendingEvent) -> list[PendingEvent]:
    if event.is_taken:
        return []
    taken = []
    for one in _together(queue, event):
        queue.waiting.remove(one)
        for part in (*one.along, one):
            part.place, part.outbox_item, part.is_taken = one.place, one.outbox_item, True
            part.is_ready.set()
            taken.append(part)
    return taken
