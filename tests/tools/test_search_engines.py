"""SearXNG and Brave Search: results, no results and refusals, against doubles on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from core.errors import ToolError
from core.tools.search_engines import BraveEngine, SearchEngine, SearchResult, SearxngEngine
from tests.fixtures.search_engines import BRAVE_TOKEN, SearchServer
from tests.fixtures.web_pages import serve_pages


@pytest.fixture
async def server() -> AsyncIterator[SearchServer]:
    async with serve_pages() as pages:
        yield SearchServer(pages)


@asynccontextmanager
async def open_engine(
    name: str, server: SearchServer, token: str = BRAVE_TOKEN
) -> AsyncIterator[SearchEngine]:
    url = f"http://127.0.0.1:{server.server.port}"
    engine = SearxngEngine(url) if name == "searxng" else BraveEngine(token, url)
    yield engine
    await engine.close()


@pytest.mark.parametrize("name", ["searxng", "brave"])
async def test_results_are_plain_text_with_their_address_and_date(
    name: str, server: SearchServer
) -> None:
    server.add("<b>Ferry</b> times", "https://ferry.example/", "Sunday &amp; Monday at <em>10</em>")
    server.add("Ferry trap", "javascript:alert(1)", "Sunday")
    async with open_engine(name, server) as engine:
        results = await engine.search("ferry sunday")
        assert await engine.search("nothing like that") == []
    assert results == [
        SearchResult(
            "Ferry times", "https://ferry.example/", "Sunday & Monday at 10", "2026-11-20T00:00:00"
        )
    ]
    assert server.queries == ["ferry sunday", "nothing like that"]


async def test_searxng_that_does_not_allow_json_says_what_to_change(server: SearchServer) -> None:
    server.allows_json = False
    async with open_engine("searxng", server) as engine:
        with pytest.raises(ToolError, match="must list json under search: formats"):
            await engine.search("ferry")


async def test_wrong_brave_token_names_the_key(server: SearchServer) -> None:
    async with open_engine("brave", server, "wrong") as engine:
        with pytest.raises(ToolError, match="Check the key of Brave Search"):
            await engine.search("ferry")


async def test_engine_out_of_reach_is_a_sentence() -> None:
    engine = SearxngEngine("http://127.0.0.1:9")
    with pytest.raises(ToolError, match="can't be reached right now"):
        await engine.search("ferry")
    await engine.close()
