"""A whole town for the house: Telegram, Discord and the Messages API on loopback, and the real process among them.

The process is started as a person would start it, spoken to over all its platforms, and killed without warning.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from core.store.indexes import register
from tests.doubles.bot_api import BotApi
from tests.doubles.discord_api import DiscordApi
from tests.doubles.messages_api import MessagesApi

ROOT = Path(__file__).resolve().parents[2]
PERSON = 4242
KEY = "sk-ant-town-key"
START_S = 30.0
STOP_S = 40.0


class Town:
    """Use `Town.open`. `person` writes on Telegram as user 4242, on Discord in `channel`, and at the terminal."""

    def __init__(self, home: Path, telegram: BotApi, discord: DiscordApi, model: MessagesApi) -> None:
        self.home = home
        self.telegram = telegram
        self.discord = discord
        self.model = model
        self.discord_person = discord.user("Ana")
        self.channel = discord.dm(self.discord_person)
        self.process: asyncio.subprocess.Process | None = None
        self.printed: list[str] = []
        """Lines that the terminal showed, over all starts."""
        self._readers: list[asyncio.Task[None]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, home: Path, model: MessagesApi | None = None, options: str = "") -> AsyncIterator[Town]:
        """The town with nobody at home yet: `start` moves the house in."""
        async with (
            BotApi() as telegram,
            DiscordApi() as discord,
            model or MessagesApi(key=KEY) as messages,
        ):
            town = cls(home, telegram, discord, messages)
            (home / "mneme.toml").write_text(
                f"[owner]\ntelegram = [{PERSON}]\ndiscord = [{town.discord_person}]\n"
                f'[general]\nzone = "Europe/Lisbon"\n{options}'
            )
            try:
                yield town
            finally:
                await town.kill()

    async def start(self) -> None:
        """Starts ``mneme run --terminal`` and waits until every platform is connected."""
        environment = {
            "PATH": os.environ["PATH"],
            "MNEME_HOME": str(self.home),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.model.url,
            "TELEGRAM_BOT_TOKEN": self.telegram.token,
            "MNEME_TELEGRAM_API_URL": self.telegram.url,
            "DISCORD_BOT_TOKEN": self.discord.token,
            "MNEME_DISCORD_API_URL": self.discord.rest_url,
            "MNEME_DISCORD_GATEWAY_URL": self.discord.gateway_url,
        }
        polls = len(self.telegram.called("getUpdates"))
        log = (self.home / "process.log").open("ab")
        try:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "gateway.cli",
                "run",
                "--terminal",
                cwd=ROOT,
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        finally:
            log.close()
        self._readers.append(asyncio.create_task(self._read(self.process)))
        await self.telegram.wait_for(lambda: len(self.telegram.called("getUpdates")) > polls, START_S)
        await self.discord.wait_for(lambda: self.discord.gateway.is_connected, START_S)

    async def kill(self) -> None:
        """SIGKILL: no goodbye, no flush."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
            await self.process.wait()
        await self.discord.gateway.drop()
        await asyncio.gather(*self._readers)
        self._readers.clear()

    async def stop(self) -> int:
        """SIGTERM: the house drains and leaves; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_S):
            code = await self.process.wait()
        await asyncio.gather(*self._readers)
        self._readers.clear()
        return code

    async def types(self, line: str) -> None:
        """Types a line at the terminal."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()

    async def tells_discord(self, text: str) -> str:
        """Writes in the direct channel on Discord; returns the message id."""
        return await self.discord.user_says(self.channel, text, self.discord_person)

    def tells_telegram(self, text: str) -> None:
        """Writes to the bot on Telegram."""
        self.telegram.user_says(PERSON, text)

    async def until(self, is_so: Callable[[], bool], timeout_s: float = 20.0) -> None:
        """Waits for something that shows on any platform."""
        try:
            await self.discord.wait_for(is_so, timeout_s)
        except TimeoutError:
            raise AssertionError(f"it did not happen; the process said:\n{self.log()[-4000:]}") from None

    def log(self) -> str:
        """What the process wrote to its log."""
        return "".join(path.read_text(errors="replace") for path in self.home.glob("*.log"))

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Looks into state.db from outside."""
        connection = sqlite3.connect(self.home / "state.db")
        try:
            register(connection)
            return [tuple(row) for row in connection.execute(sql)]
        finally:
            connection.close()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.printed.append(line.decode(errors="replace").rstrip("\n"))
