"""SearXNG, Brave Search and a Claude model: results, no results and refusals, against doubles on
loopback."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from config.settings import DEFAULTS
from config.tool_options import WebToolOptions
from core.errors import ConfigError, ToolError
from core.models.claude import Claude
from core.tools.search_engines import (
    BraveEngine,
    ClaudeEngine,
    ClaudePage,
    ClaudePages,
    SearchEngine,
    SearchResult,
    SearxngEngine,
)
from core.tools.web import PageText, WebAccess
from core.tools.web_client import Download
from core.types import UNBILLED, Completion, Json, Request
from tests.fixtures.clock import SteadyClock
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.search_engines import BRAVE_TOKEN, SearchServer
from tests.fixtures.web_pages import serve_pages


@pytest.fixture
async def server() -> AsyncIterator[SearchServer]:
    async with serve_pages() as pages:
        yield SearchServer(pages)


def test_address_of_a_search_engine_with_a_key_is_refused_with_the_name_of_its_setting() -> None:
    with pytest.raises(ConfigError, match=r"^web_tools\.searxng_url "):
        SearxngEngine("http://127.0.0.1:8888/?key=abc")


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


async def test_error_for_a_searxng_server_without_json_names_the_setting_to_change(
    server: SearchServer,
) -> None:
    server.allows_json = False
    async with open_engine("searxng", server) as engine:
        with pytest.raises(ToolError, match="must list json under search: formats"):
            await engine.search("ferry")


async def test_searxng_whose_engines_all_fail_reports_them_instead_of_no_results(
    server: SearchServer,
) -> None:
    server.add("Ferry times", "https://ferry.example/", "Sunday")
    server.unresponsive_engines = [("duckduckgo", "CAPTCHA"), ("google", "Suspended: timeout")]
    async with open_engine("searxng", server) as engine:
        with pytest.raises(ToolError, match="duckduckgo CAPTCHA; google Suspended: timeout"):
            await engine.search("ferry")


async def test_wrong_brave_token_names_the_key(server: SearchServer) -> None:
    async with open_engine("brave", server, "wrong") as engine:
        with pytest.raises(ToolError, match="Check the key of Brave Search"):
            await engine.search("ferry")


async def test_unreachable_search_engine_is_reported_with_one_sentence() -> None:
    engine = SearxngEngine("http://127.0.0.1:9")
    with pytest.raises(ToolError, match="can't be reached right now"):
        await engine.search("ferry")
    await engine.close()


def reply_to_search(pages: list[Json] | Json, *texts: Json) -> ModelReply:
    """The answer of a Claude model that has searched, as the page "Web search tool" shows it."""
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}
    return ModelReply(
        blocks=(
            {"type": "text", "text": "I'll search."},
            {**call, "input": {"query": "ferry sunday"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": pages},
            *texts,
        ),
        stop_reason="end_turn",
    )


FERRY = {
    "type": "web_search_result",
    "title": "Ferry times",
    "url": "https://ferry.example/",
    "encrypted_content": "Eo8…",
    "page_age": "November 20, 2026",
}


@asynccontextmanager
async def open_claude(
    *replies: ModelReply | str,
) -> AsyncIterator[tuple[MessagesApi, ClaudeEngine]]:
    async with MessagesApi(replies, key="sk-ant-test") as api:
        claude = Claude("sk-ant-test", api.url, SteadyClock(), tries=1)

        async def ask(request: Request) -> Completion:
            return await claude.complete(request, lambda _: None, lambda _: None)

        yield api, ClaudeEngine(ask, "claude-haiku-4-5")
        await claude.close()


async def test_claude_returns_pages_with_what_it_quotes_from_them() -> None:
    citation = {
        "type": "web_search_result_location",
        "url": FERRY["url"],
        "title": FERRY["title"],
        "encrypted_index": "Eo8…",
        "cited_text": "The Sunday ferry leaves at 10:40.",
    }
    text = {"type": "text", "text": "On Sunday at 10:40.", "citations": [citation]}
    other = {**FERRY, "title": "Trains", "url": "https://train.example/", "page_age": None}
    async with open_claude(reply_to_search([FERRY, other], text)) as (api, engine):
        results = await engine.search("ferry sunday")
    assert results == [
        SearchResult(
            "Ferry times",
            "https://ferry.example/",
            "The Sunday ferry leaves at 10:40.",
            "November 20, 2026",
        ),
        SearchResult("Trains", "https://train.example/", "", ""),
    ]
    (body,) = api.requests
    assert [tool["name"] for tool in body["tools"]] == ["web_search"]
    assert [message["content"] for message in body["messages"]] == [
        [{"type": "text", "text": "ferry sunday"}]
    ]


async def test_searches_of_claude_are_counted_with_its_tokens() -> None:
    completions: list[Completion] = []
    async with MessagesApi([reply_to_search([FERRY])], key="sk-ant-test") as api:
        claude = Claude("sk-ant-test", api.url, SteadyClock(), tries=1)

        async def ask(request: Request) -> Completion:
            completions.append(await claude.complete(request, lambda _: None, lambda _: None))
            return completions[-1]

        await ClaudeEngine(ask, "claude-haiku-4-5").search("ferry sunday")
        await claude.close()
    assert [completion.usage.web_searches for completion in completions] == [1]


async def test_results_of_a_paused_claude_search_go_back_unchanged_and_the_search_goes_on() -> None:
    paused = replace(reply_to_search([FERRY]), stop_reason="pause_turn")
    other = {**FERRY, "url": "https://train.example/", "encrypted_content": "Fp9…"}
    async with open_claude(paused, reply_to_search([other])) as (api, engine):
        results = await engine.search("ferry sunday")
    question, answer = api.requests[1]["messages"]
    assert question == api.requests[0]["messages"][0]
    assert answer == {"role": "assistant", "content": list(paused.blocks)}
    assert api.requests[1]["tools"] == api.requests[0]["tools"]
    assert [result.url for result in results] == [FERRY["url"], other["url"]]
    assert api.refusals == []


async def test_claude_search_that_is_always_paused_ends_with_the_pages_found_so_far() -> None:
    paused = replace(reply_to_search([FERRY]), stop_reason="pause_turn")
    async with open_claude(*[paused] * 4) as (api, engine):
        results = await engine.search("ferry sunday")
    assert len(api.requests) == 4
    assert {result.url for result in results} == {FERRY["url"]}


async def test_claude_answer_without_a_web_search_gives_no_results() -> None:
    async with open_claude("I'd rather not.") as (_, engine):
        assert await engine.search("ferry sunday") == []


def test_texts_of_the_settings_state_that_anthropics_server_tools_pass_no_gate() -> None:
    section = DEFAULTS.read_text().partition("\n[web_tools]\n")[2].partition('\nsearch = ""\n')[0]
    text = " ".join(line.removeprefix("# ") for line in section.splitlines())
    assert '"anthropic" (your Claude model searches; Anthropic charges for each search' in text
    assert "Anthropic's search itself passes no gate" in text
    assert "Anthropic's reading itself passes no gate" in text


async def test_failed_search_of_claude_is_a_sentence() -> None:
    error = {"type": "web_search_tool_result_error", "error_code": "too_many_requests"}
    async with open_claude(reply_to_search(error)) as (_, engine):
        with pytest.raises(ToolError, match=r"failed \(too many requests\)\. Try again later\."):
            await engine.search("ferry sunday")


def reply_to_fetch(content: Json, stop_reason: str = "end_turn") -> ModelReply:
    """The answer of a Claude model that has read a page, as "Web fetch tool" shows it."""
    call = {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_fetch"}
    return ModelReply(
        blocks=(
            {**call, "input": {"url": "https://ferry.example/times"}},
            {
                "type": "web_fetch_tool_result",
                "tool_use_id": "srvtoolu_2",
                "caller": {"type": "direct"},
                "content": content,
            },
            {"type": "text", "text": "Done"},
        ),
        stop_reason=stop_reason,
    )


def build_page(source: Json) -> dict[str, Any]:
    document = {"type": "document", "source": source, "title": "Ferry times"}
    return {
        "type": "web_fetch_result",
        "url": "https://ferry.example/times",
        "content": document,
        "retrieved_at": "2026-11-30T10:00:00Z",
    }


TEXT_PAGE = build_page({"type": "text", "media_type": "text/plain", "data": "Sunday at 10:40"})


@asynccontextmanager
async def open_pages(*replies: ModelReply | str) -> AsyncIterator[tuple[MessagesApi, ClaudePages]]:
    async with MessagesApi(replies, key="sk-ant-test") as api:
        claude = Claude("sk-ant-test", api.url, SteadyClock(), tries=1)

        async def ask(request: Request) -> Completion:
            return await claude.complete(request, lambda _: None, lambda _: None)

        yield api, ClaudePages(ask, "claude-haiku-4-5")
        await claude.close()


async def test_page_read_by_claude_has_its_text_and_the_request_only_its_address() -> None:
    url = "https://ferry.example/times"
    async with open_pages(reply_to_fetch(TEXT_PAGE)) as (api, pages):
        page = await pages.read(url, UNBILLED)
    assert page == ClaudePage(url, "Ferry times", "Sunday at 10:40")
    (body,) = api.requests
    assert [tool["type"] for tool in body["tools"]] == ["web_fetch_20250910"]
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": url}]}]


async def test_result_of_a_paused_web_fetch_goes_back_unchanged() -> None:
    paused = reply_to_fetch(TEXT_PAGE, "pause_turn")
    async with open_pages(paused, "Done") as (api, pages):
        page = await pages.read("https://ferry.example/times", UNBILLED)
    assert page.text == "Sunday at 10:40"
    assert api.requests[1]["messages"][-1] == {"role": "assistant", "content": list(paused.blocks)}
    assert api.refusals == []


async def test_pdf_read_by_claude_is_returned_as_a_file() -> None:
    data = b64encode(b"%PDF-1.7 times").decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    async with open_pages(reply_to_fetch(build_page(source))) as (_, pages):
        page = await pages.read("https://ferry.example/times", UNBILLED)
    assert page == ClaudePage("https://ferry.example/times", "Ferry times", "", b"%PDF-1.7 times")


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (
            reply_to_fetch(
                {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"}
            ),
            r"can't read the page \(url not accessible\)\.",
        ),
        ("I'd rather not.", "claude-haiku-4-5 didn't read the page"),
        (ModelReply.fail(400, "Your credit balance is too low."), "can't read the page: .*credit"),
    ],
)
async def test_page_that_claude_cannot_read_is_reported_with_a_sentence(
    reply: ModelReply | str, sentence: str
) -> None:
    async with open_pages(reply) as (_, pages):
        with pytest.raises(ToolError, match=sentence):
            await pages.read("https://ferry.example/times", UNBILLED)


async def test_reading_by_anthropic_without_a_claude_model_is_reported_by_the_check() -> None:
    async def read_page(_: Download) -> PageText:
        raise ToolError("no page")

    options = WebToolOptions(
        fetch=True,
        fetch_with="anthropic",
        search="",
        searxng_url="",
        key="",
        max_calls_per_day=0,
        timeout_s=20,
    )
    access = WebAccess(options, read_page)
    assert access.lacks_claude
    with pytest.raises(ToolError, match='fetch_with = "anthropic" needs a model of Anthropic'):
        await access.probe()


async def test_claude_without_credit_says_why_it_cannot_search() -> None:
    refusal = ModelReply.fail(400, "Your credit balance is too low to access the Anthropic API.")
    async with open_claude(refusal) as (_, engine):
        with pytest.raises(ToolError, match=r"The search of claude-haiku-4-5 failed: .*credit"):
            await engine.search("ferry sunday")
