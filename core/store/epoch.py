"""The erasure epoch in which work began to read, and what it may see as of then, nothing that is being erased: what is
written with it after a later one is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import xor
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
KEY = "erasure_key"
"""Key of `state_meta`: what an erasure is noted under outside of state.db. Each count puts its digest in its place, so
that a note is read by nothing but a backup from before, which has the words themselves."""
_LINE = re.compile(r"(?m)^(\d{1,6}) (\S{10}) (\S+) ((?:[0-9a-f]{2})+)$")
_NOTED = (
    "SELECT id, lane, account, scopes, made_at, json_remove(list, '$.messages') AS list FROM erasures WHERE id = :id"
)
"""In a backup other messages may have these ids: they are looked for again."""
_REPEAT = """
REPLACE INTO erasures (id, lane, account, scopes, list, made_at, begun_at)
VALUES (:id, :lane, :account, :scopes, :list, :made_at, :now)
"""
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
    epoch = ErasureEpoch(scopes, counted(connection))
    return None if _is_touched(connection, epoch) else epoch


def check(connection: Connection, epoch: ErasureEpoch | None) -> None:
    """Raises StaleReadError where something in its scopes was erased since, or is being erased."""
    if epoch is not None and counted(connection) != epoch.number and _is_touched(connection, epoch):
        raise StaleReadError("Something was forgotten meanwhile, so this was not kept. Ask again.")


def count(connection: Connection) -> int:
    """Counts one more; the new number."""
    number = counted(connection) + 1
    set_meta(connection, COUNT, str(number))
    set_meta(connection, KEY, hashlib.sha256(f"{meta(connection, KEY)}".encode()).hexdigest())
    return number


def part(connection: Connection, scopes: frozenset[Scope]) -> None:
    """Work that has seen any of these scopes is begun anew: they are not seen together any more."""
    values = {"number": count(connection), "scopes": scope_parameter(scopes)}
    connection.execute("INSERT INTO partings (number, scopes) VALUES (:number, :scopes)", values)


def counted(connection: Connection) -> int:
    return int(meta(connection, COUNT) or 0)


def noted(connection: Connection, token: str, now: datetime) -> str:
    """A begun erasure as a line of a journal outside of state.db, which only a backup from before can read."""
    content = json.dumps(dict(connection.execute(_NOTED, {"id": token}).fetchone())).encode()
    return f"{counted(connection)} {now:%Y-%m-%d} {token} {_masked(connection, token, content).hex()}"


def repeat(connection: Connection, journal: str, now: datetime) -> tuple[int, Sequence[str]]:
    """Begins the erasures of a journal that this state.db, a backup from before, does not know, and counts up to them:
    how many, and the days (ISO 8601) of those that it cannot read."""
    known, begun, lost = counted(connection), set[str](), list[str]()
    for number, day, token, content in sorted((int(line[0]), *line[1:]) for line in _LINE.findall(journal)):
        while counted(connection) < number:
            count(connection)
        if number > known:
            try:
                values = json.loads(_masked(connection, token, bytes.fromhex(content)))
            except ValueError:
                lost.append(day)
                continue
            connection.execute(_REPEAT, {**values, "now": now})
            begun.add(token)
    has_words = connection.execute("SELECT 1 FROM messages LIMIT 1").fetchone()
    return len(begun), list(dict.fromkeys(lost)) if has_words else ()


def _masked(connection: Connection, token: str, content: bytes) -> bytes:
    """The content under the key of now, or what was given as that again."""
    stream = hashlib.shake_256(f"{meta(connection, KEY)} {token}".encode()).digest(len(content))
    return bytes(map(xor, content, stream))


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
