"""The erasure epoch in which work began to read, and what it may see as of then, nothing that is being erased: what is
written with it after a later one is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import StaleReadError, StoreError
from core.store.people import is_owners, room_scope, scopes_in
from core.store.rows import Connection, meta, scope_parameter, set_meta
from core.store.sqlite.schema import in_list, list_value, overlaps
from core.types import Account, ErasureEpoch, Scope

if TYPE_CHECKING:
    from core.store.sqlite.database import Database

COUNT = "erasures"
"""Key of `state_meta`: counts erasures begun and ended, and accounts unlinked. Most writes look at this only."""
_TOUCHING = f"""
SELECT 1 FROM erasures WHERE begun_at NOT NULL AND COALESCE(number, 9223372036854775807) > :number
    AND {overlaps("erasures.scopes", "scopes")}
UNION ALL
SELECT 1 FROM partings WHERE number > :number AND {overlaps("partings.scopes", "scopes")}
LIMIT 1
"""
_OPEN_ENTRIES = f"SELECT id FROM inbox WHERE {in_list('id', 'ids')}"


def taken(connection: Connection, scopes: str) -> ErasureEpoch | None:
    """The epoch as of now; None while something in these scopes is being erased."""
    epoch = ErasureEpoch(scopes, _counted(connection))
    return None if _is_touched(connection, epoch) else epoch


def check(connection: Connection, epoch: ErasureEpoch | None) -> None:
    """Raises StaleReadError where something in its scopes was erased since, or is being erased."""
    if epoch is not None and _counted(connection) != epoch.number and _is_touched(connection, epoch):
        raise StaleReadError("Something was forgotten meanwhile, so this was not kept. Ask again.")


def count(connection: Connection) -> int:
    """Counts one more; the new number."""
    number = _counted(connection) + 1
    set_meta(connection, COUNT, str(number))
    return number


def part(connection: Connection, scopes: frozenset[Scope]) -> None:
    """Work that has seen any of these scopes is begun anew: they are not seen together any more."""
    values = {"number": count(connection), "scopes": scope_parameter(scopes)}
    connection.execute("INSERT INTO partings (number, scopes) VALUES (:number, :scopes)", values)


def _counted(connection: Connection) -> int:
    return int(meta(connection, COUNT) or 0)


def _is_touched(connection: Connection, epoch: ErasureEpoch) -> bool:
    values = {"number": epoch.number, "scopes": epoch.scopes}
    return connection.execute(_TOUCHING, values).fetchone() is not None


LOOKS_EVERY_S = 0.05
PATIENCE_S = 120.0
"""How long work waits for an erasure; maintenance finishes that of a dead process before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The `scope` of a place, what work may see there as of `epoch`, whether it `is_owner` who asks, and which of its
    inbox entries are still there."""

    scope: Scope
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
            open_ids = [row["id"] for row in connection.execute(_OPEN_ENTRIES, {"ids": list_value(entry_ids)})]
            here = room_scope(connection, scope) if scope.is_room else scope
            return View(scope=here, scopes=scopes, is_owner=is_owner, open_ids=frozenset(open_ids), epoch=epoch)

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
