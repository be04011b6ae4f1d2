"""A process that may open few files answers everybody, one after another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.kill_storm import answer_all
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi

pytestmark = pytest.mark.slow

PEOPLE = range(5001, 5061)
OPEN_FILES = 32


async def test_sixty_people_at_once_are_answered_with_32_open_files(home: Path) -> None:
    listed = ", ".join(f'"telegram:{person}"' for person in PEOPLE)
    model = MessagesApi(answer_all, key=KEY)
    async with LiveSystem.open(home, model, f"[access]\npeople = [{listed}]\n") as live:
        await live.start(OPEN_FILES=str(OPEN_FILES))

        def is_answered(person: int, token: str) -> bool:
            return any(token in text for text in live.telegram.texts(person))

        for person in PEOPLE:
            live.telegram.user_says(person, f"message t{person}q0 please")
        await live.until(lambda: all(is_answered(each, f"t{each}q0") for each in PEOPLE), 60)
        # Nobody is mute afterwards.
        for person in PEOPLE:
            live.telegram.user_says(person, f"message t{person}q1 please")
        await live.until(lambda: all(is_answered(each, f"t{each}q1") for each in PEOPLE), 60)
        assert "Too many open files" not in live.log()
        assert await live.stop() == 0


@pytest.mark.sweep
async def test_sixty_people_on_discord_at_once_are_answered_with_32_open_files(home: Path) -> None:
    async with LiveSystem.open(home, MessagesApi(answer_all, key=KEY)) as live:
        users = [live.discord.user(f"Person {number}") for number in range(len(PEOPLE))]
        channels = {user: live.discord.dm(user) for user in users}
        listed = ", ".join(f'"discord:{user}"' for user in users)
        with (home / "mneme.toml").open("a") as settings:
            settings.write(f"[access]\npeople = [{listed}]\n")
        live.discord.rest.reply_delay_s = 0.05
        await live.start(OPEN_FILES=str(OPEN_FILES))

        def are_answered(round_number: int) -> bool:
            return all(
                any(f"d{number}q{round_number}" in text for text in live.discord.said(channel))
                for number, channel in enumerate(channels.values())
            )

        for round_number in range(2):
            for number, (user, channel) in enumerate(channels.items()):
                text = f"message d{number}q{round_number} please"
                await live.discord.user_says(channel, text, user)
            await live.until(lambda number=round_number: are_answered(number), 120)  # type: ignore[misc]
        assert "Too many open files" not in live.log()
        assert await live.stop() == 0
