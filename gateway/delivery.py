"""Sends each answer, reminder and notice once.

An answer is sent at once if possible. Otherwise, it's sent later from the outbox, like reminders
and notices. A failed delivery is retried after growing delays. A successful delivery is never
repeated. Items for one address are sent in order, so a newer item waits for an older item. Nothing
is sent before it's stored that it may have been sent. If the store can't be written afterwards, the
result of a delivery is written later.

If a platform can't be reached, its items wait, and this doesn't count as an attempt. Only a
rejection by the platform does. After the last attempt, or a permanent rejection, the item is dead.
The owner sees it in `/status` and `mneme check`, and can send it again with `mneme outbox retry`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

import structlog

from adapters.streaming import QuietReply
from core.errors import ChatRefused, DeliveryError, MnemeError, StoreDamagedError, StoreError
from core.memory.manager import MemoryManager
from core.ports import Clock, DeliveryNotices, DeliveryRecord, LostPost, Reply
from core.store.mailbox import INTENT_MARK, Inbox, Notice, Outbox, OutboxItem
from core.store.sync import SyncTask
from core.types import Address, Answer, Inbound
from gateway.supervisor import contain_adapter_errors
from gateway.texts.catalog import ENGLISH, Texts

# After a platform has refused an item this many times, the item is dead.
MAX_ATTEMPTS = 12
# The longest delay between two attempts, unless the platform asks for a longer one.
MAX_RETRY_DELAY_S = 300.0
# The longest delay if only the response of an attempt was lost, so the message may have arrived.
# Each further attempt may then show the message once more.
MAX_UNCERTAIN_DELAY_S = 1800.0
# If the platform asks for a longer delay than this, the next attempt is made after this time.
MAX_REQUESTED_DELAY_S = 3600.0
# Limits for a memory service. An item for it may arrive up to two days late.
MAX_MEMORY_ATTEMPTS = 60
MAX_MEMORY_DELAY_S = 3600.0
# `run` pauses at least this long, so that it doesn't loop without a pause if an item is due but
# can't be sent.
MIN_PAUSE_S = 0.5
# `run` pauses at most this long, because an item may be finished elsewhere without a call of
# `wake`.
MAX_PAUSE_S = 5.0
# If the time is earlier than before by more than this, the clock was set back.
CLOCK_CHANGE = timedelta(seconds=5)
# How long `run` and replies pause if the outbox can't be read or written.
STORE_RETRY_S = 2.0
# Delays before each further attempt to send an incognito answer. The answer isn't stored, so only
# its own reply can deliver it.
INCOGNITO_RETRY_DELAYS_S = (0.5, 1.0, 2.0)
ReplyFactory = Callable[[Address, str | None], Reply]
StoreWrite = Callable[[], Awaitable[object]]
T = TypeVar("T")
_log = structlog.get_logger("delivery")


class PostedRecord:
    """Implements `DeliveryRecord`.

    An entry is the id of a posted message, or `INTENT_MARK` followed by the id of the message
    before it.

    `store` saves the entries. It's None for answers that aren't in the outbox. `write` runs a
    write of the entries, and repeats it later if the store is unavailable. `load_known_ids` returns
    the ids of messages that were posted for other answers.
    """

    def __init__(
        self,
        key: str,
        posted: Sequence[str] = (),
        store: Callable[[Sequence[str]], Awaitable[None]] | None = None,
        load_known_ids: Callable[[], Awaitable[Collection[str]]] | None = None,
        find_texts: Callable[[], Texts] = lambda: ENGLISH,
        write: Callable[[StoreWrite], Awaitable[None]] | None = None,
    ) -> None:
        self.key = key
        # Returns the texts in the language of the chat.
        self._find_texts = find_texts
        self._entries = list(posted)
        # The number of entries at the end that are messages being posted now.
        self._posting = 0
        # False if the answer isn't stored, so it's sent even if its intent can't be stored.
        self.must_store_intents = True
        self._store = store
        self._write = write
        self._load_known_ids = load_known_ids

    @property
    def notices(self) -> DeliveryNotices:
        texts = self._find_texts()
        return DeliveryNotices(texts.MAY_BE_DUPLICATE, texts.NO_TEXT)

    @property
    def message_ids(self) -> Sequence[str]:
        return [entry for entry in self._entries if not entry.startswith(INTENT_MARK)]

    @property
    def lost_posts(self) -> Sequence[LostPost]:
        """Return the posts whose message ids were never stored, such as after a crash."""
        message_ids = self.message_ids
        lost_posts = []
        position = 0
        for entry in self._entries:
            if not entry.startswith(INTENT_MARK):
                position += 1
                continue
            after_id = entry.removeprefix(INTENT_MARK)
            before_id = message_ids[position] if position < len(message_ids) else ""
            lost_posts.append(LostPost(position=position, after_id=after_id, before_id=before_id))
        return lost_posts

    async def intend(self, after_id: str = "", *, count: int = 1) -> None:
        self._entries += [f"{INTENT_MARK}{after_id}"] * count
        self._posting = count
        try:
            await self._store_entries()
        except StoreError as error:
            if self.must_store_intents:
                self._remove_intention()
                raise DeliveryError(str(error), retry_after_s=STORE_RETRY_S) from error

    async def retract(self) -> None:
        self._remove_intention()
        await self._save()

    async def record(self, *message_ids: str, is_last: bool = False) -> None:
        self._remove_intention()
        self._entries += message_ids
        if not is_last:
            await self._save()

    async def record_found(
        self, lost_post: LostPost, message_id: str, *, is_certain: bool = True
    ) -> None:
        """Replace the entry of a lost post by the id of its message.

        If the message might belong to another answer (`is_certain` is false), the entry becomes a
        bare `INTENT_MARK`, and Mneme stops searching for the message.
        """
        self._posting = 0
        index = self._entries.index(f"{INTENT_MARK}{lost_post.after_id}")
        doubt = () if is_certain else (INTENT_MARK,)
        self._entries[index : index + 1] = (*doubt, message_id)
        await self._save()

    async def record_absent(self, lost_post: LostPost) -> None:
        """Remove the entry of a lost post if no message was created."""
        self._posting = 0
        self._entries.remove(f"{INTENT_MARK}{lost_post.after_id}")
        await self._save()

    def drop(self, message_ids: Collection[str]) -> None:
        self._entries = [entry for entry in self._entries if entry not in message_ids]

    async def load_known_ids(self) -> Collection[str]:
        others = await self._load_known_ids() if self._load_known_ids is not None else ()
        return {*others, *self.message_ids}

    def _remove_intention(self) -> None:
        if self._posting:
            del self._entries[-self._posting :]
            self._posting = 0

    async def _save(self) -> None:
        """Store the entries now, or later if the store is unavailable."""
        if self._write is None:
            await self._store_entries()
        else:
            await self._write(self._store_entries)

    async def _store_entries(self) -> None:
        """Store the current entries, so that a repeated write can't restore older ones."""
        if self._store is not None:
            await self._store(tuple(self._entries))


