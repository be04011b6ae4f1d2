"""Looks after state.db while the gateway runs: notices what another process wrote, and tends the text indexes.

Also the scheduled chore that says, while nobody is there, when somebody's notes are nearly full: in private, once a
month at most.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import structlog

from core.errors import StoreError
from core.notes.files import FILES, SEPARATOR
from core.notes.notebook import NEARLY_FULL, Notebook
from core.ports import Clock
from core.search.recall import Recall
from core.store.fact_search import FactSearch
from core.store.people import People
from core.types import Scope
from gateway import texts
from gateway.owner_notices import OwnerNotices

LOOK_EVERY_S = 0.5  # the command line promises that a running gateway notices changes within a second
TEND_EVERY_S = 5.0
STEP_REST_S = 0.05


class Maintenance:
    """`data_version` changes with every write of another process, `changed` is set by this one; then `on_change` is
    awaited. `chores` do one small step a call and say whether there is more to do."""

    def __init__(
        self,
        data_version: Callable[[], Awaitable[int]],
        recall: Recall,
        changed: asyncio.Event,
        on_change: Callable[[], Awaitable[None]],
        chores: Sequence[Callable[[], Awaitable[bool]]] = (),
    ) -> None:
        self._data_version = data_version
        self._changed = changed
        self._on_change = on_change
        self._chores = (recall.tend, *chores)
        self._log = structlog.get_logger("maintenance")

    async def watch(self) -> None:
        """Until cancelled; a failed `on_change` is repeated."""
        known: int | None = None
        is_changed = False
        while True:
            try:
                version = await self._data_version()
                is_changed = is_changed or (known is not None and version != known)
                known = version
                if is_changed:
                    await self._on_change()
                    is_changed = False
            except StoreError as error:
                self._log.error("state.db cannot be read", error=str(error))
                is_changed = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._changed.wait()
            is_changed = is_changed or self._changed.is_set()
            self._changed.clear()

    async def tend(self) -> None:
        """Until cancelled: small steps, so that no message waits for the indexes."""
        while True:
            try:
                has_more = any([await chore() for chore in self._chores])
            except StoreError as error:
                self._log.error("the indexes cannot be tended", error=str(error))
                has_more = False
            await asyncio.sleep(STEP_REST_S if has_more else TEND_EVERY_S)


class NotesChore:
    """`idle_s`: for how long nobody may have said anything; `limits`: characters that the notes may have, by target."""

    def __init__(
        self,
        search: FactSearch,
        idle_s: float,
        notebook: Notebook,
        limits: dict[str, int],
        people: People,
        clock: Clock,
        owner_notices: OwnerNotices,
    ) -> None:
        self._search = search
        self._idle = timedelta(seconds=idle_s)
        self._notebook = notebook
        self._limits = limits
        self._people = people
        self._clock = clock
        self._owner_notices = owner_notices

    async def run(self) -> None:
        """Says it, where nobody has said anything for a while. Raises StoreError."""
        said_at = await self._search.last_said_at()
        if said_at is not None and self._clock.now() - said_at < self._idle:
            return
        seen: set[frozenset[Scope]] = set()
        for scope in await self._notebook.holders():
            scopes = await self._people.scopes(scope)
            if scope.is_room or not scopes or scopes in seen:
                continue
            seen.add(scopes)
            for target in self._limits:
                await self._look_at(target, scope, scopes)

    async def _look_at(self, target: str, scope: Scope, scopes: frozenset[Scope]) -> None:
        """All accounts of a person are shown together, and the limit is for what is shown."""
        limit = self._limits[target]
        used = len(SEPARATOR.join(await self._notebook.entries(scopes, target)))
        if used > NEARLY_FULL * limit:
            await self._owner_notices.tell(
                f"notes:{target}:{min(scopes).key}:{self._clock.now():%Y-%m}",
                texts.NOTES_FULL.format(name=FILES[target], percent=round(100 * used / limit), used=used, limit=limit),
                scope,
            )
