"""What only RetainDB has: two shapes of a result, sessions as keys, a profile, and a tool that
takes out one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ConfigError, ToolError
from core.memory.plugins import Plugins
from core.types import Scope
from tests.fixtures.provider_contract import SAID
from tests.fixtures.provider_harness import ANA, BEN, harness
from tests.services.doubles.double import running
from tests.services.doubles.retaindb import RetainDbDouble
from tests.services.registry import SERVICES

CLOUD = SERVICES["retaindb, cloud"]


async def test_forget_tool_of_a_memory_service_deletes_only_memories_of_its_own_person(
    home: Path,
) -> None:
    async with (
        running(double := RetainDbDouble()),
        harness(home, [CLOUD.made(home, double)]) as one,
        one.working(),
    ):
        await one.turn(SAID)
        await one.carried(1)
        (number,) = double.memories
        tools = {tool.name: tool for tool in await one.memory.tools()}
        mine, other, room = [
            await one.context(scope) for scope in (ANA, BEN, Scope.group("telegram", "-5"))
        ]
        for context, why in ((other, "There is no memory"), (room, "In a group")):
            with pytest.raises(ToolError, match=why):
                await tools["retaindb_forget"].run({"memory_id": number}, context)
        with pytest.raises(ToolError, match="There is no memory"):
            await tools["retaindb_forget"].run({"memory_id": "../../x"}, mine)
        assert SAID in await tools["retaindb_profile"].run({}, mine)
        assert await tools["retaindb_profile"].run({}, other) == "It has nothing to say."
        assert SAID in await tools["retaindb_context"].run({"query": "where does Ines live?"}, mine)
        assert "Porto" not in await tools["retaindb_context"].run(
            {"query": "where does Ines live?"}, other
        )
        assert len(double.texts()) == 1
        await tools["retaindb_forget"].run({"memory_id": f"retaindb:{number}"}, mine)
        assert double.texts() == []


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({}, "needs the key of its cloud"),
        ({"url": "http://127.0.0.1:3111", "project": " "}, "should be a name"),
    ],
)
def test_invalid_settings_of_a_memory_service_are_refused_with_a_sentence(
    home: Path, table: dict[str, str], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        Plugins(home).create_provider("retaindb", table, {})
