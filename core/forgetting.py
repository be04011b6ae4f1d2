"""/forget from the question to the receipt: looks for what is meant, and after a yes erases it with all its copies.

Rows are erased by `core/store/erasure.py`, bytes by `core/store/compaction.py`; here are the order of the work, the
notes, and who else has copies. A list that was begun is finished after a crash. Arguments are never kept.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from zoneinfo import ZoneInfo

import structlog

from core import filters
from core.errors import Refused, StoreError
from core.keeper import Keeper
from core.memory.notebook import FILES, Notebook
from core.ports import Clock
from core.quoting import Quoting
from core.records import Claim, Receipt, Trace, Traces
from core.search import Query
from core.store.compaction import Compaction
from core.store.erasure import Erasure
from core.store.erasure_list import ErasureList
from core.store.erasure_search import digest
from core.store.matches import LOOSE_ROWS
from core.types import Scope

SHOWN = 8
PATIENCE_S = 10.0
"""How long a person waits for the bytes; the caretaker goes on after it."""
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
        compaction: Compaction,
        notebook: Notebook,
        papers: Callable[[frozenset[Scope], Sequence[str]], None],
        clock: Clock,
        zone: str,
        keepers: Sequence[Keeper] = (),
    ) -> None:
        self._erasure = erasure
        self._compaction = compaction
        self._notebook = notebook
        self._papers = papers
        self._clock = clock
        self._zone = ZoneInfo(zone)
        self._keepers = tuple(keepers)
        self._log = structlog.get_logger("forgetting")

    def connect(self, keeper: Keeper) -> None:
        """Somebody else who has copies, known once he is made."""
        self._keepers = (*self._keepers, keeper)

    async def look(self, text: str, claim: Claim) -> Traces | None:
        """What there is to erase, kept as a list under the token that is given back; None when there is nothing.
        Raises Refused when it cannot be told what is meant."""
        if not text.strip():
            raise Refused(UNCLEAR)
        whole = Query(text=text, scopes=claim.scopes, asker=claim.account)
        query = filters.read(whole, self._clock.now(), self._zone).query
        if query.text == "" and query == whole:
            raise Refused(UNCLEAR)
        found, shown, quoting = await self._erasure.look(query, claim)
        notes = await self._notes(found, claim, quoting)
        found.entries = sorted({*found.entries, *(digest(note.text) for note in notes)})
        found.notes = len(notes)
        token = secrets.token_urlsafe(12)
        await self._erasure.keep(token, found, claim)
        if found.is_empty:
            return None
        order = ("note", "fact", "job", "message")
        ordered = sorted([*shown, *notes], key=lambda trace: order.index(trace.kind))
        return Traces(
            token=token,
            counts=found.counts,
            first=tuple(ordered[:SHOWN]),
            derived=found.derived,
            has_more=len(found.messages) == LOOSE_ROWS,
        )

    async def erase(self, token: str, claim: Claim) -> Receipt:
        """Erases a list, for good. Raises Refused when it is not his, or too old."""
        found = await self._erasure.begin(token, claim)
        if found is None:
            raise Refused("That question is too old by now, so nothing was erased. Ask again.")
        pending = await self._work(token, found)
        try:
            is_clean = await self._compaction.run(PATIENCE_S)
        except StoreError as error:
            # An index that is damaged is built anew by its upkeep; the caretaker goes on then.
            self._log.error("the bytes of what was erased are still there", error=str(error))
            is_clean = False
        return Receipt(counts=found.counts, derived=found.derived, is_clean=is_clean, pending=pending)

    async def resume(self) -> int:
        """Finishes what a process before this one had begun; how many lists that were."""
        begun = await self._erasure.begun()
        for token, found in begun.items():
            await self._work(token, found)
        return len(begun)

    async def tend(self) -> bool:
        """One small step of what is left of the bytes; True while there is more to do now."""
        return await self._compaction.step()

    async def _work(self, token: str, found: ErasureList) -> tuple[str, ...]:
        """Outside first, as long as the rows can still say what to look for; each part can be done twice."""
        scopes = frozenset(Scope(key=key) for key in found.scopes)
        pending = [await keeper.forget(scopes, found.messages) for keeper in self._keepers]
        notes = [note async for note in self._present(scopes, set(found.entries))]
        texts = [*await self._erasure.texts(found), *(entry for _, _, entry in notes)]
        if texts:
            await asyncio.to_thread(self._papers, scopes, texts)
        for scope, target, entry in notes:
            await self._notebook.remove(scope, frozenset({scope}), target, entry)
        while await self._erasure.step(token):
            pass
        for keeper in self._keepers:
            keeper.let_go()
        self._log.info("something was erased", messages=len(found.messages), derived=found.derived)
        return tuple(sentence for sentence in pending if sentence)

    async def _notes(self, found: ErasureList, claim: Claim, quoting: Quoting) -> list[Trace]:
        """The notes that stand in the files now and are meant; of a room's only what he has written himself."""
        known = set(found.entries)
        notes: dict[str, Trace] = {}
        for scope in sorted(claim.scopes):
            for target in FILES:
                for entry in await self._notebook.entries(frozenset({scope}), target):
                    if digest(entry) in known or (not claim.is_limited and quoting.has_words(entry)):
                        notes[entry] = Trace(kind="note", text=entry, at=self._clock.now())
        return list(notes.values())

    async def _present(self, scopes: frozenset[Scope], digests: set[str]) -> AsyncIterator[tuple[Scope, str, str]]:
        """Scope, target and text of the notes with these digests that stand in the files."""
        for scope in sorted(scopes):
            for target in FILES if digests else ():
                for entry in await self._notebook.entries(frozenset({scope}), target):
                    if digest(entry) in digests:
                        yield scope, target, entry
