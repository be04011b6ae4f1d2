"""What a memory gives that is not what was asked for, and how it may end, reach no turn."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.agent.prompt import describe_tools
from core.agent.tool_runner import ToolRunner
from core.errors import DeliveryError, ToolError
from core.memory.provider import MemoryProvider
from core.types import Effect, Json, Message, Session, Tool, ToolContext
from tests.fixtures.provider_harness import ANA, harness


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

    async def tools(self) -> Any:
        async def run(arguments: Json, context: ToolContext) -> str:
            return ""

        return (
            Tool(
                name="odd",
                description="Odd.",
                schema={"type": "object"},
                effects={"": Effect.READ},
                run=run,
            ),
        )


class SlowStart(Oddity):
    """Opens its files in a thread, which takes until `may_open` is set, and fails at first if told."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__("tea at five")
        self.failures = failures
        self.starts = 0
        self.may_open = threading.Event()

    async def initialize(self, folder: Path) -> None:
        self.starts += 1
        await asyncio.to_thread(self.may_open.wait)
        if self.starts <= self.failures:
            raise RuntimeError("the file is locked")


async def test_provider_that_opens_longer_than_a_call_may_take_is_opened_once(home: Path) -> None:
    provider = SlowStart()
    async with harness(home, [provider]) as one:
        guarded = one.memory.externals["oddity"]
        for _ in range(2):
            with pytest.raises(DeliveryError, match="oddity failed"):
                await guarded.call(0.05, "is_available")
        provider.may_open.set()
        assert await guarded.call(60, "is_available")
        assert provider.starts == 1


async def test_provider_whose_files_could_not_be_opened_is_opened_by_the_next_call(
    home: Path,
) -> None:
    provider = SlowStart(failures=1)
    provider.may_open.set()
    async with harness(home, [provider]) as one:
        guarded = one.memory.externals["oddity"]
        with pytest.raises(DeliveryError, match="oddity failed"):
            await guarded.call(60, "is_available")
        assert await guarded.call(60, "is_available")
        assert provider.starts == 2


async def test_provider_that_is_still_opening_is_closed_after_that(home: Path) -> None:
    class Closing(SlowStart):
        is_closed = False

        async def shutdown(self) -> None:
            self.is_closed = True

    provider = Closing()
    async with harness(home, [provider]) as one:
        with pytest.raises(DeliveryError, match="oddity failed"):
            await one.memory.externals["oddity"].call(0.05, "is_available")
        asyncio.get_running_loop().call_later(0.1, provider.may_open.set)
    assert provider.is_closed


@pytest.mark.parametrize("gift", [None, 7, "tea at five", {"tea": 5}, [None], object()])
async def test_odd_result_of_a_provider_does_not_stop_the_turn(home: Path, gift: Any) -> None:
    async with harness(home, [Oddity(gift)]) as one:
        context, rows = await one.context(ANA), list[Message]()
        lines = await one.recalled("what of the tea?")
        assert lines == []
        await one.memory.queue_prefetch("what of the tea?", context)
        await one.recalled("and then?")
        assert isinstance(await one.memory.system_prompt_block(context), str)
        assert isinstance(await one.memory.on_pre_compress(context.session, rows), str)


async def test_provider_that_raises_system_exit_cannot_end_the_process(home: Path) -> None:
    oddity = Oddity([])
    oddity.is_leaving = True
    async with harness(home, [oddity]) as one:
        (tool,) = await one.memory.tools()
        assert await one.recalled("what of the tea?") == []
        with pytest.raises(ToolError, match="Python error SystemExit"):
            await tool.run({}, await one.context(ANA))
        assert "Python error SystemExit" in one.memory.states["oddity"]


@pytest.mark.parametrize(
    ("is_leaving", "why"), [(False, "isn't a Tool"), (True, "Python error SystemExit")]
)
async def test_object_that_is_no_tool_is_left_out_and_reported(
    home: Path, is_leaving: bool, why: str
) -> None:
    class Odder(Oddity):
        async def tools(self) -> Any:
            if is_leaving:
                sys.exit(3)
            return ["odd"]

    async with harness(home, [Odder(None)]) as one:
        assert await one.memory.tools() == []
        assert why in " ".join(map(str, one.memory.warnings))


class Leaving(BaseException):
    """Passes by every catch of Exception."""


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, GeneratorExit, Leaving, asyncio.CancelledError, ExceptionGroup]
)
async def test_exception_of_a_provider_reaches_no_turn(
    home: Path, error: type[BaseException]
) -> None:
    class Thrower(Oddity):
        def _given(self) -> Any:
            raise error("out", [ValueError()]) if error is ExceptionGroup else error()

    async with harness(home, [Thrower(None)]) as one:
        context = await one.context(ANA)
        assert await one.recalled("what of the tea?") == []
        assert await one.memory.system_prompt_block(context) == ""
        assert await one.memory.on_pre_compress(context.session, []) == ""
        (tool,) = await one.memory.tools()
        with pytest.raises(ToolError):
            await tool.run({}, context)


class Blocker(Oddity):
    """Does not give the loop back: in every hook it waits as careless code does."""

    def __init__(self) -> None:
        super().__init__(None)
        self.may_go = threading.Event()

    def _given(self) -> Any:
        self.may_go.wait(20)
        return self.gift

    async def tools(self) -> Any:
        return self._given()


@pytest.mark.slow
async def test_provider_that_blocks_delays_nobody_and_its_breaker_opens(home: Path) -> None:
    blocker = Blocker()
    async with harness(home, [blocker], timeout_s=0.05) as one:
        context = await one.context(ANA)
        async with asyncio.timeout(10):
            assert await one.memory.tools() == []
            assert await one.memory.system_prompt_block(context) == ""
            assert await one.memory.on_pre_compress(context.session, []) == ""
            assert await one.recalled("what of the tea?") == []
        assert "The tools of the memory" in str(list(map(str, one.memory.warnings)))
        assert one.memory.states["oddity"].startswith("out of order")
        blocker.may_go.set()


async def test_plugin_tool_with_an_invalid_name_or_schema_is_left_out_with_a_warning(
    home: Path,
) -> None:
    class Smith(Oddity):
        async def tools(self) -> Any:
            (good,) = await super().tools()
            return [
                replace(good, name="bad name"),
                replace(good, schema={"type": "object", "x": {1}}),
                good,
            ]

    async with harness(home, [Smith("well")]) as one:
        (tool,) = await one.memory.tools()
        assert tool.name == "odd"
        assert tool.is_external
        assert not tool.is_read_only
        assert len(one.memory.warnings) == 2


async def test_tool_of_a_memory_service_is_refused_in_a_scheduled_session(home: Path) -> None:
    oddity = Oddity("well")
    async with harness(home, [oddity]) as one:
        (tool,) = await one.memory.tools()
        toolbox = ToolRunner([tool], 5)
        mine, scheduled = (
            await one.context(ANA),
            await one.context(ANA, session=await one.session(ANA, "cron")),
        )
        assert [
            offered["name"] for offered in describe_tools(toolbox.tools.values(), mine.session)
        ] == ["odd"]
        assert describe_tools(toolbox.tools.values(), scheduled.session) == ()
        call = {"name": "odd", "id": "1", "input": {}}
        assert [row.text for row in await toolbox.run([call], mine)] == ["well"]
        assert "calls an external service" in (await toolbox.run([call], scheduled))[0].text
