"""The point after which work reads: which scopes, and after which erasure. What it writes once something was forgotten
there, or accounts were unlinked, is refused, since it may have been made of that.

Held in the context of the task and handed on to those it starts; whoever holds none is never refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from core.errors import StaleReadError, StoreError
from core.store.engine import Connection, Database
from core.store.rows import meta, scope_parameter, set_meta
from core.store.sqlite.dialect import overlaps
from core.types import Scope

COUNT = "erasures"
"""Key of `state_meta`: how often an erasure was begun or ended, or accounts were unlinked. Most writes look at this
number only."""
LOOKS_EVERY_S = 0.05
PATIENCE_S = 120.0
"""So long work waits for an erasure; one that a dead process left is finished by maintenance before that."""
_TOUCHING = f"""
SELECT 1 FROM erasures WHERE begun_at NOT NULL AND COALESCE(number, 9223372036854775807) > :number
    AND {overlaps("erasures.scopes", "scopes")}
UNION ALL
SELECT 1 FROM partings WHERE number > :number AND {overlaps("partings.scopes", "scopes")}
LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class ErasureEpoch:
    """`scopes` as `rows.scope_parameter` has them; `number` is `COUNT` as it was when the work began to read."""

    scopes: str
    number: int


_HELD: ContextVar[ErasureEpoch | None] = ContextVar("erasure_epoch", default=None)


def held() -> ErasureEpoch | None:
    """That of the running task."""
    return _HELD.get()


def hold(epoch: ErasureEpoch | None) -> None:
    """From here on the running task reads after that point."""
    _HELD.set(epoch)


@contextmanager
def holding(epoch: ErasureEpoch | None) -> Iterator[None]:
    """Inside, the running task reads after that point; what was held before is held after it."""
    token = _HELD.set(epoch)
    try:
        yield
    finally:
        _HELD.reset(token)


def taken(connection: Connection, scopes: str) -> ErasureEpoch | None:
    """The epoch as of now; None while something in these scopes is being erased."""
    epoch = ErasureEpoch(scopes, counted(connection))
    return None if _is_touched(connection, epoch) else epoch


def check(connection: Connection, epoch: ErasureEpoch) -> None:
    """Raises StaleReadError where something in its scopes was erased since, or is being erased."""
    if counted(connection) != epoch.number and _is_touched(connection, epoch):
        raise StaleReadError("Something was forgotten meanwhile, so this was not kept. Ask again.")


def counted(connection: Connection) -> int:
    """The value of `COUNT`."""
    return int(meta(connection, COUNT) or 0)


def count(connection: Connection) -> int:
    """It happened once more just now; the new number."""
    number = counted(connection) + 1
    set_meta(connection, COUNT, str(number))
    return number


def _is_touched(connection: Connection, epoch: ErasureEpoch) -> bool:
    values = {"number": epoch.number, "scopes": epoch.scopes}
    return connection.execute(_TOUCHING, values).fetchone() is not None


class EpochGuard:
    """Gives work its epoch. `invalidate` is called when something was erased, by any process, since the last work
    began: what was looked up before is dropped."""

    def __init__(self, database: Database, invalidate: Callable[[], None]) -> None:
        self._database = database
        self._invalidate = invalidate
        self._number: int | None = None

    @asynccontextmanager
    async def over(self, scopes: frozenset[Scope]) -> AsyncIterator[None]:
        """Waits until nothing in `scopes` is being erased; inside, everything that the running task writes is refused
        with StaleReadError once something there is erased. Raises StoreError when an erasure does not come to its end.
        """
        keys = scope_parameter(scopes)
        ends_at = asyncio.get_running_loop().time() + PATIENCE_S
        while (found := await self._database.glance(lambda connection: taken(connection, keys))) is None:
            if asyncio.get_running_loop().time() > ends_at:
                raise StoreError("Something is still being forgotten here. Ask again in a few minutes.")
            await asyncio.sleep(LOOKS_EVERY_S)
        if found.number != self._number:
            if self._number is not None:
                self._invalidate()
            self._number = found.number
        with holding(found):
            yield
