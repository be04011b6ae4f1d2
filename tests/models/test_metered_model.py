"""The meter: every call is entered, with the cause when a prefix was not in the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.errors import ModelError, StoreError
from core.models.wrappers import MeteredModel
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.usage_limits import MissCause, ModelCall, UsageLog, record_prefix_break
from core.types import BillingScope, Completion, Request, Usage
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, opened
from tests.fixtures.scripted_model import ScriptedModel, says

MINE = frozenset((ANA,))
FULL = Usage(input=0, cache_write=1000, output=5)
READ = Usage(input=0, cache_read=1000, cache_write=50, output=5)
NOTHING_READ = Usage(input=0, cache_write=1050, output=5)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _turns(*texts: str) -> tuple[dict[str, Any], ...]:
    roles = ("user", "assistant")
    return tuple(
        {"role": roles[number % 2], "content": [_text(text)]} for number, text in enumerate(texts)
    )


class _Desk:
    """A session of Ana's, and a metered model that says what it used."""

    def __init__(self, database: Database, clock: SteadyClock, session_id: int) -> None:
        self.database = database
        self.clock = clock
        self.calls = UsageLog(database)
        self.model = ScriptedModel()
        self.meter = MeteredModel(self.model, self.calls, clock)
        self.first = Request(
            system=(_text("You are Mneme."),),
            messages=_turns("Hello"),
            model="sonnet",
            billing=BillingScope(session_id=session_id),
        )
        self.second = replace(self.first, messages=_turns("Hello", "ok", "And now?"))

    async def ask(self, request: Request, usage: Usage) -> Completion:
        self.model.script.append(says("ok", usage=usage))
        return await self.meter.complete(request, lambda _: None, lambda _: None)

    async def causes(self) -> dict[MissCause, int]:
        return {
            one.miss: one.missed
            for one in (await self.calls.load_spending(MINE)).sums
            if one.miss is not None
        }


@pytest.fixture
async def router(database: Database, clock: SteadyClock) -> _Desk:
    made = await opened(Conversations(database, clock), "hello")
    return _Desk(database, clock, made.id)


async def test_prompt_prefix_read_from_the_cache_counts_as_no_miss(router: _Desk) -> None:
    await router.ask(router.first, FULL)
    assert await router.causes() == {"first": 1000}
    await router.ask(router.second, READ)
    await router.ask(router.second, replace(READ, cache_read=1045))
    assert await router.causes() == {"first": 1000}
    spending = await router.calls.load_spending(MINE)
    sums = [(one.kind, one.model, one.miss, one.calls, one.usage.output) for one in spending.sums]
    assert sums == [("chat", "scripted", None, 2, 10), ("chat", "scripted", "first", 1, 5)]


async def test_cache_miss_has_the_cause_model_after_a_model_change_and_else_evicted(
    router: _Desk,
) -> None:
    await router.ask(router.first, FULL)
    await router.ask(router.second, NOTHING_READ)
    assert await router.causes() == {"first": 1000, "evicted": 1000}
    router.model.script.append(replace(says("ok", usage=NOTHING_READ), model="opus"))
    await router.meter.complete(router.second, lambda _: None, lambda _: None)
    assert await router.causes() == {"first": 1000, "evicted": 1000, "model": 1050}


async def test_cache_miss_after_five_minutes_without_a_call_has_the_cause_idle(
    router: _Desk,
) -> None:
    await router.ask(router.first, FULL)
    router.clock.advance(minutes=5, seconds=1)
    await router.ask(router.second, replace(NOTHING_READ, cache_read=100))
    assert await router.causes() == {"first": 1000, "idle": 900}


async def test_cache_miss_with_a_one_hour_cache_has_the_cause_idle_only_after_an_hour(
    router: _Desk,
) -> None:
    router.meter = MeteredModel(router.model, router.calls, router.clock, "1h")
    await router.ask(router.first, FULL)
    router.clock.advance(minutes=59)
    await router.ask(router.second, replace(NOTHING_READ, cache_read=100))
    router.clock.advance(minutes=61)
    await router.ask(router.second, replace(NOTHING_READ, cache_read=100))
    assert await router.causes() == {"first": 1000, "evicted": 900, "idle": 1050}


async def test_prompt_prefix_break_is_recorded_as_the_cause_of_one_cache_miss_only(
    router: _Desk,
) -> None:
    await router.ask(router.first, FULL)
    session_id = router.first.billing.session_id
    assert session_id is not None
    await router.database.write(
        lambda connection: record_prefix_break(connection, session_id, "forget")
    )
    await router.ask(router.second, NOTHING_READ)
    await router.ask(router.second, NOTHING_READ)
    assert await router.causes() == {"first": 1000, "forget": 1000, "evicted": 1050}


async def test_calls_to_a_model_server_without_a_cache_count_no_misses(router: _Desk) -> None:
    for request in (router.first, router.second):
        await router.ask(request, Usage(input=500, output=1))
    assert await router.causes() == {}


async def test_call_without_tokens_is_not_logged(router: _Desk) -> None:
    await router.ask(router.first, Usage())
    assert (await router.calls.load_spending(MINE)).sums == []


async def test_title_and_expansion_calls_are_logged_without_cache_misses(router: _Desk) -> None:
    await router.ask(router.first, FULL)
    await router.ask(replace(router.second, kind="title"), NOTHING_READ)
    await router.ask(
        Request(system=(), messages=_turns("x"), kind="expansion", billing=BillingScope(scope=ANA)),
        FULL,
    )
    await router.ask(Request(system=(), messages=_turns("x")), FULL)
    assert sorted(one.kind for one in (await router.calls.load_spending(MINE)).sums) == [
        "chat",
        "expansion",
        "title",
    ]
    assert await router.causes() == {"first": 1000}


async def test_failed_model_call_is_not_charged(router: _Desk) -> None:
    router.model.script.append(ModelError("overloaded"))
    with pytest.raises(ModelError):
        await router.meter.complete(router.first, lambda _: None, lambda _: None)
    assert (await router.calls.load_spending(MINE)).sums == []


class _ShutBooks(UsageLog):
    """Books on a disk that is out of order."""

    async def log(self, call: ModelCall) -> None:
        raise StoreError("the disk is full")


async def test_model_answer_is_returned_even_if_the_usage_log_cannot_be_written(
    database: Database, clock: SteadyClock
) -> None:
    meter = MeteredModel(ScriptedModel(says("Good day.")), _ShutBooks(database), clock)
    request = Request(system=(), messages=_turns("Hello"), billing=BillingScope(session_id=1))
    assert (await meter.complete(request, lambda _: None, lambda _: None)).text == "Good day."


async def test_request_that_is_known_to_have_no_pictures_is_not_searched_for_them(
    database: Database, clock: SteadyClock
) -> None:
    filled: list[Request] = []

    async def fill_pictures(request: Request) -> Request:
        filled.append(request)
        return request

    model = ScriptedModel()
    meter = MeteredModel(model, UsageLog(database), clock, fill_pictures=fill_pictures)
    picture = {"role": "user", "content": [{"type": "image", "source": {"hash": "a"}}]}
    unknown = Request(system=(), messages=(picture,))
    for request in (unknown, replace(unknown, has_pictures=True)):
        model.script.append(says("ok"))
        await meter.complete_unlogged(request, lambda _: None, lambda _: None)
        assert filled.pop() is request
    model.script.append(says("ok"))
    none = replace(unknown, has_pictures=False)
    await meter.complete_unlogged(none, lambda _: None, lambda _: None)
    assert filled == []
