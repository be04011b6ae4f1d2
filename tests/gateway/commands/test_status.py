"""/status tells the owner what is there and what is not."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.provider_harness import plugged
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


async def test_state_of_a_memory_service_is_a_clause_in_the_persons_language(home: Path) -> None:
    plugged(home, "diary")
    plugin = home / "plugins" / "diary.py"
    probe = "    async def probe(self):\n        return 'a diary on paper'\n\n"
    text = plugin.read_text(encoding="utf-8")
    plugin.write_text(text.replace("    async def ", f"{probe}    async def ", 1), encoding="utf-8")
    async with open_gateway(home, ScriptedModel(), "[memory.providers.diary]\n") as harness:
        await harness.memory.start()
        await asyncio.gather(*harness.memory._tasks)
        await harness.say("/language de")
        status = (await harness.say("/status")).text
        assert "**Gedächtnis**: diary: in Ordnung; a diary on paper" in status
        assert "**Gedächtnis**: Notizen (in Ordnung), Verlauf (in Ordnung), " in status
