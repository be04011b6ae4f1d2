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
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Protocol
from urllib.parse import quote
from zoneinfo import ZoneInfo

import structlog

from core.errors import Refused, StoreError
from core.notes.files import FILES
from core.notes.notebook import Notebook
from core.ports import Clock
from core.privacy import erasure_search
from core.privacy.erasure_search import ErasureItem
from core.privacy.quoting import Quoting, digest
from core.search import filters
from core.store import epoch
from core.store.erasure import ErasureList, ErasureRequest, Erasures
from core.store.query import SearchQuery
from core.store.sqlite.database import Database
from core.store.sqlite.erase_bytes import ByteErasure
from core.store.sqlite.text_index import LOOSE_ROWS
from core.types import Scope

HISTORY, LOG = "terminal_history", "mneme.log"
SHOWN = 8
ASKED_MOST = 1_000
ABANDONED = timedelta(seconds=30)
"""After this a list that this process does not work on is taken up: the process that began it may be dead."""
PATIENCE_S = 10.0
"""How long a person waits for the bytes; maintenance goes on."""
LATER = "You need not: your yes counts, and I go on with it by myself within a minute."
UNCLEAR = (
    'Say what to forget, as you would look for it with /recall: `/forget Porto`, `/forget "the blue drawer"`, '
    "`/forget ferry before:2026`."
)
_SEPARATOR = re.compile(r"(?m)^\s*§\s*$")
_TERMINAL = Scope.account("terminal", "local")


