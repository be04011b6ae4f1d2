"""`mneme run --workers N`: gateways that are child processes of one command."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fixtures.command_line import mneme
from tests.fixtures.gateways import Gateways, Storm, open_gateways
from tests.fixtures.kill_storm import answer_all, choose_seed
from tests.fixtures.live_system import KEY
from tests.fixtures.messages_api import MessagesApi

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PEOPLE = [5000, 5001, 5002]
WORKERS = 2


class Pool:
    """`mneme run --workers 2` in a process, and the gateways that it has started."""

    def __init__(self, process: subprocess.Popen[bytes], storm: Storm) -> None:
        self.process = process
        self.storm = storm

    @property
    def gateways(self) -> Gateways:
        return self.storm.gateways

    def list_workers(self) -> list[int]:
        """Return the ids of the child processes, in the order of their starts."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    async def until_complete(self, without: frozenset[int] = frozenset()) -> None:
        """Wait until all workers share the chats, and none of `without` is among them."""

        def is_complete() -> bool:
            if len(self.list_workers()) != WORKERS or without.intersection(self.list_workers()):
                return False
            return self.gateways.count_together() == WORKERS

        while not await asyncio.to_thread(is_complete):
            assert self.process.poll() is None, self.gateways.read_logs()
            await asyncio.sleep(0.05)

    async def stop(self) -> int:
        """Ask the command to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait)


def are_running(workers: Sequence[int]) -> bool:
    """Return whether any of these processes is running."""
    return any(Path(f"/proc/{pid}").exists() for pid in workers)


@asynccontextmanager
async def start_pool(gateways: Gateways) -> AsyncIterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "gateway.cli.main", "run", "--workers", str(WORKERS)]
    with (gateways.home / "pool.log").open("wb") as log:
        process = await asyncio.to_thread(
            subprocess.Popen, command, stdout=log, stderr=log, env=gateways.environment
        )
    try:
        yield process
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)


@pytest.fixture
async def pool(home: Path, postgres_url: str) -> AsyncIterator[Pool]:
    """A command whose workers share the chats of three people."""
    model = MessagesApi(answer_all, key=KEY)
    async with (
        open_gateways(home, postgres_url, model, len(PEOPLE)) as gateways,
        start_pool(gateways) as process,
    ):
        pool = Pool(process, Storm(gateways, PEOPLE, choose_seed()))
        await pool.until_complete()
        yield pool


async def test_killed_gateway_is_started_again_and_all_end_with_the_command(pool: Pool) -> None:
    for person in PEOPLE:
        pool.storm.say(person)
    await pool.storm.settle()
    assert len(set(pool.gateways.list_owners().values())) == WORKERS

    killed = pool.list_workers()[-1]
    os.kill(killed, signal.SIGKILL)
    pool.storm.say_something()
    await pool.until_complete(without=frozenset({killed}))
    pool.storm.say_something()
    await pool.storm.settle()
    assert pool.storm.list_damage() == []

    workers = pool.list_workers()
    assert await pool.stop() == 0
    assert not are_running(workers)


async def test_hangup_replaces_each_gateway_and_nothing_is_lost(pool: Pool) -> None:
    for person in PEOPLE:
        pool.storm.say(person)
    await pool.storm.settle()
    old = frozenset(pool.list_workers())

    pool.process.send_signal(signal.SIGHUP)
    pool.storm.say_something()
    await pool.gateways.until(
        lambda: "All gateways have been restarted." in pool.gateways.read_logs()
    )
    pool.storm.say_something()
    await pool.until_complete(without=old)
    await pool.storm.settle()
    assert pool.storm.list_damage() == []
    shown = [text for person in PEOPLE for text in pool.gateways.telegram.texts(person)]
    assert [text for text in shown if "Answer to" not in text] == []


@pytest.mark.sweep
async def test_gateways_that_cannot_be_replaced_keep_working(pool: Pool) -> None:
    old = pool.list_workers()
    path = pool.gateways.home / "mneme.toml"
    settings = path.read_text()
    path.write_text("[model\n")
    pool.process.send_signal(signal.SIGHUP)
    await pool.gateways.until(lambda: "the old ones keep working" in pool.gateways.read_logs())
    path.write_text(settings)
    assert "mneme.toml" in pool.gateways.read_logs()
    await pool.gateways.until(lambda: pool.list_workers() == old)
    pool.storm.say(PEOPLE[0])
    await pool.storm.settle()


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the children")
async def test_gateways_end_if_their_command_is_killed(pool: Pool) -> None:
    workers = pool.list_workers()
    pool.process.kill()
    await pool.gateways.until(lambda: not are_running(workers))


@pytest.mark.parametrize(
    ("settings", "options", "sentence"),
    [
        ("", (), "Several gateways need a PostgreSQL database."),
        (
            '[store]\nurl = "postgresql://x@127.0.0.1:9/mneme"\n',
            (),
            "so --workers needs a Telegram token",
        ),
        ("", ("--terminal",), "--terminal works with a single gateway only"),
    ],
)
def test_several_gateways_without_what_they_need_are_refused(
    home: Path, settings: str, options: tuple[str, ...], sentence: str
) -> None:
    (home / "mneme.toml").write_text(settings)
    result = mneme(home, "run", "--workers", "2", *options)
    assert result.returncode != 0
    assert sentence in " ".join(result.stderr.split())


def test_command_ends_with_the_reason_if_a_gateway_cannot_start(home: Path) -> None:
    (home / "mneme.toml").write_text('[store]\nurl = "postgresql://x@127.0.0.1:9/mneme"\n')
    result = mneme(home, "run", "--workers", "2", TELEGRAM_BOT_TOKEN="1:" + "x" * 35)
    assert result.returncode == 1
    assert "127.0.0.1" in result.stderr
    assert "Traceback" not in result.stderr
