"""Turns rows into what the model may see; never writes.

The same rows give the same bytes, always: the provider's prefix cache depends on it. What a crash left half done is
repaired here, by rules that depend on the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from config.settings import CacheLife
from core.types import Json, Message

INTERRUPTED = "The tool was interrupted and gave no result."
_UNMARKABLE = ("thinking", "redacted_thinking")


def conversation(rows: Sequence[Message]) -> list[dict[str, Any]]:
    """Rows (oldest first) as ``{"role", "content": [blocks]}``: beginning with user, roles alternating, every tool call
    answered at the head of the next user message, no empty text."""
    turns: list[dict[str, Any]] = []
    for row in rows:
        blocks = [dict(block) for block in _blocks(row) if not _is_empty(block)]
        role = "assistant" if row.role == "assistant" else "user"
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role and not (role == "assistant" and _has_calls(turns[-1])):
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
    return _answered(_from_first_user(turns))


def mark(life: CacheLife) -> Json:
    """The ``cache_control`` mark of a cache life."""
    return {"type": "ephemeral"} if life == "5m" else {"type": "ephemeral", "ttl": life}


def marked(turns: Sequence[dict[str, Any]], life: CacheLife = "5m") -> tuple[Json, ...]:
    """The conversation with cache marks at the tail of the previous request and at its own tail: the server looks back
    only 20 blocks from a mark, and one round of parallel tool calls can be more."""
    requests = [index for index, turn in enumerate(turns) if turn["role"] == "user"]
    tails = set(requests[-2:]) | ({len(turns) - 1} if turns else set())
    return tuple(_mark(turn, mark(life)) if index in tails else turn for index, turn in enumerate(turns))


def _blocks(row: Message) -> Sequence[Json]:
    if row.sent is not None:
        return row.sent
    if row.blocks is not None:
        return row.blocks
    return ({"type": "text", "text": row.text},)


def _has_calls(turn: dict[str, Any]) -> bool:
    """What follows a call that a crash left without its result must not join its message, or the request would not
    extend the one before."""
    return any(block.get("type") == "tool_use" for block in turn["content"])


def _is_empty(block: Json) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def _mark(turn: dict[str, Any], mark: Json) -> dict[str, Any]:
    content = list(turn["content"])
    for index in range(len(content) - 1, -1, -1):
        if content[index].get("type") not in _UNMARKABLE:
            content[index] = {**content[index], "cache_control": mark}
            break
    return {**turn, "content": content}


def _answered(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    called: list[str] = []

    def add_user(given: dict[str, Json], rest: Sequence[Json]) -> None:
        if content := [*_results(given, called), *rest]:
            out.append({"role": "user", "content": content})

    for turn in turns:
        if turn["role"] == "assistant":
            add_user({}, ())
            out.append(turn)
            called = [block["id"] for block in turn["content"] if block.get("type") == "tool_use"]
            continue
        given = {block["tool_use_id"]: block for block in turn["content"] if block.get("type") == "tool_result"}
        add_user(given, [block for block in turn["content"] if block.get("type") != "tool_result"])
        called = []
    add_user({}, ())
    return out


def _results(given: dict[str, Json], called: Iterable[str]) -> list[Json]:
    missing = {"type": "tool_result", "content": INTERRUPTED, "is_error": True}
    return [given.get(call) or {**missing, "tool_use_id": call} for call in called]


def _from_first_user(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A window may open with the assistant or with results of a call that is gone; the API wants a user first."""
    for index, turn in enumerate(turns):
        if turn["role"] == "user" and any(block.get("type") != "tool_result" for block in turn["content"]):
            return turns[index:]
    return []
