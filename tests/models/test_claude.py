"""The door to the SDK, tried with the real client against the strict double; blocks as they come
and as they go."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ModelError
from core.models import claude
from core.models.claude import Claude, StreamedAnswer, keep_own_thinking
from core.models.connections import GrowingText
from core.text.normalize import make_json_safe
from core.types import Completion, Request, Usage
from tests.fixtures.clock import SteadyClock
from tests.fixtures.messages_api import MessagesApi, Reply
from tests.fixtures.messages_rules import sign
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

KEY = "sk-ant-secret-0123456789"
MARK = {"type": "ephemeral"}
TOOL = {
    "name": "memory",
    "description": "Keeps things.",
    "input_schema": {"type": "object", "properties": {"content": {"type": "string"}}},
}
SENTENCE = "Ana lives in Porto — «olá» 🎂 and 日本."


class Caller:
    """A Claude with everything it says written down. Sleeping moves the clock."""

    def __init__(self, url: str, **options: Any) -> None:
        self.clock = SteadyClock()
        self.slept: list[float] = []
        self.texts: list[str] = []
        self.waits: list[str] = []
        options = {"api_key": KEY, "base_url": url, "sleep": self._sleep, **options}
        self.claude = Claude(clock=self.clock, **options)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds=seconds)

    async def ask(self, *turns: Any, **options: Any) -> Completion:
        return await self.claude.complete(
            request(*turns, **options), self.texts.append, self.waits.append
        )

    async def fail(self, *turns: Any, **options: Any) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.ask(*turns, **options)
        return caught.value


def text(words: str, **extra: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **extra}


def request(*turns: Any, **options: Any) -> Request:
    """Turns are texts or block lists, the person's first."""
    roles = ("user", "assistant")
    messages = tuple(
        {"role": roles[index % 2], "content": [text(turn)] if isinstance(turn, str) else list(turn)}
        for index, turn in enumerate(turns or ("Hello",))
    )
    options = {
        "system": (text("You are Mneme."),),
        "model": "claude-sonnet-5-5",
        "tools": (TOOL,),
        **options,
    }
    return Request(messages=messages, **options)


@asynccontextmanager
async def calling(
    replies: Callable[[dict[str, Any]], Reply] | Iterable[Reply],
    api: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[MessagesApi, Caller]]:
    async with MessagesApi(replies, **{"key": KEY, **(api or {})}) as double:
        caller = Caller(double.url, **options)
        try:
            yield double, caller
        finally:
            await caller.claude.close()


async def test_plain_answer_has_text_blocks_stop_reason_and_usage() -> None:
    async with calling(["Good day. "]) as (api, caller):
        completion = await caller.ask("Hello")
    assert completion.blocks == (text("Good day."),)
    assert (completion.text, completion.stop_reason, completion.model) == (
        "Good day.",
        "end_turn",
        "claude-sonnet-5-5",
    )
    assert completion.usage.input > 0
    assert completion.usage.output > 0
    assert not api.refusals
    sent = api.requests[0]
    assert sorted(sent) == ["max_tokens", "messages", "model", "stream", "system", "tools"]
    assert sent["max_tokens"] == 8192
    assert "anthropic-beta" not in api.headers[0]
    assert not caller.waits


async def test_request_to_claude_omits_tools_and_system_when_both_are_empty() -> None:
    async with calling(["Hi"]) as (api, caller):
        await caller.ask("Hello", system=(), tools=())
    assert sorted(api.requests[0]) == ["max_tokens", "messages", "model", "stream"]


@pytest.mark.parametrize(
    "cut", [{"chunk_chars": 1}, {"chunk_chars": 5, "wire_bytes": 3}, {"is_utf16": True}]
)
async def test_partial_text_of_a_claude_stream_only_grows_even_across_broken_chunks(
    cut: dict[str, Any],
) -> None:
    async with calling([ModelReply.say(SENTENCE, has_pings=True, **cut)]) as (_, caller):
        completion = await caller.ask()
    assert completion.text == SENTENCE
    assert caller.texts[-1] == SENTENCE
    assert all(
        later.startswith(earlier)
        for earlier, later in zip(caller.texts, caller.texts[1:], strict=False)
    )
    assert len(caller.texts) > 5


