"""The curated notes: a MEMORY.md and a USER.md for each scope, small enough to stand in every system prompt, and an
INSTRUCTIONS.md, which stands in those of this scope alone.

A write is durable when it returns and is logged with what stood there before, also when whoever asked for it is
cancelled. Files are read anew each time and replaced atomically; what was edited by hand stands, and is logged as well;
one that cannot be read as notes is left alone. Nothing here decides who may see which scope.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from filelock import FileLock, Timeout

from config.files import leftovers, replace_file
from core.errors import Refused
from core.guard.guard import LIMIT_CHARS, suspicion
from core.ports import Clock
from core.review.pending import Review, reason_to_wait, typed
from core.store.notes import INSTRUCTIONS, Author, NoteChange, Notes, NoteVersion, Operation, PendingNote
from core.types import ErasureEpoch, Scope, Scopes, Session

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
ALL_FILES = {**FILES, INSTRUCTIONS: "INSTRUCTIONS.md"}
INSTRUCTIONS_CHARS = 4_000
SEPARATOR = "\n§\n"
_SEPARATORS = re.compile(r"^[^\S\n]*§[^\S\n]*$", re.MULTILINE)
"""As a person may write them by hand, with blanks that nobody sees."""
LIMIT_BYTES = 200_000
"""A longer file is no file of notes."""
PATHS = 1_000
"""Of files that each turn looks at."""
_LOCK_TIMEOUT_S = 10.0
NEARLY_FULL = 0.8
"""From this part of the limit on the answer asks to shorten."""

TYPED = Author(origin="typed")
Held = dict[Scope, list[str]]
"""The entries of one target, by the scope of their file."""
T = TypeVar("T")


def entries_of(text: str) -> list[str]:
    """The notes in the text of a file, each once."""
    entries = map(str.strip, _SEPARATORS.split(with_plain_lines(text)))
    return list(dict.fromkeys(filter(None, entries)))


def folder_of(memories: Path, scope: Scope) -> Path:
    """Where the notes of a scope lie, and what else belongs to it."""
    return memories / quote(scope.key, safe="")


@dataclass
class FolderLock:
    """Over a folder, for all processes. `things`: what people call what is in it."""

    folder: Path
    things: str
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Raises Refused when it cannot be had."""
        # First among ourselves: who waits for a file lock holds a thread, which its holder needs to go on.
        async with self._turn:
            lock = FileLock(self.folder / ".lock", timeout=_LOCK_TIMEOUT_S, thread_local=False)
            try:
                await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True, mode=0o700)
                await asyncio.to_thread(lock.acquire)
            except Timeout as error:
                busy = f"The {self.things} are being changed by another program; try again in a moment."
                raise Refused(busy) from error
            except OSError as error:
                raise Refused(f"The folder {self.folder.name}/ cannot be used ({error.strerror or error}).") from error
            try:
                yield
            finally:
                lock.release()


class NoteFiles:
    """All methods but `lock` and `state` block: they are called in a thread."""

    def __init__(self, folder: Path) -> None:
        self._path = lru_cache(PATHS)(lambda scope, target: folder_of(folder, scope) / ALL_FILES[target])
        # One lock over all scopes, because limits count them together.
        self.lock = FolderLock(folder, "notes").hold

    def keep(self, scope: Scope, target: str, entries: Sequence[str]) -> None:
        """Replaces all entries. Raises Refused where they cannot be written."""
        path = self._path(scope, target)
        try:
            path.parent.mkdir(exist_ok=True, mode=0o700)
            self.sweep(scope, target)
            replace_file(path, (SEPARATOR.join(entries) + "\n" if entries else "").encode())
        except OSError as error:
            raise Refused(f"{_place(path)} cannot be written ({error.strerror or error}); it is as it was.") from error

    def sweep(self, scope: Scope, target: str) -> None:
        """Removes what a killed process left beside the file. Called under the lock."""
        for left in leftovers(self._path(scope, target)):
            left.unlink(missing_ok=True)

    def state(self, scope: Scope, target: str) -> tuple[int, ...] | None:
        """Differs whenever the file does; None when it is not there. As short as the way to a thread."""
        try:
            found = self._path(scope, target).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def read(self, scope: Scope, target: str) -> tuple[list[str], str | None]:
        """The entries, each once, and why the file cannot be read, as a sentence; neither where there is no file."""
        path, reason = self._path(scope, target), ""
        try:
            content = path.read_bytes()
            # Editors on Windows open a file with a byte order mark, which is no part of the first note.
            text = content.decode("utf-8-sig")
            reason = f"it is over {LIMIT_BYTES:,} bytes long" if len(content) > LIMIT_BYTES else ""
        except FileNotFoundError:
            return [], None
        except OSError as error:
            return [], f"{_place(path)} cannot be read ({error.strerror or error}); nothing is written there."
        except UnicodeDecodeError as error:
            reason = f"it is not UTF-8 text (byte {error.start + 1:,})"
        if reason:
            mend = "I leave it alone. Mend or remove the file; until then nothing is noted in it."
            return [], f"{_place(path)} cannot be read: {reason}. {mend}"
        return entries_of(text), None


