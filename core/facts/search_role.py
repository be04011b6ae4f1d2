"""What the core needs of the store to find facts. `core.store.fact_search` fills it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from core.records import Fact
from core.types import Scope


class Lookup(Protocol):
    """Facts by their words and names; lists for a curator."""

    async def candidates(
        self, terms: Sequence[str], keys: Sequence[str], scopes: frozenset[Scope], limit: int = ...
    ) -> list[tuple[Fact, float, int]]:
        """Facts with any of the terms or names, as (fact, text score, how many of the names)."""

    async def of_entities(self, keys: Sequence[str], scopes: frozenset[Scope], limit: int = 10) -> list[Fact]:
        """The facts about all of these names together."""

    async def related(self, keys: Sequence[str], scopes: frozenset[Scope], limit: int = 10) -> list[tuple[str, int]]:
        """The names that stand in facts together with these, as (name, in how many), most first."""

    async def replaced(self, attribute: str, scopes: frozenset[Scope], limit: int = 10) -> list[Fact]:
        """All that was ever said of one attribute, the latest first."""

    async def conflicts(self, scopes: frozenset[Scope], limit: int = 50) -> list[list[Fact]]:
        """Open facts of one attribute that say different things."""

    async def duplicates(self, scopes: frozenset[Scope], limit: int = 50) -> list[list[Fact]]:
        """Open facts of one person that say one thing twice."""

    async def stale(self, scopes: frozenset[Scope], now: datetime, limit: int = 50) -> list[Fact]:
        """Open facts that are likely over or doubtful, oldest first."""

    async def of_messages(self, message_ids: Sequence[int], scopes: frozenset[Scope]) -> list[Fact]:
        """The facts that were taken from these messages."""
