"""What was spent on models, as people ask for it: in a conversation, lately, by month, by conversation.

What tokens cost is what the settings say; a model without a price there has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from config.settings import Price
from core.ports import Clock
from core.store.usage import MissCause, UsageLog, UsageSum
from core.types import CallKind, Scope, Session, Usage

Key = TypeVar("Key")
MILLION = 1_000_000
LATELY = timedelta(days=30)
MONTHS = 12
_DATE = re.compile(r"-(?:\d{8}|latest)\Z")


class Prices:
    """`table`: prices of a million tokens by model; `currency`: the sign before amounts."""

    def __init__(self, table: Mapping[str, Price], currency: str) -> None:
        self._table = table
        self.currency = currency

    def cost(self, model: str, usage: Usage) -> float | None:
        """None where the model has no price."""
        price = self._table.get(model) or self._table.get(_DATE.sub("", model))
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

    def amount(self, cost: float) -> str:
        """``$12.34``, ``$0.042``, ``under $0.0001``."""
        if 0 < cost < 0.0001:
            return f"under {self.currency}0.0001"
        digits = 2 if cost >= 1 or not cost else 3 if cost >= 0.01 else 4
        return f"{self.currency}{cost:,.{digits}f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Some calls, at the `prices` of today."""

    sums: Sequence[UsageSum]
    prices: Prices

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.sums)

    @property
    def usage(self) -> Usage:
        return sum((one.usage for one in self.sums), Usage())

    @property
    def missed(self) -> int:
        """The tokens that had to be sent anew."""
        return sum(one.missed for one in self.sums)

    @property
    def cached(self) -> float:
        """The part of the input that was read from the cache, 0 to 1."""
        return self.usage.cache_read / self.usage.sent if self.usage.sent else 0.0

    @property
    def cost(self) -> float | None:
        """Without the `unpriced` models; None: no call has a price."""
        return _total(self.prices.cost(one.model, one.usage) for one in self.sums)

    @property
    def plain_cost(self) -> float | None:
        """What it would have cost without a cache."""
        plain = ((one.model, Usage(input=one.usage.sent, output=one.usage.output)) for one in self.sums)
        return _total(self.prices.cost(model, usage) for model, usage in plain)

    @property
    def unpriced(self) -> list[str]:
        return list(dict.fromkeys(model for (_, model), part in self.bills if part.cost is None))

    @property
    def kinds(self) -> list[tuple[CallKind, Spending]]:
        """The most calls first."""
        return self._parts(lambda one: one.kind, lambda part: part.calls)

    @property
    def bills(self) -> list[tuple[tuple[CallKind, str], Spending]]:
        """By kind and model, the most tokens first."""
        return self._parts(lambda one: (one.kind, one.model), lambda part: part.usage.sent)

    @property
    def misses(self) -> list[tuple[MissCause, Spending]]:
        """By cause, the most missed tokens first."""
        causes = self._parts(lambda one: one.miss, lambda part: part.missed)
        return [(cause, part) for cause, part in causes if cause is not None]

    def _parts(self, key: Callable[[UsageSum], Key], size: Callable[[Spending], int]) -> list[tuple[Key, Spending]]:
        groups: dict[Key, list[UsageSum]] = {}
        for one in self.sums:
            groups.setdefault(key(one), []).append(one)
        parts = [(name, replace(self, sums=group)) for name, group in groups.items()]
        return sorted(parts, key=lambda part: size(part[1]), reverse=True)


class UsageReport:
    """At the `prices` of today; months are those of `zone` (an IANA name)."""

    def __init__(self, usage_log: UsageLog, prices: Prices, clock: Clock, zone: str) -> None:
        self._usage_log = usage_log
        self._prices = prices
        self._clock = clock
        self._zone = ZoneInfo(zone)

    async def ever(self, scopes: frozenset[Scope]) -> Spending:
        return Spending(sums=await self._usage_log.sums(scopes), prices=self._prices)

    async def lately(self, scopes: frozenset[Scope]) -> Spending:
        """The last 30 days."""
        since = self._clock.now() - LATELY
        return Spending(sums=await self._usage_log.sums(scopes, since=since), prices=self._prices)

    async def session(self, session_id: int, scopes: frozenset[Scope]) -> Spending:
        return Spending(sums=await self._usage_log.sums(scopes, session_id=session_id), prices=self._prices)

    async def sessions(self, scopes: frozenset[Scope], limit: int) -> list[tuple[Session, Spending]]:
        """The sessions of the latest calls, latest first."""
        found = await self._usage_log.sessions(scopes, limit)
        return [(session, await self.session(session.id, scopes)) for session in found]

    async def months(self, scopes: frozenset[Scope]) -> list[tuple[date, Spending]]:
        """The last twelve months with any spending, by first day, latest first."""
        until: datetime | None = None
        found: list[tuple[date, Spending]] = []
        while len(found) < MONTHS and (latest := await self._usage_log.latest(scopes, until)):
            local = latest.astimezone(self._zone)
            start = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
            sums = await self._usage_log.sums(scopes, since=start, until=until)
            found.append((start.date(), Spending(sums=sums, prices=self._prices)))
            until = start
        return found


def _total(costs: Iterable[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None
