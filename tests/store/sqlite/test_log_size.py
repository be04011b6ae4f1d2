"""The log beside state.db stays small while another program reads, real in a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from core.errors import StoreError
from core.store import archive
from core.store.archive import Archive
from core.store.rows import set_meta
from core.store.sqlite.database import LOG_BYTES, LOG_STEP_WRITES, Database
from core.transfer.formats import read_lines
from tests.transfer.test_archive import line

pytestmark = pytest.mark.slow

LIMIT_BYTES = 16_000_000
WATCH_S = 0.01
READER = """
import itertools, sqlite3, sys, threading, time
path, hold_s, threads = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])

def read(number):
    connection = sqlite3.connect(path, isolation_level=None, timeout=20)
    time.sleep(number * hold_s / threads)
    for _ in itertools.count():
        connection.execute("BEGIN")
        connection.execute("SELECT COUNT(*) FROM sessions").fetchone()
        if number == 0:
            print("reading", flush=True)
        time.sleep(hold_s)
        connection.execute("COMMIT")

for number in range(threads):
    threading.Thread(target=read, args=(number,)).start()
"""


@asynccontextmanager
async def read_by_another(path: Path, hold_s: float, threads: int = 1) -> AsyncIterator[None]:
    """A process whose transactions take `hold_s` and, of several threads, overlap; it never
    pauses."""
    command = [sys.executable, "-c", READER, str(path), str(hold_s), str(threads)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        await process.communicate()


@asynccontextmanager
async def watched(database: Database) -> AsyncIterator[list[int]]:
    """The largest size of the log while something goes on."""
    largest = [0]
    log = database.path.with_name("state.db-wal")

    async def watch() -> None:
        while True:
            with suppress(OSError):
                largest[0] = max(largest[0], log.stat().st_size)
            await asyncio.sleep(WATCH_S)

    task = asyncio.create_task(watch())
    yield largest
    task.cancel()


def history(
    count: int, words: str = "the ferry leaves at noon from the harbour of Lisbon "
) -> list[str]:
    return [line(f"{words * 20} {number}", session=f"s{number // 50}") for number in range(count)]


async def test_write_ahead_log_stays_bounded_during_an_import_with_overlapping_readers(
    database: Database,
) -> None:
    async with read_by_another(database.path, 0.15, threads=3), watched(database) as largest:
        report = await Archive(database).import_records(read_lines(history(12_000)), lambda _: None)
    assert report.imported_count == 12_000
    assert 4_000_000 < largest[0] < LIMIT_BYTES


@pytest.mark.sweep
async def test_an_import_beside_a_reader_that_holds_a_moment_for_seconds(
    database: Database,
) -> None:
    async with read_by_another(database.path, 3), watched(database) as largest:
        report = await Archive(database).import_records(read_lines(history(12_000)), lambda _: None)
    assert report.imported_count == 12_000
    assert 4_000_000 < largest[0] < LIMIT_BYTES


async def test_write_ahead_log_stays_bounded_during_single_writes_with_overlapping_readers(
    database: Database,
) -> None:
    async with read_by_another(database.path, 0.05, threads=3), watched(database) as largest:
        for number in range(600):
            await database.execute(
                "INSERT INTO state_meta VALUES (:key, :value)",
                {"key": number, "value": "x" * 30_000},
            )
    assert 8_000_000 < largest[0] < LIMIT_BYTES


async def test_log_is_truncated_after_a_reader_has_let_go_even_if_it_grows_no_more(
    database: Database,
) -> None:
    async def write(value: str) -> None:
        await database.execute(
            "INSERT OR REPLACE INTO state_meta VALUES ('a', :value)", {"value": value}
        )

    async with read_by_another(database.path, 60):
        while database.log_bytes() <= LOG_BYTES:
            await write("x" * 300_000)
        # This write tries to truncate the log, in vain.
        await write("x")
        assert database.log_bytes() > LOG_BYTES
    for _ in range(LOG_STEP_WRITES):
        await write("x")
    assert database.log_bytes() < LOG_BYTES


async def test_an_import_is_ended_where_a_reader_never_lets_go(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LOG_SPACE_WAIT_S", 0.5)
    async with read_by_another(database.path, 60), watched(database) as largest:
        with pytest.raises(StoreError, match="Another program has been reading"):
            await Archive(database).import_records(read_lines(history(12_000)), lambda _: None)
        await database.write(lambda connection: set_meta(connection, "a", "written all the same"))
    assert largest[0] < LIMIT_BYTES


async def test_import_of_long_messages_is_split_into_small_transactions(database: Database) -> None:
    async with watched(database) as largest:
        lines = history(250, words="the ferry to Lisbon " * 175)
        assert (
            await Archive(database).import_records(read_lines(lines), lambda _: None)
        ).imported_count == 250
    assert largest[0] < LIMIT_BYTES
