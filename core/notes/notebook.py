"""The curated notes: a MEMORY.md and a USER.md for each scope, small enough to stand in every system prompt.

A write is durable when it returns and is logged with what stood there before, also when whoever asked for it is
cancelled. Files are read anew each time; one that was edited by hand is honoured, and the edit is logged as well.
Nothing here decides who may see which scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from core.errors import Refused
from core.guard.guard import LIMIT_CHARS
from core.notes.edits import UNSAID, NoteEdit, containing, size, unclear
from core.notes.files import FILES as FILES
from core.notes.files import SEPARATOR as SEPARATOR
from core.notes.files import HandEdits, NoteFiles, finished
from core.ports import Clock
from core.review.review import Review, reason_to_wait, typed
from core.store.notes import FACT, Author, NoteChange, Notes, Operation, PendingNote, PendingNotes, Provenance
from core.types import Scope, Session

NEARLY_FULL = 0.8
"""Notes that are fuller than this part of their limit should be put together."""

_NOBODY = Author(origin="typed")
"""For what is done by the program on nobody's behalf."""
KeepFact = Callable[[PendingNote], Awaitable[str]]
"""Keeps what waited to be remembered as a fact; a sentence on it."""


class Notebook:
    """Notes under `home`/memories. `limits` are characters for each target, counted over all entries shown together.
    `pending` keeps what waits for a yes; `keep_fact` keeps what of it is a fact."""

    def __init__(
        self,
        home: Path,
        notes: Notes,
        clock: Clock,
        limits: dict[str, int],
        pending: PendingNotes | None = None,
        keep_fact: KeepFact | None = None,
    ) -> None:
        self._pages = NoteFiles(home / "memories")
        self._notes = notes
        self._clock = clock
        self._limits = limits
        self.review = Review(pending, clock)
        self._keep_fact = keep_fact
        self._handwriting = HandEdits(self._pages, notes, self.review, clock)
        self._tell: Callable[[NoteChange], Awaitable[None]] | None = None

    def connect(self, tell: Callable[[NoteChange], Awaitable[None]]) -> None:
        """Who is told of each change once it is kept (its id is not known yet)."""
        self._tell = tell

    async def entries(self, scopes: frozenset[Scope], target: str) -> list[str]:
        """All entries of these scopes, each once, in the order of the scopes' keys and of the files."""
        _check(target)
        return await asyncio.to_thread(lambda: NoteEdit(self._read(scopes, target), Scope(key=""), target).shown)

    async def holders(self) -> list[Scope]:
        """Everybody who has notes."""
        return await asyncio.to_thread(self._pages.holders)

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
        when it is empty, has to be asked about, is there already, or does not fit."""
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
        """Does all of `operations`, one after the other, or none of them; only the final size must fit. What the author
        has not typed waits for a yes. Returns what was done, with the live state; raises Refused."""
        _check(target)
        author = author or _NOBODY
        if author.origin != "typed":
            reason = reason_to_wait(operations) or author.reason
            return await self.review.put_aside(scope, target, operations, author, reason)
        kept, left_out = [], ""
        for one in operations:
            content, sentence = typed(one.content, LIMIT_CHARS, is_insisting=author.is_insisting)
            kept.append(replace(one, content=content))
            left_out = left_out or sentence

        def work(revision: NoteEdit) -> None:
            for number, operation in enumerate(kept, 1):
                try:
                    revision.do(operation)
                except Refused as refusal:
                    if len(kept) == 1:
                        raise
                    raise Refused(f"Nothing was changed. Operation {number}: {refusal}") from refusal

        names = [(operation.action, None) for operation in kept]
        done = await self._write(scope, scopes, target, work, names, author)
        return f"{left_out} {done}" if left_out else done

    async def pending(self, scopes: frozenset[Scope]) -> Sequence[PendingNote]:
        """What waits for a yes in these scopes, oldest first."""
        return await self.review.waiting(scopes)

    async def waiting(self, scopes: frozenset[Scope], number: int) -> PendingNote:
        """One thing that was put aside. Raises Refused when there is no such thing."""
        found = next((note for note in await self.pending(scopes) if note.id == number), None)
        if found is None:
            raise Refused(f"Nothing with the number {number} waits here. `/memory pending` lists what does.")
        return found

    async def decide(self, note: PendingNote, scopes: frozenset[Scope], is_approved: bool) -> str:
        """Lets it in on behalf of whoever asked for it, or drops it. Raises Refused when it does not fit any more."""
        if not is_approved:
            said = "Rejected: it is gone."
        elif note.target == FACT:
            if self._keep_fact is None:
                raise Refused("Facts cannot be kept here.")
            said = await self._keep_fact(note)
        else:
            asked = Author(
                account=note.account,
                message_id=note.message_id,
                address=note.address,
                external_id=note.external_id,
                origin="typed",
                is_insisting=True,
            )
            said = await self.apply(note.scope, scopes, note.target, note.operations, asked)
        await self.review.release(note)
        return said

    async def done(self, author: Author, scopes: frozenset[Scope]) -> str | None:
        """What this very command has done before a crash, or before it was begun anew, as it was said then, with the
        state of now; None when it has changed nothing."""
        made = await self._notes.made(scopes, author)
        if not made:
            return None
        said = dict.fromkeys(_sentence(change.before, change.after) for change in made)
        undone = [f"Undone: change {change.undoes}." for change in made[:1] if change.undoes is not None]
        return " ".join([*undone, *said, await self._state(scopes, made[0].target)])

    async def undo(
        self, change: NoteChange, scope: Scope, scopes: frozenset[Scope], author: Author | None = None
    ) -> str:
        """Puts back what stood there before a change of these scopes. Raises Refused when it is not so any more."""

        def work(revision: NoteEdit) -> None:
            if change.after is not None and change.after not in revision.shown:
                raise Refused(f"“{change.after}” is not noted any more, so change {change.id} cannot be undone.")
            revision.swap(change.after, change.before, change.scope)

        undoing, scopes = [("undo", change.id)], scopes | {change.scope}
        said = await self._write(scope, scopes, change.target, work, undoing, author or _NOBODY)
        return f"Undone: change {change.id}. {said}"

    async def history(self, scopes: frozenset[Scope], limit: int = 20, offset: int = 0) -> list[NoteChange]:
        """The latest changes, newest first, those made by hand among them."""
        await self.notice(scopes)
        return await self._notes.changes(scopes, limit, offset)

    async def change(self, scopes: frozenset[Scope], number: int | None = None) -> NoteChange:
        """The change with this number, else the last one that was not undone. Raises Refused when there is none."""
        await self.notice(scopes)
        found = await (self._latest(scopes) if number is None else self._notes.find(scopes, number))
        if found is None:
            raise Refused(
                "There is nothing to undo."
                if number is None
                else f"There is no change {number} here. `/memory history` lists them."
            )
        return found

    async def _latest(self, scopes: frozenset[Scope]) -> NoteChange | None:
        """The last change that was not undone and still can be: one that was overtaken by others does not bar those
        before it."""
        shown = {target: await self.entries(scopes, target) for target in FILES}
        for change in await self._notes.undoable(scopes):
            there = shown[change.target]
            if change.after in there if change.after is not None else change.before not in there:
                return change
        return None

    async def sources(self, scopes: frozenset[Scope], changes: Sequence[NoteChange]) -> Sequence[Provenance]:
        """Each change with the message it came from, where that may be seen."""
        return await self._notes.sources(scopes, changes)

    async def origin(self, scopes: frozenset[Scope], text: str) -> Provenance:
        """Where the one note with `text` in it comes from. Raises Refused, with the candidates."""
        await self.notice(scopes)
        wanted = text.strip()
        shown = [entry for target in FILES for entry in await self.entries(scopes, target)]
        if not wanted:
            raise Refused(UNSAID)
        found = [wanted] if wanted in shown else containing(shown, wanted)
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
        if await self._handwriting.is_seen(places):
            return

        async def look() -> list[NoteChange]:
            async with self._pages.lock():
                return [change for place in places for change in await self._handwriting.edits(*place)]

        await self._told(await finished(look()))

    async def settle(self) -> None:
        """Returns when whatever was being written has been."""
        async with self._pages.lock():
            return

    async def target_of(self, scopes: frozenset[Scope], old_text: str) -> str:
        """The target that has an entry with `old_text`, so that a person need not say which; memory when none has."""
        wanted = old_text.strip().casefold()
        for target in FILES:
            if any(wanted in entry.casefold() for entry in await self.entries(scopes, target)):
                return target
        return "memory"

    async def _write(
        self,
        scope: Scope,
        scopes: frozenset[Scope],
        target: str,
        work: Callable[[NoteEdit], None],
        names: Sequence[tuple[str, int | None]],
        author: Author,
    ) -> str:
        """`names`: of each swap that `work` makes, the action it is logged as, and the change that it undoes."""
        scopes = scopes | {scope}

        def revise() -> NoteEdit:
            revision = NoteEdit(self._read(scopes, target), scope, target)
            work(revision)
            revision.fit(self._limits[target])
            for place in revision.places:
                if sentence := self._pages.trouble(place, target):
                    raise Refused(sentence)
            for place in revision.places:
                self._pages.keep(place, target, revision.held[place])
            return revision

        async def write() -> tuple[NoteEdit, list[NoteChange]]:
            async with self._pages.lock():
                await self._notes.check()
                made = [change for place in sorted(scopes) for change in await self._handwriting.edits(place, target)]
                revision = await asyncio.to_thread(revise)
                # One moment for all: what is changed in several files is one change.
                at = self._clock.now()
                for (before, after, places), (action, undoes) in zip(revision.swaps, names, strict=True):
                    for place in places:
                        change = replace(self._change(place, target, action, before, after), at=at)
                        made.append(_by(author, replace(change, undoes=undoes, is_insisted=author.is_insisting)))
                        await self._notes.log(made[-1])
            return revision, made

        revision, made = await finished(write())
        await self._told(made)
        done = " ".join(_sentence(before, after) for before, after, _ in revision.swaps)
        return f"{done} {await self._state(scopes, target)}"

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


def _by(author: Author, change: NoteChange) -> NoteChange:
    return replace(
        change,
        account=author.account,
        message_id=author.message_id,
        address=author.address,
        external_id=author.external_id,
    )


def _sentence(before: str | None, after: str | None) -> str:
    if after is None:
        return f"Removed: “{before}”."
    return f"Noted: “{after}”." if before is None else f"Now noted: “{after}”."