class NoteEdit:
    """What becomes of one target, worked out without touching a file; new entries go to the scope of `template`.
    Raises Refused with what to do."""

    def __init__(self, held: Held, template: NoteChange) -> None:
        self.held = dict(held)
        self.changes: list[NoteChange] = []
        self._template = template
        self._size_before = _size(_shown(held))

    def do(self, operation: Operation) -> None:
        scope = self._template.scope
        shelves = self.held[scope], _shown(self.held)
        before = None if operation.action == "add" else _only(operation.old_text, *shelves)
        after = None if operation.action == "remove" else _note(operation.content)
        self.swap(operation.action, before, after, scope)

    def consolidate(self, operations: Sequence[Operation]) -> None:
        """Of whole notes only: a note that has changed since is not there any more."""
        for one in operations:
            if one.old_text not in _shown(self.held):
                raise Refused(f"“{one.old_text}” is not noted any more.")
            after = _note(one.content) if one.action == "replace" else None
            self.swap("consolidate", one.old_text, after, self._template.scope)

    def undo(self, change: NoteChange) -> None:
        if change.after is not None and change.after not in _shown(self.held):
            raise Refused(f"“{change.after}” is not noted any more, so change {change.id} cannot be undone.")
        self.swap("undo", change.after, change.before, change.scope, change.id)

    def swap(self, action: str, before: str | None, after: str | None, scope: Scope, undoes: int | None = None) -> None:
        """`before` goes from every scope that has it, since it is shown once; what is only added goes to `scope`."""
        if before is None and after in _shown(self.held):
            raise Refused(f"That is noted already: “{after}”.")
        scopes = [scope] if before is None else [place for place, entries in self.held.items() if before in entries]
        made = replace(self._template, action=action, before=before, after=after, undoes=undoes)
        for place in scopes:
            entries = self.held[place]
            changed = [*entries, after] if before is None else [after if one == before else one for one in entries]
            self.held[place] = list(dict.fromkeys(entry for entry in changed if entry is not None))
            self.changes.append(replace(made, scope=place))

    def fit(self, limit: int) -> None:
        """Only the final size counts; what was too long already may get shorter."""
        shown = _shown(self.held)
        used = _size(shown)
        if used <= limit or used < self._size_before:
            return
        new = {change.after for change in self.changes}
        others = [entry for entry in shown if entry not in new]
        left = max(0, limit - _size(others) - (len(SEPARATOR) if others else 0))
        raise Refused(
            f"That would make {ALL_FILES[self._template.target]} {used:,} characters, over its limit of {limit:,}; "
            f"{left:,} would fit. Shorten, replace or remove entries first:\n{_sizes(others)}"
        )


