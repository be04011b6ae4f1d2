"""/approve, /status, /whoami: how things stand, and who may talk to the assistant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.agent.offline import MODEL as OFFLINE
from core.errors import Refused
from core.markup.markdown import escape
from core.text.sanitize import on_one_line
from core.types import Answer, Command
from gateway import texts
from gateway.commands.context import CommandContext, announced
from gateway.services import STATE, Services

if TYPE_CHECKING:
    from core.memory.manager import MemoryManager
    from gateway.supervisor import Supervisor


class StatusCommands:
    specs = announced("approve", "status", "whoami")

    def __init__(self, services: Services, report: StatusReport) -> None:
        self._services = services
        self._report = report

    async def run(self, command: Command, context: CommandContext) -> Answer:
        if command.name in ("approve", "status") and context.is_owner and context.is_public:
            raise Refused(texts.NOT_IN_A_ROOM)
        match command.name:
            case "approve":
                if not context.is_owner:
                    raise Refused(texts.ONLY_THE_OWNER_LETS_IN)
                return await let_in(self._services, command.arguments.strip())
            case "status":
                lines = await self._report.lines() if context.is_owner else ["I am here and listening."]
                return Answer(text="\n".join(f"- {line}" for line in lines))
        text = texts.whoami(
            context.inbound.sender.name,
            context.account,
            context.inbound.address.key,
            context.scope.key,
            is_owner=context.is_owner,
            is_room=context.scope.is_room,
            seen=len(context.scopes),
        )
        return Answer(text=text)


async def let_in(services: Services, code: str, *, as_owner: bool = False) -> Answer:
    """Lets in whoever was shown this code, as the owner where `as_owner`; without one, lists who waits."""
    now = services.clock.now()
    if not code:
        names = [
            f"- {escape(on_one_line(one.name))} ({one.account.platform}, id {one.account.user_id})"
            for one in await services.people.pending(now)
        ]
        return Answer(text="\n".join(["Waiting to be let in:", *names]) if names else texts.NOBODY_WAITS)
    pairing = await services.people.approve(code, now, as_owner)
    if pairing is None:
        raise Refused(texts.WRONG_CODE)
    return Answer(text=texts.let_in(on_one_line(pairing.name), pairing.account, is_owner=as_owner))


class StatusReport:
    """Looks at `services` when asked; `supervisor` and `memory` are set once they exist."""

    def __init__(self, services: Services, model: str) -> None:
        self._services = services
        self._model = model
        self.supervisor: Supervisor | None = None
        self.memory: MemoryManager | None = None

    async def lines(self) -> Sequence[str]:
        services = self._services
        states = self.supervisor.states if self.supervisor else await services.platforms()
        names = services.settings.model
        asked = f"{names.chat}, for small tasks {names.helper}"
        counts = await services.outbox.counts()
        queued = ", ".join(f"{counts[name]} {name}" for name in ("due", "dead") if counts.get(name))
        # What was written last stands in the write-ahead log until it is checkpointed.
        files = (services.settings.home / f"{STATE}{suffix}" for suffix in ("", "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        lines = [
            *(f"**{platform}**: {state}" for platform, state in states.items() if platform != "cron"),
            f"**model**: {'none, I answer without one' if self._model == OFFLINE else asked}",
            *(await self._memory_lines(self.memory) if self.memory is not None else ()),
            f"**reminders and schedules**: {len(await services.jobs.active())} active",
            f"**outbox**: {queued or 'empty'}",
            f"**state.db**: {size / 1e6:.1f} MB in {services.settings.home}",
        ]
        if pending := await services.people.pending(services.clock.now()):
            lines.append(f"**waiting to be let in**: {len(pending)}; `/approve` lists them")
        return lines

    async def _memory_lines(self, memory: MemoryManager) -> list[str]:
        kept = ", ".join(f"{escape(name)} {escape(state)}" for name, state in memory.states.items())
        lines = [kept, *map(escape, memory.warnings)]
        for name in memory.externals:
            if state := texts.sync_state(await self._services.sync_queue.counts(name)):
                lines.append(f"{escape(name)}: {escape(state)}")
        return [f"**memory**: {line}" for line in lines]
