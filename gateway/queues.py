"""Keeps one queue per address, and answers its messages one by one in order of arrival.

Queues of different addresses run concurrently. Messages that wait together are answered together,
as one batch. The messages of a burst also form one batch: an album, messages forwarded together,
the parts of a long text, or messages that a person adds before any part of the answer was shown.
`/stop` ends the running turn of a queue.

Messages over their sender's rate limit are held, and queued when the limit allows it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, MutableSequence, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain, islice, takewhile
from typing import Literal
from zlib import crc32

from core.media.intake import Reception
from core.ports import Reply
from core.store.mailbox import InboxEntry, OutboxItem
from core.types import Address, Command, Inbound, Scope

# The beginning of `make_edit_key`. It can't be confused with the id of a message.
EDIT_KEY = "edited:"
# Messages that arrive within this time belong to one burst.
BURST_WINDOW_S = 1.2
# If a message may be followed by further parts, it waits this long before it's answered.
NEXT_PART_WAIT_S = BURST_WINDOW_S
# A running turn isn't restarted to add messages to a batch of this length. Further messages wait
# for the next turn.
MAX_BURST_MESSAGES = 10
# A text of this length may be a part of a longer one: clients split texts over 4,096 characters.
PART_CHARS = 3800


MidTurnPolicy = Literal["join", "queue", "interrupt"]


def make_edit_key(edit: Inbound) -> str:
    """Return the message id of the event that answers an edited question again.

    It's the same if the platform repeats the edit. Two edits may have the same time, because
    Telegram counts whole seconds, so the key also depends on what the edit says.
    """
    references = [attachment.reference for attachment in edit.attachments]
    content_hash = crc32(repr((edit.text, references)).encode(errors="replace"))
    time = f"{edit.sent_at.timestamp():.3f}"
    return f"{EDIT_KEY}{edit.message_id}:{time}-{content_hash:08x}"


def find_edited_id(inbound: Inbound) -> str | None:
    """Return the id of the edited question that an event answers again, or None."""
    if not inbound.message_id.startswith(EDIT_KEY):
        return None
    return inbound.message_id.removeprefix(EDIT_KEY).rpartition(":")[0]


class EventKind(Enum):
    """How an event is answered: in its queue, alone or merged, at once, or not at all."""

    MESSAGE = "message"  # in its queue, together with the messages around it
    COMMAND = "command"  # in its queue, alone
    IMMEDIATE = "immediate"  # without waiting: a read-only command, or an expired button


class EventState(Enum):
    """The progress of an event through the queues.

    An immediate event isn't queued, so it stays `ADMITTED`.
    """

    ADMITTED = "admitted"  # stored in the inbox
    RATE_LIMITED = "rate limited"  # held until its sender may speak again
    MERGED = "merged"  # part of a queued event of the same sender
    QUEUED = "queued"
    RUNNING = "running"  # part of the batch that is being answered
    REVOKED = "revoked"  # its sender lost access while it was being answered
    WITHDRAWN = "withdrawn"  # left its queue: deleted, or its sender lost access


class ReplyState(Enum):
    """The progress of the reply to an event."""

    UNUSED = "unused"
    BEGUN = "begun"  # shows that an answer is being written
    ANSWERED = "answered"  # has the final answer; a failure after this isn't reported again


@dataclass(slots=True, kw_only=True, eq=False)
class PendingEvent:
    """A stored event that hasn't been answered yet, with its reply and its outbox item."""

    entry: InboxEntry
    reply: Reply
    scope: Scope
    # The outbox item in which the answer is stored. Events that are merged share one item.
    outbox_item: OutboxItem
    # The command to run for the event. See `CommandRegistry.resolve`.
    command: Command | None = None
    kind: EventKind = EventKind.MESSAGE
    state: EventState = EventState.ADMITTED
    reply_state: ReplyState = ReplyState.UNUSED
    # False for group messages that aren't addressed to Mneme. They are stored, but not answered.
    is_addressed: bool = True
    # False for the owner, who has no rate limit.
    counts_against_limits: bool = False
    # When the event was queued, on the event loop's clock.
    queued_at: float = 0.0
    # Set when the event is no longer held back by a rate limit.
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    # Earlier held messages of the same sender that are answered together with this one, or the
    # other parts of a command's album.
    merged: list[PendingEvent] = field(default_factory=list)
    # Edits and deletions that arrived while the event was being answered, before it was stored.
    changes: list[Inbound] = field(default_factory=list)
    # The address of the queue. A merged event may wait in the queue of another thread.
    queue_address: Address = field(init=False)

    def __post_init__(self) -> None:
        self.queue_address = self.inbound.address

    @property
    def inbound(self) -> Inbound:
        return self.entry.inbound

    @property
    def is_held(self) -> bool:
        return self.state in (EventState.RATE_LIMITED, EventState.MERGED)

    @property
    def is_waiting(self) -> bool:
        """Return whether the event can still be taken out of the queues."""
        return self.is_held or self.state is EventState.QUEUED

    @property
    def is_running(self) -> bool:
        return self.state in (EventState.RUNNING, EventState.REVOKED)

    @property
    def is_mergeable(self) -> bool:
        """Return whether the event may be answered together with others. Commands run alone."""
        return self.kind is EventKind.MESSAGE

    @property
    def may_continue(self) -> bool:
        """Return whether more messages of the same burst may arrive within `NEXT_PART_WAIT_S`."""
        inbound = self.inbound
        if inbound.group_id is not None or inbound.origin == "forwarded":
            return True
        return len(inbound.text) >= PART_CHARS

    def can_merge_with(self, other: PendingEvent) -> bool:
        """Return whether both events may be in one batch.

        Both must be messages, and either both or neither must be addressed to Mneme.
        """
        if not (self.is_mergeable and other.is_mergeable):
            return False
        return self.is_addressed == other.is_addressed

    def is_of_same_album(self, other: PendingEvent) -> bool:
        """Return whether both events are parts of one album of the same person."""
        album = self.inbound.group_id, self.inbound.account
        return album[0] is not None and album == (other.inbound.group_id, other.inbound.account)

    def take_files(self, parts: Sequence[PendingEvent], *, are_later: bool) -> None:
        """Add the files of parts of the same album, which are then answered with this command."""
        files = self.inbound.attachments
        for part in parts:
            part.state = EventState.MERGED
            others = part.inbound.attachments
            files = (*files, *others) if are_later else (*others, *files)
        self.merged.extend(parts)
        self.entry = replace(self.entry, inbound=replace(self.inbound, attachments=files))

    def apply_edit(self, edit: Inbound) -> None:
        """Replace the text and the files. An edited "yes" no longer confirms a command."""
        inbound = replace(self.inbound, text=edit.text, attachments=edit.attachments)
        self.entry = replace(self.entry, inbound=inbound)
        self.command = self.inbound.command
        self.kind = EventKind.MESSAGE if self.command is None else EventKind.COMMAND

    def become_message(self, inbound: Inbound) -> None:
        """Replace a command with the message `inbound`, which the model answers instead."""
        self.entry = replace(self.entry, inbound=inbound)
        self.command = None
        self.kind = EventKind.MESSAGE


