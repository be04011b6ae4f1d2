"""What a memory gives that is not what was asked for, and how it may end, reach no turn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from core.errors import ToolError
from core.memory.provider import MemoryProvider
from core.types import Json, Message, Session, Tool, ToolContext
from tests.doubles.remembrance import ANA, remembrance


class Oddity(MemoryProvider):
    """Gives `gift` whatever it is asked for; it is not what the interface says."""

    name = "oddity"

    def __init__(self, gift: Any) -> None:
        self.gift = gift
        self.is_leaving = False

    def _given(self) -> Any:
        if self.is_leaving:
            sys.exit(3)
        return self.gift

    async def is_available(self) -> bool:
        return True

    async def initialize(self, folder: Path) -> None:
        return None

    async def prefetch(self, text: str, context: ToolContext) -> Any:
        return self._given()

    async def queue_prefetch(self, text: str, context: ToolContext) -> Any:
        return self._given()

    async def system_prompt_block(self, context: ToolContext) -> Any:
        return self._given()

    async def on_pre_compress(self, session: Session, messages: Any) -> Any:
        return self._given()

    async def call_tool(self, name: str, arguments: Json, context: ToolContext) -> Any:
        return self._given()

    def tools(self) -> Any:
        async def run(arguments: Json, context: ToolContext) -> str:
            return ""

        return (Tool(name="odd", description="Odd.", schema={"type": "object"}, run=run),)


@pytest.mark.parametrize("gift", [None, 7, "tea at five", {"tea": 5}, [None], object()])
async def test_whatever_it_gives_the_turn_goes_on(home: Path, gift: Any) -> None:
    async with remembrance(home, [Oddity(gift)]) as one:
        context, rows = await one.context(ANA), list[Message]()
        lines = await one.recalled("what of the tea?")
        assert lines == [] or gift == [None]
        await one.memory.queue_prefetch("what of the tea?", context)
        await one.recalled("and then?")
        assert isinstance(await one.memory.system_prompt_block(context), str)
        assert isinstance(await one.memory.on_pre_compress(context.session, rows), str)


async def test_it_cannot_end_the_process(home: Path) -> None:
    oddity = Oddity([])
    oddity.is_leaving = True
    async with remembrance(home, [oddity]) as one:
        (tool,) = one.memory.tools_beside(())
        assert await one.recalled("what of the tea?") == []
        with pytest.raises(ToolError, match="wanted to end the process"):
            await tool.run({}, await one.context(ANA))
        assert "end the process" in one.memory.states["oddity"]


@pytest.mark.parametrize(("is_leaving", "why"), [(False, "no Tool"), (True, "end the process")])
async def test_what_is_no_tool_is_left_out_and_said(home: Path, is_leaving: bool, why: str) -> None:
    class Odder(Oddity):
        def tools(self) -> Any:
            if is_leaving:
                sys.exit(3)
            return ["odd"]

    async with remembrance(home, [Odder(None)]) as one:
        assert one.memory.tools_beside(()) == []
        assert why in str(one.memory.warnings)
