"""An answer cites messages of earlier conversations, and people see where each claim comes from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from core.types import Completion, Request
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow


def cite_tent(request: Request) -> Completion:
    """Answer from the search's result, with a mark of its message and one of no message."""
    (block,) = request.messages[-1]["content"]
    result = json.loads(block["content"])
    (message,) = result["sessions"][0]["matches"]
    return says(f"It is blue [message {message['message_id']}], and new [message 99999].")


async def tell_and_ask(harness: GatewayHarness, model: ScriptedModel) -> KeptReply:
    """Tell of the tent, and ask for it in the next conversation. Return the reply."""
    await harness.say("The tent we bought is blue.")
    await harness.say("/new")
    model.script = [calls(("session_search", {"query": "tent"})), cite_tent]
    return await harness.say("Which colour is the tent?")


async def test_cited_message_has_a_number_a_date_and_its_words(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        answer = (await tell_and_ask(harness, model)).text
        day = f"{harness.services.clock.now():%-d %B %Y}"
    claim, _, sources = answer.partition("\n\n")
    assert claim == "It is blue [1], and new."
    pattern = rf"Sources: 1\. {day}: “The tent we bought is blue\.” \(`/recall around:\d+`\)"
    assert re.fullmatch(pattern, sources)


async def test_command_of_a_source_shows_the_message(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        answer = (await tell_and_ask(harness, model)).text
        command = answer.split("`")[1]
        shown = (await harness.say(command)).text
    assert "The tent we bought is blue." in shown


async def test_stored_answer_has_no_mark_and_the_next_question_may_cite_again(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await tell_and_ask(harness, model)
        (request,) = model.requests[-1:]
        mark = request.messages[-1]["content"][0]["content"]
        number = json.loads(mark)["sessions"][0]["matches"][0]["message_id"]
        model.script = [says(f"Yes, blue [message {number}].")]
        answer = (await harness.say("Are you sure?")).text
        found = (await harness.say("/recall blue")).text
    assert answer.startswith("Yes, blue [1].\n\nSources: 1. ")
    assert "[message" not in found


async def test_growing_answer_never_shows_a_mark(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        reply = await tell_and_ask(harness, model)
    assert any("It is blue" in text for text in reply.frames)
    assert not any("[mes" in text for text in reply.frames)
