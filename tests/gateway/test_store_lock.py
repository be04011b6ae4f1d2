"""Another program locks state.db: everyone is told soon, reading goes on, a start waits."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import StoreError
from core.store.sqlite.database import Database
from core.store.sqlite.faults import LockWait
from core.types import Address
from tests.fixtures.forked import ROOT
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway

pytestmark = pytest.mark.slow

TOLD_WITHIN_S = 5.0
CHATS = tuple(Address(platform="telegram", chat_id=str(number)) for number in range(60))


class VirtualTime:
    """A clock that moves when someone sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s

    async def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s
        await asyncio.sleep(0)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another program writes for as long as this lasts."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def admit(harness: GatewayHarness, text: str, address: Address) -> KeptReply:
    """Take in a message as a platform does, which is told that it wasn't stored."""
    reply = KeptReply()
    with contextlib.suppress(StoreError):
        await harness.admission.admit(harness.inbound(text, address=address), reply)
    for _ in range(10):
        await asyncio.sleep(0)
    return reply


def count_told(harness: GatewayHarness) -> int:
    texts = [reply.text for _, reply in harness.platforms["telegram"].replies if reply.answer]
    return sum("I can't save messages right now" in text for text in texts)


async def test_every_chat_is_told_within_5_seconds_that_another_program_locks_the_database(
    home: Path,
) -> None:
    time = VirtualTime()
    lock_wait = LockWait(now=time.now, sleep=time.sleep)
    async with open_gateway(home, lock_wait=lock_wait) as harness:
        with locked(harness.services.database.path):
            began_s = time.now_s
            for address in CHATS:
                await admit(harness, "is the ferry late?", address)
            assert count_told(harness) == len(CHATS)
            assert time.now_s - began_s <= TOLD_WITHIN_S
            time.now_s += 300
            await admit(harness, "and now?", CHATS[0])
            assert count_told(harness) == len(CHATS), "once for each outage"
            assert time.now_s - began_s - 300 <= 2 * TOLD_WITHIN_S
        reply = await harness.say("is the ferry late?", address=CHATS[0])
        assert reply.text


async def test_notice_of_a_locked_database_is_in_the_language_that_the_person_has_chosen(
    home: Path,
) -> None:
    """Also its reason."""
    time = VirtualTime()
    lock_wait = LockWait(now=time.now, sleep=time.sleep)
    async with open_gateway(home, lock_wait=lock_wait) as harness:
        await harness.say("/language de", address=CHATS[0])
        with locked(harness.services.database.path):
            await admit(harness, "is the ferry late?", CHATS[0])
        (told,) = [
            reply.text
            for _, reply in harness.platforms["telegram"].replies
            if "state.db" in reply.text
        ]
        assert told == (
            "Ich kann gerade keine Nachrichten speichern. "
            f"{harness.services.database.path} ist von einem anderen Programm gesperrt. "
            "Schließ es und versuch es noch einmal. "
            "Ich versuche es weiter und antworte, sobald es wieder geht."
        )


async def test_commands_that_only_read_are_answered_while_another_program_locks_the_store(
    home: Path,
) -> None:
    time = VirtualTime()
    lock_wait = LockWait(now=time.now, sleep=time.sleep)
    async with open_gateway(home, lock_wait=lock_wait) as harness:
        await harness.say("The harbour is old.", address=CHATS[0])
        with locked(harness.services.database.path):
            found = await admit(harness, "/recall harbour", CHATS[0])
            status = await admit(harness, "/status", CHATS[0])
            assert count_told(harness) == 0
        assert "harbour" in found.text
        assert "**database**: " in status.text


async def test_lock_that_ends_in_time_only_delays_a_write(tmp_path: Path) -> None:
    time = VirtualTime()
    with contextlib.ExitStack() as lock:

        async def sleep(delay_s: float) -> None:
            await time.sleep(delay_s)
            if time.now_s > 3:
                lock.close()

        wait = LockWait(now=time.now, sleep=sleep)
        async with Database.open(tmp_path / "state.db", wait) as database:
            lock.enter_context(locked(database.path))
            await database.execute("INSERT INTO state_meta VALUES ('a', '1')")
            assert time.now_s > 3


async def test_start_waits_and_reports_while_another_program_locks_the_database(home: Path) -> None:
    async with Database.open(home / "state.db"):
        pass
    with locked(home / "state.db"):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway.cli.main", "chat"),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        said = await asyncio.wait_for(process.stderr.readline(), 60)
        assert b"Another program has locked state.db" in said
        assert process.returncode is None
    out, _ = await asyncio.wait_for(process.communicate(b"/whoami\n"), 60)
    assert b"owner" in out
    assert process.returncode == 0
