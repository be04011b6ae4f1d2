"""state.db: one writer and several readers, each with a thread of its own.

Every call is one whole transaction. Its work is a function of the connection that runs in the
database's thread from BEGIN to COMMIT. So a transaction costs one switch between threads, and a
cancelled caller can't leave a transaction open.

An inline read, and a short write on a fast disk, take about as long as this switch. They run in the
caller's thread instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import aiosqlite

from core.errors import StoreError
from core.store import rows
from core.store.epoch import check_epoch
from core.store.rows import Connection, Row, T, Values
from core.store.sqlite.schema import MIGRATIONS, register_functions
from core.types import Account, Address, ErasureEpoch, Scope

SQLITE_VERSION = sqlite3.sqlite_version_info
MIN_SQLITE_VERSION = (3, 37, 0)
"""RETURNING came with 3.35, STRICT tables with 3.37."""

READERS = 2
BUSY_TIMEOUT_MS = 10_000
BUSY_RETRY_S = 0.02

CHECKPOINT_PAGES = 1_500
"""When the log has so many pages of 4 KB, SQLite copies them into the file.

If nobody reads, the log then begins again. So it usually stays below 6 MB.
"""
LOG_BYTES = 8_000_000
"""When a reader lets the log grow to this size, writes try to truncate it."""
LOG_STEP_BYTES = 1_000_000
"""After a failed attempt, the next one follows when the log has grown by this much."""
LOG_FULL_BYTES = 12_000_000
"""At this size, `wait_for_log_space` waits."""
LOG_TIMEOUT_MS = 200
"""Short reads of another program have ended after this time, even several in a row."""
LOG_SPACE_WAIT_S = 60.0

INLINE_READ_S = 0.002
"""The default limit of an inline read, which blocks the event loop. A typical one takes a tenth."""
PROGRESS_STEPS = 1_000
"""The limit is checked after so many steps of SQLite's virtual machine, which take 0.1 ms."""
SHORT_WRITE_S = 0.001
"""Short writes run inline while they take less than this on average; a switch takes a tenth."""
SHORT_WRITES = 32
"""One in so many short writes runs in the writer's thread, where SQLite may copy the log.

The mean duration is a moving average over about so many writes, too.
"""

MAX_REPORTED_PROBLEMS = 5
_DAMAGED = "{path} is damaged ({text}). Run `mneme check`, or restore a backup."
_DISK_FAULT = "it is full or has a fault. Make room and try again."
ERROR_SENTENCES = {
    "not a database": _DAMAGED,
    "malformed": _DAMAGED,
    "readonly": "{path} is read-only. Give the user that runs Mneme the right to write it.",
    "full": "The disk that holds {path} is full. Make room and try again; nothing stored was lost.",
    "disk I/O error": f"The disk that holds {{path}} cannot be used: {_DISK_FAULT}",
    "locked": f"{{path}} is locked by another program for over {BUSY_TIMEOUT_MS // 1000} s. "
    "Close it and try again.",
}
"""The sentence for a message of SQLite that contains the key."""


class _BusyError(Exception):
    """Another thread uses the writer's connection, or another process writes the file."""


