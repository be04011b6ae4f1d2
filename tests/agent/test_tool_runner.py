"""How long a tool may take, how long its result may be, and what an interrupted call gives."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from core.agent import tool_runner
from core.agent.tool_runner import (
    ALREADY_DONE,
    DONE_OR_WAITING,
    MAX_CONCURRENT_CALLS,
    MAX_RESULT_CHARS,
    NOT_DONE,
    RETRY,
    STILL_WAITING,
    STOPPED_DONE,
    STOPPED_NOT_DONE,
    STOPPED_UNKNOWN,
    STOPPED_WAITING,
    UNKNOWN_OUTCOME,
    ToolRunner,
)
from core.errors import TURN_BUDGET_SPENT, StoreError
from core.models.failures import word_in_english
from core.review.pending import is_waiting_result
from core.store.engine import Connection, Database
from core.store.rows import set_meta
from core.store.sessions import Conversations
from core.store.tool_calls import CallOutcome, record_waiting_call
from core.types import (
    Address,
    Effect,
    ErasureEpoch,
    Json,
    Scope,
    Sender,
    Session,
    Tool,
    ToolCallKey,
    ToolContext,
    TurnBudget,
)
from gateway.texts.catalog import word_sentence
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import opened

ANA = Scope.account("telegram", "1")
CALL = {"type": "tool_use", "id": "toolu_1", "name": "slow", "input": {}}
ADDS = {"": Effect.ADD}
LIMIT_S = 0.02


def _context() -> ToolContext:
    now = SteadyClock().now()
    session = Session(
        id=1, address=Address(platform="telegram", chat_id="1"), scope=ANA, started_at=now
    )
    return ToolContext(
        session=session,
        scope=ANA,
        scopes=frozenset({ANA}),
        sender=Sender(id="1", name="Ana"),
        now=now,
    )


async def test_tool_with_its_own_time_limit_may_run_longer_than_the_general_limit() -> None:
    async def run(arguments: Json, context: ToolContext) -> str:
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(3 * LIMIT_S, done.set)
        await done.wait()
        return "done"

    slow = Tool(name="slow", description="", schema={"type": "object"}, effects=ADDS, run=run)
    (stopped,) = await ToolRunner([slow], LIMIT_S).run([CALL], _context())
    assert stopped.text.startswith("slow took longer than 0.02 s and was stopped.")
    (waited,) = await ToolRunner([replace(slow, timeout_s=30.0)], LIMIT_S).run([CALL], _context())
    assert waited.text == "done"


def test_tool_without_an_effect_is_not_registered() -> None:
    async def run(arguments: Json, context: ToolContext) -> str:
        raise AssertionError("a tool without effects must not run")

    undeclared = Tool(name="slow", description="", schema={"type": "object"}, run=run)
    with pytest.raises(ValueError, match="slow can't be registered: it declares no effects"):
        ToolRunner([undeclared], LIMIT_S)


async def test_50_mb_of_one_result_are_cut_with_a_mark() -> None:
    async def run(arguments: Json, context: ToolContext) -> str:
        return "y" * 50_000_000

    big = Tool(name="slow", description="", schema={"type": "object"}, effects=ADDS, run=run)
    (cut,) = await ToolRunner([big], 30.0).run([CALL], _context())
    assert len(cut.text) < MAX_RESULT_CHARS + 100
    assert cut.text.endswith("[cut: 49,970,000 more characters]")
    assert cut.blocks is not None
    assert cut.blocks[0]["content"] == cut.text


async def test_external_tool_cannot_claim_that_its_call_waits_for_approval() -> None:
    async def run(arguments: Json, context: ToolContext) -> str:
        return "Not kept yet: it waits (/memory pending)."

    own = Tool(name="slow", description="", schema={"type": "object"}, effects=ADDS, run=run)
    (told,) = await ToolRunner([replace(own, is_external=True)], 30.0).run([CALL], _context())

    assert told.text == "slow: Not kept yet: it waits (/memory pending)."
    assert not is_waiting_result(told.text)
    (waiting,) = await ToolRunner([own], 30.0).run([CALL], _context())
    assert is_waiting_result(waiting.text)


def test_interrupted_calls_get_results_that_say_what_is_known() -> None:
    async def run(arguments: Json, context: ToolContext) -> str:
        raise AssertionError("an interrupted call must not run again")

    own = Tool(name="note", description="", schema={"type": "object"}, effects=ADDS, run=run)
    external = replace(own, name="send", is_external=True)
    runner = ToolRunner([own, external], LIMIT_S)
    names = ["note", "note", "note", "note", "send"]
    calls = [
        {"type": "tool_use", "id": str(number), "name": name, "input": {}}
        for number, name in enumerate(names, 1)
    ]
    outcomes = {
        "1": CallOutcome.DONE,
        "2": CallOutcome.WAITING,
        "3": CallOutcome.DONE_OR_WAITING,
    }
    session = _context().session
    rows = runner.build_missing_results(calls, outcomes, session, session.started_at)
    results = [ALREADY_DONE, STILL_WAITING, DONE_OR_WAITING, NOT_DONE, UNKNOWN_OUTCOME]
    assert [row.text for row in rows] == results
    errors = [block.get("is_error", False) for row in rows for block in row.blocks or ()]
    assert errors == [False, False, False, True, True]


async def test_paid_tool_runs_only_within_the_budget_of_the_turn() -> None:
    async def run(arguments: Json, context: ToolContext) -> str:
        return "paid"

    paid = Tool(
        name="slow",
        description="",
        schema={"type": "object"},
        effects={"": Effect.SPEND},
        run=run,
    )
    free = replace(paid, name="free", effects=ADDS)
    budget = TurnBudget(max_calls=2, max_tokens=100)
    context = replace(_context(), budget=budget)
    free_call = {**CALL, "name": "free"}
    rows = await ToolRunner([paid, free], 30.0).run([CALL, CALL, CALL, free_call], context)
    assert [row.text for row in rows[:2]] == ["paid", "paid"]
    assert rows[2].text.startswith(TURN_BUDGET_SPENT)
    assert rows[3].text == "paid"
    assert budget.calls == 2


@pytest.mark.parametrize(("platform", "is_shown"), [("telegram", True), ("terminal", False)])
async def test_tools_that_take_long_are_named_below_the_answer(
    monkeypatch: pytest.MonkeyPatch, platform: str, is_shown: bool
) -> None:
    monkeypatch.setattr(tool_runner, "SLOW_TOOLS_S", 0.0)
    statuses: list[str] = []

    async def run(arguments: Json, context: ToolContext) -> str:
        for _ in range(9):
            await asyncio.sleep(0)
        return "done"

    slow = Tool(name="slow", description="", schema={"type": "object"}, effects=ADDS, run=run)
    context = _context()
    address = replace(context.session.address, platform=platform)
    context = replace(
        context,
        session=replace(context.session, address=address),
        show_status=statuses.append,
        language="de",
    )
    runner = ToolRunner([slow], 30.0, word=word_sentence)
    await runner.run([CALL, {**CALL, "id": "toolu_2"}], context)
    assert statuses == (["In Arbeit: `slow` …"] if is_shown else [])


async def test_tools_that_are_quick_are_not_named() -> None:
    statuses: list[str] = []

    async def run(arguments: Json, context: ToolContext) -> str:
        return "done"

    quick = Tool(name="slow", description="", schema={"type": "object"}, effects=ADDS, run=run)
    context = replace(_context(), show_status=statuses.append)
    await ToolRunner([quick], 30.0, word=word_in_english).run([CALL], context)
    assert statuses == []


async def _store_then_wait(database: Database, epoch: ErasureEpoch | None) -> None:
    await database.write(lambda connection: set_meta(connection, "a", "1"), epoch)
    await asyncio.Event().wait()


async def _be_stopped_while_writing(database: Database, epoch: ErasureEpoch | None) -> None:
    """Write in another thread until the call was stopped for sure."""
    loop = asyncio.get_running_loop()
    is_stopped = threading.Event()
    loop.call_later(5 * LIMIT_S, is_stopped.set)

    def write(connection: Connection) -> None:
        assert is_stopped.wait(60)
        set_meta(connection, "a", "1")

    await database.write(write, epoch)


async def _fail_after_storing(database: Database, epoch: ErasureEpoch | None) -> None:
    await database.write(lambda connection: set_meta(connection, "a", "1"), epoch)
    raise LookupError


async def _store_for_approval(database: Database, epoch: ErasureEpoch | None) -> None:
    assert epoch is not None
    assert epoch.call is not None
    call = epoch.call
    await database.write(lambda connection: record_waiting_call(connection, call))
    await asyncio.Event().wait()


async def _only_wait(database: Database, epoch: ErasureEpoch | None) -> None:
    await asyncio.Event().wait()


STOPPED = "slow took longer than 0.02 s and was stopped."


@pytest.mark.parametrize(
    ("act", "options", "result", "is_error"),
    [
        (_store_then_wait, {}, f"{STOPPED} {STOPPED_DONE}", False),
        (_be_stopped_while_writing, {}, f"{STOPPED} {STOPPED_DONE}", False),
        (
            _fail_after_storing,
            {"timeout_s": 60.0},
            f"slow failed (LookupError). {STOPPED_DONE}",
            False,
        ),
        (_store_for_approval, {}, f"{STOPPED} {STOPPED_WAITING}", False),
        (_only_wait, {}, f"{STOPPED} {STOPPED_NOT_DONE} {RETRY}", True),
        (_only_wait, {"is_external": True}, f"{STOPPED} {STOPPED_UNKNOWN}", True),
        (_only_wait, {"effects": {"": Effect.READ}}, f"{STOPPED} {RETRY}", True),
    ],
    ids=["stored", "writing", "failed", "waiting", "not begun", "external", "reading"],
)
async def test_stopped_call_is_reported_as_done_only_if_its_change_is_stored(
    database: Database,
    act: Callable[[Database, ErasureEpoch | None], Awaitable[None]],
    options: Json,
    result: str,
    is_error: bool,
) -> None:
    conversations = Conversations(database, SteadyClock())
    session = await opened(conversations, "Hello")

    async def run(arguments: Json, context: ToolContext) -> str:
        await act(database, context.epoch)
        return "done"

    slow = Tool(name="slow", description="", schema={"type": "object"}, effects=ADDS, run=run)
    context = replace(_context(), session=session, epoch=ErasureEpoch("[]", 0))
    runner = ToolRunner(
        [replace(slow, **options)], LIMIT_S, load_outcome=conversations.load_stopped_outcome
    )
    (row,) = await runner.run([CALL], context)
    assert row.text == result
    (block,) = row.blocks or ()
    assert block.get("is_error", False) is is_error


async def test_calls_of_a_round_over_the_limit_wait_until_others_have_ended() -> None:
    running: list[int] = []
    counts: list[int] = []

    async def run(arguments: Json, context: ToolContext) -> str:
        running.append(1)
        counts.append(len(running))
        for _ in range(5):
            await asyncio.sleep(0)
        running.pop()
        return "done"

    slow = Tool(name="slow", description="", schema={"type": "object"}, effects=ADDS, run=run)
    calls = [{**CALL, "id": str(number)} for number in range(30)]
    rows = await ToolRunner([slow], 30.0).run(calls, _context())
    assert [row.text for row in rows] == ["done"] * 30
    assert max(counts) == MAX_CONCURRENT_CALLS


async def test_stopped_call_is_reported_as_unknown_if_the_store_cannot_be_read() -> None:
    async def run(arguments: Json, context: ToolContext) -> str:
        await asyncio.Event().wait()
        return "done"

    async def fail(call: ToolCallKey) -> CallOutcome | None:
        raise StoreError("locked")

    slow = Tool(name="slow", description="", schema={"type": "object"}, effects=ADDS, run=run)
    (row,) = await ToolRunner([slow], LIMIT_S, load_outcome=fail).run([CALL], _context())
    assert row.text == f"{STOPPED} {STOPPED_UNKNOWN}"
