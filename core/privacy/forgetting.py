"""/forget from the question to the receipt: finds what is meant and, after a yes, erases it with all its copies.

Rows are erased by `core/store/erasure.py`, bytes by `core/store/sqlite/erase_bytes.py`; here are the order of the work,
the notes, the files beside state.db, and the other holders of copies. An unfinished list is resumed after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog

from core.errors import Refused, StoreError
from core.notes.files import FILES
from core.notes.notebook import Notebook
from core.ports import Clock
from core.privacy import erasure_search
from core.privacy.erasure_search import ErasureItem
from core.privacy.quoting import Quoting
from core.search import filters
from core.store.erasure import ErasureList, ErasureRequest, Erasures
from core.store.notes import Operation
from core.store.query import SearchQuery
from core.store.sqlite.database import Database
from core.store.sqlite.erase_bytes import ByteErasure
from core.store.sqlite.text_index import LOOSE_ROWS
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


ForgetCopies = Callable[[Sequence[int], Sequence[int]], Awaitable[str | None]]
"""Erases the copies of messages and changes of notes, by their ids, that memory services hold; returns a sentence about
what is left, if any. Called again after a crash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """What was found to erase, under the `token` that a yes carries. `counts`: (name, number); `first`: its beginning;
    `derived`: how many rows repeat it; `has_more`: some was left for another time."""

    token: str
    counts: tuple[tuple[str, int], ...]
    first: tuple[ErasureItem, ...]
    derived: int = 0
    has_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReceipt:
    """What was erased. `is_clean`: no byte of it is left in state.db and its log; else it goes when a program that
    reads an older state is done. `pending`: sentences about what others still have."""

    counts: tuple[tuple[str, int], ...]
    derived: int
    is_clean: bool
    pending: tuple[str, ...] = ()


class Forgetting:
    """`files` stand beside state.db; `zone`: IANA name."""

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
        self._caches: list[Callable[[], None]] = []
        self._working: set[str] = set()
        self._log = structlog.get_logger("forgetting")

    def connect(self, invalidate: Callable[[], None]) -> None:
        """`invalidate` drops what was looked up for later turns."""
        self._caches.append(invalidate)

    def invalidate(self) -> None:
        """Drops what was looked up before an erasure, of any process."""
        for invalidate in self._caches:
            invalidate()

    async def look(self, text: str, request: ErasureRequest) -> ErasurePreview | None:
        """Stores the list of what there is to erase; None when there is nothing. Raises Refused when it is unclear what
        is meant, or something could be overlooked."""
        if not text.strip():
            raise Refused(UNCLEAR)
        found = ErasureList(request=request, text=text)
        shown, words = await self._find(found)
        notes = {entry async for _, _, entry in self._notes(found, words)}
        typed = await asyncio.to_thread(self._files.count, request.scopes, words)
        messages = sum(item.kind == "message" for item in shown)
        found.count(messages=messages, notes=len(notes), typed=typed)
        if not (found.counts or found.derived):
            return None
        token = secrets.token_urlsafe(12)
        await self._erasures.save(token, found)
        now, order = self._clock.now(), ("note", "fact", "job", "message")
        items = [*shown, *(ErasureItem(kind="note", text=entry, at=now) for entry in notes)]
        return ErasurePreview(
            token=token,
            counts=tuple(found.counts.items()),
            first=tuple(sorted(items, key=lambda item: order.index(item.kind))[:SHOWN]),
            derived=found.derived,
            has_more=len(found.ids["messages"]) == LOOSE_ROWS,
        )

    async def erase(self, token: str, request: ErasureRequest) -> ErasureReceipt:
        """Erases a list for good. Raises Refused when it is not this person's, or too old. What others make of it
        meanwhile is not stored."""
        found = await self._erasures.begin(token, request)
        if found is None:
            raise Refused("That question is too old by now, so nothing was erased. Ask again.")
        try:
            pending = await self._work(token)
        except Refused as refusal:
            # Another program holds the notes; maintenance takes it up again.
            raise Refused(f"{refusal} {LATER}") from refusal
        except OSError as error:
            raise Refused(f"The files of the notes cannot be used ({error.strerror or error}). {LATER}") from error
        try:
            is_clean = await self._bytes.run(PATIENCE_S)
        except StoreError as error:
            # A damaged index is rebuilt by maintenance, which goes on with the bytes then.
            self._log.error("the bytes of what was erased are still there", error=str(error))
            is_clean = False
        counts = tuple(found.counts.items())
        return ErasureReceipt(counts=counts, derived=found.derived, is_clean=is_clean, pending=pending)

    async def resume(self, before: datetime | None = None) -> int:
        """Finishes what other processes began (before a moment) and left; how many lists those were."""
        left = [token for token in await self._erasures.begun(before) if token not in self._working]
        for token in left:
            try:
                await self._work(token)
            except (Refused, OSError) as error:
                self._log.warning("something is not erased yet", reason=str(error))
        return len(left)

    async def tend(self) -> bool:
        """One small step of erasing bytes; True while there is more to do now. Takes up the unfinished lists of other
        processes, since work waits for them."""
        await self._erasures.prune()
        await self.resume(self._clock.now() - ABANDONED)
        return await self._bytes.step()

    async def _work(self, token: str) -> tuple[str, ...]:
        """Sentences about what is left to others. Copies outside go first, while the rows still say what to look for;
        each part can be done twice."""
        self._working.add(token)
        try:
            # After this, notes that were being written are in their files or never will be.
            await self._notebook.settle()
            found = await self._erasures.load(token)
            if found is None:
                return ()
            pending = await self._erase_elsewhere(found)
            await self._erasures.finish(token, found)
            self.invalidate()
            self._log.info("something was erased", messages=len(found.ids["messages"]), derived=found.derived)
            return pending
        finally:
            self._working.discard(token)

    async def _find(self, found: ErasureList) -> tuple[list[ErasureItem], Quoting]:
        """Fills the list; what of it to show, and its words: in a room they are others' words too, so there are none
        for a member. Raises Refused when it is unclear what is meant."""
        whole = SearchQuery(text=found.text, scopes=found.request.scopes, asker=found.request.account)
        query = filters.read(whole, found.made_at or self._clock.now(), self._zone).query
        if query == replace(whole, text=""):
            raise Refused(UNCLEAR)
        find = partial(erasure_search.find, found=found, query=query)
        shown, quoting = await self._database.read(find)
        return shown, Quoting(()) if found.request.is_limited else quoting

    async def _erase_elsewhere(self, found: ErasureList) -> tuple[str, ...]:
        """Finds it again and erases all of it outside of state.db; sentences about what is left there."""
        words = (await self._find(found))[1] if found.text else Quoting(())
        scopes, notes = found.request.scopes, [note async for note in self._notes(found, words)]
        left: list[str | None] = []
        stuck: list[str] = []
        for scope, target, entry in notes:
            removal = [Operation(action="remove", old_text=entry)]
            try:
                await self._notebook.apply(scope, frozenset({scope}), target, removal)
            except OSError:
                stuck.append(FILES[target])
        found.notes.update(entry for _, _, entry in notes)
        if self._forget_copies is not None:
            messages = [*found.ids["messages"], *found.ids["repeats"]]
            left.append(await self._forget_copies(messages, found.ids["note_changes"]))
        stuck += await asyncio.to_thread(self._files.erase, scopes, words.over([*found.texts, *found.notes]))
        # Waiting for a file that nobody can write would hold up every answer here for ever.
        left += [f"`{name}` cannot be written, so some of it still stands there." for name in dict.fromkeys(stuck)]
        return tuple(sentence for sentence in left if sentence)

    async def _notes(self, found: ErasureList, words: Quoting) -> AsyncIterator[tuple[Scope, str, str]]:
        """Scope, target and text of the notes that are on the list or have the words."""
        for scope in sorted(found.request.scopes):
            for target in FILES:
                for entry in await self._notebook.entries(frozenset({scope}), target):
                    if entry in found.notes or words.has_words(entry):
                        yield scope, target, entry


