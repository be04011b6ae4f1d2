"""`mneme usage`: what was spent on models, lately, by month and by conversation, as tables or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from core.store.usage import UsageSum
from core.text.sanitize import on_one_line
from core.usage.report import Prices, Spending
from gateway.cli.runtime import AsJson, InScope, console, is_bare, local, say, say_json, seen, visit
from gateway.commands.usage import KINDS, costs, misses, month_name, tokens
from gateway.services import Services

_FIGURES = ("Calls", "In", "From the cache", "Written to it", "Out", "Cost")


def add_usage(app: typer.Typer) -> None:
    """Puts the commands on the command line."""
    usage = typer.Typer(help="What the model has cost: the last 30 days; also months, sessions.")
    usage.callback(invoke_without_command=True)(_usage)
    usage.command("months")(_months)
    usage.command("sessions")(_sessions)
    app.add_typer(usage, name="usage")


def _usage(context: typer.Context, scope: InScope = None, as_json: AsJson = False) -> None:
    if is_bare(context, scope, as_json):
        _lately(scope, as_json)


def _lately(scope: str | None, as_json: bool) -> None:
    async def work(services: Services) -> None:
        spending = await services.usage_report.lately(await seen(services, scope))
        if as_json:
            say_json(_object(spending, services))
            return
        say(f"The last 30 days: {tokens(spending)}")
        if not spending.calls:
            return
        prices = services.usage_report.prices
        _show("What for", [(_purpose(bill), prices.spending([bill])) for bill in spending.bills], prices)
        say(costs(spending, prices))
        if anew := misses(spending):
            say("Not in the cache:")
            for line in anew:
                say(f"  {line}")

    visit(work)


def _months(scope: InScope = None, as_json: AsJson = False) -> None:
    """What each of the last twelve months has cost."""

    async def work(services: Services) -> None:
        found = await services.usage_report.months(await seen(services, scope))
        if as_json:
            say_json([{"month": f"{day:%Y-%m}", **_object(spending, services)} for day, spending in found])
            return
        _show("Month", [(month_name(day), spending) for day, spending in found], services.usage_report.prices)

    visit(work)


def _sessions(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, the latest first.")] = 20,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """What each of the latest conversations has cost."""

    async def work(services: Services) -> None:
        found = await services.usage_report.sessions(await seen(services, scope), limit)
        if as_json:
            say_json(
                [
                    {"session": session.id, "title": session.title, **_object(spending, services)}
                    for session, spending in found
                ]
            )
            return
        rows = [
            (
                f"{session.id}  {local(services, session.last_at or session.started_at)}  "
                f"{on_one_line(session.title or '')}",
                spending,
            )
            for session, spending in found
        ]
        _show("Session", rows, services.usage_report.prices)

    visit(work)


def _show(head: str, rows: Sequence[tuple[str, Spending]], prices: Prices) -> None:
    if not rows:
        say("No model was asked yet.")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(head, overflow="fold")
    for name in _FIGURES:
        table.add_column(name, justify="right", no_wrap=True)
    for name, spending in rows:
        usage = spending.usage
        table.add_row(
            Text(name),
            f"{spending.calls:,}",
            f"{usage.sent:,}",
            f"{usage.cache_read:,} ({100 * spending.cached:.1f} %)",
            f"{usage.cache_write:,}",
            f"{usage.output:,}",
            "no price" if spending.cost is None else prices.amount(spending.cost),
        )
    console().print(table)


def _purpose(bill: UsageSum) -> str:
    return f"{bill.model}, {KINDS[bill.kind]}"


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
