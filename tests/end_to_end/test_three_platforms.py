"""The product as a person has it: the real process, its real clients, three platforms at once, and
no mercy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fixtures.bot_api import BotApi
from tests.fixtures.live_system import PERSON, LiveSystem

pytestmark = pytest.mark.slow


def noting(text: str) -> str:
    return f'[call memory {{"target": "memory", "action": "add", "content": "{text}"}}]'


@pytest.mark.both_engines
async def test_the_same_conversation_on_three_platforms_at_once_and_after_a_kill(
    home: Path,
) -> None:
    async with LiveSystem.open(home) as live:
        await live.start(is_fresh=True)
        telegram, discord = live.telegram, live.discord
        said = {
            "telegram": "the ferry leaves at nine",
            "discord": "the kayak is blue",
            "terminal": "the key is under the pot",
        }

        live.tells_telegram(said["telegram"])
        await live.tells_discord(said["discord"])
        await live.types(said["terminal"])
        await live.until(lambda: f"You said: {said['telegram']}" in telegram.texts(PERSON))
        await live.until(lambda: f"You said: {said['discord']}" in discord.said(live.channel))
        await live.until(lambda: f"You said: {said['terminal']}" in live.printed)

        live.tells_telegram(noting("Ana lives in Porto"))
        await live.tells_discord(noting("Ana paddles"))
        await live.types(noting("Ana hides keys"))
        await live.until(
            lambda: any("Ana lives in Porto" in text for text in telegram.texts(PERSON))
        )
        await live.until(lambda: any("Ana paddles" in text for text in discord.said(live.channel)))
        await live.until(lambda: any("Ana hides keys" in line for line in live.printed))

        live.tells_telegram("thank you")
        await live.tells_discord("thank you")
        await live.types("thank you")
        await live.until(lambda: "You said: thank you" in telegram.texts(PERSON))
        await live.until(lambda: "You said: thank you" in discord.said(live.channel))
        await live.until(lambda: "You said: thank you" in live.printed)

        prompts = live.query("SELECT id, system_prompt FROM sessions ORDER BY id")
        await live.kill()
        await live.start()

        # One person, three platforms: each finds what was said on the others.
        live.tells_telegram("/recall kayak")
        await live.until(lambda: any("kayak is blue" in text for text in telegram.texts(PERSON)))
        await live.types("/recall ferry")
        await live.until(lambda: any("ferry leaves at nine" in line for line in live.printed[4:]))
        call = await discord.slash(
            live.channel, live.discord_person, "recall", query="key under the pot"
        )
        await live.until(
            lambda: any("under" in str(answer["embeds"]) for answer in discord.answers(call))
        )
        assert all(answer["flags"] & 64 for answer in discord.answers(call)), (
            "it is for the caller's eyes"
        )

        live.tells_telegram("and after the restart?")
        await live.until(lambda: "You said: and after the restart?" in telegram.texts(PERSON))
        assert (
            live.query("SELECT id, system_prompt FROM sessions ORDER BY id")[: len(prompts)]
            == prompts
        )
        assert await live.stop() == 0

        assert live.model.refusals == []
        assert telegram.violations == []
        assert discord.violations == []
        for text in (*telegram.texts(PERSON), *discord.said(live.channel), *live.printed):
            assert "memory-context" not in text
        assert live.query("SELECT count(*) FROM messages WHERE text LIKE '%memory-context%'") == [
            (0,)
        ]
        assert live.query("SELECT count(*) FROM inbox") == [(0,)]
        assert live.find_damage() == []
        secrets = (live.telegram.token, "sk-ant-town-key", live.discord.token)
        assert not any(secret in live.log() for secret in secrets)
        assert not re.search(r"Traceback", live.log()), live.log()


async def test_an_answer_streams_and_is_cut_where_the_platform_demands_it(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        telegram: BotApi = live.telegram
        live.tells_telegram("[long 9000]")
        await live.tells_discord("[long 5000]")
        await live.until(
            lambda: len(telegram.texts(PERSON)) >= 3 and len(telegram.texts(PERSON)[-1]) > 100
        )
        await live.until(lambda: len(live.discord.said(live.channel)) >= 3)
        assert await live.stop() == 0
        assert all(len(text.encode("utf-16-le")) // 2 <= 4096 for text in telegram.texts(PERSON))
        assert all(len(text) <= 2000 for text in live.discord.said(live.channel))
        assert sum(map(len, telegram.texts(PERSON))) > 8500
        assert telegram.violations == []
        assert live.discord.violations == []


async def test_discord_message_sent_during_an_outage_is_answered_once(
    home: Path,
) -> None:
    async with LiveSystem.open(home) as live:
        discord = live.discord
        await live.start()
        await live.tells_discord("before")
        await live.until(lambda: "You said: before" in discord.said(live.channel))
        await live.kill()
        await discord.user_says(live.channel, "are you there?", live.discord_person, is_told=False)
        for _ in range(2):
            await live.start()
            await live.until(lambda: "You said: are you there?" in discord.said(live.channel))
            await live.tells_discord("and now?")
            await live.until(lambda: "You said: and now?" in discord.said(live.channel)[-1])
            assert await live.stop() == 0
            assert discord.said(live.channel).count("You said: are you there?") == 1
            assert live.query("SELECT count(*) FROM messages WHERE text = 'are you there?'") == [
                (1,)
            ]