@dataclass(slots=True, eq=False)
class Batch:
    """Events that are answered together, in order of arrival.

    If the event of a task was withdrawn or answered in another batch, the task gets an empty batch.
    """

    events: list[PendingEvent] = field(default_factory=list)
    # Events that were removed and answered separately, because their sender is over a daily limit.
    refused: list[PendingEvent] = field(default_factory=list)
    # `/stop` ended the turn. If the turn is repeated, it only stores the messages, without the
    # model.
    is_stopped: bool = False
    # The results of downloading the files of the messages.
    receptions: Sequence[Reception] = ()

    @property
    def last(self) -> PendingEvent:
        """Return the newest event. The answer is sent as a reply to it."""
        return self.events[-1]

    @property
    def outbox_item(self) -> OutboxItem:
        """Return the outbox item of the first event.

        It stays the same if the batch grows, and after a crash.
        """
        return self.events[0].outbox_item

    @property
    def scope(self) -> Scope:
        return self.events[0].scope

    @property
    def entry_ids(self) -> list[int]:
        return [event.entry.id for event in self.events]

    @property
    def is_any_revoked(self) -> bool:
        return any(event.state is EventState.REVOKED for event in self.events)

    @property
    def is_all_revoked(self) -> bool:
        return all(event.state is EventState.REVOKED for event in self.events)

    def refuse(self, events: Sequence[PendingEvent]) -> None:
        """Move events that were answered separately from `events` to `refused`."""
        self.refused += events
        self.events = [event for event in self.events if event not in events]


@dataclass(slots=True)
class _Queue:
    # Held while a batch is answered.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: deque[PendingEvent] = field(default_factory=deque)
    # The batch that is being answered; empty between turns.
    batch: Batch = field(default_factory=Batch)
    # The timeout of the running turn, which ends when the timeout is rescheduled; None if no turn
    # runs.
    timeout: asyncio.Timeout | None = None
    # Discards the running turn so that it can restart with further messages. Returns False if the
    # person has already seen a part of the answer.
    interrupt: Callable[[], bool] = lambda: False
    # True if `interrupt` has discarded the running turn, so the turn restarts.
    is_restarting: bool = False


