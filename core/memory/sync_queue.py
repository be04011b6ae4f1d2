"""What the relay needs of the outbox: errands go in whole, and how far each memory was told is remembered for good.
`core.store.sync_queue` fills it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.memory.sync_task import Arrears, Errand, Past


class Satchel(Protocol):
    """Errands to memory services, by the name of the service."""

    async def put(self, errands: Sequence[Errand], subject: str = "", last_id: int = 0) -> None:
        """Puts errands of one service into the outbox, due now, each unless it is there, and in the same transaction
        notes that of `subject` everything up to `last_id` is told."""

    async def told(self, provider: str, subject: str) -> int:
        """Up to which id everything of a subject is told; 0 for nothing."""

    async def providers(self) -> Sequence[str]:
        """The services that were ever told something."""

    async def batches(self, provider: str, session: str) -> Sequence[tuple[int, int]]:
        """The first messages of the first and last turn of what was told of a session together, oldest first, as far
        as that is known."""

    async def arrears(self, provider: str) -> Arrears:
        """What lies there for a service."""

    async def past(self, provider: str) -> Past | None:
        """What of the past it is to be told."""

    async def go_on(self, provider: str, next_id: int) -> Past | None:
        """Everything before session `next_id` is in the outbox; what is left."""
