"""The double of the Chat Completions API refuses what the API refuses, is understood by the vendor's
own client, and counts cached prefixes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.fixtures.chat_api import MODEL, ChatApi
from tests.fixtures.chat_rules import ChatRefusal, check
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.tables import each_row

USER: Any = {"role": "user", "content": "Hi"}
TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL: Any = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLING: Any = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: Any = {"role": "tool", "tool_call_id": "call_1", "content": "a ferry"}


def body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": list(messages or [USER]), "stream": True, **fields}


@each_row(
    "valid",
    [
        body(),
        body({"role": "system", "content": "Be kind."}, USER),
        body(USER, CALLING, RESULT, tools=[TOOL]),
        body(USER, CALLING, RESULT, {"role": "assistant", "content": "There."}, USER),
        body(stream_options={"include_usage": True}),
        body({"role": "user", "content": [{"type": "text", "text": "Hi"}]}),
    ],
)
def test_double_accepts_valid_requests_for_completions(valid: dict[str, Any]) -> None:
    check(valid)


@each_row(
    ("invalid", "words"),
    [
        ({"messages": [USER]}, "Missing required parameter: 'model'"),
        ({"model": MODEL}, "Missing required parameter: 'messages'"),
        ({"model": MODEL, "messages": [], "stream": True}, "too short - 'messages'"),
        (body(tools=[]), "too short - 'tools'"),
        (body(tools=[TOOL, TOOL]), "Tool names must be unique"),
        (body(tools=[{**TOOL, "function": {"name": "a.b"}}]), "function.name"),
        (body(stream=False, stream_options={"include_usage": True}), "only allowed when 'stream'"),
        (body(cache_control={"type": "ephemeral"}), "Invalid value"),
        (body({"role": "user", "content": "Hi", "cache": 1}), "Invalid value"),
        (body({"role": "pirate", "content": "Arr"}), "Invalid value"),
        (body(USER, RESULT), "must be a response to a preceding message with 'tool_calls'"),
        (body(USER, CALLING), "Missing: call_1"),
        (body(USER, CALLING, USER, RESULT), "Missing: call_1"),
        (body(USER, CALLING, RESULT, RESULT), "must be a response to a preceding message"),
        (body(USER, {"role": "assistant", "content": ""}), "needs content or calls"),
        (
            body(USER, {**CALLING, "tool_calls": [{**CALL, "id": "x" * 41}]}),
            "Invalid 'tool_calls.id'",
        ),
        *(
            (
                body(
                    USER,
                    {
                        **CALLING,
                        "tool_calls": [
                            {**CALL, "function": {"name": "look", "arguments": arguments}}
                        ],
                    },
                    RESULT,
                ),
                "Invalid 'tool_calls.function.arguments'",
            )
            for arguments in ("", '{"a": ', "[]")
        ),
    ],
)
def test_double_refuses_what_the_chat_documentation_refuses(
    invalid: dict[str, Any], words: str
) -> None:
    with pytest.raises(ChatRefusal) as caught:
        check(invalid)
    assert words in str(caught.value)
    assert caught.value.status == 400


async def read(client: AsyncOpenAI, *messages: Any) -> list[Any]:
    """Return the choices of a streamed answer, one for each piece."""
    stream: Any = await client.chat.completions.create(
        model=MODEL, messages=messages, tools=[TOOL], stream=True
    )
    return [choice async for chunk in stream for choice in chunk.choices]


@pytest.mark.slow
@pytest.mark.parametrize("chunk_chars", [1, 7, 1_000])
async def test_vendors_client_reads_answers_and_calls_however_they_are_cut(
    chunk_chars: int,
) -> None:
    reply = ModelReply.call(
        ("look", {"query": "ferry ⛴"}), text="Let me see…", chunk_chars=chunk_chars
    )
    async with ChatApi([reply], key="k") as api:
        client = AsyncOpenAI(api_key="k", base_url=api.url, max_retries=0)
        choices = await read(client, USER)
        await client.close()
    calls = [call for choice in choices for call in choice.delta.tool_calls or ()]
    assert "".join(choice.delta.content or "" for choice in choices) == "Let me see…"
    assert json.loads("".join(call.function.arguments or "" for call in calls)) == {
        "query": "ferry ⛴"
    }
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["tool_calls"]


@pytest.mark.slow
async def test_only_a_long_prefix_that_was_sent_before_is_cached_in_whole_steps() -> None:
    long = {"role": "user", "content": "The ferry leaves at nine. " * 300}
    async with ChatApi(lambda _: "Yes.", key="k") as api:
        client = AsyncOpenAI(api_key="k", base_url=api.url, max_retries=0)
        for messages in ([USER], [USER], [long], [long, USER], [{**long, "content": "x"}, long]):
            await read(client, *messages)
        await client.close()
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in api.usages]
    assert cached[:3] == [0, 0, 0], "a short prefix isn't cached"
    assert 0.9 * api.usages[2]["prompt_tokens"] < cached[3] <= api.usages[2]["prompt_tokens"]
    assert cached[3] % 128 == 0
    assert cached[4] == 0, "another beginning has another prefix"
