"""Carries what lies in the outbox and is due: reminders, and answers that a crash or a platform held up.

One parcel at a time for each address, in order, all addresses side by side; a failure is tried again later, with
growing patience. Nothing that a platform or the store does ends the courier.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from core.errors import DeliveryError, StoreError
from core.ports import Adapter, Clock
from core.store.outbox import Outbox, OutboxItem
from gateway.delivery import Delivery
from gateway.supervisor import contained

SHORTEST_REST_S = 0.5
"""What is due and cannot be taken at the moment must not make the loop spin."""
LONGEST_REST_S = 30.0
STORE_REST_S = 2.0


class OutboxWorker:
    """Works through `outbox`. `adapters` holds the platforms that are open now, and may grow."""

    def __init__(self, outbox: Outbox, post: Delivery, adapters: Mapping[str, Adapter], clock: Clock) -> None:
        self._outbox = outbox
        self._post = post
        self._adapters = adapters
        self._clock = clock
        self._called = asyncio.Event()
        self._busy: set[str] = set()
        """Addresses that a parcel is being carried to."""
        self._log = structlog.get_logger("courier")
        post.connect(self.wake)

    def wake(self) -> None:
        """Something may be due: look now."""
        self._called.set()

    async def run(self) -> None:
        """Delivers until cancelled."""
        async with asyncio.TaskGroup() as carriers:
            while True:
                self._called.clear()
                try:
                    await self._post.settle()
                    await self._set_out(carriers)
                    rest_s = await self._rest_s()
                except StoreError as error:
                    self._log.error("the outbox cannot be used", error=str(error))
                    rest_s = STORE_REST_S
                try:
                    async with asyncio.timeout(rest_s):
                        await self._called.wait()
                except TimeoutError:
                    continue

    async def _set_out(self, carriers: asyncio.TaskGroup) -> None:
        """Begins to carry what is due. Whoever comes back calls for another look, so none waits for the slowest."""
        # A parcel that comes back while the outbox is read may still look due in what was read.
        busy = frozenset(self._busy)
        for outbox_item in await self._outbox.due(self._clock.now(), tuple(self._adapters)):
            if outbox_item.address.key not in busy:
                self._busy.add(outbox_item.address.key)
                carriers.create_task(self._carry(outbox_item), name=f"carrier {outbox_item.key}")

    async def _carry(self, outbox_item: OutboxItem) -> None:
        try:
            await self._outbox.claim(outbox_item.key)
            await self._bring(outbox_item)
            self.wake()
        except StoreError as error:
            self._log.error("a parcel cannot be claimed", key=outbox_item.key, error=str(error))
        finally:
            self._busy.discard(outbox_item.address.key)

    async def _bring(self, outbox_item: OutboxItem) -> None:
        assert outbox_item.answer is not None, "what is due has content"
        try:
            with contained(outbox_item.attempts):
                reply = self._adapters[outbox_item.address.platform].reply(outbox_item.address, outbox_item.reply_to)
                self._post.begin(outbox_item, reply)
        except DeliveryError as error:
            await self._post.fail(outbox_item, error)
        else:
            await self._post.deliver(outbox_item, reply, outbox_item.answer)

    async def _rest_s(self) -> float:
        next_at = await self._outbox.next_at(tuple(self._adapters))
        if next_at is None:
            return LONGEST_REST_S
        return min(max((next_at - self._clock.now()).total_seconds(), SHORTEST_REST_S), LONGEST_REST_S)
