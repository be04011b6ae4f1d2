"""Work that is begun anew when something was forgotten while it was under way, or accounts were parted: what it had
read may not be kept.

Nothing of it has reached state.db by then but what was written before, and that was erased along with the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import structlog

from core.agent.user_message import Turn
from core.errors import StaleReadError
from core.store.epoch import EpochGuard
from core.store.inbox import Inbox
from core.types import Scope

T = TypeVar("T")
Sight = Callable[[Scope], Awaitable[frozenset[Scope]]]


class Retry:
    """Over the vantages of `lookout`; `inbox` knows what is still to be answered, `sight` what may be seen now."""

    def __init__(self, lookout: EpochGuard, inbox: Inbox, sight: Sight) -> None:
        self._lookout = lookout
        self._inbox = inbox
        self._sight = sight
        self._log = structlog.get_logger("attempts")

    async def run(self, scopes: frozenset[Scope], work: Callable[[], Awaitable[T]]) -> T:
        """What `work`, which looks at these scopes, gives when nothing was forgotten there meanwhile. Waits while
        something is."""
        while True:
            async with self._lookout.over(scopes):
                try:
                    return await work()
                except StaleReadError:
                    self._log.info("begun anew, since something was forgotten")

    async def answer(self, turn: Turn, work: Callable[[Turn], Awaitable[T]]) -> T | None:
        """The same of a turn, with what of it is still to be answered and what may still be seen; None when all of it
        was forgotten."""

        async def attempt() -> T | None:
            left = await self.left(turn)
            return None if left is None else await work(replace(left, scopes=await self._sight(turn.scope)))

        return await self.run(turn.scopes | await self._sight(turn.scope), attempt)

    async def left(self, turn: Turn) -> Turn | None:
        """The turn without what was forgotten of it while it waited."""
        open_ids = await self._inbox.still_open([entry.id for entry in turn.entries])
        entries = tuple(entry for entry in turn.entries if entry.id in open_ids)
        return replace(turn, entries=entries) if entries else None