class Database:
    """Runs transactions. Every method raises StoreError if SQLite fails.

    A write with an `epoch` raises StaleReadError if data in its scopes was erased since then,
    because the write may repeat that data.
    """

    def __init__(
        self,
        path: Path,
        writer: aiosqlite.Connection,
        readers: list[aiosqlite.Connection],
        inline_reader: sqlite3.Connection,
    ) -> None:
        self.path = path
        self._log_path = f"{path}-wal"
        # The size of the log after the last failed attempt to truncate it.
        self._untruncated_bytes = 0
        self._writer = writer
        # Held while a thread uses the writer's connection.
        self._writer_lock = threading.Lock()
        # Whether the writer's connection waits for locks, and copies the log when it is due.
        self._writer_may_wait = True
        self._mean_short_write_s = SHORT_WRITE_S
        self._short_write_count = 0
        self._inline_reader = inline_reader
        # Last in, first out: the reader that was used last has its pages in memory.
        self._readers: asyncio.LifoQueue[aiosqlite.Connection] = asyncio.LifoQueue()
        for reader in readers:
            self._readers.put_nowait(reader)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, path: Path) -> AsyncIterator[Database]:
        """Open the file and bring its schema up to date. A new file gets the mode 0600.

        Raises StoreError if the file is damaged, not writable, or written by a newer version.
        """
        _create_file(path)
        async with contextlib.AsyncExitStack() as stack:
            writer = await _connect_thread(stack, path, is_reader=False)
            await _run(writer, path, lambda connection: _migrate(connection, path))
            readers = [await _connect_thread(stack, path, is_reader=True) for _ in range(READERS)]
            with _translate_errors(path):
                inline_reader = stack.enter_context(contextlib.closing(_connect(path)))
                _configure(inline_reader, is_reader=True)
                inline_reader.execute("PRAGMA busy_timeout = 0")
            yield cls(path, writer, readers, inline_reader)

    # --- Writing ---

    async def write(
        self,
        work: Callable[[sqlite3.Connection], T],
        epoch: ErasureEpoch | None = None,
        *,
        is_short: bool = False,
    ) -> T:
        """Run `work` in one write transaction, which is durable when this returns.

        An exception rolls it back. A short write runs in the caller's thread while the disk is fast
        and there is no other writer.
        """

        def checked_work(connection: sqlite3.Connection) -> T:
            check_epoch(connection, epoch)
            return work(connection)

        if is_short and self._next_short_write_is_inline():
            try:
                return self._write_inline(checked_work)
            except _BusyError:
                pass  # nothing was written, so the writer's thread can do it
        return await self._run_on_writer(
            lambda connection: self._commit_and_trim_log(connection, checked_work, is_short)
        )

    def _next_short_write_is_inline(self) -> bool:
        """Count a short write, and decide whether it runs in the caller's thread."""
        self._short_write_count += 1
        if self._short_write_count % SHORT_WRITES == 0:
            return False
        return self._mean_short_write_s < SHORT_WRITE_S

    def _write_inline(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a short write in the caller's thread, waiting for nothing but the disk.

        Raises _BusyError if another thread or process writes.
        """
        if not self._writer_lock.acquire(blocking=False):
            raise _BusyError
        connection: sqlite3.Connection = self._writer._conn
        try:
            self._let_writer_wait(connection, False)
            return self._commit(connection, work, is_short=True)
        except sqlite3.DatabaseError as error:
            if _is_busy(error):
                raise _BusyError from error
            raise _to_store_error(self.path, error) from error
        finally:
            self._writer_lock.release()

    async def _run_on_writer(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the writer's connection, in its thread. It may wait for locks."""

        def locked_work(connection: sqlite3.Connection) -> T:
            with self._writer_lock:
                self._let_writer_wait(connection, True)
                return work(connection)

        return await _run(self._writer, self.path, locked_work)

    def _let_writer_wait(self, connection: sqlite3.Connection, may_wait: bool) -> None:
        """Decide whether the connection waits for locks, and copies the log when it is due."""
        if may_wait is self._writer_may_wait:
            return
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS if may_wait else 0}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if may_wait else 0}")
        self._writer_may_wait = may_wait

    def _commit(
        self,
        connection: sqlite3.Connection,
        work: Callable[[sqlite3.Connection], T],
        is_short: bool,
    ) -> T:
        """Run one write transaction. If it is short, its duration counts in the mean."""
        start_s = time.perf_counter()
        result = _transact(connection, "BEGIN IMMEDIATE", work)
        if is_short:
            duration_s = time.perf_counter() - start_s
            self._mean_short_write_s += (duration_s - self._mean_short_write_s) / SHORT_WRITES
        return result

    def _commit_and_trim_log(
        self,
        connection: sqlite3.Connection,
        work: Callable[[sqlite3.Connection], T],
        is_short: bool,
    ) -> T:
        """Run one write transaction, then truncate the log if a reader has let it grow."""
        result = self._commit(connection, work, is_short)
        log_bytes = self._log_bytes()
        if log_bytes > max(LOG_BYTES, self._untruncated_bytes + LOG_STEP_BYTES):
            self._untruncated_bytes = log_bytes
            # The transaction is durable, even if this fails.
            with contextlib.suppress(sqlite3.DatabaseError):
                if _truncate_log(connection, LOG_TIMEOUT_MS):
                    self._untruncated_bytes = 0
        return result

    async def execute(
        self, statement: str, values: Values | None = None, epoch: ErasureEpoch | None = None
    ) -> int:
        """Run one statement as a write transaction. Returns how many rows it changed."""
        return await self.write(
            lambda connection: connection.execute(statement, values or {}).rowcount, epoch
        )

    # --- The log ---

    def _log_bytes(self) -> int:
        """The size of the write-ahead log."""
        try:
            return os.stat(self._log_path).st_size
        except OSError:
            return 0

    async def checkpoint(self, timeout_ms: int = BUSY_TIMEOUT_MS) -> bool:
        """Copy the log into the file and truncate it. No other write can run meanwhile.

        Returns False if a reader still needed a part of the log after `timeout_ms`.
        """
        return await self._run_on_writer(lambda connection: _truncate_log(connection, timeout_ms))

    async def wait_for_log_space(self, wait_s: float) -> bool:
        """Wait until the log is small enough for another large transaction.

        Callers that write much call this between two transactions, so that others may write.
        Returns False if a reader of another program keeps the log large for over `wait_s`.
        """
        ends_at = time.monotonic() + wait_s
        while self._log_bytes() > LOG_FULL_BYTES and not await self.checkpoint(LOG_TIMEOUT_MS):
            if time.monotonic() > ends_at:
                return False
            await asyncio.sleep(LOG_TIMEOUT_MS / 1000)
        return True

    # --- Reading ---

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one read transaction, in the thread of a reader."""
        reader = await self._readers.get()
        try:
            return await _run(
                reader, self.path, lambda connection: _transact(connection, "BEGIN", work)
            )
        finally:
            self._readers.put_nowait(reader)

    async def read_inline(
        self, work: Callable[[sqlite3.Connection], T], limit_s: float = INLINE_READ_S
    ) -> T:
        """Run `work` in one read transaction, in the caller's thread.

        If it takes longer than `limit_s` (a cold disk) or the file is locked, it is interrupted and
        a reader starts it again.
        """
        ends_at = time.perf_counter() + limit_s
        self._inline_reader.set_progress_handler(
            lambda: time.perf_counter() > ends_at, PROGRESS_STEPS
        )
        with _translate_errors(self.path):
            try:
                return _transact(self._inline_reader, "BEGIN", work)
            except sqlite3.OperationalError:
                return await self.read(work)

    async def fetch_all(self, statement: str, values: Values | None = None) -> list[Row]:
        """All rows of one statement."""
        return await self.read(
            lambda connection: connection.execute(statement, values or {}).fetchall()
        )

    async def fetch_one(self, statement: str, values: Values | None = None) -> Row | None:
        """The first row of one statement, read inline."""
        return await self.read_inline(
            lambda connection: connection.execute(statement, values or {}).fetchone()
        )

    async def data_version(self) -> int:
        """A number that changes when another process has written."""
        return await self._run_on_writer(
            lambda connection: connection.execute("PRAGMA data_version").fetchone()[0]
        )


# --- Connections ---


class _Connection(sqlite3.Connection):
    """Binds text that isn't valid Unicode, after `rows.clean` has repaired it."""

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        """Run a statement, and once more with repaired texts if one isn't valid Unicode."""
        try:
            return super().execute(statement, values)
        except UnicodeEncodeError:
            valid_values = dict(values)
            for name, value in valid_values.items():
                if isinstance(value, str):
                    valid_values[name] = rows.clean(value)
            return super().execute(statement, valid_values)


