"""The file itself: rights, versions, damage; transactions that are whole or not at all."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from core.errors import StoreError, StoreLogHeldError, StoreLostError
from core.store.engine import Connection
from core.store.rows import get_meta, set_meta
from core.store.sqlite.database import LOG_FULL_BYTES, SHORT_WRITES, Database
from core.store.sqlite.faults import LockWait
from core.store.sqlite.opening import open_connection
from core.store.sqlite.schema import SCHEMA_VERSION
from core.store.sqlite.text_index import StoreConnection


async def test_the_file_and_its_companions_are_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "home" / "state.db"
    async with Database.open(path) as database:
        await database.write(lambda connection: set_meta(connection, "a", "1"))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    names = ("state.db", "state.db-wal", "state.db-shm", "database-state.created")
    assert modes == dict.fromkeys(names, 0o600)


async def test_written_value_is_read_after_opening_again(tmp_path: Path) -> None:
    for _ in range(2):
        async with Database.open(tmp_path / "state.db") as database:
            await database.write(lambda connection: set_meta(connection, "a", "1"))
    async with Database.open(tmp_path / "state.db") as database:
        assert await database.read(lambda connection: get_meta(connection, "a")) == "1"
        version = await database.read(
            lambda connection: connection.execute("PRAGMA user_version").fetchone()[0]
        )
    assert version == SCHEMA_VERSION


async def test_database_checkpoint_empties_the_write_ahead_log(tmp_path: Path) -> None:
    async with Database.open(tmp_path / "state.db") as database:
        await database.write(lambda connection: set_meta(connection, "a", "1"))
        log = tmp_path / "state.db-wal"
        assert log.stat().st_size > 0
        assert await database.checkpoint()
        assert log.stat().st_size == 0
        assert await database.read(lambda connection: get_meta(connection, "a")) == "1"


class WatchedLock:
    """A lock after whose release a thread waits, so that another thread can take it."""

    def __init__(self, lock: threading.Lock, began: threading.Event) -> None:
        self._lock = lock
        self._began = began
        self.was_released = threading.Event()

    def acquire(self, blocking: bool = True) -> bool:
        return self._lock.acquire(blocking)

    def release(self) -> None:
        self._lock.release()
        if threading.current_thread() is not threading.main_thread():
            self.was_released.set()
            assert self._began.wait(60)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


async def test_write_in_another_thread_that_ends_leaves_the_connection_to_an_inline_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Database.open(tmp_path / "state.db") as database:
        began, has_run = threading.Event(), threading.Event()
        lock = WatchedLock(threading.Lock(), began)
        monkeypatch.setattr(database, "_writer_lock", lock)
        slot = database._writer.slot
        run, connection = slot.run, slot.connection

        def watched_run(work: Callable[[Connection], object]) -> object:
            try:
                return run(work)
            finally:
                if threading.current_thread() is not threading.main_thread():
                    has_run.set()

        monkeypatch.setattr(slot, "run", watched_run)
        other = asyncio.create_task(database.write(lambda opened: set_meta(opened, "a", "1")))
        assert await asyncio.to_thread(lock.was_released.wait, 60)

        def write_inline(opened: Connection) -> None:
            began.set()
            assert has_run.wait(60)
            set_meta(opened, "b", "2")

        database._write_inline(write_inline)
        await other
        assert slot.connection is connection
        assert await database.read(lambda opened: get_meta(opened, "b")) == "2"


async def test_a_newer_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(StoreError, match=r"newer version of Mneme .*Update Mneme"):
        async with Database.open(path):
            pass


async def test_a_file_that_is_not_a_database_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(StoreError, match=r"is damaged .*mneme check"):
        async with Database.open(path):
            pass
    assert path.read_bytes() == b"Dear diary, " * 1000
    workers = [thread for thread in threading.enumerate() if "_connection_worker" in thread.name]
    for worker in workers:
        worker.join(
            timeout=5
        )  # what closes a connection hears of it a moment before its thread has ended
    assert not any(worker.is_alive() for worker in workers)


async def test_database_path_that_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "state.db", tmp_path):
        with pytest.raises(StoreError, match="cannot be opened for writing"):
            async with Database.open(path):
                pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
async def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path):
        pass
    path.chmod(0o400)
    with pytest.raises(StoreError, match="cannot be opened for writing"):
        async with Database.open(path):
            pass


async def test_write_to_a_full_disk_fails_with_an_error_and_the_next_write_works(
    database: Database,
) -> None:
    def pages(limit: int | None) -> object:
        def work(connection: StoreConnection) -> int:
            wanted = limit or int(connection.execute("PRAGMA page_count").fetchone()[0])
            return int(connection.execute(f"PRAGMA max_page_count = {wanted}").fetchone()[0])

        return work

    await database.write(pages(None))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match=r"disk that holds .* is full"):
        await database.write(lambda connection: set_meta(connection, "big", "x" * 1_000_000))
    await database.write(pages(1_000_000))  # type: ignore[arg-type]
    assert await database.read(lambda connection: get_meta(connection, "big")) is None
    await database.write(lambda connection: set_meta(connection, "big", "x" * 1_000_000))


async def test_write_on_a_connection_for_reading_is_refused(database: Database) -> None:
    with pytest.raises(StoreError, match="is read-only"):
        await database.read(lambda connection: set_meta(connection, "a", "1"))


async def test_an_exception_rolls_back_and_is_raised(database: Database) -> None:
    def work(connection: StoreConnection) -> None:
        set_meta(connection, "a", "1")
        raise LookupError("no")

    with pytest.raises(LookupError):
        await database.write(work)
    assert await database.read(lambda connection: get_meta(connection, "a")) is None
    await database.write(lambda connection: set_meta(connection, "a", "2"))


async def test_cancelled_database_write_is_stored_completely_or_not_at_all(
    database: Database,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(connection: StoreConnection) -> None:
        set_meta(connection, "a", "1")
        begun.set()
        assert go_on.wait(10)
        set_meta(connection, "b", "1")

    writing = asyncio.create_task(database.write(work))
    assert await asyncio.to_thread(begun.wait, 10)
    waiting = asyncio.create_task(database.write(lambda connection: set_meta(connection, "c", "1")))
    await asyncio.sleep(0)
    writing.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await waiting
    found = await database.read(
        lambda connection: [get_meta(connection, key) for key in ("a", "b", "c")]
    )
    assert found in (["1", "1", "1"], [None, None, "1"])


async def test_read_transaction_sees_one_snapshot_while_another_connection_writes(
    database: Database,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def look(connection: StoreConnection) -> list[str | None]:
        before = get_meta(connection, "a")
        begun.set()
        assert go_on.wait(10)
        return [before, get_meta(connection, "a")]

    reading = asyncio.create_task(database.read(look))
    assert await asyncio.to_thread(begun.wait, 10)
    await database.write(lambda connection: set_meta(connection, "a", "1"))
    go_on.set()
    assert await reading == [None, None]


async def test_inline_read_sees_the_latest_write_and_cannot_write(database: Database) -> None:
    for value in ("1", "2"):
        await database.write(lambda connection, value=value: set_meta(connection, "a", value))  # type: ignore[misc]
        assert await database.read_inline(lambda connection: get_meta(connection, "a")) == value
    with pytest.raises(StoreError, match="is read-only"):
        await database.read_inline(lambda connection: set_meta(connection, "a", "3"))
    with pytest.raises(ZeroDivisionError):
        await database.read_inline(lambda connection: 1 / 0)
    assert await database.read_inline(lambda connection: get_meta(connection, "a")) == "2"


@pytest.mark.slow
async def test_long_inline_read_is_moved_from_the_event_loop_to_a_reader_thread(
    database: Database,
) -> None:
    threads = []

    def count(connection: StoreConnection) -> int:
        threads.append(threading.current_thread())
        numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) SELECT COUNT(*) FROM n"
        return int(connection.execute(numbers).fetchone()[0])

    assert await database.read_inline(count) == 1_000_000
    assert len(threads) == 2
    assert threads[0] is threading.main_thread()
    assert threads[1] is not threads[0]


@pytest.mark.parametrize("way", ["read_inline", "read", "write"])
async def test_read_that_failed_halfway_leaves_no_open_snapshot(
    database: Database, way: str
) -> None:
    def stored(value: str) -> list[str]:
        return [f"{key}{value}" for key in "ab"]

    def work(connection: Connection) -> None:
        rows = iter(
            connection.execute("SELECT value FROM state_meta WHERE key IN ('a', 'b') ORDER BY key")
        )
        assert next(rows)[0] == "a1"
        raise LookupError("while more rows wait")

    def put(connection: Connection, value: str) -> None:
        for text in stored(value):
            set_meta(connection, text[0], text)

    async with Database.open(database.path) as other:
        await other.write(lambda connection: put(connection, "1"))
        # Whoever handles an error keeps what it came from, with the rows that were being read
        # there.
        with pytest.raises(LookupError) as kept:
            await getattr(database, way)(work)
        await other.write(lambda connection: put(connection, "2"))
        for look in (database.read_inline, database.read, database.write):
            assert await look(
                lambda connection: [get_meta(connection, key) for key in "ab"]
            ) == stored("2")
        assert await other.checkpoint(0)
    assert kept.value.args


async def test_a_change_by_another_process_is_noticed(database: Database) -> None:
    before = await database.data_version()
    await database.write(lambda connection: set_meta(connection, "a", "1"))
    assert await database.data_version() == before
    async with Database.open(database.path) as other:
        await other.write(lambda connection: set_meta(connection, "a", "2"))
    assert await database.data_version() != before
    assert await database.read(lambda connection: get_meta(connection, "a")) == "2"


async def test_concurrent_sqlite_writes_of_two_connections_are_serialised(
    database: Database,
) -> None:
    def work(connection: StoreConnection) -> None:
        set_meta(connection, "count", str(int(get_meta(connection, "count") or "0") + 1))

    async with Database.open(database.path) as other, asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(database.write(work))
            group.create_task(other.write(work))
    assert await database.read(lambda connection: get_meta(connection, "count")) == "40"


async def test_a_new_file_that_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE theirs (id)")
    other.execute("BEGIN IMMEDIATE")
    done = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    done.start()
    try:
        async with Database.open(path) as database:
            assert await database.fetch_all("SELECT * FROM theirs") == []
    finally:
        done.join()
        other.close()


async def quickened(database: Database) -> None:
    """Short writes, until all but the one in so many are done where they are asked for: here the
    disk is memory."""
    for _ in range(100):
        threads = [await database.write(written_in, is_short=True) for _ in range(SHORT_WRITES)]
        if threads.count(threading.get_ident()) == SHORT_WRITES - 1:
            return
    pytest.fail("short writes were never done in the caller's thread")


def written_in(connection: Connection) -> int:
    """Counts one more; the thread in which it does."""
    set_meta(connection, "n", str(int(get_meta(connection, "n") or 0) + 1))
    return threading.get_ident()


async def test_a_short_write_is_done_in_the_callers_thread(tmp_path: Path) -> None:
    async with Database.open(tmp_path / "state.db") as database:
        await quickened(database)
        # A look has an end; what is written later has not.
        await database.read_inline(lambda connection: get_meta(connection, "n"))
        count = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT MAX(i) FROM n"
        found = await database.write(
            lambda connection: (threading.get_ident(), connection.execute(count).fetchone()[0]),
            is_short=True,
        )
        assert found == (threading.get_ident(), 200_000)


async def test_short_write_waits_for_another_process_without_blocking_the_event_loop(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        await quickened(database)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        tries: list[int] = []

        def work(connection: StoreConnection) -> None:
            tries.append(threading.get_ident())
            set_meta(connection, "a", "1")

        writing = asyncio.create_task(database.write(work, is_short=True))
        assert await database.read(lambda connection: get_meta(connection, "a")) is None
        assert not writing.done()
        other.execute("COMMIT")
        other.close()
        await writing
        assert await database.read(lambda connection: get_meta(connection, "a")) == "1"
        assert len(tries) == 1
        assert tries != [threading.get_ident()]


async def test_short_database_write_waits_for_a_longer_one_off_the_event_loop(
    tmp_path: Path,
) -> None:
    async with Database.open(tmp_path / "state.db") as database:
        await quickened(database)
        before = await database.write(lambda connection: int(get_meta(connection, "n") or 0))
        began, may_end = threading.Event(), threading.Event()

        def long(connection: Connection) -> int:
            began.set()
            may_end.wait(10)
            return written_in(connection)

        writing = asyncio.create_task(database.write(long))
        await asyncio.to_thread(began.wait, 10)
        others = [asyncio.create_task(database.write(written_in, is_short=True)) for _ in range(5)]
        await asyncio.sleep(0)
        may_end.set()
        assert threading.get_ident() not in [await writing, *[await other for other in others]]
        assert await database.read(lambda connection: get_meta(connection, "n")) == str(before + 6)


async def test_short_writes_leave_the_log_to_the_thread_and_it_does_not_grow(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        await quickened(database)
        for number in range(600):
            await database.write(
                lambda connection, n=number: set_meta(connection, f"a{n}", "long " * 3000),  # type: ignore[misc]
                is_short=True,
            )
        assert path.with_name("state.db-wal").stat().st_size < LOG_FULL_BYTES


async def test_a_short_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    async with Database.open(tmp_path / "state.db") as database:
        await quickened(database)

        def work(connection: StoreConnection) -> None:
            set_meta(connection, "a", "1")
            connection.execute("INSERT INTO nowhere VALUES (1)")

        with pytest.raises(StoreError, match="nowhere"):
            await database.write(work, is_short=True)
        assert await database.read(lambda connection: get_meta(connection, "a")) is None
        await database.write(lambda connection: set_meta(connection, "a", "2"))
        assert await database.read_inline(lambda connection: get_meta(connection, "a")) == "2"


@pytest.mark.slow
async def test_inline_reads_that_run_out_of_time_leave_their_transaction_and_keep_their_connection(
    database: Database,
) -> None:
    numbers = (
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) "
        "SELECT COUNT(*) FROM n, (SELECT COUNT(*) FROM state_meta)"
    )
    connections: set[StoreConnection] = set()

    def run(connection: StoreConnection, query: str) -> None:
        if threading.current_thread() is threading.main_thread():
            connections.add(connection)
        connection.execute(query).fetchone()

    # SQLite counts the steps of a statement over all of its runs, and looks at the time after each
    # thousand. A ROLLBACK has three, so it looks at the time once in some hundred runs.
    for _ in range(400):
        for count in (50, 300, 2_000):
            query = numbers.format(count)
            await database.read_inline(
                lambda connection, query=query: run(connection, query),  # type: ignore[misc]
                limit_s=0.0,
            )
            # An interrupted ROLLBACK would leave the transaction open, or the connection would have
            # been replaced.
            assert [connection.in_transaction for connection in connections] == [False]
        await database.write(lambda connection: set_meta(connection, "a", "1"), is_short=True)
    assert await database.checkpoint(200)


@pytest.mark.parametrize("way", ["read_inline", "read", "write"])
async def test_connection_that_cannot_leave_a_transaction_is_replaced(
    database: Database, way: str
) -> None:
    def forbid_the_end(connection: StoreConnection) -> None:
        connection.execute("SELECT COUNT(*) FROM state_meta").fetchone()
        connection.set_authorizer(
            lambda action, *_: (
                sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_TRANSACTION else sqlite3.SQLITE_OK
            )
        )

    for _ in range(3):
        with pytest.raises(StoreError):
            await getattr(database, way)(forbid_the_end)
        await database.write(lambda connection: set_meta(connection, "a", "1"))
        assert await database.read_inline(lambda connection: get_meta(connection, "a")) == "1"
    async with Database.open(database.path) as other:
        await other.write(lambda connection: set_meta(connection, "a", "2"))
        assert await other.checkpoint(200)
    assert await getattr(database, way)(lambda connection: get_meta(connection, "a")) == "2"


async def test_log_that_was_removed_while_another_program_reads_is_saved_after_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        await database.write(lambda connection: set_meta(connection, "a", "1"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN")
        other.execute("SELECT COUNT(*) FROM state_meta").fetchone()
        path.with_name("state.db-wal").unlink()
        with pytest.raises(StoreLogHeldError, match=r"Close that program; don't restore"):
            await database.write(lambda connection: set_meta(connection, "b", "1"))
        assert await database.read(lambda connection: get_meta(connection, "a")) == "1"
        other.execute("COMMIT")
        other.close()
        await database.check_files()
        await database.write(lambda connection: set_meta(connection, "c", "1"))
        for look in (database.read, database.read_inline):
            found = await look(lambda connection: [get_meta(connection, key) for key in "abc"])
            assert found == ["1", None, "1"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()


async def test_removed_log_that_cannot_be_saved_is_called_unsaved_and_is_saved_later(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    obstacle = path.with_name("state.db-wal.part")
    async with Database.open(path) as database:
        await database.write(lambda connection: set_meta(connection, "a", "1"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN")
        other.execute("SELECT COUNT(*) FROM state_meta").fetchone()
        obstacle.mkdir()
        path.with_name("state.db-wal").unlink()
        with pytest.raises(StoreLostError, match=r"can't be saved: .*directory.* Don't stop Mneme"):
            await database.write(lambda connection: set_meta(connection, "b", "1"))
        obstacle.rmdir()
        other.execute("COMMIT")
        other.close()
        await database.check_files()
    async with Database.open(path) as database:
        assert await database.read(lambda connection: get_meta(connection, "a")) == "1"


async def test_rescue_of_a_removed_log_ends_although_the_write_that_began_it_is_cancelled(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    may_end = threading.Event()
    async with Database.open(path) as database:
        await database.write(lambda connection: set_meta(connection, "a", "1"))
        reading = asyncio.create_task(database.read(lambda _: may_end.wait(30)))
        await asyncio.sleep(0)
        path.with_name("state.db-wal").unlink()
        writing = asyncio.create_task(
            database.write(lambda connection: set_meta(connection, "b", "1"))
        )
        for _ in range(3_000):
            if database._rescue_lock.locked():
                break
            await asyncio.sleep(0.01)
        assert database._rescue_lock.locked()
        for _ in range(3):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])
        may_end.set()
        await reading
        async with asyncio.timeout(30):
            await database.write(lambda connection: set_meta(connection, "c", "1"))
            found = await database.read(
                lambda connection: [get_meta(connection, key) for key in "ac"]
            )
        assert found == ["1", "1"]
        assert database.rescue_count == 1


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
async def test_connections_that_cannot_be_opened_after_a_rescue_are_opened_at_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    path = tmp_path / "state.db"
    opened = 0

    def open_or_fail(path: Path, *, is_reader: bool, may_wait: bool) -> StoreConnection:
        nonlocal opened
        opened += 1
        if opened == failing:
            raise sqlite3.OperationalError("unable to open database file")
        return open_connection(path, is_reader=is_reader, may_wait=may_wait)

    async with Database.open(path) as database:
        await database.write(lambda connection: set_meta(connection, "a", "1"))
        path.with_name("state.db-wal").unlink()
        monkeypatch.setattr("core.store.sqlite.database.open_connection", open_or_fail)
        with pytest.raises(StoreError, match="unable to open"):
            await database.check_files()
        for look in (database.read_inline, database.read):
            assert await look(lambda connection: get_meta(connection, "a")) == "1"
        await database.write(lambda connection: set_meta(connection, "b", "1"))
        found = await database.read(lambda connection: [get_meta(connection, key) for key in "ab"])
        assert found == ["1", "1"]


def test_lock_after_a_pause_without_waiting_writes_gets_the_whole_time_limit() -> None:
    now = 0.0
    wait = LockWait(now=lambda: now)
    wait.note_lock()
    now = 8.0  # the write that noticed the lock was cancelled long ago
    wait.note_lock()
    assert not wait.is_over
    for _ in range(20):
        now += 0.25
        wait.note_lock()
    assert wait.is_over
    now += 8.0
    wait.note_lock()
    assert wait.is_over


async def test_log_that_another_program_still_holds_at_the_end_is_put_back_for_the_next_start(
    tmp_path: Path,
) -> None:
    path, later = tmp_path / "state.db", tmp_path / "later" / "state.db"
    async with Database.open(path):
        pass
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        async with Database.open(path) as database:
            await database.write(lambda connection: set_meta(connection, "a", "1"))
            other.execute("BEGIN")
            other.execute("SELECT COUNT(*) FROM state_meta").fetchone()
            await database.write(lambda connection: set_meta(connection, "b", "1"))
            path.with_name("state.db-wal").unlink()
        # The next start finds these files if the other program is killed.
        later.parent.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{later}{suffix}")
    async with Database.open(later) as database:
        found = await database.read(lambda connection: [get_meta(connection, key) for key in "ab"])
        assert found == ["1", "1"]
    async with Database.open(path) as database:
        found = await database.read(lambda connection: [get_meta(connection, key) for key in "ab"])
        assert found == ["1", "1"]


async def test_write_whose_log_is_removed_before_it_ends_is_kept_and_not_called_lost(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"

    def write_and_remove(connection: StoreConnection) -> None:
        set_meta(connection, "a", "1")
        path.with_name("state.db-wal").unlink()

    async with Database.open(path) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT COUNT(*) FROM state_meta").fetchone()
            await database.write(write_and_remove)
            with pytest.raises(StoreLogHeldError):
                await database.check_files()
        await database.check_files()
        assert await database.read(lambda connection: get_meta(connection, "a")) == "1"


def fill(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS filler (content)")
    connection.execute("INSERT INTO filler VALUES (zeroblob(3000000))")


def vacuum_in_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("DROP TABLE filler")
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.execute("VACUUM")
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def open_with_filled_file(stack: AsyncExitStack, path: Path) -> Database:
    database = await stack.enter_async_context(Database.open(path))
    await database.write(fill)
    await database.checkpoint()
    await database.check_files()
    return database


async def test_large_write_after_a_vacuum_elsewhere_is_not_called_lost(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        database = await open_with_filled_file(stack, tmp_path / "state.db")
        vacuum_in_another_program(database.path)
        for _ in range(2):
            await database.write(fill)


async def test_size_after_a_vacuum_elsewhere_is_not_read_during_a_write(tmp_path: Path) -> None:
    may_read = threading.Event()

    def fill_and_fail(connection: StoreConnection) -> None:
        fill(connection)
        may_read.set()
        # The other thread would read the size of the unfinished transaction.
        time.sleep(0.2)
        raise RuntimeError("undone")

    async with AsyncExitStack() as stack:
        database = await open_with_filled_file(stack, tmp_path / "state.db")
        vacuum_in_another_program(database.path)
        waiting = asyncio.create_task(database._writer.call(lambda: may_read.wait(30)))
        checking = asyncio.create_task(database.check_files())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="undone"):
            database._write_inline(fill_and_fail)
        await waiting
        await checking
