"""The page "Use": what model calls cost by day, model, kind and person, and what limits them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from core.dates.schedule import resolve_wall_time
from core.store.messages import load_answer_seconds
from core.store.usage_and_limits import Spending
from core.types import BillingScope
from gateway.texts.catalog import Texts
from gateway.upkeep.spending import MIN_FORECAST_SHARE, forecast_cost
from gateway.web.views import Action, Page, PageRequest, Values, View, run_command

DAYS = 30
# The chart has this many colours. Further models share the last one.
MAX_COLOURS = 6
CHART_WIDTH = 720
CHART_HEIGHT = 180
BAR_GAP = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """A coloured part of a bar. All lengths are in units of the chart's view box."""

    colour: int
    y: float
    height: float
    # What a pointer over it shows: "3 May 2026, claude-sonnet-5-5: $0.12".
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    width: float
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Chart:
    """Stacked bars, one for each day, with a colour for each model."""

    bars: Sequence[Bar]
    # The models in the order of their colours.
    models: Sequence[str]
    # The amount of the highest bar.
    highest: str
    first_day: str
    last_day: str


async def load_use(request: PageRequest) -> Values:
    """Return the cost of this month and of the last 30 days, the chart, and the limits."""
    services, texts = request.services, request.texts
    now = services.clock.now()
    month, elapsed_share = await services.usage_log.load_month(request.scopes, now)
    days = await _list_days(request, now)
    since = now - timedelta(days=DAYS)
    period = await services.usage_log.load_spending(request.scopes, since=since)
    seconds = sorted(await load_answer_seconds(services.database, request.scopes, since))
    billing = BillingScope(scope=request.context.scope, user_id=request.context.account.user_id)
    forecast = ""
    if month.cost is not None and elapsed_share >= MIN_FORECAST_SHARE:
        forecast = texts.format_amount(month, forecast_cost(month, elapsed_share))
    return {
        "month": month,
        "forecast": forecast,
        "period": period,
        "chart": draw_chart(texts, days),
        "months": await services.usage_log.list_months(request.scopes),
        "people": await services.usage_log.list_accounts(request.scopes, since),
        "half": _find_quantile(seconds, 0.5),
        "slow": _find_quantile(seconds, 0.95),
        "budgets": await services.usage_log.load_budgets(billing, now),
        "format_cost": lambda spending: _format_cost(texts, spending),
    }


async def _list_days(request: PageRequest, now: datetime) -> list[tuple[date, Spending]]:
    """Return the spending of the last days up to today, earliest first."""
    zone = request.services.zone
    first = now.astimezone(zone).date() - timedelta(days=DAYS - 1)
    midnights = [
        resolve_wall_time(datetime.combine(first + timedelta(days=number), time()), zone)
        for number in range(DAYS + 1)
    ]
    days = []
    for since, until in pairwise(midnights):
        spending = await request.services.usage_log.load_spending(
            request.scopes, since=since, until=until
        )
        days.append((since.astimezone(zone).date(), spending))
    return days


def draw_chart(texts: Texts, days: Sequence[tuple[date, Spending]]) -> Chart | None:
    """Return a chart of the cost of each day, or of the tokens if a model has no price.

    Returns None if no model was called.
    """
    has_prices = not any(spending.unpriced_models for _, spending in days)
    amounts = [
        {model: _measure(part, has_prices=has_prices) for model, part in spending.by_model}
        for _, spending in days
    ]
    highest = max(sum(parts.values()) for parts in amounts)
    if not highest:
        return None
    models = _rank_models(amounts)
    step = CHART_WIDTH / len(days)
    bars = []
    for number, ((day, spending), parts) in enumerate(zip(days, amounts, strict=True)):
        titles = {}
        for model, amount in parts.items():
            shown = _format_measure(texts, spending, amount, has_prices=has_prices)
            titles[model] = f"{_name_day(texts, day)}, {model}: {shown}"
        segments = _stack(parts, titles, models, highest)
        bars.append(Bar(round(number * step, 2), round(step - BAR_GAP, 2), segments))
    return Chart(
        bars=bars,
        models=models,
        highest=_format_measure(texts, days[0][1], highest, has_prices=has_prices),
        first_day=_name_day(texts, days[0][0]),
        last_day=_name_day(texts, days[-1][0]),
    )


def _rank_models(amounts: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the models of all days, the one with the largest sum first."""
    sums: dict[str, float] = {}
    for parts in amounts:
        for model, amount in parts.items():
            sums[model] = sums.get(model, 0) + amount
    return sorted(sums, key=lambda model: sums[model], reverse=True)


def _stack(
    parts: Mapping[str, float], titles: Mapping[str, str], models: Sequence[str], highest: float
) -> list[Segment]:
    """Return the segments of a bar from the bottom up, the first of `models` at the bottom."""
    segments = []
    top = float(CHART_HEIGHT)
    for rank, model in enumerate(models):
        height = parts.get(model, 0.0) / highest * CHART_HEIGHT
        if height:
            top -= height
            colour = min(rank, MAX_COLOURS - 1)
            segments.append(Segment(colour, round(top, 2), round(height, 2), titles[model]))
    return segments


def _measure(spending: Spending, *, has_prices: bool) -> float:
    """Return the cost of calls, or their tokens."""
    if has_prices:
        return spending.cost or 0.0
    return spending.usage.total_input + spending.usage.output


def _format_measure(texts: Texts, spending: Spending, amount: float, *, has_prices: bool) -> str:
    if has_prices:
        return texts.format_amount(spending, amount)
    return texts.table("page_use")["TOKENS"].format(count=texts.format_number(round(amount)))


def _format_cost(texts: Texts, spending: Spending) -> str:
    """Return the cost of calls, or an empty text if no model has a price."""
    return "" if spending.cost is None else texts.format_amount(spending, spending.cost)


def _name_day(texts: Texts, day: date) -> str:
    return texts.schedule_words.format_date(day)


def _find_quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value that this share of the values doesn't exceed, or None without values."""
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None


PAGE = Page(
    "use",
    views=(View("/use", "use.html", load_use),),
    actions=(Action("raise-line", run_command("usage", "more")),),
)
