"""What the Messages API refuses, in its own words: the SDK's parameter types, taken strictly, and the rules that its
documentation adds. Judges requests only; keeps nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, get_args, get_type_hints

from anthropic.types import TextBlockParam, ToolParam, ToolUnionParam
from anthropic.types.content_block_param import ContentBlockParam
from anthropic.types.message_create_params import MessageCreateParamsBase
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tests.doubles.prefix_cache import bare, blocks_of, mark_of

MAX_BYTES = 32 * 1024 * 1024
MAX_MESSAGES = 100_000
MAX_MARKS = 4
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_STRICT = ConfigDict(extra="forbid", strict=True)
_ROLE_OF_KIND = {
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_use": "assistant",
    "server_tool_use": "assistant",
    "tool_result": "user",
    "image": "user",
    "document": "user",
}
_Turn = tuple[int, str, list[dict[str, Any]]]
"""Index of the first message, role, blocks."""


class Refusal(Exception):
    """An error answer: HTTP status, documented error type, message."""

    def __init__(self, message: str, status: int = 400, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def parse(raw: bytes) -> dict[str, Any]:
    """The body of a request, or a Refusal."""
    if len(raw) > MAX_BYTES:
        raise Refusal("Request exceeds the maximum size", 413, "request_too_large")
    try:
        body = json.loads(raw)
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise Refusal(f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refusal("The request body must be an object")
    return body


def check(body: dict[str, Any], *, takes_prefill: bool = False, paused: Collection[str] = ()) -> list[str]:
    """Refuses what the API refuses. `paused`: last blocks, as JSON, of turns that the server paused, which may be given
    back as they are. Returns notes: things that are accepted and still worth a look."""
    _shapes(body)
    _tools(body)
    messages = body["messages"]
    if not messages:
        raise Refusal("messages: at least one message is required")
    if len(messages) > MAX_MESSAGES:
        raise Refusal(f"messages: at most {MAX_MESSAGES} messages are permitted")
    if messages[0]["role"] != "user":
        raise Refusal('messages: first message must use the "user" role')
    _texts(body)
    _marks(body)
    turns = _merged(messages)
    _calls(turns)
    _last(turns, takes_prefill, paused)
    if body["max_tokens"] < 0:
        raise Refusal("max_tokens: Input should be greater than or equal to 0")
    return [
        f"messages.{index}: a second {message['role']} message in a row"
        for index, message in enumerate(messages)
        if index and message["role"] == messages[index - 1]["role"]
    ]


def sign(thinking: str) -> str:
    """The signature that thinking must come back with."""
    return "sig_" + hashlib.sha256(f"signature of {thinking}".encode()).hexdigest()


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """In a list, because a TypedDict on its own does not take a configuration."""
    return TypeAdapter(list[kind], config=_STRICT)


@cache
def _kinds() -> dict[str, Any]:
    """Block types by their `type`."""
    return {get_args(get_type_hints(kind)["type"])[0]: kind for kind in get_args(ContentBlockParam)}


def _shapes(body: dict[str, Any]) -> None:
    shell = {key: value for key, value in body.items() if key not in ("messages", "tools", "system", "stream")}
    for key in ("max_tokens", "messages", "model"):
        if key not in body:
            raise Refusal(f"{key}: Field required")
    if not isinstance(body.get("stream", False), bool):
        raise Refusal("stream: Input should be a valid boolean")
    _validate("", MessageCreateParamsBase, {**shell, "messages": []})
    if not isinstance(body["messages"], list) or not isinstance(body.get("tools", []), list):
        raise Refusal("messages, tools: Input should be a valid list")
    for index, tool in enumerate(body.get("tools", ())):
        is_custom = isinstance(tool, dict) and tool.get("type") in (None, "custom")
        _validate(f"tools.{index}.{'custom.' if is_custom else ''}", ToolParam if is_custom else ToolUnionParam, tool)
    system = body.get("system", [])
    if not isinstance(system, str):
        for index, block in enumerate(system if isinstance(system, list) else [system]):
            _validate(f"system.{index}.", TextBlockParam, block)
    for index, message in enumerate(body["messages"]):
        _message(f"messages.{index}", message)


def _message(path: str, message: Any) -> None:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
        raise Refusal(f"{path}.role: Input should be 'user', 'assistant' or 'system'")
    if "content" not in message:
        raise Refusal(f"{path}.content: Field required")
    if extra := message.keys() - {"role", "content"}:
        raise Refusal(f"{path}.{min(extra)}: Extra inputs are not permitted")
    content = message["content"]
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Refusal(f"{path}.content: Input should be a valid list")
    for index, block in enumerate(content):
        where = f"{path}.content.{index}"
        kind = _kinds().get(str(block.get("type"))) if isinstance(block, dict) else None
        if kind is None:
            raise Refusal(f"{where}: Input tag does not match any of the expected tags: {', '.join(_kinds())}")
        _validate(f"{where}.{block['type']}.", kind, block)
        role = _ROLE_OF_KIND.get(block["type"], message["role"])
        if role != message["role"]:
            raise Refusal(f"{where}: `{block['type']}` blocks can only be in `{role}` messages")


def _validate(path: str, kind: Any, value: Any) -> None:
    try:
        _walk(_adapter(kind).validate_python([value]))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        raise Refusal(f"{path}{where}: {first['msg']}") from error


def _walk(value: Any) -> None:
    """Iterables are validated when they are iterated, not before."""
    if isinstance(value, dict):
        for item in value.values():
            _walk(item)
    elif not isinstance(value, str | bytes | int | float | None):
        for item in value:
            _walk(item)


def _tools(body: dict[str, Any]) -> None:
    tools = body.get("tools") or []
    names = [tool["name"] for tool in tools if "name" in tool]
    if len(set(names)) < len(names):
        raise Refusal("tools: Tool names must be unique.")
    for index, tool in enumerate(tools):
        if tool.get("type") not in (None, "custom"):
            continue
        if not _NAME.fullmatch(tool["name"]):
            raise Refusal(f"tools.{index}.custom.name: String should match pattern '^{_NAME.pattern}$'")
        if tool["input_schema"].get("type") != "object":
            raise Refusal(f"tools.{index}.custom.input_schema.type: Input should be 'object'")
    choice = body.get("tool_choice")
    if choice and not tools:
        raise Refusal("tool_choice: may only be specified while providing tools")
    if choice and choice["type"] == "tool" and choice["name"] not in names:
        raise Refusal(f"tool_choice: tool '{choice['name']}' not found in provided tools")
    kinds = {block.get("type") for message in body["messages"] for block in _blocks(message)}
    if not tools and kinds & {"tool_use", "tool_result"}:
        raise Refusal("Requests which have `tool_use` or `tool_result` blocks in their messages must define tools.")


def _texts(body: dict[str, Any]) -> None:
    for index, message in enumerate(body["messages"]):
        if not message["content"] and not (message["role"] == "assistant" and index == len(body["messages"]) - 1):
            raise Refusal(f"messages.{index}: all messages must have non-empty content")
    for place, block in _texts_of(body):
        if not block["text"]:
            if block.get("cache_control"):
                raise Refusal(f"{place}: cache_control cannot be set for empty text blocks")
            raise Refusal(f"{place}: text content blocks must be non-empty")
        if not block["text"].strip():
            raise Refusal(f"{place}: text content blocks must contain non-whitespace text")


def _texts_of(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, block in blocks_of(body):
        where = place if place in ("tools", "system") else "messages"
        if block.get("type") == "text":
            yield where, block
        elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            yield from ((where, part) for part in block["content"] if part["type"] == "text")


def _marks(body: dict[str, Any]) -> None:
    marks = [mark for _, block in blocks_of(body) for mark in _marks_in(block)]
    count = len(marks) + bool(body.get("cache_control"))
    if count > MAX_MARKS:
        raise Refusal(f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {count}.")
    lifetimes = [mark.get("ttl", "5m") for _, block in blocks_of(body) if (mark := mark_of(block))]
    if lifetimes != sorted(lifetimes):
        raise Refusal("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")


def _marks_in(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if mark := block.get("cache_control"):
        yield mark
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        for part in block["content"]:
            yield from _marks_in(part)


def _merged(messages: Sequence[dict[str, Any]]) -> list[_Turn]:
    """The API joins messages of one role in a row."""
    turns: list[_Turn] = []
    for index, message in enumerate(messages):
        if turns and turns[-1][1] == message["role"]:
            turns[-1][2].extend(_blocks(message))
        else:
            turns.append((index, message["role"], _blocks(message)))
    return turns


def _calls(turns: Sequence[_Turn]) -> None:
    """Every call is answered first thing in the next turn, every answer has its call, thinking is as it was."""
    asked: list[str] = []
    known: set[str] = set()
    for index, role, blocks in [*turns, (len(turns), "user", [])]:
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        head = [block["tool_use_id"] for block in blocks[: len(results)] if block["type"] == "tool_result"]
        for result in results:
            if result not in asked:
                raise Refusal(
                    f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {result}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            if results.count(result) > 1:
                raise Refusal(
                    f"messages.{index}: each tool_use must have a single result. Found multiple `tool_result` blocks "
                    f"with id: {result}"
                )
        if missing := [call for call in asked if call not in head]:
            raise Refusal(
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        asked = [block["id"] for block in blocks if role == "assistant" and block["type"] == "tool_use"]
        _used(index, blocks, known)


def _used(index: int, blocks: Sequence[dict[str, Any]], known: set[str]) -> None:
    for number, block in enumerate(blocks):
        where = f"messages.{index}.content.{number}"
        if block["type"] == "tool_use":
            if not _CALL_ID.fullmatch(block["id"]):
                raise Refusal(f"{where}.tool_use.id: String should match pattern '^{_CALL_ID.pattern}$'")
            if not _NAME.fullmatch(block["name"]):
                raise Refusal(f"{where}.tool_use.name: String should match pattern '^{_NAME.pattern}$'")
            if block["id"] in known:
                raise Refusal(f"{where}: `tool_use` ids must be unique")
            known.add(block["id"])
        if block["type"] == "thinking" and block["signature"] != sign(block["thinking"]):
            raise Refusal(f"{where}: Invalid `signature` in `thinking` block")


def _last(turns: Sequence[_Turn], takes_prefill: bool, paused: Collection[str]) -> None:
    _, role, blocks = turns[-1]
    if role != "assistant" or (blocks and json.dumps(bare(blocks[-1])) in paused):
        return
    if not takes_prefill:
        raise Refusal(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    if blocks and blocks[-1]["type"] == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        raise Refusal("messages: final assistant content cannot end with trailing whitespace")


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
