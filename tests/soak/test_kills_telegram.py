"""Three hundred kills on Telegram, with 60 ms between what it accepts and its response: in a direct
chat beside Discord and the terminal, and in a group, where an answer is posted as soon as it begins.
Some of the messages in the direct chat ask for calls of writing tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.kill_storm import KillStorm, choose_seed, open_system, telegram_place
from tests.fixtures.tool_caller import SHARE, ToolCaller

KILLS = 300
"""Together with the other files test_kills_*.py: 1,400."""
KILLS_PER_HOME = 50
GROUP = -1001234

pytestmark = pytest.mark.timeout(2400)


@pytest.mark.parametrize("part", range(KILLS // 2 // KILLS_PER_HOME))
async def test_kills_while_all_platforms_are_answered_lose_and_double_nothing(
    home: Path, part: int
) -> None:
    caller = ToolCaller(("a note", "a fact", "a reminder"), share=SHARE)
    async with open_system(home, caller) as live:
        caller.live = live
        storm = KillStorm(live=live, seed=choose_seed(), phrase=caller.phrase)
        await storm.blow(KILLS_PER_HOME)
        assert caller.list_damage() == [], storm.describe()
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