class Notebook:
    """Notes under `home`/memories. `limits`: characters for each target, over all entries shown together."""

    def __init__(self, home: Path, notes: Notes, clock: Clock, limits: dict[str, int]) -> None:
        self._files = NoteFiles(home / "memories")
        self._notes = notes
        self._clock = clock
        self._limits = {INSTRUCTIONS: INSTRUCTIONS_CHARS, **limits}
        self.review = Review(notes, clock)
        self.on_change: Callable[[], Awaitable[None]] | None = None
        """Called when changes were stored."""
        self._seen: dict[tuple[Scope, str], tuple[int, ...] | None] = {}
        """The state of the file of a scope and target when its edits by hand were last looked for."""

    async def entries(self, scopes: Scopes, target: str) -> list[str]:
        """Each once, by the scopes' keys and in the order of the files."""
        return await asyncio.to_thread(lambda: _shown(self._read(scopes, target)))

    def is_nearly_full(self, target: str, entries: Sequence[str]) -> bool:
        return _size(entries) > NEARLY_FULL * self._limits[target]

    def heading(self, target: str, entries: Sequence[str]) -> str:
        """``37 % full, 814/2,200 characters``."""
        used, limit = _size(entries), self._limits[target]
        return f"{round(100 * used / limit)} % full, {used:,}/{limit:,} characters"

    async def troubles(self, scopes: Scopes) -> list[str]:
        """A sentence on each file of these scopes that cannot be read as notes."""
        found = (self._files.read(scope, target)[1] for scope in sorted(scopes) for target in ALL_FILES)
        return await asyncio.to_thread(lambda: [sentence for sentence in found if sentence])

    async def apply(
        self, scope: Scope, scopes: Scopes, target: str, operations: Sequence[Operation], author: Author = TYPED
    ) -> str:
        """Does all of `operations` in order or none; only the final size must fit. What the author has not typed waits
        for a yes. Returns what was done, with the live state; raises Refused with what to do."""
        if author.origin != "typed":
            longest = max((len(one.content) for one in operations), default=0)
            if longest > self._limits[target]:
                raise Refused(f"That is too long: {longest:,} characters, over its limit of {self._limits[target]:,}.")
            reason = reason_to_wait(operations) or author.reason
            return await self.review.put_aside(scope, target, operations, author, reason)
        contents = [typed(one.content, LIMIT_CHARS, is_insisting=author.is_insisting) for one in operations]

        def work(edit: NoteEdit) -> None:
            for number, (operation, (content, _)) in enumerate(zip(operations, contents, strict=True), 1):
                try:
                    edit.do(replace(operation, content=content))
                except Refused as refusal:
                    if len(operations) == 1:
                        raise
                    raise Refused(f"Nothing was changed. Operation {number}: {refusal}") from refusal

        done = await self._write(scope, scopes, target, work, author)
        left_out = next((f"{sentence} " for _, sentence in contents if sentence), "")
        return left_out + done

    async def approve(self, note: PendingNote, scopes: Scopes, epoch: ErasureEpoch | None = None) -> str:
        """Applies it for its author. Raises Refused when it does not fit any more."""
        author = Author(**note.source, origin="typed", is_insisting=True, epoch=epoch)
        if note.is_draft:
            return await self._write(
                note.scope, scopes | {note.scope}, note.target, lambda edit: edit.consolidate(note.operations), author
            )
        return await self.apply(note.scope, scopes, note.target, note.operations, author)

    async def done(self, author: Author, scopes: Scopes) -> str | None:
        """What this command did before a crash or retry, with the state of now; None when it has changed nothing."""
        made = await self._notes.made(scopes, author)
        if not made:
            return None
        said = dict.fromkeys(map(_sentence, made))
        undone = [f"Undone: change {change.undoes}." for change in made[:1] if change.undoes is not None]
        return " ".join([*undone, *said, await self._state(scopes, made[0].target)])

    async def undo(self, change: NoteChange, scope: Scope, scopes: Scopes, author: Author = TYPED) -> str:
        """With all that were one with it. Raises Refused when what the change wrote is not there any more."""
        scope = change.scope if change.target == INSTRUCTIONS else scope
        scopes = scopes | {change.scope}
        # What stood in several files is shown, and undone, once.
        made = {(one.before, one.after): one for one in await self._notes.together(scopes, change)}

        def work(edit: NoteEdit) -> None:
            for one in reversed(made.values()):
                edit.undo(one)

        said = await self._write(scope, scopes, change.target, work, author)
        return f"Undone: change {', '.join(str(one.id) for one in made.values())}. {said}"

    async def versions(self, scopes: Scopes, target: str) -> list[NoteVersion]:
        """The notes as they stand, the latest last, each with what made it."""
        await self.notice(scopes)
        known = await self._notes.current(scopes, target)
        found = (known.get(entry) for entry in await self.entries(scopes, target))
        return sorted(filter(None, found), key=lambda version: version.id)

    async def is_stale(self, draft: PendingNote, scopes: Scopes) -> bool:
        """Whether a note that it would change is another one since, or was pinned."""
        free = {one.after for one in await self.versions(scopes, draft.target) if not one.is_pinned}
        return not free.issuperset(one.old_text for one in draft.operations)

    async def pin(self, scopes: Scopes, text: str, *, is_pinned: bool) -> str:
        """The one note with `text` in it is left alone by the curator, or no longer; returns it. Raises Refused."""
        target, entry, _ = await self.find(scopes, text)
        await self._notes.pin(scopes, target, entry, is_pinned=is_pinned)
        return entry

    async def history(self, scopes: Scopes, limit: int = 20, offset: int = 0) -> list[NoteChange]:
        """The latest changes, newest first, also those made by hand."""
        await self.notice(scopes)
        return await self._notes.changes(scopes, limit, offset)

    async def change(self, scopes: Scopes, number: int | None = None) -> NoteChange:
        """By number, else the last that can be undone. Raises Refused when there is none."""
        await self.notice(scopes)
        if number is not None:
            if (found := await self._notes.find(scopes, number)) is not None:
                return found
            raise Refused(f"There is no change {number} here. `/memory history` lists them.")
        # One that was overtaken by others does not bar those before it.
        shown = {target: await self.entries(scopes, target) for target in ALL_FILES}
        for change in await self._notes.undoable(scopes):
            there = shown[change.target]
            if change.after in there if change.after is not None else change.before not in there:
                return change
        raise Refused("There is nothing to undo.")

    async def find(
        self, scopes: Scopes, text: str, targets: Iterable[str] = FILES
    ) -> tuple[str, str, NoteChange | None]:
        """The one note of these targets with `text` in it: its target, all of it, and what made it, where known. Raises
        Refused, with the candidates."""
        await self.notice(scopes)
        entries = {target: await self.entries(scopes, target) for target in targets}
        entry = _only(text, list(chain.from_iterable(entries.values())))
        target = next(target for target, held in entries.items() if entry in held)
        return target, entry, await self._notes.origin(scopes, entry)

    async def news(self, scopes: Scopes, session: Session) -> Sequence[NoteChange]:
        """Changes since the session started, oldest first, without its own."""
        await self.notice(scopes)
        return await self._notes.since(scopes, session.id, session.started_at)

    async def notice(self, scopes: Scopes) -> None:
        """Logs what was edited by hand since the last look; nothing while the folder or its lock cannot be had."""

        async def look() -> None:
            async with self._files.lock():
                for target in ALL_FILES:
                    await self._log_edits(scopes, target)

        places = ((scope, target) for scope in scopes for target in ALL_FILES)
        is_new = (self._seen.get(place, ()) != self._files.state(*place) for place in places)
        if any(is_new):
            with contextlib.suppress(Refused):
                await self._finish(look())

    async def settle(self) -> None:
        """Waits for writes under way."""
        async with self._files.lock():
            return

    async def _write(
        self, scope: Scope, scopes: Scopes, target: str, work: Callable[[NoteEdit], None], author: Author
    ) -> str:
        scopes = frozenset((scope,)) if target == INSTRUCTIONS else scopes | {scope}
        # One moment for all: what is changed in several files is one change.
        template = self._change(scope, target, author)

        def write_files() -> NoteEdit:
            edit = NoteEdit(self._read(scopes, target), template)
            work(edit)
            edit.fit(self._limits[target])
            changed = dict.fromkeys(change.scope for change in edit.changes)
            for place in changed:
                if sentence := self._files.read(place, target)[1]:
                    raise Refused(sentence)
            for place in changed:
                self._files.keep(place, target, edit.held[place])
            return edit

        async def write() -> Sequence[NoteChange]:
            async with self._files.lock():
                await self._notes.check(author.epoch)
                await self._log_edits(scopes, target)
                changes = (await asyncio.to_thread(write_files)).changes
                await self._notes.log(*changes)
                return changes

        changes = await self._finish(write())
        return " ".join([*dict.fromkeys(map(_sentence, changes)), await self._state(scopes, target)])

    async def _log_edits(self, scopes: Scopes, target: str) -> None:
        """What was edited by hand, as changes by nobody; nothing of a file that cannot be read."""
        for scope in sorted(scopes):
            state = await asyncio.to_thread(self._files.state, scope, target)
            if self._seen.get((scope, target), ()) == state:
                continue
            await asyncio.to_thread(self._files.sweep, scope, target)
            there, trouble = await asyncio.to_thread(self._files.read, scope, target)
            if trouble is None:
                template = self._change(scope, target, Author())
                known = await self._notes.standing(scope, target)
                gone, new = [one for one in known if one not in there], [one for one in there if one not in known]
                # As many gone as came: notes that were reworded, in their order.
                is_reworded = len(gone) == len(new)
                pairs = zip_longest(gone, new) if is_reworded else [*zip_longest(gone, ()), *zip_longest((), new)]
                await self._notes.log(*(replace(template, before=old, after=entry) for old, entry in pairs))
                for entry in new:
                    # Of what looks wrong a warning is given; it stands all the same.
                    if self.review.on_warning is not None and (reason := suspicion(entry)):
                        await self.review.on_warning(scope, target, reason, entry)
                self._seen[scope, target] = state

    def _change(self, scope: Scope, target: str, author: Author) -> NoteChange:
        source, at, is_insisted = author.source, self._clock.now(), author.is_insisting
        return NoteChange(**source, scope=scope, target=target, action="edited", at=at, is_insisted=is_insisted)

    async def _finish(self, write: Coroutine[Any, Any, T]) -> T:
        done = await finished(write)
        if self.on_change is not None:
            await self.on_change()
        return done

    async def _state(self, scopes: Scopes, target: str) -> str:
        entries = await self.entries(scopes, target)
        said = f"{ALL_FILES[target]} is {self.heading(target, entries)}."
        if self.is_nearly_full(target, entries):
            said = f"{said} It is nearly full: merge, shorten or remove entries now.\n{_sizes(entries)}"
        return "\n".join([said, *await self.troubles(scopes)])

    def _read(self, scopes: Scopes, target: str) -> Held:
        return {scope: self._files.read(scope, target)[0] for scope in sorted(scopes)}


