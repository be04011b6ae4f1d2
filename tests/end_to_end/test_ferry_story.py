"""A page is read, a fact of it is kept after a tap, and a later answer cites the page and its day.

The story runs over the doubles of Telegram, Discord and both model APIs, and over a real web
server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from core.models.claude import Claude
from gateway.app import run_gateway
from tests.fixtures.bot_api import BotApi
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.clock import MovableClock, SteadyClock
from tests.fixtures.discord_scene import open_scene
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.web_pages import loopback_client, serve_pages

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Brain = Callable[[dict[str, Any]], ModelReply | str]
OWNER = 42
KEY = "sk-ferry"
WAIT_S = 100.0
WEEK = timedelta(days=7)
FACT = "The Sunday ferry leaves at 10:40"
STORED = f"Fact 1 is stored: “{FACT}”."
PAGE = """<html><head><title>Ferry times</title></head><body><main><h1>Ferry times</h1>
<p>The Sunday ferry leaves at 10:40 from the harbour of Porto, and it comes back at half past six in
the evening. Please be there twenty minutes before it leaves.</p></main></body></html>"""


def make_brain(url: str) -> Brain:
    """A model that reads the page, proposes the fact, and finds it again."""
    # The last question comes first, because recalled lines repeat the earlier ones.
    steps = {
        "When does": (("facts", {"mode": "search", "query": "Sunday ferry"}), "At 10:40 [fact 1]."),
        "remember it": (("remember_this", {"content": FACT, "kind": "project"}), "I have to ask."),
        "ferry company": (("web_fetch", {"url": url}), "It leaves at 10:40."),
    }

    def answer(body: dict[str, Any]) -> ModelReply | str:
        if not body.get("tools"):
            return "[]"
        last = body["messages"][-1]
        if last["role"] == "tool" or "tool_result" in str(last):
            question = str([each for each in body["messages"] if _is_question(each)][-1])
        else:
            question = str(last)
        call, sentence = next(step for words, step in steps.items() if words in question)
        return ModelReply.call(call) if question == str(last) else sentence

    return answer


def _is_question(message: dict[str, Any]) -> bool:
    return message["role"] == "user" and "tool_result" not in str(message)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    """The clock of every gateway in the test."""
    clock = MovableClock()
    monkeypatch.setattr("gateway.services.WallClock", lambda: clock)
    return clock


def create_claude(brain: Brain) -> MessagesApi | ChatApi:
    return MessagesApi(brain, key=KEY)


def create_other(brain: Brain) -> MessagesApi | ChatApi:
    return ChatApi(brain, is_local=True)


# The server of each API, and the settings that name it.
MODELS: Mapping[str, tuple[Callable[[Brain], MessagesApi | ChatApi], str]] = {
    "Messages API": (create_claude, ""),
    "Chat Completions": (
        create_other,
        '[model]\nchat = "home/big"\nhelper = "home/big"\n'
        '[model.servers.home]\napi = "chat-completions"\nurl = "{url}"\n',
    ),
}


@pytest.mark.parametrize("api", MODELS)
async def test_fact_of_a_page_that_is_kept_by_a_tap_is_cited_with_the_page_a_week_and_a_restart_later(
    home: Path, api: str, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tools.web_client.WebClient", lambda *_: loopback_client())
    async with AsyncExitStack() as stack:
        pages = await stack.enter_async_context(serve_pages())
        pages.add("/times", PAGE)
        url = pages.url("/times")
        create_model, options = MODELS[api]
        model = create_model(make_brain(url))
        await stack.enter_async_context(model)
        telegram = await stack.enter_async_context(BotApi())
        options = options.format(url=model.url)
        (home / "mneme.toml").write_text(
            f'[general]\nzone = "UTC"\n[owner]\ntelegram = [{OWNER}]\n{options}'
        )
        variables = {
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "MNEME_TELEGRAM_API_URL": telegram.url,
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": model.url,
        }

        async def say(text: str, expected: str) -> dict[str, Any]:
            known = len(telegram.texts(OWNER))
            telegram.user_says(OWNER, text)
            await telegram.wait_for(
                lambda: any(expected in text for text in telegram.texts(OWNER)[known:]), WAIT_S
            )
            return telegram.messages(OWNER)[-1]

        async with running(home, variables):
            await say(f"What's on the ferry company's page {url} about Sunday?", "Sources: 1.")
            await say("remember it", "I have to ask.")
            await telegram.wait_for(lambda: "reply_markup" in telegram.messages(OWNER)[-1], WAIT_S)
            question = telegram.messages(OWNER)[-1]
            ((button, *_), *_) = question["reply_markup"]["inline_keyboard"]
            telegram.user_presses(OWNER, question["message_id"], button["text"])
            await telegram.wait_for(lambda: any(STORED in t for t in telegram.texts(OWNER)), WAIT_S)
        day = f"{clock.now():%-d %B %Y}"
        clock.distance = WEEK
        async with running(home, variables):
            await say("/new", "")
            answer = await say("When does the Sunday ferry leave?", "Sources: 1.")
            recalled = await say("/recall twenty minutes", "read on pages.example")
        assert (
            answer["text"] == f"At 10:40 [1].\n\nSources: 1. Ferry times, read on {day}: “{FACT}”"
        )
        for message in (answer, recalled):
            entities = message["entities"]
            assert [each["url"] for each in entities if each["type"] == "text_link"] == [url]
        assert telegram.violations == []


@asynccontextmanager
async def running(home: Path, variables: Mapping[str, str]) -> AsyncIterator[None]:
    """A gateway, stopped at the end."""
    settings = Settings.load({"MNEME_HOME": str(home), **variables})
    task = asyncio.create_task(run_gateway(settings, chat_only=False, has_terminal=False))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_fact_of_a_page_that_is_kept_by_a_press_on_discord_is_cited_a_week_later(
    home: Path, clock: MovableClock
) -> None:
    async with AsyncExitStack() as stack:
        pages = await stack.enter_async_context(serve_pages())
        pages.add("/times", PAGE)
        url = pages.url("/times")
        api = await stack.enter_async_context(MessagesApi(make_brain(url), key=KEY))
        claude = Claude(KEY, api.url, SteadyClock())
        stack.push_async_callback(claude.close)
        scene = await stack.enter_async_context(open_scene(home, claude))
        scene.api.world.now = clock.now
        assert scene.harness.services.web is not None
        scene.harness.services.web.client = loopback_client()

        async def say(text: str, is_expected: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
            """Send a message, and wait for an answer that fits."""
            known = len(scene.api.messages(scene.direct))
            await scene.api.user_says(scene.direct, text, scene.ana)

            def find_answers() -> list[dict[str, Any]]:
                messages = scene.api.messages(scene.direct)[known:]
                own = [each for each in messages if each["author"]["id"] == scene.api.bot_id]
                return [each for each in own if is_expected(each)]

            return (await scene.api.wait_for(find_answers, WAIT_S))[-1]

        def has_sources(message: dict[str, Any]) -> bool:
            return "Sources: 1." in message["content"]

        await say(f"What's on the ferry company's page {url} about Sunday?", has_sources)
        question = await say("remember it", lambda message: message["components"])
        label = question["components"][0]["components"][0]["label"]
        press = await scene.api.press(scene.direct, scene.ana, question["id"], label)
        assert await scene.read_text(press) == STORED
        day = f"{clock.now():%-d %B %Y}"
        clock.distance = WEEK
        await say("/new", lambda message: message["content"])
        answer = await say("When does the Sunday ferry leave?", has_sources)
        read_from = f"[read on pages.example](<{url}>)"
        await say("/recall twenty minutes", lambda message: read_from in json.dumps(message))
    source = f"[Ferry times](<{url}>), read on {day}: “{FACT}”"
    assert answer["content"] == f"At 10:40 [1].\n\nSources: 1. {source}"
