"""Finds what was edited by hand in the files of notes, and logs it as changes by nobody.

Looks only where a file is not as it was at the last look. The caller has the lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import zip_longest

from core.notes.files import Pages
from core.ports import Clock
from core.records import NoteChange
from core.review.review import Custody
from core.review.versions_role import Versions
from core.types import Scope


class Handwriting:
    """Compares `pages` with what their `versions` come to; `custody` is shown what stands there."""

    def __init__(self, pages: Pages, versions: Versions, custody: Custody, clock: Clock) -> None:
        self._pages = pages
        self._versions = versions
        self._custody = custody
        self._clock = clock
        self._seen: dict[tuple[Scope, str], tuple[int, ...] | None] = {}

    async def is_seen(self, places: Sequence[tuple[Scope, str]]) -> bool:
        """Whether all of these files are as they were at the last look. Needs no lock."""
        if not all(place in self._seen for place in places):
            return False
        states = await asyncio.to_thread(lambda: [self._pages.state(*place) for place in places])
        return states == [self._seen[place] for place in places]

    async def edits(self, scope: Scope, target: str) -> list[NoteChange]:
        """Logs where a file differs from what its versions come to; nothing while it cannot be read."""
        state = await asyncio.to_thread(self._pages.state, scope, target)
        if (scope, target) in self._seen and self._seen[scope, target] == state:
            return []
        await asyncio.to_thread(self._pages.sweep, scope, target)
        if await asyncio.to_thread(self._pages.trouble, scope, target) is not None:
            return []
        there = await asyncio.to_thread(self._pages.read, scope, target)
        known = await self._versions.standing(scope, target)
        gone = [entry for entry in known if entry not in there]
        new = [entry for entry in there if entry not in known]
        # As many gone as came: notes that were reworded, in their order.
        pairs = (
            zip_longest(gone, new) if len(gone) == len(new) else [*((e, None) for e in gone), *((None, e) for e in new)]
        )
        made = [self._edited(scope, target, before, after) for before, after in pairs]
        for change in made:
            await self._versions.log(change)
        await self._custody.look(scope, target, there)
        self._seen[scope, target] = state
        return made

    def _edited(self, scope: Scope, target: str, before: str | None, after: str | None) -> NoteChange:
        return NoteChange(scope=scope, target=target, action="edited", before=before, after=after, at=self._clock.now())
