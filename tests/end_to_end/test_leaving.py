"""Real processes that are told to leave while a model or a platform hangs: soon, saying what goes
on later, at once when told twice."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = pytest.mark.slow

LEFT_OPEN = "1 answer isn't finished. I'll continue after the next start."


class HangingModel:
    """Begins an answer to every question and ends it once `hold` is set; titles and the like are
    refused."""

    def __init__(self) -> None:
        self.hold = asyncio.Event()

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.fail(500)
        return ModelReply.say("The ferry leaves at noon.", hold=self.hold, after_events=3)


def said(live: LiveSystem) -> list[str]:
    return live.telegram.texts(PERSON)


async def _a_model_that_hangs(home: Path) -> None:
    model = HangingModel()
    async with LiveSystem.open(home, MessagesApi(model, key=KEY)) as live:
        await live.start()
        live.tells_telegram("When does the ferry leave?")
        await live.until(lambda: live.model.held > 0)
        assert await live.stop() == 0
        assert "Finishing 1 answer." in live.log()
        assert LEFT_OPEN in live.log()
        assert "Traceback" not in live.log()
        model.hold.set()
        await live.start()
        await live.until(lambda: any("at noon" in text for text in said(live)))


async def _an_answer_that_comes_in_time(home: Path) -> None:
    model = HangingModel()
    async with LiveSystem.open(home, MessagesApi(model, key=KEY)) as live:
        await live.start()
        live.tells_telegram("When does the ferry leave?")
        await live.until(lambda: live.model.held > 0)
        leaving = asyncio.create_task(live.stop())
        await live.until(lambda: "Finishing 1 answer." in live.log())
        model.hold.set()
        assert await leaving == 0
        assert any("at noon" in text for text in said(live))
        assert "isn't finished" not in live.log()


async def _a_platform_that_hangs(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        live.telegram.hang(method="sendMessage")
        live.tells_telegram("/help")
        await live.until(lambda: len(live.telegram.called("sendMessage")) > 0)
        assert await live.stop() == 0
        assert LEFT_OPEN in live.log()
        await live.start()
        await live.until(lambda: any("Some things to try" in text for text in said(live)))


async def test_shutdown_is_quick_and_sends_an_answer_that_comes_in_time(tmp_path: Path) -> None:
    """Side by side, because each waits for seconds."""
    async with asyncio.TaskGroup() as together:
        for case in (_a_model_that_hangs, _an_answer_that_comes_in_time, _a_platform_that_hangs):
            home = tmp_path / case.__name__
            home.mkdir(mode=0o700)
            together.create_task(case(home))


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
async def test_second_signal_terminates_the_gateway_at_once(
    home: Path, second: signal.Signals
) -> None:
    async with LiveSystem.open(home, MessagesApi(HangingModel(), key=KEY)) as live:
        await live.start()
        live.tells_telegram("When does the ferry leave?")
        await live.until(lambda: live.model.held > 0)
        assert live.process is not None
        live.process.send_signal(signal.SIGINT)
        await live.until(lambda: "Finishing 1 answer." in live.log())
        live.process.send_signal(second)
        assert await asyncio.to_thread(live.process.wait) == 128 + second
        assert live.log().count(LEFT_OPEN) == 1
        assert "Traceback" not in live.log()


async def test_gateway_with_one_refused_token_exits_with_status_0_on_a_signal(
    home: Path,
) -> None:
    async with LiveSystem.open(home) as live:
        live.discord.rest.token = "another"
        starting = asyncio.create_task(live.start())
        await live.until(
            lambda: (
                "a platform refuses the token" in live.log()
                and bool(live.telegram.called("getUpdates"))
            )
        )
        starting.cancel()
        assert await live.stop() == 0
