"""The Messages double itself: it refuses what the API documents, accepts what is valid, and
accounts for the cache."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import anthropic
import pytest

from core.types import Usage
from tests.fixtures.clock import SteadyClock
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.messages_rules import Refusal, check, parse, sign
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.prefix_cache import PrefixCache, tokens_in
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
TOOL: dict[str, Any] = {"name": "memory", "input_schema": {"type": "object", "properties": {}}}
CALL = {"type": "tool_use", "id": "a1", "name": "memory", "input": {"x": [1]}}
RESULT = {"type": "tool_result", "tool_use_id": "a1", "content": "kept"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": sign("hm")}


def text(words: str, **extra: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **extra}


def body(*turns: Any, **more: Any) -> dict[str, Any]:
    """A valid request, unless `turns` (contents, the person's first) or `more` make it none."""
    roles = ("user", "assistant")
    messages = [
        {"role": roles[index % 2], "content": turn}
        for index, turn in enumerate(turns or ("Hello",))
    ]
    return {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": messages, **more}


VALID = [
    body(),
    body([text("Hello", cache_control=MARK)], system=[text("You are.", cache_control=HOUR)]),
    body(
        "Hello",
        [THOUGHT, text("Wait."), CALL],
        [RESULT, text("And?")],
        tools=[TOOL],
        system="You are.",
    ),
    body(
        "Hello",
        [CALL, {**CALL, "id": "a2"}],
        [{**RESULT, "tool_use_id": "a2"}, RESULT],
        tools=[TOOL],
    ),
    body(
        "Hello",
        [CALL],
        [{"type": "tool_result", "tool_use_id": "a1", "is_error": True}],
        tools=[TOOL],
    ),
    body(
        "Hello", [CALL], [{**RESULT, "content": [text("kept", cache_control=MARK)]}], tools=[TOOL]
    ),
    body(
        "Hello",
        stream=True,
        stop_sequences=["x"],
        thinking={"type": "disabled"},
        metadata={"user_id": "u"},
    ),
    body(
        "Hello",
        tools=[TOOL],
        tool_choice={"type": "tool", "name": "memory"},
        cache_control=MARK,
        max_tokens=0,
    ),
]


@each_row("valid", VALID)
def test_double_accepts_valid_requests_for_messages(valid: dict[str, Any]) -> None:
    assert check(parse(json.dumps(valid).encode())) == []


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"model": "m", "messages": []}, "max_tokens: Field required"),
    ({**body(), "messages": []}, "at least one message"),
    (body(temperature=0.5), "temperature: Extra inputs are not permitted"),
    (body(max_tokens="9"), "max_tokens: Input should be a valid integer"),
    (body(max_tokens=-1), "greater than or equal to 0"),
    (body(stream="yes"), "stream: Input should be a valid boolean"),
    ({**body(), "messages": [{"role": "assistant", "content": "Hi"}]}, 'must use the "user" role'),
    (
        {**body(), "messages": [{"role": "tool", "content": "Hi"}]},
        "messages.0.role: Input should be",
    ),
    (
        {**body(), "messages": [{"role": "user", "content": "Hi", "name": "Ana"}]},
        "messages.0.name: Extra inputs",
    ),
    ({**body(), "messages": [{"role": "user"}]}, "messages.0.content: Field required"),
    (body([{"type": "riddle"}]), "messages.0.content.0: Input tag does not match"),
    (
        body([text("Hi", citations=None, parsed_output=1)]),
        "messages.0.content.0.text.parsed_output: Extra inputs",
    ),
    (body([text("")]), "text content blocks must be non-empty"),
    (body([text("", cache_control=MARK)]), "cache_control cannot be set for empty text blocks"),
    (body([text(" \n")]), "must contain non-whitespace text"),
    (body(""), "non-empty content"),
    (body([]), "non-empty content"),
    (body(system=[text("")]), "system: text content blocks must be non-empty"),
    (body("Hi", [CALL], [{**RESULT, "content": [text("")]}], tools=[TOOL]), "must be non-empty"),
    (
        body("Hi", [CALL], [{**RESULT, "content": [text("x", extra=1)]}], tools=[TOOL]),
        "Extra inputs",
    ),
    (
        body("Hi", [CALL], "And?", tools=[TOOL]),
        "messages.1: `tool_use` ids were found without `tool_result`",
    ),
    (body("Hi", [CALL], [text("And?"), RESULT], tools=[TOOL]), "`tool_use` ids were found without"),
    (body("Hi", [CALL], tools=[TOOL]), "`tool_use` ids were found without"),
    (
        body("Hi", "Hello", [RESULT], tools=[TOOL]),
        "unexpected `tool_use_id` found in `tool_result` blocks: a1",
    ),
    (body("Hi", [CALL], [RESULT, RESULT], tools=[TOOL]), "must have a single result"),
    (body("Hi", [CALL], [RESULT], [CALL], [RESULT], tools=[TOOL]), "`tool_use` ids must be unique"),
    (body("Hi", [CALL], [RESULT]), "must define tools"),
    (body([CALL], tools=[TOOL]), "`tool_use` blocks can only be in `assistant` messages"),
    (
        body("Hi", [RESULT], "x", tools=[TOOL]),
        "`tool_result` blocks can only be in `user` messages",
    ),
    (
        body("Hi", [{**CALL, "id": "a b"}], [RESULT], tools=[TOOL]),
        "tool_use.id: String should match",
    ),
    (
        body("Hi", [{**CALL, "input": "{}"}], [RESULT], tools=[TOOL]),
        "tool_use.input: Input should be a valid dict",
    ),
    (
        body("Hi", [{**THOUGHT, "thinking": "ho"}, text("x")], "y"),
        "Invalid `signature` in `thinking` block",
    ),
    (
        body("Hi", [{"type": "thinking", "thinking": "hm"}], "y"),
        "thinking.signature: Field required",
    ),
    (body("Hi", [{**THOUGHT, "cache_control": MARK}], "y"), "thinking.cache_control: Extra inputs"),
    (body("Hi", "Well"), "does not support assistant message prefill"),
    (body(tools=[TOOL, TOOL]), "Tool names must be unique"),
    (body(tools=[{**TOOL, "name": "a.b"}]), "tools.0.custom.name: String should match pattern"),
    (body(tools=[{**TOOL, "name": "x" * 129}]), "tools.0.custom.name: String should match pattern"),
    (body(tools=[{**TOOL, "parameters": {}}]), "tools.0.custom.parameters: Extra inputs"),
    (body(tools=[{"name": "x"}]), "tools.0.custom.input_schema: Field required"),
    (
        body(tools=[{"name": "x", "input_schema": {"properties": {}}}]),
        "input_schema.type: Input should be 'object'",
    ),
    (body(tool_choice={"type": "auto"}), "only be specified while providing tools"),
    (body(tools=[TOOL], tool_choice={"type": "tool", "name": "else"}), "tool 'else' not found"),
    (
        body([text(str(n), cache_control=MARK) for n in range(5)]),
        "A maximum of 4 blocks with cache_control",
    ),
    (body([text(str(n), cache_control=MARK) for n in range(4)], cache_control=MARK), "Found 5"),
    (
        body([text("x", cache_control={"type": "ephemeral", "ttl": "2h"})]),
        "cache_control.ttl: Input should be",
    ),
    (
        body([text("x", cache_control=HOUR)], system=[text("s", cache_control=MARK)]),
        "must not come after",
    ),
]


