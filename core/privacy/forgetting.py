"""/forget from the question to the receipt: finds what is meant and, after a yes, erases it with all its copies.

Rows are erased by `core/store/erasure.py`, bytes by `erase_bytes.py`; an unfinished list is resumed after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog

from core.errors import Refused, StoreError
from core.notes.notebook import FILES, Notebook
from core.ports import Clock
from core.privacy import erasure_search
from core.privacy.quoting import Quoting
from core.search import filters
from core.store.erasure import ErasureItem, ErasureList, ErasureRequest, Erasures
from core.store.notes import Operation
from core.store.query import SearchQuery
from core.store.sqlite.database import Database
from core.store.sqlite.erase_bytes import ByteErasure
from core.types import Scope

HISTORY, LOG = "terminal_history", "mneme.log"
SHOWN = 8
ABANDONED = timedelta(seconds=30)
"""After this a list that this process does not work on is taken up: the process that began it may be dead."""
PATIENCE_S = 10.0
"""How long a person waits for the bytes; maintenance goes on."""
LATER = "You need not: your yes counts, and I go on with it by myself within a minute."
UNCLEAR = (
    'Say what to forget, as you would look for it with /recall: `/forget Porto`, `/forget "the blue drawer"`, '
    "`/forget ferry before:2026`."
)
_ENTRY = re.compile(r"(?m)^(?=\n# )")
_TERMINAL = Scope.account("terminal", "local")

ForgetCopies = Callable[[Sequence[int], Sequence[int]], Awaitable[Sequence[str]]]
"""Asks the memory services that were told of messages and changes of notes, by id, to erase them; their names."""


class Forgetting:
    def __init__(
        self,
        database: Database,
        notebook: Notebook,
        files: HomeFiles,
        clock: Clock,
        zone: str,
        forget_copies: ForgetCopies | None = None,
    ) -> None:
        self._database = database
        self._erasures = Erasures(database, clock)
        self._bytes = ByteErasure(database)
        self._notebook = notebook
        self._files = files
        self._clock = clock
        self._zone = ZoneInfo(zone)
        self._forget_copies = forget_copies
        self._working: set[str] = set()
        self._log = structlog.get_logger("forgetting")

    async def look(self, text: str, request: ErasureRequest) -> ErasureList | None:
        """What there is to erase, stored for a yes, its beginning `shown`; None when there is nothing. Raises Refused
        when it is unclear what is meant, or something could be overlooked."""
        found = ErasureList(request=request, text=text, token=secrets.token_urlsafe(12))
        words = await self._find(found)
        notes = {entry async for _, _, entry in self._notes(found, words)}
        typed = await asyncio.to_thread(self._files.typed, request.scopes)
        found.count(notes=len(notes), typed=sum(map(words.has_words, typed)))
        if not (found.counts or found.derived):
            return None
        await self._erasures.save(found)
        found.shown += [ErasureItem(kind="note", text=entry, at=self._clock.now()) for entry in notes]
        order = ("note", "fact", "job", "message")
        found.shown = sorted(found.shown, key=lambda item: order.index(item.kind))[:SHOWN]
        return found

    async def erase(self, token: str, request: ErasureRequest) -> ErasureList:
        """Erases a list for good. Raises Refused when it is not this person's, too old, or goes on by itself later."""
        found = await self._erasures.begin(token, request)
        if found is None:
            raise Refused("That question is too old by now, so nothing was erased. Ask again.")
        try:
            await self._work(found)
        except Refused as refusal:
            raise Refused(f"{refusal} {LATER}") from refusal
        except OSError as error:
            raise Refused(f"The files of the notes cannot be used ({error.strerror or error}). {LATER}") from error
        try:
            found.is_clean = await self._bytes.run(PATIENCE_S)
        except StoreError as error:
            # A damaged index is rebuilt by maintenance, which goes on with the bytes then.
            self._log.error("the bytes of what was erased are still there", error=str(error))
        return found

    async def resume(self, before: datetime | None = None) -> int:
        """Finishes what other processes began (before a moment) and left; how many lists those were."""
        left = [found for found in await self._erasures.begun(before) if found.token not in self._working]
        for found in left:
            try:
                await self._work(found)
            except (Refused, OSError) as error:
                self._log.warning("something is not erased yet", reason=str(error))
        return len(left)

    async def tend(self) -> bool:
        """One small step of erasing bytes, True while there is more to do now; takes up what other processes left."""
        await self._erasures.prune()
        await self.resume(self._clock.now() - ABANDONED)
        return await self._bytes.step()

    async def _work(self, found: ErasureList) -> None:
        """Copies outside go first, while the rows still say what to look for; each part can be done twice."""
        if found.is_done:
            return
        self._working.add(found.token)
        try:
            # After this, notes that were being written are in their files or never will be.
            await self._notebook.settle()
            await self._erase_elsewhere(found)
            await self._erasures.finish(found)
            self._log.info("something was erased", messages=len(found.ids["messages"]), derived=found.derived)
        finally:
            self._working.discard(found.token)

    async def _find(self, found: ErasureList) -> Quoting:
        """Fills the list; gives its words, for a member of a room none: there they are others' words too."""
        whole = SearchQuery(text=found.text, scopes=found.request.scopes, asker=found.request.account)
        query = filters.read(whole, found.made_at or self._clock.now(), self._zone).query
        if not found.text.strip() or query == replace(whole, text=""):
            raise Refused(UNCLEAR)
        quoting = await self._database.read(partial(erasure_search.find, found=found, query=query))
        return Quoting(()) if found.request.is_limited else quoting

    async def _erase_elsewhere(self, found: ErasureList) -> None:
        """Finds it again and erases all of it outside of state.db."""
        words = await self._find(found) if found.text else Quoting(())
        stuck = []
        for scope, target, entry in [note async for note in self._notes(found, words)]:
            found.notes.add(entry)
            removal = [Operation(action="remove", old_text=entry)]
            try:
                await self._notebook.apply(scope, frozenset({scope}), target, removal)
            except OSError:
                stuck.append(FILES[target])
        if self._forget_copies is not None:
            messages = [*found.ids["messages"], *found.ids["repeats"]]
            found.asked = tuple(await self._forget_copies(messages, found.ids["note_changes"]))
        quoting = words.over([*found.texts, *found.notes])
        stuck += await asyncio.to_thread(self._files.erase, found.request.scopes, quoting)
        # Waiting for a file that nobody can write would hold up every answer here for ever.
        found.stuck = tuple(dict.fromkeys(stuck))

    async def _notes(self, found: ErasureList, words: Quoting) -> AsyncIterator[tuple[Scope, str, str]]:
        """Scope, target and text of the notes that are on the list or have the words."""
        for scope in sorted(found.request.scopes):
            for target in FILES:
                for entry in await self._notebook.entries(frozenset({scope}), target):
                    if entry in found.notes or words.has_words(entry):
                        yield scope, target, entry


