"""Errors of web pages, searches and MCP servers: people read them in their language."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from config.tool_options import McpServer
from core.errors import MnemeError
from core.tools.search_engines import BraveEngine, SearchEngine, SearxngEngine
from gateway.texts.catalog import list_languages, load_texts
from tests.fixtures.english_words import find_english
from tests.fixtures.search_engines import BRAVE_TOKEN, SearchServer
from tests.fixtures.web_pages import PageServer, loopback_client, serve_pages
from tests.tools.test_mcp_client import connect, stdio_options

pytestmark = pytest.mark.slow

LANGUAGES = [language for language in list_languages() if language != "en"]
Attempt = Callable[[PageServer, Path], Awaitable[object]]


async def download(pages: PageServer, url: str) -> None:
    pages.redirect("/loop", "/loop")
    pages.add("/robots.txt", "User-agent: *\nDisallow: /private/", "text/plain")
    pages.add("/picture", b"\0", "image/png")
    pages.add("/bomb", b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    await loopback_client().download(pages.url(url) if url.startswith("/") else url)


async def search(engine: SearchEngine) -> None:
    try:
        await engine.search("ferry")
    finally:
        await engine.close()


async def search_without_json(pages: PageServer) -> None:
    SearchServer(pages).allows_json = False
    await search(SearxngEngine(f"http://127.0.0.1:{pages.port}"))


async def search_with_blocked_engines(pages: PageServer) -> None:
    SearchServer(pages).unresponsive_engines = [("duckduckgo", "CAPTCHA")]
    await search(SearxngEngine(f"http://127.0.0.1:{pages.port}"))


async def search_brave(pages: PageServer) -> None:
    SearchServer(pages)
    await search(BraveEngine(f"{BRAVE_TOKEN}x", f"http://127.0.0.1:{pages.port}"))


async def list_tools(options: McpServer, attempts: int = 1) -> None:
    async with connect(options) as connection:
        for attempt in range(attempts):
            try:
                await connection.list_tools()
            except MnemeError:
                if attempt == attempts - 1:
                    raise


async def call_slow_tool(folder: Path) -> None:
    async with connect(stdio_options(folder / "diary")) as diary:
        await diary.list_tools()
        diary._options = stdio_options(folder / "diary", timeout_s=0.2)
        await diary.call("wait", {"seconds": 1})


FAILURES: dict[str, Attempt] = {
    "status": lambda pages, _: download(pages, "/missing"),
    "loop": lambda pages, _: download(pages, "/loop"),
    "robots": lambda pages, _: download(pages, "/private/a"),
    "type": lambda pages, _: download(pages, "/picture"),
    "compressed": lambda pages, _: download(pages, "/bomb"),
    "unreachable": lambda pages, _: download(pages, "http://pages.example:1024/"),
    "no host": lambda pages, _: download(pages, "http://nowhere.example/"),
    "local": lambda pages, _: download(pages, f"http://inside:{pages.port}/"),
    "no address": lambda pages, _: download(pages, "ferry"),
    "login": lambda pages, _: download(pages, "http://tom:key@pages.example/"),
    "engine off": lambda pages, _: search(SearxngEngine("http://127.0.0.1:9")),
    "no JSON": lambda pages, _: search_without_json(pages),
    "blocked": lambda pages, _: search_with_blocked_engines(pages),
    "token": lambda pages, _: search_brave(pages),
    "no program": lambda pages, _: list_tools(McpServer(command="/does/not/exist")),
    "paused": lambda pages, _: list_tools(McpServer(command="/does/not/exist"), 2),
    "no variable": lambda _, folder: list_tools(
        stdio_options(folder, env={"DIARY_KEY": "${NOT_SET}"})
    ),
    "MCP off": lambda pages, _: list_tools(McpServer(url="http://127.0.0.1:9")),
    "slow": lambda _, folder: call_slow_tool(folder),
}


async def test_errors_of_the_web_searches_and_mcp_servers_are_worded_in_every_language(
    tmp_path: Path,
) -> None:
    wrong = []
    for name, attempt in FAILURES.items():
        async with serve_pages() as pages:
            with pytest.raises(MnemeError) as failure:
                await attempt(pages, tmp_path)
        for language in LANGUAGES:
            sentence = load_texts(language).word(failure.value)
            words = find_english(sentence, language, ("diary", "duckduckgo", "captcha", "inside"))
            if words or sentence == str(failure.value):
                wrong.append((name, language, words, sentence))
    assert wrong == [], "\n".join(map(str, wrong))
