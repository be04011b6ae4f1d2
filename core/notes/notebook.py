"""Stores the curated notes: a MEMORY.md and a USER.md for each scope, and an INSTRUCTIONS.md.

MEMORY.md and USER.md are short enough to be part of every system prompt that may show the scope.
INSTRUCTIONS.md is part of the prompts of its own scope only.

* When a method that writes returns, the file is on disk, and the change is logged with the previous
  text. A write finishes even if its caller is cancelled.
* Files are read each time they're needed, and replaced atomically.
* Edits by hand are accepted and logged.
* A file that can't be parsed as notes is never overwritten.

The callers decide who may read which scope.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from config.files import find_leftovers, replace_file
from core.errors import Refused, Report, Sentence
from core.guard.guard import LIMIT_CHARS, find_suspicion
from core.notes.edits import (
    EntriesByScope,
    NoteEdit,
    find_entry,
    format_entries,
    list_sizes,
    measure,
    merge_entries,
    parse_entries,
)
from core.notes.locking import FolderLock, run_to_completion
from core.ports import Clock
from core.review.pending import Review, clean_typed_text, explain_suspicion
from core.store.notes import (
    INSTRUCTIONS,
    Author,
    NoteChange,
    Notes,
    NoteVersion,
    Operation,
    PendingNote,
)
from core.text.normalize import quote_at_end
from core.types import ErasureEpoch, Scope, Scopes, Session

# Targets and their files.
FILES = {"memory": "MEMORY.md", "user": "USER.md"}
ALL_FILES = {**FILES, INSTRUCTIONS: "INSTRUCTIONS.md"}
INSTRUCTIONS_CHARS = 4_000
# A longer file isn't read as notes.
LIMIT_BYTES = 200_000
# Each turn needs the paths of the files, so this many are cached.
MAX_CACHED_PATHS = 1_000
# Above this share of the limit, reports ask the model or the person to shorten the notes.
NEARLY_FULL = 0.8

TYPED = Author(origin="typed")
T = TypeVar("T")


def folder_of(memories: Path, scope: Scope) -> Path:
    """Return the folder in `memories` that contains the notes and skills of a scope."""
    return memories / quote(scope.key, safe="")


class NoteFile(NamedTuple):
    """The notes in a file, or the reason why the file can't be read."""

    entries: list[str]
    # Says why the file can't be read.
    problem: Sentence | None


class NoteFiles:
    """Reads and writes the note files below a folder.

    All methods except `lock`, `has_folder` and `stat_fingerprint` block. Call them in a thread.
    """

    def __init__(self, folder: Path) -> None:
        self._path = lru_cache(MAX_CACHED_PATHS)(
            lambda scope, target: folder_of(folder, scope) / ALL_FILES[target]
        )
        self._folder = lru_cache(MAX_CACHED_PATHS)(lambda scope: str(folder_of(folder, scope)))
        # One lock for all scopes, since the limits count their notes together.
        self.lock = FolderLock(folder, "notes_locked").hold

    def write(self, scope: Scope, target: str, entries: Sequence[str]) -> None:
        """Replace all notes of a file. Raises Refused if it can't be written."""
        path = self._path(scope, target)
        try:
            path.parent.mkdir(exist_ok=True, mode=0o700)
            self.delete_leftovers(scope, target)
            replace_file(path, format_entries(entries).encode())
        except OSError as error:
            raise Refused(
                "note_file_unwritable", file=_label(path), reason=str(error.strerror or error)
            ) from error

    def delete_leftovers(self, scope: Scope, target: str) -> None:
        """Delete the temporary files that a killed process left behind.

        Call this under the lock.
        """
        for leftover in find_leftovers(self._path(scope, target)):
            leftover.unlink(missing_ok=True)

    def has_folder(self, scope: Scope) -> bool:
        """Return whether a scope may have files. This is fast enough to call without a thread."""
        return os.access(self._folder(scope), os.F_OK)

    def stat_fingerprint(self, scope: Scope, target: str) -> tuple[int, ...] | None:
        """Return a value that changes whenever the file changes, or None if the file doesn't exist.

        Call this without a thread, because starting a thread would take longer.
        """
        try:
            status = self._path(scope, target).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def read(self, scope: Scope, target: str) -> NoteFile:
        """Return the notes of a file without duplicates, or the problem that makes it unreadable.

        A missing file has no notes and no problem.
        """
        path = self._path(scope, target)
        try:
            content = path.read_bytes()
            # Editors on Windows start a file with a byte order mark.
            text = content.decode("utf-8-sig")
        except FileNotFoundError:
            return NoteFile([], None)
        except OSError as error:
            values = {"file": _label(path), "reason": str(error.strerror or error)}
            return NoteFile([], Sentence("note_file_inaccessible", values))
        except UnicodeDecodeError as error:
            reason = Sentence("note_file_not_text", {"byte": error.start + 1})
            return _report_unreadable(path, reason)
        if len(content) > LIMIT_BYTES:
            return _report_unreadable(path, Sentence("context_too_large", {"limit": LIMIT_BYTES}))
        return NoteFile(parse_entries(text), None)


