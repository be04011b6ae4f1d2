"""What another process wrote is noticed, and told until it was heard."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

import pytest

from core.errors import StoreError
from core.search.recall import Recall
from core.store.sqlite.database import Database
from gateway.supervisor import run_chores, watch_store
from tests.fixtures.clock import SteadyClock
from tests.fixtures.scheduler_harness import Watch

pytestmark = pytest.mark.slow


class Witness:
    """Counts what it is told; fails as often as `failures` says."""

    def __init__(self, *failures: Exception) -> None:
        self.watch = Watch()
        self.calls = 0
        self.failures = list(failures)

    async def __call__(self) -> None:
        self.calls += 1
        self.watch.tell()
        if self.failures:
            raise self.failures.pop(0)

    async def was_called(self, count: int) -> None:
        await self.watch.until(lambda: self.calls >= count)
        assert self.calls == count


class Moody:
    """The versions of a real state.db, which cannot be read at the first looks."""

    def __init__(self, database: Database, failures: int) -> None:
        self._database = database
        self._failures = failures

    async def data_version(self) -> int:
        if self._failures:
            self._failures -= 1
            raise StoreError("state.db is locked")
        return await self._database.data_version()


@asynccontextmanager
async def at_work(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.wait([task])


def write_beside(database: Database) -> None:
    """Another process writes."""
    other = sqlite3.connect(database.path)
    other.execute("INSERT INTO state_meta (key, value) VALUES (lower(hex(randomblob(8))), '')")
    other.commit()
    other.close()


async def test_database_watcher_notices_a_write_of_another_process(database: Database) -> None:
    witness, changed = Witness(), asyncio.Event()
    async with at_work(watch_store(database.data_version, changed, witness)):
        changed.set()
        await witness.was_called(1)
        write_beside(database)
        async with asyncio.timeout(1):
            await witness.was_called(2)
        changed.set()
        await witness.was_called(3)


async def test_database_watcher_repeats_a_notification_that_failed(database: Database) -> None:
    witness, changed = Witness(StoreError("locked"), StoreError("locked")), asyncio.Event()
    async with at_work(watch_store(database.data_version, changed, witness)):
        changed.set()
        await witness.was_called(3)


async def test_database_watcher_survives_a_failed_read_and_still_reports_the_change(
    database: Database,
) -> None:
    witness = Witness()
    async with at_work(watch_store(Moody(database, 1).data_version, asyncio.Event(), witness)):
        write_beside(database)
        await witness.was_called(1)


async def test_index_upkeep_repeats_until_done_and_continues_after_a_failure(
    database: Database,
) -> None:
    told, steps = Watch(), list[str]()

    class TendedRecall(Recall):
        async def tend(self) -> bool:
            has_more = await super().tend()
            steps.append("more" if has_more else "rest")
            told.tell()
            if len(steps) == 1:
                return True
            raise StoreError("locked")

    async with at_work(run_chores((TendedRecall(database, SteadyClock()).tend,))):
        await told.until(lambda: len(steps) == 2)


async def test_other_chores_are_done_step_by_step_beside_the_indexes(database: Database) -> None:
    told, steps = Watch(), list[int]()

    async def chore() -> bool:
        steps.append(len(steps))
        told.tell()
        return len(steps) < 3

    async with at_work(run_chores((Recall(database, SteadyClock()).tend, chore))):
        await told.until(lambda: len(steps) == 3)
