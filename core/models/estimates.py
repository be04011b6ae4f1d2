"""Estimates the token usage of calls to servers that don't report it.

This module is imported after such a server has answered for the first time.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_core import to_json

from core.types import Completion, Json, Request, Usage

# A token of English text has about four characters, and one of JSON or another language fewer.
CHARS_PER_TOKEN = 3.5
# A picture of 1568 by 1045 pixels.
PICTURE_TOKENS = 2_200


def estimate_usage(request: Request, completion: Completion) -> Usage:
    """Return the estimated usage of a call. No tokens count as read from a cache."""
    chars = len(_render([*request.system, *request.tools]))
    pictures = 0
    for message in request.messages:
        texts, message_pictures = _split_pictures(message["content"])
        pictures += message_pictures
        chars += len(_render(texts))
    return Usage(
        input=round(chars / CHARS_PER_TOKEN) + pictures * PICTURE_TOKENS,
        output=max(1, round(len(_render(completion.blocks)) / CHARS_PER_TOKEN)),
    )


def _split_pictures(blocks: Sequence[Json]) -> tuple[list[Json], int]:
    """Return the blocks without their pictures, and the number of pictures."""
    texts: list[Json] = []
    pictures = 0
    for block in blocks:
        content = block.get("content")
        if block["type"] == "image":
            pictures += 1
        elif isinstance(content, list):
            parts, part_pictures = _split_pictures(content)
            texts.append({**block, "content": parts})
            pictures += part_pictures
        else:
            texts.append(block)
    return texts, pictures


def _render(blocks: Sequence[Json]) -> str:
    """Return blocks as JSON, in which mainly the length of the texts matters."""
    return to_json(blocks, inf_nan_mode="null").decode(errors="replace")
