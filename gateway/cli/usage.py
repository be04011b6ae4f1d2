"""`mneme usage`: what was spent on models, lately, by month and by conversation."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from core.types import Command, Scope
from core.usage.report import Spending
from gateway.cli.runtime import AsJson, InScope, Limit, chat, print_json
from gateway.commands.usage import UsageCommands
from gateway.services import Services


def usage(
    what: Annotated[
        Literal["lately", "months", "sessions"],
        typer.Argument(help="The last 30 days, each of the last twelve months, or each of the latest conversations."),
    ] = "lately",
    limit: Limit = 20,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """What the model has cost, and how much came from the cache."""

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        report = services.usage_report
        if what == "months":
            months = await report.months(scopes)
            return [_object(spent, month=f"{day:%Y-%m}") for day, spent in months]
        if what == "sessions":
            sessions = await report.sessions(scopes, limit)
            return [_object(spent, session=one.id, title=one.title) for one, spent in sessions]
        return _object(await report.lately(scopes))

    if as_json:
        print_json(objects, scope)
    else:
        arguments = {"lately": "", "months": "months", "sessions": f"sessions {limit}"}[what]
        chat(UsageCommands, Command(name="usage", arguments=arguments), scope)


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
