"""Two hundred and fifty kills while the model calls tools that write: notes, facts, reminders and
skills. Each call takes effect once, and the model is never told the opposite of what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.kill_storm import (
    KillStorm,
    Place,
    choose_seed,
    discord_place,
    open_system,
    telegram_place,
)
from tests.fixtures.tool_caller import ToolCaller

KILLS = 250
"""Together with the other files test_kills_*.py: 1,400."""
MIXES = (
    ("a note",),
    ("a fact",),
    ("a reminder",),
    ("a skill",),
    ("a note", "a fact", "a reminder"),
)
"""The kinds of calls in each home. A skill waits for a yes if the conversation has anything but what
a person typed there."""
ROOM = "[memory]\nmemory_chars = 20000\n[skills]\nindex_chars = 40000\n"
"""Room for the notes and skills of a home."""

pytestmark = pytest.mark.timeout(2400)


@pytest.mark.parametrize("names", MIXES, ids=" and ".join)
async def test_tool_calls_interrupted_by_kills_take_effect_once_and_are_reported_correctly(
    home: Path, names: tuple[str, ...]
) -> None:
    caller = ToolCaller(names)
    async with open_system(home, caller, ROOM) as live:
        caller.live = live
        places: tuple[Place, ...] = (telegram_place(live, messages=(1, 2)),)
        if "a skill" not in names:
            places += (discord_place(live, messages=(0, 1)),)
        storm = KillStorm(live=live, seed=choose_seed(), places=places, phrase=caller.phrase)
        await storm.blow(KILLS // len(MIXES))
        assert caller.list_damage() == [], storm.describe()
        await storm.assert_whole()
