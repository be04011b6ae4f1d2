"""Computes the cost of model calls over days and months, and warns if a month costs too much.

`MonthLine` tells the owner once a month if the forecast is above `usage.month_line`. The running
gateway checks this every hour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.ports import Clock
from core.store.usage_limits import MissCause, Spending, UsageLog, UsageSum
from core.types import LOCAL_SCOPE, CallKind, Scope, Usage
from gateway.texts.catalog import Texts

if TYPE_CHECKING:
    from gateway.services import Services

LOOK_INTERVAL = timedelta(hours=1)
# When this share of the month is over, about a day, its cost is forecast. Until then, the forecast
# is the cost so far.
MIN_FORECAST_SHARE = 0.03
# A call is logged at most this long after its time.
LATE_CALLS = timedelta(hours=1)
MAX_KEPT_SPANS = 5_000


class SpendingHistory:
    """Computes the cost of model calls over periods of time. The sum of a past period is cached.

    So a person with 100,000 calls can view a year without reading the calls each time. After an
    erasure, the epoch advances and the cached sums are dropped.
    """

    def __init__(self, usage_log: UsageLog, clock: Clock) -> None:
        self._usage_log = usage_log
        self._clock = clock
        self._epoch = 0
        self._kept: dict[tuple[frozenset[Scope], datetime, datetime], Mapping[str, Spending]] = {}

    async def load_accounts(
        self, scopes: frozenset[Scope], epoch: int, since: datetime, until: datetime
    ) -> Mapping[str, Spending]:
        """Return the spending of each account in a period, like `UsageLog.list_accounts`."""
        if epoch != self._epoch or len(self._kept) > MAX_KEPT_SPANS:
            self._kept.clear()
            self._epoch = epoch
        key = (scopes, since, until)
        if key in self._kept:
            return self._kept[key]
        spending = await self._usage_log.list_accounts(scopes, since, until)
        if until < self._clock.now() - LATE_CALLS:
            self._kept[key] = spending
        return spending

    def add_up(self, parts: Iterable[Spending]) -> Spending:
        """Return the spending of all parts together, at current prices."""
        sums: dict[tuple[CallKind, str, MissCause | None], UsageSum] = {}
        for part in parts:
            for usage_sum in part.sums:
                key = (usage_sum.kind, usage_sum.model, usage_sum.miss)
                sums[key] = _add(sums[key], usage_sum) if key in sums else usage_sum
        return Spending(sums=list(sums.values()), prices=self._usage_log.prices)


def compute_missed_cost(spending: Spending) -> float | None:
    """Return how much more the missed tokens cost than tokens from the cache.

    Returns None if no model has a price.
    """

    def price(make_usage: Callable[[int], Usage]) -> float | None:
        sums = [replace(each, usage=make_usage(each.missed)) for each in spending.sums]
        return replace(spending, sums=sums).cost

    sent_again = price(lambda tokens: Usage(input=tokens))
    from_cache = price(lambda tokens: Usage(cache_read=tokens))
    if sent_again is None or from_cache is None:
        return None
    return max(0.0, sent_again - from_cache)


def _add(total: UsageSum, addend: UsageSum) -> UsageSum:
    return replace(
        total,
        calls=total.calls + addend.calls,
        usage=total.usage + addend.usage,
        missed=total.missed + addend.missed,
    )


class MonthLine:
    """Compares the forecast for the month with the owner's monthly limit."""

    def __init__(self, services: Services, clock: Clock) -> None:
        self._services = services
        self._clock = clock
        self._looks_at: datetime | None = None

    async def tend(self) -> bool:
        """Send the notice if it's due. Returns False, because no further notice is due at once."""
        now = self._clock.now()
        if self._looks_at is not None and now < self._looks_at:
            return False
        self._looks_at = now + LOOK_INTERVAL
        services = self._services
        line = services.settings.usage.month_line
        scopes = await services.people.load_visible_scopes(LOCAL_SCOPE)
        spending, elapsed_share = await services.usage_log.load_month(scopes, now)
        forecast = forecast_cost(spending, elapsed_share)
        if forecast > line:
            month = now.astimezone(services.zone)
            # After a change of the limit, the owner is told again.
            key = f"month-line:{month:%Y-%m}:{line:g}"
            texts = await services.owner_notices.load_texts()
            text = render_month_line(texts, spending, forecast, line)
            await services.owner_notices.notify(key, text)
        return False


def forecast_cost(spending: Spending, elapsed_share: float) -> float:
    """Return the expected cost of a month, given the share of it that has elapsed."""
    cost = spending.cost or 0.0
    return cost if elapsed_share < MIN_FORECAST_SHARE else cost / elapsed_share


def render_month_line(texts: Texts, spending: Spending, forecast: float, line: float) -> str:
    """Return the notice: the cost so far, the forecast, the limit, and models without a price."""
    text = texts.MONTH_LINE_PASSED.format(
        spent=spending.format_amount(spending.cost or 0.0),
        forecast=spending.format_amount(forecast),
        line=spending.format_amount(line),
    )
    if spending.unpriced_models:
        models = ", ".join(f"`{model}`" for model in spending.unpriced_models)
        text += f" {texts.USAGE_NO_PRICES.format(models=models)}"
    return text
