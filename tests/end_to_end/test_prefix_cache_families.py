"""Fifty turns with all tools on, for each family of models: nothing refused, nearly everything read
from the cache, across a restart.

`make test` runs the Messages API in `test_prefix_cache.py`, and the bytes of chat completions in
`test_model_servers.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.agent.delegation import TOOL_NAME as DELEGATE
from core.models.abilities import ModelClient
from core.models.chat_completions import ChatCompletions
from core.models.claude import Claude
from core.ports import Model
from core.types import Completion, Request
from tests.bench.cache import KEY, TURNS, around, asked, deliver, remember, share
from tests.end_to_end.test_mcp import server_options
from tests.fixtures.chat_api import MODEL, ChatApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.echo_model import FENCE, find_calls
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.prefix_cache import prompt_bytes
from tests.fixtures.scripted_model import ScriptedModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Besides those that are always there, and those of the diary.
TOOLS = {"web_search", "web_fetch", "calendar", DELEGATE, "diary__list_entries"}


def all_tools(home: Path) -> str:
    """Return the settings that switch on every tool: the web, a calendar and an MCP server."""
    return (
        '[web_tools]\nsearch = "searxng"\nsearxng_url = "http://127.0.0.1:9"\n'
        '[calendar.home]\nurl = "http://127.0.0.1:9/feed.ics"\n'
        + server_options(home.parent / "diary.txt")
    )


def echo_chat(body: dict[str, Any]) -> ModelReply:
    """Call the tools that the last message names, or say what tools or the person said."""
    last = body["messages"][-1]
    content = last["content"]
    if isinstance(content, list):
        content = "\n\n".join(part["text"] for part in content)
    text = str(content)
    if last["role"] == "tool":
        return ModelReply.say(f"The tool says: {text}")
    text = text.partition(FENCE)[0]
    if calls := find_calls(text):
        return ModelReply.call(*calls)
    return ModelReply.say(f"You said: {text}")


class OneName:
    """A `Model` whose server knows its model by one name only."""

    def __init__(self, model: Model, name: str) -> None:
        self._model = model
        self._name = name

    async def complete(self, request: Request, on_text: Any, on_wait: Any) -> Completion:
        return await self._model.complete(replace(request, model=self._name), on_text, on_wait)


async def converse_with_all_tools(home: Path, connect: Any, name: str = "") -> None:
    """Hold the whole conversation, in two lives of the process."""
    await remember(home)
    for first, last in ((0, TURNS // 2), (TURNS // 2, TURNS)):
        client: ModelClient = connect()
        model = OneName(client, name) if name else client
        try:
            async with open_gateway(home, model, all_tools(home), ScriptedModel()) as harness:
                for number in range(first, last):
                    if number % 6 == 5:
                        await deliver(harness, number)
                    await harness.say(asked(number), message_id=f"turn{number}", **around(number))
        finally:
            await client.close()


@pytest.mark.sweep
async def test_messages_api_reads_at_least_97_percent_of_the_prompt_from_the_cache(
    home: Path,
) -> None:
    async with MessagesApi(key=KEY) as api:
        await converse_with_all_tools(
            home, lambda: Claude(api_key=KEY, base_url=api.url, clock=SteadyClock())
        )
    assert api.refusals == []
    bodies = [body for body in api.requests if body.get("tools")]
    assert len(bodies) > TURNS + TURNS // 3
    assert {tool["name"] for tool in bodies[-1]["tools"]} >= TOOLS
    assert_prefixes_on_bytes(api)
    assert share(api.usages) >= 0.97, f"{100 * share(api.usages):.1f} %"


@pytest.mark.sweep
async def test_chat_completions_form_reads_97_percent_from_the_cache(home: Path) -> None:
    async with ChatApi(echo_chat, key=KEY) as api:
        await converse_with_all_tools(
            home,
            lambda: ChatCompletions(api_key=KEY, base_url=api.url, clock=SteadyClock()),
            MODEL,
        )
    assert api.refusals == []
    bodies = [body for body in api.requests if body.get("tools")]
    assert len(bodies) > TURNS + TURNS // 3
    assert {tool["function"]["name"] for tool in bodies[-1]["tools"]} >= TOOLS
    assert_prefixes_on_bytes(api)
    assert cached_share(api.usages) >= 0.97, f"{100 * cached_share(api.usages):.1f} %"


@pytest.mark.sweep
async def test_claude_behind_a_router_reads_97_percent_from_the_cache(home: Path) -> None:
    async with ChatApi(echo_chat, key=KEY, caches_marked=True) as api:
        await converse_with_all_tools(
            home,
            lambda: ChatCompletions(
                api_key=KEY,
                base_url=api.url,
                clock=SteadyClock(),
                marked_models=("anthropic/",),
            ),
            "anthropic/claude-sonnet-5-5",
        )
    assert api.refusals == []
    assert_prefixes_on_bytes(api)
    assert cached_share(api.usages) >= 0.97, f"{100 * cached_share(api.usages):.1f} %"


def assert_prefixes_on_bytes(api: MessagesApi | ChatApi) -> None:
    """Each request with tools extends the bytes of the one before, but for the cache breakpoints."""
    prompts = [
        prompt_bytes(raw)
        for raw, body in zip(api.raw_requests, api.requests, strict=True)
        if body.get("tools")
    ]
    assert len(prompts) > TURNS + TURNS // 3
    for earlier, later in pairwise(prompts):
        assert len(earlier) > 10_000
        assert later.startswith(earlier)


def cached_share(usages: Sequence[dict[str, Any]]) -> float:
    """Return which part of the input after the first turn was read from the cache."""
    read = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages[1:])
    return float(read / sum(usage["prompt_tokens"] for usage in usages[1:]))