class ConversationQueues:
    """The queues of all addresses.

    `gather_s` and `while_answering` are settings; see `config/default.toml`. `wait_s` returns how
    many seconds a sender must wait before their next turn. If it returns 0, it has counted the
    turn. `is_isolated` returns whether messages at an address must not be answered together with
    messages at another address.
    """

    def __init__(
        self,
        wait_s: Callable[[Inbound], float] = lambda _: 0.0,
        is_isolated: Callable[[Address], bool] = lambda _: False,
        gather_s: float = 0.0,
        while_answering: MidTurnPolicy = "join",
    ) -> None:
        self._wait_s = wait_s
        self._is_isolated = is_isolated
        # How long a message waits for others that are answered with it.
        self._gather_s = gather_s
        # What happens to messages that arrive while an answer is being written.
        self._while_answering = while_answering
        # By the key of the address.
        self._queues: dict[str, _Queue] = {}
        # Events over a rate limit, by scope, account and chat, oldest first.
        self._held: dict[Hashable, list[PendingEvent]] = {}
        self._release_timer: asyncio.TimerHandle | None = None

    def add(self, event: PendingEvent) -> None:
        """Queue an event, or hold it if its sender is over a rate limit.

        The limit doesn't apply to commands or to a message that joins the last waiting message. But
        both wait behind held events of the same sender at this address.
        """
        if self._join_album(event):
            return
        sender_key = (event.scope, event.inbound.account, event.queue_address.chat_id)
        held_events = self._held.get(sender_key, [])
        is_behind_held = any(other.queue_address == event.queue_address for other in held_events)
        is_limited = event.counts_against_limits and event.is_addressed
        if is_limited and (is_behind_held or not self._is_exempt_from_limit(event)):
            event.state = EventState.RATE_LIMITED
            self._held.setdefault(sender_key, []).append(event)
            self._release_held()
        else:
            self._enqueue(event)

    def _join_album(self, event: PendingEvent) -> bool:
        """Let a command take along the files of the album whose caption it is.

        An album is several messages, and any of them can have the caption. A command takes the
        parts that wait. Returns whether the event is a part that a waiting command has taken.
        """
        queue = self._queues.get(event.queue_address.key)
        if queue is None:
            return False
        parts = [other for other in queue.waiting if event.is_of_same_album(other)]
        if event.kind is EventKind.COMMAND:
            silent_parts = [part for part in parts if part.is_mergeable and not part.inbound.text]
            for part in silent_parts:
                queue.waiting.remove(part)
            event.take_files(silent_parts[::-1], are_later=False)
            return False
        commands = [part for part in parts if part.kind is EventKind.COMMAND]
        if not commands or event.inbound.text:
            return False
        commands[-1].take_files([event], are_later=True)
        return True

    def _is_exempt_from_limit(self, event: PendingEvent) -> bool:
        """Return whether an event isn't a new turn: a command, or part of the last message."""
        if not event.is_mergeable:
            return True
        queue = self._queues.get(event.queue_address.key)
        if queue is None or not queue.waiting:
            return False
        return queue.waiting[-1].can_merge_with(event)

    def _release_held(self) -> None:
        """Queue the held events of all senders who may speak again, and set a timer for the others.

        Held messages of a sender in a chat that may be answered together become one event: the
        newest message, with the others merged into it.
        """
        waits_s: list[float] = []
        for held_events in self._held.values():
            while held_events:
                first = held_events[0]
                if not first.is_mergeable:
                    # A command was held only because older events were.
                    self._enqueue(held_events.pop(0))
                    continue
                wait_s = self._wait_s(first.inbound)
                if wait_s:
                    waits_s.append(wait_s)
                    break
                # The turn was counted. Messages up to the next command may share it.
                messages = takewhile(lambda event: event.is_mergeable, held_events)
                merged_events = [event for event in messages if self._share_turn(first, event)]
                # Change the list in place, because `_held` contains it.
                held_events[:] = [event for event in held_events if event not in merged_events]
                self._enqueue_merged(merged_events)

        self._held = {key: events for key, events in self._held.items() if events}
        if self._release_timer is not None:
            self._release_timer.cancel()
            self._release_timer = None
        if waits_s:
            loop = asyncio.get_running_loop()
            self._release_timer = loop.call_later(min(waits_s), self._release_held)

    def _share_turn(self, first: PendingEvent, other: PendingEvent) -> bool:
        """Return whether two held messages of a sender in a chat may be answered together."""
        if first.queue_address == other.queue_address:
            return True
        return not (self._must_stay(first) or self._must_stay(other))

    def _must_stay(self, event: PendingEvent) -> bool:
        """Return whether a message must be answered at its own address.

        True if the address is isolated, or if a command waits there that may isolate it.
        """
        if self._is_isolated(event.queue_address):
            return True
        queue = self._queues.get(event.queue_address.key)
        if queue is None:
            return False
        return not all(other.is_mergeable for other in (*queue.waiting, *queue.batch.events))

    def _enqueue_merged(self, events: list[PendingEvent]) -> None:
        """Queue the newest of several held events, with the others merged into it."""
        *earlier, newest = events
        for event in earlier:
            event.state = EventState.MERGED
        newest.merged = earlier
        self._enqueue(newest)

    def _enqueue(self, event: PendingEvent) -> None:
        """Append an event to the queue of its address.

        If it belongs to the running turn, restart that.
        """
        queue = self._queues.setdefault(event.queue_address.key, _Queue())
        event.state = EventState.QUEUED
        event.queued_at = asyncio.get_running_loop().time()
        event.ready.set()
        queue.waiting.append(event)
        self._restart_turn_with(event, queue)

    def _restart_turn_with(self, event: PendingEvent, queue: _Queue) -> None:
        """Restart the running turn if the new event belongs to the same burst.

        If it doesn't and the settings say so, the running turn is stopped.

        `stoppable_turn` sees the expired timeout, and `extend_batch` then adds the event.
        """
        if queue.timeout is None or queue.timeout.when() is not None:
            return  # no turn runs, or it's already ending
        if queue.waiting[0] is not event:
            return
        last = queue.batch.last
        is_same_burst = (
            event.queued_at - last.queued_at <= BURST_WINDOW_S
            and event.inbound.sender.id == last.inbound.sender.id
            and last.can_merge_with(event)
        )
        has_room = len(queue.batch.events) < MAX_BURST_MESSAGES
        is_joining = self._while_answering != "queue" and is_same_burst and has_room
        if is_joining and queue.interrupt():
            queue.is_restarting = True
            queue.timeout.reschedule(event.queued_at)
        elif self._while_answering == "interrupt" and _may_interrupt(event, last):
            self.stop(event.queue_address)

    @asynccontextmanager
    async def wait_for_turn(self, event: PendingEvent) -> AsyncIterator[Batch]:
        """Wait until the event may be answered, and yield the batch that contains it.

        The batch is empty if the event was withdrawn or another batch has answered it.
        """
        was_held = not event.ready.is_set()
        await event.ready.wait()
        if event.state is not EventState.QUEUED:
            # The queue may be empty and deleted by now.
            yield Batch()
            return
        key = event.queue_address.key
        queue = self._queues[key]
        try:
            if not was_held:
                # Let tasks of events that were held until now take the lock first. Their events
                # arrived earlier, but the tasks wake up only now.
                await asyncio.sleep(0)
            async with queue.lock:
                await _wait_for_burst(queue, event, self._gather_s)
                queue.batch = Batch(_take_burst(queue, event))
                try:
                    yield queue.batch
                finally:
                    queue.batch = Batch()
        finally:
            if event in queue.waiting:
                queue.waiting.remove(event)
            is_idle = not queue.waiting and not queue.lock.locked()
            if is_idle and self._queues.get(key) is queue:
                del self._queues[key]

    @asynccontextmanager
    async def stoppable_turn(
        self, address: Address, interrupt: Callable[[], bool]
    ) -> AsyncIterator[asyncio.Timeout]:
        """Run a turn inside this context so that `stop` or another message can end it.

        The turn is then cancelled, and this context raises TimeoutError. A message that joins the
        turn's batch ends the turn only if `interrupt` returns True.
        """
        queue = self._queues[address.key]
        queue.interrupt = interrupt
        queue.is_restarting = False
        try:
            async with asyncio.timeout(None) as timeout:
                queue.timeout = timeout
                yield timeout
        finally:
            queue.timeout = None

    async def extend_batch(self, address: Address) -> bool:
        """Add the messages that restarted a turn to its batch.

        Returns False if the turn ended for another reason.
        """
        queue = self._queues[address.key]
        if not queue.is_restarting:
            return False
        if queue.waiting and queue.waiting[0].can_merge_with(queue.batch.last):
            first = queue.waiting[0]
            await _wait_for_burst(queue, first)
            queue.batch.events += _take_burst(queue, first)
        return True

    def stop(self, address: Address) -> bool:
        """End the running turn of an address. Returns False if no turn is running there."""
        queue = self._queues.get(address.key)
        if queue is None or queue.timeout is None:
            return False
        queue.is_restarting = False
        if queue.timeout.when() is None:
            queue.timeout.reschedule(asyncio.get_running_loop().time())
        return True

    def find(self, inbound: Inbound) -> PendingEvent | None:
        """Return the waiting or running message that an edit or a deletion refers to, or None."""
        batches = (queue.batch.events for queue in self._queues.values())
        for event in chain(*self._list_queues(), *batches):
            message = event.inbound
            if message.kind != "message":
                continue
            if (message.address, message.message_id) == (inbound.address, inbound.message_id):
                return event
        return None

    def continues_burst(self, inbound: Inbound) -> bool:
        """Return whether a message continues one of the same person that waits for further parts.

        In a group, people mention Mneme only in the first of several parts. A reply to somebody is
        a message of its own.
        """
        queue = self._queues.get(inbound.address.key)
        if queue is None or not queue.waiting or inbound.kind != "message":
            return False
        last = queue.waiting[-1]
        is_part = last.is_addressed and last.is_mergeable and inbound.command is None
        is_same_sender = last.inbound.account == inbound.account
        window_s = NEXT_PART_WAIT_S if last.may_continue else self._gather_s
        is_in_time = asyncio.get_running_loop().time() - last.queued_at <= window_s
        return is_part and is_same_sender and is_in_time and inbound.reply_to is None

    def has_waiting(self, address: Address) -> bool:
        """Return whether events wait for the turn that runs at an address to end."""
        queue = self._queues.get(address.key)
        return queue is not None and bool(queue.waiting)

    def withdraw(self, event: PendingEvent) -> None:
        """Remove a waiting event from its queue. Events that were merged into it stay queued."""
        event.state = EventState.WITHDRAWN
        event.ready.set()
        for waiting in list(self._list_queues()):
            if event in waiting:
                waiting.remove(event)
        if event.merged:
            self._enqueue_merged(event.merged)

    def _list_queues(self) -> Iterator[MutableSequence[PendingEvent]]:
        """Yield all lists that can contain a waiting event."""
        yield from self._held.values()
        for queue in self._queues.values():
            yield queue.waiting
            for event in queue.waiting:
                yield event.merged


