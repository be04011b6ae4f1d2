"""The product as a person has it: the real process, its real clients, three platforms at once, and no mercy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fixtures.bot_api import BotApi
from tests.fixtures.town import PERSON, Town


def noting(text: str) -> str:
    return f'[call memory {{"target": "memory", "action": "add", "content": "{text}"}}]'


@pytest.mark.slow
async def test_the_same_conversation_on_three_platforms_at_once_and_after_a_kill(home: Path) -> None:
    async with Town.open(home) as town:
        await town.start()
        telegram, discord = town.telegram, town.discord
        said = {
            "telegram": "the ferry leaves at nine",
            "discord": "the kayak is blue",
            "terminal": "the key is under the pot",
        }

        town.tells_telegram(said["telegram"])
        await town.tells_discord(said["discord"])
        await town.types(said["terminal"])
        await town.until(lambda: f"You said: {said['telegram']}" in telegram.texts(PERSON))
        await town.until(lambda: f"You said: {said['discord']}" in discord.said(town.channel))
        await town.until(lambda: f"You said: {said['terminal']}" in town.printed)

        town.tells_telegram(noting("Ana lives in Porto"))
        await town.tells_discord(noting("Ana paddles"))
        await town.types(noting("Ana hides keys"))
        await town.until(lambda: any("Ana lives in Porto" in text for text in telegram.texts(PERSON)))
        await town.until(lambda: any("Ana paddles" in text for text in discord.said(town.channel)))
        await town.until(lambda: any("Ana hides keys" in line for line in town.printed))

        town.tells_telegram("thank you")
        await town.tells_discord("thank you")
        await town.types("thank you")
        await town.until(lambda: "You said: thank you" in telegram.texts(PERSON))
        await town.until(lambda: "You said: thank you" in discord.said(town.channel))
        await town.until(lambda: "You said: thank you" in town.printed)

        prompts = town.query("SELECT id, system_prompt FROM sessions ORDER BY id")
        await town.kill()
        await town.start()

        # One person, three platforms: each finds what was said on the others.
        town.tells_telegram("/recall kayak")
        await town.until(lambda: any("kayak is blue" in text for text in telegram.texts(PERSON)))
        await town.types("/recall ferry")
        await town.until(lambda: any("ferry leaves at nine" in line for line in town.printed[4:]))
        call = await discord.slash(town.channel, town.discord_person, "recall", query="key under the pot")
        await town.until(lambda: any("under" in answer["content"] for answer in discord.answers(call)))
        assert all(answer["flags"] & 64 for answer in discord.answers(call)), "it is for the caller's eyes"

        town.tells_telegram("and after the restart?")
        await town.until(lambda: "You said: and after the restart?" in telegram.texts(PERSON))
        assert town.query("SELECT id, system_prompt FROM sessions ORDER BY id")[: len(prompts)] == prompts
        assert await town.stop() == 0

        assert town.model.refusals == []
        assert telegram.violations == []
        assert discord.violations == []
        for text in (*telegram.texts(PERSON), *discord.said(town.channel), *town.printed):
            assert "memory-context" not in text
        assert town.query("SELECT count(*) FROM messages WHERE text LIKE '%memory-context%'") == [(0,)]
        assert town.query("SELECT count(*) FROM inbox") == [(0,)]
        assert town.query("PRAGMA integrity_check") == [("ok",)]
        secrets = (town.telegram.token, "sk-ant-town-key", town.discord.token)
        assert not any(secret in town.log() for secret in secrets)
        assert not re.search(r"Traceback", town.log()), town.log()


@pytest.mark.slow
async def test_an_answer_streams_and_is_cut_where_the_platform_demands_it(home: Path) -> None:
    async with Town.open(home) as town:
        await town.start()
        telegram: BotApi = town.telegram
        town.tells_telegram("[long 9000]")
        await town.tells_discord("[long 5000]")
        await town.until(lambda: len(telegram.texts(PERSON)) >= 3 and len(telegram.texts(PERSON)[-1]) > 100)
        await town.until(lambda: len(town.discord.said(town.channel)) >= 3)
        assert await town.stop() == 0
        assert all(len(text.encode("utf-16-le")) // 2 <= 4096 for text in telegram.texts(PERSON))
        assert all(len(text) <= 2000 for text in town.discord.said(town.channel))
        assert sum(map(len, telegram.texts(PERSON))) > 8500
        assert telegram.violations == []
        assert town.discord.violations == []


@pytest.mark.slow
async def test_what_was_said_on_discord_while_nobody_was_at_home_is_answered_once(home: Path) -> None:
    async with Town.open(home) as town:
        discord = town.discord
        await town.start()
        await town.tells_discord("before")
        await town.until(lambda: "You said: before" in discord.said(town.channel))
        await town.kill()
        await discord.user_says(town.channel, "are you there?", town.discord_person, is_told=False)
        for _ in range(2):
            await town.start()
            await town.until(lambda: "You said: are you there?" in discord.said(town.channel))
            await town.tells_discord("and now?")
            await town.until(lambda: "You said: and now?" in discord.said(town.channel)[-1])
            assert await town.stop() == 0
            assert discord.said(town.channel).count("You said: are you there?") == 1
            assert town.query("SELECT count(*) FROM messages WHERE text = 'are you there?'") == [(1,)]