async def test_lone_surrogate_in_a_claude_stream_is_replaced() -> None:
    async with calling([ModelReply.say("well \ud83d then", is_utf16=True)]) as (_, caller):
        completion = await caller.ask("what?")
        sent = caller.texts[-1]
    assert completion.text == sent == "well \ufffd then"


@pytest.mark.parametrize("is_escaped", [False, True])
async def test_claude_tool_calls_are_assembled_whole_however_the_stream_is_chunked(
    is_escaped: bool,
) -> None:
    arguments = {"content": SENTENCE, "n": [1, 2.5, None, True]}
    reply = ModelReply.call(
        ("memory", arguments),
        ("memory", {}),
        text="Wait.",
        chunk_chars=1,
        is_escaped=is_escaped,
        wire_bytes=7,
    )
    async with calling([reply, "Done."]) as (api, caller):
        completion = await caller.ask("Remember")
        said, first, second = completion.blocks
        assert said == text("Wait.")
        assert (first["name"], first["input"]) == ("memory", arguments)
        assert second["input"] == {}
        assert completion.stop_reason == "tool_use"
        assert set(first) == {"type", "id", "name", "input"}
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}
            for call in (first, second)
        ]
        done = await caller.ask("Remember", completion.blocks, results)
    assert done.text == "Done."
    assert not api.refusals


def test_long_text_is_shown_each_time_it_has_grown_by_a_fiftieth() -> None:
    shown: list[str] = []
    growing = GrowingText(shown.append)
    for _ in range(10_000):
        growing.add("twelve chars")
    # With every piece, it was 600 million characters.
    assert sum(map(len, shown)) < 100 * 120_000
    assert len(shown[-1]) > 120_000 * 0.97
    assert [len(text) for text in shown[:3]] == [12, 24, 36]


def test_a_call_that_is_cut_off_with_its_answer_loses_no_text() -> None:
    answer = StreamedAnswer()
    call = {"type": "tool_use", "id": "t1", "name": "memory", "input": {}}
    answer.add_event(
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}
    )
    assert (
        answer.add_event(
            {"type": "content_block_start", "index": 0, "content_block": text("Wait.")}
        )
        == "Wait."
    )
    answer.add_event({"type": "content_block_start", "index": 1, "content_block": call})
    delta = {"type": "input_json_delta", "partial_json": '{"content": "Ana li'}
    assert answer.add_event({"type": "content_block_delta", "index": 1, "delta": delta}) == ""
    answer.add_event({"type": "content_block_stop", "index": 1})
    answer.add_event(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens"},
            "usage": {"output_tokens": 7},
        }
    )
    completion = answer.build_completion("other")
    assert (completion.text, completion.stop_reason, completion.model) == (
        "Wait.",
        "max_tokens",
        "m",
    )
    assert (completion.usage.input, completion.usage.output) == (3, 7)


async def test_thinking_goes_back_signed_and_unsigned_thinking_is_tried_once() -> None:
    thought = {"type": "thinking", "thinking": "Porto, I think. " * 3}
    hidden = {"type": "redacted_thinking", "data": "abc="}
    unsigned = {"type": "thinking", "thinking": "Surely.", "signature": ""}
    replies = [
        [thought, hidden, text("  "), text("In Porto."), text(" Surely.")],
        [unsigned, text("Yes.")],
    ]
    async with calling([*replies, "End."]) as (api, caller):
        first = await caller.ask("Where?")
        signed = {**thought, "signature": sign(thought["thinking"])}
        origin = {"server": api.url, "model": api.requests[0]["model"]}
        assert first.blocks[:2] == ({**signed, **origin}, {**hidden, **origin})
        assert first.blocks[2:] == (text("In Porto."), text(" Surely."))
        assert first.text == "In Porto. Surely."
        second = await caller.ask("Where?", first.blocks, "Sure?")
        assert second.blocks == ({**unsigned, **origin}, text("Yes."))
        await caller.ask("Where?", first.blocks, "Sure?", second.blocks, "Really?")
        messages = api.requests[-1]["messages"]
        assert messages[1]["content"][:2] == [signed, hidden]
        assert messages[3]["content"] == [text("Yes.")]
    assert len(api.refusals) == 1


