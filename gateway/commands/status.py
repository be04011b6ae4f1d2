"""Shows the state of platforms, model, memory and store, and the costs: /status and /usage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import Refused
from core.markup.markdown import escape
from core.store.sync import PLATFORM as MEMORY
from core.store.usage_limits import Spending
from core.types import Answer, BillingScope, Command
from gateway.commands.registry import CommandContext, load_specs, make_button
from gateway.services import STATE_FILE, Services, load_providers
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import Texts
from gateway.upkeep.growth import SizeLog
from gateway.upkeep.spending import MIN_FORECAST_SHARE, forecast_cost

if TYPE_CHECKING:
    from core.memory.manager import MemoryManager

OVERVIEW_PERIOD = timedelta(days=30)
_MAX_SESSION_DIGITS = 18


class StatusCommands:
    """Answers /status.

    In the shell, `memory` is None, and memory services are described by the settings and the
    outbox. `live` is then the report of the running gateway, if there is one.
    """

    specs = load_specs("status")

    def __init__(
        self,
        services: Services,
        memory: MemoryManager | None,
        live: Mapping[str, Any] | None = None,
    ) -> None:
        self._services = services
        self._memory = memory
        self._live = live

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Show the status. People other than the owner only see that Mneme is running.

        Raises Refused if the owner asks where other people can read the answer.
        """
        texts = context.texts
        if not context.is_owner:
            return Answer(text=f"- {texts.STATUS_ALIVE}")
        if context.is_answer_public:
            raise Refused(texts.NOT_IN_A_ROOM)
        return Answer(text="\n".join(f"- {line}" for line in await self.render_lines(texts)))

    async def render_lines(self, texts: Texts) -> Sequence[str]:
        """Return the status as lines of Markdown in the form ``**subject**: state``."""
        services = self._services
        words = texts.table("STATUS")
        lines = await self._list_platforms(texts)
        lines.append(words["model"].format(state=self._describe_model(texts)))
        if self._memory is not None:
            lines += await self._list_memories(texts, self._memory)
        else:
            lines += await self._list_services(texts)
        if services.embeddings is not None:
            state = texts.word(await services.embeddings.describe_state())
            lines.append(words["embeddings"].format(state=escape(state)))
        jobs = await services.jobs.list_active()
        lines.append(words["jobs"].format(count=len(jobs)))
        lines.append(words["outbox"].format(state=await self._describe_outbox(texts)))
        store = "PostgreSQL" if services.settings.store.url else texts.table("DISK")["database"]
        lines.append(texts.pair(f"**{store}**", self._describe_store(texts)))
        size_log = SizeLog(services.settings, services.database, services.clock)
        lines.append(words["disk"].format(state=await size_log.describe(texts)))
        pending = await services.people.list_pending(services.clock.now())
        if pending:
            lines.append(words["waiting"].format(count=len(pending)))
        return lines

    async def _list_platforms(self, texts: Texts) -> list[str]:
        """Return one line per platform. For memory services, see `_list_memories`."""
        hidden_names = {"cron"}
        if self._memory is not None:
            hidden_names |= {f"{MEMORY} {name}" for name in self._memory.externals}
        if self._live is not None:
            states: Mapping[str, str] = self._live["platforms"]
        else:
            states = await self._services.load_platform_states()
        names = texts.table("PLATFORMS")
        return [
            texts.pair(f"**{names.get(name, name)}**", texts.word_state(state))
            for name, state in states.items()
            if name not in hidden_names
        ]

    def _describe_model(self, texts: Texts) -> str:
        """Return the chat model with its fallbacks, and the helper model."""
        settings = self._services.settings
        if self._live is not None and self._live["model"] and not settings.has_model:
            return str(self._live["model"])
        if not settings.has_model:
            return texts.table("STATUS")["no_model"]
        words = texts.table("STATUS")
        chat, *fallbacks = settings.model.chat_models
        for model in fallbacks:
            chat = words["or_else"].format(first=chat, second=model)
        return words["models"].format(chat=chat, helper=settings.model.helper)

    async def _list_memories(self, texts: Texts, memory: MemoryManager) -> list[str]:
        """Return a line for the built-in memories, one per service, and the warnings."""
        names = texts.table("STATES")
        states = {name: texts.word_state(state) for name, state in memory.states.items()}
        built_in = [
            texts.annotate(escape(names.get(name, name)), escape(state))
            for name, state in states.items()
            if name not in memory.externals
        ]
        lines = [texts.COMMA.join(built_in)]
        for name, service in memory.externals.items():
            counts = await self._services.outbox.count_items(f"{MEMORY}:{name}:")
            about = service.description
            description = "" if about is None else texts.word(about)
            clauses = [states[name], description, texts.describe_sync_state(counts)]
            clauses = [escape(clause) for clause in clauses if clause]
            lines.append(texts.pair(escape(name), texts.SEMICOLON.join(clauses)))
        lines += [escape(texts.word(warning)) for warning in memory.warnings]
        return [texts.table("STATUS")["memory"].format(state=line) for line in lines]

    async def _list_services(self, texts: Texts) -> list[str]:
        """Return one line per memory service that the settings switch on, for the shell."""
        settings = self._services.settings
        if not settings.memory.providers:
            return []
        providers, problems = await asyncio.to_thread(load_providers, settings)
        lines = []
        for provider in providers:
            counts = await self._services.outbox.count_items(f"{MEMORY}:{provider.name}:")
            state = texts.table("PROVIDER_STATES")["on"].format(mode=provider.mode)
            clauses = [state, texts.describe_sync_state(counts)]
            state = texts.SEMICOLON.join(filter(None, clauses))
            lines.append(texts.pair(escape(provider.name), escape(state)))
        lines += [escape(texts.word(problem)) for problem in problems.values()]
        return [texts.table("STATUS")["memory"].format(state=line) for line in lines]

    async def _describe_outbox(self, texts: Texts) -> str:
        """Return how many outbox items are due, and how many couldn't be delivered."""
        outbox = self._services.outbox
        counts = await outbox.count_items()
        dead_items = await outbox.list_dead()
        parts = []
        if counts.due:
            parts.append(texts.table("STATUS")["due"].format(count=counts.due))
        if dead_items:
            parts.append(texts.UNDELIVERED.format(count=len(dead_items)))
        return texts.COMMA.join(parts) or texts.table("STATUS")["empty"]

    def _describe_store(self, texts: Texts) -> str:
        """Return the size of state.db, and a warning if it's damaged."""
        words = texts.table("STATUS")
        home = self._services.settings.home
        megabytes = texts.format_number(round(_measure_store(home) / 1e6, 1))
        text = words["store"].format(size=megabytes, home=home)
        if self._services.settings.store.url:
            return words["server"].format(name=escape(self._services.database.name), home=home)
        damage = self._services.database.damage
        return words["damaged"].format(store=text, damage=escape(damage)) if damage else text


