"""The client of the Chat Completions API, with the vendor's SDK against a strict server on loopback."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from core.agent.prompt import add_cache_breakpoints
from core.errors import ModelError
from core.models.chat_completions import (
    ChatCompletions,
    ChunkedAnswer,
    ThinkingFilter,
    build_messages,
)
from core.models.reasoning import ReturnedReasoning
from core.types import Completion, Json, Request
from tests.fixtures.chat_api import MODEL, ChatApi, Reply
from tests.fixtures.chat_rules import take_marks
from tests.fixtures.clock import SteadyClock
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

KEY = "sk-secret-0123456789"
TOOL = {
    "name": "memory",
    "description": "Keeps things.",
    "input_schema": {"type": "object", "properties": {"content": {"type": "string"}}},
}
SENTENCE = "Ana lives in Porto — «olá» 🎂 and 日本."


class Caller:
    """A client whose shown texts, waits and pauses are written down. Sleeping moves the clock."""

    def __init__(self, url: str, **options: Any) -> None:
        self.clock = SteadyClock()
        self.pauses: list[float] = []
        self.texts: list[str] = []
        self.waits: list[str] = []
        options = {"api_key": KEY, "base_url": url, "sleep": self._sleep, **options}
        self.client = ChatCompletions(clock=self.clock, **options)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds=seconds)

    async def ask(self, *turns: Any, **options: Any) -> Completion:
        return await self.client.complete(
            build_request(*turns, **options), self.texts.append, self.waits.append
        )

    async def fail(self, *turns: Any, **options: Any) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.ask(*turns, **options)
        return caught.value


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def build_request(*turns: Any, **options: Any) -> Request:
    """Build a request. Turns are texts or lists of blocks, the person's first."""
    roles = ("user", "assistant")
    messages = tuple(
        {
            "role": roles[index % 2],
            "content": [text_block(turn)] if isinstance(turn, str) else list(turn),
        }
        for index, turn in enumerate(turns or ("Hello",))
    )
    options = {
        "system": (text_block("You are Mneme."),),
        "model": MODEL,
        "tools": (TOOL,),
        **options,
    }
    return Request(messages=messages, **options)


@asynccontextmanager
async def calling(
    replies: Callable[[dict[str, Any]], Reply] | Iterable[Reply],
    server: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[ChatApi, Caller]]:
    async with ChatApi(replies, **{"key": KEY, **(server or {})}) as api:
        caller = Caller(api.url, **options)
        try:
            yield api, caller
        finally:
            await caller.client.close()


def build_results(blocks: Iterable[Json], content: Any = "ok") -> list[dict[str, Any]]:
    return [
        {"type": "tool_result", "tool_use_id": block["id"], "content": content}
        for block in blocks
        if block["type"] == "tool_use"
    ]


async def test_plain_answer_has_text_usage_and_model() -> None:
    async with calling([SENTENCE]) as (api, caller):
        completion = await caller.ask()
    assert completion.text == SENTENCE
    assert completion.blocks == (text_block(SENTENCE),)
    assert (completion.stop_reason, completion.model) == ("end_turn", MODEL)
    assert completion.usage.input == api.usages[0]["prompt_tokens"]
    assert completion.usage.output == api.usages[0]["completion_tokens"]
    assert caller.texts[-1] == SENTENCE
    assert all(SENTENCE.startswith(text) for text in caller.texts)


async def test_system_prompt_and_turns_are_sent_in_order() -> None:
    async with calling(["Good."]) as (api, caller):
        await caller.ask("One", "Two", [text_block("Three"), text_block("<memory-context>")])
    assert [(message["role"], message["content"]) for message in api.requests[0]["messages"]] == [
        ("system", "You are Mneme."),
        ("user", "One"),
        ("assistant", "Two"),
        ("user", "Three\n\n<memory-context>"),
    ]


def answer_like_mistral(body: dict[str, Any]) -> Reply:
    """Refuse ids of tool calls that don't have 9 letters or digits."""
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            if not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]):
                words = (
                    f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9."
                )
                return ModelReply.fail(400, words, code="3280")
    return "Seen."


async def test_model_server_that_requires_short_call_ids_gets_the_same_ids_in_every_request() -> (
    None
):
    turns: list[Any] = ["Look"]
    for call_id in ("toolu_01ABCdef", "call_17f_0", "abcDEF123"):
        call: dict[str, Any] = {"type": "tool_use", "id": call_id, "name": "memory", "input": {}}
        turns += [[call], build_results([call])]
    async with calling(answer_like_mistral) as (api, caller):
        assert (await caller.ask(*turns)).text == "Seen."
        assert (await caller.ask(*turns, "Seen.", "And now?")).text == "Seen."
    # Only the first request has the long ids, and the results have the ids of their calls.
    assert len(api.requests) == 3
    assert api.refusals == []
    before, after = (json.dumps(body["messages"])[:-1] for body in api.requests[1:])
    assert after.startswith(before)
    ids = [m["tool_call_id"] for m in api.requests[1]["messages"] if m["role"] == "tool"]
    assert len(set(ids)) == 3
    assert ids[2] == "abcDEF123"