async def test_thinking_from_one_model_server_is_not_sent_to_another_model_server() -> None:
    thought = {"type": "thinking", "thinking": "She means Porto."}
    hidden = {"type": "redacted_thinking", "data": "c2VjcmV0"}
    async with calling([[thought, hidden, text("In Porto.")]]) as (_, caller):
        first = await caller.ask("Where?")
    async with calling(["Surely."]) as (other, caller):
        await caller.ask("Where?", first.blocks, "Sure?")
    assert other.requests[0]["messages"][1]["content"] == [text("In Porto.")]
    assert other.refusals == []


async def test_redacted_thinking_that_the_server_refuses_is_left_out() -> None:
    hidden = {"type": "redacted_thinking", "data": "c2VjcmV0"}
    refusal = ModelReply.fail(
        400, "messages.1.content.0: Invalid `data` in `redacted_thinking` block"
    )
    async with calling([[hidden, text("In Porto.")], refusal, "Surely.", "Yes."]) as (api, caller):
        first = await caller.ask("Where?")
        assert (await caller.ask("Where?", first.blocks, "Sure?")).text == "Surely."
        await caller.ask("Where?", first.blocks, "Sure?", "Surely.", "Really?")
    assert "c2VjcmV0" not in json.dumps(api.requests[-1])


async def test_text_before_and_after_a_tool_call_is_joined_with_a_blank_line() -> None:
    call = {"type": "tool_use", "name": "memory", "input": {}}
    async with calling([[text("Before."), call, text("After.")]]) as (_, caller):
        completion = await caller.ask()
    assert completion.text == caller.texts[-1] == "Before.\n\nAfter."


@pytest.mark.parametrize(
    "reason",
    [
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    ],
)
async def test_stop_reason_of_the_api_reaches_the_completion(reason: str) -> None:
    async with calling([ModelReply.say("So far", stop_reason=reason)]) as (_, caller):
        assert (await caller.ask()).stop_reason == reason


async def test_unknown_or_missing_stop_reasons_and_empty_claude_answers_are_accepted() -> None:
    replies = [
        ModelReply.say("x", stop_reason="newly_invented"),
        ModelReply.say("x", stop_reason=""),
        ModelReply.call(("memory", {}), stop_reason=""),
        ModelReply(stop_reason="refusal"),
    ]
    async with calling(replies) as (_, caller):
        answers = [await caller.ask() for _ in replies]
    assert [answer.stop_reason for answer in answers] == [
        "newly_invented",
        "end_turn",
        "tool_use",
        "refusal",
    ]
    assert (answers[3].blocks, answers[3].text) == ((), "")


async def test_a_paused_turn_is_given_back_as_it_is() -> None:
    async with calling([ModelReply.say("Looking ... ", stop_reason="pause_turn"), "Found."]) as (
        api,
        caller,
    ):
        paused = await caller.ask("Look")
        assert (await caller.ask("Look", paused.blocks)).text == "Found."
    assert not api.refusals


async def test_tokens_read_from_the_cache_are_counted() -> None:
    long = "All about Porto. " * 200
    system = (text(long, cache_control=MARK),)
    async with calling(lambda _: "Yes.") as (api, caller):
        first = await caller.ask([text("One?", cache_control=MARK)], system=system)
        second = await caller.ask("One?", "Yes.", [text("Two?", cache_control=MARK)], system=system)
    assert first.usage.cache_read == 0
    assert first.usage.cache_write > 900
    assert second.usage.cache_read == first.usage.cache_write
    assert 0 < second.usage.cache_write < 50
    assert second.usage.input == 0
    assert first.usage + second.usage == api.totals


