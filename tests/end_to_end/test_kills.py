"""Eight kills in the middle of traffic; two hundred are in tests/soak."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.kill_storm import KillStorm, answer_all
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi

KILLS = 8


@pytest.mark.slow
@pytest.mark.timeout(280)
async def test_nothing_is_lost_or_done_twice_when_the_process_is_killed(home: Path) -> None:
    async with LiveSystem.open(home, MessagesApi(answer_all, key=KEY)) as live:
        storm = KillStorm(live=live, seed=11)
        await storm.blow(KILLS)
        assert await storm.damage() == []
        assert len(storm.said["t"]) > KILLS
