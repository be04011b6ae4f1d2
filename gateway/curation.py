"""The chore of the curator: a portion of it when nobody is there, and the proposal to shorten notes that are nearly
full. Asked regularly by the scheduler; tells the owner alone, and once a month at most."""

from __future__ import annotations

from core.memory.curator import QUIET, Curator
from core.memory.notebook import FILES, NEARLY_FULL, SEPARATOR, Notebook
from core.memory.rota import Rota
from core.ports import Clock, People
from gateway.doorbell import LOCAL, Doorbell

EVERY_S = 300.0


class Curation:
    """`limits` are the characters that the notes may have, by target; `doorbell` tells the owner."""

    def __init__(
        self,
        curator: Curator,
        rota: Rota,
        notebook: Notebook,
        limits: dict[str, int],
        people: People,
        clock: Clock,
        doorbell: Doorbell,
    ) -> None:
        self._curator = curator
        self._rota = rota
        self._notebook = notebook
        self._limits = limits
        self._people = people
        self._clock = clock
        self._doorbell = doorbell

    async def run(self) -> None:
        """One portion. Raises StoreError."""
        await self._curator.tend()
        said_at = await self._rota.last_said_at()
        now = self._clock.now()
        if said_at is not None and now - said_at < QUIET:
            return
        for target, limit in self._limits.items():
            entries = await self._notebook.entries(await self._people.scopes(LOCAL), target)
            used = len(SEPARATOR.join(entries))
            if used > NEARLY_FULL * limit:
                await self._doorbell.tell(
                    f"notes:{target}:{now:%Y-%m}",
                    f"My notes in {FILES[target]} are {round(100 * used / limit)} % full ({used:,} of {limit:,} "
                    "characters). Shall I put together what belongs together? Ask me to, or look through them with "
                    "`/memory`.",
                )