async def test_tokens_cached_for_an_hour_are_counted_separately() -> None:
    system = (text("All about Porto. " * 200, cache_control={**MARK, "ttl": "1h"}),)
    async with calling(lambda _: "Yes.") as (_, caller):
        usage = (await caller.ask([text("One?", cache_control=MARK)], system=system)).usage
    assert 900 < usage.cache_write_hour < usage.cache_write


async def test_usage_of_a_local_model_server_without_cache_counts_has_none() -> None:
    async with calling(["Hi"], {"is_local": True}, api_key=None) as (api, caller):
        usage = (await caller.ask(model="llama", tools=())).usage
    assert usage.input > 0
    assert usage == Usage(input=usage.input, output=usage.output)
    assert api.headers[0]["authorization"] == "Bearer no-key"


async def test_cache_marks_are_dropped_for_a_server_that_refuses_them() -> None:
    marked = {"system": (text("S", cache_control=MARK),), "tools": (TOOL,)}
    api: dict[str, Any] = {"is_local": True, "takes_marks": False}
    async with calling(lambda _: "Yes.", api) as (double, caller):
        first = await caller.ask([text("One?", cache_control=MARK)], **marked)
        second = await caller.ask([text("One?", cache_control=MARK)], **marked)
    assert (first.text, second.text) == ("Yes.", "Yes.")
    assert len(double.requests) == 3
    assert len(double.refusals) == 1
    assert not caller.waits
    assert "cache_control" not in str(double.requests[1:])


async def test_a_refusal_that_has_nothing_to_do_with_marks_does_not_end_caching() -> None:
    async with calling(lambda _: "Yes.") as (api, caller):
        error = await caller.fail([text("One?", cache_control=MARK)], tools=(TOOL, TOOL))
        assert "Tool names must be unique" in str(error)
        await caller.ask([text("One?", cache_control=MARK)])
    assert "cache_control" in api.requests[-1]["messages"][0]["content"][0]


async def test_cancelled_claude_request_closes_its_connection() -> None:
    never = asyncio.Event()
    reply = ModelReply.say(SENTENCE * 5, hold=never, after_events=6)
    async with calling([reply, "Again."]) as (api, caller):
        task = asyncio.create_task(caller.ask())
        await api.until(lambda: api.held == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await api.until(lambda: api.disconnects == 1)
        assert (await caller.ask()).text == "Again."
    assert not caller.waits


async def test_deprecated_models_answer_without_a_warning() -> None:
    async with calling(["Hi"]) as (_, caller):
        assert (await caller.ask(model="claude-sonnet-4-5")).text == "Hi"


async def test_key_of_the_model_is_in_no_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    replies = [ModelReply.fail(401, f"invalid key {KEY}"), ModelReply.fail(400, f"bad {KEY}")]
    async with calling(replies) as (api, caller):
        shown = [repr(caller.claude), *[str(await caller.fail()) for _ in replies]]
        illegal = Caller(api.url, api_key=f"{KEY}\nx")
        error = await illegal.fail()
        await illegal.claude.close()
    assert str(error).startswith("The model's key contains characters")
    assert not error.is_retryable
    shown += traceback.format_exception(error)
    assert not [line for line in [*shown, caplog.text] if KEY in line]


async def test_model_server_url_may_end_with_the_api_version() -> None:
    async with MessagesApi(["Hi"]) as api:
        caller = Caller(f"{api.url}/v1/")
        assert (await caller.ask()).text == "Hi"
        await caller.claude.close()


pytestmark = pytest.mark.slow

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=12,
)


@given(VALUES)
def test_json_safe_value_can_be_encoded_and_is_not_changed_again(value: Any) -> None:
    sound = make_json_safe(value)
    assert json.loads(json.dumps(sound, ensure_ascii=False, allow_nan=False).encode()) == sound
    assert make_json_safe(sound) == sound


def test_surrogate_pair_becomes_one_character_and_a_lone_surrogate_is_replaced() -> None:
    assert make_json_safe("a\ud83d\ude00b") == "a😀b"
    assert make_json_safe("\ude00\ud83d") == "\ufffd\ufffd"


