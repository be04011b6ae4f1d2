"""`mneme usage`: what was spent on models, lately, by month and by conversation."""

from __future__ import annotations

import typer

from core.types import Command
from core.usage.report import Spending
from gateway.cli.runtime import AsJson, InScope, Limit, chat, is_bare, say_json, seen, visit
from gateway.commands.usage import UsageCommands
from gateway.services import Services


def add_usage(app: typer.Typer) -> None:
    """Puts the commands on the command line."""
    usage = typer.Typer(help="What the model has cost: the last 30 days; also months, sessions.")
    usage.callback(invoke_without_command=True)(_usage)
    usage.command("months")(_months)
    usage.command("sessions")(_sessions)
    app.add_typer(usage, name="usage")


def _usage(context: typer.Context, scope: InScope = None, as_json: AsJson = False) -> None:
    if not is_bare(context, scope, as_json):
        return
    if not as_json:
        chat(UsageCommands, Command(name="usage"), scope)
        return

    async def work(services: Services) -> None:
        say_json(_object(await services.usage_report.lately(await seen(services, scope)), services))

    visit(work)


def _months(scope: InScope = None, as_json: AsJson = False) -> None:
    """What each of the last twelve months has cost."""
    if not as_json:
        chat(UsageCommands, Command(name="usage", arguments="months"), scope)
        return

    async def work(services: Services) -> None:
        found = await services.usage_report.months(await seen(services, scope))
        say_json([{"month": f"{day:%Y-%m}", **_object(spending, services)} for day, spending in found])

    visit(work)


def _sessions(limit: Limit = 20, scope: InScope = None, as_json: AsJson = False) -> None:
    """What each of the latest conversations has cost."""
    if not as_json:
        chat(UsageCommands, Command(name="usage", arguments=f"sessions {limit}"), scope)
        return

    async def work(services: Services) -> None:
        found = await services.usage_report.sessions(await seen(services, scope), limit)
        say_json([{"session": one.id, "title": one.title, **_object(spent, services)} for one, spent in found])

    visit(work)


def _object(spending: Spending, services: Services) -> dict[str, object]:
    usage = spending.usage
    return {
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
        "currency": services.settings.usage.currency,
        "unpriced": list(spending.unpriced),
        "kinds": dict(spending.kinds),
        "misses": [{"cause": miss.cause, "times": miss.times, "tokens": miss.tokens} for miss in spending.misses],
    }
