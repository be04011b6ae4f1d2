"""`mneme usage`: lists for eyes, JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.types import Usage
from tests.fixtures.command_line import good
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

PRICED = "[usage.prices]\nscripted = { input = 2.0, output = 10.0, cache_write = 2.5, cache_read = 0.1 }\n"


async def test_usage_command_lists_what_model_calls_have_cost(home: Path) -> None:
    used = (Usage(cache_write=100_000), Usage(cache_read=100_000, output=100))
    async with open_gateway(
        home, ScriptedModel(*(says("ok", usage=one) for one in used)), PRICED
    ) as harness:
        await harness.say("Where does the ferry leave?")
        await harness.say("And back?")
        month = harness.services.clock.now()
    lately = json.loads(good(home, "usage", "--json"))
    assert lately == {
        "calls": 2,
        "input_tokens": 200_000,
        "plain_tokens": 0,
        "cache_read_tokens": 100_000,
        "cache_write_tokens": 100_000,
        "cache_write_hour_tokens": 0,
        "output_tokens": 100,
        "web_searches": 0,
        "from_cache": 0.5,
        "cost": 0.261,
        "cost_uncached": 0.401,
        "currency": "$",
        "unpriced": [],
        "kinds": {"chat": 2},
        "misses": [{"cause": "first", "times": 1, "tokens": 100_000}],
    }
    (by_month,) = json.loads(good(home, "usage", "months", "--json"))
    assert by_month == {"month": f"{month:%Y-%m}", **lately}
    shown = good(home, "usage")
    assert "2 calls: 2 for answers by scripted ($0.261)." in shown
    assert "It cost $0.261; without the cache, it would have cost $0.401." in shown
    assert "100,000 tokens in 1 request at the first request of a conversation" in shown
    assert f"{month:%B %Y}" in good(home, "usage", "months")


def test_usage_without_any_model_call_reports_no_calls(home: Path) -> None:
    assert good(home, "usage") == "The last 30 days: no model calls.\n"
    assert good(home, "usage", "months") == "No model has been used yet.\n"
    assert json.loads(good(home, "usage", "--json"))["calls"] == 0
    assert json.loads(good(home, "usage", "months", "--json")) == []
