"""`mneme usage`: what was spent on models, lately, by month and by conversation."""

from __future__ import annotations

import typer

from core.types import Command, Scope
from core.usage.report import Spending
from gateway.cli.runtime import AsJson, Group, InScope, Limit, chat, print_json
from gateway.commands.usage import UsageCommands
from gateway.services import Services


def add_usage(app: typer.Typer) -> None:
    usage = typer.Typer(cls=Group, help="What the model has cost, and how much came from the cache.")
    usage.command("lately")(_lately)
    usage.command("months")(_months)
    usage.command("sessions")(_sessions)
    app.add_typer(usage, name="usage")


def _lately(scope: InScope = None, as_json: AsJson = False) -> None:
    """What the last 30 days have cost."""

    async def lately(services: Services, scopes: frozenset[Scope]) -> object:
        return _object(await services.usage_report.lately(scopes))

    print_json(lately, scope) if as_json else chat(UsageCommands, Command(name="usage"), scope)


def _months(scope: InScope = None, as_json: AsJson = False) -> None:
    """What each of the last twelve months has cost."""

    async def months(services: Services, scopes: frozenset[Scope]) -> object:
        return [_object(spent, month=f"{day:%Y-%m}") for day, spent in await services.usage_report.months(scopes)]

    print_json(months, scope) if as_json else chat(UsageCommands, Command(name="usage", arguments="months"), scope)


def _sessions(limit: Limit = 20, scope: InScope = None, as_json: AsJson = False) -> None:
    """What each of the latest conversations has cost."""

    async def sessions(services: Services, scopes: frozenset[Scope]) -> object:
        found = await services.usage_report.sessions(scopes, limit)
        return [_object(spent, session=one.id, title=one.title) for one, spent in found]

    command = Command(name="usage", arguments=f"sessions {limit}")
    print_json(sessions, scope) if as_json else chat(UsageCommands, command, scope)


def _object(spending: Spending, **name: object) -> dict[str, object]:
    usage = spending.usage
    return {
        **name,
        "calls": spending.calls,
        "input_tokens": usage.sent,
        "plain_tokens": usage.input,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "cache_write_hour_tokens": usage.cache_write_hour,
        "output_tokens": usage.output,
        "from_cache": round(spending.cached, 4),
        "cost": None if spending.cost is None else round(spending.cost, 6),
        "cost_uncached": None if spending.plain_cost is None else round(spending.plain_cost, 6),
        "currency": spending.prices.currency,
        "unpriced": spending.unpriced,
        "kinds": {kind: part.calls for kind, part in spending.kinds},
        "misses": [{"cause": cause, "times": part.calls, "tokens": part.missed} for cause, part in spending.misses],
    }