async def test_model_server_without_a_limit_on_call_ids_gets_them_unchanged() -> None:
    call = {"type": "tool_use", "id": "toolu_01ABCdef", "name": "memory", "input": {}}
    async with calling(["Seen."]) as (api, caller):
        await caller.ask("Look", [call], build_results([call]))
    assert api.requests[0]["messages"][-1]["tool_call_id"] == "toolu_01ABCdef"


async def test_ids_that_openai_refuses_are_shortened_in_calls_and_results_alike() -> None:
    turns: list[Any] = ["Look"]
    ids = [
        f"chatcmpl-tool-{letter * length}" for letter, length in (("a", 26), ("b", 27), ("b", 50))
    ]
    for call_id in ids:
        call = {"type": "tool_use", "id": call_id, "name": "memory", "input": {}}
        turns += [[call], build_results([call])]
    async with calling(["Seen.", "And now."]) as (api, caller):
        await caller.ask(*turns)
        await caller.ask(*turns, "Seen.", "And now?")
    assert api.refusals == []
    before, after = (json.dumps(body["messages"])[:-1] for body in api.requests)
    assert after.startswith(before)
    sent = [m["tool_call_id"] for m in api.requests[0]["messages"] if m["role"] == "tool"]
    assert sent[0] == ids[0]
    assert len(set(sent)) == 3


@pytest.mark.parametrize("chunk_chars", [1, 3, 400])
async def test_tool_calls_read_from_the_stream_are_sent_back_with_their_results(
    chunk_chars: int,
) -> None:
    calls = ModelReply.call(
        ("memory", {"content": SENTENCE}),
        ("memory", {}),
        text="I note it.",
        chunk_chars=chunk_chars,
    )
    async with calling([calls, "Done."]) as (api, caller):
        completion = await caller.ask("Remember Ana")
        assert completion.stop_reason == "tool_use"
        first, second = [block for block in completion.blocks if block["type"] == "tool_use"]
        assert (first["name"], first["input"], second["input"]) == (
            "memory",
            {"content": SENTENCE},
            {},
        )
        results = build_results(completion.blocks)
        assert (await caller.ask("Remember Ana", completion.blocks, results)).text == "Done."
    assert api.refusals == []
    roles = [message["role"] for message in api.requests[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]


def test_streamed_tool_calls_that_share_one_index_become_separate_calls() -> None:
    answer = ChunkedAnswer("https://chat.example", "gemini")
    for number in (1, 2):
        function = {"name": "memory", "arguments": f'{{"content": "{number}"}}'}
        call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        answer.add_chunk({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    answer.add_chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    calls = answer.build_completion("gemini").blocks
    assert [(call["id"], call["input"]) for call in calls] == [
        ("call_1", {"content": "1"}),
        ("call_2", {"content": "2"}),
    ]


async def test_history_of_the_messages_api_is_accepted() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Let me see.", "signature": "abc"},
        text_block("I look."),
        {"type": "tool_use", "id": "toolu_01ABCdef", "name": "memory", "input": {"b": 1, "a": "é"}},
    ]
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
    }
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_01ABCdef", "content": [text_block("seen")]},
        picture,
        text_block("And this?"),
    ]
    async with calling(["A cat."]) as (api, caller):
        await caller.ask("Look", blocks, results, [{**blocks[0]}, text_block("Yes.")], "Good")
    assert api.refusals == []
    messages = api.requests[0]["messages"]
    assert json.loads(messages[2]["tool_calls"][0]["function"]["arguments"]) == {"b": 1, "a": "é"}
    assert messages[3] == {"role": "tool", "tool_call_id": "toolu_01ABCdef", "content": "seen"}
    assert messages[4]["content"][0]["image_url"]["url"] == "data:image/png;base64,aGk="
    assert "Let me see" not in json.dumps(messages)


async def test_answer_with_nothing_but_thinking_is_left_out_of_later_requests() -> None:
    thinking = [{"type": "thinking", "thinking": "Hm.", "signature": "abc"}]
    request = build_request("One", thinking, "Two", system=())
    assert build_messages(request, ReturnedReasoning("")) == [
        {"role": "user", "content": "One"},
        {"role": "user", "content": "Two"},
    ]


