"""/status tells the owner what is there and what is not."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel


async def test_the_model_is_named_and_what_is_not_checkpointed_counts(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(
        home, model, '[model]\nchat = "claude-sonnet-5-5"\nhelper = "claude-haiku-5-5"\n'
    ) as harness:
        await harness.say("x" * 200_000)
        status = (await harness.say("/status")).text
        assert "**model**: claude-sonnet-5-5; for small tasks claude-haiku-5-5" in status
        assert "**database**: " in status
        assert "**database**: 0.0 MB" not in status
