"""The owner is told once when a month will probably cost more than their line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.store.usage_limits import ModelCall
from core.types import BillingScope, Usage
from gateway import services
from gateway.upkeep.spending import MonthLine
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, notices, open_gateway

pytestmark = pytest.mark.slow

PRICED = "[usage.prices]\nscripted = { input = 1.0, output = 10.0, cache_write = 1.0, cache_read = 0.1 }\n"
OWNER, GUEST = "42", "7"


async def spend(
    harness: GatewayHarness, dollars: int, model: str = "scripted", who: str = OWNER
) -> None:
    """Log a call of this person that costs so many dollars, if the model has a price."""
    scope = harness.inbound("x", who=who).scope
    await harness.services.usage_log.log(
        ModelCall(
            kind="chat",
            model=model,
            usage=Usage(input=dollars * 1_000_000),
            at=harness.services.clock.now(),
            billing=BillingScope(scope=scope, user_id=who),
        )
    )


async def test_owner_is_told_once_a_month_about_the_monthly_cost_limit_and_again_after_its_change(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SteadyClock(datetime(2026, 11, 13, 0, 0, tzinfo=UTC))
    monkeypatch.setattr(services, "WallClock", lambda: clock)
    async with open_gateway(home, options=f"[usage]\nmonth_line = 10.0\n{PRICED}") as harness:
        await harness.say("/status")
        line = MonthLine(harness.services, clock)
        # What others spend is theirs, and 3 of 10 dollars after 40 % of the month are under the line.
        await spend(harness, 900, who=GUEST)
        await spend(harness, 3)
        await line.tend()
        assert await notices(harness) == []
        await spend(harness, 2)
        await spend(harness, 1, model="unknown")
        await line.tend()
        assert await notices(harness) == [], "it looks once an hour"
        clock.advance(hours=1)
        await line.tend()
        ((address, text),) = await notices(harness)
        assert address == "telegram:42"
        assert text.startswith("This month has cost $5.00 so far, and will probably cost $12.46.")
        assert "Your limit is $10.00 (`month_line` in `[usage]`)." in text
        assert text.endswith("No price is known for `unknown`, so the month costs more than that.")
        clock.advance(hours=1)
        await line.tend()
        assert await notices(harness) == []
        clock.advance(days=20)
        await spend(harness, 30)
        await line.tend()
        assert len(await notices(harness)) == 1
    async with open_gateway(home, options=f"[usage]\nmonth_line = 20.0\n{PRICED}") as harness:
        await MonthLine(harness.services, clock).tend()
        assert len(await notices(harness)) == 1


async def test_monthly_cost_forecast_on_the_first_day_counts_only_the_actual_cost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SteadyClock(datetime(2026, 11, 1, 12, 0, tzinfo=UTC))
    monkeypatch.setattr(services, "WallClock", lambda: clock)
    async with open_gateway(home, options=f"[usage]\nmonth_line = 10.0\n{PRICED}") as harness:
        await harness.say("/status")
        await spend(harness, 9)
        line = MonthLine(harness.services, clock)
        await line.tend()
        assert await notices(harness) == []
        await spend(harness, 2)
        clock.advance(hours=1)
        await line.tend()
        assert len(await notices(harness)) == 1
