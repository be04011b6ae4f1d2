"""The button “Correct” through the real clients of both platforms: pressed, and answered with the next message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.telegram.adapter import Telegram
from tests.end_to_end.test_recall_platforms import serving
from tests.fixtures.bot_api import BotApi
from tests.fixtures.corridor import open_corridor
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_stage import checked, make

pytestmark = pytest.mark.slow


async def test_in_a_telegram_chat(home: Path) -> None:
    async with BotApi() as api, open_corridor(home) as corridor:
        api.person(42, "Ana", "ana")
        adapter = Telegram(
            token=api.token,
            api_url=api.url,
            inbox=corridor.services.inbox,
            clock=corridor.services.clock,
            poll_timeout_s=5,
        )

        async def shown(part: str) -> dict[str, Any]:
            return (await api.wait_for(lambda: [m for m in api.messages(42) if part in m["text"]]))[-1]

        async with serving(corridor, adapter):
            api.user_says(42, "I live in Lisbon", user_id=42)
            await shown("ok")
            await corridor.router.drained()  # facts are kept after the answer
            api.user_says(42, "/memory why f1", user_id=42)
            card = await shown("You said it")
            api.user_presses(42, card["message_id"], "Correct", user_id=42)
            await shown("What is right?")
            api.user_says(42, "I live in Braga", user_id=42)
            fixed = await shown("Corrected:")
            assert "Before: I live in Lisbon" in fixed["text"]
        assert api.violations == []


async def test_in_a_discord_channel_where_only_a_mention_reaches_us(home: Path) -> None:
    async with checked(DiscordApi()) as api:
        ana = api.user("Ana")
        channel = await api.channel("general")
        async with (
            open_corridor(home, options=f'rooms = ["discord:{channel}"]\n') as corridor,
            serving(corridor, make(api, corridor.services.clock)),
        ):
            await api.wait_connected()
            await api.user_says(channel, f"{api.mention()} I live in Lisbon", ana)
            await api.wait_for(lambda: "ok" in api.said(channel))
            await corridor.router.drained()
            call = await api.slash(channel, ana, "memory", action="why", text="f1")
            (card,) = await api.wait_for(lambda: api.answers(call))
            press = await api.press(channel, ana, card["id"], "Correct")
            (asked,) = await api.wait_for(lambda: api.answers(press))
            assert "with a mention of me" in asked["content"]
            await api.user_says(channel, "I live on a boat", ana)
            await api.user_says(channel, f"{api.mention()} I live in Braga", ana)
            (fixed,) = await api.wait_for(lambda: [text for text in api.said(channel) if "Corrected:" in text])
            assert "I live in Braga" in fixed
            assert "Before: I live in Lisbon" in fixed
