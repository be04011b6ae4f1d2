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
    """Rows (oldest first) as ``{"role", "content": [blocks]}``: user and assistant in turn, beginning with user, every
    tool call answered first thing in the next user message, no empty text."""
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
    """The cache mark that asks the server to keep everything up to it for so long."""
    return {"type": "ephemeral"} if life == "5m" else {"type": "ephemeral", "ttl": life}


def marked(turns: Sequence[dict[str, Any]], life: CacheLife = "5m") -> tuple[Json, ...]:
    """The conversation with cache marks at the tail of the previous request and at its own tail.

    Two are needed: the server looks back 20 blocks only from a mark, and one round of parallel tool calls is more.
    """
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
    """A crash may leave a call without its result; what the assistant said after it must not become part of the same
    message, or the request would not extend the one before."""
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
    """Every tool_use gets its tool_result at the head of the next user message; results without a call are dropped."""
    out: list[dict[str, Any]] = []
    called: list[str] = []
    for turn in turns:
        if turn["role"] == "assistant":
            out.extend(_results({}, called))
            out.append(turn)
            called = [block["id"] for block in turn["content"] if block.get("type") == "tool_use"]
            continue
        given = {block["tool_use_id"]: block for block in turn["content"] if block.get("type") == "tool_result"}
        rest = [block for block in turn["content"] if block.get("type") != "tool_result"]
        head = [block for result in _results(given, called) for block in result["content"]]
        if head or rest:
            out.append({"role": "user", "content": [*head, *rest]})
        called = []
    out.extend(_results({}, called))
    return out


def _results(given: dict[str, Json], called: Iterable[str]) -> list[dict[str, Any]]:
    blocks = [given.get(call) or _interrupted(call) for call in called]
    return [{"role": "user", "content": blocks}] if blocks else []


def _interrupted(call: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": INTERRUPTED, "is_error": True}


def _from_first_user(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A window that opens in the middle of a conversation may begin with the assistant, or with results of a call that
    is not there any more; the model must be addressed by a user first."""
    for index, turn in enumerate(turns):
        if turn["role"] == "user" and any(block.get("type") != "tool_result" for block in turn["content"]):
            return turns[index:]
    return []