@each_row(("invalid", "words"), INVALID)
def test_double_refuses_what_the_messages_documentation_refuses(
    invalid: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refusal) as caught:
        check(invalid)
    assert words in str(caught.value)
    assert (caught.value.status, caught.value.kind) == (400, "invalid_request_error")


@each_row("raw", [b"{", b"[]", b'"x"', b'{"a": "\\ud83d"}', b'{"a": NaN}', b"\xff"])
def test_double_refuses_a_body_that_is_no_json(raw: bytes) -> None:
    with pytest.raises(Refusal):
        parse(raw)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def post(
    http: aiohttp.ClientSession, api: MessagesApi, request: Any, headers: Mapping[str, str]
) -> Any:
    async with http.post(f"{api.url}/v1/messages", json=request, headers=headers) as response:
        return response.status, await response.json()


async def test_vendors_client_reads_whole_answers_and_lists_models() -> None:
    async with (
        MessagesApi(["Good day.", ModelReply.say("never said")]) as api,
        anthropic.AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0) as client,
    ):
        message = await client.messages.create(**body())
        assert message.content[0].type == "text"
        assert message.content[0].text == "Good day."
        assert message.usage.output_tokens == api.totals.output
        warm = await client.messages.create(**body(max_tokens=0))
        assert (warm.content, warm.stop_reason) == ([], "max_tokens")
        assert "claude-haiku-5-5" in [model.id async for model in client.models.list()]
        with pytest.raises(anthropic.NotFoundError):
            await client.models.retrieve("nothing")
        with pytest.raises(anthropic.BadRequestError, match="script of this double has ended"):
            await client.messages.create(**body())


def account(cache: PrefixCache, *turns: Any, **more: Any) -> Usage:
    request = body(*turns, **more)
    check(request)
    usage = cache.account(request)
    split = usage["cache_creation"]
    total = Usage(
        input=usage["input_tokens"],
        cache_read=usage["cache_read_input_tokens"],
        cache_write=usage["cache_creation_input_tokens"],
    )
    assert (
        total.cache_write == split["ephemeral_5m_input_tokens"] + split["ephemeral_1h_input_tokens"]
    )
    assert total.total_input == tokens_in(request)
    return total


def marked(words: str) -> list[dict[str, Any]]:
    return [text(words, cache_control=MARK)]


def test_double_of_the_messages_api_counts_a_prompt_prefix_as_read_once_it_was_written(
    clock: SteadyClock,
) -> None:
    cache = PrefixCache(clock)
    first = account(cache, marked("One"), system=marked("S" * 100))
    assert (first.input, first.cache_read) == (0, 0)
    assert (
        account(cache, "One", "Yes", marked("Two"), system=marked("S" * 100)).cache_read
        == first.cache_write
    )
    assert (
        account(cache, "One", "No", "Two", system=marked("S" * 100)).cache_read < first.cache_write
    )
    assert account(cache, "One", "Yes", "Two").cache_read == 0
    assert account(cache, marked("One"), system=marked("T" * 100)).cache_read == 0
    assert account(cache, marked("One"), system=marked("S" * 100), tools=[TOOL]).cache_read == 0
    assert (
        account(cache, marked("One"), system=marked("S" * 100), model="claude-haiku-5-5").cache_read
        == 0
    )
