"""One scripted answer of the Messages double: what it says, how it is cut into events, and what goes wrong.

Immutable; the double plays it. `say`, `call` and `fail` make the usual ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from core.types import Json

Fault = Literal["cut", "error", "end", "garble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """`blocks` are content blocks; tool calls without an id and thinking without a signature are given theirs.

    stop_reason: None means tool_use when there are calls, else end_turn; "" is sent as null.
    status other than 200: an error answer of type `error` (None: the documented one) with `words`, `code` and
    `headers`; `body` replaces it by a text as a proxy would send it.
    chunk_chars: characters of a text, thinking or tool argument in one delta. is_escaped: tool arguments are written
    in ASCII escapes, so that a cut can fall into the middle of a character. is_utf16: text is cut into UTF-16 units,
    as servers written in JavaScript do. wire_bytes: bytes of one write to the socket (None: one event).
    has_pings: a ping event goes before every delta.
    after_events: how many events are sent before `fault` strikes (cut: connection reset; error: an error event of type
    `error`; end: the stream ends well-formed but too early; garble: an event that is no JSON) or before the stream
    waits for `hold`.
    """

    blocks: tuple[Json, ...] = ()
    stop_reason: str | None = None
    status: int = 200
    error: str | None = None
    words: str = "scripted"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    chunk_chars: int = 12
    is_escaped: bool = False
    is_utf16: bool = False
    wire_bytes: int | None = None
    has_pings: bool = False
    fault: Fault | None = None
    after_events: int = 0
    hold: asyncio.Event | None = None

    @classmethod
    def say(cls, text: str, **options: Any) -> ModelReply:
        """A plain answer."""
        return cls(blocks=({"type": "text", "text": text},), **options)

    @classmethod
    def call(cls, *calls: tuple[str, Json], text: str = "", **options: Any) -> ModelReply:
        """Tool calls (name, arguments), side by side, after some `text` if there is any."""
        said = ({"type": "text", "text": text},) if text else ()
        asked = tuple({"type": "tool_use", "name": name, "input": dict(arguments)} for name, arguments in calls)
        return cls(blocks=(*said, *asked), **options)

    @classmethod
    def fail(cls, status: int, words: str = "scripted", *, code: str | None = None, **headers: str) -> ModelReply:
        """An error answer; ``retry_after="3"`` becomes the header ``retry-after: 3``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(status=status, words=words, code=code, headers=named)
