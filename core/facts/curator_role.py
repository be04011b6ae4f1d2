"""What the curator needs of the store besides the facts: whose turn it is, and whether anybody is there.
`core.store.fact_search` fills it."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from core.types import Scope


class Rota(Protocol):
    """The scopes that have facts, one after the other."""

    async def following(self, scope: Scope | None) -> Scope | None:
        """The scope with open facts that comes after this one (None: the first); None after the last."""

    async def last_change(self) -> int:
        """Counts up whenever a fact is learned or changed."""

    async def past(self, scope: Scope) -> list[tuple[int, str, datetime]]:
        """When each fact of a scope was doubted last, and when a change of it was taken back, as (fact, ``flag`` or
        ``undo``, when)."""

    async def last_said_at(self) -> datetime | None:
        """When somebody was last there: when a message came, was stored or was answered, also incognito; None when
        nobody ever was."""
