"""What goes to a model and what comes back, in the form in which it can be sent (again).

Works on plain JSON blocks and knows no vendor's client. Whatever a server makes of its answer, what leaves here is
accepted as input by a strict one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from core.errors import ToolError
from core.models import failures
from core.types import Completion, Json, Request, Usage

_SURROGATE = re.compile("[\ud800-\udfff]")
M = TypeVar("M", bound=BaseModel)


class StreamedAnswer:
    """An answer as its events come, plain JSON as the Messages API documents them."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: list[dict[str, Any]] = []
        self._arguments: dict[int, str] = {}
        """Of the tool calls, by the index of their block."""
        self._has_started = self._has_stopped = False

    @property
    def has_begun(self) -> bool:
        """Whether any of its content has come."""
        return bool(self._blocks)

    def take(self, event: Any) -> str:
        """The text so far, which only grows; empty where the event adds none. Raises ModelError for one that cannot be
        read."""
        try:
            return self._text if self._is_text_added(event) else ""
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise failures.of_kind("unreadable") from error

    @property
    def _text(self) -> str:
        text = joined(self._blocks)
        # Where half a character came, its other half is on its way.
        text = text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text
        return str(sound(text)) if text.strip() else ""

    def _is_text_added(self, event: Json) -> bool:
        kind = event["type"]
        if kind == "message_start":
            self._has_started = True
            self._message = dict(event["message"])
            self._blocks = [dict(block) for block in self._message.get("content") or ()]
            self._usage = dict(self._message.get("usage") or {})
        elif kind == "content_block_start":
            self._blocks.append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            return self._grow(event["index"], event["delta"])
        elif kind == "content_block_stop" and (arguments := self._arguments.get(event["index"])):
            # A call may be cut off where the answer is.
            self._blocks[event["index"]]["input"] = from_json(arguments, allow_partial=True)
        elif kind == "message_delta":
            self._message["stop_reason"] = event["delta"].get("stop_reason") or self._message.get("stop_reason")
            # Totals; what is left out stands as it was.
            told = event.get("usage") or {}
            self._usage |= {name: count for name, count in told.items() if count is not None}
        self._has_stopped = self._has_stopped or kind == "message_stop"
        return bool(kind == "content_block_start")

    def _grow(self, index: int, delta: Json) -> bool:
        block = self._blocks[index]
        if delta["type"] == "text_delta":
            block["text"] += delta["text"]
            return True
        if delta["type"] == "input_json_delta":
            self._arguments[index] = self._arguments.get(index, "") + delta["partial_json"]
        elif delta["type"] == "thinking_delta":
            block["thinking"] += delta["thinking"]
        elif delta["type"] == "signature_delta":
            block["signature"] = delta["signature"]
        return False

    def completion(self, model: str) -> Completion:
        """The whole answer, of `model` where it does not name its own. Raises ModelError for a part of one."""
        if not self._has_started:
            raise failures.of_kind("foreign")
        stop_reason = self._message.get("stop_reason")
        if not stop_reason and not self._has_stopped:
            raise failures.of_kind("unreadable")
        blocks = kept(self._blocks)
        has_calls = any(block["type"] == "tool_use" for block in blocks)
        return Completion(
            blocks=blocks,
            text=joined(blocks),
            stop_reason=stop_reason or ("tool_use" if has_calls else "end_turn"),
            usage=Usage(
                input=_count(self._usage, "input_tokens"),
                output=_count(self._usage, "output_tokens"),
                cache_read=_count(self._usage, "cache_read_input_tokens"),
                cache_write=_count(self._usage, "cache_creation_input_tokens"),
                cache_write_hour=_count(self._usage.get("cache_creation"), "ephemeral_1h_input_tokens"),
            ),
            model=self._message.get("model") or model,
        )


def _count(usage: Any, name: str) -> int:
    """Local servers leave out what they do not count."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) else 0


def kept(blocks: Sequence[Json]) -> tuple[Json, ...]:
    """The blocks of an answer as they can be sent back: without answer-only fields, empty text, unsigned thinking and
    trailing space. Raises ModelError for a kind of block that was never asked for."""
    whole = [form for block in blocks if (form := _form(block)) is not None]
    if whole and whole[-1]["type"] == "text":
        whole[-1]["text"] = whole[-1]["text"].rstrip()
    return tuple(whole)


def joined(blocks: Sequence[Json]) -> str:
    """The text of blocks; what other blocks stand between becomes a paragraph's end."""
    text = ""
    was_text = False
    for block in blocks:
        if block["type"] == "text":
            text += block["text"] if was_text or not text else f"\n\n{block['text']}"
        was_text = block["type"] == "text"
    return text


def unmarked(request: Request) -> Request:
    parts = (request.system, request.messages, request.tools)
    system, messages, tools = (tuple(map(_without_marks, part)) for part in parts)
    return replace(request, system=system, messages=messages, tools=tools)


def sound(value: Any) -> Any:
    """A JSON value that every parser takes: half characters are joined or replaced, numbers are finite."""
    if isinstance(value, str):
        if value.isascii() or not _SURROGATE.search(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {sound(key): sound(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sound(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parsed(model: type[M], arguments: Json) -> M:
    """The arguments as a value of `model`; null means not given. Raises ToolError that names the field."""
    try:
        return model.model_validate({name: value for name, value in arguments.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        raise ToolError(f"{'.'.join(map(str, first['loc'])) or 'arguments'}: {first['msg']}") from error


def _form(block: Json) -> dict[str, Any] | None:
    kind = str(block.get("type"))
    if kind == "text":
        text = sound(block.get("text") or "")
        return {"type": kind, "text": text} if text.strip() else None
    if kind == "thinking":
        form = {"type": kind, "thinking": block.get("thinking") or "", "signature": block.get("signature")}
        return form if form["signature"] else None
    if kind == "redacted_thinking":
        return {"type": kind, "data": block["data"]} if block.get("data") else None
    if kind == "tool_use":
        call = {"type": kind, "id": block.get("id"), "name": block.get("name"), "input": sound(block.get("input"))}
        if not call["id"] or not call["name"] or not isinstance(call["input"], dict):
            raise failures.of_kind("unreadable")
        return call
    raise failures.ModelFailure(f"The model answered with content of an unknown kind ({kind[:40]})", "Update Mneme.")


def _without_marks(value: Any) -> Any:
    """Marks stand on blocks, on tools, and on blocks within a tool result; never inside what a tool was called with."""
    if isinstance(value, list | tuple):
        return type(value)(map(_without_marks, value))
    if isinstance(value, Mapping):
        bare = {key: item for key, item in value.items() if key != "cache_control"}
        if "content" in bare:
            bare["content"] = _without_marks(bare["content"])
        return bare
    return value
