"""The lines of /status: what works, what waits, how big everything is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from core.markup.render import escape
from core.store.sync_queue import Errands
from gateway.provider_status import standing
from gateway.services import STATE, House


class _Watched(Protocol):
    @property
    def states(self) -> Mapping[str, str]: ...


class _Remembering(Protocol):
    @property
    def externals(self) -> Sequence[str]: ...

    @property
    def warnings(self) -> Sequence[str]: ...

    @property
    def states(self) -> Mapping[str, str]: ...


class Report:
    """Looks at `house` when asked; `supervisor` and `memory` are told once there are such."""

    def __init__(self, house: House, model: str) -> None:
        self._house = house
        self._model = model
        self.supervisor: _Watched | None = None
        self.memory: _Remembering | None = None

    async def lines(self) -> Sequence[str]:
        """One sentence a line, platforms first."""
        house = self._house
        states = self.supervisor.states if self.supervisor else {}
        counts = await house.outbox.counts()
        pending = await house.people.pending(house.clock.now())
        jobs = await house.jobs.active()
        size = (house.settings.home / STATE).stat().st_size
        lines = [f"**{platform}**: {state}" for platform, state in states.items() if platform != "cron"]
        lines.append(f"**model**: {self._model}")
        if self.memory is not None:
            kept = ", ".join(f"{escape(name)} {escape(state)}" for name, state in self.memory.states.items())
            lines.append(f"**memory**: {kept}")
            lines.extend(f"**memory**: {escape(warning)}" for warning in self.memory.warnings)
            for name in self.memory.externals:
                if still := await standing(Errands(house.database, house.clock), name):
                    lines.append(f"**memory**: {escape(name)}: {escape(still)}")
        lines.append(f"**reminders and schedules**: {len(jobs)} active")
        waiting = ", ".join(f"{counts[name]} {name}" for name in ("due", "dead") if counts.get(name))
        lines.append(f"**outbox**: {waiting or 'nothing waits'}")
        lines.append(f"**state.db**: {size / 1e6:.1f} MB in {house.settings.home}")
        if pending:
            lines.append(f"**waiting to be let in**: {len(pending)}; /approve lists them")
        return lines
