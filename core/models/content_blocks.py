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

from core.errors import ToolError
from core.models import failures
from core.types import Json, Request

_SURROGATE = re.compile("[\ud800-\udfff]")
M = TypeVar("M", bound=BaseModel)


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
