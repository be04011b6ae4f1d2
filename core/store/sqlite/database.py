"""Run transactions on state.db, with one writer and several readers in threads of their own.

A caller passes a function that gets the connection. The function runs in one thread from BEGIN to
COMMIT. A transaction therefore costs one switch between threads, and a cancelled caller can't leave
a transaction open.

Inline reads, and short writes on a fast disk, run in the caller's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiosqlite

from core.errors import StoreDamagedError, StoreError, StoreLogHeldError, StoreLostError
from core.store.engine import Row, T, Values
from core.store.sqlite.faults import (
    LockWait,
    is_busy,
    to_store_error,
    translate_errors,
)
from core.store.sqlite.log_copy import LogCopy
from core.store.sqlite.opening import (
    count_file_bytes,
    create_file,
    is_current,
    leave_mark,
    open_connection,
    truncate_log,
)
from core.store.sqlite.text_index import StoreConnection
from core.store.tool_calls import record_call
from core.store.visibility import check_epoch
from core.types import ErasureEpoch

READERS = 2
CHECKPOINT_TIMEOUT_MS = 10_000  # how long a checkpoint waits for readers, by default
LOCK_RETRY_S = 0.02

LOG_BYTES = 8_000_000  # writes try to truncate a log that a long read has let grow beyond this
LOG_STEP_BYTES = 1_000_000
LOG_STEP_WRITES = 500
"""After a failed attempt to truncate the log, a write tries again once the log has grown by
`LOG_STEP_BYTES`, or after `LOG_STEP_WRITES` writes."""
LOG_FULL_BYTES = 12_000_000  # `wait_for_log_space` waits while the log is larger than this
LOG_TIMEOUT_MS = 200
"""How long a write that truncates the log waits for readers. Short reads end sooner."""

INLINE_READ_S = 0.002
"""How long an inline read may block the event loop by default. Most take a tenth of this time."""
PROGRESS_STEPS = 1_000
"""An inline read checks its time limit after this many steps of SQLite's virtual machine, or about
every 0.1 ms."""
SHORT_WRITE_S = 0.001
"""Short writes run inline while their mean duration is below this, in seconds. A switch between
threads takes a tenth of it."""
SHORT_WRITES = 32
"""One in this many short writes runs in the writer's thread, where SQLite may copy the log. The
mean duration is a moving average over about as many writes."""


class _BusyError(Exception):
    """Another thread is using the writer's connection, or another process is writing."""


class FileGuard:
    """Notices if state.db or its log is removed, replaced or truncated while it is open.

    SQLite keeps using its open files even if they were deleted. Rows in a deleted file would be
    lost at the next start, and another process could overwrite rows in a file that it considers its
    own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log_paths = (f"{path}-wal", f"{path}-shm")
        self.remember()

    def remember(self) -> None:
        """Remember the current files as those that SQLite has open."""
        self._file = _identify(self._path)
        self._log = [*map(_identify, self._log_paths)]
        self.file_bytes = 0
        # Whether the file became smaller, which only damage and VACUUM do.
        self.is_smaller = False
        self.is_file_there()  # stores the current size

    def is_file_there(self) -> bool:
        """Return whether state.db is still the file that was opened and hasn't become smaller."""
        try:
            stat = os.stat(self._path)
        except OSError:
            return False
        if stat.st_size < self.file_bytes:
            self.is_smaller = True
            return False
        self.file_bytes = stat.st_size
        self.is_smaller = False
        return (stat.st_dev, stat.st_ino) == self._file

    def is_log_there(self) -> bool:
        """Return whether the log and its index of locks are still the opened files."""
        return [*map(_identify, self._log_paths)] == self._log


