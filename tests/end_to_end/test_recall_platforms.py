"""/recall through the real clients of both platforms: links that open, buttons that can be
pressed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.telegram.adapter import Telegram
from gateway.services import Services
from tests.fixtures.bot_api import BotApi
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, make
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

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