class CopyHolder(Protocol):
    """Holds copies of what was said outside of state.db, such as a memory service. Called again after a crash."""

    async def forget(
        self, scopes: frozenset[Scope], message_ids: Sequence[int], note_ids: Sequence[int] = ()
    ) -> str | None:
        """Erases the copies of these messages and changes of notes; returns a sentence about what is left, if any."""

    def invalidate(self) -> None:
        """Drops what was looked up for later turns: the rows are gone."""


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
    """`files` stand beside state.db, `holders` have copies elsewhere; `zone`: IANA name."""

    def __init__(
        self,
        database: Database,
        notebook: Notebook,
        files: HomeFiles,
        clock: Clock,
        zone: str,
        holders: Sequence[CopyHolder] = (),
    ) -> None:
        self._database = database
        self._erasures = Erasures(database, clock)
        self._bytes = ByteErasure(database)
        self._notebook = notebook
        self._files = files
        self._clock = clock
        self._zone = ZoneInfo(zone)
        self._holders = tuple(holders)
        self._asked: dict[str, Quoting] = {}
        """By token: the words that were asked for, held in memory and never written down."""
        self._working: set[str] = set()
        self._log = structlog.get_logger("forgetting")

    def connect(self, holder: CopyHolder) -> None:
        self._holders = (*self._holders, holder)

    def invalidate(self) -> None:
        """Makes all holders drop what was looked up before an erasure, of any process."""
        for holder in self._holders:
            holder.invalidate()

    async def look(self, text: str, request: ErasureRequest) -> ErasurePreview | None:
        """Stores the list of what there is to erase; None when there is nothing. Raises Refused when it is unclear what
        is meant, or something could be overlooked."""
        whole = SearchQuery(text=text, scopes=request.scopes, asker=request.account)
        query = filters.read(whole, self._clock.now(), self._zone).query
        if not text.strip() or (query.text == "" and query == whole):
            raise Refused(UNCLEAR)
        found, shown, quoting = await self._database.read(
            lambda connection: erasure_search.find(connection, query, request)
        )
        words = Quoting(()) if request.is_limited else quoting
        notes = {entry async for _, _, entry in self._notes(request.scopes, found, words)}
        found.ids["entries"] = sorted({*found.ids["entries"], *map(digest, notes)})
        found.notes = len(notes)
        found.ids["typed"] = await asyncio.to_thread(self._files.find, request.scopes, words)
        token = secrets.token_urlsafe(12)
        await self._erasures.save(token, found, request)
        if found.is_empty:
            return None
        self._asked[token] = quoting.over(())
        while len(self._asked) > ASKED_MOST:
            self._asked.pop(next(iter(self._asked)))
        now, order = self._clock.now(), ("note", "fact", "job", "message")
        items = [*shown, *(ErasureItem(kind="note", text=entry, at=now) for entry in notes)]
        return ErasurePreview(
            token=token,
            counts=found.counts,
            first=tuple(sorted(items, key=lambda item: order.index(item.kind))[:SHOWN]),
            derived=found.derived,
            has_more=len(found.ids["messages"]) == LOOSE_ROWS,
        )

    async def erase(self, token: str, request: ErasureRequest) -> ErasureReceipt:
        """Erases a list for good. Raises Refused when it is not this person's, or too old. What others make of it
        meanwhile is not stored; the caller may hold nothing of it."""
        try:
            with epoch.holding(None):
                receipt = await self._erased(token, request)
        except Refused:
            # It may have begun, and what is said of that has no word of it.
            epoch.hold(None)
            raise
        if (held := epoch.held()) is not None:
            scopes = held.scopes
            epoch.hold(await self._database.read(lambda connection: epoch.taken(connection, scopes)) or held)
        return receipt

    async def resume(self) -> int:
        """Finishes the lists of the process before; how many those were."""
        begun = await self._erasures.begun()
        for token in begun:
            await self._take_up(token)
        return len(begun)

    async def tend(self) -> bool:
        """One small step of erasing bytes; True while there is more to do now. Takes up the unfinished lists of other
        processes, since work waits for them."""
        for token in await self._erasures.begun(self._clock.now() - ABANDONED):
            if token not in self._working:
                await self._take_up(token)
        return await self._bytes.step()

    async def _erased(self, token: str, request: ErasureRequest) -> ErasureReceipt:
        found = await self._erasures.begin(token, request)
        if found is None:
            raise Refused("That question is too old by now, so nothing was erased. Ask again.")
        try:
            derived, pending = await self._work(token) or (found.derived, ())
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
        return ErasureReceipt(counts=found.counts, derived=derived, is_clean=is_clean, pending=pending)

    async def _take_up(self, token: str) -> None:
        try:
            await self._work(token)
        except (Refused, OSError) as error:
            self._log.warning("something is not erased yet", reason=str(error))

    async def _work(self, token: str) -> tuple[int, tuple[str, ...]] | None:
        """How many copies went, and what is left to others; None when it was finished before. Copies outside go first,
        while the rows still say what to look for; each part can be done twice."""
        self._working.add(token)
        try:
            # After this, notes that were being written are in their files or never will be.
            await self._notebook.settle()
            words = self._asked.get(token, Quoting(()))
            found = await self._database.read(lambda connection: erasure_search.widen(connection, token, words))
            if found is None:
                return None
            await self._erasures.update(token, found)
            derived, pending = found.derived, await self._erase_copies(found, words)
            found.ids["note_changes"] = await self._database.read(
                lambda connection: erasure_search.versions(connection, found)
            )
            await self._erasures.update(token, found)
            while await self._erasures.step(token):
                pass
            self.invalidate()
            self._log.info("something was erased", messages=len(found.ids["messages"]), derived=derived)
            self._asked.pop(token, None)
            return derived, pending
        finally:
            self._working.discard(token)

    async def _erase_copies(self, found: ErasureList, words: Quoting) -> tuple[str, ...]:
        """Erases all outside of state.db; sentences about what is left there."""
        scopes = frozenset(Scope(key=key) for key in found.scopes)
        words = Quoting(()) if found.is_limited else words
        note_ids = found.ids["note_changes"]
        pending = [await holder.forget(scopes, found.messages, note_ids) for holder in self._holders]
        notes = [note async for note in self._notes(scopes, found, words)]
        texts = [*await self._erasures.texts(found), *(entry for _, _, entry in notes)]
        stuck = [*await asyncio.to_thread(self._files.erase, scopes, texts, words, found.ids["typed"])]
        for scope, target, entry in notes:
            try:
                await self._notebook.remove(scope, frozenset({scope}), target, entry)
            except OSError:
                stuck.append(FILES[target])
        # Waiting for a file that nobody can write would hold up every answer here for ever.
        pending += [f"`{name}` cannot be written, so some of it still stands there." for name in dict.fromkeys(stuck)]
        return tuple(sentence for sentence in pending if sentence)

    async def _notes(
        self, scopes: frozenset[Scope], found: ErasureList, words: Quoting
    ) -> AsyncIterator[tuple[Scope, str, str]]:
        """Scope, target and text of the notes that are on the list or have the words."""
        digests = set(found.ids["entries"])
        for scope in sorted(scopes):
            for target in FILES:
                for entry in await self._notebook.entries(frozenset({scope}), target):
                    if digest(entry) in digests or words.has_words(entry):
                        yield scope, target, entry