def _create_file(path: Path) -> None:
    """Create the file and its folder if they are missing. Only the user may read the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(
            f"{path} cannot be opened for writing: {error.strerror}. Check its folder's rights."
        ) from error


async def _connect_thread(
    stack: contextlib.AsyncExitStack, path: Path, *, is_reader: bool
) -> aiosqlite.Connection:
    """Open a connection with a thread of its own. The stack closes it."""
    opening = aiosqlite.Connection(lambda: _connect(path), iter_chunk_size=64)
    with _translate_errors(path):
        thread = await stack.enter_async_context(opening)
    await _run(thread, path, lambda connection: _configure(connection, is_reader))
    return thread


def _connect(path: Path) -> sqlite3.Connection:
    """Open a connection that binds times as seconds since 1970 UTC, and ids by their keys."""
    sqlite3.register_adapter(datetime, rows.to_timestamp)
    types_with_key: tuple[Any, ...] = (Account, Address, Scope)
    for type_with_key in types_with_key:
        sqlite3.register_adapter(type_with_key, lambda value: rows.clean(value.key))
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=_Connection
    )
    connection.row_factory = sqlite3.Row
    return connection


def _configure(connection: sqlite3.Connection, is_reader: bool) -> None:
    """Set the PRAGMAs of a new connection and register the SQL functions."""
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -16384")
    connection.execute("PRAGMA mmap_size = 2000000000")
    # Otherwise each small list or sorter of a statement opens a file, which takes four fifths of
    # the time of a search.
    connection.execute("PRAGMA temp_store = MEMORY")
    register_functions(connection)
    if is_reader:
        connection.execute("PRAGMA query_only = ON")
        return
    _turn_on_log(connection)
    connection.execute("PRAGMA synchronous = FULL")
    # Of the ten pages that a message writes, most were written by the message before it. With fewer
    # checkpoints, fewer pages are copied twice.
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    # Erased text must not stay in freed pages, as it would with FAST. ON writes 0.2 % more bytes.
    connection.execute("PRAGMA secure_delete = ON")


def _turn_on_log(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log.

    SQLite doesn't wait if another process does so at the same time, so this retries.
    """
    ends_at = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > ends_at:
                raise
        time.sleep(BUSY_RETRY_S)


