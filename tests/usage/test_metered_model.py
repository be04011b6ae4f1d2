"""The meter: every call is entered, with the cause when a prefix was not in the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.errors import ModelError, StoreError
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.usage import MissCause, ModelCall, UsageLog, disturb
from core.types import Completion, Payer, Request, Usage
from core.usage.metered_model import MeteredModel
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
    return tuple({"role": roles[number % 2], "content": [_text(text)]} for number, text in enumerate(texts))


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
            payer=Payer(session_id=session_id),
        )
        self.second = replace(self.first, messages=_turns("Hello", "ok", "And now?"))

    async def ask(self, request: Request, usage: Usage) -> Completion:
        self.model.script.append(says("ok", usage=usage))
        return await self.meter.complete(request, lambda _: None, lambda _: None)

    async def causes(self) -> dict[MissCause, int]:
        return {one.miss: one.missed for one in await self.calls.sums(MINE) if one.miss is not None}


@pytest.fixture
async def desk(database: Database, clock: SteadyClock) -> _Desk:
    made = await opened(Conversations(database, clock), "hello")
    return _Desk(database, clock, made.id)


async def test_a_prefix_that_is_read_is_no_miss(desk: _Desk) -> None:
    await desk.ask(desk.first, FULL)
    assert await desk.causes() == {"first": 1000}
    await desk.ask(desk.second, READ)
    await desk.ask(desk.second, replace(READ, cache_read=1045))
    assert await desk.causes() == {"first": 1000}
    sums = [(one.kind, one.model, one.miss, one.calls, one.usage.output) for one in await desk.calls.sums(MINE)]
    assert sums == [("chat", "scripted", None, 2, 10), ("chat", "scripted", "first", 1, 5)]


async def test_another_model_is_the_cause_and_else_the_server(desk: _Desk) -> None:
    await desk.ask(desk.first, FULL)
    await desk.ask(desk.second, NOTHING_READ)
    assert await desk.causes() == {"first": 1000, "evicted": 1000}
    desk.model.script.append(replace(says("ok", usage=NOTHING_READ), model="opus"))
    await desk.meter.complete(desk.second, lambda _: None, lambda _: None)
    assert await desk.causes() == {"first": 1000, "evicted": 1000, "model": 1050}


async def test_after_five_minutes_without_a_word_the_server_has_dropped_it(desk: _Desk) -> None:
    await desk.ask(desk.first, FULL)
    desk.clock.advance(minutes=5, seconds=1)
    await desk.ask(desk.second, replace(NOTHING_READ, cache_read=100))
    assert await desk.causes() == {"first": 1000, "idle": 900}


async def test_a_prefix_that_is_kept_for_an_hour_outlasts_a_pause(desk: _Desk) -> None:
    desk.meter = MeteredModel(desk.model, desk.calls, desk.clock, "1h")
    await desk.ask(desk.first, FULL)
    desk.clock.advance(minutes=59)
    await desk.ask(desk.second, replace(NOTHING_READ, cache_read=100))
    desk.clock.advance(minutes=61)
    await desk.ask(desk.second, replace(NOTHING_READ, cache_read=100))
    assert await desk.causes() == {"first": 1000, "evicted": 900, "idle": 1050}


async def test_what_was_disturbed_is_the_cause_once(desk: _Desk) -> None:
    await desk.ask(desk.first, FULL)
    session_id = desk.first.payer.session_id
    assert session_id is not None
    await desk.database.write(lambda connection: disturb(connection, session_id, "forget"))
    await desk.ask(desk.second, NOTHING_READ)
    await desk.ask(desk.second, NOTHING_READ)
    assert await desk.causes() == {"first": 1000, "forget": 1000, "evicted": 1050}


async def test_a_server_without_a_cache_misses_nothing(desk: _Desk) -> None:
    for request in (desk.first, desk.second):
        await desk.ask(request, Usage(input=500, output=1))
    assert await desk.causes() == {}


async def test_what_used_no_tokens_is_not_entered(desk: _Desk) -> None:
    await desk.ask(desk.first, Usage())
    assert await desk.calls.sums(MINE) == []


async def test_other_kinds_are_entered_and_miss_nothing(desk: _Desk) -> None:
    await desk.ask(desk.first, FULL)
    await desk.ask(replace(desk.second, kind="title"), NOTHING_READ)
    await desk.ask(Request(system=(), messages=_turns("x"), kind="expansion", payer=Payer(scope=ANA)), FULL)
    await desk.ask(Request(system=(), messages=_turns("x")), FULL)
    assert sorted(one.kind for one in await desk.calls.sums(MINE)) == ["chat", "expansion", "title"]
    assert await desk.causes() == {"first": 1000}


async def test_a_model_that_fails_costs_nothing(desk: _Desk) -> None:
    desk.model.script.append(ModelError("overloaded"))
    with pytest.raises(ModelError):
        await desk.meter.complete(desk.first, lambda _: None, lambda _: None)
    assert await desk.calls.sums(MINE) == []


class _ShutBooks(UsageLog):
    """Books on a disk that is out of order."""

    async def keep(self, call: ModelCall) -> None:
        raise StoreError("the disk is full")


async def test_books_that_cannot_be_written_cost_nobody_an_answer(database: Database, clock: SteadyClock) -> None:
    meter = MeteredModel(ScriptedModel(says("Good day.")), _ShutBooks(database), clock)
    request = Request(system=(), messages=_turns("Hello"), payer=Payer(session_id=1))
    assert (await meter.complete(request, lambda _: None, lambda _: None)).text == "Good day."