class HomeFiles:
    """The files of a home beside state.db and the notebook in which words of people may stand: what was typed in the
    terminal, the log, copies of notes."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def find(self, scopes: frozenset[Scope], words: Quoting) -> list[str]:
        """Digests of what was typed in the terminal with these words, if that is of these scopes."""
        return [digest(typed) for _, typed in self._typed(scopes) if words.has_words(typed)]

    def erase(
        self, scopes: frozenset[Scope], texts: Sequence[str], words: Quoting, digests: Collection[str]
    ) -> Sequence[str]:
        """Erases what repeats `texts`, has the `words`, or was typed with one of these digests; returns the names of
        files that cannot be written."""
        quoting, whole = words.over(texts), {text.strip() for text in texts}

        def is_meant(text: str) -> bool:
            return text.strip() in whole or quoting.repeats(text) or quoting.has_words(text)

        stuck = []
        for path in sorted(self._home.glob(f"{LOG}*")):
            # Words of people are logged by mistake only, and a single one may be one of ours.
            if not _did(_rewrite, path, [line for line in _lines(path) if not quoting.repeats(line)]):
                stuck.append(path)
        if _TERMINAL in scopes:
            entries = [
                lines for lines, typed in self._typed(scopes) if not is_meant(typed) and digest(typed) not in digests
            ]
            if not _did(_rewrite, self._home / HISTORY, list(chain.from_iterable(entries))):
                stuck.append(self._home / HISTORY)
        for path in self._copies(scopes):
            if any(map(is_meant, _SEPARATOR.split("".join(_lines(path))))) and not _did(Path.unlink, path, True):
                stuck.append(path)
        return [str(path.relative_to(self._home)) for path in stuck]

    def held(self, scopes: frozenset[Scope]) -> Iterator[dict[str, object]]:
        """What was typed in these scopes, and copies of their notes, for an export."""
        for _, typed in self._typed(scopes):
            if typed:
                yield {"kind": "typed in the terminal", "text": typed}
        for path in self._copies(scopes):
            yield {"kind": "copy of notes", "name": path.name, "text": "".join(_lines(path))}

    def _typed(self, scopes: frozenset[Scope]) -> Iterator[tuple[list[str], str]]:
        """The lines and the text of each entry of the history (prompt_toolkit: a blank line, time, text behind +)."""
        entries: list[list[str]] = []
        for line in _lines(self._home / HISTORY) if _TERMINAL in scopes else ():
            if not entries or (line.strip() == "" and any(one.startswith("+") for one in entries[-1])):
                entries.append([])
            entries[-1].append(line)
        for lines in entries:
            yield lines, "".join(line[1:] for line in lines if line.startswith("+")).strip()

    def _copies(self, scopes: frozenset[Scope]) -> Iterator[Path]:
        for scope in sorted(scopes):
            for path in sorted((self._home / "memories" / quote(scope.key, safe="")).glob("*")):
                if path.name not in FILES.values() and path.is_file():
                    yield path


def _lines(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    return []


def _rewrite(path: Path, lines: Sequence[str]) -> None:
    """In place, so that a process with the file open goes on appending to it."""
    content = "".join(lines).encode("utf-8", "replace")
    if path.is_file() and path.stat().st_size != len(content):
        with path.open("r+b") as file:
            file.write(content)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())


def _did(work: Callable[..., None], *arguments: object) -> bool:
    with contextlib.suppress(OSError):
        work(*arguments)
        return True
    return False
