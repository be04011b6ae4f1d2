"""Shows the cost of model calls, by day and by model or person, on the page "Use"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

from core.dates.schedule import resolve_wall_time
from core.store.messages import load_answer_seconds
from core.store.usage_limits import Spending
from core.types import BillingScope
from gateway.texts.catalog import Texts
from gateway.upkeep.spending import MIN_FORECAST_SHARE, compute_missed_cost, forecast_cost
from gateway.web.views import Action, Page, PageRequest, Values, View, run_command

DAYS = 30
MONTHS = 12
# The chart has this many colours. Further models share the last one.
MAX_COLOURS = 6
CHART_WIDTH = 720
CHART_HEIGHT = 180
BAR_GAP = 4
# An amount below each of these borders has one or two more decimals.
DECIMAL_BORDERS = (0.01, 1.0)
# The criteria by which the bars of the chart are split, and the keys of their texts.
SPLITS = (("model", "MODEL"), ("kind", "KIND"), ("account", "ACCOUNT"))
# How long the provider caches a conversation, by the setting `model.cache`.
CACHE_MINUTES = {"5m": 5, "1h": 60}
# The time axis has a label for one in this many days.
TICK_DAYS = 5


@dataclass(frozen=True, slots=True)
class Segment:
    """A coloured segment of a bar. All lengths are in units of the chart's view box."""

    colour: int
    y: float
    height: float
    # The tooltip: "3 May 2026, claude-sonnet-5-5: $0.12".
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    width: float
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Chart:
    """A bar chart with one stacked bar per day, and a colour per model, purpose or account."""

    bars: Sequence[Bar]
    # The names of the parts in the order of their colours.
    names: Sequence[str]
    # The amount of the highest bar, and half of it, for the axis. The half is empty if it would
    # have more decimals.
    highest: str
    half: str
    # The days that the time axis names.
    ticks: Sequence[str]
    first_day: str
    last_day: str


async def load_use(request: PageRequest) -> Values:
    """Return the cost by month and for the last 30 days, the chart, and the limits."""
    services = request.services
    texts = request.texts
    now = services.clock.now()
    months = await _load_months(request, now)
    days = await _load_days(request, now)
    seconds = sorted(await _load_answer_seconds(request, now))
    billing = BillingScope(scope=request.context.scope, user_id=request.context.account.user_id)
    add_up = request.spending.add_up
    day_sums = [(day, add_up(accounts.values())) for day, accounts in days]
    by_account: dict[str, list[Spending]] = {}
    for _, accounts in days:
        for account, spending in accounts.items():
            by_account.setdefault(account, []).append(spending)
    split = _choose_split(request)
    month = months[0][1]
    return {
        "month": month,
        "forecast": _format_forecast(request, month, now),
        "period": add_up(spending for _, spending in day_sums),
        "chart": draw_chart(texts, day_sums, _split_days(request, split, days, day_sums)),
        "split": split,
        "splits": [each for each in SPLITS if each[0] != "account" or len(by_account) > 1],
        "days": [(_name_day(texts, day), part) for day, part in reversed(day_sums) if part.calls],
        "months": [(_name_month(texts, first), part) for first, part in months if part.calls],
        "people": {account: add_up(parts) for account, parts in by_account.items()},
        "half": _find_quantile(seconds, 0.5),
        "slow": _find_quantile(seconds, 0.95),
        "budgets": await services.usage_log.load_budgets(billing, now),
        "cache_minutes": CACHE_MINUTES[services.settings.model.cache],
        "format_cost": lambda spending: _format_cost(texts, spending),
        "format_missed_cost": lambda spending: _format_missed_cost(texts, spending),
    }


async def _load_accounts(
    request: PageRequest, since: datetime, until: datetime
) -> Mapping[str, Spending]:
    epoch = request.context.epoch
    number = 0 if epoch is None else epoch.number
    return await request.spending.load_accounts(request.scopes, number, since, until)


async def _load_months(request: PageRequest, now: datetime) -> list[tuple[date, Spending]]:
    """Return the spending of the last 12 months by their first days, latest first."""
    until = _start_of_day(request, now.astimezone(request.zone).date() + timedelta(days=1))
    first = now.astimezone(request.zone).date().replace(day=1)
    months = []
    for _ in range(MONTHS):
        since = _start_of_day(request, first)
        accounts = await _load_accounts(request, since, until)
        months.append((first, request.spending.add_up(accounts.values())))
        until = since
        first = (first - timedelta(days=1)).replace(day=1)
    return months


async def _load_days(
    request: PageRequest, now: datetime
) -> list[tuple[date, Mapping[str, Spending]]]:
    """Return the spending of each account on each of the last days, earliest first."""
    first = now.astimezone(request.zone).date() - timedelta(days=DAYS - 1)
    dates = [first + timedelta(days=number) for number in range(DAYS + 1)]
    return [
        (
            day,
            await _load_accounts(request, _start_of_day(request, day), _start_of_day(request, end)),
        )
        for day, end in pairwise(dates)
    ]


async def _load_answer_seconds(request: PageRequest, now: datetime) -> list[float]:
    """Return how many seconds each answer of the last days took."""
    since = now - timedelta(days=DAYS)
    return await load_answer_seconds(request.services.database, request.scopes, since)


def _format_forecast(request: PageRequest, month: Spending, now: datetime) -> str:
    """Return the forecast cost of a month, or "" at its beginning or without prices."""
    elapsed_share = _measure_elapsed(request, now)
    if month.cost is None or elapsed_share < MIN_FORECAST_SHARE:
        return ""
    return request.texts.format_amount(month, forecast_cost(month, elapsed_share))


