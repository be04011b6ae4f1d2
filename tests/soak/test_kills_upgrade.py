"""50 kills of an upgrade over every home of an earlier version."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fixtures.home_questions import NAMES, VARIANTS
from tests.fixtures.kill_storm import choose_seed
from tests.fixtures.upgrade_kills import kill_upgrades

KILLS = 50


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", NAMES)
def test_upgrade_killed_at_50_random_points_is_finished_at_the_next_start(
    name: str, variant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = kill_upgrades(name, variant, tmp_path, KILLS, random.Random(choose_seed()))
    with capsys.disabled():
        print(f"\n{name} {variant}: {dict(outcomes)}")  # noqa: T201
    assert outcomes["earlier version"] + outcomes["new version"] == KILLS
