"""/status and /usage: how things stand; what was spent on models, what the cache saved of it, why a prefix missed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from core.errors import Refused
from core.markup.markdown import escape
from core.store.sync import PLATFORM as MEMORY
from core.store.usage import Spending
from core.types import Answer, Command, Payer
from gateway import texts
from gateway.commands.registry import CommandContext, announced, button
from gateway.services import STATE, Services

if TYPE_CHECKING:
    from core.memory.manager import MemoryManager

LATELY = timedelta(days=30)


class StatusCommands:
    """Looks at `services` when asked; without a `memory` nothing is said of it."""

    specs = announced("status")

    def __init__(self, services: Services, memory: MemoryManager | None) -> None:
        self._services = services
        self._memory = memory

    async def run(self, command: Command, context: CommandContext) -> Answer:
        if context.is_owner and context.is_public:
            raise Refused(texts.NOT_IN_A_ROOM)
        lines = await self.lines() if context.is_owner else ["I am here and listening."]
        return Answer(text="\n".join(f"- {line}" for line in lines))

    async def lines(self) -> Sequence[str]:
        services = self._services
        settings = services.settings
        names = settings.model
        model = f"{names.chat}, for small tasks {names.helper}" if settings.has_model else "none, I answer without one"
        states = await services.platforms()
        # Of what runs here the memory says more.
        here = {f"{MEMORY} {name}" for name in self._memory.externals} if self._memory else {}
        counts = await services.outbox.counts()
        queued = ", ".join(f"{many} {name}" for name, many in (("due", counts.due), ("dead", counts.dead)) if many)
        # What was written last stands in the write-ahead log until it is checkpointed.
        files = (settings.home / f"{STATE}{suffix}" for suffix in ("", "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        lines = [
            *(f"**{name}**: {state}" for name, state in states.items() if name != "cron" and name not in here),
            f"**model**: {model}",
            *(await self._memory_lines(self._memory) if self._memory is not None else ()),
            *await self._embedding_lines(),
            f"**reminders and schedules**: {len(await services.jobs.active())} active",
            f"**outbox**: {queued or 'empty'}",
            f"**state.db**: {size / 1e6:.1f} MB in {settings.home}",
        ]
        if pending := await services.people.pending(services.clock.now()):
            lines.append(f"**waiting to be let in**: {len(pending)}; `/approve` lists them")
        return lines

    async def _embedding_lines(self) -> list[str]:
        found = self._services.embeddings
        return [] if found is None else [f"**embeddings**: {escape(await found.state())}"]

    async def _memory_lines(self, memory: MemoryManager) -> list[str]:
        kept = ", ".join(f"{escape(name)} {escape(state)}" for name, state in memory.states.items())
        lines = [kept, *map(escape, memory.warnings)]
        for name in memory.externals:
            if state := texts.sync_state(await self._services.outbox.counts(f"{MEMORY}:{name}:")):
                lines.append(f"{escape(name)}: {escape(state)}")
        return [f"**memory**: {line}" for line in lines]


class UsageCommands:
    specs = announced("usage")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._usage_log = services.usage_log

    async def run(self, command: Command, context: CommandContext) -> Answer:
        match command.arguments.lower().split():
            case []:
                return await self._overview(context)
            case ["months"]:
                months = await self._usage_log.months(context.scopes)
                lines = [f"- {day:%B %Y}: {_price(spent)}; {_tokens(spent)}" for day, spent in months]
                return Answer(text="\n".join(lines) or texts.NO_MODEL_ASKED)
            case [number] if number.isdecimal() and len(number) < 19:
                if await self._services.conversations.find(int(number), context.scopes) is None:
                    raise Refused(f"There is no conversation {int(number)} here. `/sessions` lists them.")
                spending = await self._usage_log.spent(context.scopes, session_id=int(number))
                return Answer(text=_details(f"Conversation {int(number)}", spending))
        raise Refused(texts.USAGE_USAGE)

    async def _overview(self, context: CommandContext) -> Answer:
        lately = await self._usage_log.spent(context.scopes, since=self._services.clock.now() - LATELY)
        parts = [_details("The last 30 days", lately)]
        payer = Payer(scope=context.scope, user_id=context.inbound.sender.id)
        for budget in await self._usage_log.budgets(payer, self._services.clock.now()):
            whose = "Today in this room" if budget.scope.is_room else "Your limits today"
            parts += [f"**{whose}**: {', '.join(map(budget.said, budget.limited))}."] if budget.limited else []
        if context.session.is_incognito:
            parts.insert(0, "**This conversation** is incognito: its calls are in the sum below, and under no name.")
        elif not context.is_shell:
            here = await self._usage_log.spent(context.scopes, session_id=context.session.id)
            parts.insert(0, _details("This conversation", here))
        buttons = (button("By month", "usage", "months"),)
        return Answer(text="\n\n".join(parts), buttons=buttons if lately.calls else ())


def _details(name: str, spending: Spending) -> str:
    if not spending.calls:
        return f"**{name}**: no model was asked."
    kinds, causes = texts.table("CALL_KINDS"), texts.table("MISS_CAUSES")
    bills = (f"{one.calls:,} {kinds[kind]} by {escape(model)} ({_price(one)})" for (kind, model), one in spending.bills)
    lines = [
        f"**{name}**: {_tokens(spending)}.",
        f"- {escape(_cost(spending))}",
        f"- {texts.counted(spending.calls, 'call')}: {', '.join(bills)}.",
    ]
    misses = [
        f"  - {part.missed:,} tokens in {texts.counted(part.calls, 'request')} {causes[cause]}"
        for cause, part in spending.misses
    ]
    return "\n".join([*lines, *(["- Not in the cache:", *misses] if misses else ())])


def _tokens(spending: Spending) -> str:
    usage = spending.usage
    read = f"{usage.cache_read:,} of them read from the cache ({100 * spending.cached:.0f} %)"
    return f"{usage.sent:,} tokens in, {read}, {usage.cache_write:,} written to it; {usage.output:,} tokens out"


def _cost(spending: Spending) -> str:
    unpriced = ", ".join(spending.unpriced)
    if spending.cost is None or spending.plain_cost is None:
        return f"I cannot say what it cost: usage.prices in mneme.toml has no price for {unpriced}."
    text = f"It cost {spending.amount(spending.cost)}"
    if spending.usage.cache_read:
        text += f"; without the cache it would have been {spending.amount(spending.plain_cost)}"
    return f"{text}." + (f" Besides, usage.prices in mneme.toml has no price for {unpriced}." if unpriced else "")


def _price(spending: Spending) -> str:
    if spending.cost is None:
        return "no price"
    return spending.amount(spending.cost) + (" and more" if spending.unpriced else "")
