"""Reads the thinking of models with the Chat Completions API, and sends it back.

The API itself doesn't define thinking, so each server adds its own fields. They are sent back, in
their original form, only to the model that wrote them. Some servers refuse a history without them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from core.models.failures import ModelFailure, find_missing_thinking, find_placeholders
from core.text.normalize import make_json_safe
from core.types import Json, Request

# The maximum number of remembered digests of refused thinking.
MAX_REFUSED = 1000
# Fields with thinking as plain text. It's sent back only with tool calls, because no server uses it
# elsewhere.
TEXT_FIELDS = ("reasoning_content", "reasoning")
# The fields of a detail whose texts arrive in pieces.
_DETAIL_TEXTS = ("text", "summary", "data")
# A detail with one of these fields is complete.
_LAST_FIELDS = ("signature", "data")


class ReasoningParts:
    """Collects the thinking from the pieces of one answer."""

    def __init__(self, server: str, model: str) -> None:
        self._server = server
        self._model = model
        self._details: list[dict[str, Any]] = []
        self._texts: dict[str, str] = {}

    def add(self, delta: Json) -> None:
        """Add the thinking that a piece of an answer contains.

        Thinking in an unknown form is left out.
        """
        for detail in delta.get("reasoning_details") or ():
            if isinstance(detail, Mapping):
                self._add_detail(detail)
        for name in TEXT_FIELDS:
            text = delta.get(name)
            if text and isinstance(text, str):
                self._texts[name] = self._texts.get(name, "") + text

    def _add_detail(self, delta: Json) -> None:
        """Extend a detail. Its texts arrive in pieces, and its other fields as a whole."""
        detail = self._find_detail(delta)
        for name, value in delta.items():
            if name in _DETAIL_TEXTS and isinstance(value, str):
                value = (detail.get(name) or "") + value
            if value is not None or name not in detail:
                detail[name] = value

    def _find_detail(self, delta: Json) -> dict[str, Any]:
        """Return the detail that a piece extends, or a new one.

        Some servers give a summary and its encrypted form the same index. A piece without an index
        extends the latest detail of its type and id, unless that detail is complete.
        """
        index = delta.get("index")
        for detail in self._details[::-1]:
            if detail.get("index") != index or detail.get("type") != delta.get("type"):
                continue
            if index is not None or _extends_detail(detail, delta):
                return detail
            break
        new_detail: dict[str, Any] = {}
        self._details.append(new_detail)
        return new_detail

    def build(self, extras: Mapping[str, Json], *, has_calls: bool) -> Json | None:
        """Return the thinking as a block, or None if none of it can be sent back.

        `extras` are the fields that the server added to tool calls, by the ids of the calls.
        """
        # The details repeat the text.
        texts = self._texts if has_calls and not self._details else {}
        if not (self._details or extras or texts):
            return None
        block = {
            "type": "reasoning",
            "server": self._server,
            "model": self._model,
            "details": [make_json_safe(detail) for detail in self._details],
            "calls": {call_id: make_json_safe(extra) for call_id, extra in extras.items()},
        }
        if texts:
            block["texts"] = make_json_safe(texts)
        return block


def _extends_detail(detail: Mapping[str, Any], delta: Json) -> bool:
    """Return whether a piece without an index extends a detail of the same type."""
    if any(detail.get(name) for name in _LAST_FIELDS):
        return False
    return delta.get("id") in (None, detail.get("id"))


class ReturnedReasoning:
    """Adds thinking to the messages of requests to one server.

    From refusals, it learns which thinking the server rejects and where the server requires
    thinking.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        # The digests of thinking that the server refused, oldest first.
        self._refused: dict[str, None] = {}
        # The models that reject thinking as plain text.
        self._textless: set[str] = set()
        # The kind of fields that replace missing thinking, by model.
        self._placeholders: dict[str, Mapping[str, Json]] = {}

    def add_to(self, message: dict[str, Any], blocks: Sequence[Json], model: str) -> None:
        """Add the thinking of an answer to the message with its text and its tool calls."""
        details: list[Json] = []
        extras: dict[str, Json] = {}
        texts: dict[str, str] = {}
        for block in self._list_accepted_thinking([{"content": blocks}], model):
            details += block["details"]
            extras |= block["calls"]
            texts |= block.get("texts") or {}
        calls = message.get("tool_calls") or ()
        for call in calls:
            if call["id"] in extras:
                call["extra_content"] = extras[call["id"]]
        if details:
            message["reasoning_details"] = details
        if calls and model not in self._textless:
            message |= texts
        placeholder = self._placeholders.get(model)
        if calls and placeholder is not None:
            _add_missing(message, placeholder.get("message", {}))
            _add_missing(calls[0], placeholder.get("call", {}))

    def learn(self, request: Request, failure: ModelFailure) -> bool:
        """Learn from a refusal. Returns whether another request may succeed."""
        kind = find_missing_thinking(str(failure))
        if kind and request.model not in self._placeholders:
            self._placeholders[request.model] = find_placeholders(kind)
            return True
        blocks = list(self._list_accepted_thinking(request.messages, request.model))
        if self._learn_text_refusal(request.model, blocks, str(failure)):
            return True
        refused = [block for block in blocks if block["details"] or block["calls"]]
        if "thinking" not in failure.refused_abilities or not refused:
            return False
        self._refused |= {_digest(block): None for block in refused}
        while len(self._refused) > MAX_REFUSED:
            del self._refused[next(iter(self._refused))]
        return True

    def _learn_text_refusal(self, model: str, blocks: Iterable[Json], explanation: str) -> bool:
        """If a refusal names a field of plain-text thinking, remember that the model rejects it."""
        if model in self._textless:
            return False
        fields = {name for block in blocks for name in block.get("texts") or ()}
        if not any(re.search(rf"\b{name}\b", explanation) for name in fields):
            return False
        self._textless.add(model)
        return True

    def _list_accepted_thinking(self, messages: Iterable[Json], model: str) -> Iterable[Json]:
        """Yield the thinking in messages that this model wrote and that wasn't refused.

        Thinking that an earlier version stored names no model.
        """
        for message in messages:
            for block in message["content"]:
                if block["type"] != "reasoning" or block["server"] != self._server:
                    continue
                if block.get("model", model) != model:
                    continue
                if not self._refused or _digest(block) not in self._refused:
                    yield block


def _add_missing(target: dict[str, Any], fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        target.setdefault(name, value)


def _digest(block: Json) -> str:
    return hashlib.sha256(to_json([block["details"], block["calls"]])).hexdigest()
