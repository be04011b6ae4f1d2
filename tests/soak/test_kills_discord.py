"""Two hundred and fifty kills on Discord, in a direct chat and in a channel of a server, with 60 ms
between what Discord accepts and its response. Half of the restarts come when a nonce no longer keeps
a message from being posted again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.kill_storm import KillStorm, choose_seed, discord_place, open_system

KILLS = 250
"""Together with the other files test_kills_*.py: 1,000."""
KILLS_PER_HOME = 50

pytestmark = pytest.mark.timeout(2400)


@pytest.mark.parametrize("part", range(KILLS // KILLS_PER_HOME))
async def test_kills_while_discord_is_answered_lose_and_double_nothing(
    home: Path, part: int
) -> None:
    async with open_system(home) as live:
        channel = await live.discord.channel("general")
        options = f'[access]\nrooms = ["discord:{channel}"]\n'
        with (home / "mneme.toml").open("a") as settings:
            settings.write(options)
        places = (
            discord_place(live, messages=(1, 2)),
            discord_place(live, channel, messages=(0, 2)),
        )
        storm = KillStorm(live=live, seed=choose_seed(), places=places)
        await storm.blow(KILLS_PER_HOME)
        await storm.assert_whole()
