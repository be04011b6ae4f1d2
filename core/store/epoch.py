"""The erasure epoch in which work began to read: what is written with it after a later one is refused."""

from __future__ import annotations

from core.errors import StaleReadError
from core.store.engine import Connection
from core.store.rows import meta, set_meta
from core.store.sqlite.dialect import overlaps
from core.types import ErasureEpoch

COUNT = "erasures"
"""Key of `state_meta`: counts erasures begun and ended, and accounts unlinked. Most writes look at this only."""
_TOUCHING = f"""
SELECT 1 FROM erasures WHERE begun_at NOT NULL AND COALESCE(number, 9223372036854775807) > :number
    AND {overlaps("erasures.scopes", "scopes")}
UNION ALL
SELECT 1 FROM partings WHERE number > :number AND {overlaps("partings.scopes", "scopes")}
LIMIT 1
"""


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


def _counted(connection: Connection) -> int:
    return int(meta(connection, COUNT) or 0)


def _is_touched(connection: Connection, epoch: ErasureEpoch) -> bool:
    values = {"number": epoch.number, "scopes": epoch.scopes}
    return connection.execute(_TOUCHING, values).fetchone() is not None
