"""/approve, /status, /whoami: the house and who lives in it.

The lines of /status: what works, what waits, how big everything is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from core.errors import Refused
from core.markup.render import escape
from core.ports import Clock
from core.store.people import Pairing, People
from core.store.sync import SyncQueue
from core.types import Answer, Command, CommandSpec, Option
from gateway.check import standing
from gateway.commands.context import CommandContext
from gateway.services import STATE, Services

_APPROVE = CommandSpec(
    name="approve",
    description="Owner: let somebody in who showed you a code",
    options=(Option(name="code", description="the eight characters"),),
    is_private=True,
)
_STATUS = CommandSpec(name="status", description="What works and what does not", is_private=True)
_WHOAMI = CommandSpec(name="whoami", description="Who you are to me, with the ids that settings need", is_private=True)


class PeopleCommands:
    """`report` gives the lines of /status that only the process knows."""

    specs = (_APPROVE, _STATUS, _WHOAMI)

    def __init__(
        self,
        people: People,
        clock: Clock,
        report: Callable[[], Awaitable[Sequence[str]]],
    ) -> None:
        self._people = people
        self._clock = clock
        self._report = report

    def is_reading(self, command: Command) -> bool:
        """None of them touches a conversation."""
        return True

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        if command.name in ("approve", "status") and caller.is_owner and caller.is_overlooked:
            raise Refused("In a room everybody would read the answer. Ask me in a direct chat.")
        match command.name:
            case "approve":
                return await self._approve(command, caller)
            case "status":
                lines = await self._report() if caller.is_owner else ["I am here and listening."]
                return Answer(text="\n".join(f"- {line}" for line in lines))
            case _:
                return Answer(text=_whoami(caller))

    async def _approve(self, command: Command, caller: CommandContext) -> Answer:
        if not caller.is_owner:
            raise Refused("Only my owner can let somebody in.")
        now = self._clock.now()
        code = command.arguments.strip().upper()
        if not code:
            pending = await self._people.pending(now)
            listed = "\n".join(f"- {_who(pairing)}" for pairing in pending)
            return Answer(text=f"Waiting to be let in:\n{listed}" if pending else "Nobody is waiting to be let in.")
        pairing = await self._people.approve(code, now)
        if pairing is None:
            raise Refused("That code is wrong, was used, or is older than an hour. Ask for a new one.")
        return Answer(text=f"{_who(pairing)} may talk to me now, in a conversation and with a memory apart from yours.")


def _who(pairing: Pairing) -> str:
    return f"{escape(pairing.name)} ({pairing.account.platform}, id {pairing.account.user_id})"


def _whoami(caller: CommandContext) -> str:
    inbound = caller.inbound
    role = "my owner" if caller.is_owner else "somebody I talk to"
    place = "this room" if caller.scope.is_room else "you alone"
    seen = len(caller.scopes)
    reach = f" What I know here comes from {seen} of your accounts and rooms." if seen > 1 else ""
    return (
        f"You are {escape(inbound.sender.name)}, {role}. Your id on {inbound.address.platform.title()} is "
        f"`{inbound.address.platform}:{inbound.sender.id}`; this place is `{inbound.address.key}`.\n\n"
        f"What is said here is kept for {place} (`{caller.scope.key}`).{reach}"
    )


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


class StatusReport:
    """Looks at `services` when asked; `supervisor` and `memory` are told once there are such."""

    def __init__(self, services: Services, model: str) -> None:
        self._services = services
        self._model = model
        self.supervisor: _Watched | None = None
        self.memory: _Remembering | None = None

    async def lines(self) -> Sequence[str]:
        """One sentence a line, platforms first."""
        services = self._services
        states = self.supervisor.states if self.supervisor else {}
        counts = await services.outbox.counts()
        pending = await services.people.pending(services.clock.now())
        jobs = await services.jobs.active()
        size = (services.settings.home / STATE).stat().st_size
        lines = [f"**{platform}**: {state}" for platform, state in states.items() if platform != "cron"]
        lines.append(f"**model**: {self._model}")
        if self.memory is not None:
            kept = ", ".join(f"{escape(name)} {escape(state)}" for name, state in self.memory.states.items())
            lines.append(f"**memory**: {kept}")
            lines.extend(f"**memory**: {escape(warning)}" for warning in self.memory.warnings)
            for name in self.memory.externals:
                if still := await standing(SyncQueue(services.database, services.clock), name):
                    lines.append(f"**memory**: {escape(name)}: {escape(still)}")
        lines.append(f"**reminders and schedules**: {len(jobs)} active")
        waiting = ", ".join(f"{counts[name]} {name}" for name in ("due", "dead") if counts.get(name))
        lines.append(f"**outbox**: {waiting or 'nothing waits'}")
        lines.append(f"**state.db**: {size / 1e6:.1f} MB in {services.settings.home}")
        if pending:
            lines.append(f"**waiting to be let in**: {len(pending)}; /approve lists them")
        return lines
