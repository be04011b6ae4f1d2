"""Two hundred kills, each at another point of the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.storm import Storm, answer_all
from tests.fixtures.town import KEY, Town

KILLS = 200


@pytest.mark.timeout(3000)
async def test_two_hundred_kills(home: Path) -> None:
    async with Town.open(home, MessagesApi(answer_all, key=KEY)) as town:
        storm = Storm(town=town, seed=2026)
        await storm.blow(KILLS)
        assert await storm.damage() == []
