"""The mail room: what came in and waits for an answer, and the way an answer leaves once.

A delivery that fails stays in the outbox, where the courier tries again; one that succeeded never leaves twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog

from core.errors import DeliveryError
from core.ports import Clock, Inbox, Outbox, Reply
from core.records import Entry, Parcel
from core.types import Answer, Inbound

TRIES = 12
_LONGEST_WAIT = timedelta(hours=1)


class _Receipt:
    """Fills the role Receipt for one parcel."""

    def __init__(self, parcel: Parcel, outbox: Outbox) -> None:
        self.key = parcel.key
        self.posted: list[str] = list(parcel.posted)
        self._outbox = outbox

    async def record(self, message_id: str) -> None:
        self.posted.append(message_id)
        await self._outbox.record(self.key, message_id)


class Post:
    """Inbox and outbox as the router and the courier use them."""

    def __init__(self, inbox: Inbox, outbox: Outbox, clock: Clock) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self._clock = clock
        self._log = structlog.get_logger("post")

    async def accept(self, inbound: Inbound) -> Entry | None:
        """Writes an event down; None when it is known."""
        now = self._clock.now()
        entry_id = await self._inbox.accept(inbound, now)
        return None if entry_id is None else Entry(id=entry_id, inbound=inbound, received_at=now)

    async def waiting(self) -> list[Entry]:
        """What an earlier process accepted and did not answer."""
        return await self._inbox.waiting()

    async def close(self, entries: Sequence[Entry]) -> None:
        """The entries need no answer any more."""
        await self._inbox.close([entry.id for entry in entries])

    @staticmethod
    def draft(inbound: Inbound) -> Parcel:
        """The parcel that the answer to an event will leave in; nothing is stored."""
        is_quoting = not inbound.is_direct and inbound.kind == "message"
        return Parcel(
            key=f"turn:{inbound.address.key}:{inbound.kind}:{inbound.message_id}",
            kind="answer",
            address=inbound.address,
            reply_to=inbound.message_id if is_quoting else None,
        )

    async def hold(self, parcel: Parcel) -> Parcel:
        """Stores a draft, or finds the one that an earlier process began."""
        return await self._outbox.hold(parcel)

    def begin(self, parcel: Parcel, reply: Reply) -> None:
        """Work on an answer has begun: typing is shown, what is painted is recorded."""
        reply.begin(_Receipt(parcel, self._outbox))

    async def fill(self, parcel: Parcel, answer: Answer) -> None:
        """Stores what the parcel holds, in the hands of this process."""
        await self._outbox.fill(parcel.key, answer, None)

    async def deliver(self, parcel: Parcel, reply: Reply, answer: Answer, *, is_once: bool = False) -> bool:
        """Paints the last word through a reply that has begun. False when it did not arrive; it is then tried again
        later, or buried when that is hopeless (`is_once`: only this reply can deliver it)."""
        try:
            await reply.finish(answer)
        except DeliveryError as error:
            if error.is_permanent or is_once or parcel.attempts + 1 >= TRIES:
                self._log.warning("undeliverable", key=parcel.key, error=str(error))
                await self._outbox.bury(parcel.key, str(error))
            else:
                wait = timedelta(seconds=max(error.retry_after_s or 0.0, 2.0**parcel.attempts))
                await self._outbox.postpone(parcel.key, self._clock.now() + min(wait, _LONGEST_WAIT), str(error))
            return False
        await self._outbox.done(parcel.key)
        return True

    async def expire(self, entry: Entry) -> None:
        """The reply that came with the event is lost and nothing else may answer it."""
        parcel = await self.hold(self.draft(entry.inbound))
        await self._outbox.bury(parcel.key, "expired: the process ended before it was answered")
        await self.close([entry])

    async def tell(self, inbound: Inbound, reply: Reply, answer: Answer) -> None:
        """Says something that need not be kept (a pairing code to a stranger)."""
        reply.begin(_LooseReceipt(f"tell:{inbound.address.key}:{inbound.message_id}"))
        try:
            await reply.finish(answer)
        except DeliveryError as error:
            self._log.info("not told", address=inbound.address.key, error=str(error))


class _LooseReceipt:
    """Fills the role Receipt for what is not in the outbox."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.posted: list[str] = []

    async def record(self, message_id: str) -> None:
        self.posted.append(message_id)
