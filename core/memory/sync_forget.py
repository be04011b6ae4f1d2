"""Asks memory services to erase what they were told, through the outbox: while Mneme runs without them, and after a
crash, it waits there.

Knows which service was told what, never its code; whether one has a way to erase shows when it is asked.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence

from core.memory.attention import is_remembered
from core.memory.sync_queue import Satchel
from core.memory.sync_source import Minutes
from core.memory.sync_task import NOTES, Errand, forgetting
from core.ports import Clock
from core.types import Address, Scope, Session

PARCEL_IDS = 500
"""How many ids a parcel has at most."""


class Copies:
    """Fills the role `core.privacy.roles.Keeper`. `on_wake` is called when there is something to carry."""

    def __init__(self, satchel: Satchel, minutes: Minutes, clock: Clock, on_wake: Callable[[], None]) -> None:
        self._satchel = satchel
        self._minutes = minutes
        self._clock = clock
        self._on_wake = on_wake

    async def forget(
        self, scopes: frozenset[Scope], message_ids: Sequence[int], note_ids: Sequence[int] = ()
    ) -> str | None:
        """Asks every service that was told of any of it; asked again, the same parcels. Raises StoreError."""
        names = await self._satchel.providers()
        places = await self._minutes.places(message_ids) if names else ()
        owners = await self._minutes.owners(note_ids) if names else ()
        asked = []
        for name in names:
            noted = await self._satchel.told(name, NOTES)
            told = [(scope, [one for one in ids if one <= noted]) for scope, ids in owners]
            errands = [forgetting(name, NOTES, scope, some) for scope, ids in told for some in _cut(ids)]
            for session, ids in places:
                if is_remembered(session):
                    errands += await self._errands(name, session, ids, "")
            if errands:
                await self._satchel.put(errands)
                asked.append(name)
        if not asked:
            return None
        self._on_wake()
        were, are = ("was", "is") if len(asked) == 1 else ("were", "are")
        return (
            f"{' and '.join(asked)} {were} told of it and {are} being asked to erase it; when that cannot be done, "
            "the owner hears of it."
        )

    def let_go(self) -> None:
        """Nothing is looked up here."""

    async def amended(self, names: Iterable[str], address: Address, external_id: str) -> None:
        """A message was edited or deleted on its platform, and is so in its row: these services, which have a way to
        erase, forget what they were told, and are told anew what is left."""
        found = await self._minutes.message(address, external_id)
        if found is None or not is_remembered(found[0]):
            return
        session, message_id = found
        for name in names:
            errands = await self._errands(name, session, [message_id], self._clock.now().isoformat())
            if errands:
                await self._satchel.put(errands)
                self._on_wake()

    async def _errands(self, name: str, session: Session, ids: Sequence[int], stamp: str) -> list[Errand]:
        """To forget those messages of a session that were told, and to be told anew what else was told with them."""
        number = str(session.id)
        told = max(await self._satchel.told(name, number), await self._satchel.told(name, f"{number}.end"))
        ids = [one for one in ids if one <= told]
        errands = [forgetting(name, number, session.scope, some, stamp) for some in _cut(ids)]
        batches = await self._satchel.batches(name, number)
        touched = {max((batch for batch in batches if batch[0] <= one), default=None) for one in ids}
        again = f"{zlib.crc32(repr((sorted(ids), stamp)).encode()):08x}"
        for first, last in sorted(batch for batch in touched if batch is not None):
            errands.append(Errand(provider=name, session=number, turn=f"{first}-{last}.{again}", hook="sync_turn"))
        return errands


def _cut(ids: Sequence[int]) -> list[Sequence[int]]:
    return [ids[start : start + PARCEL_IDS] for start in range(0, len(ids), PARCEL_IDS)]