async def finished(write: Coroutine[Any, Any, T]) -> T:
    """Runs `write` to its end also when the caller is cancelled: a file that was replaced must be logged too."""
    task = asyncio.create_task(write, name="note")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


def _shown(held: Held) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(held.values())))


def _sizes(entries: Sequence[str]) -> str:
    return "\n".join(f"- {len(entry)} characters: {entry}" for entry in entries)


def _sentence(change: NoteChange) -> str:
    if change.after is None:
        return f"Removed: “{change.before}”."
    return f"Noted: “{change.after}”." if change.before is None else f"Now noted: “{change.after}”."


def _note(content: str) -> str:
    content = with_plain_lines(content.encode("utf-8", "replace").decode("utf-8")).replace("\0", "").strip()
    if not content:
        raise Refused("There is nothing to note: give the text.")
    if _SEPARATORS.search(content):
        raise Refused("A note cannot contain a line with § alone: that is what separates the notes.")
    return content


def _only(text: str, *shelves: Sequence[str]) -> str:
    """The entry that is exactly `text`, else the only one with it in the first of the lists that has any: as written,
    or else in any case. Raises Refused, with the candidates, when there is not exactly one."""
    wanted, shown = text.strip(), list(dict.fromkeys(chain.from_iterable(shelves)))
    if not wanted:
        raise Refused("Say which note: give a part of its text that no other note has.")
    if wanted in shown:
        return wanted
    found: list[str] = []
    for entries in shelves:
        found = found or [entry for entry in entries if wanted in entry]
        found = found or [entry for entry in entries if wanted.casefold() in entry.casefold()]
    if len(found) == 1:
        return found[0]
    listed = "\n".join(f"- {entry}" for entry in found or shown) or "(there are no notes yet)"
    reason = f"{len(found)} notes contain" if found else "No note contains"
    raise Refused(f"{reason} “{wanted}”. The notes are:\n{listed}")


def _size(entries: Sequence[str]) -> int:
    return len(SEPARATOR.join(entries))


def with_plain_lines(text: str) -> str:
    return re.sub(r"\r\n?", "\n", text)


def _place(path: Path) -> str:
    return f"memories/{path.parent.name}/{path.name}"
