"""Three hundred kills of three gateways that share a PostgreSQL database, with 60 ms between what
Telegram accepts and its response.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fixtures.gateways import Storm, open_gateways
from tests.fixtures.kill_storm import REPLY_DELAY_S, answer_all, choose_seed
from tests.fixtures.live_system import KEY
from tests.fixtures.messages_api import MessagesApi

KILLS = 300
"""Together with the other files test_kills_*.py: 1,400."""
KILLS_PER_HOME = 50
PEOPLE = [5000 + number for number in range(6)]

pytestmark = pytest.mark.timeout(3600)


@pytest.mark.parametrize("part", range(KILLS // KILLS_PER_HOME))
async def test_kills_of_gateways_lose_double_and_reorder_nothing(
    home: Path, postgres_url: str, part: int
) -> None:
    model = MessagesApi(answer_all, key=KEY)
    async with open_gateways(home, postgres_url, model, len(PEOPLE)) as gateways:
        for _ in range(3):
            await gateways.start()
        gateways.telegram.reply_delay_s = REPLY_DELAY_S
        storm = Storm(gateways, PEOPLE, choose_seed())
        for _ in range(KILLS_PER_HOME):
            storm.say_something()
            await asyncio.sleep(storm.chance.random())
            await gateways.kill(storm.chance.choice(gateways.living))
            storm.say_something()
            await gateways.start()
        await storm.settle()
        assert storm.list_damage() == []
