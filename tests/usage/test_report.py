"""The books by month: where months begin is said by the clocks of the house."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from core.store.sqlite.database import Database
from core.store.usage import ModelCall, UsageLog
from core.types import Payer, Usage
from core.usage.report import Prices, UsageReport
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA

MINE = frozenset((ANA,))


@pytest.mark.parametrize(
    ("zone", "months"),
    [
        ("UTC", {date(2026, 11, 1): 1, date(2026, 10, 1): 2, date(2025, 12, 1): 4}),
        ("Asia/Tokyo", {date(2026, 11, 1): 3, date(2026, 1, 1): 4}),
    ],
)
async def test_months_are_those_of_the_zone_and_empty_ones_are_left_out(
    database: Database, zone: str, months: dict[date, int]
) -> None:
    calls = UsageLog(database)
    await _spend(calls, 1, datetime(2026, 11, 20, tzinfo=UTC))
    await _spend(calls, 2, datetime(2026, 10, 31, 23, 30, tzinfo=UTC))
    await _spend(calls, 4, datetime(2025, 12, 31, 22, 59, tzinfo=UTC))
    books = UsageReport(calls, Prices({}, "$"), SteadyClock(), zone)
    assert {day: spending.usage.input for day, spending in await books.months(MINE)} == months
    assert await books.months(frozenset()) == []


async def test_at_most_twelve_months_and_thirty_days(database: Database) -> None:
    calls = UsageLog(database)
    for month in range(1, 12):
        for year in (2025, 2026):
            await _spend(calls, month, datetime(year, month, 1, 12, tzinfo=UTC))
    books = UsageReport(calls, Prices({}, "$"), SteadyClock(), "UTC")
    months = [day for day, _ in await books.months(MINE)]
    assert months == [*(date(2026, month, 1) for month in range(11, 0, -1)), date(2025, 11, 1)]
    assert (await books.lately(MINE)).usage.input == 11, "what is more than thirty days old is not lately"


async def _spend(calls: UsageLog, tokens: int, at: datetime) -> None:
    used = Usage(input=tokens)
    await calls.keep(ModelCall(kind="chat", model="m", usage=used, at=at, payer=Payer(scope=ANA)))
