"""Eight kills in the middle of traffic; two hundred are in tests/soak."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.storm import Storm, answer_all
from tests.fixtures.town import KEY, Town

KILLS = 8


@pytest.mark.slow
@pytest.mark.timeout(280)
async def test_nothing_is_lost_or_done_twice_when_the_process_is_killed(home: Path) -> None:
    async with Town.open(home, MessagesApi(answer_all, key=KEY)) as town:
        storm = Storm(town=town, seed=11)
        await storm.blow(KILLS)
        assert await storm.damage() == []
        assert len(storm.said["t"]) > KILLS
