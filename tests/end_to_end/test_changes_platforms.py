"""A change in a life told on Telegram and on Discord, without a model: Mneme asks once whether it
has changed, and shows what a correction changed. The buttons are pressed in the real clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from config.settings import Settings
from gateway.app import run_gateway
from tests.fixtures.bot_api import BotApi
from tests.fixtures.discord_api import DiscordApi

pytestmark = pytest.mark.slow

PERSON = 4242
ASKED = "Has this changed? You told me “I live in Leeds”, and now “I live in York”."


@asynccontextmanager
async def running(home: Path, variables: dict[str, str], owner: str) -> AsyncIterator[None]:
    (home / "mneme.toml").write_text(f"[owner]\n{owner}\n")
    settings = Settings.load({"MNEME_HOME": str(home), **variables})
    gateway = asyncio.create_task(run_gateway(settings, chat_only=False, has_terminal=False))
    try:
        yield
    finally:
        gateway.cancel()
        await asyncio.wait([gateway])


async def test_change_and_correction_on_telegram_are_answered_with_buttons(home: Path) -> None:
    async with BotApi() as api:
        variables = {"TELEGRAM_BOT_TOKEN": api.token, "MNEME_TELEGRAM_API_URL": api.url}

        async def say(text: str) -> None:
            count = len(api.texts(PERSON))
            api.user_says(PERSON, text)
            await api.wait_for(lambda: len(api.texts(PERSON)) > count)

        async def press(message_id: int, label: str) -> None:
            count = len(api.texts(PERSON))
            api.user_presses(PERSON, message_id, label)
            await api.wait_for(lambda: len(api.texts(PERSON)) > count)

        async def receive(beginning: str) -> int:
            def find() -> list[int]:
                return [
                    message["message_id"]
                    for message in api.messages(PERSON)
                    if message.get("text", "").startswith(beginning)
                ]

            await api.wait_for(lambda: bool(find()))
            return find()[-1]

        async with running(home, variables, f"telegram = [{PERSON}]"):
            await api.wait_for(lambda: bool(api.called("getUpdates")))
            await say("I live in Leeds")
            await say("I live in York")
            notice = await receive(ASKED)
            await press(notice, "No, both are true")
            await say("/memory facts")
            current, _, _ = api.texts(PERSON)[-1].partition("No longer true")
            assert "I live in Leeds" in current
            assert "I live in York" in current
            await say("My birthday is on 12 April")
            await say("no wait, I meant 21 April")
            notice = await receive("Corrected: “My birthday is on 12 April”")
            await press(notice, "Take back")
            await say("/memory facts birthday")
            assert "12 April" in api.texts(PERSON)[-1]


async def test_change_and_correction_on_discord_are_answered_with_buttons(home: Path) -> None:
    async with DiscordApi() as api:
        person = api.user("Ana")
        channel = api.dm(person)
        variables = {
            "DISCORD_BOT_TOKEN": api.token,
            "MNEME_DISCORD_API_URL": api.rest_url,
            "MNEME_DISCORD_GATEWAY_URL": api.gateway_url,
        }

        async def wait(is_there: Callable[[], bool]) -> None:
            await api.wait_for(is_there)

        async def say(text: str) -> None:
            count = len(api.said(channel, person))
            await api.user_says(channel, text, person)
            await wait(lambda: len(api.said(channel, person)) > count)

        async def press(message_id: str, label: str) -> None:
            count = len(api.said(channel, person))
            await api.press(channel, person, message_id, label)
            await wait(lambda: len(api.said(channel, person)) > count)

        async def receive(beginning: str) -> str:
            def find() -> list[str]:
                return [
                    str(message["id"])
                    for message in api.messages(channel, person)
                    if str(message.get("content", "")).startswith(beginning)
                ]

            await wait(lambda: bool(find()))
            return find()[-1]

        async with running(home, variables, f"discord = [{person}]"):
            await api.wait_connected()
            await say("I live in Leeds")
            await say("I live in York")
            notice = await receive(ASKED)
            await press(notice, "Yes, it has")
            await say("/memory facts")
            current, _, former = api.said(channel, person)[-1].partition("No longer true")
            assert "I live in York" in current
            assert "I live in Leeds" in former
            await say("My doctor is Dr Amin")
            await say("sorry, not Amin, it's Dr Amir")
            notice = await receive("Corrected: “My doctor is Dr Amin” → “My doctor is Dr Amir”")
            await press(notice, "Take back")
            await say("/memory facts doctor")
            current, _, _ = api.said(channel, person)[-1].partition("No longer true")
            assert "Dr Amin" in current
