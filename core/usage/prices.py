"""What tokens cost, as the settings say; asks nobody. A model without a price there has none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from config.settings import Price
from core.records import Bill, Miss, Spending
from core.types import CallKind, Usage

MILLION = 1_000_000
_DATE = re.compile(r"-(?:\d{8}|latest)\Z")


class Prices:
    """`table`: the price of a million tokens by the name of the model; `currency` is the sign that amounts get."""

    def __init__(self, table: Mapping[str, Price], currency: str) -> None:
        self._table = table
        self._currency = currency

    def price(self, model: str) -> Price | None:
        """The price of a model, also under its dated name."""
        return self._table.get(model) or self._table.get(_DATE.sub("", model))

    def cost(self, model: str, usage: Usage) -> float | None:
        """What these tokens cost with a model; None where it has no price."""
        price = self.price(model)
        if price is None:
            return None
        hour = price.cache_write if price.cache_write_hour is None else price.cache_write_hour
        return (
            usage.input * price.input
            + usage.cache_read * price.cache_read
            + (usage.cache_write - usage.cache_write_hour) * price.cache_write
            + usage.cache_write_hour * hour
            + usage.output * price.output
        ) / MILLION

    def spending(self, bills: Sequence[Bill], misses: Sequence[Miss] = ()) -> Spending:
        """The bills as one."""
        costs = [self.cost(bill.model, bill.usage) for bill in bills]
        plain = [self.cost(bill.model, Usage(input=bill.usage.sent, output=bill.usage.output)) for bill in bills]
        kinds: Counter[CallKind] = Counter()
        for bill in bills:
            kinds[bill.kind] += bill.calls
        return Spending(
            usage=sum((bill.usage for bill in bills), Usage()),
            cost=_sum(costs),
            plain_cost=_sum(plain),
            kinds=tuple(kinds.most_common()),
            unpriced=tuple(dict.fromkeys(bill.model for bill in bills if self.price(bill.model) is None)),
            bills=tuple(bills),
            misses=tuple(misses),
        )

    def amount(self, cost: float) -> str:
        """An amount for eyes: ``$12.34``, ``$0.042``, ``under $0.0001``."""
        if 0 < cost < 0.0001:
            return f"under {self._currency}0.0001"
        digits = 2 if cost >= 1 or not cost else 3 if cost >= 0.01 else 4
        return f"{self._currency}{cost:,.{digits}f}"


def _sum(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None
