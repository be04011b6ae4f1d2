"""A long session with tools against the strict double: nothing refused, nearly everything read from
the cache."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.guard.origin_and_fence import (
    FORWARD_LEAD,
    JOB_RESULTS_LEAD,
    NUDGE_LEAD,
    QUOTE_LEAD,
    SKILL_LEAD,
)
from core.tools.mcp_tools import FIND_TOOLS
from core.tools.switches import CALL_TOOL
from tests.bench.cache import (
    CONVERSATIONS,
    HOUR,
    KEY,
    TURNS,
    begin_anew,
    converse,
    parts,
    price,
    share,
)
from tests.end_to_end.test_mcp import server_options
from tests.fixtures.clock import SteadyClock
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.prefix_cache import prompt_bytes

pytestmark = pytest.mark.slow

EVERY_TOOL = """
[web_tools]
search = "searxng"
searxng_url = "http://127.0.0.1:1"
[calendar.work]
kind = "caldav"
url = "http://127.0.0.1:1/"
user = "ana"
"""


def prefix(body: dict[str, Any]) -> list[str]:
    """The request as lines, one a block, without cache breakpoints."""

    def strip(block: dict[str, Any]) -> str:
        return json.dumps({key: value for key, value in block.items() if key != "cache_control"})

    lines = [json.dumps(tool) for tool in body["tools"]] + [
        strip(block) for block in body["system"]
    ]
    return lines + [
        message["role"] + strip(block)
        for message in body["messages"]
        for block in message["content"]
    ]


@pytest.mark.timeout(600)
@pytest.mark.sweep
async def test_at_least_97_percent_of_prompt_tokens_are_cache_reads_with_every_tool_on(
    home: Path,
) -> None:
    options = EVERY_TOOL + server_options(home.parent / "diary.txt", "--many")
    async with MessagesApi(key=KEY) as api:
        spending = await converse(home, api, options=options)
        assert api.refusals == []
        bodies = [body for body in api.requests if body.get("tools")]
        names = {tool["name"] for tool in bodies[-1]["tools"]}
        assert {"web_search", "web_fetch", "calendar", FIND_TOOLS, CALL_TOOL} <= names
        assert len(bodies) > TURNS + TURNS // 3
        for earlier, later in pairwise(bodies):
            before = prefix(earlier)
            assert prefix(later)[: len(before)] == before
        prompts = [
            prompt_bytes(raw)
            for raw, body in zip(api.raw_requests, api.requests, strict=True)
            if body.get("tools")
        ]
        assert all(later.startswith(earlier) for earlier, later in pairwise(prompts))
        fences = [line for line in prefix(bodies[-1]) if "<memory-context>" in line]
        assert len(fences) > 10, "memory had its say"
        assert any(" f" in line for line in fences), "facts too"
        for frame in (QUOTE_LEAD, FORWARD_LEAD, JOB_RESULTS_LEAD, SKILL_LEAD, NUDGE_LEAD):
            assert any(f'"[{frame}' in line for line in prefix(bodies[-1])), frame
        assert any(
            '"name": "skill_view"' in line
            for line in prefix(bodies[-1])
            if line.startswith("assistant")
        )
        assert any(
            "- birthday: What to do about a birthday." in line for line in prefix(bodies[-1])
        ), "the index"
        assert share(api.usages) >= 0.97, (
            f"{100 * share(api.usages):.1f} % were read from the cache"
        )
        assert price(api.usages) <= 0.15, f"it cost {price(api.usages):.3f} of the same uncached"
        assert spending.usage == api.totals, "the books say what the server says"
        assert [cause for cause, _ in spending.by_miss_cause] == ["first"], (
            "a restart misses nothing"
        )
        assert spending.cost is not None
        assert spending.uncached_cost is not None
        assert spending.cost < spending.uncached_cost / 2


async def test_prefix_cached_for_an_hour_is_read_after_a_pause(home: Path) -> None:
    clock = SteadyClock()
    async with MessagesApi(key=KEY, clock=clock) as api:
        spending = await converse(home, api, 12, options=HOUR, pausing=clock)
        assert api.refusals == []
        bodies = [body for body in api.requests if body.get("tools")]
    assert spending.usage == api.totals
    assert (
        spending.usage.cache_write_hour == spending.usage.cache_write == sum(parts(bodies).values())
    )
    assert [cause for cause, _ in spending.by_miss_cause] == ["first"]


async def test_system_prompt_that_changes_with_each_note_misses_the_cache_each_time(
    home: Path,
) -> None:
    async with MessagesApi(key=KEY) as api:
        spending = await converse(home, api, 12, home)
        assert api.refusals == []
    # The prompt is changed behind the meter, which can tell only that the server had the prefix no
    # more.
    assert {cause: part.calls for cause, part in spending.by_miss_cause} == {
        "first": 1,
        "evicted": 3,
    }


async def test_new_conversation_reads_its_beginning_from_the_cache(
    home: Path,
) -> None:
    async with MessagesApi(key=KEY) as api:
        first = await begin_anew(home, api)
        assert api.refusals == []
        bodies = [body for body in api.requests if len(body["messages"]) == 1]
    assert len(first) == CONVERSATIONS
    assert len({json.dumps([body["tools"], body["system"]]) for body in bodies}) == 1
    assert share(first) > 0.8, f"{100 * share(first):.1f} % were read from the cache"