def test_stored_claude_blocks_keep_only_the_fields_that_the_api_accepts_back() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "", "citations": None},
        {"type": "thinking", "thinking": "hm", "signature": "s", "extra": 1},
        {"type": "thinking", "thinking": "cut off"},
        {"type": "redacted_thinking", "data": ""},
        {
            "type": "tool_use",
            "id": "a",
            "name": "n",
            "input": {"x": float("inf")},
            "caller": {"type": "direct"},
        },
        {"type": "text", "text": "end \n", "citations": []},
    ]
    origin = {"server": "https://x", "model": "m"}
    assert claude.build_input_blocks(blocks, origin) == (
        {"type": "thinking", "thinking": "hm", "signature": "s", **origin},
        {"type": "tool_use", "id": "a", "name": "n", "input": {"x": None}},
        {"type": "text", "text": "end"},
    )


@each_row(
    "block",
    [
        {"type": "web_search_tool_result"},
        {},
        {"type": "tool_use", "id": "a", "name": "n", "input": "{}"},
    ],
)
def test_block_that_cannot_be_stored_is_a_model_error(block: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        claude.build_input_blocks([block], {})


def test_stripping_cache_marks_changes_nothing_else_of_the_request() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    call = {"type": "tool_use", "id": "a", "name": "n", "input": {"cache_control": "an argument"}}

    def request(marks: dict[str, Any]) -> Request:
        said = {"type": "text", "text": "s", **marks}
        asked = {"role": "user", "content": [said]}
        return Request(
            system=(said,), messages=(asked, {"role": "assistant", "content": [{**call, **marks}]})
        )

    assert (
        claude.strip_cache_breakpoints(request(mark))
        == claude.strip_cache_breakpoints(request({}))
        == request({})
    )


BUDGET_MODEL = "claude-haiku-4-5"
LOOK = {"type": "tool_use", "name": "memory", "input": {"content": "Ana"}}


def results(blocks: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
        for block in blocks
        if block["type"] == "tool_use"
    ]


@pytest.mark.parametrize(
    ("effort", "fields"),
    [
        ("", {}),
        ("none", {"thinking": {"type": "disabled"}}),
        ("minimal", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("max", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}),
    ],
)
async def test_effort_is_sent_in_the_form_of_the_api(effort: str, fields: dict[str, Any]) -> None:
    async with calling(["Yes."]) as (api, caller):
        await caller.ask(effort=effort)
    names = ("thinking", "output_config")
    assert {name: api.requests[0][name] for name in names if name in api.requests[0]} == fields


async def test_thinking_with_a_budget_goes_back_unchanged_in_a_round_of_tools() -> None:
    thought = {"type": "thinking", "thinking": "I must look. " * 9}
    async with calling([[thought, LOOK], "Found."]) as (api, caller):
        options = {"model": BUDGET_MODEL, "effort": 2048}
        first = await caller.ask("Where?", **options)
        await caller.ask("Where?", first.blocks, results(first.blocks), **options)
    assert api.refusals == []
    assert api.requests[0]["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    sent_back = api.requests[1]["messages"][1]["content"]
    assert sent_back[0] == {**thought, "signature": sign(thought["thinking"])}


@pytest.mark.parametrize("change", ["cut", "moved", "foreign"])
async def test_server_refuses_thinking_that_was_changed_and_is_asked_without_it(
    change: str,
) -> None:
    thought = {"type": "thinking", "thinking": "I must look."}
    async with calling([[thought, LOOK], "Found.", "Again."]) as (api, caller):
        options = {"model": BUDGET_MODEL, "effort": 2048}
        first = await caller.ask("Where?", **options)
        signed, call = first.blocks
        changed = {
            "cut": [call],
            "moved": [text("Let me see."), signed, call],
            "foreign": [{**signed, "signature": "of-another-server"}, call],
        }[change]
        turns = ("Where?", changed, results(first.blocks))
        assert (await caller.ask(*turns, **options)).text == "Found."
        assert len(api.refusals) == 1
        await caller.ask(*turns, "Sure?", "And now?", model=BUDGET_MODEL)
    # What was refused once isn't sent again.
    assert len(api.refusals) == 1
    assert "of-another-server" not in json.dumps(api.requests[-1])


async def test_reasoning_of_a_server_with_another_api_is_left_out() -> None:
    reasoning = {
        "type": "reasoning",
        "server": "https://x",
        "details": [{"text": "Hm."}],
        "calls": {},
    }
    async with calling(["Yes."]) as (api, caller):
        await caller.ask("One", [reasoning, text("Two")], "Three", [reasoning], "Four")
    contents = [message["content"] for message in api.requests[0]["messages"]]
    assert contents == [[text("One")], [text("Two")], [text("Three")], [text("Four")]]
    assert api.refusals == []


UNSIGNED = {"type": "thinking", "thinking": "I must look.", "signature": ""}


async def test_thinking_of_one_model_is_not_sent_to_another_model_of_the_same_server() -> None:
    thought = {"type": "thinking", "thinking": "I must look."}
    async with calling([[thought, LOOK], "Found.", "Again."]) as (api, caller):
        first = await caller.ask("Where?")
        turns = ("Where?", first.blocks, results(first.blocks))
        await caller.ask(*turns, model=BUDGET_MODEL)
        await caller.ask(*turns)
    assert api.refusals == []
    assert ["I must look" in json.dumps(body["messages"]) for body in api.requests] == [
        False,
        False,
        True,
    ]


async def test_unsigned_thinking_is_sent_back_to_a_model_server_that_requires_thinking() -> None:
    async with calling([[UNSIGNED, LOOK], "Found."], {"signs": False}) as (api, caller):
        first = await caller.ask("Where?")
        await caller.ask("Where?", first.blocks, results(first.blocks))
    assert api.refusals == []
    assert api.requests[1]["messages"][1]["content"][0] == UNSIGNED


async def test_server_that_misses_thinking_of_foreign_calls_is_asked_not_to_think() -> None:
    call = {**LOOK, "id": "call_1"}
    async with calling(["Found.", "Again.", "Hi."], {"signs": False}) as (api, caller):
        for text in ("Found.", "Again."):
            assert (await caller.ask("Where?", [call], results([call]))).text == text
        await caller.ask("Hello")
    assert len(api.refusals) == 1, "it is learnt from the first refusal"
    disabled = {"type": "disabled"}
    assert [body.get("thinking") for body in api.requests] == [None, disabled, disabled, None]


async def test_unsigned_thinking_that_is_refused_is_never_sent_again() -> None:
    async with calling([[UNSIGNED, LOOK], "Found.", [UNSIGNED, LOOK], "Again."]) as (api, caller):
        first = await caller.ask("Where?")
        turns = ("Where?", first.blocks, results(first.blocks))
        assert (await caller.ask(*turns)).text == "Found."
        second = await caller.ask(*turns, "Found.", "And now?")
        await caller.ask(*turns, "Found.", "And now?", second.blocks, results(second.blocks))
    assert len(api.refusals) == 1
    assert [block["type"] for block in second.blocks] == ["tool_use"]


def test_request_without_thinking_is_sent_as_it_is_and_thinking_of_another_server_is_removed() -> (
    None
):
    text = {"type": "text", "text": "At nine."}
    question = {"role": "user", "content": [{"type": "text", "text": "When?"}]}
    plain = Request(system=(), messages=(question, {"role": "assistant", "content": [text]}))
    assert keep_own_thinking(plain, "https://own.example", ()) is plain

    thinking = {"type": "thinking", "thinking": "Nine?", "server": "https://other.example"}
    answer = {"role": "assistant", "content": [thinking, text]}
    thoughtful = Request(system=(), messages=(question, answer, question))
    assert keep_own_thinking(thoughtful, "https://own.example", ()).messages == (
        question,
        {"role": "assistant", "content": [text]},
        question,
    )
