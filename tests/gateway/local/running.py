"""A gateway with Telegram and a model, as a real process, for tests of what talks to it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fixtures.bot_api import BotApi
from tests.fixtures.forked import ROOT, ForkedProcess
from tests.fixtures.messages_api import MessagesApi

KEY = "sk-ant-local"
PERSON = 4242


class RunningGateway:
    """Use `open_gateway`."""

    def __init__(self, home: Path, environ: Mapping[str, str], telegram: BotApi) -> None:
        self.home = home
        self.environ = environ
        self.telegram = telegram
        self.process: ForkedProcess | None = None

    async def start(self) -> None:
        """Start ``mneme run`` and wait until it polls Telegram."""
        polls = len(self.telegram.called("getUpdates"))
        with open(os.devnull, "r+b") as null, (self.home / "process.log").open("ab") as log:  # noqa: ASYNC230
            streams = (null.fileno(), log.fileno(), log.fileno())
            self.process = await asyncio.to_thread(
                ForkedProcess, ("run",), self.environ, ROOT, streams
            )
        await self.telegram.wait_for(lambda: len(self.telegram.called("getUpdates")) > polls, 90.0)

    async def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            assert await asyncio.to_thread(self.process.wait, 60.0) is not None
        self.process = None


@asynccontextmanager
async def open_gateway(
    home: Path, model: MessagesApi | None = None, options: str = ""
) -> AsyncIterator[RunningGateway]:
    """Run a gateway in this home. `model` must accept `KEY`."""
    (home / "mneme.toml").write_text(
        f'[owner]\ntelegram = [{PERSON}]\n[general]\nzone = "Europe/Lisbon"\n{options}'
    )
    async with BotApi() as telegram, model or MessagesApi(key=KEY) as messages:
        environ = {
            "PATH": os.environ["PATH"],
            "MNEME_HOME": str(home),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": messages.url,
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "MNEME_TELEGRAM_API_URL": telegram.url,
        }
        gateway = RunningGateway(home, environ, telegram)
        try:
            await gateway.start()
            yield gateway
        finally:
            await gateway.stop(signal.SIGKILL)
