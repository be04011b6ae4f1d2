"""Whatever is typed, the answer is an answer: no apology, no lost line, a sound database."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.odd_lines import line

pytestmark = pytest.mark.slow

LINES = 120


async def babble(home: Path, lines: int, seed: int) -> None:
    """Types `lines` lines as three people; each must be answered without an apology."""
    chance = random.Random(seed)
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        for number in range(lines):
            typed = line(chance)
            reply = await harness.say(typed, chance.choice(("42", "7")), message_id=f"m{number}")
            assert "went wrong" not in reply.text, f"seed {seed}, line {number}: {typed[:200]!r}"
            assert reply.text.strip(), f"seed {seed}, line {number}: {typed[:200]!r}"
        assert await harness.services.inbox.list_waiting() == []
        assert (await harness.services.outbox.count_items()).due == 0
        assert await harness.services.recall.verify() == []


@pytest.mark.sweep
async def test_random_odd_input_lines_do_not_break_the_gateway(home: Path) -> None:
    await babble(home, LINES, seed=1)