class HomeFiles:
    """The files of a home beside state.db and the notebook in which words of people may stand: what was typed in the
    terminal, and the log."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def count(self, scopes: frozenset[Scope], words: Quoting) -> int:
        """How much was typed in the terminal with these words, if that is of these scopes."""
        return sum(words.has_words(_typed(entry)) for entry in self._entries(scopes))

    def erase(self, scopes: frozenset[Scope], quoting: Quoting) -> list[str]:
        """Erases what repeats what was said, or was typed with the words; returns the names of files that cannot be
        written."""
        kept: dict[Path, list[str]] = {}
        for path in self._home.glob(f"{LOG}*"):
            # Words of people are logged by mistake only, and a single one may be one of ours.
            kept[path] = [line for line in _read(path).splitlines(keepends=True) if not quoting.repeats(line)]
        if _TERMINAL in scopes:
            entries = [(entry, _typed(entry)) for entry in self._entries(scopes)]
            kept[self._home / HISTORY] = [
                entry for entry, typed in entries if not (quoting.has_words(typed) or quoting.copies(typed))
            ]
        stuck = []
        for path, parts in sorted(kept.items()):
            try:
                _rewrite(path, "".join(parts))
            except OSError:
                stuck.append(path.name)
        return stuck

    def held(self, scopes: frozenset[Scope]) -> Iterator[dict[str, object]]:
        """What was typed in these scopes, for an export."""
        for typed in filter(None, map(_typed, self._entries(scopes))):
            yield {"kind": "typed in the terminal", "text": typed}

    def _entries(self, scopes: frozenset[Scope]) -> list[str]:
        """Of the history (prompt_toolkit: a blank line, the time behind #, the text behind +)."""
        return _ENTRY.split(_read(self._home / HISTORY)) if _TERMINAL in scopes else []


def _typed(entry: str) -> str:
    return "".join(line[1:] for line in entry.splitlines(keepends=True) if line.startswith("+")).strip()


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _rewrite(path: Path, text: str) -> None:
    """In place, so that a process with the file open goes on appending to it."""
    content = text.encode("utf-8", "replace")
    if path.is_file() and path.stat().st_size != len(content):
        with path.open("r+b") as file:
            file.write(content)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
