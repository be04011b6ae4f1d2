"""A refused token never ends the process: the platform counts as off, the owner is told on another
one, and the token is tried again. The real Telegram client talks to a Bot API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.telegram.adapter import Telegram
from core.ports import Reply
from core.store.mailbox import Inbox
from core.store.sqlite.database import Database
from core.types import Inbound
from gateway import supervisor as supervisor_module
from gateway.supervisor import Supervisor
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.live_system import PERSON, LiveSystem
from tests.fixtures.new_database import place
from tests.fixtures.scheduler_harness import Watch

pytestmark = pytest.mark.slow


class SilentSink:
    """Fills the role InboundSink; no one is answered."""

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        return None

    async def serve(self, entry_id: int) -> None:
        raise AssertionError("no entry was admitted")

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        raise AssertionError("no group has moved")


@dataclass(kw_only=True)
class SupervisedTelegram:
    """The real client under the supervisor. `told` lists what the owner is told."""

    api: BotApi
    supervisor: Supervisor
    task: asyncio.Task[None]
    watch: Watch = field(default_factory=Watch)
    told: list[str] = field(default_factory=list)
    connections: int = 0

    async def note_outage(self, name: str, state: str) -> None:
        self.told.append(state)
        self.watch.tell()

    async def note_connection(self, name: str) -> None:
        self.connections += 1
        self.watch.tell()


async def do_nothing(*_: object) -> None:
    return None


@asynccontextmanager
async def supervised(folder: Path, api: BotApi, token: str) -> AsyncIterator[SupervisedTelegram]:
    """Run the real client with this token, with short delays."""
    api.is_patient = False
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MIN_BACKOFF_S", "STATE_POLL_S", "MAX_BACKOFF_S"):
            patch.setattr(supervisor_module, name, 0.01)
        patch.setattr(supervisor_module, "DEAD_AFTER_S", 0.2)
        patch.setattr(supervisor_module, "REFUSED_RETRY_S", 0.05, raising=False)
        async with Database.open(place(folder / "state.db")) as database:
            clock = SteadyClock()
            inbox = Inbox(database, clock)
            telegram = Telegram(token=token, api_url=api.url, inbox=inbox, clock=clock)
            telegram.pause_s = 0.01
            supervisor = Supervisor(SilentSink(), (), do_nothing)
            task = asyncio.create_task(supervisor.run(telegram))
            case = SupervisedTelegram(api=api, supervisor=supervisor, task=task)
            await asyncio.sleep(0)
            platforms = supervisor.watch_platforms(
                do_nothing, case.note_outage, case.note_connection, dict
            )
            watching = asyncio.create_task(platforms)
            try:
                yield case
            finally:
                for running in (task, watching):
                    running.cancel()
                await asyncio.wait([task, watching])
                await telegram.close()


async def test_token_refused_for_some_minutes_turns_the_platform_off_until_it_is_accepted(
    tmp_path: Path,
) -> None:
    async with BotApi() as api, supervised(tmp_path, api, api.token) as case:
        token = api.token
        await case.watch.until(lambda: case.connections == 1)
        # A slow start counts as an outage, too, because DEAD_AFTER_S is so short here.
        case.told.clear()
        api.token = "another"
        await case.watch.until(lambda: len(case.told) == 1)
        assert not case.task.done(), "a refused token must not end the platform"
        api.token = token
        await case.watch.until(lambda: len(case.told) == 2)
        assert case.told[0].startswith("off: telegram:")
        assert "TELEGRAM_BOT_TOKEN" in case.told[0]
        assert case.told[1] == "connected"


async def test_token_refused_at_the_start_is_reported_at_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with BotApi() as api:
        token = api.token
        api.token = "another"
        async with supervised(tmp_path, api, token) as case:
            monkeypatch.setattr(supervisor_module, "DEAD_AFTER_S", 3600.0)
            await case.watch.until(lambda: len(case.told) == 1)
            assert case.told[0].startswith("off: telegram:")
            api.token = token
            await case.watch.until(lambda: len(case.told) == 2)
            assert case.told[1] == "connected"


async def test_gateway_with_a_refused_token_runs_on_and_tells_the_owner_on_another_platform(
    home: Path,
) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        live.tells_telegram("hello")
        await live.until(lambda: bool(live.telegram.texts(PERSON)))
        assert await live.stop() == 0
        live.discord.rest.token = "another"
        starting = asyncio.create_task(live.start())
        await live.until(
            lambda: any("Discord is off" in text for text in live.telegram.texts(PERSON))
        )
        starting.cancel()
        live.telegram.is_patient = False
        live.tells_telegram("the poll ends")
        live.telegram.token = "another"
        calls = len(live.telegram.calls)
        await live.until(lambda: "the token is refused (401)" in live.log())
        await live.until(lambda: "refuses the token" in live.log().partition("(401)")[2])
        assert not live.is_gone
        live.telegram.token = live.telegram_token
        await live.until(lambda: len(live.telegram.calls) > calls, 60)
        live.tells_telegram("are you there?")
        await live.until(lambda: len(live.telegram.texts(PERSON)) >= 3, 60)
        assert await live.stop() == 0