async def load_state(services: Services, live: Mapping[str, Any] | None) -> dict[str, object]:
    """Return the status as JSON fields for other programs.

    `live` is the report of the running gateway. Without it, the states of the platforms are those
    that were stored last.
    """
    settings = services.settings
    state = "stopped"
    if live:
        state = "running"
    elif is_running(settings.home):
        state = "unreached"
    platforms = live["platforms"] if live else await services.load_platform_states()
    counts = await services.outbox.count_items()
    size_log = SizeLog(settings, services.database, services.clock)
    sizes, growth = await size_log.measure()
    return {
        "state": state,
        "process": live["process"] if live else None,
        "version": live["version"] if live else None,
        "started_at": live["started_at"] if live else None,
        "unanswered": live["unanswered"] if live else None,
        "gateways": live["gateways"] if live else None,
        "home": str(settings.home),
        "platforms": dict(platforms),
        "models": list(settings.model.chat_models) if settings.has_model else [],
        "helper_model": settings.model.helper if settings.has_model else None,
        "embeddings": await _describe_embeddings(services),
        "active_jobs": len(await services.jobs.list_active()),
        "outbox": {"due": counts.due, "undelivered": counts.dead},
        "state_db_bytes": _measure_store(settings.home),
        "store": services.database.name,
        "damage": services.database.damage or None,
        "bytes": dict(sizes),
        "bytes_per_month": None if growth is None else {k: round(v) for k, v in growth.items()},
        "waiting_for_approval": len(await services.people.list_pending(services.clock.now())),
    }


