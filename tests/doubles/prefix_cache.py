"""The prefix cache of the Messages API as documented, on estimated tokens.

A request is one row of blocks: tools, then system, then messages. Each `cache_control` mark writes an entry for the
whole row up to it; a later request reads the longest entry found by walking back from each of its own marks, over at
most 20 positions with the mark's own as the first. Entries live for 5 minutes or 1 hour after their last use.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from core.ports import Clock

LOOKBACK_BLOCKS = 20
CHARS_PER_TOKEN = 3.5
_LIFETIMES = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
_UNMARKABLE = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class _Position:
    """One block: the hash of everything up to it, the tokens up to it, and its mark."""

    digest: str
    tokens: int
    ttl: str | None


@dataclass(slots=True)
class _Entry:
    ttl: str
    expires_at: datetime


class PrefixCache:
    """`minimum_tokens`: shorter prefixes are not cached, silently."""

    def __init__(self, clock: Clock, minimum_tokens: int = 0) -> None:
        self._clock = clock
        self._minimum_tokens = minimum_tokens
        self._entries: dict[str, _Entry] = {}

    def account(self, body: dict[str, Any]) -> dict[str, Any]:
        """The input side of `usage` for an accepted request; reads refresh entries, marks write them."""
        now = self._clock.now()
        row = list(_positions(body))
        marked = [index for index, position in enumerate(row) if position.ttl]
        hits = [hit for index in marked if (hit := self._hit(row, index, now)) is not None]
        read = max((row[hit].tokens for hit in hits), default=0)
        written = {"5m": 0, "1h": 0}
        reached = read
        for index in marked:
            position = row[index]
            if position.tokens < self._minimum_tokens or position.ttl is None:
                continue
            self._entries[position.digest] = _Entry(position.ttl, now + _LIFETIMES[position.ttl])
            written[position.ttl] += max(0, position.tokens - reached)
            reached = max(reached, position.tokens)
        total = row[-1].tokens if row else 0
        return {
            "input_tokens": total - reached,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": reached - read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written["5m"],
                "ephemeral_1h_input_tokens": written["1h"],
            },
        }

    def _hit(self, row: list[_Position], mark: int, now: datetime) -> int | None:
        for index in range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1):
            entry = self._entries.get(row[index].digest)
            if entry is not None and now <= entry.expires_at:
                entry.expires_at = now + _LIFETIMES[entry.ttl]
                return index
        return None


def tokens_of(value: Any) -> int:
    """The estimate: the characters of the JSON text by 3.5, at least one."""
    return max(1, math.ceil(len(json.dumps(value, ensure_ascii=False)) / CHARS_PER_TOKEN))


def tokens_in(body: dict[str, Any]) -> int:
    """All input tokens of a request."""
    return sum(tokens_of(bare(block)) for _, block in blocks_of(body))


def blocks_of(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything a request sends, in the order of the cache, as (place, block); a text stands for a text block."""
    for tool in body.get("tools") or ():
        yield "tools", tool
    for block in _as_blocks(body.get("system") or ()):
        yield "system", block
    for message in body["messages"]:
        for block in _as_blocks(message["content"]):
            yield message["role"], block


def mark_of(block: dict[str, Any]) -> dict[str, Any] | None:
    """The mark on a block, or on a block within a tool result."""
    inner = block.get("content")
    nested = [part.get("cache_control") for part in inner if isinstance(part, dict)] if isinstance(inner, list) else []
    return next((mark for mark in (block.get("cache_control"), *nested) if mark), None)


def _positions(body: dict[str, Any]) -> Iterator[_Position]:
    row = list(blocks_of(body))
    marks = [mark_of(block) for _, block in row]
    if automatic := body.get("cache_control"):
        last = max((i for i, (_, block) in enumerate(row) if block.get("type") not in _UNMARKABLE), default=None)
        if last is not None:
            marks[last] = marks[last] or automatic
    digest = hashlib.sha256(body["model"].encode())
    # How tools may be chosen and whether the model thinks counts for messages only, not for tools and system.
    manner = json.dumps([body.get("tool_choice"), body.get("thinking")])
    tokens = 0
    for (place, block), mark in zip(row, marks, strict=True):
        if place in ("user", "assistant") and manner:
            digest.update(manner.encode())
            manner = ""
        content = bare(block)
        digest.update(f"\0{place}\0{json.dumps(content, ensure_ascii=False)}".encode())
        tokens += tokens_of(content)
        yield _Position(digest.hexdigest(), tokens, mark.get("ttl", "5m") if mark else None)


def _as_blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def bare(block: dict[str, Any]) -> dict[str, Any]:
    """The block without its marks."""
    rest = {key: value for key, value in block.items() if key != "cache_control"}
    if isinstance(rest.get("content"), list):
        rest["content"] = [bare(part) for part in rest["content"]]
    return rest
