"""What only openviking has: files, a mode that doesn't separate users, and tools over the addresses of
one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ConfigError, ToolError
from core.memory.plugins import Plugins
from core.types import Scope
from tests.fixtures.provider_contract import ASKED, SAID
from tests.fixtures.provider_harness import ANA, BEN, harness
from tests.services.doubles.double import running
from tests.services.doubles.openviking import OpenVikingDouble
from tests.services.registry import SERVICES

VIKING = SERVICES["openviking"]


async def test_openviking_server_without_separate_users_serves_only_the_first_person(
    home: Path,
) -> None:
    async with running(double := OpenVikingDouble(auth_mode="dev")):
        for is_restarted in (False, True):
            async with harness(home, [VIKING.made(home, double)]) as one, one.working():
                await one.memory.start()
                if not is_restarted:
                    await one.turn(SAID)
                    await one.carried(1)
                before = len(one.ends)
                await one.turn("Ben hides the harpoon in the shed.", scope=BEN)
                await one.carried(before + 1)
                assert one.ends[-1] == "buried"
                assert "auth_mode to trusted" in (await one.outbox.count_items()).error
                assert "Porto" in "\n".join(await one.recalled(ASKED))
                assert await one.recalled(ASKED, BEN) == []
                assert not any("harpoon" in text for text in double.texts())
                state = await one.memory.externals["openviking"].call(5, "probe")
                assert "serves one person only" in str(state)


async def test_overviews_of_folders_hide_no_file(home: Path) -> None:
    async with (
        running(double := OpenVikingDouble()),
        harness(home, [VIKING.made(home, double)]) as one,
        one.working(),
    ):
        await one.turn(SAID)
        await one.carried(1)
        double.overviews = 10
        (line,) = await one.recalled(ASKED)
        assert SAID in line
        tools = {tool.name: tool for tool in await one.memory.tools()}
        shown = await tools["viking_search"].run({"query": ASKED}, await one.context(ANA))
        assert SAID in shown
        assert "overview" not in shown


async def test_openviking_tools_read_and_delete_only_files_of_their_own_person(home: Path) -> None:
    async with (
        running(double := OpenVikingDouble()),
        harness(home, [VIKING.made(home, double)]) as one,
        one.working(),
    ):
        await one.turn(SAID)
        await one.carried(1)
        tools = {tool.name: tool for tool in await one.memory.tools()}
        mine, other, room = [
            await one.context(scope) for scope in (ANA, BEN, Scope.group("telegram", "-5"))
        ]
        ((_, uri),) = double.files
        assert uri in await tools["viking_search"].run({"query": ASKED}, mine)
        assert SAID in await tools["viking_read"].run({"uri": f"openviking:{uri}"}, mine)
        for tool, context, why in (
            ("viking_read", other, "no file at this address"),
            ("viking_forget", other, "no memory with this id"),
            ("viking_forget", room, "In a group"),
        ):
            with pytest.raises(ToolError, match=why):
                await tools[tool].run({"uri": uri}, context)
        for wrong in ("viking://~/memories", "viking://~/memories/../../ben/x.md", "/etc/passwd"):
            with pytest.raises(ToolError, match="as viking_search shows it"):
                await tools["viking_forget"].run({"uri": wrong}, mine)
        await tools["viking_forget"].run({"uri": uri}, mine)
        assert double.texts() == []


def test_invalid_settings_of_a_memory_service_are_refused_with_a_sentence(home: Path) -> None:
    with pytest.raises(ConfigError, match="should be a name"):
        Plugins(home).create_provider("openviking", {"account": "a/b"}, {})