async def _describe_embeddings(services: Services) -> str | None:
    """Return the state of the embedding service in English, or None if there is none."""
    if services.embeddings is None:
        return None
    return str(await services.embeddings.describe_state())


def _measure_store(home: Path) -> int:
    """Return the size of state.db including its write-ahead log, in bytes."""
    files = (home / STATE_FILE, home / f"{STATE_FILE}-wal")
    return sum(file.stat().st_size for file in files if file.exists())


class UsageCommands:
    specs = load_specs("usage")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._usage_log = services.usage_log

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Show the usage: an overview, all months, or one conversation by its number.

        The owner can also raise their daily limit. Raises Refused if the arguments are wrong, or if
        no such conversation is visible here.
        """
        texts = context.texts
        match command.arguments.lower().split():
            case []:
                return await self._show_overview(context)
            case ["months"]:
                return await self._list_months(context)
            case ["more"] if context.is_owner:
                return await self._raise_limit(context)
            case [number] if number.isdecimal() and len(number) <= _MAX_SESSION_DIGITS:
                return await self._show_session(int(number), context)
        raise Refused(texts.USAGE_USAGE)

    async def _raise_limit(self, context: CommandContext) -> Answer:
        """Raise the owner's limit for today. It applies as soon as the command is stored."""
        texts = context.texts
        if not context.inbound.is_direct or context.session.is_incognito:
            raise Refused(texts.OWNER_LINE_ELSEWHERE)
        billing = BillingScope(scope=context.scope, user_id=context.inbound.sender.id)
        budgets = await self._usage_log.load_budgets(billing, self._services.clock.now())
        parts = []
        for budget in budgets:
            if not budget.is_owner_line:
                continue
            for name in budget.limited_names:
                limit = budget.limits[name] + budget.step[name]
                raised = replace(budget, limits={**budget.limits, name: limit})
                parts.append(texts.format_used(raised.usage_of(name)))
        if not parts:
            return Answer(text=texts.OWNER_LINE_NONE)
        button = make_button(texts.BUTTON_ANSWER_LAST, "retry", "")
        text = texts.OWNER_LINE_RAISED.format(used=texts.COMMA.join(parts))
        return Answer(text=text, buttons=(button,))

    async def _render_month(self, context: CommandContext) -> list[str]:
        """Return a paragraph about this month, or [] if no model was called.

        The owner gets a warning if the forecast is above their monthly limit.
        """
        texts = context.texts
        now = self._services.clock.now()
        spending, elapsed_share = await self._usage_log.load_month(context.scopes, now)
        if not spending.calls:
            return []
        line = self._services.settings.usage.month_line if context.is_owner else 0.0
        return [_render_month(texts, spending, elapsed_share, line)]

    async def _list_uncounted(self, texts: Texts, spending: Spending) -> list[str]:
        """Return one sentence that lists the models whose usage is only estimated, or []."""
        uncounted = await self._services.model_limits.load_uncounted()
        names = [model for model, _ in spending.by_model if model in uncounted]
        if not names:
            return []
        return [escape(texts.USAGE_ESTIMATED.format(models=texts.COMMA.join(names)))]

    async def _list_months(self, context: CommandContext) -> Answer:
        texts = context.texts
        lines = []
        for month, spending in await self._usage_log.list_months(context.scopes):
            name = texts.format_day(datetime.combine(month, time(12), UTC), UTC, "month")
            cost = _format_cost(texts, spending)
            lines.append(
                "- "
                + texts.pair(name, texts.SEMICOLON.join((cost, _format_tokens(texts, spending))))
            )
        return Answer(text="\n".join(lines) or texts.NO_MODEL_ASKED)

    async def _show_session(self, session_id: int, context: CommandContext) -> Answer:
        texts = context.texts
        session = await self._services.conversations.find(session_id, context.scopes)
        if session is None:
            raise Refused(texts.NO_CONVERSATION.format(number=session_id))
        spending = await self._usage_log.load_spending(context.scopes, session_id=session_id)
        title = texts.table("USAGE")["conversation"].format(number=session_id)
        parts = [_render_spending(texts, title, spending)]
        return Answer(text="\n\n".join([*parts, *await self._list_uncounted(texts, spending)]))

    async def _show_overview(self, context: CommandContext) -> Answer:
        """Show the usage of this conversation and of the last 30 days, and today's limits."""
        texts = context.texts
        words = texts.table("USAGE")
        now = self._services.clock.now()
        parts = []
        if context.session.is_incognito:
            parts.append(words["incognito"])
        elif not context.is_shell:
            session_spending = await self._usage_log.load_spending(
                context.scopes, session_id=context.session.id
            )
            parts.append(_render_spending(texts, words["this_conversation"], session_spending))
        month_spending = await self._usage_log.load_spending(
            context.scopes, since=now - OVERVIEW_PERIOD
        )
        parts.append(_render_spending(texts, words["last_30_days"], month_spending))
        parts += await self._list_uncounted(texts, month_spending)
        parts += await self._render_month(context)
        since = now - OVERVIEW_PERIOD
        thumbs = await self._services.feedback.count(context.scopes, since)
        if thumbs.up or thumbs.down:
            parts.append(texts.THUMBS.format(up=thumbs.up, down=thumbs.down))

        parts += await self._list_limits(context, has_calls=month_spending.calls > 0)
        if not month_spending.calls:
            return Answer(text="\n\n".join(parts))
        button = make_button(texts.BUTTON_BY_MONTH, "usage", "months")
        return Answer(text="\n\n".join(parts), buttons=(button,))

    async def _list_limits(self, context: CommandContext, *, has_calls: bool) -> list[str]:
        """Return one line per daily limit. The owner's limit is listed only if there were calls."""
        texts = context.texts
        words = texts.table("USAGE")
        lines = []
        billing = BillingScope(scope=context.scope, user_id=context.inbound.sender.id)
        for budget in await self._usage_log.load_budgets(billing, self._services.clock.now()):
            if not budget.limited_names or (budget.is_owner_line and not has_calls):
                continue
            title = words["group_today" if budget.scope.is_group else "your_limits"]
            if budget.is_owner_line:
                title = texts.OWNER_LINE_TITLE
            usage = texts.COMMA.join(
                texts.format_used(budget.usage_of(name)) for name in budget.limited_names
            )
            lines.append(texts.pair(f"**{title}**", f"{usage}."))
        return lines