def _report_unreadable(path: Path, reason: Sentence) -> NoteFile:
    values = {"file": _label(path), "reason": reason}
    return NoteFile([], Sentence("note_file_unreadable", values))


class Notebook:
    """The notes in `home`/memories.

    `limits` has the maximum number of characters for each target. A limit applies to all notes of
    the target that are shown together.
    """

    def __init__(
        self,
        home: Path,
        notes: Notes,
        clock: Clock,
        limits: dict[str, int],
        review: Review | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the notebook. `on_change` is called after changes were logged."""
        self._files = NoteFiles(home / "memories")
        self._notes = notes
        self._clock = clock
        self._limits = {INSTRUCTIONS: INSTRUCTIONS_CHARS, **limits}
        self.review = review or Review(notes, clock)
        self._on_change = on_change
        # The fingerprint that each file, by scope and target, had when edits by hand were last
        # logged.
        self._logged_fingerprints: dict[Scope, dict[str, tuple[int, ...] | None]] = {}

    async def entries(self, scopes: Scopes, target: str) -> list[str]:
        """Return the notes of all scopes without duplicates, in order of scopes and files."""
        return await asyncio.to_thread(lambda: merge_entries(self._read(scopes, target)))

    def has_files(self, scopes: Scopes) -> bool:
        """Return whether any of the scopes may have notes. Fast, without reading a file."""
        return any(map(self._files.has_folder, scopes))

    def is_nearly_full(self, target: str, entries: Sequence[str]) -> bool:
        return measure(entries) > NEARLY_FULL * self._limits[target]

    def heading(self, target: str, entries: Sequence[str]) -> str:
        """Return how full a file is, such as ``37 % full, 814/2,200 characters``."""
        size, limit = self.measure(target, entries)
        return f"{round(100 * size / limit)} % full, {size:,}/{limit:,} characters"

    def measure(self, target: str, entries: Sequence[str]) -> tuple[int, int]:
        """Return the length of a file with these notes and its limit, both in characters."""
        return measure(entries), self._limits[target]

    async def list_problems(self, scopes: Scopes) -> list[Sentence]:
        """Return a sentence about each file that can't be parsed as notes."""

        def read_problems() -> list[Sentence]:
            problems = []
            for scope in sorted(scopes):
                for target in ALL_FILES:
                    if problem := self._files.read(scope, target).problem:
                        problems.append(problem)
            return problems

        return await asyncio.to_thread(read_problems)

    async def apply(
        self,
        scope: Scope,
        scopes: Scopes,
        target: str,
        operations: Sequence[Operation],
        author: Author = TYPED,
    ) -> Report:
        """Apply all operations in order, or none of them.

        Only the size after the last operation is limited. Operations wait for confirmation unless
        `author.origin` is "typed". Returns a report: the changes and the size of the file, or that
        the operations wait. Raises Refused, with advice, if an operation isn't possible.
        """
        if author.origin != "typed":
            # The model reads this, so it's in English.
            waiting = await self._put_aside(scope, target, operations, author)
            return Report((Sentence(waiting),))
        clean_operations: list[Operation] = []
        notices: list[Sentence] = []
        for operation in operations:
            content, notice = clean_typed_text(
                operation.content, LIMIT_CHARS, has_anyway=author.is_insisting
            )
            clean_operations.append(replace(operation, content=content))
            if notice is not None:
                notices.append(notice)
        report = await self._write(
            scope, scopes, target, lambda edit: _apply_all(edit, clean_operations), author
        )
        return Report((*notices[:1], *report.sentences))

    async def _put_aside(
        self, scope: Scope, target: str, operations: Sequence[Operation], author: Author
    ) -> str:
        """Store operations that need confirmation, and return a sentence for the model.

        Raises Refused if the content of an operation is too long.
        """
        limit = self._limits[target]
        longest = max((len(operation.content) for operation in operations), default=0)
        if longest > limit:
            raise Refused("note_too_long", chars=longest, limit=limit)
        reason = explain_suspicion(operations) or author.reason
        return await self.review.put_aside(scope, target, operations, author, reason)

    async def approve(
        self, note: PendingNote, scopes: Scopes, epoch: ErasureEpoch | None = None
    ) -> Report:
        """Apply operations that a person has confirmed, on behalf of their author.

        Returns a report of the changes and of the size of the file. Raises Refused if an operation
        isn't possible any more.
        """
        author = Author(**note.source_values, origin="typed", is_insisting=True, epoch=epoch)
        if note.is_draft:
            # The curator made the draft. It names each old note by its whole text.
            return await self._write(
                note.scope,
                scopes | {note.scope},
                note.target,
                lambda edit: edit.consolidate(note.operations),
                author,
            )
        return await self.apply(note.scope, scopes, note.target, note.operations, author)

    async def describe_applied(self, author: Author, scopes: Scopes) -> Report | None:
        """Describe the changes that the author's message has already made.

        A message may be processed again after a crash or for a retry. Returns None if the message
        hasn't made any changes.
        """
        changes = await self._notes.list_changes_by(scopes, author)
        if not changes:
            return None
        sentences = _describe_changes(changes)
        if changes[0].undoes is not None:
            number = str(changes[0].undoes)
            sentences.insert(0, Sentence("note_change_undone", {"numbers": number}))
        usage = await self._describe_usage(scopes, changes[0].target)
        return Report((*sentences, *usage))

    async def undo(
        self, change: NoteChange, scope: Scope, scopes: Scopes, author: Author = TYPED
    ) -> Report:
        """Undo a change. If it belongs to a draft of the curator, undo all changes of the draft.

        Returns a report of the changes and of the size of the file. Raises Refused if a note that
        the change wrote no longer exists.
        """
        if change.target == INSTRUCTIONS:
            # INSTRUCTIONS.md is edited only in its own scope.
            scope = change.scope
        scopes = scopes | {change.scope}
        group = await self._notes.list_group(scopes, change)
        # The same note may have been changed in several files. `NoteEdit.undo` undoes the change in
        # all of them, so one of the logged changes is enough.
        unique_changes = {(member.before, member.after): member for member in group}

        def undo_all(edit: NoteEdit) -> None:
            for member in reversed(unique_changes.values()):
                edit.undo(member)

        report = await self._write(scope, scopes, change.target, undo_all, author)
        numbers = ", ".join(str(member.id) for member in unique_changes.values())
        undone = Sentence("note_change_undone", {"numbers": numbers})
        return Report((undone, *report.sentences))

    async def versions(self, scopes: Scopes, target: str) -> list[NoteVersion]:
        """Return the current notes, each with the change that wrote it, latest last."""
        await self.log_hand_edits(scopes)
        by_entry = await self._notes.load_versions(scopes, target)
        entries = await self.entries(scopes, target)
        versions = [by_entry[entry] for entry in entries if entry in by_entry]
        return sorted(versions, key=lambda version: version.id)

    async def is_stale(self, draft: PendingNote, scopes: Scopes) -> bool:
        """Return whether a note in the draft was changed or pinned since the draft was made."""
        versions = await self.versions(scopes, draft.target)
        changeable = {version.after for version in versions if not version.is_pinned}
        return any(operation.old_text not in changeable for operation in draft.operations)

    async def pin(
        self, scopes: Scopes, text: str, *, is_pinned: bool, targets: Iterable[str] = FILES
    ) -> str:
        """Pin or unpin the note that contains `text`, and return the note.

        The curator never changes a pinned note, and it doesn't expire. Raises Refused unless
        exactly one note matches.
        """
        target, entry, _ = await self.find_note(scopes, text, targets)
        await self._notes.pin(scopes, target, entry, is_pinned=is_pinned)
        return entry

    async def judge(
        self,
        scopes: Scopes,
        text: str,
        author: Author,
        *,
        is_right: bool,
        targets: Iterable[str] = FILES,
    ) -> tuple[str, str]:
        """Record that a person calls the note that contains `text` right or wrong.

        Returns the target and the whole note. A note that is called wrong stays in its file, but
        new prompts leave it out. Raises Refused unless exactly one note matches.
        """
        target, entry, origin = await self.find_note(scopes, text, targets)
        scope = min(scopes) if origin is None else origin.scope
        change = self._build_change(scope, target, author)
        action = "right" if is_right else "wrong"
        await self._notes.log_changes(replace(change, action=action, before=entry, after=entry))
        self._on_change()
        return target, entry

    async def load_verdicts(self, scopes: Scopes) -> dict[tuple[str, str], str]:
        """Return people's verdicts on notes: "right" or "wrong", by their targets and texts."""
        return {
            (change.target, change.after): change.action
            for change in await self._notes.list_verdicts(scopes)
            if change.after is not None
        }

    async def history(
        self, scopes: Scopes, limit: int = 20, before: int = 2**62, after: int = 0
    ) -> list[NoteChange]:
        """Return the latest changes, newest first, including edits by hand.

        With `before`, only changes with lower ids are returned. With `after`, the first changes
        with higher ids are returned.
        """
        await self.log_hand_edits(scopes)
        return await self._notes.list_changes(scopes, limit, before, after)

    async def find_change(self, scopes: Scopes, number: int | None = None) -> NoteChange:
        """Return the change with this number or, without a number, the latest change to undo.

        A change can't be undone if its note was changed again later. Raises Refused if there is no
        such change.
        """
        await self.log_hand_edits(scopes)
        if number is not None:
            if (change := await self._notes.find(scopes, number)) is not None:
                return change
            raise Refused("no_such_change", number=number)
        entries = {target: await self.entries(scopes, target) for target in ALL_FILES}
        for change in await self._notes.list_undoable(scopes):
            current = entries[change.target]
            if change.after is not None:
                can_undo = change.after in current
            else:
                can_undo = change.before not in current
            if can_undo:
                return change
        raise Refused("nothing_to_undo")

    async def find_note(
        self, scopes: Scopes, text: str, targets: Iterable[str] = FILES
    ) -> tuple[str, str, NoteChange | None]:
        """Return the target, the whole text and the last change of the note that contains `text`.

        The change is None if it isn't known. Raises Refused with the candidates unless exactly one
        note matches.
        """
        await self.log_hand_edits(scopes)
        by_target = {target: await self.entries(scopes, target) for target in targets}
        entry = find_entry(text, list(chain.from_iterable(by_target.values())))
        target = next(target for target, entries in by_target.items() if entry in entries)
        return target, entry, await self._notes.find_origin(scopes, entry)

    async def list_news(self, scopes: Scopes, session: Session) -> Sequence[NoteChange]:
        """Return the changes made outside of the session since it started, oldest first."""
        await self.log_hand_edits(scopes)
        return await self._notes.list_changes_since(scopes, session.id, session.started_at)

    async def log_hand_edits(self, scopes: Scopes) -> None:
        """Log the edits made by hand since the last call.

        Does nothing if the files can't be locked.
        """

        async def log_all() -> None:
            async with self._files.lock():
                for target in ALL_FILES:
                    await self._log_hand_edits_of(scopes, target)

        if self._has_changed_files(scopes):
            with contextlib.suppress(Refused):
                await self._run_write(log_all())

    def _has_changed_files(self, scopes: Scopes) -> bool:
        """Return whether a file has changed since edits by hand were last logged."""
        for scope in scopes:
            logged = self._logged_fingerprints.get(scope, {})
            if not self._files.has_folder(scope):
                # A person with many chats has notes in few of them.
                if len(logged) < len(ALL_FILES) or any(logged.values()):
                    return True
                continue
            for target in ALL_FILES:
                fingerprint = self._files.stat_fingerprint(scope, target)
                # The default () differs from every fingerprint, also from None.
                if logged.get(target, ()) != fingerprint:
                    return True
        return False

    async def wait_for_writes(self) -> None:
        """Wait until all writes that have begun are finished."""
        async with self._files.lock():
            return

    async def _write(
        self,
        scope: Scope,
        scopes: Scopes,
        target: str,
        change_notes: Callable[[NoteEdit], None],
        author: Author,
    ) -> Report:
        """Edit notes with `change_notes`, write the files and log the changes.

        Returns a report of the changes and of the size of the file. Raises Refused if a change
        isn't possible, and StaleReadError if words of the author's message were erased meanwhile.
        """
        scopes = frozenset((scope,)) if target == INSTRUCTIONS else scopes | {scope}
        # All changes get the time of the template. By this time, `undo` finds the changes of a
        # draft that belong together.
        template = self._build_change(scope, target, author)

        def plan_edit() -> NoteEdit:
            """Change the notes in memory. Raises Refused if a change isn't possible."""
            edit = NoteEdit(self._read(scopes, target), template)
            change_notes(edit)
            edit.check_size(self._limits[target], ALL_FILES[target])
            for change in edit.changes:
                if problem := self._files.read(change.scope, target).problem:
                    raise Refused(problem.key, **problem.values)
            return edit

        def write_files(edit: NoteEdit) -> None:
            for place in dict.fromkeys(change.scope for change in edit.changes):
                self._files.write(place, target, edit.entries[place])

        async def write() -> Sequence[NoteChange]:
            async with self._files.lock():
                await self._notes.check_epoch(author.epoch)
                await self._log_hand_edits_of(scopes, target)
                edit = await asyncio.to_thread(plan_edit)
                changes = await self._notes.begin_changes(edit.changes, author.call)
                try:
                    await asyncio.to_thread(write_files, edit)
                except Refused:
                    await self._notes.withdraw_changes(changes)
                    raise
                await self._notes.finish_changes(changes)
                return changes

        changes = await self._run_write(write())
        usage = await self._describe_usage(scopes, target)
        return Report((*_describe_changes(changes), *usage))

    async def settle_interrupted_writes(self) -> None:
        """Complete or cancel the changes that a killed process was writing.

        If the file was written, the change is marked as complete. Otherwise the change is deleted
        from the log.
        """

        def is_written(change: NoteChange) -> bool:
            entries = self._files.read(change.scope, change.target).entries
            is_old_text_gone = change.before is None or change.before not in entries
            return is_old_text_gone and (change.after is None or change.after in entries)

        if not await self._notes.list_unfinished():
            return
        async with self._files.lock():
            changes = [each for each in await self._notes.list_unfinished() if not each.skill]
            written_changes = [
                each for each in changes if await asyncio.to_thread(is_written, each)
            ]
            await self._notes.finish_changes(written_changes)
            await self._notes.withdraw_changes(
                [each for each in changes if each not in written_changes]
            )

    async def _log_hand_edits_of(self, scopes: Scopes, target: str) -> None:
        """Log the edits by hand of one target as changes without an author.

        Call this under the lock. A file that can't be read is skipped. A suspicious note stays, and
        the person gets a warning.
        """
        for scope in sorted(scopes):
            fingerprint = await asyncio.to_thread(self._files.stat_fingerprint, scope, target)
            logged = self._logged_fingerprints.setdefault(scope, {})
            if logged.get(target, ()) == fingerprint:
                continue
            await asyncio.to_thread(self._files.delete_leftovers, scope, target)
            entries, problem = await asyncio.to_thread(self._files.read, scope, target)
            if problem is not None:
                continue
            logged_entries = await self._notes.list_entries(scope, target)
            old_entries = [entry for entry in logged_entries if entry not in entries]
            new_entries = [entry for entry in entries if entry not in logged_entries]
            await self._notes.log_changes(
                *self._build_hand_edits(scope, target, old_entries, new_entries)
            )
            warn = self.review.on_warning
            for entry in new_entries:
                if warn is not None and (reason := find_suspicion(entry)):
                    await warn(scope, target, reason, entry)
            logged[target] = fingerprint

    def _build_hand_edits(
        self, scope: Scope, target: str, old_entries: Sequence[str], new_entries: Sequence[str]
    ) -> list[NoteChange]:
        """Return the changes to log for notes that were removed and added by hand.

        If as many notes were added as removed, the person probably reworded them. So the first
        removed note is paired with the first added note, and so on.
        """
        template = self._build_change(scope, target, Author())
        if len(old_entries) == len(new_entries):
            return [
                replace(template, before=before, after=after)
                for before, after in zip(old_entries, new_entries, strict=True)
            ]
        removals = [replace(template, before=before) for before in old_entries]
        additions = [replace(template, after=after) for after in new_entries]
        return [*removals, *additions]

    def _build_change(self, scope: Scope, target: str, author: Author) -> NoteChange:
        """Return a template for changes, with the author and the current time."""
        return NoteChange(
            **author.source_values,
            scope=scope,
            target=target,
            action="edited",
            at=self._clock.now(),
            is_insisted=author.is_insisting,
        )

    async def _run_write(self, write: Coroutine[Any, Any, T]) -> T:
        """Run a write to its end, call `on_change`, and return the result of the write."""
        result = await run_to_completion(write)
        self._on_change()
        return result

    async def _describe_usage(self, scopes: Scopes, target: str) -> list[Sentence]:
        """Say how full a file is, and which files can't be read.

        If the file is nearly full, the text also lists its notes with their sizes.
        """
        entries = await self.entries(scopes, target)
        size, limit = self.measure(target, entries)
        values = {
            "file": ALL_FILES[target],
            "percent": round(100 * size / limit),
            "chars": size,
            "limit": limit,
        }
        sentences = [Sentence("note_file_usage", values)]
        if self.is_nearly_full(target, entries):
            sizes = list_sizes(entries)
            sentences.append(Sentence("note_file_nearly_full", {"sizes": sizes}))
        return [*sentences, *await self.list_problems(scopes)]

    def _read(self, scopes: Scopes, target: str) -> EntriesByScope:
        """Read the notes of one target in all scopes. Blocks; call this in a thread."""
        return {scope: self._files.read(scope, target).entries for scope in sorted(scopes)}


def _apply_all(edit: NoteEdit, operations: Sequence[Operation]) -> None:
    """Apply operations in order. Raises Refused if one of them can't be applied.

    If there are several operations, the error states the number of the refused one.
    """
    for number, operation in enumerate(operations, 1):
        try:
            edit.apply(operation)
        except Refused as refusal:
            if len(operations) == 1:
                raise
            raise Refused("operation_refused", number=number, reason=refusal) from refusal


def _describe_changes(changes: Iterable[NoteChange]) -> list[Sentence]:
    """Return a description of the changes without repetitions."""
    sentences: list[Sentence] = []
    for change in changes:
        if change.before == change.after:
            # The undo of a verdict.
            continue
        sentence = _describe(change)
        if sentence not in sentences:
            sentences.append(sentence)
    return sentences


def _describe(change: NoteChange) -> Sentence:
    """Return a sentence for people about a change."""
    note = change.before if change.after is None else change.after
    # A note that already ends like a sentence needs no full stop.
    is_whole = quote_at_end(note or "").endswith("”")
    if change.after is None:
        key = "note_removed_whole" if is_whole else "note_removed"
    elif change.before is None:
        key = "note_added_whole" if is_whole else "note_added"
    else:
        key = "note_replaced_whole" if is_whole else "note_replaced"
    return Sentence(key, {"note": note})


def _label(path: Path) -> str:
    """Return the path of a file in the form that people see: below the home."""
    return f"memories/{path.parent.name}/{path.name}"