def _truncate_log(connection: sqlite3.Connection, timeout_ms: int) -> bool:
    """Copy the log into the file and truncate it. Returns False if a reader prevented it."""
    connection.execute(f"PRAGMA busy_timeout = {int(timeout_ms)}")
    try:
        is_blocked = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return not is_blocked
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


# --- Transactions ---


async def _run(
    connection: aiosqlite.Connection, path: Path, work: Callable[[sqlite3.Connection], T]
) -> T:
    """Run `work` in the thread of a connection. aiosqlite has no public method for this."""
    execute: Any = connection._execute
    with _translate_errors(path):
        result: T = await execute(work, connection._conn)
        return result


def _transact(
    connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]
) -> T:
    """Run `work` in a transaction that begins with the statement `begin`."""
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException as error:
        _close_cursors(error)
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def _close_cursors(error: BaseException) -> None:
    """Close the cursors that the frames of an error hold.

    ROLLBACK doesn't end a cursor that still has rows. It would keep the connection at the present
    state of the data, also in later transactions.
    """
    current: BaseException | None = error
    while current is not None:
        traceback.clear_frames(current.__traceback__)
        current = current.__context__


def _is_busy(error: sqlite3.DatabaseError) -> bool:
    """Whether another connection holds a lock."""
    # The lowest byte is the primary result code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


@contextlib.contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Raise StoreError for errors of SQLite."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _to_store_error(path, error) from error


def _to_store_error(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    text = str(error)
    sentence = "{path}: {text}"
    for part, known_sentence in ERROR_SENTENCES.items():
        if part in text:
            sentence = known_sentence
            break
    return StoreError(sentence.format(path=path, text=text))


# --- Schema ---


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply the missing migrations, each in a transaction of its own."""
    has_more = True
    while has_more:
        has_more = _transact(
            connection,
            "BEGIN IMMEDIATE",
            lambda connection: _apply_next_migration(connection, path),
        )


def _apply_next_migration(connection: sqlite3.Connection, path: Path) -> bool:
    """Apply the next migration, if there is one. Returns whether it did.

    Raises StoreError if a newer version has written the file.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer version of Mneme (schema {version}, this one knows "
            f"{len(MIGRATIONS)}). Update Mneme, or point MNEME_HOME at another folder."
        )
    if version == len(MIGRATIONS):
        return False
    for statement in _split_statements(MIGRATIONS[version]):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version + 1}")
    return True


def _split_statements(script: str) -> Iterator[str]:
    """Split a script, so that it can run inside one transaction (`executescript` commits)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


async def find_damage(database: Database) -> list[str]:
    """Check the file and return a sentence about each problem."""

    def check(connection: Connection) -> list[str]:
        lines = connection.execute(f"PRAGMA quick_check({MAX_REPORTED_PROBLEMS})")
        problems = [str(line[0]) for line in lines if line[0] != "ok"]
        broken_rows = connection.execute("PRAGMA foreign_key_check").fetchall()
        for row in broken_rows[:MAX_REPORTED_PROBLEMS]:
            problems.append(f"a row of {row[0]} refers to nothing")
        return problems

    return await database.read(check)