def _render_month(texts: Texts, spending: Spending, elapsed_share: float, line: float) -> str:
    """Render a month's cost per model, a forecast, and a warning if it exceeds the monthly limit.

    Before `MIN_FORECAST_SHARE` of the month is over, there's no forecast.
    """
    text = texts.USAGE_MONTH.format(spent=_format_cost(texts, spending))
    forecast = forecast_cost(spending, elapsed_share)
    if elapsed_share >= MIN_FORECAST_SHARE:
        text += texts.USAGE_FORECAST.format(forecast=texts.format_amount(spending, forecast))
    models = [f"{escape(model)} {_format_cost(texts, part)}" for model, part in spending.by_model]
    sentences = [texts.pair(escape(text), f"{', '.join(models)}.")]
    if line and forecast > line:
        amount = escape(texts.format_amount(spending, line))
        sentences.append(texts.USAGE_OVER_LINE.format(line=amount))
    if spending.unpriced_models:
        names = escape(texts.COMMA.join(spending.unpriced_models))
        sentences.append(texts.USAGE_NO_PRICES.format(models=names))
    if spending.price_dates:
        days = [datetime.fromisoformat(f"{month}-01T12:00:00Z") for month in spending.price_dates]
        dates = texts.COMMA.join(texts.format_day(day, UTC, "month") for day in days)
        sentences.append(texts.USAGE_PRICE_DATES.format(dates=dates))
    return texts.pair(f"**{texts.table('USAGE')['this_month']}**", " ".join(sentences))


