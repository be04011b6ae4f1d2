"""The role of the books: every model call that was paid for, and what it came to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from core.records import Bill, Call, Cause, Miss, Precedent
from core.types import Scope, Session


class Tally(Protocol):
    """Holds no word of anybody; what is read keeps to the scopes."""

    async def precedent(self, session_id: int) -> Precedent:
        """What came before the next call for an answer in a session."""

    async def keep(self, call: Call, seen: Cause | None = None) -> None:
        """Enters a call; the disturbance that was `seen` is accounted for by it. One of no known scope is left out."""

    async def bills(
        self,
        scopes: frozenset[Scope],
        since: datetime | None = None,
        until: datetime | None = None,
        session_id: int | None = None,
    ) -> list[Bill]:
        """What was spent from a moment on and before another one, by kind and model, the dearest in tokens first."""

    async def misses(
        self, scopes: frozenset[Scope], since: datetime | None = None, session_id: int | None = None
    ) -> list[Miss]:
        """Why prefixes were not in the cache, by cause, the most tokens first."""

    async def sessions(self, scopes: frozenset[Scope], limit: int) -> list[tuple[Session, Sequence[Bill]]]:
        """The sessions of the latest calls, each with its bills, latest first."""

    async def began(self, scopes: frozenset[Scope]) -> datetime | None:
        """When the first call was paid for; None when none was."""
