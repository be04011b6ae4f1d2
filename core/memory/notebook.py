"""The curated notes: a MEMORY.md and a USER.md for each scope, small enough to stand in every system prompt.

Entries are separated by a line with ``§``. Files are read anew each time, so one edited by hand is honoured. A write is
durable when it returns and is logged with what stood there before, also when whoever asked for it is cancelled.
Nothing here decides who may see which scope.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import structlog
from filelock import FileLock, Timeout

from core.errors import Refused
from core.memory.guard import suspicion
from core.ports import Clock, Notes
from core.records import Author, NoteChange
from core.types import Scope

T = TypeVar("T")

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
SEPARATOR = "\n§\n"
_LOCK_TIMEOUT_S = 10.0

_log = structlog.get_logger("notebook")

_Held = dict[Scope, list[str]]
"""The entries of one target, by the scope whose file they stand in."""


class Notebook:
    """Notes under `home`/memories. `limits` are characters for each target, counted over all entries shown together."""

    def __init__(self, home: Path, notes: Notes, clock: Clock, limits: dict[str, int]) -> None:
        self._folder = home / "memories"
        self._notes = notes
        self._clock = clock
        self._limits = limits

    async def entries(self, scopes: frozenset[Scope], target: str) -> list[str]:
        """All entries of these scopes, each once, in the order of the scopes' keys and of the files."""
        self._check(target)
        return await asyncio.to_thread(self._shown, scopes, target)

    async def heading(self, scopes: frozenset[Scope], target: str) -> str:
        """``37 % full, 814/2,200 characters``."""
        return self._fullness(await self.entries(scopes, target), target)

    async def add(
        self, scope: Scope, scopes: frozenset[Scope], target: str, content: str, author: Author | None = None
    ) -> str:
        """Adds an entry to the notes of `scope`; returns a sentence with the live state. Raises Refused with what to do
        when it is empty, suspicious, there already, or does not fit."""
        content = self._clean(content)

        def change(held: _Held) -> tuple[str | None, str | None]:
            shown = _together(held)
            if content in shown:
                raise Refused(f"That is noted already: “{content}”.")
            self._fit([*shown, content], target, content)
            return None, content

        return await self._write(scope, scopes, target, "add", change, author)

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
        content = self._clean(content)

        def change(held: _Held) -> tuple[str | None, str | None]:
            old = self._one(held, scope, old_text)
            self._fit([content if entry == old else entry for entry in _together(held)], target, content)
            return old, content

        return await self._write(scope, scopes, target, "replace", change, author)

    async def remove(
        self, scope: Scope, scopes: frozenset[Scope], target: str, old_text: str, author: Author | None = None
    ) -> str:
        """Removes the one entry that contains `old_text`. Finds it and raises Refused as `replace` does."""

        def change(held: _Held) -> tuple[str | None, str | None]:
            return self._one(held, scope, old_text), None

        return await self._write(scope, scopes, target, "remove", change, author)

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
        action: str,
        change: Callable[[_Held], tuple[str | None, str | None]],
        author: Author | None,
    ) -> str:
        """`change` gives the entry that goes and the one that comes. An entry that goes, goes from every scope that has
        it: it is shown once, so it must not stay behind under another account."""
        self._check(target)

        def work() -> tuple[str | None, str | None, list[Scope]]:
            with self._locked():
                held = {place: self._read(place, target) for place in sorted(scopes | {scope})}
                before, after = change(held)
                places = [scope] if before is None else [place for place in held if before in held[place]]
                for place in places:
                    self._keep(place, target, _changed(held[place], before, after))
            return before, after, places

        async def write() -> tuple[str | None, str | None]:
            before, after, places = await asyncio.to_thread(work)
            for place in places:
                await self._notes.log(
                    NoteChange(
                        scope=place,
                        target=target,
                        action=action,
                        before=before,
                        after=after,
                        at=self._clock.now(),
                        account=author.account if author else None,
                        message_id=author.message_id if author else None,
                    )
                )
            return before, after

        before, after = await _unparted(write())
        fullness = await self.heading(scopes | {scope}, target)
        done = {"add": f"Noted: “{after}”.", "replace": f"Now noted: “{after}”.", "remove": f"Removed: “{before}”."}
        return f"{done[action]} {FILES[target]} is {fullness}."

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One lock over all scopes: what fits depends on all that are shown together."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with FileLock(self._folder / ".lock", timeout=_LOCK_TIMEOUT_S):
                yield
        except Timeout as error:
            raise Refused("The notes are being changed by another program; try again in a moment.") from error

    def _keep(self, scope: Scope, target: str, entries: Sequence[str]) -> None:
        path = self._path(scope, target)
        path.parent.mkdir(exist_ok=True, mode=0o700)
        _replace_file(path, SEPARATOR.join(entries) + "\n" if entries else "")

    def _path(self, scope: Scope, target: str) -> Path:
        return self._folder / quote(scope.key, safe="") / FILES[target]

    def _shown(self, scopes: frozenset[Scope], target: str) -> list[str]:
        return _together({scope: self._read(scope, target) for scope in sorted(scopes)})

    def _read(self, scope: Scope, target: str) -> list[str]:
        try:
            # Editors on Windows open a file with a byte order mark, which is no part of the first note.
            content = self._path(scope, target).read_text(encoding="utf-8-sig", errors="replace")
        except FileNotFoundError:
            return []
        entries = (entry.strip() for entry in content.replace("\r\n", "\n").split(SEPARATOR))
        return list(dict.fromkeys(entry for entry in entries if entry))

    def _fit(self, entries: Sequence[str], target: str, content: str) -> None:
        used, limit = _size(entries), self._limits[target]
        if used > limit:
            others = _size([entry for entry in entries if entry != content])
            listed = "\n".join(f"- {len(entry)} characters: {entry}" for entry in entries if entry != content)
            raise Refused(
                f"That would make {FILES[target]} {used:,} characters, over its limit of {limit:,}; "
                f"{max(0, limit - others - len(SEPARATOR)):,} would fit. Shorten, replace or remove entries first:\n"
                f"{listed}"
            )

    def _fullness(self, entries: Sequence[str], target: str) -> str:
        used, limit = _size(entries), self._limits[target]
        return f"{round(100 * used / limit)} % full, {used:,}/{limit:,} characters"

    @staticmethod
    def _check(target: str) -> None:
        if target not in FILES:
            raise Refused(f"There is no “{target}” to note in; use memory (what was learned) or user (the person).")

    @staticmethod
    def _clean(content: str) -> str:
        content = content.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n").strip()
        if not content:
            raise Refused("There is nothing to note: give the text.")
        if "§" in content.split("\n"):
            raise Refused("A note cannot contain a line with § alone: that is what separates the notes.")
        if reason := suspicion(content):
            raise Refused(f"Not noted: it contains {reason}, and notes are read as instructions. Reword it.")
        return content

    @staticmethod
    def _one(held: _Held, scope: Scope, old_text: str) -> str:
        """The entry that is exactly `old_text`, else the only one of `scope` that contains it, else of the others."""
        wanted = old_text.strip()
        if not wanted:
            raise Refused("Say which note: give a part of its text that no other note has.")
        shown = _together(held)
        if wanted in shown:
            return wanted
        others = _together({place: entries for place, entries in held.items() if place != scope})
        found = _containing(held[scope], wanted) or _containing(others, wanted)
        if len(found) == 1:
            return found[0]
        listed = "\n".join(f"- {entry}" for entry in found or shown) or "(there are no notes yet)"
        reason = f"{len(found)} notes contain" if found else "No note contains"
        raise Refused(f"{reason} “{wanted}”. The notes are:\n{listed}")


def _together(held: _Held) -> list[str]:
    """All entries as they are shown: each once."""
    return list(dict.fromkeys(entry for entries in held.values() for entry in entries))


def _containing(entries: Sequence[str], wanted: str) -> list[str]:
    """Those with `wanted` in them as written; if there are none, in any case."""
    folded = wanted.casefold()
    return [entry for entry in entries if wanted in entry] or [entry for entry in entries if folded in entry.casefold()]


def _changed(entries: Sequence[str], before: str | None, after: str | None) -> list[str]:
    if before is None:
        return [*entries, *([] if after is None else [after])]
    return [kept for entry in entries if (kept := after if entry == before else entry) is not None]


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


def _size(entries: Sequence[str]) -> int:
    return len(SEPARATOR.join(entries))


def _replace_file(path: Path, content: str) -> None:
    """Writes beside, forces it to the disk and renames, so that a crash leaves the old file or the new one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".note-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
