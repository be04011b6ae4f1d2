"""Checks and numbers what an answer cites.

After a claim that it takes from the tool `session_search`, the model writes a mark with the id of
the message: [message 412]. Models that cite by themselves get the messages as ``search_result``
blocks, and their client writes the same marks. People see a number in place of a mark. A mark for a
message that the model wasn't given is removed, so no answer cites what doesn't exist.

Source of the blocks: the page "Search results" in the documentation of the Messages API.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from core.guard.origin_and_fence import CITATION
from core.types import Json, Message

SEARCH_TOOL = "session_search"
# An answer cites at most this many messages. Marks of others are removed.
MAX_CITED = 5
# The parts of a session in the tool's result that list messages.
_PARTS = ("matches", "bookend_start", "window", "bookend_end")


class CitedMessage(NamedTuple):
    """A message that an answer cites."""

    message_id: int
    at: datetime
    # The whole message, or its passage with the words that the model searched for.
    text: str
    # Opens the message on its platform.
    link: str | None


def number_citations(text: str, rows: Sequence[Message]) -> tuple[str, list[CitedMessage]]:
    """Replace the marks in an answer by numbers: [message 412] -> [1].

    The messages are numbered in the order in which the answer cites them first. `rows` are the
    messages of the conversation. Marks of messages that no search in it returned are removed with
    the space before them. Returns the new text and the messages in their order.
    """
    if CITATION.search(text) is None:
        return text, []
    messages = {message.message_id: message for message in _list_returned(rows)}
    cited: dict[int, CitedMessage] = {}
    pieces: list[str] = []
    position = 0
    for mark in CITATION.finditer(text):
        pieces.append(text[position : mark.start()])
        position = mark.end()
        message = messages.get(int(mark["message_id"]))
        if message is not None and (message.message_id in cited or len(cited) < MAX_CITED):
            cited[message.message_id] = message
            number = list(cited).index(message.message_id) + 1
            pieces.append(f"{mark['space']}[{number}]")
    pieces.append(text[position:])
    return "".join(pieces), list(cited.values())


def add_search_results(messages: Sequence[Json]) -> list[Json]:
    """Return the messages of a request with the results of searches as ``search_result`` blocks.

    The blocks are always the same for the same result, so the provider's cache holds.
    """
    search_ids: set[str] = set()
    converted: list[Json] = []
    for message in messages:
        blocks = message["content"]
        if message["role"] == "assistant":
            search_ids.update(
                block["id"]
                for block in blocks
                if block["type"] == "tool_use" and block["name"] == SEARCH_TOOL
            )
        elif search_ids and blocks[0]["type"] == "tool_result":
            blocks = [
                _convert_result(block) if block.get("tool_use_id") in search_ids else block
                for block in blocks
            ]
            message = {**message, "content": blocks}
        converted.append(message)
    return converted


def _convert_result(block: Json) -> Json:
    content = block.get("content")
    if block.get("is_error") or not isinstance(content, str):
        return block
    return {**block, "content": _build_blocks(content)}


@lru_cache(maxsize=64)
def _build_blocks(content: str) -> str | Sequence[Json]:
    """Return a result of the tool as blocks: what isn't citable as JSON, then each message.

    Returns the result unchanged if it contains no messages.
    """
    try:
        result = json.loads(content)
    except ValueError:
        return content
    blocks: list[Json] = []
    for session in result.get("sessions", ()):
        for part in _PARTS:
            blocks += map(_build_block, session.get(part, ()))
    if not blocks:
        return content
    return [{"type": "text", "text": json.dumps(result, ensure_ascii=False)}, *blocks]


def _build_block(fields: dict[str, Any]) -> Json:
    """Move the text of a message from its JSON fields to a block, and return the block."""
    text = fields.pop("snippet", "") or fields.pop("text", "")
    author = fields.get("sender") or fields.get("role", "user")
    return {
        "type": "search_result",
        "source": f"message {fields['message_id']}",
        "title": f"{author}, {fields['at']}",
        "content": [{"type": "text", "text": text if text.strip() else "(no text)"}],
        "citations": {"enabled": True},
    }


def _list_returned(rows: Iterable[Message]) -> Iterator[CitedMessage]:
    """Yield the messages that searches returned."""
    for row in rows:
        if row.role != "tool" or row.tool_name != SEARCH_TOOL:
            continue
        try:
            result = json.loads(row.text)
        except ValueError:
            # The result of a failed call is a sentence.
            continue
        for session in result.get("sessions", ()):
            for part in _PARTS:
                yield from map(_read_message, session.get(part, ()))


def _read_message(fields: dict[str, Any]) -> CitedMessage:
    text = fields.get("text") or fields.get("snippet") or ""
    return CitedMessage(
        message_id=int(fields["message_id"]),
        at=datetime.fromisoformat(fields["at"]),
        text=str(text).replace(">>>", "").replace("<<<", ""),
        link=fields.get("link"),
    )
