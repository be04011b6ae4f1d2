"""The books: what was paid for, by whom, what came before a call, and what it all came to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from config.model_options import Price, UsageOptions
from core.store.engine import Database
from core.store.sessions import Conversations
from core.store.usage_limits import (
    MissCause,
    ModelCall,
    Spending,
    UsageLog,
    UsageSum,
    record_prefix_break,
)
from core.types import Address, BillingScope, CallKind, Usage
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, BOB, CHAT, NOON, message, opened, session
from tests.fixtures.tables import each_row

MINE = frozenset((ANA,))
ONE = Usage(input=1, output=2, cache_read=3, cache_write_hour=3)
MISS = Usage(input=1, output=2, cache_write=9)
DAY = timedelta(days=1)
SONNET = Price(input=2.0, output=10.0, cache_write=2.5, cache_read=0.1)
FREE = Price(input=0, output=0, cache_write=0, cache_read=0)
PRICES = UsageOptions(prices={"claude-sonnet-5-5": SONNET, "free": FREE}, currency="$")
USED = Usage(input=100_000, output=10_000, cache_write=40_000, cache_read=1_000_000)


@pytest.fixture
def conversations(database: Database, clock: SteadyClock) -> Conversations:
    return Conversations(database, clock)


@pytest.fixture
def calls(database: Database) -> UsageLog:
    return UsageLog(database)


def call(
    payer: BillingScope, kind: CallKind = "chat", at: datetime = NOON, **changes: object
) -> ModelCall:
    return ModelCall(
        **{"kind": kind, "model": "sonnet", "usage": ONE, "at": at, "billing": payer, **changes}  # type: ignore[arg-type]
    )


async def next_miss(calls: UsageLog, session_id: int) -> MissCause | None:
    """Why the next call, which reads nothing from the cache, missed."""
    before = {
        (one.model, one.miss): one.calls
        for one in (await calls.load_spending(MINE, session_id=session_id)).sums
    }
    await calls.log(call(BillingScope(session_id=session_id), usage=MISS))
    after = (await calls.load_spending(MINE, session_id=session_id)).sums
    (cause,) = (one.miss for one in after if one.calls > before.get((one.model, one.miss), 0))
    return cause


async def test_usage_is_summed_by_kind_model_and_cache_miss_cause(
    conversations: Conversations, calls: UsageLog
) -> None:
    one = BillingScope(session_id=(await opened(conversations, "hello")).id)
    for kind, model, at in (
        ("chat", "sonnet", NOON),
        ("chat", "sonnet", NOON + DAY),
        ("chat", "opus", NOON),
        ("title", "haiku", NOON),
    ):
        await calls.log(call(one, kind, at, model=model))  # type: ignore[arg-type]
    await calls.log(call(BillingScope(scope=ANA), "expansion", model="haiku"))
    sums = (await calls.load_spending(MINE)).sums
    assert UsageSum(kind="chat", model="sonnet", calls=2, usage=ONE + ONE) in sums
    assert [(one.kind, one.model, one.calls) for one in sums] == [
        ("chat", "opus", 1),
        ("chat", "sonnet", 2),
        ("expansion", "haiku", 1),
        ("title", "haiku", 1),
    ]
    assert [one.calls for one in (await calls.load_spending(MINE, since=NOON + DAY)).sums] == [1]
    assert (
        sum(
            one.calls
            for one in (await calls.load_spending(MINE, since=NOON, until=NOON + DAY)).sums
        )
        == 4
    ), "the end is outside"
    assert (
        sum(
            found.calls
            for found in (await calls.load_spending(MINE, session_id=one.session_id)).sums
        )
        == 4
    )
    assert (await calls.load_spending(MINE, session_id=10**30)).sums == []


async def test_model_call_is_charged_to_the_scope_of_its_session(
    conversations: Conversations, calls: UsageLog
) -> None:
    hers = await opened(conversations, "hello")
    await calls.log(call(BillingScope(session_id=hers.id, scope=BOB)))
    await calls.log(call(BillingScope(session_id=-5, scope=BOB)))
    await calls.log(call(BillingScope(session_id=999)))
    await calls.log(call(BillingScope()))
    assert [one.calls for one in (await calls.load_spending(MINE)).sums] == [1]
    assert [one.calls for one in (await calls.load_spending(frozenset((BOB,)))).sums] == [1]
    assert (await calls.load_spending(frozenset((BOB,)), session_id=-5)).sums == [], (
        "what is incognito has no name in the books"
    )
    assert [one.calls for one in (await calls.load_spending(frozenset((ANA, BOB)))).sums] == [2], (
        "nobody's are left out"
    )


async def test_prompt_cache_misses_are_counted_by_cause(
    conversations: Conversations, calls: UsageLog, database: Database
) -> None:
    made = await opened(conversations, "hello")
    payer = BillingScope(session_id=made.id)
    await calls.log(call(payer))
    for usage, later in ((MISS, 1), (ONE, 2), (MISS, 3)):
        await calls.log(
            call(payer, at=NOON + later * DAY, usage=usage, cached_from=NOON + later * DAY)
        )
    await database.write(lambda connection: record_prefix_break(connection, made.id, "forget"))
    await calls.log(call(payer, at=NOON + 3 * DAY, usage=MISS))
    for found in (
        (await calls.load_spending(MINE)).sums,
        (await calls.load_spending(MINE, session_id=payer.session_id)).sums,
    ):
        assert [(one.miss, one.calls, one.missed) for one in found] == [
            (None, 1, 0),
            ("forget", 1, 9),
            ("idle", 3, 12),
        ]
    assert (await calls.load_spending(MINE, since=NOON + 4 * DAY)).sums == []


async def test_cache_miss_is_found_by_comparing_with_the_last_chat_call(
    conversations: Conversations, calls: UsageLog
) -> None:
    made = await opened(conversations, "hello")
    assert await next_miss(calls, made.id) == "first"
    await calls.log(call(BillingScope(session_id=made.id), "title"))
    assert await next_miss(calls, made.id) == "evicted"
    await calls.log(call(BillingScope(session_id=made.id), model="opus", usage=MISS))
    assert await next_miss(calls, made.id) == "model"


async def test_prompt_prefix_break_is_reported_with_the_next_call_and_the_first_cause_counts(
    conversations: Conversations, calls: UsageLog, database: Database
) -> None:
    made = await opened(conversations, "hello")
    await next_miss(calls, made.id)
    for cause in ("forget", "edit"):
        await database.write(
            lambda connection, cause=cause: record_prefix_break(connection, made.id, cause)  # type: ignore[misc]
        )
    await calls.log(call(BillingScope(session_id=made.id), "title"))
    assert [await next_miss(calls, made.id) for _ in range(2)] == ["forget", "evicted"]


async def test_a_message_that_is_edited_or_deleted_disturbs_its_session(
    conversations: Conversations, calls: UsageLog
) -> None:
    made = await conversations.create(session())
    for number, text in enumerate(("hello", "bye", "/forget x")):
        kind = "command" if text.startswith("/") else "chat"
        await conversations.append([message(made.id, text, external_id=str(number), kind=kind)])
        await next_miss(calls, made.id)
    await conversations.amend(CHAT, "0", "hello")
    await conversations.amend(CHAT, "2", None)
    assert await next_miss(calls, made.id) == "evicted", "nothing that is sent has changed"
    await conversations.amend(CHAT, "0", "Hello!")
    assert await next_miss(calls, made.id) == "edit"
    await conversations.amend(CHAT, "1", None)
    assert await next_miss(calls, made.id) == "edit"


async def test_cause_of_the_first_cache_miss_tells_how_the_session_began(
    conversations: Conversations, calls: UsageLog
) -> None:
    first = await opened(conversations, "hello")
    child = await conversations.create(session(parent_id=first.id), "compression")
    assert await next_miss(calls, child.id) == "compression"
    fresh = await conversations.create(session(), "rights")
    assert await next_miss(calls, fresh.id) == "rights"
    elsewhere = await conversations.create(session(address=Address(platform="x", chat_id="1")))
    assert await next_miss(calls, elsewhere.id) == "first"
    there = await conversations.create(
        session(address=Address(platform="x", chat_id="2"), parent_id=fresh.id)
    )
    assert await next_miss(calls, there.id) == "first", "nothing was said there before"
    await next_miss(calls, first.id)
    await conversations.reopen(first.id, NOON + DAY)
    assert await next_miss(calls, first.id) == "evicted", "it is sent as it was before"


def cost_of(model: str, used: Usage, prices: UsageOptions = PRICES) -> float | None:
    return Spending(
        sums=[UsageSum(kind="chat", model=model, calls=1, usage=used)], prices=prices
    ).cost


def test_each_kind_of_token_has_its_price() -> None:
    assert cost_of("claude-sonnet-5-5", USED) == pytest.approx(0.2 + 0.1 + 0.1 + 0.1)
    assert cost_of("free", USED) == 0


@each_row(
    "name",
    ["claude-sonnet-5-5-20260915", "claude-sonnet-5-5-2026-09-15", "claude-sonnet-5-5-latest"],
)
def test_dated_model_name_has_the_price_of_its_model(name: str) -> None:
    assert cost_of(name, USED) == cost_of("claude-sonnet-5-5", USED)


@each_row("name", ["claude-sonnet-5", "claude-sonnet-5-5-fast", "llama3", ""])
def test_model_without_a_known_price_has_no_cost(name: str) -> None:
    assert cost_of(name, USED) is None


async def test_web_searches_are_stored_and_have_their_price(
    conversations: Conversations, calls: UsageLog
) -> None:
    session_id = (await opened(conversations, "hello")).id
    searched = call(BillingScope(session_id=session_id), usage=Usage(input=50_000, web_searches=3))
    await calls.log(searched)
    await calls.log(searched)
    usage = (await calls.load_spending(MINE, session_id=session_id)).usage
    assert usage == Usage(input=100_000, web_searches=6)
    price = SONNET.model_copy(update={"web_search": 10.0})
    prices = UsageOptions(prices={"claude-sonnet-5-5": price}, currency="$")
    assert cost_of("claude-sonnet-5-5", usage, prices) == pytest.approx(0.2 + 0.06)


def test_cache_writes_of_one_hour_are_charged_at_their_own_price() -> None:
    used = Usage(cache_write=50_000, cache_write_hour=30_000)
    assert cost_of("claude-sonnet-5-5", used) == pytest.approx(0.125), "or that of five minutes"
    hourly = Price(input=2.0, output=10.0, cache_write=2.5, cache_write_hour=4.0, cache_read=0.1)
    assert cost_of("m", used, UsageOptions(prices={"m": hourly}, currency="$")) == pytest.approx(
        0.05 + 0.12
    )


def test_costs_are_summed_with_and_without_the_cache() -> None:
    sums = [
        UsageSum(kind="title", model="llama3", calls=1, usage=Usage(input=5, output=1)),
        UsageSum(kind="chat", model="claude-sonnet-5-5", calls=2, usage=replace(USED, input=0)),
        UsageSum(
            kind="chat",
            model="claude-sonnet-5-5",
            calls=1,
            usage=Usage(input=100_000),
            miss="idle",
            missed=7,
        ),
        UsageSum(kind="chat", model="free", calls=2, usage=Usage(input=1), miss="edit", missed=9),
        UsageSum(kind="facts", model="llama3", calls=1, usage=Usage(), miss="idle", missed=3),
    ]
    spending = Spending(sums=sums, prices=PRICES)
    assert spending.cost == pytest.approx(0.5)
    assert spending.uncached_cost == pytest.approx(1.14 * 2 + 0.1)
    assert [(kind, part.calls) for kind, part in spending.by_kind] == [
        ("chat", 5),
        ("title", 1),
        ("facts", 1),
    ]
    bills = [
        ("chat", "claude-sonnet-5-5"),
        ("title", "llama3"),
        ("chat", "free"),
        ("facts", "llama3"),
    ]
    assert [bill for bill, _ in spending.by_kind_and_model] == bills, "the most tokens first"
    assert [(cause, part.calls, part.missed_tokens) for cause, part in spending.by_miss_cause] == [
        ("idle", 2, 10),
        ("edit", 2, 9),
    ]
    assert (spending.calls, spending.unpriced_models) == (7, ["llama3"])
    assert spending.usage == USED + Usage(input=6, output=1)
    assert spending.cached_share == pytest.approx(1_000_000 / 1_140_006)


def test_spending_without_calls_has_no_cost_and_no_shares() -> None:
    spending = Spending(sums=[], prices=PRICES)
    assert (spending.calls, spending.cost, spending.uncached_cost, spending.cached_share) == (
        0,
        None,
        None,
        0.0,
    )


@each_row(
    ("cost", "shown"),
    [
        (0, "$0.00"),
        (0.00001, "under $0.0001"),
        (0.00042, "$0.0004"),
        (0.0421, "$0.042"),
        (1234.5, "$1,234.50"),
    ],
)
def test_amount_of_money_is_rounded_for_reading(cost: float, shown: str) -> None:
    assert Spending(sums=[], prices=PRICES).format_amount(cost) == shown


@pytest.mark.parametrize(
    ("zone", "months"),
    [
        ("UTC", {date(2026, 11, 1): 1, date(2026, 10, 1): 2, date(2025, 12, 1): 4}),
        ("Asia/Tokyo", {date(2026, 11, 1): 3, date(2026, 1, 1): 4}),
    ],
)
async def test_usage_months_follow_the_time_zone_and_omit_months_without_calls(
    database: Database, zone: str, months: dict[date, int]
) -> None:
    calls = UsageLog(database)
    await _spend(calls, 1, datetime(2026, 11, 20, tzinfo=UTC))
    await _spend(calls, 2, datetime(2026, 10, 31, 23, 30, tzinfo=UTC))
    await _spend(calls, 4, datetime(2025, 12, 31, 22, 59, tzinfo=UTC))
    books = UsageLog(database, zone=zone)
    assert {day: spending.usage.input for day, spending in await books.list_months(MINE)} == months
    assert await books.list_months(frozenset()) == []


async def test_usage_lists_at_most_twelve_months(database: Database) -> None:
    calls = UsageLog(database)
    for month in range(1, 12):
        for year in (2025, 2026):
            await _spend(calls, month, datetime(year, month, 1, 12, tzinfo=UTC))
    months = [day for day, _ in await calls.list_months(MINE)]
    assert months == [*(date(2026, month, 1) for month in range(11, 0, -1)), date(2025, 11, 1)]


async def _spend(calls: UsageLog, tokens: int, at: datetime) -> None:
    used = Usage(input=tokens)
    await calls.log(
        ModelCall(kind="chat", model="m", usage=used, at=at, billing=BillingScope(scope=ANA))
    )