class Database:
    """Runs transactions. Methods raise StoreError if SQLite fails.

    If data in the scopes of `epoch` was erased after `epoch` was read, a write raises
    StaleReadError, because it may repeat the erased data.
    """

    def __init__(
        self,
        path: Path,
        writer: ConnectionThread,
        readers: list[ConnectionThread],
        inline_reader: ConnectionSlot,
        lock_wait: LockWait,
    ) -> None:
        self.path = path
        self.name = str(path)
        self._log_path = f"{path}-wal"
        # The size of the log after the last failed attempt to truncate it, and the writes since.
        self._untruncated_bytes = 0
        self._untruncated_writes = 0
        self._writer = writer
        # Held while a thread uses the writer's connection.
        self._writer_lock = threading.Lock()
        self._mean_short_write_s = SHORT_WRITE_S
        self._short_write_count = 0
        self._inline_reader = inline_reader
        self._lock_wait = lock_wait
        self._guard = FileGuard(path)
        self._log_copy = LogCopy(path)
        # Held while all connections are reopened after the log was removed.
        self._rescue_lock = asyncio.Lock()
        self._rescue: asyncio.Task[None] | None = None
        # Whether connections are closed because opening them again failed.
        self._is_closed = False
        # How often a removed log was rescued.
        self.rescue_count = 0
        # Describes the first damage that was noticed in the file, or "" if there is none.
        self.damage = ""
        # Held by the first write that waits for another program's lock.
        self._lock_queue = asyncio.Lock()
        # The most recently used reader is used first, because its pages are in memory.
        self._readers: asyncio.LifoQueue[ConnectionThread] = asyncio.LifoQueue()
        for reader in readers:
            self._readers.put_nowait(reader)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, path: Path, lock_wait: LockWait | None = None) -> AsyncIterator[Database]:
        """Open the file and bring its schema up to date. A new file gets the mode 0600.

        Raises StoreError if the file is damaged, lost or not writable, or if its schema is newer
        than this version of Mneme.
        """
        create_file(path)
        async with contextlib.AsyncExitStack() as stack:
            writer = await ConnectionThread.open(stack, path, is_reader=False)
            with translate_errors(path):
                if not await writer.run(lambda connection: is_current(connection, path)):
                    # Imported here because upgrades are rare.
                    from core.store.sqlite.upgrade import create_or_upgrade

                    await writer.run(lambda connection: create_or_upgrade(connection, path))
            leave_mark(path)
            readers = [
                await ConnectionThread.open(stack, path, is_reader=True) for _ in range(READERS)
            ]
            inline_reader = ConnectionSlot(path, is_reader=True, is_inline=True)
            stack.callback(inline_reader.close)
            with translate_errors(path):
                inline_reader.open()
            database = cls(path, writer, readers, inline_reader, lock_wait or LockWait())
            try:
                yield database
            finally:
                await database._finish_rescue()

    # --- Writing ---

    async def write(
        self,
        work: Callable[[StoreConnection], T],
        epoch: ErasureEpoch | None = None,
        *,
        is_short: bool = False,
    ) -> T:
        """Run `work` in a write transaction and return its result.

        The transaction is durable when this method returns. If `work` raises an exception, the
        transaction is rolled back. During a tool call, the transaction also records that the call
        was carried out, unless `work` changes nothing. With `is_short`, `work` runs in the caller's
        thread if the disk is fast and no other write is running.
        """

        def checked_work(connection: StoreConnection) -> T:
            check_epoch(connection, epoch)
            changes = connection.total_changes
            result = work(connection)
            if epoch is not None and epoch.call is not None and connection.total_changes > changes:
                record_call(connection, epoch.call)
            return result

        await self._wait_for_rescue()
        # After VACUUM, the size is compared before the transaction, which may make the file larger.
        if not (self._guard.is_file_there() and self._guard.is_log_there()):
            await self.check_files()
        if is_short and self._next_short_write_is_inline():
            try:
                result = self._write_inline(checked_work)
            except _BusyError:
                pass  # nothing was written, so the writer's thread can do it
            else:
                await self._check_durability()
                return result
        result = await self._run_on_writer(
            lambda connection: self._commit_and_trim_log(connection, checked_work, is_short)
        )
        await self._check_durability()
        return result

    def _next_short_write_is_inline(self) -> bool:
        """Count a short write, and return whether it runs in the caller's thread."""
        self._short_write_count += 1
        if self._short_write_count % SHORT_WRITES == 0:
            return False
        return self._mean_short_write_s < SHORT_WRITE_S

    def _write_inline(self, work: Callable[[StoreConnection], T]) -> T:
        """Run a short write in the caller's thread, without waiting for other writers.

        Raises _BusyError if another thread or process is writing.
        """
        if not self._writer_lock.acquire(blocking=False):
            raise _BusyError
        try:
            return self._writer.slot.run(
                lambda connection: self._commit_without_copying(connection, work)
            )
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                raise _BusyError from error
            raise self._to_error(error) from error
        finally:
            self._writer_lock.release()

    def _commit_without_copying(
        self, connection: StoreConnection, work: Callable[[StoreConnection], T]
    ) -> T:
        """Run one short write transaction without copying the log."""
        connection.let_copy_log(may_copy=False)
        return self._commit(connection, work, is_short=True)

    async def _run_on_writer(self, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` on the writer's connection, in its thread.

        If another program locks the file, try again until it is unlocked. Raises StoreError if the
        lock lasts longer than `LockWait.timeout_s`.
        """
        try:
            return await self._try_on_writer(work)
        except _BusyError:
            pass
        async with self._lock_queue:
            while True:
                if self._lock_wait.is_over:
                    raise StoreError("store_locked", path=self.path)
                await self._lock_wait.sleep(LOCK_RETRY_S)
                try:
                    return await self._try_on_writer(work)
                except _BusyError:
                    continue

    async def _try_on_writer(self, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` once in the writer's thread. Raises _BusyError if the file is locked."""

        def locked_run() -> T:
            # Without the lock, `run` could replace the connection while another thread writes.
            with self._writer_lock:
                self._writer.slot.connection.let_copy_log(may_copy=True)
                return self._writer.slot.run(work)

        try:
            return await self._writer.call(locked_run)
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                self._lock_wait.note_lock()
                raise _BusyError from error
            raise self._to_error(error) from error

    def _commit(
        self,
        connection: StoreConnection,
        work: Callable[[StoreConnection], T],
        is_short: bool,
    ) -> T:
        """Run a write transaction. If it's short, update the mean duration of short writes."""
        start_s = time.perf_counter()
        result = connection.transact("BEGIN IMMEDIATE", work)
        if self._lock_wait.began_at is not None:
            self._lock_wait.note_success()
        if is_short:
            duration_s = time.perf_counter() - start_s
            self._mean_short_write_s += (duration_s - self._mean_short_write_s) / SHORT_WRITES
        return result

    def _commit_and_trim_log(
        self,
        connection: StoreConnection,
        work: Callable[[StoreConnection], T],
        is_short: bool,
    ) -> T:
        """Run a write transaction, then truncate the log if it grew because of a reader."""
        result = self._commit(connection, work, is_short)
        log_bytes = self.log_bytes()
        self._untruncated_writes += 1
        has_grown = log_bytes > self._untruncated_bytes + LOG_STEP_BYTES
        if log_bytes > LOG_BYTES and (has_grown or self._untruncated_writes >= LOG_STEP_WRITES):
            self._untruncated_bytes = log_bytes
            self._untruncated_writes = 0
            # The transaction is durable, even if this fails.
            with contextlib.suppress(sqlite3.DatabaseError):
                if truncate_log(connection, LOG_TIMEOUT_MS):
                    self._untruncated_bytes = 0
        return result

    async def execute(
        self, statement: str, values: Values | None = None, epoch: ErasureEpoch | None = None
    ) -> int:
        """Run one statement in a write transaction, and return how many rows it changed."""
        return await self.write(
            lambda connection: connection.execute(statement, values or {}).rowcount, epoch
        )

    async def write_indexed(
        self,
        work: Callable[[StoreConnection], T],
        epoch: ErasureEpoch | None = None,
        *,
        is_short: bool = False,
    ) -> T:
        """Run `work`, which changes indexed text, even if an index is damaged.

        In all other respects, this works like `write`. A damaged index over facts is rebuilt at
        once. Other damaged indexes are flagged for a rebuild.
        """
        try:
            return await self.write(work, epoch, is_short=is_short)
        except StoreError as error:
            from core.store.sqlite import fact_index, indexing

            if not indexing.is_index_damage(error):
                raise
        if await self.write(fact_index.repair_fact_index):
            return await self.write_indexed(work, epoch)

        def reset_and_work(connection: StoreConnection) -> T:
            indexing.reset_indexes(connection)
            return work(connection)

        return await self.write(reset_and_work, epoch)

    async def compact(self, limit_s: float) -> bool:
        """Overwrite erased words in the files, for about `limit_s` seconds. See `compaction.py`."""
        from core.store.sqlite.compaction import compact

        return await compact(self, self.checkpoint, limit_s)

    async def compact_step(self) -> bool:
        """Run one small step of `compact`."""
        from core.store.sqlite.compaction import compact_step

        return await compact_step(self, self.checkpoint)

    # --- The files ---

    def _to_error(self, error: sqlite3.DatabaseError) -> StoreError:
        """Convert an error of SQLite to a StoreError, or StoreLostError if the file is lost."""
        if not self._guard.is_file_there():
            return StoreLostError("store_lost", path=self.path)
        store_error = to_store_error(self.path, error)
        if isinstance(store_error, StoreDamagedError):
            self.note_damage(str(error))
        return store_error

    def note_damage(self, text: str) -> None:
        """Record that the file is damaged. An earlier description of damage is kept."""
        self.damage = self.damage or text

    async def check_files(self) -> None:
        """Check that SQLite has the same files open that the next start will find.

        If the log was removed, save its content in the file and begin a new log. Raises
        StoreLostError if the file itself was removed, replaced or truncated, or if the content of
        the log can't be saved.
        """
        if not self._guard.is_file_there() and await self._is_file_lost():
            raise StoreLostError("store_lost", path=self.path)
        if self._is_closed or not self._guard.is_log_there():
            await self._rescue_log()

    async def _check_durability(self) -> None:
        """Check that the next start will find what was just written."""
        # If the log is held, its content was put back.
        with contextlib.suppress(StoreLogHeldError):
            await self.check_files()

    async def _is_file_lost(self) -> bool:
        """Return whether the file is lost. A file that VACUUM has made smaller isn't lost."""
        if not self._guard.is_smaller:
            return True

        try:
            expected_bytes = await self._try_on_writer(count_file_bytes)
        except StoreError:
            return True
        except _BusyError:
            return False  # the next check tells
        if not 0 < expected_bytes < self._guard.file_bytes:
            return True
        self._guard.remember()
        return False

    async def _wait_for_rescue(self) -> None:
        """Wait until no rescue is running, and try again to open closed connections."""
        if self._rescue_lock.locked():
            async with self._rescue_lock:
                pass
        if self._is_closed:
            await self._rescue_log()

    async def _rescue_log(self) -> None:
        """Save the content of a removed log in the file, and open all connections again.

        A rescue that has begun is finished even if its caller is cancelled. Raises StoreError if
        the rescue fails. The next call tries again.
        """
        if self._rescue is None or self._rescue.done():
            self._rescue = asyncio.create_task(self._begin_new_log())
            # If all callers are cancelled, nobody else looks at its error.
            self._rescue.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._rescue)

    async def _finish_rescue(self) -> None:
        """End a rescue whose caller was cancelled, and save the content of a removed log."""
        if self._rescue is not None:
            await asyncio.wait([self._rescue])
        with contextlib.suppress(StoreError):
            await self.check_files()
        self._log_copy.close()

    async def _begin_new_log(self) -> None:
        """Copy the removed log into the file, and open all connections with a new log.

        All connections are closed first, because SQLite shares the index of the log among the
        connections of a process. If another program prevents the copy, raises StoreLogHeldError
        after the content of the log was put back, and StoreLostError if that failed, too.
        """
        readers: list[ConnectionThread] = []
        async with self._rescue_lock:
            if not self._is_closed and self._guard.is_log_there():
                return
            try:
                for _ in range(READERS):
                    readers.append(await self._readers.get())
                slots = [self._inline_reader, *(reader.slot for reader in readers)]
                if not await self._writer.call(lambda: self._save_and_reopen(slots)):
                    raise StoreLogHeldError("store_log_held", path=self._log_path)
            except (OSError, sqlite3.DatabaseError) as error:
                raise self._to_rescue_error(error) from error
            finally:
                for reader in readers:
                    self._readers.put_nowait(reader)

    def _to_rescue_error(self, error: OSError | sqlite3.DatabaseError) -> StoreError:
        """Convert an error of a rescue to a StoreError that says whether the log is saved."""
        if self._is_closed or not self._guard.is_file_there():
            if isinstance(error, sqlite3.DatabaseError):
                return self._to_error(error)
            return StoreError("store_unopened", path=self.path, reason=error)
        return StoreLostError("store_log_unsaved", path=self._log_path, reason=error)

    def _save_and_reopen(self, slots: list[ConnectionSlot]) -> bool:
        """Copy the removed log into the file, and open all connections with a new log.

        If another program prevents the copy, return False and leave the connections open. If a
        connection can't be opened, the next call tries again.
        """
        with self._writer_lock:
            connection = self._writer.slot.connection
            if not self._is_closed and not truncate_log(connection, LOG_TIMEOUT_MS):
                connection.transact("BEGIN IMMEDIATE", lambda _: self._log_copy.put_back())
                return False
            self._is_closed = True
            all_slots = [self._writer.slot, *slots]
            for slot in all_slots:
                slot.close()
            self._log_copy.remove()
            for slot in all_slots:
                slot.open()
            self._is_closed = False
            self._guard.remember()
            self._log_copy.keep_open()
            self.rescue_count += 1
            return True

    # --- The log ---

    def log_bytes(self) -> int:
        """Return the size of the write-ahead log, or 0 if there is no log."""
        try:
            return os.stat(self._log_path).st_size
        except OSError:
            return 0

    async def checkpoint(self, timeout_ms: int = CHECKPOINT_TIMEOUT_MS) -> bool:
        """Copy the log into the file and truncate the log, while other writes wait.

        Returns False if a reader still needed part of the log after `timeout_ms`.
        """
        return await self._run_on_writer(lambda connection: truncate_log(connection, timeout_ms))

    async def wait_for_log_space(self, wait_s: float) -> bool:
        """Wait until the log is small enough for another large transaction.

        Returns False if a reader in another program kept the log large for `wait_s` seconds.
        """
        ends_at = time.monotonic() + wait_s
        while self.log_bytes() > LOG_FULL_BYTES and not await self.checkpoint(LOG_TIMEOUT_MS):
            if time.monotonic() > ends_at:
                return False
            await asyncio.sleep(LOG_TIMEOUT_MS / 1000)
        return True

    # --- Reading ---

    async def read(self, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` in one read transaction, in the thread of a reader."""
        if self._is_closed:
            await self._wait_for_rescue()
        reader = await self._readers.get()
        try:
            return await reader.run(lambda connection: connection.transact("BEGIN", work))
        except sqlite3.DatabaseError as error:
            raise self._to_error(error) from error
        finally:
            self._readers.put_nowait(reader)

    async def read_inline(
        self, work: Callable[[StoreConnection], T], limit_s: float = INLINE_READ_S
    ) -> T:
        """Run `work` in a read transaction, in the caller's thread.

        If `work` takes longer than `limit_s`, for example because the disk is slow, or if the file
        is locked, `work` runs again from the start in a reader's thread.
        """
        if self._is_closed or self._rescue_lock.locked():
            return await self.read(work)
        try:
            return self._inline_reader.run(
                lambda connection: _transact_within(connection, work, limit_s)
            )
        except sqlite3.OperationalError:
            return await self.read(work)
        except sqlite3.DatabaseError as error:
            raise self._to_error(error) from error

    async def fetch_all(self, statement: str, values: Values | None = None) -> list[Row]:
        """Return all rows of one statement."""
        return await self.read(
            lambda connection: connection.execute(statement, values or {}).fetchall()
        )

    async def fetch_one(self, statement: str, values: Values | None = None) -> Row | None:
        """Return the first row of one statement, or None. The statement is read inline."""
        return await self.read_inline(
            lambda connection: connection.execute(statement, values or {}).fetchone()
        )

    async def data_version(self) -> int:
        """Return a number that changes whenever another process writes to the file."""
        return await self._run_on_writer(
            lambda connection: connection.execute("PRAGMA data_version").fetchone()[0]
        )


# --- Connections ---


class ConnectionSlot:
    """A connection that is replaced if a transaction on it can't be ended.

    An open transaction would keep the log from being truncated, and would show old data to later
    reads.
    """

    def __init__(self, path: Path, *, is_reader: bool, is_inline: bool = False) -> None:
        self.path = path
        self.connection: StoreConnection
        self._is_reader = is_reader
        self._is_inline = is_inline

    def open(self) -> StoreConnection:
        """Open and configure the connection. Raises sqlite3.DatabaseError if SQLite fails."""
        # The caller of the others tries again when the file is locked.
        may_wait = self._is_reader and not self._is_inline
        self.connection = open_connection(self.path, is_reader=self._is_reader, may_wait=may_wait)
        return self.connection

    def run(self, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` on the connection, in the caller's thread."""
        connection = self.connection
        try:
            return work(connection)
        finally:
            if connection.in_transaction:
                self.replace()

    def replace(self) -> None:
        """Close the connection and open another one."""
        old_connection = self.connection
        self.open()
        old_connection.close()

    def close(self) -> None:
        """Close the connection, if it was opened."""
        connection = getattr(self, "connection", None)
        if connection is not None:
            connection.close()


class ConnectionThread:
    """A connection with its own thread."""

    def __init__(self, slot: ConnectionSlot, thread: aiosqlite.Connection) -> None:
        self.slot = slot
        self._thread = thread

    @classmethod
    async def open(
        cls, stack: contextlib.AsyncExitStack, path: Path, *, is_reader: bool
    ) -> ConnectionThread:
        """Open a connection in a new thread. `stack` ends the thread and closes the connection."""
        slot = ConnectionSlot(path, is_reader=is_reader)
        stack.callback(slot.close)
        # The thread starts with a database in memory, and opens the file in a second step. If the
        # first step of an aiosqlite thread failed, the thread would keep running.
        thread = await stack.enter_async_context(aiosqlite.connect(":memory:"))
        connection_thread = cls(slot, thread)
        with translate_errors(path):
            await connection_thread.call(slot.open)
        return connection_thread

    async def run(self, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` on the connection, in its thread. Raises sqlite3.DatabaseError if it fails."""
        # aiosqlite has no public method for this.
        execute: Any = self._thread._execute
        result: T = await execute(self.slot.run, work)
        return result

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function in the thread. It may close and open the connection."""
        execute: Any = self._thread._execute
        result: T = await execute(function)
        return result


def _identify(path: str | Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if the file can't be accessed."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


# --- Transactions ---


def _transact_within(
    connection: StoreConnection, work: Callable[[StoreConnection], T], limit_s: float
) -> T:
    """Run a read transaction, and interrupt it after `limit_s` seconds."""
    ends_at = time.perf_counter() + limit_s
    connection.set_progress_handler(lambda: time.perf_counter() > ends_at, PROGRESS_STEPS)
    return connection.transact("BEGIN", work)
