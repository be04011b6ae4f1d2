"""The contract of the books: what was paid for, by whom, and what came before a call."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.usage import CacheMisses, MissCause, ModelCall, PreviousCall, UsageLog, UsageSum, disturb
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


async def test_bills_are_sums_by_kind_and_model(conversations: Conversations, calls: UsageLog) -> None:
    one = Payer(session_id=(await opened(conversations, "hello")).id)
    for kind, model, at in (
        ("chat", "sonnet", NOON),
        ("chat", "sonnet", NOON + DAY),
        ("chat", "opus", NOON),
        ("title", "haiku", NOON),
    ):
        await calls.keep(call(one, kind, at, model=model))  # type: ignore[arg-type]
    await calls.keep(call(Payer(scope=ANA), "expansion", model="haiku"))
    bills = await calls.bills(MINE)
    assert bills[0] == UsageSum(kind="chat", model="sonnet", calls=2, usage=ONE + ONE)
    assert {(bill.kind, bill.model, bill.calls) for bill in bills[1:]} == {
        ("chat", "opus", 1),
        ("title", "haiku", 1),
        ("expansion", "haiku", 1),
    }
    assert [bill.calls for bill in await calls.bills(MINE, NOON + DAY)] == [1]
    assert sum(bill.calls for bill in await calls.bills(MINE, NOON, NOON + DAY)) == 4, "the end is outside"
    assert sum(bill.calls for bill in await calls.bills(MINE, session_id=one.session_id)) == 4
    assert await calls.bills(MINE, session_id=10**30) == []
    assert await calls.began(MINE) == NOON
    assert await calls.began(frozenset((BOB,))) is None


async def test_a_call_goes_on_the_account_of_its_sessions_scope(conversations: Conversations, calls: UsageLog) -> None:
    hers = await opened(conversations, "hello")
    await calls.keep(call(Payer(session_id=hers.id, scope=BOB)))
    await calls.keep(call(Payer(session_id=-5, scope=BOB)))
    await calls.keep(call(Payer(session_id=999)))
    await calls.keep(call(Payer()))
    assert [bill.calls for bill in await calls.bills(MINE)] == [1]
    assert [bill.calls for bill in await calls.bills(frozenset((BOB,)))] == [1]
    assert await calls.bills(frozenset((BOB,)), session_id=-5) == [], "what is incognito has no name in the books"
    assert await calls.previous(-5) == PreviousCall()
    assert [bill.calls for bill in await calls.bills(frozenset((ANA, BOB)))] == [2], "nobody's are left out"


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
    idle, forget = CacheMisses(cause="idle", times=2, tokens=30), CacheMisses(cause="forget", times=1, tokens=7)
    assert await calls.misses(MINE) == [idle, forget]
    assert await calls.misses(MINE, session_id=payer.session_id) == [idle, forget]
    assert await calls.misses(MINE, NOON + DAY) == []


async def test_the_precedent_is_the_last_call_for_an_answer(conversations: Conversations, calls: UsageLog) -> None:
    payer = Payer(session_id=(await opened(conversations, "hello")).id)
    assert payer.session_id is not None
    assert await calls.previous(payer.session_id) == PreviousCall()
    last = call(payer, miss="first", missed=9)
    for kept in (call(payer), last, call(payer, "title")):
        await calls.keep(kept)
    assert await calls.previous(payer.session_id) == PreviousCall(call=last)
    assert await calls.previous(999) == PreviousCall()


async def test_a_disturbance_waits_for_the_next_call_and_the_first_one_counts(
    conversations: Conversations, calls: UsageLog, database: Database
) -> None:
    made = await opened(conversations, "hello")
    await calls.keep(call(Payer(session_id=made.id)))
    for cause in ("forget", "edit"):
        await database.write(lambda connection, cause=cause: disturb(connection, made.id, cause))  # type: ignore[misc]
    before = await calls.previous(made.id)
    assert before.disturbance == "forget"
    assert before.call is not None
    await calls.keep(call(Payer(session_id=made.id), disturbance="edit"))
    assert (await calls.previous(made.id)).disturbance == "forget", "this call had not seen it"
    await calls.keep(call(Payer(session_id=made.id), disturbance="forget"))
    assert (await calls.previous(made.id)).disturbance is None


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
    assert (await calls.previous(made.id)).disturbance is None, "nothing that is sent has changed"
    await conversations.amend(CHAT, "0", "Hello!")
    assert (await calls.previous(made.id)).disturbance == "edit"
    await calls.keep(call(Payer(session_id=made.id), disturbance="edit"))
    await conversations.amend(CHAT, "1", None)
    assert (await calls.previous(made.id)).disturbance == "edit"


async def test_how_a_session_came_to_be(conversations: Conversations, calls: UsageLog) -> None:
    first = await opened(conversations, "hello")
    child = await conversations.create(session(parent_id=first.id), "length")
    assert (await calls.previous(child.id)).origin == "length"
    fresh = await conversations.create(session(), "rights")
    assert (await calls.previous(fresh.id)).origin == "rights"
    elsewhere = await conversations.create(session(address=Address(platform="x", chat_id="1")))
    assert (await calls.previous(elsewhere.id)).origin is None
    there = await conversations.create(session(address=Address(platform="x", chat_id="2"), parent_id=fresh.id))
    assert (await calls.previous(there.id)).origin is None, "nothing was said there before"
    await calls.keep(call(Payer(session_id=first.id)))
    await conversations.reopen(first.id, NOON + DAY)
    assert (await calls.previous(first.id)).disturbance is None, "it is sent as it was before"