async def test_longer_conversation_extends_the_earlier_request_byte_for_byte() -> None:
    turns: list[Any] = []
    replies: list[Reply] = []
    for number in range(25):
        replies += [
            ModelReply.call(("memory", {"content": f"Fact {number} 日本"})),
            f"Ok {number}.",
        ]
    async with calling(replies) as (api, caller):
        for number in range(25):
            turns.append(f"{SENTENCE * 20} {number}")
            completion = await caller.ask(*turns)
            turns += [completion.blocks, build_results(completion.blocks)]
            turns.append((await caller.ask(*turns)).blocks)
    assert api.refusals == []
    sent = [json.dumps(body["messages"], ensure_ascii=False)[:-1] for body in api.requests]
    assert all(after.startswith(before) for before, after in pairwise(sent))
    later = api.usages[2:]
    cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in later)
    assert cached / sum(usage["prompt_tokens"] for usage in later) > 0.8


CLAUDE = "anthropic/claude-sonnet-5-5"
ROUTER = {"caches_marked": True}


def drop_marks(messages: list[dict[str, Any]]) -> str:
    """Return messages as JSON, without their cache breakpoints and the closing bracket."""
    messages = copy.deepcopy(messages)
    take_marks(messages)
    return json.dumps(messages, ensure_ascii=False)[:-1]


def mark(request: Request) -> Request:
    """Return the request with the cache breakpoints of a conversation."""
    turns = [dict(message) for message in request.messages]
    return replace(request, messages=add_cache_breakpoints(turns))


async def test_claude_behind_a_router_caches_what_is_marked() -> None:
    turns: list[Any] = []
    replies: list[Reply] = []
    for number in range(15):
        call = ModelReply.call(("memory", {"content": f"Fact {number} 日本"}))
        replies += [call, f"Ok {number}."]
    usages = []
    async with calling(replies, ROUTER, marked_models=("anthropic/",)) as (api, caller):
        for number in range(15):
            turns.append(f"{SENTENCE * 20} {number}")
            for _ in range(2):
                request = mark(build_request(*turns, model=CLAUDE))
                completion = await caller.client.complete(request, lambda _: None, lambda _: None)
                usages.append(completion.usage)
                results = build_results(completion.blocks, "" if number % 2 else "ok")
                turns += [completion.blocks, results] if results else [completion.blocks]
    assert api.refusals == []
    prompts = [drop_marks(body["messages"]) for body in api.requests]
    assert all(after.startswith(before) for before, after in pairwise(prompts))
    read = sum(usage.cache_read for usage in usages[2:])
    assert read / sum(usage.total_input for usage in usages[2:]) > 0.8
    assert usages[-1].cache_write > 0


async def test_other_models_of_a_router_get_no_cache_breakpoints() -> None:
    request = mark(build_request("One", "Two", "Three"))
    async with calling(["Yes."], ROUTER, marked_models=("anthropic/",)) as (api, caller):
        await caller.client.complete(request, lambda _: None, lambda _: None)
    assert "cache_control" not in json.dumps(api.requests)
    assert api.requests[0]["messages"][1]["content"] == "One"


async def test_chat_api_usage_counts_cached_tokens_separately_from_all_input_tokens() -> None:
    async with calling(["One.", "Two."]) as (api, caller):
        await caller.ask("x" * 20_000)
        usage = (await caller.ask("x" * 20_000)).usage
    cached = api.usages[1]["prompt_tokens_details"]["cached_tokens"]
    assert cached >= 1024
    assert (usage.cache_read, usage.total_input) == (cached, api.usages[1]["prompt_tokens"])


async def test_thinking_is_neither_shown_nor_kept() -> None:
    thinking = {"type": "thinking", "thinking": "She means Porto."}
    separate = ModelReply(blocks=(thinking, text_block("Porto.")))
    inline = ModelReply.say("<think>She means Porto.</think>\n\nPorto.", chunk_chars=1)
    async with calling([separate, inline]) as (_, caller):
        for _ in range(2):
            assert (await caller.ask()).text == "Porto."
    assert all("Porto.".startswith(text) for text in caller.texts)


@each_row(
    ("pieces", "text"),
    [
        (["<think>a", "b</th", "ink> Yes."], "Yes."),
        (["<", "b>bold</b>"], "<b>bold</b>"),
        (["Say <think>", "aloud"], "Say <think>aloud"),
        (["<think>never closed"], ""),
        (["<thi"], "<thi"),
    ],
)
def test_only_thinking_in_front_of_the_answer_is_removed(pieces: list[str], text: str) -> None:
    thinking = ThinkingFilter()
    assert "".join([*map(thinking.add, pieces), thinking.finish()]) == text


