"""A kill while the first part of an answer is on its way leaves one whole message there, in a Telegram
group and on Discord."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = pytest.mark.slow

GROUP = -1001234
ANSWER = "The ferry leaves at noon."


class PausingModel:
    """Begins an answer, and ends it once `hold` is set."""

    def __init__(self) -> None:
        self.hold = asyncio.Event()

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("A title")
        return ModelReply.say(ANSWER, hold=self.hold, after_events=4)


async def test_partial_answer_posted_in_a_telegram_group_before_a_kill_is_completed_after_restart(
    home: Path,
) -> None:
    model = PausingModel()
    options = f'[access]\nrooms = ["telegram:{GROUP}"]\n'
    async with LiveSystem.open(home, MessagesApi(model, key=KEY), options) as live:
        live.telegram.group(GROUP)
        await live.start()
        # The first message in a group is followed by the introduction and its own answer.
        live.telegram.user_says(GROUP, "/help@mneme_bot", user_id=PERSON)
        await live.until(lambda: len(live.telegram.messages(GROUP)) == 2)
        live.telegram.reply_delay_s = 300
        live.telegram.user_says(GROUP, "@mneme_bot when does it leave?", user_id=PERSON)
        live.telegram.user_says(GROUP, "I'd like to know, too.", user_id=7)
        await live.until(lambda: len(live.telegram.messages(GROUP)) == 3)
        assert live.telegram.texts(GROUP)[2:] != [ANSWER], "only a part is shown"
        await live.kill()
        live.telegram.reply_delay_s = 0
        await live.start()
        await live.until(lambda: live.model.held > 0)
        model.hold.set()
        await live.until(lambda: ANSWER in live.telegram.texts(GROUP))
        assert await live.stop() == 0
        assert live.telegram.texts(GROUP)[2:] == [ANSWER]


async def test_partial_answer_posted_on_discord_before_a_kill_is_completed_after_restart(
    home: Path,
) -> None:
    model = PausingModel()
    async with LiveSystem.open(home, MessagesApi(model, key=KEY)) as live:
        await live.start()
        live.discord.rest.reply_delay_s = 300
        await live.tells_discord("when does it leave?")
        await live.until(lambda: len(live.discord.said(live.channel)) == 1)
        assert live.discord.said(live.channel) != [ANSWER], "only a part is shown"
        await live.kill()
        live.discord.rest.reply_delay_s = 0
        live.discord.rest.forget_nonces()
        await live.start()
        await live.until(lambda: live.model.held > 0)
        model.hold.set()
        await live.until(lambda: ANSWER in live.discord.said(live.channel))
        assert await live.stop() == 0
        assert live.discord.said(live.channel) == [ANSWER]
