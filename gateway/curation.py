"""The chore of the curator: a portion of it when nobody is there, and the proposal to shorten notes that are nearly
full. Asked regularly by the scheduler; tells whose notes they are, in private, and once a month at most."""

from __future__ import annotations

from core.facts.curator import Curator
from core.notes.notebook import FILES, NEARLY_FULL, SEPARATOR, Notebook
from core.ports import Clock, People
from core.types import Scope
from gateway.owner_notices import Doorbell


class Curation:
    """`limits` are the characters that the notes may have, by target; `doorbell` tells people."""

    def __init__(
        self,
        curator: Curator,
        notebook: Notebook,
        limits: dict[str, int],
        people: People,
        clock: Clock,
        doorbell: Doorbell,
    ) -> None:
        self._curator = curator
        self._notebook = notebook
        self._limits = limits
        self._people = people
        self._clock = clock
        self._doorbell = doorbell

    async def run(self) -> None:
        """One portion. Raises StoreError."""
        await self._curator.tend()
        if not await self._curator.is_quiet():
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
        """The notes of one person: all his accounts are shown together, and the limit is for what is shown."""
        limit = self._limits[target]
        used = len(SEPARATOR.join(await self._notebook.entries(scopes, target)))
        if used > NEARLY_FULL * limit:
            await self._doorbell.tell(
                f"notes:{target}:{min(scopes).key}:{self._clock.now():%Y-%m}",
                f"My notes in {FILES[target]} are {round(100 * used / limit)} % full ({used:,} of {limit:,} "
                "characters). Shall I put together what belongs together? Ask me to, or look through them with "
                "`/memory`.",
                scope,
            )
