"""Carries what lies in the outbox and is due: reminders, and answers that a crash or a platform held up.

One parcel at a time for each address, in order; a failure is tried again later, with growing patience.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from core.errors import StoreError
from core.ports import Adapter, Clock, Outbox
from core.records import Parcel
from gateway.post import Post

LONGEST_REST_S = 30.0


class Courier:
    """Works through `outbox`. `adapters` holds the platforms that are open now, and may grow."""

    def __init__(self, outbox: Outbox, post: Post, adapters: Mapping[str, Adapter], clock: Clock) -> None:
        self._outbox = outbox
        self._post = post
        self._adapters = adapters
        self._clock = clock
        self._called = asyncio.Event()
        self._log = structlog.get_logger("courier")

    def wake(self) -> None:
        """Something may be due: look now."""
        self._called.set()

    async def run(self) -> None:
        """Delivers until cancelled."""
        while True:
            self._called.clear()
            try:
                while await self.round():
                    pass
                rest_s = await self._rest_s()
            except StoreError as error:
                self._log.error("the outbox cannot be read", error=str(error))
                rest_s = LONGEST_REST_S
            try:
                async with asyncio.timeout(rest_s):
                    await self._called.wait()
            except TimeoutError:
                continue

    async def round(self) -> int:
        """Delivers what is due now, side by side; returns how many parcels left."""
        due = [
            parcel for parcel in await self._outbox.due(self._clock.now()) if parcel.address.platform in self._adapters
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._carry(parcel)) for parcel in due]
        return sum(task.result() for task in tasks)

    async def _carry(self, parcel: Parcel) -> bool:
        if parcel.answer is None:
            return False
        await self._outbox.claim(parcel.key)
        reply = self._adapters[parcel.address.platform].reply(parcel.address, parcel.reply_to)
        self._post.begin(parcel, reply)
        return await self._post.deliver(parcel, reply, parcel.answer)

    async def _rest_s(self) -> float:
        next_at = await self._outbox.next_at()
        if next_at is None:
            return LONGEST_REST_S
        # What is due on a platform that is not open must not make this loop spin.
        return min(max((next_at - self._clock.now()).total_seconds(), 0.5), LONGEST_REST_S)
