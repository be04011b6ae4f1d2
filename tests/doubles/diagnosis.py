"""Why a request could not use the cache of the one before it, as the Messages API tells it on demand.

Compares whole requests in the order of the cache; keeps every body by the id of its answer.
"""

from __future__ import annotations

from typing import Any

from tests.doubles.prefix_cache import bare, blocks_of, tokens_of


class Diagnosis:
    """Fed with the bodies that asked for it; of others the server remembers nothing."""

    def __init__(self) -> None:
        self._bodies: dict[str, dict[str, Any]] = {}

    def of(self, body: dict[str, Any], message_id: str) -> dict[str, Any] | None:
        """The field ``diagnostics`` of the answer `message_id`; None where nothing is named or nothing changed."""
        self._bodies[message_id] = body
        asked = body["diagnostics"]
        if not asked or not asked.get("previous_message_id"):
            return None
        before = self._bodies.get(asked["previous_message_id"])
        if before is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        if before["model"] != body["model"]:
            return _reason("model", before)
        for part in ("system", "tools"):
            if _part(before, part) != _part(body, part):
                return _reason(part, before)
        said = _part(before, "user", "assistant")
        return None if _part(body, "user", "assistant")[: len(said)] == said else _reason("messages", before)


def _part(body: dict[str, Any], *places: str) -> list[tuple[str, dict[str, Any]]]:
    return [(place, bare(block)) for place, block in blocks_of(body) if place in places]


def _reason(part: str, before: dict[str, Any]) -> dict[str, Any]:
    tokens = sum(tokens_of(bare(block)) for _, block in blocks_of(before))
    return {"cache_miss_reason": {"type": f"{part}_changed", "cache_missed_input_tokens": tokens}}
