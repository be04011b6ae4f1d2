"""`mneme usage`: what was spent on models, lately, by month and by conversation, as tables or JSON."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.table import Table
from rich.text import Text

from core.text.sanitize import on_one_line
from core.usage.report import Prices, Spending
from gateway import texts
from gateway.cli.runtime import AsJson, InScope, Limit, console, is_bare, say, say_json, seen, visit, zone_of
from gateway.commands.usage import COLUMNS, costs, figures, misses, tokens
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

    async def work(services: Services) -> None:
        spending = await services.usage_report.lately(await seen(services, scope))
        prices = services.usage_report.prices
        if as_json:
            say_json(_object(spending, services))
            return
        say(f"The last 30 days: {tokens(spending)}")
        if not spending.calls:
            return
        rows = [(f"{one.model}, {texts.CALL_KINDS[one.kind]}", prices.spending([one])) for one in spending.bills]
        _show("What for", rows, prices)
        say(costs(spending, prices))
        if missed := misses(spending):
            say("\n".join(["Not in the cache:", *(f"  {line}" for line in missed)]))

    visit(work)


def _months(scope: InScope = None, as_json: AsJson = False) -> None:
    """What each of the last twelve months has cost."""

    async def work(services: Services) -> None:
        found = await services.usage_report.months(await seen(services, scope))
        if as_json:
            say_json([{"month": f"{day:%Y-%m}", **_object(spending, services)} for day, spending in found])
        else:
            _show("Month", [(f"{day:%B %Y}", spending) for day, spending in found], services.usage_report.prices)

    visit(work)


def _sessions(limit: Limit = 20, scope: InScope = None, as_json: AsJson = False) -> None:
    """What each of the latest conversations has cost."""

    async def work(services: Services) -> None:
        found = await services.usage_report.sessions(await seen(services, scope), limit)
        if as_json:
            say_json([{"session": one.id, "title": one.title, **_object(spent, services)} for one, spent in found])
            return
        rows = []
        for session, spending in found:
            at = texts.moment(session.last_at or session.started_at, zone_of(services))
            rows.append((f"{session.id}  {at}  {on_one_line(session.title or '')}", spending))
        _show("Session", rows, services.usage_report.prices)

    visit(work)


def _show(head: str, rows: Sequence[tuple[str, Spending]], prices: Prices) -> None:
    if not rows:
        say(texts.NO_MODEL_ASKED)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(head, overflow="fold")
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for name, spending in rows:
        table.add_row(Text(name), *figures(spending, prices))
    console().print(table)


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
