"""The curated notes: a MEMORY.md and a USER.md for each scope, small enough to stand in every system prompt.

Entries are separated by a line with ``§``. Files are read anew each time, so one edited by hand is honoured. A write is
durable when it returns and is logged with what stood there before. Nothing here decides who may see which scope.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock

from core.errors import Refused
from core.memory.guard import suspicion
from core.ports import Clock, Notes
from core.records import Author, NoteChange
from core.types import Scope

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
SEPARATOR = "\n§\n"
_LOCK_TIMEOUT_S = 10.0


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

        def change(own: list[str], shown: list[str]) -> tuple[list[str], str | None, str | None]:
            if content in shown:
                raise Refused(f"That is noted already: “{content}”.")
            self._fit([*shown, content], target, content)
            return [*own, content], None, content

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
        """Replaces the one entry that contains `old_text`. Raises Refused, with the candidates, when there is not
        exactly one."""
        content = self._clean(content)

        def change(own: list[str], shown: list[str]) -> tuple[list[str], str | None, str | None]:
            old = self._one(own, old_text)
            self._fit([content if entry == old else entry for entry in shown], target, content)
            return [content if entry == old else entry for entry in own], old, content

        return await self._write(scope, scopes, target, "replace", change, author)

    async def remove(
        self, scope: Scope, scopes: frozenset[Scope], target: str, old_text: str, author: Author | None = None
    ) -> str:
        """Removes the one entry that contains `old_text`. Raises Refused as `replace` does."""

        def change(own: list[str], _shown: list[str]) -> tuple[list[str], str | None, str | None]:
            old = self._one(own, old_text)
            return [entry for entry in own if entry != old], old, None

        return await self._write(scope, scopes, target, "remove", change, author)

    async def _write(
        self,
        scope: Scope,
        scopes: frozenset[Scope],
        target: str,
        action: str,
        change: Callable[[list[str], list[str]], tuple[list[str], str | None, str | None]],
        author: Author | None,
    ) -> str:
        self._check(target)

        def work() -> tuple[str | None, str | None]:
            folder = self._folder / quote(scope.key, safe="")
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(folder / ".lock", timeout=_LOCK_TIMEOUT_S):
                own = self._read(scope, target)
                after, old, new = change(own, self._shown(scopes | {scope}, target))
                _replace_file(folder / FILES[target], SEPARATOR.join(after) + "\n" if after else "")
            return old, new

        before, after = await asyncio.to_thread(work)
        await self._notes.log(
            NoteChange(
                scope=scope,
                target=target,
                action=action,
                before=before,
                after=after,
                at=self._clock.now(),
                account=author.account if author else None,
                message_id=author.message_id if author else None,
            )
        )
        fullness = await self.heading(scopes | {scope}, target)
        done = {"add": f"Noted: “{after}”.", "replace": f"Now noted: “{after}”.", "remove": f"Removed: “{before}”."}
        return f"{done[action]} {FILES[target]} is {fullness}."

    def _shown(self, scopes: frozenset[Scope], target: str) -> list[str]:
        return list(dict.fromkeys(entry for scope in sorted(scopes) for entry in self._read(scope, target)))

    def _read(self, scope: Scope, target: str) -> list[str]:
        path = self._folder / quote(scope.key, safe="") / FILES[target]
        try:
            content = path.read_text(encoding="utf-8", errors="replace")
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
    def _one(entries: Sequence[str], old_text: str) -> str:
        wanted = old_text.strip()
        if not wanted:
            raise Refused("Say which note: give a part of its text that no other note has.")
        found = [entry for entry in entries if entry == wanted] or [entry for entry in entries if wanted in entry]
        if not found:
            folded = wanted.casefold()
            found = [entry for entry in entries if folded in entry.casefold()]
        if len(found) == 1:
            return found[0]
        candidates = found or entries
        listed = "\n".join(f"- {entry}" for entry in candidates) or "(there are no notes yet)"
        reason = f"{len(found)} notes contain" if found else "No note contains"
        raise Refused(f"{reason} “{wanted}”. The notes are:\n{listed}")


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
