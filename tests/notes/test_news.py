"""What is noted while a session goes on reaches its model with the next message, once; the prompt
stays as it is."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from core.types import Request, Scope
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.note_edits import add_note
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

OWNER = Scope.account("telegram", "42")


def fences(model: ScriptedModel) -> list[str]:
    """The memory fences of the latest request, oldest first."""
    return [
        block["text"]
        for message in model.requests[-1].messages
        for block in message["content"]
        if message["role"] == "user"
        and block["type"] == "text"
        and "<memory-context>" in block["text"]
    ]


def prefix(request: Request) -> list[str]:
    """The request as lines, one a block, without cache breakpoints."""
    blocks = [
        *request.system,
        *(block for message in request.messages for block in message["content"]),
    ]
    return [
        json.dumps({key: value for key, value in block.items() if key != "cache_control"})
        for block in blocks
    ]


async def test_changed_notes_are_announced_to_the_model_once_and_each_request_extends_the_last(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("/memory add Ana lives in Lisbon")
        await harness.say("hello there, how are you today?")
        assert fences(model) == []
        await harness.say("/memory replace Lisbon => Ana lives in Porto")
        await harness.say("tell me something about ferries")
        assert len(fences(model)) == 1
        assert (
            "MEMORY.md now says: “Ana lives in Porto”, no longer: “Ana lives in Lisbon”."
            in fences(model)[0]
        )
        await harness.say("/memory remove Porto")
        await harness.say("and about trains, if you please")
        await harness.say("ok")
        told = "".join(fences(model))
        assert told.count("now says") == 1
        assert told.count("MEMORY.md no longer says: “Ana lives in Porto”.") == 1
        for earlier, later in pairwise(model.requests):
            assert prefix(later)[: len(prefix(earlier))] == prefix(earlier)


async def test_new_session_has_the_changed_note_in_its_prompt_and_gets_no_news_about_it(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("hello there, how are you today?")
        await harness.say("/memory add Ana lives in Porto")
        await harness.say("/new")
        await harness.say("good morning to you, my friend")
        assert "- Ana lives in Porto" in model.requests[-1].system[0]["text"]
        assert "now says" not in "".join(fences(model))


async def test_note_that_only_begins_like_another_is_reported_as_new(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("/memory add Ana likes tea and cake")
        await note_elsewhere(harness, "Ana likes milk\nand sugar")
        await harness.say("hello there, how are you today?")
        await harness.say("/memory add Ana likes tea")
        await harness.say("/memory add Ana likes milk")
        await harness.say("tell me something about ferries")
        told = "".join(fences(model))
        assert "now says: “Ana likes tea”." in told
        assert "now says: “Ana likes milk”." in told
        assert "cake" not in told, "what stands in the prompt is no news"


async def test_note_by_the_model_is_news_to_other_sessions_only(
    home: Path,
) -> None:
    note = ("memory", {"target": "user", "action": "add", "content": "Ana likes tea"})
    model = ScriptedModel(says("hi"), calls(note), says("noted"))
    async with open_gateway(home, model) as harness:
        await harness.say("hello there, how are you today?")
        await note_elsewhere(harness, "Ana has a dog")
        await harness.say("Ana likes tea, by the way, and a lot")
        await harness.say("what about the weather of tomorrow?")
        told = "".join(fences(model))
        assert "Ana has a dog" in told
        assert "USER.md now says" not in told


async def note_elsewhere(harness: GatewayHarness, text: str) -> None:
    """As the command line does it, in a process of its own."""
    await add_note(harness.services.notebook, OWNER, frozenset((OWNER,)), "memory", text)