def _may_interrupt(event: PendingEvent, running: PendingEvent) -> bool:
    """Return whether a message may end the turn of a running one.

    Both must be addressed to Mneme, and come from the same person.
    """
    is_same_sender = event.inbound.sender.id == running.inbound.sender.id
    return is_same_sender and event.is_addressed and event.can_merge_with(running)


def _find_burst(queue: _Queue, event: PendingEvent) -> list[PendingEvent]:
    """Return a queued event and all events to answer together with it.

    Only the event at the head of the queue can be answered together with others.
    """
    if queue.waiting[0] is not event:
        return [event]
    return [event, *takewhile(event.can_merge_with, islice(queue.waiting, 1, None))]


async def _wait_for_burst(queue: _Queue, event: PendingEvent, gather_s: float = 0.0) -> None:
    """Wait until no more messages of the event's burst can arrive.

    Every message waits `gather_s`, and one that may continue waits `NEXT_PART_WAIT_S`. So does a
    command in an album.
    """
    is_joinable = event.is_mergeable or event.inbound.group_id is not None
    while event.state is EventState.QUEUED and is_joinable:
        burst = _find_burst(queue, event)
        may_continue = any(other.may_continue for other in (*queue.batch.events, *burst))
        window_s = gather_s if event.is_addressed else 0.0
        if may_continue:
            window_s = NEXT_PART_WAIT_S
        remaining_s = burst[-1].queued_at + window_s - asyncio.get_running_loop().time()
        # If another event waits behind the burst, the burst is over.
        is_last = len(burst) == len(queue.waiting)
        is_full = len(burst) >= MAX_BURST_MESSAGES and not may_continue
        if not is_last or is_full or remaining_s <= 0:
            return
        await asyncio.sleep(remaining_s)


def _take_burst(queue: _Queue, event: PendingEvent) -> list[PendingEvent]:
    """Remove an event and its burst from the queue, and return them in order of arrival.

    Events that were merged into an event precede it. Returns an empty list if the event is no
    longer queued.
    """
    if event.state is not EventState.QUEUED:
        return []
    events: list[PendingEvent] = []
    for leader in _find_burst(queue, event):
        queue.waiting.remove(leader)
        for part in (*leader.merged, leader):
            part.queue_address = leader.queue_address
            part.outbox_item = leader.outbox_item
            part.state = EventState.RUNNING
            part.ready.set()
            events.append(part)
    return events
