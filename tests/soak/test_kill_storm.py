"""Two hundred kills, each at another point of the work, with 60 ms between what Telegram accepts
and its reply."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.kill_storm import KillStorm, answer_all
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi

KILLS = 200
GROUP = -1001234
GROUP_KILLS = 130


@pytest.mark.timeout(3000)
async def test_two_hundred_kills(home: Path) -> None:
    async with LiveSystem.open(home, MessagesApi(answer_all, key=KEY)) as live:
        storm = KillStorm(live=live, seed=2026)
        await storm.blow(KILLS)
        assert await storm.damage() == []


@pytest.mark.timeout(3000)
async def test_kills_while_a_group_is_answered(home: Path) -> None:
    """There an answer is posted as soon as it begins, and then edited."""
    options = f'[access]\nrooms = ["telegram:{GROUP}"]\n'
    async with LiveSystem.open(home, MessagesApi(answer_all, key=KEY), options) as live:
        live.telegram.group(GROUP)
        storm = KillStorm(live=live, seed=2027, chat_id=GROUP)
        await storm.blow(GROUP_KILLS)
        assert await storm.damage() == []
