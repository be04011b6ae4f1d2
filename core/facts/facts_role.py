"""What the core needs of the store to keep facts. `core.store.facts` fills it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.facts.claims import Claim
from core.records import Author, Fact, FactChange
from core.types import Scope


class Ledger(Protocol):
    """Facts of scopes, and every change that was made to them."""

    async def learn(self, fact: Fact, heard: str | None = None) -> Fact:
        """Keeps a fact or counts it once more, closes what it contradicts; returns it as it stands, without an id where
        its message does not say any more what was `heard`."""

    async def find(self, fact_id: int, scopes: frozenset[Scope]) -> Fact | None:
        """A fact by id; None when it does not exist or is not of these scopes."""

    async def page(self, scopes: frozenset[Scope], offset: int = 0, limit: int = 20) -> list[Fact]:
        """All facts: pinned, then open, then closed, each the latest first."""

    async def history(self, fact_id: int, scopes: frozenset[Scope]) -> list[FactChange]:
        """What became of a fact, oldest first."""

    async def changes(self, scopes: frozenset[Scope], limit: int = 20, until: int | None = None) -> list[FactChange]:
        """The latest changes of all facts, newest first; of those up to the change `until`."""

    async def feedback(self, fact_id: int, scopes: frozenset[Scope], is_right: bool, by: Author = ...) -> Fact | None:
        """Moves the trust in a fact."""

    async def pin(
        self, fact_id: int, scopes: frozenset[Scope], is_pinned: bool = True, by: Author = ...
    ) -> Fact | None:
        """Keeps a fact from ageing and from the curator, or lets it go."""

    async def correct(
        self, fact_id: int, scopes: frozenset[Scope], content: str, by: Author = ..., read: Claim | None = None
    ) -> Fact | None:
        """Puts a fact into a person's own words. Raises Refused."""

    async def merge(self, keep_id: int, drop_ids: Sequence[int], scopes: frozenset[Scope], reason: str) -> Fact | None:
        """Closes facts that say the same as another one."""

    async def flag(self, fact_id: int, scopes: frozenset[Scope], reason: str) -> Fact | None:
        """Notes a doubt about a fact."""

    async def undo(self, change_id: int, scopes: frozenset[Scope], by: Author = ...) -> Fact | None:
        """Takes a change back. Raises Refused when the fact was changed again since."""

    async def forget(self, fact_ids: Sequence[int], scopes: frozenset[Scope]) -> int:
        """Erases facts with everything that hangs on them; how many went."""
