"""Gives work that reads people's words its erasure epoch, with what it may see: nothing that is being erased."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.errors import StoreError
from core.store.engine import Connection
from core.store.epoch import taken
from core.store.inbox import open_entries
from core.store.people import is_owners, scopes_in
from core.store.rows import scope_parameter
from core.store.sqlite.database import Database
from core.types import Account, ErasureEpoch, Scope

LOOKS_EVERY_S = 0.05
PATIENCE_S = 120.0
"""How long work waits for an erasure; maintenance finishes that of a dead process before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What work may see as of `epoch`, whether it `is_owner` who asks, which of its inbox entries are still there."""

    scopes: frozenset[Scope]
    is_owner: bool
    open_ids: frozenset[int]
    epoch: ErasureEpoch


class EpochGuard:
    """Calls each of `caches`, which hold what was looked up for later, when any process has erased something."""

    def __init__(self, database: Database) -> None:
        self.caches: list[Callable[[], None]] = []
        self._database = database
        self._number: int | None = None

    async def view(self, scope: Scope, account: Account | None = None, entry_ids: Sequence[int] = ()) -> View:
        """Waits until nothing that is seen in `scope` is being erased, else raises StoreError."""

        def look(connection: Connection) -> View | None:
            scopes = scopes_in(connection, scope)
            epoch = taken(connection, scope_parameter(scopes))
            if epoch is None:
                return None
            is_owner = account is not None and is_owners(connection, account)
            return View(scopes=scopes, is_owner=is_owner, open_ids=open_entries(connection, entry_ids), epoch=epoch)

        ends_at = asyncio.get_running_loop().time() + PATIENCE_S
        while (view := await self._database.glance(look)) is None:
            if asyncio.get_running_loop().time() > ends_at:
                raise StoreError("Something is still being forgotten here. Ask again in a few minutes.")
            await asyncio.sleep(LOOKS_EVERY_S)
        if self._number not in (None, view.epoch.number):
            for invalidate in self.caches:
                invalidate()
        self._number = view.epoch.number
        return view
