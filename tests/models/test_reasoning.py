"""Thinking of the Chat Completions API goes back only where it is wanted, and a refusal has a way out."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from core.models.chat_completions import ChunkedAnswer
from core.models.reasoning import ReasoningParts
from core.types import Completion, Json
from tests.fixtures.chat_api import Reply
from tests.fixtures.model_reply import ModelReply
from tests.models.test_chat_completions import (
    LOOK,
    THOUGHT,
    build_results,
    calling,
    text_block,
)

pytestmark = pytest.mark.slow

OTHER = "gpt-6-luna"
FOREIGN_CALL = {"type": "tool_use", "id": "toolu_1", "name": "memory", "input": {}}


def find_thinking(body: dict[str, Any]) -> list[str]:
    """Return the names of the fields with thinking in a request."""
    sent = json.dumps(body["messages"])
    names = ("reasoning_details", "reasoning_content", "extra_content")
    return [name for name in names if f'"{name}"' in sent]


@pytest.mark.parametrize("wants_reasoning", [True, False])
async def test_thinking_stays_away_from_other_models_of_the_same_server(
    wants_reasoning: bool,
) -> None:
    replies: list[Reply] = [ModelReply(blocks=(THOUGHT, LOOK)), "Seen.", "Here."]
    async with calling(replies, {"wants_reasoning": wants_reasoning}) as (api, caller):
        first = await caller.ask("Where?")
        turns = ("Where?", first.blocks, build_results(first.blocks))
        await caller.ask(*turns, model=OTHER)
        await caller.ask(*turns)
    assert api.refusals == []
    assert find_thinking(api.requests[1]) == []
    assert find_thinking(api.requests[2]) != []


async def test_thinking_that_a_model_server_refuses_is_left_out_of_this_and_later_requests() -> (
    None
):
    replies: list[Reply] = [ModelReply(blocks=(THOUGHT, LOOK)), "Seen.", "Seen."]
    async with calling(replies) as (api, caller):
        first = await caller.ask("Where?")
        reasoning, call = first.blocks
        details = [{"type": "reasoning.encrypted", "data": "abc", "index": 0}]
        blocks = [{**reasoning, "details": details, "texts": {}}, call]
        turns = ("Where?", blocks, build_results([call]))
        for _ in range(2):
            assert (await caller.ask(*turns)).text == "Seen."
    assert len(api.requests) == 4, "the second time, nothing is refused"
    assert caller.waits == []


async def test_plain_thinking_is_sent_back_only_with_the_tool_calls_it_led_to() -> None:
    replies: list[Reply] = [
        ModelReply(blocks=(THOUGHT, LOOK)),
        ModelReply(blocks=(THOUGHT, text_block("Seen."))),
        "Yes.",
    ]
    async with calling(replies, {"demand": "reasoning_content"}) as (api, caller):
        first = await caller.ask("Where?")
        turns = ["Where?", first.blocks, build_results(first.blocks)]
        second = await caller.ask(*turns)
        await caller.ask(*turns, second.blocks, "Sure?")
    assert api.refusals == []
    assert second.blocks == (text_block("Seen."),)
    sent = [json.dumps(body["messages"])[:-1] for body in api.requests]
    assert all(after.startswith(before) for before, after in pairwise(sent))
    assert api.requests[1]["messages"][2]["reasoning_content"] == THOUGHT["thinking"]


@pytest.mark.parametrize("demand", ["reasoning_content", "thought_signature"])
async def test_server_that_misses_thinking_of_foreign_calls_gets_a_placeholder(demand: str) -> None:
    turns: tuple[Any, ...] = ("Where?", [FOREIGN_CALL], build_results([FOREIGN_CALL]))
    async with calling(["Seen.", "Again."], {"demand": demand}) as (api, caller):
        assert (await caller.ask(*turns)).text == "Seen."
        assert (await caller.ask(*turns)).text == "Again."
    assert len(api.refusals) == 1, "it is learnt from the first refusal"


async def test_server_that_takes_no_thinking_back_is_asked_again_without_it() -> None:
    replies: list[Reply] = [ModelReply(blocks=(THOUGHT, LOOK)), "Seen.", "Again."]
    async with calling(replies, {"refuses_reasoning": True}) as (api, caller):
        first = await caller.ask("Where?")
        turns = ("Where?", first.blocks, build_results(first.blocks))
        assert (await caller.ask(*turns)).text == "Seen."
        assert (await caller.ask(*turns)).text == "Again."
    assert len(api.refusals) == 1


def read(*deltas: Json) -> Json:
    parts = ReasoningParts("https://chat.example", "m")
    for delta in deltas:
        parts.add({"reasoning_details": [delta]})
    block = parts.build({}, has_calls=True)
    assert block is not None
    return block


def test_reasoning_details_without_an_index_are_merged_only_within_one_text() -> None:
    text = {"type": "reasoning.text", "id": None}
    encrypted = {"type": "reasoning.encrypted"}
    block = read(
        {**text, "text": "One, "},
        {**text, "text": "two.", "signature": "s1"},
        {**text, "text": "Three."},
        {**encrypted, "id": "rs_1", "data": "abc"},
        {**encrypted, "id": "rs_2", "data": "def"},
    )
    assert [detail.get("text") or detail.get("data") for detail in block["details"]] == [
        "One, two.",
        "Three.",
        "abc",
        "def",
    ]


def test_reasoning_details_of_two_types_with_one_index_are_not_merged() -> None:
    block = read(
        {"type": "reasoning.summary", "index": 0, "summary": "He "},
        {"type": "reasoning.summary", "index": 0, "summary": "asks."},
        {"type": "reasoning.encrypted", "index": 0, "data": "abc"},
    )
    assert [detail["type"] for detail in block["details"]] == [
        "reasoning.summary",
        "reasoning.encrypted",
    ]
    assert block["details"][0]["summary"] == "He asks."


def complete(*deltas: Json, reason: str | None = "tool_calls") -> Completion:
    answer = ChunkedAnswer("https://chat.example", "m")
    for delta in deltas:
        answer.add_chunk({"choices": [{"index": 0, "delta": delta}]})
    answer.add_chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    return answer.build_completion("m")


def test_two_tool_calls_with_one_id_get_different_ids_and_keep_their_own_signatures() -> None:
    calls = [
        {
            "index": number,
            "id": "call_0",
            "function": {"name": "memory", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": f"s{number}"}},
        }
        for number in (0, 1)
    ]
    reasoning, first, second = complete({"tool_calls": calls}).blocks
    assert first["id"] == "call_0"
    assert second["id"] != "call_0"
    signatures = [
        reasoning["calls"][call["id"]]["google"]["thought_signature"] for call in (first, second)
    ]
    assert signatures == ["s0", "s1"]
