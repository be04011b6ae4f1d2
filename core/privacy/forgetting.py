"""/forget from the question to the receipt: looks for what is meant, and after a yes erases it with all its copies.

Rows are erased by `core/store/erasure.py`, bytes by `core/store/sqlite/erase_bytes.py`; here are the order of the
work, the notes, and who else has copies. A list that was begun is finished after a crash. Arguments are never kept.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

import structlog

from core.errors import Refused, StoreError
from core.notes.notebook import FILES, Notebook
from core.ports import Clock
from core.privacy.files import HomeFiles
from core.privacy.quoting import Quoting, digest
from core.privacy.roles import CopyHolder
from core.search import filters
from core.store import epoch
from core.store.erasure import Erasure
from core.store.erasure_list import ErasureItem, ErasureList, ErasurePreview, ErasureReceipt, ErasureRequest
from core.store.query import SearchQuery
from core.store.sqlite.erase_bytes import ByteErasure
from core.store.sqlite.message_search import LOOSE_ROWS
from core.types import Scope

SHOWN = 8
ASKED_MOST = 1_000
ABANDONED = timedelta(seconds=30)
"""What was begun so long ago and is worked off by nobody here was begun by a process that may be dead."""
PATIENCE_S = 10.0
"""How long a person waits for the bytes; the caretaker goes on after it."""
LATER = "You need not: your yes counts, and I go on with it by myself within a minute."
UNCLEAR = (
    'Say what to forget, as you would look for it with /recall: `/forget Porto`, `/forget "the blue drawer"`, '
    "`/forget ferry before:2026`."
)


class Forgetting:
    """`papers` takes what was said out of files beside state.db (history of the terminal, log); it is told whose scopes
    it was. `keepers` have copies elsewhere."""

    def __init__(
        self,
        erasure: Erasure,
        compaction: ByteErasure,
        notebook: Notebook,
        papers: HomeFiles,
        clock: Clock,
        zone: str,
        keepers: Sequence[CopyHolder] = (),
    ) -> None:
        self._erasure = erasure
        self._compaction = compaction
        self._notebook = notebook
        self._papers = papers
        self._clock = clock
        self._zone = ZoneInfo(zone)
        self._keepers = tuple(keepers)
        self._asked: dict[str, Quoting] = {}
        """By token: the words that were asked for, known as long as the process lives."""
        self._working: set[str] = set()
        self._log = structlog.get_logger("forgetting")

    def connect(self, keeper: CopyHolder) -> None:
        """Somebody else who has copies, known once he is made."""
        self._keepers = (*self._keepers, keeper)

    def let_go(self) -> None:
        """Something was erased, here or by another process: what was looked up beforehand is dropped."""
        for keeper in self._keepers:
            keeper.let_go()

    async def look(self, text: str, claim: ErasureRequest) -> ErasurePreview | None:
        """What there is to erase, kept as a list under the token that is given back; None when there is nothing.
        Raises Refused when it cannot be told what is meant."""
        if not text.strip():
            raise Refused(UNCLEAR)
        whole = SearchQuery(text=text, scopes=claim.scopes, asker=claim.account)
        query = filters.read(whole, self._clock.now(), self._zone).query
        if query.text == "" and query == whole:
            raise Refused(UNCLEAR)
        found, shown, quoting = await self._erasure.look(query, claim)
        notes = await self._notes(found, claim, quoting)
        found.entries = sorted({*found.entries, *(digest(note.text) for note in notes)})
        found.notes = len(notes)
        if not claim.is_limited:
            found.typed = await asyncio.to_thread(self._papers.find, claim.scopes, quoting)
        token = secrets.token_urlsafe(12)
        await self._erasure.keep(token, found, claim)
        if found.is_empty:
            return None
        self._asked[token] = quoting.over(())
        while len(self._asked) > ASKED_MOST:
            self._asked.pop(next(iter(self._asked)))
        order = ("note", "fact", "job", "message")
        ordered = sorted([*shown, *notes], key=lambda trace: order.index(trace.kind))
        return ErasurePreview(
            token=token,
            counts=found.counts,
            first=tuple(ordered[:SHOWN]),
            derived=found.derived,
            has_more=len(found.messages) == LOOSE_ROWS,
        )

    async def erase(self, token: str, claim: ErasureRequest) -> ErasureReceipt:
        """Erases a list, for good. Raises Refused when it is not his, or too old. What is being made of it meanwhile
        is not kept; whoever calls this holds nothing of it."""
        try:
            with epoch.holding(None):
                receipt = await self._erased(token, claim)
        except Refused:
            # It may have begun, and what is said of that has no word of it.
            epoch.hold(None)
            raise
        if (held := epoch.held()) is not None:
            epoch.hold(await self._erasure.renewed(held))
        return receipt

    async def _erased(self, token: str, claim: ErasureRequest) -> ErasureReceipt:
        found = await self._erasure.begin(token, claim)
        if found is None:
            raise Refused("That question is too old by now, so nothing was erased. Ask again.")
        try:
            found, pending = await self._work(token) or (found, ())
        except Refused as refusal:
            # Another program holds the notes; the caretaker takes it up again.
            raise Refused(f"{refusal} {LATER}") from refusal
        except OSError as error:
            raise Refused(f"The files of the notes cannot be used ({error.strerror or error}). {LATER}") from error
        try:
            is_clean = await self._compaction.run(PATIENCE_S)
        except StoreError as error:
            # An index that is damaged is built anew by its upkeep; the caretaker goes on then.
            self._log.error("the bytes of what was erased are still there", error=str(error))
            is_clean = False
        return ErasureReceipt(counts=found.counts, derived=found.derived, is_clean=is_clean, pending=pending)

    async def resume(self) -> int:
        """Finishes what a process before this one had begun; how many lists that were."""
        begun = await self._erasure.begun()
        for token in begun:
            await self._take_up(token)
        return len(begun)

    async def tend(self) -> bool:
        """One small step of what is left of the bytes; True while there is more to do now. Takes up what another
        process has begun and not finished, since work waits for that."""
        for token in await self._erasure.begun(self._clock.now() - ABANDONED):
            if token not in self._working:
                await self._take_up(token)
        return await self._compaction.step()

    async def _take_up(self, token: str) -> None:
        try:
            await self._work(token)
        except (Refused, OSError) as error:
            # The notes are locked by another program, or their folder cannot be used; the caretaker tries again.
            self._log.warning("something is not erased yet", reason=str(error))

    async def _work(self, token: str) -> tuple[ErasureList, tuple[str, ...]] | None:
        """Outside first, as long as the rows can still say what to look for; each part can be done twice. What went,
        and what is left to others; None when it is worked off already."""
        self._working.add(token)
        try:
            # A note that was being written when nothing more might be is in its file now, or never will be.
            await self._notebook.settle()
            words = self._asked.get(token, Quoting(()))
            found = await self._erasure.widen(token, words)
            done = None if found is None else (found, await self._worked(token, found, words))
            self._asked.pop(token, None)
            return done
        finally:
            self._working.discard(token)

    async def _worked(self, token: str, found: ErasureList, words: Quoting) -> tuple[str, ...]:
        scopes = frozenset(Scope(key=key) for key in found.scopes)
        messages = [*found.messages, *found.repeats]
        pending = [await keeper.forget(scopes, messages, found.note_changes) for keeper in self._keepers]
        notes = [note async for note in self._present(scopes, found, words)]
        texts = [*await self._erasure.texts(found), *(entry for _, _, entry in notes)]
        said = Quoting(()) if found.is_limited else words
        stuck = [*await asyncio.to_thread(self._papers.erase, scopes, texts, said, found.typed)]
        for scope, target, entry in notes:
            try:
                await self._notebook.remove(scope, frozenset({scope}), target, entry)
            except OSError:
                stuck.append(FILES[target])
        while await self._erasure.step(token):
            pass
        self.let_go()
        self._log.info("something was erased", messages=len(found.messages), derived=found.derived)
        # Whoever waited for a file that nobody can write would wait for ever, and every answer here with him.
        pending += [f"`{name}` cannot be written, so some of it still stands there." for name in dict.fromkeys(stuck)]
        return tuple(sentence for sentence in pending if sentence)

    async def _notes(self, found: ErasureList, claim: ErasureRequest, quoting: Quoting) -> list[ErasureItem]:
        """The notes that stand in the files now and are meant; of a room's only what he has written himself."""
        known = set(found.entries)
        notes: dict[str, ErasureItem] = {}
        for scope in sorted(claim.scopes):
            for target in FILES:
                for entry in await self._notebook.entries(frozenset({scope}), target):
                    if digest(entry) in known or (not claim.is_limited and quoting.has_words(entry)):
                        notes[entry] = ErasureItem(kind="note", text=entry, at=self._clock.now())
        return list(notes.values())

    async def _present(
        self, scopes: frozenset[Scope], found: ErasureList, words: Quoting
    ) -> AsyncIterator[tuple[Scope, str, str]]:
        """Scope, target and text of the notes on the list, and of those that have come since, which stand in the
        files."""
        digests = set(found.entries)
        for scope in sorted(scopes):
            for target in FILES:
                for entry in await self._notebook.entries(frozenset({scope}), target):
                    if digest(entry) in digests or (not found.is_limited and words.has_words(entry)):
                        yield scope, target, entry
