"""/recall through the real clients of both platforms: links that open, buttons that can be
pressed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.telegram.adapter import Telegram
from core.types import Completion, Request
from gateway.services import Services
from tests.fixtures.bot_api import BotApi
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_scene import open_scene
from tests.fixtures.discord_setup import checked, make
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

FORUM = -1001234567890


@contextlib.asynccontextmanager
async def serving(harness: GatewayHarness, platform: str) -> AsyncIterator[None]:
    """The gateway with one real platform."""
    adapter = harness.path.adapters[platform]
    await adapter.open()
    listening = asyncio.create_task(adapter.listen(harness.admission, harness.commands.specs))
    try:
        yield
    finally:
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening
        await harness.turns.drain(20)
        await adapter.close()


def links(message: dict[str, Any]) -> list[str]:
    return [
        entity["url"] for entity in message.get("entities", []) if entity["type"] == "text_link"
    ]


async def test_results_of_recall_have_links_and_buttons_that_work_on_telegram(home: Path) -> None:
    def create_telegram(services: Services) -> Telegram:
        adapter = Telegram(
            token=api.token, api_url=api.url, inbox=services.inbox, clock=services.clock
        )
        adapter.poll_timeout_s = 5
        return adapter

    async with (
        BotApi() as api,
        open_gateway(
            home,
            ScriptedModel(says("A heron told me so.")),
            _room(FORUM),
            create_adapter=create_telegram,
        ) as harness,
    ):
        api.person(42, "Ana", "ana")
        api.group(FORUM, "Flat", is_forum=True)
        topic = api.topic(FORUM)

        def shown() -> list[dict[str, Any]]:
            return api.messages(FORUM, topic)

        async with serving(harness, "telegram"):
            asked = api.user_says(
                FORUM, "@mneme_bot when does the ferry leave?", user_id=42, thread_id=topic
            )
            await api.wait_for(lambda: "A heron told me so." in api.texts(FORUM, topic))
            api.user_says(FORUM, "/recall@mneme_bot ferry OR heron", user_id=42, thread_id=topic)
            found = (await api.wait_for(lambda: [m for m in shown() if "reply_markup" in m]))[-1]
            base = f"https://t.me/c/1234567890/{topic}"
            answer = next(m for m in shown() if m["text"] == "A heron told me so.")
            assert sorted(links(found)) == sorted(
                f"{base}/{number}"
                for number in (asked["message"]["message_id"], answer["message_id"])
            )
            rows = found["reply_markup"]["inline_keyboard"]
            assert [[button["text"] for button in row] for row in rows] == [["Around 1"]]
            api.user_presses(FORUM, found["message_id"], "Around 1", user_id=42)
            around = (
                await api.wait_for(lambda: [m for m in shown() if "Mneme: A heron" in m["text"]])
            )[-1]
            assert "Ana: when does the ferry leave?" in around["text"]
            assert len(links(around)) == 1
        assert api.violations == []


async def test_results_of_recall_have_links_and_buttons_that_work_on_discord(home: Path) -> None:
    async with checked(DiscordApi()) as api:
        ana, bo = api.user("Ana"), api.user("Bo")
        channel = await api.channel("general")
        async with (
            open_gateway(
                home,
                ScriptedModel(says("A heron told me so.")),
                _room(channel, "discord"),
                create_adapter=lambda services: make(api, services.inbox, services.clock),
            ) as harness,
            serving(harness, "discord"),
        ):
            await api.wait_connected()
            asked = await api.user_says(channel, f"{api.mention()} when does the ferry leave?", ana)
            await api.wait_for(lambda: "A heron told me so." in api.said(channel))
            call = await api.slash(
                channel, ana, "recall", {"from": "Ana"}, query="ferry", platform="discord"
            )
            (found,) = await api.wait_for(lambda: written(api, call))
            link = f"https://discord.com/channels/{api.world.guild_id}/{channel}/{asked}"
            assert f"> when does the **ferry** leave? [open](<{link}>)" in text_of(found)
            assert api.said(channel, viewer=bo) == api.said(channel), "it is for the caller's eyes"
            press = await api.press(channel, ana, found["id"], "Around 1")
            (around,) = await api.wait_for(lambda: written(api, press))
            assert "Mneme: A heron told me so." in text_of(around)
            call = await api.slash(
                channel, ana, "recall", {"from": "me"}, query="ferry", summary=True
            )
            (summed,) = await api.wait_for(lambda: written(api, call))
            assert text_of(summed).startswith(
                "*I couldn't summarize the results: This needs a model. Set "
            )


def written(api: DiscordApi, call: str) -> list[dict[str, Any]]:
    """What a call was answered with, once that is more than that it will be."""
    return [answer for answer in api.answers(call) if text_of(answer)]


def _room(chat_id: object, platform: str = "telegram") -> str:
    return f'rooms = ["{platform}:{chat_id}"]'


def text_of(answer: dict[str, Any]) -> str:
    """The text of a message, or else that of its cards."""
    cards = [card["description"] for card in answer["embeds"]]
    return "\n".join(cards) or str(answer["content"])


def cite_tent(request: Request) -> Completion:
    """Answer from the search's result, with a mark of the message that it returned."""
    (block,) = request.messages[-1]["content"]
    result = json.loads(block["content"])
    message_id = result["sessions"][0]["matches"][0]["message_id"]
    return says(f"It is blue [message {message_id}].")


