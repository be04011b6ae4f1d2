"""Thousands of odd lines, in several lives of the house."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.test_odd_lines import babble


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [2, 3, 4])
async def test_long_random_odd_input_does_not_break_the_gateway(home: Path, seed: int) -> None:
    await babble(home, 1500, seed)
