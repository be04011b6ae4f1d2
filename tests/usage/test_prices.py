"""Prices: what tokens cost, by the table of the settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from config.settings import Price
from core.store.usage import UsageSum
from core.types import Usage
from core.usage.report import Prices, Spending

SONNET = Price(input=2.0, output=10.0, cache_write=2.5, cache_read=0.1)
PRICES = Prices({"claude-sonnet-5-5": SONNET, "free": Price(input=0, output=0, cache_write=0, cache_read=0)}, "$")
USED = Usage(input=100_000, output=10_000, cache_write=40_000, cache_read=1_000_000)


def test_each_kind_of_token_has_its_price() -> None:
    assert PRICES.cost("claude-sonnet-5-5", USED) == pytest.approx(0.2 + 0.1 + 0.1 + 0.1)
    assert PRICES.cost("free", USED) == 0


@pytest.mark.parametrize("name", ["claude-sonnet-5-5-20260915", "claude-sonnet-5-5-latest"])
def test_a_dated_name_has_the_price_of_its_model(name: str) -> None:
    assert PRICES.cost(name, USED) == PRICES.cost("claude-sonnet-5-5", USED)


@pytest.mark.parametrize("name", ["claude-sonnet-5", "claude-sonnet-5-5-fast", "llama3", ""])
def test_what_is_not_in_the_table_has_no_price(name: str) -> None:
    assert PRICES.cost(name, USED) is None


def test_what_is_written_for_an_hour_has_a_price_of_its_own() -> None:
    used = Usage(cache_write=50_000, cache_write_hour=30_000)
    assert PRICES.cost("claude-sonnet-5-5", used) == pytest.approx(0.125), "or that of five minutes"
    hourly = Prices({"m": Price(input=2.0, output=10.0, cache_write=2.5, cache_write_hour=4.0, cache_read=0.1)}, "$")
    assert hourly.cost("m", used) == pytest.approx(0.05 + 0.12)


def test_bills_are_added_up_beside_what_they_were_without_a_cache() -> None:
    sums = [
        UsageSum(kind="title", model="llama3", calls=1, usage=Usage(input=5, output=1)),
        UsageSum(kind="chat", model="claude-sonnet-5-5", calls=2, usage=replace(USED, input=0)),
        UsageSum(kind="chat", model="claude-sonnet-5-5", calls=1, usage=Usage(input=100_000), miss="idle", missed=7),
        UsageSum(kind="chat", model="free", calls=2, usage=Usage(input=1), miss="edit", missed=9),
        UsageSum(kind="facts", model="llama3", calls=1, usage=Usage(), miss="idle", missed=3),
    ]
    spending = Spending(sums=sums, prices=PRICES)
    assert spending.cost == pytest.approx(0.5)
    assert spending.plain_cost == pytest.approx(1.14 * 2 + 0.1)
    assert [(kind, part.calls) for kind, part in spending.kinds] == [("chat", 5), ("title", 1), ("facts", 1)]
    bills = [("chat", "claude-sonnet-5-5"), ("title", "llama3"), ("chat", "free"), ("facts", "llama3")]
    assert [bill for bill, _ in spending.bills] == bills, "the most tokens first"
    assert [(cause, part.calls, part.missed) for cause, part in spending.misses] == [("idle", 2, 10), ("edit", 2, 9)]
    assert (spending.calls, spending.unpriced) == (7, ["llama3"])
    assert spending.usage == USED + Usage(input=6, output=1)
    assert spending.cached == pytest.approx(1_000_000 / 1_140_006)


def test_nothing_spent_costs_nothing_that_could_be_said() -> None:
    spending = Spending(sums=[], prices=PRICES)
    assert (spending.calls, spending.cost, spending.plain_cost, spending.cached) == (0, None, None, 0.0)


@pytest.mark.parametrize(
    ("cost", "shown"),
    [(0, "$0.00"), (0.00001, "under $0.0001"), (0.00042, "$0.0004"), (0.0421, "$0.042"), (1234.5, "$1,234.50")],
)
def test_amounts_for_eyes(cost: float, shown: str) -> None:
    assert PRICES.amount(cost) == shown
