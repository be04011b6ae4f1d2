"""Puts what a memory of the user's choice has to be told into the outbox, and reads it again when it is delivered.

What there is to tell follows from the rows of state.db, and its keys from their ids: telling it twice makes one
parcel, and what a crash kept from being told is told at the next look. Parcels hold ids, never words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise

from core.memory.attention import is_remembered
from core.memory.errand import Errand, Hook
from core.memory.minutes import Minutes
from core.memory.provider import MemoryProvider, implements
from core.ports import Clock, Outbox
from core.records import Parcel
from core.types import Answer, Message, Session

LOOKS_BACK = timedelta(days=1)
"""Whatever is older was told by a process before this one, or before the memory was there."""
CAUGHT_UP = 3
"""So many batches of turns are looked at again: only the last can have been kept from being told."""
_NOTES = "notes"


class Relay:
    """`on_wake` is called when there is something to carry."""

    def __init__(self, outbox: Outbox, minutes: Minutes, clock: Clock, on_wake: Callable[[], None]) -> None:
        self._outbox = outbox
        self._minutes = minutes
        self._clock = clock
        self._on_wake = on_wake
        self._told: dict[tuple[str, str], int] = {}
        """By memory and session, or its notes: the last id that is in the outbox."""

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
            await self._put(provider, str(session.id), str(rows[-1].id), "on_session_end")

    async def switch(
        self, providers: Sequence[MemoryProvider], new_id: int, parent_id: int | None, reason: str
    ) -> None:
        """The conversation goes on in session `new_id`."""
        session = await self._minutes.session(new_id)
        if session is not None and is_remembered(session):
            turn = f"{parent_id or 0}.{reason}.{self._clock.now().timestamp():.0f}"
            for provider in providers:
                await self._put(provider, str(new_id), turn, "on_session_switch")

    async def notes(self, providers: Sequence[MemoryProvider]) -> None:
        """Notes may have been changed, here or by another process."""
        if not providers:
            return
        for change_id in await self._minutes.changes(self._clock.now() - LOOKS_BACK):
            for provider in providers:
                if change_id > self._told.get((provider.name, _NOTES), 0):
                    await self._put(provider, _NOTES, str(change_id), "on_memory_write")
                    self._told[provider.name, _NOTES] = change_id

    async def catch_up(self, providers: Sequence[MemoryProvider]) -> None:
        """Tells what a process before this one did not come to tell."""
        if not providers:
            return
        for session in await self._minutes.lately(self._clock.now() - LOOKS_BACK):
            rows = await self._minutes.rows(session.id)
            if session.ended_at is None:
                await self.turns(providers, session, rows)
            else:
                await self.end(providers, session, rows)
        await self.notes(providers)

    async def deliver(self, errand: Errand, provider: MemoryProvider) -> None:
        """Calls the hook with what the ids stand for now; what is gone since is not told. Raises whatever it raises."""
        if errand.hook == "on_memory_write":
            found = await self._minutes.change(int(errand.turn))
            if found is not None and (found[1] is None or is_remembered(found[1])):
                await provider.on_memory_write(found[0])
            return
        session = await self._minutes.session(int(errand.session))
        if session is None:
            return
        if errand.hook == "on_session_switch":
            parent_id, reason, _ = errand.turn.split(".")
            await provider.on_session_switch(session.id, int(parent_id) or None, reason)
            return
        rows = await self._minutes.rows(session.id)
        if errand.hook == "on_session_end":
            await provider.on_session_end(session, rows)
            return
        first, _, last = errand.turn.partition("-")
        told = _between(rows, int(first), int(last))
        if told:
            await provider.sync_turn(session, told, errand.key)

    async def _turns(
        self, provider: MemoryProvider, session: Session, turns: Sequence[Sequence[Message]], *, is_over: bool
    ) -> None:
        """Each so many turns make a parcel; when the session is over, also what is left."""
        size = max(1, provider.sync_every_turns)
        ends = list(range(size, len(turns) + 1, size))
        if is_over and len(turns) % size:
            ends.append(len(turns))
        for end in ends[-CAUGHT_UP:]:
            batch = turns[(end - 1) // size * size : end]
            first, last = batch[0][0].id, batch[-1][0].id
            if last > self._told.get((provider.name, str(session.id)), 0):
                await self._put(provider, str(session.id), f"{first}-{last}", "sync_turn")
                self._told[provider.name, str(session.id)] = last

    async def _put(self, provider: MemoryProvider, session: str, turn: str, hook: Hook) -> None:
        if not implements(provider, hook):
            return
        errand = Errand(provider=provider.name, session=session, turn=turn, hook=hook)
        held = await self._outbox.hold(Parcel(key=errand.key, kind="memory", address=errand.address))
        if held.answer is None and not held.is_over:
            await self._outbox.fill(errand.key, Answer(text=""), self._clock.now())
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
