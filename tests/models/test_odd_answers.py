"""Answers that real servers send and that the documentation of their APIs doesn't have."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from core.errors import ModelError
from core.models.chat_completions import ChatCompletions
from core.models.claude import Claude
from core.types import Completion
from tests.fixtures.clock import SteadyClock
from tests.models.test_chat_completions import build_request

pytestmark = pytest.mark.slow

EVENTS, JSON = "text/event-stream", "application/json"


@asynccontextmanager
async def serving(kind: str, body: bytes, piece_bytes: int) -> AsyncIterator[str]:
    """Serve the same answer to each request, with status 200."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(request)
        for start in range(0, len(body), piece_bytes):
            await response.write(body[start : start + piece_bytes])
        await response.write_eof()
        return response

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def ask(form: str, kind: str, body: bytes, piece_bytes: int = 10_000) -> Completion:
    """Return how a client understands an answer. Raises ModelError."""
    async with serving(kind, body, piece_bytes) as url:
        client: ChatCompletions | Claude
        if form == "chat":
            client = ChatCompletions("sk-0123456789", f"{url}/v1", SteadyClock(), tries=1)
        else:
            client = Claude("sk-0123456789", url, SteadyClock(), tries=1)
        try:
            return await client.complete(build_request(), lambda _: None, lambda _: None)
        finally:
            await client.close()


def chunk(delta: Any, reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **fields}


def stream(*events: Any, newline: str = "\n") -> bytes:
    lines = [f"data: {json.dumps(event)}" for event in events]
    return (newline * 2).join([*lines, "data: [DONE]", ""]).encode()


HI, END = chunk({"role": "assistant", "content": "Hi"}), chunk({}, "stop")
USAGE = {"prompt_tokens": 3, "completion_tokens": 1}
WHOLE = {
    "object": "chat.completion",
    "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": USAGE,
}
TEXTS = {
    "lines that end with CR and LF": (EVENTS, stream(HI, END, newline="\r\n")),
    "comments": (EVENTS, b": PROCESSING\n\n" + stream(HI, END)),
    "empty choices": (EVENTS, stream({"choices": []}, HI, END)),
    "no choices": (EVENTS, stream(HI, END, {"usage": USAGE})),
    "no delta": (EVENTS, stream({"choices": [{"delta": None}]}, HI, END)),
    "no reason": (EVENTS, stream(HI)),
    "parts": (EVENTS, stream(chunk({"content": [{"type": "output_text", "text": "Hi"}]}), END)),
    "thinking in an unknown form": (
        EVENTS,
        stream(chunk({"reasoning": {"x": 1}, "reasoning_details": [None]}), HI, END),
    ),
    "a whole answer as an event": (EVENTS, stream(WHOLE)),
    "a whole answer as JSON": (JSON, json.dumps(WHOLE, indent=2).encode()),
}


@pytest.mark.parametrize("case", TEXTS)
async def test_text_of_an_odd_answer_is_read(case: str) -> None:
    for piece_bytes in (1, 10_000):
        completion = await ask("chat", *TEXTS[case], piece_bytes)
        assert (completion.text, completion.stop_reason) == ("Hi", "end_turn")


def call(**fields: Any) -> dict[str, Any]:
    return chunk({"tool_calls": [{"index": 0, **fields}]})


CALLS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "arguments as an object": (
        [call(id="c", function={"name": "memory", "arguments": {"content": "Ana"}})],
        {"content": "Ana"},
    ),
    "arguments as JSON in JSON": (
        [call(id="c", function={"name": "memory", "arguments": '"{\\"content\\": 1}"'})],
        {"content": 1},
    ),
    "an empty list": ([call(id="c", function={"name": "memory", "arguments": "[]"})], {}),
    "no arguments": ([call(id="c", function={"name": "memory", "arguments": None})], {}),
    "no id": ([call(function={"name": "memory", "arguments": "{}"})], {}),
    "the name in each piece": (
        [call(id="c", function={"name": "memory"}), call(function={"name": "memory"})],
        {},
    ),
}


@pytest.mark.parametrize("case", CALLS)
async def test_oddly_streamed_tool_call_of_the_chat_api_is_assembled(case: str) -> None:
    chunks, arguments = CALLS[case]
    completion = await ask("chat", EVENTS, stream(*chunks, chunk({}, "tool_calls")))
    (block,) = completion.blocks
    assert (block["name"], block["input"]) == ("memory", arguments)
    assert completion.stop_reason == "tool_use"


def error(**fields: Any) -> dict[str, Any]:
    return {"error": {"message": "It's over.", **fields}}


ERRORS = {
    "JSON without credit": (JSON, json.dumps(error(code="insufficient_quota")).encode(), 402),
    "JSON with a status": (JSON, json.dumps(error(code=429)).encode(), 429),
    "an event with a status": (EVENTS, stream(HI, error(code=502)), 502),
    "an event as vLLM sends it": (
        EVENTS,
        stream({"object": "error", "message": "maximum context length is 4096", "code": 400}),
        413,
    ),
    "a reason": (EVENTS, stream(HI, chunk({}, "error")), 503),
    "overload in the middle of DeepSeek's answer": (
        EVENTS,
        stream(HI, chunk({}, "insufficient_system_resource")),
        503,
    ),
    "a web page": ("text/html; charset=utf-8", b"<html>Log in</html>", None),
    "nothing": (EVENTS, b"", None),
}


@pytest.mark.parametrize("case", ERRORS)
async def test_error_with_status_200_is_an_error(case: str) -> None:
    kind, body, status = ERRORS[case]
    with pytest.raises(ModelError) as caught:
        await ask("chat", kind, body)
    assert caught.value.status == status
    if case == "a web page":
        assert "does not speak the Chat Completions API" in str(caught.value)


MESSAGE = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 1},
}


async def test_whole_answer_of_the_messages_form_is_read() -> None:
    completion = await ask("messages", JSON, json.dumps(MESSAGE, indent=1).encode())
    assert (completion.text, completion.usage.input) == ("Hi", 3)


async def test_error_of_the_messages_form_with_status_200_is_an_error() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ModelError) as caught:
        await ask("messages", JSON, json.dumps(body).encode())
    assert (caught.value.status, caught.value.is_retryable) == (529, True)