def _measure_elapsed(request: PageRequest, now: datetime) -> float:
    """Return the elapsed share of the current month."""
    first = now.astimezone(request.zone).date().replace(day=1)
    start = _start_of_day(request, first)
    end = _start_of_day(request, (first + timedelta(days=32)).replace(day=1))
    return (now - start) / (end - start)


def _start_of_day(request: PageRequest, day: date) -> datetime:
    return resolve_wall_time(datetime.combine(day, time()), request.zone)


def _choose_split(request: PageRequest) -> str:
    """Return the criterion by which the address asks to split the bars.

    The default is the model.
    """
    split = request.parameter("by")
    return split if split in dict(SPLITS) else SPLITS[0][0]


def _split_days(
    request: PageRequest,
    split: str,
    days: Sequence[tuple[date, Mapping[str, Spending]]],
    sums: Sequence[tuple[date, Spending]],
) -> list[Mapping[str, Spending]]:
    """Return the parts of each day by model, purpose or account."""
    if split == "account":
        return [accounts for _, accounts in days]
    if split == "kind":
        kinds = request.texts.table("CALL_KINDS")
        return [{kinds[kind]: part for kind, part in spending.by_kind} for _, spending in sums]
    return [dict(spending.by_model) for _, spending in sums]


def draw_chart(
    texts: Texts, days: Sequence[tuple[date, Spending]], parts: Sequence[Mapping[str, Spending]]
) -> Chart | None:
    """Return a chart of the daily cost, or of the daily tokens if a model has no price.

    `parts` maps the name of each part to its values, one for each day. Returns None if no model was
    called.
    """
    has_prices = not any(spending.unpriced_models for _, spending in days)
    amounts = [
        {name: _measure(part, has_prices=has_prices) for name, part in parts_of_day.items()}
        for parts_of_day in parts
    ]
    highest = max(sum(amounts_of_day.values()) for amounts_of_day in amounts)
    if not highest:
        return None
    names = _rank_names(amounts)
    step = CHART_WIDTH / len(days)
    bars = []
    for number, ((day, spending), amounts_of_day) in enumerate(zip(days, amounts, strict=True)):
        titles = {}
        for name, amount in amounts_of_day.items():
            label = _format_measure(texts, spending, amount, has_prices=has_prices)
            titles[name] = texts.pair(f"{_name_day(texts, day)}, {name or '?'}", label)
        segments = _stack(amounts_of_day, titles, names, highest)
        bars.append(Bar(round(number * step, 2), round(step - BAR_GAP, 2), segments))
    return Chart(
        bars=bars,
        names=[name or "?" for name in names],
        highest=_format_measure(texts, days[0][1], highest, has_prices=has_prices),
        half=_format_half(texts, days[0][1], highest, has_prices=has_prices),
        ticks=[
            texts.result_words.format_short_day(datetime.combine(day, time()))
            for day, _ in days[::TICK_DAYS]
        ],
        first_day=_name_day(texts, days[0][0]),
        last_day=_name_day(texts, days[-1][0]),
    )


def _rank_names(amounts: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the names of the parts in descending order of their totals."""
    sums: dict[str, float] = {}
    for amounts_of_day in amounts:
        for name, amount in amounts_of_day.items():
            sums[name] = sums.get(name, 0) + amount
    return sorted(sums, key=lambda name: sums[name], reverse=True)


def _stack(
    amounts: Mapping[str, float], titles: Mapping[str, str], names: Sequence[str], highest: float
) -> list[Segment]:
    """Return the segments of a bar from bottom to top, in the order of `names`."""
    segments = []
    top = float(CHART_HEIGHT)
    for rank, name in enumerate(names):
        height = amounts.get(name, 0.0) / highest * CHART_HEIGHT
        if height:
            top -= height
            colour = min(rank, MAX_COLOURS - 1)
            segments.append(Segment(colour, round(top, 2), round(height, 2), titles[name]))
    return segments


def _measure(spending: Spending, *, has_prices: bool) -> float:
    """Return the cost of calls, or their tokens if not all models have prices."""
    if has_prices:
        return spending.cost or 0.0
    return spending.usage.total_input + spending.usage.output


def _format_measure(texts: Texts, spending: Spending, amount: float, *, has_prices: bool) -> str:
    if has_prices:
        return texts.format_amount(spending, amount)
    return texts.table("page_use")["TOKENS"].format(count=texts.format_number(round(amount)))


def _format_half(texts: Texts, spending: Spending, highest: float, *, has_prices: bool) -> str:
    """Return half of the highest amount, or "" if it would have more decimals than the amount."""
    if has_prices and any(highest / 2 < border <= highest for border in DECIMAL_BORDERS):
        return ""
    return _format_measure(texts, spending, highest / 2, has_prices=has_prices)


def _format_cost(texts: Texts, spending: Spending) -> str:
    """Return the cost of calls, or "" if no model has a price."""
    return "" if spending.cost is None else texts.format_amount(spending, spending.cost)


def _format_missed_cost(texts: Texts, spending: Spending) -> str:
    """Return the extra cost of the tokens that weren't in the cache, or "" without prices."""
    cost = compute_missed_cost(spending)
    return "" if cost is None else texts.format_amount(spending, cost)


def _name_day(texts: Texts, day: date) -> str:
    return texts.result_words.format_day(datetime.combine(day, time()))


def _name_month(texts: Texts, first_day: date) -> str:
    return texts.format_day(datetime.combine(first_day, time(), UTC), UTC, "month")


def _find_quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return a quantile of sorted values, or None if there are none."""
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None


PAGE = Page(
    "use",
    views=(View("/use", "use.html", load_use, is_streamed=True),),
    actions=(Action("raise-line", run_command("usage", "more")),),
)
