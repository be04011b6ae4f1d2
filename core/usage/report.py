"""What was spent on models, as people ask for it: in a conversation, lately, by month, by conversation. Only reads."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from core.ports import Clock
from core.records import Bill, Spending
from core.types import Scope, Session
from core.usage.prices import Prices
from core.usage.roles import Tally

LATELY = timedelta(days=30)
MONTHS = 12


class Books:
    """Reads `tally` at the `prices` of today; months are those of `zone` (an IANA name)."""

    def __init__(self, tally: Tally, prices: Prices, clock: Clock, zone: str) -> None:
        self.prices = prices
        self._tally = tally
        self._clock = clock
        self._zone = ZoneInfo(zone)

    async def session(self, session_id: int, scopes: frozenset[Scope]) -> Spending:
        """What one conversation has cost."""
        bills = await self._tally.bills(scopes, session_id=session_id)
        return self.prices.spending(bills, await self._tally.misses(scopes, session_id=session_id))

    async def lately(self, scopes: frozenset[Scope]) -> Spending:
        """What the last 30 days have cost."""
        since = self._clock.now() - LATELY
        bills = await self._tally.bills(scopes, since)
        return self.prices.spending(bills, await self._tally.misses(scopes, since))

    async def months(self, scopes: frozenset[Scope]) -> list[tuple[date, Spending]]:
        """The last twelve months in which anything was spent, by their first day, latest first."""
        began = await self._tally.began(scopes)
        start = _month(self._clock.now().astimezone(self._zone))
        until: datetime | None = None
        found: list[tuple[date, Spending]] = []
        while began is not None and len(found) < MONTHS and (until is None or until > began):
            bills = await self._tally.bills(scopes, start, until)
            if bills:
                found.append((start.date(), self.prices.spending(bills)))
            until, start = start, _month(start - timedelta(days=1))
        return found

    async def bills(self, scopes: frozenset[Scope]) -> list[tuple[Bill, str | None]]:
        """All that was ever spent, by kind and model, with what it has cost; None: the model has no price."""
        costs = [(bill, self.prices.cost(bill.model, bill.usage)) for bill in await self._tally.bills(scopes)]
        return [(bill, None if cost is None else self.prices.amount(cost)) for bill, cost in costs]

    async def sessions(self, scopes: frozenset[Scope], limit: int) -> list[tuple[Session, Spending]]:
        """The conversations that a model was last asked in, each with what it has cost, latest first."""
        found = []
        for session, bills in await self._tally.sessions(scopes, limit):
            misses = await self._tally.misses(scopes, session_id=session.id)
            found.append((session, self.prices.spending(bills, misses)))
        return found


def _month(local: datetime) -> datetime:
    """When its month began there."""
    return local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
