"""The owner is told when something is wrong with the files of state.db."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from core.errors import StoreDamagedError, StoreError
from core.store.rows import set_meta
from core.types import Address
from gateway import store_watch
from gateway.owner_notices import OwnerNotices
from gateway.store_watch import StoreWatch
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, notices, open_gateway

pytestmark = pytest.mark.slow


@asynccontextmanager
async def watching(home: Path) -> AsyncIterator[tuple[GatewayHarness, StoreWatch, SteadyClock]]:
    """A gateway whose owner has written, and a watch over its state.db with a virtual clock."""
    clock = SteadyClock()
    async with open_gateway(home) as harness:
        await harness.say("hello")
        services = harness.services
        watch = StoreWatch(
            services.database,
            services.owner_notices,
            clock,
            services.find_private_chat,
            harness.delivery.notify_unstored,
        )
        yield harness, watch, clock


async def test_log_over_its_limit_for_a_minute_is_reported_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_watch, "LARGE_LOG_BYTES", 1_000_000)
    async with watching(home) as (harness, watch, clock):
        database = harness.services.database
        with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT COUNT(*) FROM sessions").fetchone()
            await database.write(lambda connection: set_meta(connection, "big", "x" * 2_000_000))
            await watch.check()
            clock.advance(seconds=59)
            await watch.check()
            assert await notices(harness) == []
            clock.advance(seconds=2)
            await watch.check()
            await watch.check()
            ((address, text),) = await notices(harness)
            assert address == "telegram:42"
            assert "The log of state.db has grown to 2 MB" in text
            other.execute("COMMIT")
        assert await database.checkpoint()
        await watch.check()
        clock.advance(minutes=5)
        await watch.check()
        assert await notices(harness) == []


async def test_damage_is_reported_at_once_and_shown_by_status(home: Path) -> None:
    async with watching(home) as (harness, watch, _):
        database = harness.services.database
        for number in range(200):
            await harness.services.database.execute(
                "INSERT INTO state_meta VALUES (:key, :value)",
                {"key": f"filler {number}", "value": "x" * 2_000},
            )
        assert await database.checkpoint()
        with closing(sqlite3.connect(database.path)) as other:
            sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'note_reviews'"
            page = other.execute(sql).fetchone()[0]
        with database.path.open("r+b") as file:
            file.seek((page - 1) * 4096)
            file.write(b"\xff" * 4096)
        while await watch.check_integrity():
            pass
        texts = [text for _, text in await notices(harness)]
        texts += [reply.text for _, reply in harness.platforms["telegram"].replies if reply.answer]
        assert sum("state.db is damaged" in text for text in texts) == 1
        assert "damaged" in (await harness.say("/status")).text


async def test_damage_found_before_the_platform_is_open_is_reported_when_it_is(home: Path) -> None:
    async with open_gateway(home) as harness:
        services, telegram = harness.services, harness.platforms["telegram"]

        async def fail(*_: object) -> None:
            raise StoreDamagedError("the list of chats can't be read")

        notices = OwnerNotices(fail, services.outbox, services.clock, services.zone, lambda: None)
        owner_chat = Address(platform="telegram", chat_id="42")
        watch = StoreWatch(
            services.database,
            notices,
            services.clock,
            fail,
            harness.delivery.notify_unstored,
            owner_chat,
        )
        services.database.note_damage("a page is damaged")
        await watch.check()
        assert telegram.replies == []
        harness.delivery.add_platform("telegram", telegram.reply)
        await watch.check()
        await watch.check()
        ((address, reply),) = telegram.replies
        assert address == owner_chat
        assert "a page is damaged" in reply.text


async def test_owner_is_told_once_if_the_files_cannot_be_checked_repeatedly(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(home) as (harness, watch, _):
        telegram = harness.platforms["telegram"]
        harness.delivery.add_platform("telegram", telegram.reply)
        reply_count = len(telegram.replies)

        async def fail() -> None:
            raise StoreError("store_disk_full", path="state.db")

        with monkeypatch.context() as patch:
            patch.setattr(harness.services.database, "check_files", fail)
            await watch.check()
            assert len(telegram.replies) == reply_count
            await watch.check()
            await watch.check()
            ((_, reply),) = telegram.replies[reply_count:]
            assert "The disk that holds state.db is full." in reply.text
            assert "I can't save messages" in reply.text
        await watch.check()
        assert len(telegram.replies) == reply_count + 1
