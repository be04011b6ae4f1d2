"""What was spent on models, as people ask for it: in a conversation, lately, by month, by conversation.

What tokens cost is what the settings say; a model without a price there has none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from config.settings import Price
from core.ports import Clock
from core.store.usage import CacheMisses, UsageLog, UsageSum
from core.types import CallKind, Scope, Session, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """`cost` and `plain_cost` (without a cache) leave out the `unpriced` models; None: no call has a price. `kinds`
    counts calls."""

    usage: Usage
    cost: float | None
    plain_cost: float | None
    kinds: tuple[tuple[CallKind, int], ...] = ()
    unpriced: tuple[str, ...] = ()
    bills: tuple[UsageSum, ...] = ()
    misses: tuple[CacheMisses, ...] = ()

    @property
    def calls(self) -> int:
        return sum(count for _, count in self.kinds)

    @property
    def cached(self) -> float:
        """The part of the input that was read from the cache, 0 to 1."""
        return self.usage.cache_read / self.usage.sent if self.usage.sent else 0.0


MILLION = 1_000_000
_DATE = re.compile(r"-(?:\d{8}|latest)\Z")


class Prices:
    """`table`: prices of a million tokens by model; `currency`: the sign before amounts."""

    def __init__(self, table: Mapping[str, Price], currency: str) -> None:
        self._table = table
        self._currency = currency

    def price(self, model: str) -> Price | None:
        return self._table.get(model) or self._table.get(_DATE.sub("", model))

    def cost(self, model: str, usage: Usage) -> float | None:
        """None where the model has no price."""
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

    def spending(self, bills: Sequence[UsageSum], misses: Sequence[CacheMisses] = ()) -> Spending:
        priced = [bill for bill in bills if self.price(bill.model)]
        costs = [self.cost(bill.model, bill.usage) or 0.0 for bill in priced]
        plain = [
            self.cost(bill.model, Usage(input=bill.usage.sent, output=bill.usage.output)) or 0.0 for bill in priced
        ]
        kinds: Counter[CallKind] = Counter()
        for bill in bills:
            kinds[bill.kind] += bill.calls
        return Spending(
            usage=sum((bill.usage for bill in bills), Usage()),
            cost=sum(costs) if priced else None,
            plain_cost=sum(plain) if priced else None,
            kinds=tuple(kinds.most_common()),
            unpriced=tuple(dict.fromkeys(bill.model for bill in bills if bill not in priced)),
            bills=tuple(bills),
            misses=tuple(misses),
        )

    def amount(self, cost: float) -> str:
        """``$12.34``, ``$0.042``, ``under $0.0001``."""
        if 0 < cost < 0.0001:
            return f"under {self._currency}0.0001"
        digits = 2 if cost >= 1 or not cost else 3 if cost >= 0.01 else 4
        return f"{self._currency}{cost:,.{digits}f}"


LATELY = timedelta(days=30)
MONTHS = 12


class UsageReport:
    """At the `prices` of today; months are those of `zone` (an IANA name)."""

    def __init__(self, usage_log: UsageLog, prices: Prices, clock: Clock, zone: str) -> None:
        self.prices = prices
        self._usage_log = usage_log
        self._clock = clock
        self._zone = ZoneInfo(zone)

    async def session(self, session_id: int, scopes: frozenset[Scope]) -> Spending:
        bills = await self._usage_log.bills(scopes, session_id=session_id)
        return self.prices.spending(bills, await self._usage_log.misses(scopes, session_id=session_id))

    async def lately(self, scopes: frozenset[Scope]) -> Spending:
        """The last 30 days."""
        since = self._clock.now() - LATELY
        return self.prices.spending(
            await self._usage_log.bills(scopes, since), await self._usage_log.misses(scopes, since)
        )

    async def months(self, scopes: frozenset[Scope]) -> list[tuple[date, Spending]]:
        """The last twelve months with any spending, by first day, latest first."""
        began = await self._usage_log.began(scopes)
        start = _month(self._clock.now().astimezone(self._zone))
        until: datetime | None = None
        found: list[tuple[date, Spending]] = []
        while began is not None and len(found) < MONTHS and (until is None or until > began):
            bills = await self._usage_log.bills(scopes, start, until)
            if bills:
                found.append((start.date(), self.prices.spending(bills)))
            until, start = start, _month(start - timedelta(days=1))
        return found

    async def bills(self, scopes: frozenset[Scope]) -> list[tuple[UsageSum, str | None]]:
        """All that was ever spent, by kind and model, with its amount; None: the model has no price."""
        costs = [(bill, self.prices.cost(bill.model, bill.usage)) for bill in await self._usage_log.bills(scopes)]
        return [(bill, None if cost is None else self.prices.amount(cost)) for bill, cost in costs]

    async def sessions(self, scopes: frozenset[Scope], limit: int) -> list[tuple[Session, Spending]]:
        """The sessions of the latest calls, latest first."""
        found = await self._usage_log.sessions(scopes, limit)
        return [(session, await self.session(session.id, scopes)) for session in found]


def _month(local: datetime) -> datetime:
    return local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
