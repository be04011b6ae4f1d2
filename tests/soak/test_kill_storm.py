"""Two hundred kills, each at another point of the work, with 60 ms between what Telegram accepts
and its reply."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.kill_storm import KillStorm, answer_all
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi

KILLS = 200


@pytest.mark.timeout(3000)
async def test_two_hundred_kills(home: Path) -> None:
    async with LiveSystem.open(home, MessagesApi(answer_all, key=KEY)) as live:
        storm = KillStorm(live=live, seed=2026)
        await storm.blow(KILLS)
        assert await storm.damage() == []