@dataclass(frozen=True, kw_only=True)
class DeliveryWords:
    """The texts that `Delivery` adds to messages or sends itself."""

    # Returns the texts in the language of a chat.
    find_texts: Callable[[Address], Texts] = lambda _: ENGLISH
    # A reminder that is sent later than this says that it is late.
    late_after_s: float = 120.0


@dataclass(frozen=True, slots=True)
class FullAnswer:
    """An answer with earlier answers that the person couldn't receive.

    If it can't be sent at once, the earlier answers wait for the person's next answer.
    """

    answer: Answer
    # The keys of the earlier answers.
    keys: tuple[str, ...]


class Delivery:
    """Delivers answers, and everything that is due in the outbox.

    `run` delivers one item at a time for each address, and all addresses concurrently. Errors of a
    platform or of the store don't end it.
    """

    def __init__(
        self,
        inbox: Inbox,
        outbox: Outbox,
        clock: Clock,
        replies: dict[str, ReplyFactory],
        *,
        wakeup: asyncio.Event | None = None,
        prepare_notice: Callable[[OutboxItem, MnemeError], Awaitable[Notice | None]] | None = None,
        words: DeliveryWords | None = None,
    ) -> None:
        self.inbox = inbox
        self.outbox = outbox
        self._clock = clock
        # Builds replies, by platform. A platform is added when it opens.
        self._replies = replies
        # Set when an item of the outbox may be due.
        self._wakeup = wakeup or asyncio.Event()
        # Called before an item that will never arrive is marked dead. The notice that it returns
        # is stored in the same transaction. If the process crashes before, it's called again.
        self._prepare_notice = prepare_notice
        self._words = words or DeliveryWords()
        # A lock for each address key, which is held during a delivery to the address.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # Keys of answers that `run` will send, because an older item must be sent first.
        self._postponed: set[str] = set()
        # The records of running deliveries, by outbox key. A record is stored at the latest when
        # its delivery ends.
        self._records: WeakValueDictionary[str, PostedRecord] = WeakValueDictionary()
        # For each item whose platform couldn't be reached: the time of the first attempt, by key.
        self._waiting_since: dict[str, datetime] = {}
        # When `run` last looked at the clock.
        self._latest_time = clock.now()
        # Writes that failed because the store was unavailable, oldest first.
        self._failed_writes: deque[StoreWrite] = deque()
        # Whether there may be an answer to an interaction that couldn't be delivered.
        self._may_have_unseen = True

    def add_platform(self, platform: str, create_reply: ReplyFactory) -> bool:
        """Deliver to a platform that is now open. Returns False if it was added before."""
        is_new = platform not in self._replies
        self._replies[platform] = create_reply
        return is_new

    def create_reply(self, address: Address) -> Reply:
        """Create a reply that isn't tied to a message.

        Raises LookupError if the platform isn't open.
        """
        return self._replies[address.platform](address, None)

    @staticmethod
    def draft_outbox_item(inbound: Inbound) -> OutboxItem:
        """Return the outbox item for the answer to an event, without storing it.

        In a group, the answer is a reply to the message. For an interaction, `reply_to` is "@" and
        the person's id, so that a private answer can go to their direct chat if the interaction
        expires.
        """
        reply_to = None
        if inbound.is_interaction:
            reply_to = f"@{inbound.sender.id}"
        elif not inbound.is_direct and inbound.kind == "message":
            reply_to = inbound.message_id
        return OutboxItem(
            key=f"turn:{inbound.address.key}:{inbound.kind}:{inbound.message_id}",
            kind="answer",
            address=inbound.address,
            reply_to=reply_to,
        )

    def begin(self, outbox_item: OutboxItem, reply: Reply) -> None:
        """Show that an answer is being written, and start to record what the reply posts."""
        record = PostedRecord(
            outbox_item.key,
            outbox_item.posted,
            partial(self.outbox.set_posted, outbox_item.key),
            partial(self.outbox.list_posted_ids, outbox_item),
            partial(self._words.find_texts, outbox_item.address),
            self._write_outbox,
        )
        self._records[outbox_item.key] = record
        reply.begin(record)

    async def deliver(
        self,
        outbox_item: OutboxItem,
        reply: Reply,
        answer: Answer,
        full_answer: FullAnswer | None = None,
    ) -> bool:
        """Send the final answer through a reply that has begun. Returns whether it arrived.

        If the delivery fails, `run` retries it, unless the failure is permanent. If an older item
        for the same address is waiting, `run` sends the answer after that item. A notice never
        waits. An incognito answer isn't stored, so only this call can send it. If there is an
        `full_answer`, it's sent instead of the answer, but only by this call.
        """
        shown = full_answer or FullAnswer(answer, ())
        is_unstored = outbox_item.answer is None and self.inbox.is_incognito(outbox_item.address)
        if is_unstored or outbox_item.kind == "notice":
            # This doesn't acquire the lock, so that answers don't wait for a notice that hangs.
            return await self._send(outbox_item, reply, shown, is_unstored=is_unstored)

        async with self._locks.setdefault(outbox_item.address.key, asyncio.Lock()):
            if not await self._must_wait(outbox_item):
                is_sent = await self._send(outbox_item, reply, shown)
                self._postponed.discard(outbox_item.key)
                if self._postponed:
                    self.wake()
                return is_sent
        await self._postpone(outbox_item, reply, answer)
        return False

    async def _must_wait(self, outbox_item: OutboxItem) -> bool:
        """Return whether an older item must be sent first, or False if the outbox can't be read."""
        return await self._read_outbox(self.outbox.has_older_item(outbox_item.key), False)

    async def _postpone(self, outbox_item: OutboxItem, reply: Reply, answer: Answer) -> None:
        """Store an answer in the outbox, so that `run` sends it.

        The reply is abandoned first, because the ids of its messages must be stored before `run`
        claims the item.
        """
        self._postponed.add(outbox_item.key)
        try:
            with contain_adapter_errors():
                await reply.abandon()
        except MnemeError as error:
            _log.warning("abandoned", key=outbox_item.key, error=str(error))
        item = replace(outbox_item, answer=answer, next_at=self._clock.now())
        await self._write_outbox(partial(self.outbox.put, item, is_claimed=True))
        self.wake()

    async def record_failure(
        self, outbox_item: OutboxItem, error: MnemeError, *, is_unstored: bool = False
    ) -> None:
        """Schedule the next attempt of a failed delivery, or mark the item dead.

        An item is dead if the failure is permanent, if its last attempt was rejected, or if it's
        unstored and so can't be sent later.
        """
        is_memory = outbox_item.kind == "memory"
        is_refusal = is_memory or _is_refusal(error)
        max_attempts = MAX_MEMORY_ATTEMPTS if is_memory else MAX_ATTEMPTS
        is_last_attempt = is_refusal and outbox_item.attempts + 1 >= max_attempts
        is_permanent = isinstance(error, DeliveryError) and error.is_permanent
        if is_permanent or is_unstored or is_last_attempt:
            await self._bury(outbox_item, error, is_unstored=is_unstored)
            return

        now = self._clock.now()
        if is_refusal:
            delay = _compute_refusal_delay(outbox_item, error)
        else:
            since = self._waiting_since.setdefault(outbox_item.key, now)
            delay = _compute_outage_delay(now - since, error)
        next_at = now + delay
        _log.info(
            "not delivered yet",
            key=outbox_item.key,
            error=error.log_message,
            next_at=next_at.isoformat(),
        )
        record = self.outbox.record_failure
        await self._write_outbox(
            partial(record, outbox_item.key, str(error), next_at, is_refusal=is_refusal)
        )
        self.wake()

    async def _bury(self, outbox_item: OutboxItem, error: MnemeError, *, is_unstored: bool) -> None:
        """Mark an item dead so that it isn't tried again, and notify the person in another chat.

        The owner can send it again. A dead answer to an interaction is added to the person's next
        answer.
        """
        key = outbox_item.key
        _log.warning("undeliverable", key=key, error=error.log_message)
        self._waiting_since.pop(key, None)
        self._may_have_unseen = True
        await self._write_outbox(
            partial(self._mark_dead, outbox_item, error, is_unstored=is_unstored)
        )
        self.wake()

    async def _mark_dead(self, item: OutboxItem, error: MnemeError, *, is_unstored: bool) -> None:
        """Mark an item dead, and store the notice about it in the same transaction.

        If a damaged row prevents the notice, the item is marked dead without it, because later
        items for the address wait.
        """
        notice = None
        if self._prepare_notice is not None and not is_unstored:
            try:
                notice = await self._prepare_notice(item, error)
            except StoreDamagedError as damage:
                _log.error("a notice cannot be prepared", key=item.key, error=damage)
        cause = error.cause if isinstance(error, ChatRefused) else ""
        await self.outbox.record_failure(item.key, str(error), cause=cause, notice=notice)

    async def resume(self, platforms: Sequence[str]) -> None:
        """Make all waiting items of these platforms due now, after a reconnection."""
        now = self._clock.now()
        # If an item fails again, its delays begin anew.
        self._waiting_since.clear()
        await self._write_outbox(partial(self.outbox.make_due, platforms, now))
        self.wake()

    async def list_unseen(self, inbound: Inbound) -> list[OutboxItem]:
        """List answers to interactions that couldn't reach the person who is now writing.

        These answers are private, and are appended to the next answer to this person. So the list
        is empty if other people can read that answer.
        """
        if not self._may_have_unseen or not (inbound.is_interaction or inbound.is_direct):
            return []
        items = await self._read_outbox(self.outbox.list_unseen(), None)
        self._may_have_unseen = items is None or bool(items)
        person = (inbound.address.platform, f"@{inbound.sender.id}")
        return [item for item in items or () if (item.address.platform, item.reply_to) == person]

    def wake(self) -> None:
        """Make `run` check the outbox now, because an item may be due."""
        self._wakeup.set()

    async def run(self) -> None:
        """Deliver all due items of the outbox until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._wakeup.clear()
                try:
                    await self._repeat_failed_writes()
                    await self._resume_after_clock_change()
                    await self._start_due_deliveries(tasks)
                    pause_s = await self._pause_s()
                except StoreError as error:
                    _log.error("the outbox cannot be used", error=error)
                    pause_s = STORE_RETRY_S
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._wakeup.wait()

    async def _repeat_failed_writes(self) -> None:
        """Retry failed writes, oldest first.

        A write to a damaged part of the store is kept, and the others are done. Raises StoreError
        if the store can't be written at all.
        """
        for _ in range(len(self._failed_writes)):
            write = self._failed_writes[0]
            try:
                await write()
            except StoreDamagedError as error:
                _log.error("a part of the outbox is damaged", error=error)
                self._failed_writes.append(write)
            self._failed_writes.popleft()

    async def _resume_after_clock_change(self) -> None:
        """If the clock was set back, make all waiting items due.

        Otherwise, they would wait as long as the clock was set back.
        """
        now = self._clock.now()
        if now < self._latest_time - CLOCK_CHANGE:
            await self.resume(tuple(self._replies))
        self._latest_time = now

    async def _start_due_deliveries(self, tasks: asyncio.TaskGroup) -> None:
        """Claim the due items in one transaction, and start a task that delivers each."""
        due = await self.outbox.list_due(self._clock.now(), tuple(self._replies))
        if due:
            # While an item is claimed, it isn't due, and later items for its address aren't due
            # either.
            await self.outbox.claim(*(outbox_item.key for outbox_item in due))
        for outbox_item in due:
            delivery = self._deliver_due(outbox_item)
            tasks.create_task(delivery, name=f"delivery {outbox_item.key}")

    async def _pause_s(self) -> float:
        """Return how many seconds `run` may pause before the next item is due."""
        next_at = await self.outbox.find_next_due(tuple(self._replies))
        if next_at is None:
            await self._forget_erased_items()
            return MAX_PAUSE_S
        until_due_s = (next_at - self._clock.now()).total_seconds()
        return min(max(until_due_s, MIN_PAUSE_S), MAX_PAUSE_S)

    async def _forget_erased_items(self) -> None:
        """If no item is open any more, forget all keys: their items were erased meanwhile."""
        if self._waiting_since or self._postponed:
            counts = await self.outbox.count_items()
            if not counts.held and not counts.due:
                self._waiting_since.clear()
                self._postponed.clear()

    async def _deliver_due(self, outbox_item: OutboxItem) -> None:
        """Deliver a claimed item through a new reply, and wake `run` for the next item."""
        try:
            with contain_adapter_errors(outbox_item.attempts):
                create_reply = self._replies[outbox_item.address.platform]
                reply = create_reply(outbox_item.address, outbox_item.reply_to)
                self.begin(outbox_item, reply)
        except DeliveryError as error:
            await self.record_failure(outbox_item, error)
        else:
            await self.deliver(outbox_item, reply, self._mark_lateness(outbox_item))
        self.wake()

    def _mark_lateness(self, outbox_item: OutboxItem) -> Answer:
        """Return a due item's answer. A reminder says that it's late, unless its text does."""
        answer = outbox_item.answer
        assert answer is not None, "a due item has content"
        queued_at = outbox_item.created_at
        if outbox_item.kind != "reminder" or queued_at is None:
            return answer
        due_at = _read_due_time(outbox_item.key) or queued_at
        late_after = timedelta(seconds=self._words.late_after_s)
        is_marked = queued_at - due_at > late_after
        now = self._clock.now()
        if now - (queued_at if is_marked else due_at) <= late_after:
            return answer
        texts = self._words.find_texts(outbox_item.address)
        minutes = (now - due_at) // timedelta(minutes=1)
        notice = texts.SENT_LATE.format(late=texts.format_duration(minutes * 60))
        return replace(answer, text=f"{answer.text}\n\n{notice}")

    async def send_unstored(
        self, inbound: Inbound, reply: Reply, answer: Answer, begun: OutboxItem | None = None
    ) -> None:
        """Send an answer that isn't in the outbox, such as a pairing code.

        `begun` is the item with which the reply has begun, if it has. Failures are only logged.
        """
        record = self._records.get(begun.key) if begun is not None else None
        if record is not None:
            record.must_store_intents = False
        try:
            with contain_adapter_errors():
                if begun is None:
                    reply.begin(PostedRecord(f"tell:{inbound.address.key}:{inbound.message_id}"))
                await reply.finish(answer)
        except DeliveryError as error:
            _log.info("not told", address=inbound.address.key, error=str(error))

    async def notify_unstored(self, address: Address, answer: Answer) -> bool:
        """Send a notice that can't be stored. Returns whether it was sent. Failures are logged."""
        if address.platform not in self._replies:
            return False
        try:
            with contain_adapter_errors():
                reply = self._replies[address.platform](address, None)
                reply.begin(PostedRecord(f"tell:{address.key}"))
                await reply.finish(answer)
        except DeliveryError as error:
            _log.info("not told", address=address.key, error=str(error))
            return False
        return True

    async def _send(
        self, outbox_item: OutboxItem, reply: Reply, shown: FullAnswer, *, is_unstored: bool = False
    ) -> bool:
        """Send an answer. Returns whether that succeeded.

        If `is_unstored`, failed attempts are retried here after short delays, because the answer
        can't be sent later.
        """
        record = self._records.get(outbox_item.key)
        if record is not None:
            record.must_store_intents = not is_unstored
        delays_s = iter(INCOGNITO_RETRY_DELAYS_S if is_unstored else ())
        while True:
            try:
                with contain_adapter_errors(outbox_item.attempts):
                    await reply.finish(shown.answer)
                break
            except MnemeError as error:
                delay_s = next(delays_s, None)
                if delay_s is None or _is_hopeless(error):
                    await self.record_failure(outbox_item, error, is_unstored=is_unstored)
                    return False
            await asyncio.sleep(delay_s)

        self._waiting_since.pop(outbox_item.key, None)
        message_ids = () if record is None else tuple(record.message_ids)
        mark_done = partial(self.outbox.mark_done, outbox_item.key, message_ids, shown.keys)
        await self._write_outbox(mark_done)
        return True

    async def _read_outbox(self, read: Awaitable[T], default: T) -> T:
        """Return the result of a read of the outbox, or `default` if the read fails."""
        try:
            return await read
        except StoreError as error:
            _log.error("the outbox cannot be read", error=error)
            return default

    async def _write_outbox(self, write: StoreWrite) -> None:
        """Write to the outbox. If that fails, `run` retries the writes in order."""
        if self._failed_writes:
            # An older write of the same item would otherwise replace this one.
            self._failed_writes.append(write)
            self.wake()
            return
        try:
            await write()
        except StoreError as error:
            _log.error("the outbox cannot be written, so this is written later", error=error)
            self._failed_writes.append(write)
            self.wake()