def test_answer_in_parts_has_their_text_without_their_thinking() -> None:
    answer = ChunkedAnswer()
    thinking = {"type": "thinking", "thinking": [text_block("She means Porto.")]}
    contents: list[Any] = [[thinking], [text_block("Por")], "to", [thinking, text_block(".")]]
    pieces = [answer.add_chunk({"choices": [{"delta": {"content": part}}]}) for part in contents]
    answer.add_chunk({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    assert pieces == ["", "Por", "to", "."]
    assert answer.build_completion(MODEL).blocks == (text_block("Porto."),)


async def test_model_server_that_rejects_a_field_name_is_asked_once_more_with_the_other_field() -> (
    None
):
    server = {"limit_field": "max_completion_tokens", "reports_usage": False}
    async with calling(["One.", "Two."], server) as (api, caller):
        assert (await caller.ask()).text == "One."
        assert (await caller.ask()).text == "Two."
    assert len(api.requests) == 4
    assert caller.waits == []
    assert "max_completion_tokens" in api.requests[-1]
    assert "stream_options" not in api.requests[-1]


async def test_server_that_refuses_each_limit_field_is_asked_twice() -> None:
    async with calling(["Never."], {"limit_field": "max_words"}) as (api, caller):
        error = await caller.fail()
    assert "max_words" in str(error)
    assert len(api.requests) == 2


ERRORS = [
    (ModelReply.fail(400, "messages: bad"), "refused the request (400): messages: bad.", False),
    (ModelReply.fail(400, "too much", code="context_length_exceeded"), "too large", False),
    (ModelReply.fail(401, "no"), "Put a valid key into OPENAI_API_KEY.", False),
    (ModelReply.fail(403, "no"), "have permission", False),
    (ModelReply.fail(404, "?", code="model_not_found"), f"no model named {MODEL}", False),
    (ModelReply(status=404, body="<html>nothing</html>"), "no Chat Completions API", False),
    (ModelReply.fail(429, "slow down"), "rate limit", True),
    (ModelReply.fail(429, "pay", code="insufficient_quota"), "cannot pay", False),
    (ModelReply.fail(500), "internal error (500)", True),
    (ModelReply(status=502, body="<html>bad gateway</html>"), "internal error (502)", True),
    (ModelReply.fail(503), "out of service", True),
]


@pytest.mark.parametrize(("reply", "sentence", "is_retryable"), ERRORS)
async def test_each_model_api_error_becomes_its_sentence_and_is_retried_only_if_retryable(
    reply: ModelReply, sentence: str, is_retryable: bool
) -> None:
    async with calling([reply] * 5) as (api, caller):
        error = await caller.fail()
    assert sentence in str(error)
    assert KEY not in str(error)
    assert error.is_retryable is is_retryable
    assert error.__cause__ is None, "a traceback would show what the server repeats of a message"
    assert len(api.requests) == (5 if is_retryable else 1)


async def test_error_in_the_stream_with_a_status_as_its_code_is_classified_by_it() -> None:
    broken = ModelReply.say(SENTENCE, fault="error", after_events=0, code="402", words="pay")
    async with calling([broken]) as (api, caller):
        assert "cannot pay" in str(await caller.fail())
    assert len(api.requests) == 1


@pytest.mark.parametrize("fault", ["cut", "error", "end", "garble"])
async def test_broken_chat_api_stream_is_requested_again_once_and_fails_at_the_second_break(
    fault: Any,
) -> None:
    broken = ModelReply.say(SENTENCE * 3, fault=fault, after_events=5)
    async with calling([broken, "Whole."]) as (_, caller):
        assert (await caller.ask()).text == "Whole."
    assert SENTENCE.startswith(caller.texts[0])
    assert caller.texts[-1] == "Whole."
    async with calling([broken, broken, "Never."]) as (api, caller):
        assert (await caller.fail()).is_retryable
    assert len(api.requests) == 2


async def test_pause_that_the_server_requests_is_obeyed() -> None:
    async with calling([ModelReply.fail(429, retry_after="9"), "Here."]) as (_, caller):
        assert (await caller.ask()).text == "Here."
    assert caller.pauses == [9.0]
    assert caller.waits == ["The model's rate limit is reached. Trying again in 9 s (2 of 5)."]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("stop", "end_turn"),
        ("eos", "end_turn"),
    ],
)
async def test_chat_api_finish_reasons_are_mapped_to_stop_reasons(
    reason: str, expected: str
) -> None:
    async with calling([ModelReply.say("Hm.", stop_reason=reason)]) as (_, caller):
        assert (await caller.ask()).stop_reason == expected


