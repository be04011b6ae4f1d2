"""What a memory service says, as it may be sent to the model: short, whole characters, nobody's order, its name before.

Plain functions; whatever is given that is not what was asked for is left out and logged.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

import structlog

from core.guard.fence import neutralise
from core.guard.guard import suspicion
from core.text.sanitize import on_one_line
from core.types import Tool

LINES = 12
LINE_CHARS = 600
"""How many lines are taken, and the longest: each is looked at for orders, which takes its time."""
TEXT_CHARS = 4_000
"""The longest text for a prompt."""
TOOL_BYTES = 20_000
"""The largest tool: it stands in every request."""
_TOKEN = re.compile(r"\S*\d\S* ")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def lines(name: str, found: Any) -> list[str]:
    """Lines of `prefetch`. The name stands before their token, so that two memories never take each other's for known;
    one that reads like an order is left out."""
    if not isinstance(found, (list, tuple)):
        _leave_out(name, f"it is no list of lines but {type(found).__name__}")
        return []
    taken = []
    for given in found[:LINES]:
        line = " ".join(_whole(name, given, 4 * LINE_CHARS).split())[:LINE_CHARS]
        if line and _is_harmless(name, line):
            # Without a token of its own, what it says is its name: two that begin alike are not the same.
            token = "" if _TOKEN.match(line) else f"{zlib.crc32(line.encode()):08x} "
            taken.append(f"{name}:{token}{line}")
    return taken


def text(name: str, given: Any) -> str:
    """A text for a prompt; empty when there is none that may be sent."""
    taken = _whole(name, given, TEXT_CHARS).strip()
    return neutralise(taken) if taken and _is_harmless(name, taken) else ""


def block(name: str, given: Any) -> str:
    """A text for the prompt under the name of the memory."""
    taken = text(name, given)
    return f"## {name.upper()}\n{taken}" if taken else ""


def fault(tool: Tool) -> str | None:
    """Why no model could be told of a tool; None when it can."""
    if not isinstance(tool.name, str) or _NAME.fullmatch(tool.name) is None:
        return "its name should be letters, digits, _ and -"
    if not isinstance(tool.description, str) or not isinstance(tool.schema, Mapping):
        return "it should have a description and a schema"
    try:
        size = len(json.dumps([tool.description, dict(tool.schema)], ensure_ascii=False).encode())
    except (TypeError, ValueError) as error:
        return f"its description or schema cannot be sent: {on_one_line(str(error))[:200]}"
    if tool.schema.get("type") != "object":
        return "its schema should be of the type object"
    return f"it takes {size:,} bytes, more than {TOOL_BYTES:,}" if size > TOOL_BYTES else None


def _whole(name: str, given: Any, limit_chars: int) -> str:
    """The beginning of a text, in which no half of a character is left that nothing could send."""
    if isinstance(given, str):
        return given[:limit_chars].encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    if given is not None:
        _leave_out(name, f"it is no text but {type(given).__name__}")
    return ""


def _is_harmless(name: str, taken: str) -> bool:
    if (reason := suspicion(taken)) is not None:
        _leave_out(name, reason)
    return reason is None


def _leave_out(name: str, reason: str) -> None:
    structlog.get_logger("memory").warning("what a memory says was left out", provider=name, reason=reason)