def _read_due_time(key: str) -> datetime | None:
    """Return the due time in the key of a reminder, such as `job:7:2026-05-03T09:00:00+00:00`."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(key.split(":", 2)[-1])
    return None


def _is_hopeless(error: MnemeError) -> bool:
    """Return whether a delivery can't succeed within the next few seconds."""
    return isinstance(error, DeliveryError) and (error.is_permanent or bool(error.retry_after_s))


def _is_refusal(error: MnemeError) -> bool:
    """Return whether the platform answered and rejected the message.

    False if the platform couldn't be reached or only asked for a delay, and for problems of Mneme
    itself, such as a locked state.db.
    """
    if not isinstance(error, DeliveryError):
        return False
    return not error.is_unreachable and error.retry_after_s is None


def _compute_refusal_delay(outbox_item: OutboxItem, error: MnemeError) -> timedelta:
    """Return the delay after a rejection: 1, 2, 4, 8 seconds and so on, up to a maximum.

    If the platform asks for a longer delay, that delay is returned.
    """
    is_memory = outbox_item.kind == "memory"
    max_delay_s = MAX_MEMORY_DELAY_S if is_memory else MAX_RETRY_DELAY_S
    delay_s = min(2.0**outbox_item.attempts, max_delay_s)
    return timedelta(seconds=max(delay_s, _find_requested_delay_s(error)))


