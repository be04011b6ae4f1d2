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
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Protocol

from core.errors import Refused
from core.guard.guard import suspicion
from core.ports import Clock
from core.records import Author, NoteChange
from core.types import Account, Address, Scope


class Seals(Protocol):
    """By the name of a file and the digest of what it says; the last one of each name counts."""

    async def put(self, name: str, digest: str) -> None:
        """The file is approved as long as it says this."""

    async def has(self, name: str, digest: str) -> bool:
        """Whether that was approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`content`: the note of an add or a replace; `old_text`: a part of the one that is replaced or removed."""

    action: Literal["add", "replace", "remove"]
    content: str = ""
    old_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingNote:
    """`operations` are done together or not at all; `reason` is what they contain, as a noun phrase. `account`: on
    whose behalf it was asked for, with what message (see `core.records.NoteChange`). `is_written`: it stands in the
    file already, by somebody's hand; the operation is its `add`."""

    scope: Scope
    target: str
    operations: tuple[Operation, ...]
    reason: str
    at: datetime
    account: Account | None = None
    message_id: int | None = None
    address: Address | None = None
    external_id: str | None = None
    is_written: bool = False
    id: int = 0


class Quarantine(Protocol):
    """What waits here stands in no prompt and is told to no memory."""

    async def put(self, note: PendingNote) -> datetime | None:
        """Keeps it, once for the same operations in a scope. Since when something has waited in its scope without a
        break; None when too many wait there already."""

    async def waiting(self, scopes: frozenset[Scope]) -> Sequence[PendingNote]:
        """What waits in these scopes, oldest first."""

    async def drop(self, note_id: int) -> None:
        """It was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """`change`: one of the `entry`, None when none is known. Of the message or the command that it came from: the
    words, whose they are, and where it can be opened; empty and None where nothing is known of it any more."""

    entry: str
    change: NoteChange | None = None
    said: str = ""
    sender: str = ""
    link: str | None = None


class Versions(Protocol):
    """The history of the notes; the notes themselves are files."""

    async def check(self) -> None:
        """Raises StoreError where a change that is about to be made could not be logged any more."""

    async def log(self, change: NoteChange) -> None:
        """Keeps one version, which stands in its file already: also where `check` would say no by now."""

    async def changes(self, scopes: frozenset[Scope], limit: int = 20, offset: int = 0) -> list[NoteChange]:
        """The latest versions, newest first, without the first `offset` of them."""

    async def since(self, scopes: frozenset[Scope], session_id: int, at: datetime) -> Sequence[NoteChange]:
        """What was changed from a moment on, oldest first, and not from within that session."""

    async def find(self, scopes: frozenset[Scope], number: int) -> NoteChange | None:
        """The change with this id; None when it is not theirs or not there."""

    async def made(self, scopes: frozenset[Scope], author: Author) -> Sequence[NoteChange]:
        """What the command with the address and the external id of `author` has changed, oldest first; nothing without
        them."""

    async def undoable(self, scopes: frozenset[Scope]) -> Sequence[NoteChange]:
        """The latest changes that are no undoing and were not undone, newest first."""

    async def standing(self, scope: Scope, target: str) -> Sequence[str]:
        """The entries that all changes of a file come to."""

    async def origin(self, scopes: frozenset[Scope], entry: str) -> Provenance:
        """The last change that brought an entry, and the message it came from where that may be seen."""

    async def sources(self, scopes: frozenset[Scope], changes: Sequence[NoteChange]) -> Sequence[Provenance]:
        """Each change with the message it came from, where that may be seen."""

    async def insisted(self, scopes: frozenset[Scope]) -> frozenset[str]:
        """The entries that read like orders and were kept all the same."""

    async def idle(self, scopes: frozenset[Scope], session_id: int) -> tuple[int, int]:
        """How many turns of a session have begun since anything was noted or remembered on purpose in these scopes,
        and the id of the last change of notes, 0 for none."""


Summon = Callable[[PendingNote, datetime], Awaitable[None]]
"""Told of what was put aside, and since when something has waited in its scope without a break."""


class Custody:
    """Over `quarantine`; without one nothing is put aside. `versions` know what was kept all the same."""

    def __init__(self, quarantine: Quarantine | None, versions: Versions, clock: Clock) -> None:
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