async def test_cited_message_has_a_link_on_telegram_and_why_as_a_reply_explains_the_answer(
    home: Path,
) -> None:
    model = ScriptedModel(
        says("Noted."), calls(("session_search", {"query": "tent"})), cite_tent, says("Yes.")
    )

    def create_telegram(services: Services) -> Telegram:
        adapter = Telegram(
            token=api.token, api_url=api.url, inbox=services.inbox, clock=services.clock
        )
        adapter.poll_timeout_s = 5
        return adapter

    async with (
        BotApi() as api,
        open_gateway(home, model, _room(FORUM), create_adapter=create_telegram) as harness,
    ):
        api.person(42, "Ana", "ana")
        api.group(FORUM, "Flat")

        async def say(text: str, expected: str, **fields: Any) -> dict[str, Any]:
            known = len(api.messages(FORUM))
            api.user_says(FORUM, f"{text}", user_id=42, **fields)
            matches = await api.wait_for(
                lambda: [m for m in api.messages(FORUM)[known:] if expected in m["text"]]
            )
            return matches[-1]

        async with serving(harness, "telegram"):
            await say("@mneme_bot The tent we bought is blue.", "Noted.")
            told = next(m for m in api.messages(FORUM) if m["text"] == "Noted.")["message_id"] - 1
            await say("/new@mneme_bot", "")
            answer = await say("@mneme_bot Which colour is the tent?", "Sources: 1.")
            await say("@mneme_bot Sure?", "Yes.")
            why = await say("/why@mneme_bot", "session_search", reply_to=answer["message_id"])
        day = f"{harness.services.clock.now():%-d %B %Y}"
        assert answer["text"].startswith(f"It is blue [1].\n\nSources: 1. {day}: “")
        assert links(answer) == [f"https://t.me/c/1234567890/{told}"]
        assert "The tent we bought is blue." in why["text"]
        assert api.violations == []


async def test_cited_message_has_a_link_on_discord_and_the_menu_of_the_answer_explains_it(
    home: Path,
) -> None:
    model = ScriptedModel(
        says("Noted."), calls(("session_search", {"query": "tent"})), cite_tent, says("Yes.")
    )
    async with open_scene(home, model) as scene:
        api, channel = scene.api, scene.channel
        told = await api.user_says(
            channel, f"{api.mention()} The tent we bought is blue.", scene.ana
        )
        await scene.said(channel, "Noted.")
        await scene.read(await api.slash(channel, scene.ana, "new"))
        await api.user_says(channel, f"{api.mention()} Which colour is the tent?", scene.ana)
        text = await scene.said(channel, "Sources: 1.")
        answer = next(m for m in api.messages(channel) if m["content"] == text)
        await api.user_says(channel, f"{api.mention()} Sure?", scene.ana)
        await scene.said(channel, "Yes.")
        menu = await api.choose(channel, scene.ana, answer["id"], "Why this answer?")
        from_menu = await scene.read_text(menu)
        day = f"{scene.harness.services.clock.now():%-d %B %Y}"
        link = f"https://discord.com/channels/{api.world.guild_id}/{channel}/{told}"
    assert text.startswith(f"It is blue [1].\n\nSources: 1. [{day}](<{link}>): “")
    assert "The tent we bought is blue." in from_menu
    assert "I used `session_search`: tent" in from_menu
