"""The page "Use": what model calls cost, by day, model, purpose and account."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from config.model_options import Price, UsageOptions
from core.store.engine import Connection
from core.store.usage_limits import ModelCall, Spending, UsageSum
from core.types import BillingScope, CallKind, Usage
from gateway.texts.catalog import list_languages, load_texts
from gateway.upkeep.spending import SpendingHistory, compute_missed_cost
from gateway.web.use import CHART_HEIGHT, draw_chart
from tests.fixtures.page_browser import OpenPage, open_page
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.sweeps import list_cases

pytestmark = pytest.mark.slow

TEXTS = load_texts("en")
WORDS = TEXTS.table("page_use")
PRICE = Price(input=1.0, output=10.0, cache_write=1.0, cache_read=0.1)
PRICED = "[usage.prices]\nscripted = { input = 1.0, output = 10.0, cache_write = 1.0, cache_read = 0.1 }\n"


async def log_call(
    page: OpenPage,
    *,
    tokens: int,
    days_ago: int = 0,
    who: str = "42",
    kind: CallKind = "chat",
    model: str = "scripted",
) -> None:
    """Log a model call of this person."""
    services = page.harness.services
    await services.usage_log.log(
        ModelCall(
            kind=kind,
            model=model,
            usage=Usage(input=tokens),
            at=services.clock.now() - timedelta(days=days_ago),
            billing=BillingScope(scope=page.harness.inbound("x", who=who).scope, user_id=who),
        )
    )


async def test_web_page_of_usage_shows_costs_by_day_model_and_purpose(home: Path) -> None:
    async with open_page(home, options=PRICED) as page:
        await log_call(page, tokens=2_000_000)
        await log_call(page, tokens=1_000_000, days_ago=3, kind="title")
        use = await page.browser.open("/use")
    assert "$3.00" in use.text
    assert "for titles" in use.text
    titles = re.findall(r"<title>([^<]*\$[^<]*)</title>", use.body)
    assert [title.rpartition(" ")[2] for title in titles] == ["$1.00", "$2.00"]


async def test_web_page_of_usage_shows_no_model_calls_of_other_people(home: Path) -> None:
    async with open_page(home, options=PRICED) as page:
        await log_call(page, tokens=7_000_000, who="7")
        use = await page.browser.open("/use")
    assert WORDS["NOTHING"] in use.text
    assert "$7.00" not in use.text


async def test_time_to_an_answer_and_limits_are_shown(home: Path) -> None:
    options = "[limits.owner_day]\nmoney = 5.0\n"
    async with open_page(home, ScriptedModel(says("Hi.")), options) as page:
        await page.harness.say("Hello")
        use = await page.browser.open("/use")
        assert WORDS["ANSWER_TIME"] in use.text
        assert "<meter" in use.body
        raised = await page.browser.send(use.form("/do/raise-line"))
        assert "10.00" in raised.text


async def test_model_names_of_strangers_are_escaped(home: Path) -> None:
    async with open_page(home) as page:
        await log_call(page, tokens=10, model="<script>alert(1)</script>")
        use = await page.browser.open("/use")
    assert "<script>alert" not in use.body
    assert "&lt;script&gt;" in use.body


async def test_daily_usage_sums_of_past_days_are_cached_until_an_erasure(home: Path) -> None:
    async with open_page(home) as page:
        await log_call(page, tokens=5, days_ago=3)
        services = page.harness.services
        history = SpendingHistory(services.usage_log, services.clock)
        scopes = frozenset({page.harness.inbound("x").scope})
        until = services.clock.now() - timedelta(days=2)

        async def count_tokens(epoch: int) -> int:
            accounts = await history.load_accounts(scopes, epoch, until - timedelta(days=7), until)
            return history.add_up(accounts.values()).usage.input

        assert await count_tokens(epoch=1) == 5
        await services.database.execute("DELETE FROM model_calls", {})
        assert await count_tokens(epoch=1) == 5
        assert await count_tokens(epoch=2) == 0


async def test_calls_of_today_are_counted_at_once(home: Path) -> None:
    async with open_page(home, options=PRICED) as page:
        await log_call(page, tokens=1_000_000)
        assert "$1.00" in (await page.browser.open("/use")).text
        await log_call(page, tokens=1_000_000)
        assert "$2.00" in (await page.browser.open("/use")).text


@pytest.mark.parametrize("language", list_cases(list_languages(), "ja"))
async def test_web_page_of_usage_is_in_the_language_of_the_browser(
    home: Path, language: str
) -> None:
    async with open_page(home, options=PRICED) as page:
        await log_call(page, tokens=2_000_000)
        answer = await page.browser.open("/use", **{"Accept-Language": language})
    assert answer.status == 200
    assert load_texts(language).table("page_use")["BY_MODEL"] in answer.text


def spend(model: str, tokens: int, *, has_price: bool = True) -> Spending:
    prices = UsageOptions(prices={model: PRICE} if has_price else {}, currency="$")
    usage_sum = UsageSum(kind="chat", model=model, calls=1, usage=Usage(input=tokens))
    return Spending(sums=[usage_sum], prices=prices)


def test_highest_bar_fills_the_chart_and_a_day_without_calls_is_empty() -> None:
    empty = Spending(sums=[], prices=UsageOptions(prices={}, currency="$"))
    days = [
        (date(2026, 5, 1), spend("a", 4_000_000)),
        (date(2026, 5, 2), empty),
        (date(2026, 5, 3), spend("a", 1_000_000)),
    ]
    chart = draw_chart(TEXTS, days, [dict(part.by_model) for _, part in days])
    assert chart is not None
    first, second, third = chart.bars
    assert [segment.height for segment in first.segments] == [CHART_HEIGHT]
    assert second.segments == []
    assert [segment.height for segment in third.segments] == [CHART_HEIGHT / 4]
    assert chart.highest == "$4.00"


@pytest.mark.parametrize(
    ("tokens", "half"), [(4_000_000, "$2.00"), (1_500_000, ""), (40_000, "$0.020"), (18_000, "")]
)
def test_axis_names_half_of_the_amount_only_with_as_many_decimals(tokens: int, half: str) -> None:
    days = [(date(2026, 5, 1), spend("a", tokens))]
    chart = draw_chart(TEXTS, days, [dict(part.by_model) for _, part in days])
    assert chart is not None
    assert chart.half == half


def test_chart_counts_tokens_if_a_model_has_no_price() -> None:
    days = [(date(2026, 5, 1), spend("a", 1_500, has_price=False))]
    chart = draw_chart(TEXTS, days, [dict(part.by_model) for _, part in days])
    assert chart is not None
    assert chart.highest == "1,500 tokens"


async def test_chart_is_split_by_purpose_and_account_and_each_day_is_in_a_table(home: Path) -> None:
    async with open_page(home, options=PRICED) as page:
        await log_call(page, tokens=2_000_000)
        await log_call(page, tokens=1_000_000, kind="title")
        by_kind = await page.browser.open("/use?by=kind")
        titles = re.findall(r"<title>([^<]*\$[^<]*)</title>", by_kind.body)
        assert [title.partition(", ")[2] for title in titles] == [
            "for answers: $2.00",
            "for titles: $1.00",
        ]
        account = await page.browser.open("/use?by=account")
        assert "telegram:42: $3.00" in account.body
        days = account.text.partition(WORDS["EACH_DAY"])[2].partition(WORDS["BY_MODEL"])[0]
        assert "$3.00" in days
        assert (await page.browser.open("/use?by=nonsense")).status == 200


async def test_reasons_of_cache_misses_are_shown_with_their_tokens(home: Path) -> None:
    async with open_page(home) as page:
        await log_call(page, tokens=1_000)

        def miss(connection: Connection) -> None:
            connection.execute("UPDATE model_calls SET miss = 'idle', missed_tokens = 900")

        await page.harness.services.database.write(miss)
        use = await page.browser.open("/use")
        rows = re.findall(r"<tr>.*?</tr>", use.body, re.DOTALL)
        rows = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]
        cost = TEXTS.table("page_use")["NO_PRICE"]
        for name in (TEXTS.table("MISS_CAUSES")["idle"], TEXTS.table("page_use")["TOTAL"]):
            assert f"{name} {cost} 1 900" in rows
        summary = use.body.partition("<table")[0]
        assert TEXTS.table("page_use")["MISSED_COST"] in summary
        assert '<a href="#misses">' in summary
        assert "goes on within 5 minutes is cheap" in use.text


def test_extra_cost_of_missed_tokens_is_the_difference_to_the_cached_price() -> None:
    sums = [
        UsageSum(kind="chat", model=model, calls=1, usage=Usage(input=9), miss=None, missed=10**6)
        for model in ("scripted", "free")
    ]
    priced = Spending(sums=sums, prices=UsageOptions(currency="$", prices={"scripted": PRICE}))
    assert compute_missed_cost(priced) == pytest.approx(0.9)
    unpriced = Spending(sums=sums, prices=UsageOptions(currency="$", prices={}))
    assert compute_missed_cost(unpriced) is None
