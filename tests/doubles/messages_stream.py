"""The events in which the Messages API streams an answer, cut as a script says, and their form on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from core.types import Json
from tests.doubles.messages_rules import sign
from tests.doubles.model_reply import ModelReply
from tests.doubles.prefix_cache import tokens_of

Event = tuple[str, dict[str, Any]]


def completed(reply: ModelReply, message_id: str) -> list[dict[str, Any]]:
    """The reply's blocks with the ids and signatures that the server gives."""
    blocks = []
    for index, block in enumerate(reply.blocks):
        full = dict(block)
        if full["type"] == "tool_use":
            full.setdefault("id", f"toolu_{message_id.removeprefix('msg_')}_{index}")
        if full["type"] == "thinking":
            full.setdefault("signature", sign(full["thinking"]))
        if full["type"] == "text":
            full.setdefault("citations", None)
        blocks.append(full)
    return blocks


def stop_reason_of(reply: ModelReply) -> str | None:
    """The reply's own, else tool_use where there are calls."""
    if reply.stop_reason is not None:
        return reply.stop_reason or None
    return "tool_use" if any(block["type"] == "tool_use" for block in reply.blocks) else "end_turn"


def message_of(
    reply: ModelReply, blocks: list[dict[str, Any]], message_id: str, model: str, usage: Json
) -> dict[str, Any]:
    """The whole answer, as it comes without streaming."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": stop_reason_of(reply),
        "stop_sequence": None,
        "stop_details": None,
        "usage": {**usage, "output_tokens": sum(tokens_of(block) for block in blocks)},
    }


def events_of(reply: ModelReply, message: dict[str, Any]) -> Iterator[Event]:
    """The same answer as events."""
    usage = message["usage"]
    opening = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": opening}
    if not reply.has_pings:
        yield "ping", {"type": "ping"}
    for index, block in enumerate(message["content"]):
        start, deltas = _parts(reply, block)
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            if reply.has_pings:
                yield "ping", {"type": "ping"}
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    ending = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    totals = {key: value for key, value in usage.items() if key != "cache_creation"}
    yield "message_delta", {"type": "message_delta", "delta": ending, "usage": totals}
    yield "message_stop", {"type": "message_stop"}


def on_wire(event: Event, is_ascii: bool = False) -> bytes:
    """One server-sent event."""
    name, data = event
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=is_ascii)}\n\n".encode()


def _parts(reply: ModelReply, block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How a block begins, and its deltas."""
    kind = block["type"]
    if kind == "text":
        cuts = _units(block["text"]) if reply.is_utf16 else _cut(block["text"], reply.chunk_chars)
        return {**block, "text": ""}, [{"type": "text_delta", "text": cut} for cut in cuts]
    if kind == "thinking":
        cuts = _cut(block["thinking"], reply.chunk_chars)
        deltas = [{"type": "thinking_delta", "thinking": cut} for cut in cuts]
        signed = [{"type": "signature_delta", "signature": block["signature"]}] if block["signature"] else []
        return {**block, "thinking": "", "signature": ""}, [*deltas, *signed]
    if kind == "tool_use":
        text = json.dumps(block["input"], ensure_ascii=reply.is_escaped) if block["input"] else ""
        cuts = ["", *_cut(text, reply.chunk_chars)]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": cut} for cut in cuts]
    return block, []


def _cut(text: str, chars: int) -> list[str]:
    return [text[start : start + chars] for start in range(0, len(text), chars)]


def _units(text: str) -> list[str]:
    """One UTF-16 unit each; a character beyond the first plane becomes two halves."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return [raw[start : start + 2].decode("utf-16-le", "surrogatepass") for start in range(0, len(raw), 2)]