async def test_error_for_an_unreachable_model_server_names_the_setting_of_its_address() -> None:
    caller = Caller("http://127.0.0.1:9/v1", tries=1)
    error = await caller.fail()
    await caller.client.close()
    assert str(error) == (
        "The model's server cannot be reached. Check the network, and OPENAI_BASE_URL if it is set."
    )


async def test_probe_and_window_size_are_read_from_the_server() -> None:
    async with calling(["Hi.", "Hi."]) as (api, caller):
        assert str(await caller.client.probe(MODEL)) == f"{MODEL} answers at {api.url}."
        assert await caller.client.fetch_window_tokens(MODEL) == 400_000
        assert await caller.client.fetch_window_tokens("gpt-6") is None
    gone = Caller("http://127.0.0.1:9/v1")
    assert await gone.client.fetch_window_tokens(MODEL) is None
    await gone.client.close()


async def test_address_of_a_request_works_as_well() -> None:
    async with ChatApi(["Good."], key=KEY) as api:
        caller = Caller(f"{api.url}/chat/completions/")
        assert (await caller.ask()).text == "Good."
        await caller.client.close()


THOUGHT = {"type": "thinking", "thinking": "I must look it up. " * 5}
LOOK = {"type": "tool_use", "name": "memory", "input": {"content": "Ana"}}


async def test_effort_is_sent_as_a_level_and_a_budget_is_left_out() -> None:
    async with calling(["One.", "Two.", "Three."]) as (api, caller):
        for effort in ("minimal", 4000, ""):
            await caller.ask(effort=effort)
    assert [body.get("reasoning_effort") for body in api.requests] == ["minimal", None, None]


async def test_reasoning_is_sent_back_unchanged_to_the_model_server_that_wrote_it() -> None:
    replies: list[Reply] = [ModelReply(blocks=(THOUGHT, LOOK)), "Found.", "Yes."]
    async with calling(replies, {"wants_reasoning": True}) as (api, caller):
        first = await caller.ask("Where?")
        turns = ("Where?", first.blocks, build_results(first.blocks))
        assert (await caller.ask(*turns)).text == "Found."
        await caller.ask(*turns, "Found.", "Sure?")
    assert api.refusals == []
    sent_back = api.requests[1]["messages"][2]
    assert sent_back["reasoning_details"][0]["text"] == THOUGHT["thinking"]
    assert sent_back["reasoning_details"][0]["signature"] == "sig-1"
    assert sent_back["tool_calls"][0]["extra_content"]["double"]["thought_signature"] == "call-1"
    assert first.text == ""
    assert not any("look" in text for text in caller.texts)


@pytest.mark.parametrize(("change", "refusals"), [("changed", 2), ("missing", 1)])
async def test_server_refuses_reasoning_that_was_changed(change: str, refusals: int) -> None:
    replies: list[Reply] = [ModelReply(blocks=(THOUGHT, LOOK)), "Found."]
    async with calling(replies, {"wants_reasoning": True}) as (api, caller):
        first = await caller.ask("Where?")
        reasoning, call = first.blocks
        changed = {**reasoning, "details": [{**reasoning["details"][0], "text": "Something else."}]}
        blocks = [changed, call] if change == "changed" else [call]
        await caller.fail("Where?", blocks, build_results([call]))
    # Changed thinking is left out, and then it is missing.
    assert len(api.refusals) == refusals


async def test_reasoning_stays_away_from_other_servers() -> None:
    async with calling([ModelReply(blocks=(THOUGHT, LOOK))], {"wants_reasoning": True}) as (
        _,
        caller,
    ):
        first = await caller.ask("Where?")
    async with calling(["Found."]) as (api, caller):
        await caller.ask("Where?", first.blocks, build_results(first.blocks))
    assert api.refusals == []
    assert "reasoning_details" not in json.dumps(api.requests)


async def test_stream_without_a_stop_reason_is_complete_if_the_model_server_marks_its_end() -> None:
    call = {"type": "tool_use", "name": "memory", "input": {"content": "Ana"}}
    replies = [
        ModelReply.say(SENTENCE, stop_reason=""),
        ModelReply(blocks=(call,), stop_reason=""),
        ModelReply.say(SENTENCE, fault="end", after_events=3),
    ]
    async with calling(replies, tries=1) as (_, caller):
        first, second = await caller.ask(), await caller.ask()
        error = await caller.fail()
    assert (first.text, first.stop_reason) == (SENTENCE, "end_turn")
    assert second.stop_reason == "tool_use"
    assert str(error) == "The model's answer cannot be read."
