"""A long session with tools against the strict double: nothing refused, nearly everything read from the cache."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.bench.cache import KEY, TURNS, converse
from tests.doubles.messages_api import MessagesApi


def prefix(body: dict[str, Any]) -> list[str]:
    """The request as lines, one a block, without cache marks."""

    def strip(block: dict[str, Any]) -> str:
        return json.dumps({key: value for key, value in block.items() if key != "cache_control"})

    lines = [json.dumps(tool) for tool in body["tools"]] + [strip(block) for block in body["system"]]
    return lines + [message["role"] + strip(block) for message in body["messages"] for block in message["content"]]


@pytest.mark.slow
async def test_at_least_95_percent_of_the_input_after_the_first_turn_comes_from_the_cache(home: Path) -> None:
    async with MessagesApi(key=KEY) as api:
        await converse(home, api)
        assert api.refusals == []
        bodies = [body for body in api.requests if body.get("tools")]
        assert len(bodies) > TURNS + TURNS // 3
        for earlier, later in pairwise(bodies):
            before = prefix(earlier)
            assert prefix(later)[: len(before)] == before
        usages = api.usages[1:]
        read = sum(usage["cache_read_input_tokens"] for usage in usages)
        sent = read + sum(usage["input_tokens"] + usage["cache_creation_input_tokens"] for usage in usages)
        assert read / sent >= 0.95, f"{100 * read / sent:.1f} % were read from the cache"
