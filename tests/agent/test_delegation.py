"""A delegated task: a session of its own that only reads, within its budget; its result is a
tool's."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.agent.tool_runner import NOT_DONE
from core.types import Completion, Message, Request, Session, Usage
from tests.fixtures.forgetting import left_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

READING = ["session_search", "skills_list", "skill_view"]
TASK = {"task": "Which ferry sails on Sunday?", "context": "The person asks about Porto."}


class Helper(ScriptedModel):
    """Answers delegated calls from the script, and all else as a helper does."""

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        if request.kind != "delegation":
            return says("[]")
        return await super().complete(request, on_text, on_wait)


@asynccontextmanager
async def house(
    home: Path, helper: Helper, *script: Completion, options: str = ""
) -> AsyncIterator[tuple[GatewayHarness, ScriptedModel]]:
    model = ScriptedModel(*script)
    async with open_gateway(home, model, options, helper) as harness:
        yield harness, model


def results(request: Request) -> list[str]:
    """What tools gave in the last message of a request."""
    found = [block for block in request.messages[-1]["content"] if block["type"] == "tool_result"]
    return [str(block.get("content", "")) for block in found]


async def delegated(
    harness: GatewayHarness, who: str = "42"
) -> list[tuple[Session, list[Message]]]:
    """Every delegated session of somebody with what is in it."""
    services = harness.services
    found = await services.database.fetch_all(
        "SELECT id FROM sessions WHERE is_delegated ORDER BY id"
    )
    scopes = frozenset({harness.inbound("x", who).scope})
    sessions = []
    for row in found:
        session = await services.conversations.find(row["id"], scopes)
        if session is not None:
            sessions.append((session, await services.conversations.load_history(session, scopes)))
    return sessions


async def test_delegated_task_runs_in_its_own_session_and_its_result_is_escaped_data(
    home: Path,
) -> None:
    helper = Helper(
        calls(("session_search", {"query": "ferry"})), says("The blue one.<memory-context>")
    )
    async with house(home, helper, calls(("delegate", TASK)), says("The blue one, it seems.")) as (
        harness,
        model,
    ):
        assert (await harness.say("which ferry?")).text == "The blue one, it seems."
        ((session, said),) = await delegated(harness)
        parent = await harness.services.conversations.find_open(session.address)
        assert parent is not None
        assert (session.parent_id, session.title, session.model) == (
            parent.id,
            TASK["task"],
            parent.model,
        )
        assert (said[0].role, said[0].origin) == ("user", "tool")
        assert said[0].text == "\n\n".join(TASK.values())
        assert [row.role for row in said] == ["user", "assistant", "tool", "assistant"]
        (result,) = results(model.requests[1])
        told = json.loads(result)
        assert told["session_id"] == session.id
        assert told["result"].startswith("The blue one.")
        assert "<memory-context>" not in result
        first, second = helper.requests
        assert {tool["name"] for tool in first.tools} == {
            "session_search",
            "read_document",
            "find_files",
            "skills_list",
            "skill_view",
        }, "it only reads, and delegates nothing"
        assert first.messages[0]["content"][0]["text"].endswith("Europe/Lisbon]")
        assert second.messages[: len(first.messages)][0]["content"][1]["text"] == said[0].text
        assert await harness.services.recall.verify() == []


async def test_delegated_task_can_neither_note_nor_plan_nor_delegate(home: Path) -> None:
    note = {"target": "memory", "action": "add", "content": "Likes rum"}
    remind = {"action": "add", "moment": "2030-01-01T09:00", "task": "rum"}
    helper = Helper(
        calls(("memory", note), ("reminder", remind), ("facts", {}), ("delegate", TASK)),
        says("No."),
    )
    async with house(home, helper, calls(("delegate", TASK))) as (harness, _):
        await harness.say("look")
        assert all("There is no tool" in result for result in results(helper.requests[1]))
        assert "Likes rum" not in (await harness.say("/memory")).text
        assert len(await delegated(harness)) == 1


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"task": " "}, "describe what to do"),
        (
            {"task": "look", "tools": ["memory"]},
            f"a task can't use 'memory', only {', '.join(READING)}",
        ),
        ({"task": "look", "tools": ["delegate"]}, "a task can't use 'delegate'"),
        ({}, "task: Field required"),
    ],
)
async def test_invalid_delegation_is_refused_with_a_sentence_to_the_model(
    home: Path, arguments: dict[str, Any], wrong: str
) -> None:
    async with house(home, Helper(), calls(("delegate", arguments))) as (harness, model):
        await harness.say("look")
        assert wrong in results(model.requests[1])[0]
        assert await delegated(harness) == []


async def test_delegated_task_without_named_tools_is_offered_none(home: Path) -> None:
    helper = Helper(says("Done."))
    async with house(home, helper, calls(("delegate", {"task": "think", "tools": []}))) as (
        harness,
        _,
    ):
        await harness.say("look")
        assert helper.requests[0].tools == ()


@pytest.mark.parametrize("options", ["max_rounds = 2", "max_tokens = 30"])
async def test_delegated_task_whose_budget_is_used_up_returns_its_result_so_far(
    home: Path, options: str
) -> None:
    search = calls(("session_search", {"query": "ferry"}))
    helper = Helper(
        search, search, calls(("session_search", {"query": "more"}), text="So far: the blue one.")
    )
    async with house(
        home, helper, calls(("delegate", TASK)), options=f"[delegation]\n{options}\n"
    ) as (harness, model):
        await harness.say("look")
        assert len(helper.requests) == 3
        assert "budget is used up" in helper.sent(2)
        assert "budget is used up" not in helper.sent(1)
        assert json.loads(results(model.requests[1])[0])["result"] == "So far: the blue one."


async def test_delegate_tools_description_names_each_tool_once_when_built_again(home: Path) -> None:
    for name in ("one", "another"):
        (home / name).mkdir()
        async with house(home / name, Helper(), says("ok")) as (harness, model):
            await harness.say("hello")
            [told] = [tool for tool in model.requests[0].tools if tool["name"] == "delegate"]
            assert str(told).count("session_search") == 1


async def test_delegation_runs_three_tasks_at_once_and_refuses_a_fourth(home: Path) -> None:
    helper = Helper(*[says("Done.")] * 4)
    helper.gate = asyncio.Event()
    asked = calls(*[("delegate", {"task": f"task {number}"}) for number in range(4)])
    async with house(home, helper, asked, says("ok"), calls(("delegate", TASK))) as (
        harness,
        model,
    ):
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(harness.say("look"))
            while len(helper.requests) < 3:
                await helper.began.wait()
                helper.began.clear()
            helper.gate.set()
            await turn
        told = results(model.requests[1])
        assert sum("Done." in result for result in told) == 3
        assert sum("3 tasks are already running" in result for result in told) == 1
        await harness.say("again")
        assert "Done." in results(model.requests[3])[0]


async def test_stop_cancels_a_delegated_task_and_the_conversation_continues(home: Path) -> None:
    helper = Helper(says("never"))
    helper.gate = asyncio.Event()
    async with house(
        home, helper, calls(("delegate", TASK), text="Let me see."), says("Fine.")
    ) as (harness, model):
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(harness.say("look"))
            await helper.began.wait()
            await harness.say("/stop")
            assert (await turn).text == "Let me see.\n\n[stopped]"
        ((_, said),) = await delegated(harness)
        assert [row.role for row in said] == ["user"]
        assert (await harness.say("and now?")).text == "Fine."
        first = model.requests[-1].messages[2]["content"][0]
        assert (first["type"], first["is_error"]) == ("tool_result", True)


@pytest.mark.parametrize("is_reminder_due", [False, True])
async def test_delegated_task_interrupted_by_a_crash_is_reported_as_not_done_and_not_repeated(
    home: Path, is_reminder_due: bool
) -> None:
    helper = Helper()
    helper.gate = asyncio.Event()
    async with house(home, helper, calls(("delegate", TASK))) as (harness, _):
        number = await harness.admission.admit(harness.inbound("which ferry?"), KeptReply())
        assert number is not None
        turn = harness.admission.serve(number)
        await helper.began.wait()
        harness.turns.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await turn
    async with house(home, Helper(), says("I cannot tell.")) as (harness, model):
        platform = harness.platforms["telegram"]
        if is_reminder_due:
            await deliver_reminder(harness, "tea")
        for number in await harness.admission.resume(platform, timedelta(days=1)):
            await harness.admission.serve(number)
        assert [reply.text for _, reply in platform.replies] == ["I cannot tell."]
        assert results(model.requests[0]) == [NOT_DONE]
        assert len(await delegated(harness)) == 1, "it is not repeated"


async def deliver_reminder(harness: GatewayHarness, text: str) -> None:
    """Store a reminder in the conversation, as its delivery does."""
    conversations = harness.services.conversations
    rows = await harness.services.database.fetch_all("SELECT id FROM sessions ORDER BY id LIMIT 1")
    reminder = Message(
        role="assistant",
        text=text,
        session_id=rows[0]["id"],
        created_at=harness.services.clock.now(),
        origin="job",
    )
    await conversations.append([reminder])


def names(model: ScriptedModel) -> set[str]:
    return {tool["name"] for tool in model.requests[-1].tools}


@pytest.mark.parametrize(
    ("helper", "options"), [(None, ""), (Helper(), "[delegation]\nmax_rounds = 0\n")]
)
async def test_delegate_tool_is_not_offered_without_a_helper_model_or_when_turned_off(
    home: Path, helper: Helper | None, options: str
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, options, helper) as harness:
        await harness.say("hello")
        assert "delegate" not in names(model)


async def test_delegation_is_refused_in_an_incognito_conversation(home: Path) -> None:
    async with house(home, Helper(), says("ok"), calls(("delegate", TASK))) as (harness, model):
        await harness.say("hello")
        assert "delegate" in names(model)
        await harness.say("/incognito on")
        await harness.say("hello")
        assert "delegate" not in names(model)
        assert "incognito" in results(model.requests[-1])[0]
        assert await delegated(harness) == []


async def test_delegated_task_is_paid_by_its_asker_and_ends_at_the_daily_limit(home: Path) -> None:
    search = calls(("session_search", {"query": "ferry"}))
    helper = Helper(search, search, search)
    limited = "[limits]\nturns_per_minute = 1000\n[limits.day]\noutput_tokens = 14\n"
    async with house(home, helper, calls(("delegate", TASK)), options=limited) as (harness, model):
        await harness.say("look", "7")
        spent = await harness.services.usage_log.load_spending(
            frozenset({harness.inbound("x", "7").scope})
        )
        parts = {kind: part.usage for kind, part in spent.by_kind}
        assert parts["delegation"] == Usage(input=20, output=10)
        assert "limit for today is reached" in results(model.requests[1])[0]
        ((session, _),) = await delegated(harness, "7")
        assert {one.kind for one in (await harness.services.usage_log.load_spending(
            frozenset({session.scope}), session_id=session.parent_id)).sums} == {"chat", "delegation"}  # fmt: skip
        assert "for delegated tasks" in (await harness.say("/usage", "7")).text


async def test_delegated_session_is_in_no_list_and_is_read_by_its_number(home: Path) -> None:
    helper = Helper(says("The marmalade ferry sails."))
    async with house(home, helper, calls(("delegate", TASK)), says("It sails.")) as (harness, _):
        await harness.say("which one?")
        ((session, _),) = await delegated(harness)
        assert "Nothing found" in (await harness.say("/recall marmalade")).text
        assert "marmalade" in (await harness.say(f"/recall in:{session.id} marmalade")).text
        assert "delegate: Which ferry" in (await harness.say(f"/recall in:{session.id}")).text
        assert TASK["task"] not in (await harness.say("/sessions")).text
        assert "There is no conversation" in (await harness.say(f"/sessions {session.id}")).text


@pytest.mark.slow
async def test_delegated_task_is_exported_and_erased_by_forget(home: Path) -> None:
    helper = Helper(says("They live in Zanzibar."), says("Elsewhere."))
    again = calls(("delegate", {"task": "What of the place where the person moved in May?"}))
    script = (calls(("delegate", {"task": "Where is Zanzibar?"})), says("ok"), again, says("ok"))
    async with house(home, helper, *script) as (harness, _):
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("go on")
        exported = (await harness.say("/export")).answer
        assert exported is not None
        assert any(
            b"Where is Zanzibar?" in file.content or file.name.endswith("gz")
            for file in exported.files
        )
        held = [
            one
            async for one in harness.services.archive.export_personal_data(
                frozenset({harness.inbound("x").scope}), []
            )
        ]
        assert [
            one["is_delegated"]
            for one in held
            if one["kind"] == "session" and "is_delegated" in one
        ] == [1, 1]
        records = [
            one
            async for one in harness.services.archive.export(
                frozenset({harness.inbound("x").scope})
            )
        ]
        assert {"Where is Zanzibar?", "They live in Zanzibar."} <= {one.text for one in records}
        await harness.say("/forget Zanzibar")
        assert "nothing of it is left" in (await harness.say("yes")).text
        assert left_of("Zanzibar", harness.services.database.path) == []


@pytest.mark.slow
async def test_delegated_task_teaches_no_fact_and_no_note(home: Path) -> None:
    task = {"task": "I moved to Lisbon. Ana is my sister. Remember that I like rum."}
    helper = Helper(calls(("session_search", {"query": "rum"})), says("You live in Lisbon."))
    async with house(home, helper, calls(("delegate", task)), says("Fine.")) as (harness, _):
        await harness.say("look")
        await harness.memory.tend()
        assert "Nothing yet" in (await harness.say("/facts")).text
        assert "Nothing is waiting" in (await harness.say("/memory pending")).text
        assert "Lisbon" not in (await harness.say("/memory")).text
        assert len(helper.requests) == 2


@pytest.mark.slow
async def test_undo_hides_delegated_work_until_redo(home: Path) -> None:
    helper = Helper(says("The zebra naps."), says("The zebra rests."))
    ask = calls(("delegate", TASK))
    async with house(home, helper, says("hi"), ask, says("It sails."), ask, says("No.")) as (
        harness,
        _,
    ):
        await harness.say("hello there, my friend")
        await harness.say("which one?")
        ((first, _),) = await delegated(harness)

        async def shown(session: Session) -> bool:
            found = [f"in:{session.id} zebra", f"in:{session.id}"]
            texts = [(await harness.say(f"/recall {one}")).text for one in found]
            seen = {"naps" in text or "rests" in text for text in texts}
            assert len(seen) == 1
            return seen.pop()

        assert await shown(first)
        await harness.say("/undo")
        assert not await shown(first)
        await harness.say("/undo back")
        assert await shown(first)
        await harness.say("/retry")
        (_, _), (second, _) = await delegated(harness)
        assert [await shown(one) for one in (first, second)] == [False, True]
        await harness.say("/undo back")
        assert [await shown(one) for one in (first, second)] == [True, False]
        assert await harness.services.recall.verify() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", ["in:{session.parent_id}", "zebra in:{session.parent_id}", "in:{session.id}"]
)
async def test_forgetting_a_conversation_forgets_its_delegated_sessions(
    home: Path, asked: str
) -> None:
    helper = Helper(says("The zebra sails."), says("The zebra stays."))
    script = (calls(("delegate", {"task": "Find the zebra"})), says("It sails."))
    async with house(home, helper, *script, *script) as (harness, _):
        await harness.say("which one?", "7")
        await harness.say("which one?")
        ((session, _),) = await delegated(harness)
        await harness.say(f"/forget {asked.format(session=session)}")
        assert "nothing of it is left" in (await harness.say("yes")).text
        left = await harness.services.database.fetch_all(
            "SELECT key FROM messages JOIN sessions ON sessions.id = session_id JOIN scopes ON scopes.id = scope_id "
            "WHERE text || COALESCE(blocks, '') || COALESCE(sent, '') || COALESCE(title, '') LIKE '%zebra%'"
        )
        assert {row["key"] for row in left} == {"account:telegram:7"}


async def test_a_task_that_takes_too_long_is_stopped_and_another_may_begin(home: Path) -> None:
    helper = Helper(says("never"), says("Done."))
    helper.gate = asyncio.Event()
    options = "[model]\ntool_timeout_s = 0.5\n[delegation]\npatience_s = 0.5\n"
    ask = calls(("delegate", TASK))
    async with house(
        home, helper, ask, says("Too slow."), ask, says("It sails."), options=options
    ) as (harness, model):
        assert (await harness.say("which one?")).text == "Too slow."
        assert "delegate took longer than 0.5 s" in results(model.requests[1])[0]
        helper.gate.set()
        await harness.say("again")
        assert "Done." in results(model.requests[3])[0]
