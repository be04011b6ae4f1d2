"""The contract of the books: what was paid for, by whom, and what came before a call."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.usage import MissCause, ModelCall, PreviousCall, UsageLog, UsageSum, disturb
from core.types import Address, CallKind, Payer, Usage
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, BOB, CHAT, NOON, message, opened, session

MINE = frozenset((ANA,))
ONE = Usage(input=1, output=2, cache_read=3, cache_write=4, cache_write_hour=3)
DAY = timedelta(days=1)


@pytest.fixture
def conversations(database: Database, clock: SteadyClock) -> Conversations:
    return Conversations(database, clock)


@pytest.fixture
def calls(database: Database) -> UsageLog:
    return UsageLog(database)


def call(payer: Payer, kind: CallKind = "chat", at: datetime = NOON, **changes: object) -> ModelCall:
    return ModelCall(**{"kind": kind, "model": "sonnet", "usage": ONE, "at": at, "payer": payer, **changes})  # type: ignore[arg-type]


async def test_sums_are_by_kind_model_and_cause(conversations: Conversations, calls: UsageLog) -> None:
    one = Payer(session_id=(await opened(conversations, "hello")).id)
    for kind, model, at in (
        ("chat", "sonnet", NOON),
        ("chat", "sonnet", NOON + DAY),
        ("chat", "opus", NOON),
        ("title", "haiku", NOON),
    ):
        await calls.keep(call(one, kind, at, model=model))  # type: ignore[arg-type]
    await calls.keep(call(Payer(scope=ANA), "expansion", model="haiku"))
    sums = await calls.sums(MINE)
    assert UsageSum(kind="chat", model="sonnet", calls=2, usage=ONE + ONE) in sums
    assert [(one.kind, one.model, one.calls) for one in sums] == [
        ("chat", "opus", 1),
        ("chat", "sonnet", 2),
        ("expansion", "haiku", 1),
        ("title", "haiku", 1),
    ]
    assert [one.calls for one in await calls.sums(MINE, since=NOON + DAY)] == [1]
    assert sum(one.calls for one in await calls.sums(MINE, since=NOON, until=NOON + DAY)) == 4, "the end is outside"
    assert sum(found.calls for found in await calls.sums(MINE, session_id=one.session_id)) == 4
    assert await calls.sums(MINE, session_id=10**30) == []
    assert await calls.latest(MINE) == NOON + DAY
    assert await calls.latest(MINE, NOON + DAY) == NOON
    assert await calls.latest(MINE, NOON) is await calls.latest(frozenset((BOB,))) is None


async def test_a_call_goes_on_the_account_of_its_sessions_scope(conversations: Conversations, calls: UsageLog) -> None:
    hers = await opened(conversations, "hello")
    await calls.keep(call(Payer(session_id=hers.id, scope=BOB)))
    await calls.keep(call(Payer(session_id=-5, scope=BOB)))
    await calls.keep(call(Payer(session_id=999)))
    await calls.keep(call(Payer()))
    assert [one.calls for one in await calls.sums(MINE)] == [1]
    assert [one.calls for one in await calls.sums(frozenset((BOB,)))] == [1]
    assert await calls.sums(frozenset((BOB,)), session_id=-5) == [], "what is incognito has no name in the books"
    assert await calls.previous(-5) == PreviousCall(cause="first")
    assert [one.calls for one in await calls.sums(frozenset((ANA, BOB)))] == [2], "nobody's are left out"


async def test_the_sessions_of_the_latest_calls_come_first(conversations: Conversations, calls: UsageLog) -> None:
    for number in range(3):
        made = await opened(
            conversations, "hello", title=f"t{number}", address=Address(platform="x", chat_id=str(number))
        )
        await calls.keep(call(Payer(session_id=made.id), at=NOON - number * DAY))
        await calls.keep(call(Payer(session_id=made.id), "title", at=NOON - number * DAY))
    found = await calls.sessions(MINE, 2)
    assert [session.title for session in found] == ["t0", "t1"]
    assert await calls.sessions(frozenset((BOB,)), 10) == []


async def test_misses_are_counted_by_cause(conversations: Conversations, calls: UsageLog) -> None:
    payer = Payer(session_id=(await opened(conversations, "hello")).id)
    seen: tuple[tuple[MissCause | None, int], ...] = (("idle", 10), (None, 0), ("idle", 20), ("forget", 7))
    for cause, missed in seen:
        await calls.keep(call(payer, miss=cause, missed=missed))
    for found in (await calls.sums(MINE), await calls.sums(MINE, session_id=payer.session_id)):
        assert [(one.miss, one.calls, one.missed) for one in found] == [(None, 1, 0), ("forget", 1, 7), ("idle", 2, 30)]
    assert await calls.sums(MINE, since=NOON + DAY) == []


async def test_the_precedent_is_the_last_call_for_an_answer(conversations: Conversations, calls: UsageLog) -> None:
    payer = Payer(session_id=(await opened(conversations, "hello")).id)
    assert payer.session_id is not None
    assert await calls.previous(payer.session_id) == PreviousCall(cause="first")
    last = call(payer, miss="first", missed=9)
    for kept in (call(payer), last, call(payer, "title")):
        await calls.keep(kept)
    assert await calls.previous(payer.session_id) == PreviousCall(call=last)
    assert await calls.previous(999) == PreviousCall(cause="first")


async def test_a_disturbance_waits_for_the_next_call_and_the_first_one_counts(
    conversations: Conversations, calls: UsageLog, database: Database
) -> None:
    made = await opened(conversations, "hello")
    await calls.keep(call(Payer(session_id=made.id)))
    for cause in ("forget", "edit"):
        await database.write(lambda connection, cause=cause: disturb(connection, made.id, cause))  # type: ignore[misc]
    before = await calls.previous(made.id)
    assert before.cause == "forget"
    assert before.call is not None
    await calls.keep(call(Payer(session_id=made.id), disturbance="edit"))
    assert (await calls.previous(made.id)).cause == "forget", "this call had not seen it"
    await calls.keep(call(Payer(session_id=made.id), disturbance="forget"))
    assert (await calls.previous(made.id)).cause is None


async def test_a_message_that_is_edited_or_deleted_disturbs_its_session(
    conversations: Conversations, calls: UsageLog
) -> None:
    made = await conversations.create(session())
    for number, text in enumerate(("hello", "bye", "/forget x")):
        kind = "command" if text.startswith("/") else "chat"
        await conversations.append([message(made.id, text, external_id=str(number), kind=kind)])
        await calls.keep(call(Payer(session_id=made.id)))
    await conversations.amend(CHAT, "0", "hello")
    await conversations.amend(CHAT, "2", None)
    assert (await calls.previous(made.id)).cause is None, "nothing that is sent has changed"
    await conversations.amend(CHAT, "0", "Hello!")
    assert (await calls.previous(made.id)).cause == "edit"
    await calls.keep(call(Payer(session_id=made.id), disturbance="edit"))
    await conversations.amend(CHAT, "1", None)
    assert (await calls.previous(made.id)).cause == "edit"


async def test_how_a_session_came_to_be(conversations: Conversations, calls: UsageLog) -> None:
    first = await opened(conversations, "hello")
    child = await conversations.create(session(parent_id=first.id), "length")
    assert (await calls.previous(child.id)).cause == "length"
    fresh = await conversations.create(session(), "rights")
    assert (await calls.previous(fresh.id)).cause == "rights"
    elsewhere = await conversations.create(session(address=Address(platform="x", chat_id="1")))
    assert (await calls.previous(elsewhere.id)).cause == "first"
    there = await conversations.create(session(address=Address(platform="x", chat_id="2"), parent_id=fresh.id))
    assert (await calls.previous(there.id)).cause == "first", "nothing was said there before"
    await calls.keep(call(Payer(session_id=first.id)))
    await conversations.reopen(first.id, NOON + DAY)
    assert (await calls.previous(first.id)).cause is None, "it is sent as it was before"
