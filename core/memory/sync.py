"""Puts what a memory of the user's choice has to be told into the outbox, and reads it again when it is delivered.

What there is to tell follows from the rows of state.db, and how far it is told is kept beside the parcels: telling it
twice makes one parcel, and what a crash kept from being told is told at the next look. Parcels hold ids, never words.

Asks memory services to erase what they were told, through the outbox: while Mneme runs without them, and after a
crash, it waits there.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from core.errors import DeliveryError
from core.memory.provider import Forgotten, MemoryProvider, implements
from core.memory.smalltalk import is_remembered
from core.ports import Clock
from core.review.review import fit
from core.store.sync_queue import NOTES, Hook, SyncQueue, SyncTask, forget_task
from core.store.sync_source import SyncSource
from core.types import Address, Message, Scope, Session

LOOKS_BACK = timedelta(days=1)
"""What is older was told by a process before this one, or before the memory was there: that is told when somebody asks
for it."""
PORTION = 20
"""So many conversations of the past are put into the outbox at a time, and more when so few parcels are left."""

Call = Callable[[], Awaitable[None]]
"""A hook with what it is to be told."""


class Sync:
    """`on_wake` is called when there is something to carry."""

    def __init__(self, satchel: SyncQueue, minutes: SyncSource, clock: Clock, on_wake: Callable[[], None]) -> None:
        self._satchel = satchel
        self._minutes = minutes
        self._clock = clock
        self._on_wake = on_wake
        self._told: dict[tuple[str, str], int] = {}
        """By memory and session, its end, or its notes: the last id that is in the outbox."""
        self._behind: set[str] = set()
        """The memories that are being told of the past."""
        self._feeding = asyncio.Lock()

    async def turns(self, providers: Sequence[MemoryProvider], session: Session, rows: Sequence[Message]) -> None:
        """Turns of `session` are over; `rows` are its own."""
        if is_remembered(session):
            for provider in providers:
                await self._turns(provider, session, turns_of(rows), is_over=False)

    async def end(self, providers: Sequence[MemoryProvider], session: Session, rows: Sequence[Message]) -> None:
        """`session` is over; `rows` are its own. What was not told yet is told before."""
        if not is_remembered(session) or not rows:
            return
        for provider in providers:
            await self._turns(provider, session, turns_of(rows), is_over=True)
            subject, last = f"{session.id}.end", rows[-1].id
            if last > await self._last(provider, subject):
                await self._put(provider, str(session.id), [str(last)], "on_session_end", subject, last)

    async def switch(
        self, providers: Sequence[MemoryProvider], new_id: int, parent_id: int | None, reason: str
    ) -> None:
        """The conversation goes on in session `new_id`."""
        session = await self._minutes.session(new_id)
        if session is not None and is_remembered(session):
            turn = f"{parent_id or 0}.{reason}.{self._clock.now().timestamp():.0f}"
            for provider in providers:
                await self._put(provider, str(new_id), [turn], "on_session_switch")

    async def notes(self, providers: Sequence[MemoryProvider]) -> None:
        """Notes may have been changed, here or by another process."""
        for provider in providers:
            told = await self._last(provider, NOTES)
            since = datetime.fromtimestamp(0, UTC) if told else self._clock.now() - LOOKS_BACK
            changes = [str(change) for change in await self._minutes.changes(since, told)]
            if changes:
                await self._put(provider, NOTES, changes, "on_memory_write", NOTES, int(changes[-1]))

    async def catch_up(self, providers: Sequence[MemoryProvider]) -> None:
        """Tells what a process before this one did not come to tell."""
        if not providers:
            return
        for session in await self._minutes.lately(self._clock.now() - LOOKS_BACK):
            await self._whole(providers, session)
        await self.notes(providers)
        await self.feed(providers)

    async def feed(self, providers: Sequence[MemoryProvider]) -> None:
        """Puts the next portion of the past that somebody has asked for into the outbox, when the last is told."""
        async with self._feeding:
            for provider in providers:
                await self._feed(provider)

    async def delivered(self, provider: MemoryProvider) -> None:
        """Something has arrived: the past goes on."""
        if provider.name in self._behind:
            await self.feed((provider,))

    async def unpacked(self, errand: SyncTask, provider: MemoryProvider) -> Call | None:
        """The hook to call, with what the ids stand for now; None when nothing is left of it. Raises StoreError,
        DeliveryError when it has no way to erase what is to go."""
        if errand.hook == "on_forget":
            return self._forgotten(errand, provider)
        if errand.hook == "on_memory_write":
            found = await self._minutes.change(int(errand.turn))
            if found is None or (found[1] is not None and not is_remembered(found[1])):
                return None
            change = fit(found[0])
            return None if change is None else lambda: provider.on_memory_write(change)
        session = await self._minutes.session(int(errand.session))
        if session is None:
            return None
        if errand.hook == "on_session_switch":
            parent_id, reason, _ = errand.turn.split(".")
            return lambda: provider.on_session_switch(session.id, int(parent_id) or None, reason)
        if errand.hook == "sync_turn" and errand.is_anew and not implements(provider, "on_forget"):
            # It forgets nothing, so it has still all of what it was told.
            return None
        rows = await self._minutes.rows(session.id)
        if errand.hook == "on_session_end":
            return lambda: provider.on_session_end(session, rows)
        told = _between(rows, *errand.turns)
        if not any(row.role == "user" for row in told):
            # Nobody's question: what was asked is erased, and the answer tells nothing without it.
            return None
        return lambda: provider.sync_turn(session, told, errand.key)

    async def _feed(self, provider: MemoryProvider) -> None:
        past = await self._satchel.past(provider.name)
        while past is not None and (await self._satchel.arrears(provider.name)).waiting < PORTION:
            if past.next_id <= 1:
                changes = [str(change) for change in await self._minutes.changes(past.since, 0)]
                await self._put(provider, NOTES, changes, "on_memory_write", NOTES, int((changes or ["0"])[-1]))
            sessions = await self._minutes.past(past, PORTION)
            for session in sessions:
                await self._whole((provider,), session)
            next_id = sessions[-1].id + 1 if sessions else past.last_id + 1
            past = await self._satchel.go_on(provider.name, next_id)
        if past is None:
            self._behind.discard(provider.name)
        else:
            self._behind.add(provider.name)

    @staticmethod
    def _forgotten(errand: SyncTask, provider: MemoryProvider) -> Call | None:
        if errand.scope is None:
            return None
        if not implements(provider, "on_forget"):
            raise DeliveryError(f"{provider.name} has no way to erase what it was told", is_permanent=True)
        is_notes = errand.session == NOTES
        forgotten = Forgotten(
            scope=errand.scope, messages=() if is_notes else errand.ids, notes=errand.ids if is_notes else ()
        )
        return lambda: provider.on_forget(forgotten)

    async def _whole(self, providers: Sequence[MemoryProvider], session: Session) -> None:
        """All that is there to tell of a session, as far as it is not told."""
        rows = await self._minutes.rows(session.id)
        if session.ended_at is None:
            await self.turns(providers, session, rows)
        else:
            await self.end(providers, session, rows)

    async def _turns(
        self, provider: MemoryProvider, session: Session, turns: Sequence[Sequence[Message]], *, is_over: bool
    ) -> None:
        """Each so many turns make a parcel; when the session is over, also what is left."""
        told = await self._last(provider, str(session.id))
        size = max(1, provider.sync_every_turns)
        fresh = [turn for turn in turns if turn[0].id > told]
        batches = [fresh[start : start + size] for start in range(0, len(fresh), size)]
        if batches and len(batches[-1]) < size and not is_over:
            batches.pop()
        if batches:
            parts = [f"{batch[0][0].id}-{batch[-1][0].id}" for batch in batches]
            await self._put(provider, str(session.id), parts, "sync_turn", str(session.id), batches[-1][-1][-1].id)

    async def _last(self, provider: MemoryProvider, subject: str) -> int:
        key = (provider.name, subject)
        if key not in self._told:
            self._told[key] = await self._satchel.told(*key)
        return self._told[key]

    async def _put(
        self,
        provider: MemoryProvider,
        session: str,
        turns: Sequence[str],
        hook: Hook,
        subject: str = "",
        last_id: int = 0,
    ) -> None:
        if implements(provider, hook):
            errands = [SyncTask(provider=provider.name, session=session, turn=turn, hook=hook) for turn in turns]
            await self._send(errands, subject, last_id)
            if subject:
                self._told[provider.name, subject] = max(last_id, self._told.get((provider.name, subject), 0))

    async def _send(self, errands: Sequence[SyncTask], subject: str = "", last_id: int = 0) -> None:
        if errands:
            await self._satchel.put(errands, subject, last_id)
            self._on_wake()


def turns_of(rows: Sequence[Message]) -> list[list[Message]]:
    """The turns that have been answered: what people said since the last answer, then all that followed."""
    turns: list[list[Message]] = []
    asked: list[Message] = []
    for row in rows:
        if row.role == "user":
            asked.append(row)
        elif asked:
            turns.append([*asked, row])
            asked = []
        elif turns:
            turns[-1].append(row)
    # While the last row is a call of a tool or its result, the answer is still being worked on.
    if turns and not asked and (turns[-1][-1].role != "assistant" or turns[-1][-1].tool_name):
        turns.pop()
    return turns


def _between(rows: Sequence[Message], first: int, last: int) -> list[Message]:
    """The rows of the turns from the one that begins with `first` to the one that begins with `last`."""
    end = next(
        (row.id for before, row in pairwise(rows) if row.id > last and row.role == "user" and before.role != "user"),
        None,
    )
    return [row for row in rows if row.id >= first and (end is None or row.id < end)]


PARCEL_IDS = 500
"""How many ids a parcel has at most."""


class SyncForget:
    """Fills the role `core.privacy.forgetting.CopyHolder`. `on_wake` is called when there is something to carry."""

    def __init__(self, satchel: SyncQueue, minutes: SyncSource, clock: Clock, on_wake: Callable[[], None]) -> None:
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
            errands = [forget_task(name, NOTES, scope, some) for scope, ids in told for some in _cut(ids)]
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

    async def _errands(self, name: str, session: Session, ids: Sequence[int], stamp: str) -> list[SyncTask]:
        """To forget those messages of a session that were told, and to be told anew what else was told with them."""
        number = str(session.id)
        told = max(await self._satchel.told(name, number), await self._satchel.told(name, f"{number}.end"))
        ids = [one for one in ids if one <= told]
        errands = [forget_task(name, number, session.scope, some, stamp) for some in _cut(ids)]
        batches = await self._satchel.batches(name, number)
        touched = {max((batch for batch in batches if batch[0] <= one), default=None) for one in ids}
        again = f"{zlib.crc32(repr((sorted(ids), stamp)).encode()):08x}"
        for first, last in sorted(batch for batch in touched if batch is not None):
            errands.append(SyncTask(provider=name, session=number, turn=f"{first}-{last}.{again}", hook="sync_turn"))
        return errands


def _cut(ids: Sequence[int]) -> list[Sequence[int]]:
    return [ids[start : start + PARCEL_IDS] for start in range(0, len(ids), PARCEL_IDS)]
