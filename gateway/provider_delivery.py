"""The door to the memories of the user's choice: what the courier brings from the outbox is told to them.

Fills the role Adapter for the platform "memory", to send only: nothing is said there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from core.errors import DeliveryError
from core.memory.manager import MemoryManager
from core.ports import DeliveryRecord, Reply, Sink
from core.store.sync import PLATFORM, SyncTask
from core.types import Address, Answer, CommandSpec


class ProviderDelivery:
    """Parcels go through to `memory` by their keys."""

    platform = PLATFORM
    hint = ""

    def __init__(self, memory: MemoryManager) -> None:
        self._memory = memory

    async def open(self) -> None:
        """Puts into the outbox what an earlier process did not come to tell; brings the services up."""
        await self._memory.start()

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        """Nothing comes from here: waits until cancelled."""
        await asyncio.Event().wait()

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        """The way of one parcel."""
        return _Errands(self._memory)

    async def close(self) -> None:
        """The memory is closed by who made it."""


class _Errands:
    """Fills the role Reply: the key of its receipt says everything, but for the ids that its parcel holds."""

    def __init__(self, memory: MemoryManager) -> None:
        self._memory = memory
        self._key = ""

    def begin(self, receipt: DeliveryRecord) -> None:
        """Takes the parcel."""
        self._key = receipt.key

    def show(self, text: str) -> None:
        """Nobody looks."""

    async def finish(self, answer: Answer) -> None:
        """Tells the memory. Raises DeliveryError."""
        errand = SyncTask.parse(self._key, answer.text)
        if errand is None:
            raise DeliveryError(f"no memory understands the parcel {self._key}", is_permanent=True)
        await self._memory.deliver(errand)

    async def abandon(self) -> None:
        """Nothing was begun."""
