"""The erasure epoch in which work began to read: what it writes after a later erasure in its scopes (or unlinking of
accounts) is refused, since it may repeat what was erased.

A context variable holds it and passes it on to tasks started inside; work without an epoch is never refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from core.errors import StaleReadError
from core.store.engine import Connection
from core.store.rows import meta, set_meta
from core.store.sqlite.dialect import overlaps

COUNT = "erasures"
"""Key of `state_meta`: counts erasures begun and ended, and accounts unlinked. Most writes look at this only."""
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
    return _HELD.get()


def hold(epoch: ErasureEpoch | None) -> None:
    """Sets the epoch of the running task."""
    _HELD.set(epoch)


@contextmanager
def holding(epoch: ErasureEpoch | None) -> Iterator[None]:
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
    return int(meta(connection, COUNT) or 0)


def count(connection: Connection) -> int:
    """Counts one more; the new number."""
    number = counted(connection) + 1
    set_meta(connection, COUNT, str(number))
    return number


def _is_touched(connection: Connection, epoch: ErasureEpoch) -> bool:
    values = {"number": epoch.number, "scopes": epoch.scopes}
    return connection.execute(_TOUCHING, values).fetchone() is not None
