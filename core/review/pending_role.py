"""The role of whoever keeps changes of notes that read like orders, until a person has looked at them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from core.review.pending import PendingNote
from core.types import Scope


class Quarantine(Protocol):
    """What waits here stands in no prompt and is told to no memory."""

    async def put(self, note: PendingNote) -> datetime | None:
        """Keeps it, once for the same operations in a scope. Since when something has waited in its scope without a
        break; None when too many wait there already."""

    async def waiting(self, scopes: frozenset[Scope]) -> Sequence[PendingNote]:
        """What waits in these scopes, oldest first."""

    async def drop(self, note_id: int) -> None:
        """It was decided."""