def _render_spending(texts: Texts, name: str, spending: Spending) -> str:
    """Render the tokens, the cost, the calls by kind and model, and the causes of cache misses."""
    words = texts.table("USAGE")
    if not spending.calls:
        return words["no_calls"].format(name=name)
    calls = texts.COMMA.join(_list_calls(texts, spending))
    lines = [
        texts.pair(f"**{name}**", f"{_format_tokens(texts, spending)}."),
        f"- {escape(_describe_cost(texts, spending))}",
        "- " + texts.pair(texts.format_count(spending.calls, "call"), f"{calls}."),
    ]
    misses = [f"  - {miss}" for miss in _list_misses(texts, spending)]
    if misses:
        lines += [f"- {words['misses']}", *misses]
    return "\n".join(lines)


def _list_calls(texts: Texts, spending: Spending) -> Iterator[str]:
    """Yield the number and the cost of calls for each kind of call and model."""
    template = texts.table("USAGE")["call"]
    kinds = texts.table("CALL_KINDS")
    for (kind, model), part in spending.by_kind_and_model:
        yield template.format(
            count=texts.format_number(part.calls),
            kind=kinds[kind],
            model=escape(model),
            cost=_format_cost(texts, part),
        )


def _list_misses(texts: Texts, spending: Spending) -> Iterator[str]:
    """Yield the tokens that weren't in the cache for each cause."""
    template = texts.table("USAGE")["miss"]
    causes = texts.table("MISS_CAUSES")
    for cause, part in spending.by_miss_cause:
        yield template.format(
            tokens=texts.format_number(part.missed_tokens),
            requests=texts.format_count(part.calls, "request"),
            cause=causes[cause],
        )


def _format_tokens(texts: Texts, spending: Spending) -> str:
    """Render the tokens sent, read from the cache, written to the cache, and received."""
    usage = spending.usage
    return texts.table("USAGE")["tokens"].format(
        input=texts.format_number(usage.total_input),
        cached=texts.format_number(usage.cache_read),
        percent=f"{100 * spending.cached_share:.0f}",
        written=texts.format_number(usage.cache_write),
        output=texts.format_number(usage.output),
    )


def _describe_cost(texts: Texts, spending: Spending) -> str:
    """Return the cost of model calls, with and without the cache, and any missing prices."""
    words = texts.table("USAGE")
    models = texts.COMMA.join(spending.unpriced_models)
    if spending.cost is None or spending.uncached_cost is None:
        return words["cost_unknown"].format(models=models)
    text = words["cost_cached" if spending.usage.cache_read else "cost"].format(
        amount=texts.format_amount(spending, spending.cost),
        uncached=texts.format_amount(spending, spending.uncached_cost),
    )
    return f"{text} {words['unpriced'].format(models=models)}" if models else text


def _format_cost(texts: Texts, spending: Spending) -> str:
    words = texts.table("USAGE")
    if spending.cost is None:
        return words["no_price"]
    amount = texts.format_amount(spending, spending.cost)
    return words["at_least"].format(amount=amount) if spending.unpriced_models else amount