def _compute_outage_delay(waiting_time: timedelta, error: MnemeError) -> timedelta:
    """Return the delay after an attempt during an outage.

    The delay equals the time that the item has waited so far, so it doubles with each attempt.
    """
    is_uncertain = isinstance(error, DeliveryError) and error.is_uncertain
    max_delay_s = MAX_UNCERTAIN_DELAY_S if is_uncertain else MAX_RETRY_DELAY_S
    delay_s = min(max(waiting_time.total_seconds(), 1.0), max_delay_s)
    return timedelta(seconds=max(delay_s, _find_requested_delay_s(error)))


def _find_requested_delay_s(error: MnemeError) -> float:
    """Return the delay that the platform asked for, up to a limit, or 0 if it asked for none."""
    if not isinstance(error, DeliveryError):
        return 0.0
    return min(error.retry_after_s or 0.0, MAX_REQUESTED_DELAY_S)


def create_memory_reply(memory: MemoryManager) -> Reply:
    """Return a reply that sends tasks to a memory service.

    The key of the delivery record names the service and the task. The text of the answer contains
    the ids of the rows to send.
    """

    async def send(record: DeliveryRecord, answer: Answer) -> None:
        """Deliver a task to its service.

        Raises DeliveryError if it isn't valid or the service fails.
        """
        task = SyncTask.parse(record.key, answer.text)
        if task is None:
            raise DeliveryError(f"the outbox key {record.key} isn't valid", is_permanent=True)
        await memory.deliver(task)

    return QuietReply(send)
