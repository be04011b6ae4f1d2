"""Kills of an upgrade over homes of earlier versions. `tests/soak/test_kills_upgrade.py` does more."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fixtures.home_questions import NAMES, VARIANTS
from tests.fixtures.sweeps import list_cases
from tests.fixtures.upgrade_kills import kill_upgrades

# The homes of earlier versions have a state.db.
pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

KILLS = 4
SEED = 39


@pytest.mark.parametrize("name", list_cases(NAMES, NAMES[-1]))
@pytest.mark.sweep
def test_upgrade_killed_at_random_points_is_finished_at_the_next_start(
    name: str, tmp_path: Path
) -> None:
    outcomes = kill_upgrades(name, VARIANTS[1], tmp_path, KILLS, random.Random(SEED))
    assert outcomes["earlier version"] + outcomes["new version"] == KILLS