class HomeFiles:
    """What was typed in the terminal, and the log."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def typed(self, scopes: frozenset[Scope]) -> list[str]:
        """What was typed in the terminal, if that is of these scopes."""
        return list(filter(None, map(_typed, self._entries()))) if _TERMINAL in scopes else []

    def erase(self, scopes: frozenset[Scope], quoting: Quoting) -> list[str]:
        """Erases what repeats what was said, or was typed with the words; the names of files that cannot be written."""
        kept: dict[Path, list[str]] = {}
        for path in self._home.glob(f"{LOG}*"):
            # Words of people are logged by mistake only, and a single one may be one of ours.
            kept[path] = [line for line in _read(path).splitlines(keepends=True) if not quoting.repeats(line)]
        if _TERMINAL in scopes:
            entries = [(entry, _typed(entry)) for entry in self._entries()]
            kept[self._home / HISTORY] = [
                entry for entry, typed in entries if not (quoting.has_words(typed) or quoting.copies(typed))
            ]
        return [path.name for path, parts in sorted(kept.items()) if not _is_rewritten(path, "".join(parts))]

    def _entries(self) -> list[str]:
        """Of the history (prompt_toolkit: a blank line, the time behind #, the text behind +)."""
        return _ENTRY.split(_read(self._home / HISTORY))


def _typed(entry: str) -> str:
    return "".join(line[1:] for line in entry.splitlines(keepends=True) if line.startswith("+")).strip()


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _is_rewritten(path: Path, text: str) -> bool:
    """In place, so that a process with the file open goes on appending to it; False where it cannot be."""
    content = text.encode("utf-8", "replace")
    try:
        if path.is_file() and path.stat().st_size != len(content):
            with path.open("r+b") as file:
                file.write(content)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
    except OSError:
        return False
    return True
