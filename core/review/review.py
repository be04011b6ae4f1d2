"""What reads like an order and was let in by nobody who may decide that: put aside, listed, and asked about.

Knows what somebody wanted to have noted and what stands in a file by hand; never touches a file.

The role of whoever remembers which of the owner's files he has approved as they are.
One thing that is to be done with the curated notes.
A change of the curated notes that was put aside.
The role of whoever keeps changes of notes that read like orders, until a person has looked at them.
Where a curated note comes from.
The role of whoever keeps the versions of curated notes: every change with who made it, never changed itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from core.errors import Refused
from core.guard.guard import suspicion
from core.ports import Clock
from core.store.notes import Author, NoteChange, Notes, Operation, PendingNote, PendingNotes
from core.types import Scope

Summon = Callable[[PendingNote, datetime], Awaitable[None]]
"""Told of what was put aside, and since when something has waited in its scope without a break."""


class Review:
    """Over `quarantine`; without one nothing is put aside. `versions` know what was kept all the same."""

    def __init__(self, quarantine: PendingNotes | None, versions: Notes, clock: Clock) -> None:
        self._quarantine = quarantine
        self._versions = versions
        self._clock = clock
        self._summon: Summon | None = None

    def connect(self, summon: Summon) -> None:
        """Who is to be told that something waits, each time anew."""
        self._summon = summon

    async def take(
        self, scope: Scope, target: str, operations: Sequence[Operation], author: Author, reason: str
    ) -> str:
        """Puts aside what somebody wants noted; returns what he is told. Raises Refused where he may decide himself and
        has not insisted, or where too much waits already."""
        if author.is_typed:
            raise Refused(doubt(reason))
        aside = PendingNote(
            scope=scope,
            target=target,
            operations=tuple(operations),
            reason=reason,
            at=self._clock.now(),
            account=author.account,
            message_id=author.message_id,
            address=author.address,
            external_id=author.external_id,
        )
        if not await self._put(aside):
            raise Refused(f"Not noted: it contains {reason}, and notes are read as instructions. Reword it.")
        return (
            f"Not noted, but kept aside for the owner to look at (/memory pending): it contains {reason}. "
            "Do not try it again in other words."
        )

    async def look(self, scope: Scope, target: str, entries: Sequence[str]) -> None:
        """Lists what stands in a file by hand and reads like an order, and no more what does not stand there now."""
        if self._quarantine is None:
            return
        insisted = await self._versions.insisted(frozenset((scope,)))
        found = await asyncio.to_thread(lambda: {entry: suspicion(entry) for entry in entries if entry not in insisted})
        doubted = {entry: reason for entry, reason in found.items() if reason}
        for note in await self._quarantine.waiting(frozenset((scope,))):
            is_gone = note.operations[0].content not in doubted
            if note.is_written and note.target == target and is_gone:
                await self._quarantine.drop(note.id)
        for entry, reason in doubted.items():
            aside = PendingNote(
                scope=scope,
                target=target,
                operations=(Operation(action="add", content=entry),),
                reason=reason,
                at=self._clock.now(),
                is_written=True,
            )
            await self._put(aside)

    async def waiting(self, scopes: frozenset[Scope]) -> Sequence[PendingNote]:
        """What waits in these scopes, oldest first."""
        return await self._quarantine.waiting(scopes) if self._quarantine else ()

    async def remind(self, scopes: frozenset[Scope]) -> None:
        """Summons once more for what waits: there may have been no place to tell it before."""
        first = {note.scope: note for note in reversed(await self.waiting(scopes))}
        for note in first.values():
            await self._put(note)

    async def release(self, note: PendingNote) -> None:
        """It was decided, and with it whatever else waits that would do the same."""
        for other in await self.waiting(frozenset((note.scope,))):
            is_same = (other.target, other.operations) == (note.target, note.operations)
            if self._quarantine and (other.id == note.id or is_same):
                await self._quarantine.drop(other.id)

    async def _put(self, note: PendingNote) -> bool:
        began_at = await self._quarantine.put(note) if self._quarantine else None
        if began_at is not None and self._summon is not None:
            await self._summon(note, began_at)
        return began_at is not None


def doubt(reason: str) -> str:
    """What somebody is asked who may decide."""
    return (
        f"Not noted yet: it contains {reason}, and notes are read as instructions. "
        "Reword it, or say it again with --anyway: `/memory add --anyway …`."
    )


def fit(change: NoteChange) -> NoteChange | None:
    """What may be told elsewhere of a change: not what reads like an order and was approved by nobody; None when
    nothing is left of it."""
    if change.after is None or change.is_insisted or suspicion(change.after) is None:
        return change
    return None if change.before is None else replace(change, after=None)
