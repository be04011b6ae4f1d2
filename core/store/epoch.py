"""Where a piece of work looks from: which scopes, and after which erasure. What it writes once something was forgotten
there, or accounts were parted, is refused, since it may have been made of that.

Held in the context of the task and handed on to those it starts; whoever holds none is never refused. Never waits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from core.errors import StaleReadError
from core.store.rows import keep_meta, meta

COUNT = "erasures"
"""Key of `state_meta`: how many times an erasure was begun or ended, or accounts were parted, so that most writes look
at one number only."""
_TOUCHING = """
SELECT 1 FROM erasures WHERE begun_at NOT NULL AND COALESCE(number, 9223372036854775807) > :number AND EXISTS (
    SELECT 1 FROM json_each(erasures.scopes) WHERE value IN (SELECT value FROM json_each(:scopes))
)
UNION ALL
SELECT 1 FROM partings WHERE number > :number AND EXISTS (
    SELECT 1 FROM json_each(partings.scopes) WHERE value IN (SELECT value FROM json_each(:scopes))
)
LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class ErasureEpoch:
    """`scopes` as `sight.scope_parameter` has them; `number` is `COUNT` as it was when the work began to read."""

    scopes: str
    number: int


_HELD: ContextVar[ErasureEpoch | None] = ContextVar("vantage", default=None)


def held() -> ErasureEpoch | None:
    """That of the running task."""
    return _HELD.get()


def hold(vantage: ErasureEpoch | None) -> None:
    """From here on the running task looks from there."""
    _HELD.set(vantage)


@contextmanager
def holding(vantage: ErasureEpoch | None) -> Iterator[None]:
    """Inside, the running task looks from there; what was held before is held after it."""
    token = _HELD.set(vantage)
    try:
        yield
    finally:
        _HELD.reset(token)


def taken(connection: sqlite3.Connection, scopes: str) -> ErasureEpoch | None:
    """A vantage as of now; None while something in these scopes is being erased."""
    vantage = ErasureEpoch(scopes, counted(connection))
    return None if _is_touched(connection, vantage) else vantage


def check(connection: sqlite3.Connection, vantage: ErasureEpoch) -> None:
    """Raises Overtaken where something in its scopes was erased since, or is being erased."""
    if counted(connection) != vantage.number and _is_touched(connection, vantage):
        raise StaleReadError("Something was forgotten meanwhile, so this was not kept. Ask again.")


def counted(connection: sqlite3.Connection) -> int:
    """How many times an erasure was begun or ended, or accounts were parted."""
    return int(meta(connection, COUNT) or 0)


def count(connection: sqlite3.Connection) -> int:
    """It happened once more just now; the new number."""
    number = counted(connection) + 1
    keep_meta(connection, COUNT, str(number))
    return number


def _is_touched(connection: sqlite3.Connection, vantage: ErasureEpoch) -> bool:
    values = {"number": vantage.number, "scopes": vantage.scopes}
    return connection.execute(_TOUCHING, values).fetchone() is not None
