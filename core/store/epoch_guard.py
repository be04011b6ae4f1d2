"""Gives work its vantage: waits until nothing is being erased where it will look, and has dropped what was looked up
before an erasure, also one by another process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from core.errors import StoreError
from core.store import epoch
from core.store.epoch import ErasureEpoch
from core.store.rows import scope_parameter
from core.store.sqlite.database import Database
from core.types import Scope

LOOKS_EVERY_S = 0.05
PATIENCE_S = 120.0
"""So long work waits for an erasure; one that a dead process left is finished by the caretaker before that."""


class EpochGuard:
    """`let_go` is called when something was erased, anywhere, since the last work began."""

    def __init__(self, database: Database, let_go: Callable[[], None]) -> None:
        self._database = database
        self._let_go = let_go
        self._number: int | None = None

    @asynccontextmanager
    async def over(self, scopes: frozenset[Scope]) -> AsyncIterator[None]:
        """Inside, everything that the running task writes is refused with Overtaken once something in `scopes` is
        erased. Raises StoreError when an erasure there does not come to its end."""
        with epoch.holding(await self._awaited(scopes)):
            yield

    async def _awaited(self, scopes: frozenset[Scope]) -> ErasureEpoch:
        keys = scope_parameter(scopes)
        ends_at = asyncio.get_running_loop().time() + PATIENCE_S
        while (found := await self._database.glance(lambda connection: epoch.taken(connection, keys))) is None:
            if asyncio.get_running_loop().time() > ends_at:
                raise StoreError("Something is still being forgotten here. Ask again in a few minutes.")
            await asyncio.sleep(LOOKS_EVERY_S)
        if found.number != self._number:
            if self._number is not None:
                self._let_go()
            self._number = found.number
        return found
