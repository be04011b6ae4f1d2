"""A question that is edited before anything followed gets a new answer; others don't."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.gateway.chats.test_setup import GROUP

pytestmark = pytest.mark.slow


async def edit(
    harness: GatewayHarness, message_id: str, text: str, who: str = "42", **changes: Any
) -> str:
    """Edit a message, and return the new answer, or "" if there is none."""
    reply: KeptReply = await harness.say(
        text, who, kind="edit", message_id=message_id, command=None, **changes
    )
    return "" if reply.answer is None else reply.text


async def test_edited_question_gets_a_new_answer_that_replaces_the_old_one(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."), says("You are welcome."))
    async with open_gateway(home, model) as harness:
        await harness.say("When does the boat to Capri leave?", message_id="100")
        answer = await edit(harness, "100", "When does the boat to Ischia leave?")
        assert answer == "At ten."
        sent = str(model.requests[1].messages)
        assert "Ischia" in sent
        assert "Capri" not in sent
        assert "At nine." not in sent
        await harness.say("thank you")
        sent = str(model.requests[2].messages)
        assert "At ten." in sent
        assert "At nine." not in sent


async def test_edit_that_is_delivered_again_after_a_restart_is_answered_once(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model) as harness:
        sent_at = harness.services.clock.now()
        await harness.say("to Capri?", message_id="100")
        assert await edit(harness, "100", "to Ischia?", sent_at=sent_at) == "At ten."
    async with open_gateway(home, ScriptedModel()) as harness:
        assert await edit(harness, "100", "to Ischia?", sent_at=sent_at) == ""


async def test_question_that_something_followed_is_only_reworded(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("You are welcome."))
    async with open_gateway(home, model) as harness:
        await harness.say("to Capri?", message_id="100")
        await harness.say("thank you")
        assert await edit(harness, "100", "to Ischia?") == ""
        assert "Ischia" in (await harness.say("/recall Ischia")).text


async def test_question_after_a_command_is_only_reworded(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("At nine."))) as harness:
        await harness.say("to Capri?", message_id="100")
        await harness.say("/title Boats")
        assert await edit(harness, "100", "to Ischia?") == ""


async def test_edit_that_leaves_the_text_unchanged_starts_no_new_answer(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("At nine."))) as harness:
        await harness.say("to Capri?", message_id="100")
        assert await edit(harness, "100", "to Capri?") == ""


async def test_answer_that_changed_something_is_not_repeated(home: Path) -> None:
    add = {"action": "add", "target": "memory", "content": "Ana likes boats"}
    model = ScriptedModel(calls(("memory", add)), says("Noted."))
    async with open_gateway(home, model) as harness:
        await harness.say("Remember that Ana likes boats", message_id="100")
        assert await edit(harness, "100", "Remember that Ana likes the boats") == ""


async def test_member_of_a_group_edits_their_question_and_nobody_else_can(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    options = 'rooms = ["telegram:-5"]\n'
    async with open_gateway(home, model, options) as harness:
        await harness.say("to Capri?", "9", message_id="100", **GROUP)
        assert await edit(harness, "100", "to Ischia?", "9", **GROUP) == "At ten."


async def test_edited_message_of_a_stranger_gets_no_answer(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        assert await edit(harness, "100", "to Ischia?", "99") == ""


async def test_edited_command_message_is_not_run_again(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("/title Boats", message_id="100")
        assert await edit(harness, "100", "/title Ships") == ""


async def edit_while_answering(
    harness: GatewayHarness, model: ScriptedModel, *new_texts: str, question: str = "to Capri?"
) -> list[str]:
    """Edit a question while its answer is being written. Return the texts of all answers."""
    model.gate = asyncio.Event()
    asking = asyncio.create_task(harness.say(question, message_id="100"))
    await model.began.wait()
    replies = []
    numbers = []
    for seconds, text in enumerate(new_texts):
        at = harness.services.clock.now() + timedelta(seconds=seconds)
        event = harness.inbound(text, kind="edit", message_id="100", command=None, sent_at=at)
        replies.append(KeptReply())
        numbers.append(await harness.admission.admit(event, replies[-1]))
    model.gate.set()
    answers = [(await asking).text]
    for number, reply in zip(numbers, replies, strict=True):
        if number is not None:
            await harness.admission.serve(number)
        answers.append("" if reply.answer is None else reply.text)
    return answers


async def test_question_edited_while_it_is_answered_is_answered_again_afterwards(
    home: Path,
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_gateway(home, model) as harness:
        answers = await edit_while_answering(harness, model, "to Ischia?", "to Procida?")
        assert answers == ["At nine.", "At ten.", ""]
        sent = str(model.requests[1].messages)
        assert "Procida" in sent
        assert "Capri" not in sent
        assert "At nine." not in sent


async def test_question_edited_while_its_answer_changes_something_is_not_repeated(
    home: Path,
) -> None:
    add = {"action": "add", "target": "memory", "content": "Ana likes boats"}
    model = ScriptedModel(calls(("memory", add)), says("Noted."))
    async with open_gateway(home, model) as harness:
        question = "Remember that Ana likes boats"
        answers = await edit_while_answering(
            harness, model, "Remember that Ana likes the boats", question=question
        )
        assert answers[1] == ""
        assert len(model.requests) == 2
        waiting = await harness.services.database.fetch_all("SELECT * FROM inbox")
        assert waiting == []
