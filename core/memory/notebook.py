"""The curated notes: a MEMORY.md and a USER.md for each scope, small enough to stand in every system prompt.

A write is durable when it returns and is logged with what stood there before, also when whoever asked for it is
cancelled. Files are read anew each time; one that was edited by hand is honoured, and the edit is logged as well.
Nothing here decides who may see which scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

import structlog

from core.errors import Refused
from core.memory.guard import suspicion
from core.memory.operation import Operation
from core.memory.pages import FILES as FILES
from core.memory.pages import SEPARATOR as SEPARATOR
from core.memory.pages import Pages
from core.memory.pending_note import PendingNote
from core.memory.provenance import Provenance
from core.memory.quarantine import Quarantine
from core.memory.revision import Revision, cleaned, containing, size, unclear
from core.memory.versions import Versions
from core.ports import Clock
from core.records import Author, NoteChange
from core.types import Scope, Session

T = TypeVar("T")

NEARLY_FULL = 0.8
"""Notes that are fuller than this part of their limit should be put together."""

_NOBODY = Author()

_log = structlog.get_logger("notebook")


class Notebook:
    """Notes under `home`/memories. `limits` are characters for each target, counted over all entries shown together.
    `quarantine` keeps what reads like an order and was not typed by whoever may decide; without one it is refused."""

    def __init__(
        self, home: Path, notes: Versions, clock: Clock, limits: dict[str, int], quarantine: Quarantine | None = None
    ) -> None:
        self._pages = Pages(home / "memories")
        self._notes = notes
        self._clock = clock
        self._limits = limits
        self._quarantine = quarantine
        self._tell: Callable[[NoteChange], Awaitable[None]] | None = None
        self._noticed: dict[tuple[Scope, str], tuple[int, ...] | None] = {}

    def connect(self, tell: Callable[[NoteChange], Awaitable[None]]) -> None:
        """Who is told of each change once it is kept; its id is not known yet."""
        self._tell = tell

    async def entries(self, scopes: frozenset[Scope], target: str) -> list[str]:
        """All entries of these scopes, each once, in the order of the scopes' keys and of the files."""
        _check(target)
        return await asyncio.to_thread(lambda: Revision(self._read(scopes, target), Scope(key=""), target).shown)

    async def heading(self, scopes: frozenset[Scope], target: str) -> str:
        """``37 % full, 814/2,200 characters``."""
        used, limit = size(await self.entries(scopes, target)), self._limits[target]
        return f"{round(100 * used / limit)} % full, {used:,}/{limit:,} characters"

    async def troubles(self, scopes: frozenset[Scope]) -> list[str]:
        """A sentence on each file of these scopes that cannot be read as notes."""

        def look() -> list[str]:
            found = (self._pages.trouble(scope, target) for scope in sorted(scopes) for target in FILES)
            return [sentence for sentence in found if sentence]

        return await asyncio.to_thread(look)

    async def add(
        self, scope: Scope, scopes: frozenset[Scope], target: str, content: str, author: Author | None = None
    ) -> str:
        """Adds an entry to the notes of `scope`; returns a sentence with the live state. Raises Refused with what to do
        when it is empty, suspicious, there already, or does not fit."""
        return await self.apply(scope, scopes, target, [Operation(action="add", content=content)], author)

    async def replace(
        self,
        scope: Scope,
        scopes: frozenset[Scope],
        target: str,
        old_text: str,
        content: str,
        author: Author | None = None,
    ) -> str:
        """Replaces the one entry that contains `old_text`, in the notes of `scope` or else of the others.
        Raises Refused, with the candidates, when there is not exactly one."""
        operation = Operation(action="replace", content=content, old_text=old_text)
        return await self.apply(scope, scopes, target, [operation], author)

    async def remove(
        self, scope: Scope, scopes: frozenset[Scope], target: str, old_text: str, author: Author | None = None
    ) -> str:
        """Removes the one entry that contains `old_text`. Finds it and raises Refused as `replace` does."""
        return await self.apply(scope, scopes, target, [Operation(action="remove", old_text=old_text)], author)

    async def apply(
        self,
        scope: Scope,
        scopes: frozenset[Scope],
        target: str,
        operations: Sequence[Operation],
        author: Author | None = None,
    ) -> str:
        """Does all of `operations`, one after the other, or none of them; only the final size must fit. What reads like
        an order is asked about, kept or put aside, as `Author` has it. Returns what was done, with the live state;
        raises Refused."""
        _check(target)
        author = author or _NOBODY
        found = (suspicion(cleaned(one.content)) for one in operations if one.action != "remove")
        reason = next((reason for reason in found if reason), None)
        if reason and not (author.is_typed and author.is_insisting):
            return await self._doubted(scope, target, operations, author, reason)

        def work(revision: Revision) -> None:
            for number, operation in enumerate(operations, 1):
                try:
                    revision.do(operation)
                except Refused as refusal:
                    if len(operations) == 1:
                        raise
                    raise Refused(f"Nothing was changed. Operation {number}: {refusal}") from refusal

        names = [operation.action for operation in operations]
        return await self._write(scope, scopes, target, work, [(name, None) for name in names], author)

    async def pending(self, scopes: frozenset[Scope]) -> Sequence[PendingNote]:
        """What was put aside in these scopes, oldest first."""
        return await self._quarantine.waiting(scopes) if self._quarantine else ()

    async def waiting(self, scopes: frozenset[Scope], number: int) -> PendingNote:
        """One thing that was put aside. Raises Refused when there is no such thing."""
        found = next((note for note in await self.pending(scopes) if note.id == number), None)
        if found is None:
            raise Refused(f"Nothing with the number {number} waits here. `/memory pending` lists what does.")
        return found

    async def decide(self, note: PendingNote, scopes: frozenset[Scope], is_approved: bool) -> str:
        """Lets it in on behalf of whoever asked for it, or drops it. Raises Refused when it does not fit any more."""
        said = "Rejected: it is gone."
        if is_approved:
            author = Author(account=note.account, message_id=note.message_id, is_typed=True, is_insisting=True)
            said = await self.apply(note.scope, scopes, note.target, note.operations, author)
        if self._quarantine:
            await self._quarantine.drop(note.id)
        return said

    async def insisted(self, scopes: frozenset[Scope]) -> frozenset[str]:
        """The entries that read like orders and were kept all the same."""
        return await self._notes.insisted(scopes)

    async def undo(
        self, change: NoteChange, scope: Scope, scopes: frozenset[Scope], author: Author | None = None
    ) -> str:
        """Puts back what stood there before a change of these scopes. Raises Refused when it is not so any more."""

        def work(revision: Revision) -> None:
            if change.after is not None and change.after not in revision.shown:
                raise Refused(f"“{change.after}” is not noted any more, so change {change.id} cannot be undone.")
            revision.swap(change.after, change.before, change.scope)

        undoing = [("undo", change.id)]
        said = await self._write(scope, scopes | {change.scope}, change.target, work, undoing, author or _NOBODY)
        return f"Undone: change {change.id}. {said}"

    async def history(self, scopes: frozenset[Scope], limit: int = 20, offset: int = 0) -> list[NoteChange]:
        """The latest changes, newest first, those made by hand among them."""
        await self.notice(scopes)
        return await self._notes.changes(scopes, limit, offset)

    async def change(self, scopes: frozenset[Scope], number: int | None = None) -> NoteChange:
        """The change with this number, else the last one that was not undone. Raises Refused when there is none."""
        await self.notice(scopes)
        found = await (self._notes.last(scopes) if number is None else self._notes.find(scopes, number))
        if found is None:
            raise Refused(
                "There is nothing to undo."
                if number is None
                else f"There is no change {number} here. `/memory history` lists them."
            )
        return found

    async def origin(self, scopes: frozenset[Scope], text: str) -> Provenance:
        """Where the one note with `text` in it comes from. Raises Refused, with the candidates."""
        await self.notice(scopes)
        wanted = text.strip()
        shown = [entry for target in FILES for entry in await self.entries(scopes, target)]
        found = [wanted] if wanted in shown else containing(shown, wanted) if wanted else []
        if len(found) != 1:
            raise Refused(unclear(wanted, found, shown))
        return await self._notes.origin(scopes, found[0])

    async def news(self, scopes: frozenset[Scope], session: Session) -> Sequence[NoteChange]:
        """What was changed since the session started, oldest first, and not by the session itself."""
        await self.notice(scopes)
        return await self._notes.since(scopes, session.id, session.started_at)

    async def idle(self, scopes: frozenset[Scope], session: Session) -> tuple[int, int]:
        """How many turns the session has begun since anything was noted, and the id of the last change, 0 for none."""
        return await self._notes.idle(scopes, session.id)

    async def notice(self, scopes: frozenset[Scope]) -> None:
        """Logs what was edited by hand since the last look, as changes by nobody."""
        places = [(scope, target) for scope in sorted(scopes) for target in FILES]
        if all(place in self._noticed for place in places):
            states = await asyncio.to_thread(lambda: [self._pages.state(*place) for place in places])
            if states == [self._noticed[place] for place in places]:
                return

        async def look() -> list[NoteChange]:
            async with self._pages.lock():
                return [change for place in places for change in await self._edits(*place)]

        await self._told(await _unparted(look()))

    async def target_of(self, scopes: frozenset[Scope], old_text: str) -> str:
        """The target that has an entry with `old_text`, so that a person need not say which; memory when none has."""
        wanted = old_text.strip().casefold()
        for target in FILES:
            if any(wanted in entry.casefold() for entry in await self.entries(scopes, target)):
                return target
        return "memory"

    async def _doubted(
        self, scope: Scope, target: str, operations: Sequence[Operation], author: Author, reason: str
    ) -> str:
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
        )
        if self._quarantine is None or not await self._quarantine.put(aside):
            raise Refused(f"Not noted: it contains {reason}, and notes are read as instructions. Reword it.")
        return (
            f"Not noted, but kept aside for the owner to look at (/memory pending): it contains {reason}. "
            "Do not try it again in other words."
        )

    async def _write(
        self,
        scope: Scope,
        scopes: frozenset[Scope],
        target: str,
        work: Callable[[Revision], None],
        names: Sequence[tuple[str, int | None]],
        author: Author,
    ) -> str:
        """`names`: of each swap that `work` makes, the action it is logged as, and the change that it undoes."""
        scopes = scopes | {scope}

        def revise() -> Revision:
            revision = Revision(self._read(scopes, target), scope, target)
            work(revision)
            revision.fit(self._limits[target])
            for place in revision.places:
                if sentence := self._pages.trouble(place, target):
                    raise Refused(sentence)
            for place in revision.places:
                self._pages.keep(place, target, revision.held[place])
            return revision

        async def write() -> tuple[Revision, list[NoteChange]]:
            async with self._pages.lock():
                made = [change for place in sorted(scopes) for change in await self._edits(place, target)]
                revision = await asyncio.to_thread(revise)
                for (before, after, places), (action, undoes) in zip(revision.swaps, names, strict=True):
                    for place in places:
                        change = self._change(place, target, action, before, after)
                        made.append(
                            replace(
                                change,
                                account=author.account,
                                message_id=author.message_id,
                                undoes=undoes,
                                is_insisted=author.is_insisting and after is not None and suspicion(after) is not None,
                            )
                        )
                        await self._notes.log(made[-1])
            return revision, made

        revision, made = await _unparted(write())
        await self._told(made)
        done = " ".join(_sentence(before, after) for before, after, _ in revision.swaps)
        return f"{done} {await self._state(scopes, target)}"

    async def _edits(self, scope: Scope, target: str) -> list[NoteChange]:
        """Logs where a file differs from what its versions come to. Called under the lock."""
        state = await asyncio.to_thread(self._pages.state, scope, target)
        if (scope, target) in self._noticed and self._noticed[scope, target] == state:
            return []
        if await asyncio.to_thread(self._pages.trouble, scope, target) is not None:
            return []
        there = await asyncio.to_thread(self._pages.read, scope, target)
        known = await self._notes.standing(scope, target)
        gone = [entry for entry in known if entry not in there]
        new = [entry for entry in there if entry not in known]
        # As many gone as came: notes that were reworded, in their order.
        pairs = (
            zip_longest(gone, new) if len(gone) == len(new) else [*((e, None) for e in gone), *((None, e) for e in new)]
        )
        made = [self._change(scope, target, "edited", before, after) for before, after in pairs]
        for change in made:
            await self._notes.log(change)
        self._noticed[scope, target] = state
        return made

    def _change(self, scope: Scope, target: str, action: str, before: str | None, after: str | None) -> NoteChange:
        return NoteChange(scope=scope, target=target, action=action, before=before, after=after, at=self._clock.now())

    async def _told(self, changes: Sequence[NoteChange]) -> None:
        if self._tell is not None:
            for change in changes:
                await self._tell(change)

    async def _state(self, scopes: frozenset[Scope], target: str) -> str:
        entries = await self.entries(scopes, target)
        said = f"{FILES[target]} is {await self.heading(scopes, target)}."
        if size(entries) > NEARLY_FULL * self._limits[target]:
            listed = "\n".join(f"- {len(entry)} characters: {entry}" for entry in entries)
            said = f"{said} It is nearly full: merge, shorten or remove entries now.\n{listed}"
        return "\n".join([said, *await self.troubles(scopes)])

    def _read(self, scopes: frozenset[Scope], target: str) -> dict[Scope, list[str]]:
        return {scope: self._pages.read(scope, target) for scope in sorted(scopes)}


def _check(target: str) -> None:
    if target not in FILES:
        raise Refused(f"There is no “{target}” to note in; use memory (what was learned) or user (the person).")


def doubt(reason: str) -> str:
    """What somebody is asked who may decide."""
    return (
        f"Not noted yet: it contains {reason}, and notes are read as instructions. "
        "Reword it, or say it again with --anyway: `/memory add --anyway …`."
    )


def _sentence(before: str | None, after: str | None) -> str:
    if after is None:
        return f"Removed: “{before}”."
    return f"Noted: “{after}”." if before is None else f"Now noted: “{after}”."


async def _unparted(write: Coroutine[Any, Any, T]) -> T:
    """Runs `write` to its end even when the caller is cancelled, who is then cancelled after it: a file that has been
    replaced must be logged as well."""
    task = asyncio.create_task(write, name="note")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("a note failed after its caller was gone", error=str(error))
        raise
