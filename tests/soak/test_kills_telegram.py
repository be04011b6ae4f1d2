"""Three hundred kills on Telegram, with 60 ms between what it accepts and its response: in a direct
chat beside Discord and the terminal, and in a group, where an answer is posted as soon as it begins.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.kill_storm import KillStorm, choose_seed, open_system, telegram_place

KILLS = 300
"""Together with the other files test_kills_*.py: 1,400."""
KILLS_PER_HOME = 50
GROUP = -1001234

pytestmark = pytest.mark.timeout(2400)


@pytest.mark.parametrize("part", range(KILLS // 2 // KILLS_PER_HOME))
async def test_kills_while_all_platforms_are_answered_lose_and_double_nothing(
    home: Path, part: int
) -> None:
    async with open_system(home) as live:
        storm = KillStorm(live=live, seed=choose_seed())
        await storm.blow(KILLS_PER_HOME)
        await storm.assert_whole()


@pytest.mark.parametrize("part", range(KILLS // 2 // KILLS_PER_HOME))
async def test_kills_while_a_group_is_answered_lose_and_double_nothing(
    home: Path, part: int
) -> None:
    options = f'[access]\nrooms = ["telegram:{GROUP}"]\n'
    async with open_system(home, options=options) as live:
        live.telegram.group(GROUP)
        place = telegram_place(live, GROUP, messages=(1, 3))
        storm = KillStorm(live=live, seed=choose_seed(), places=(place,))
        await storm.blow(KILLS_PER_HOME)
        await storm.assert_whole()
