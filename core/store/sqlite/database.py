"""state.db: a writer and separate readers, each on its own thread, every call one whole transaction; and that of Hermes
Agent, read-only.

Work is a function of the connection that runs in the database thread from BEGIN to COMMIT: a transaction costs one hop
between threads, and a cancelled caller cannot leave one half done. A glance, and a short write on a quick disk, take
about as long as the hop and spare it.
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

from core.errors import HistoryError, StoreError
from core.store import rows
from core.store.epoch import check
from core.store.rows import Connection, Row, T, Values
from core.store.sqlite.schema import MIGRATIONS, register
from core.types import Account, Address, ErasureEpoch, Scope

BUSY_TIMEOUT_MS = 10_000
READERS = 2
LOG_BYTES, LOG_FULL_BYTES = 8_000_000, 12_000_000
"""From the first size on, a log that somebody reads from is emptied on the way; at the second who writes much waits."""
LOG_PAGES = 1_500
"""Of 4 KB, after which what is in the log is written into the file: it is begun anew at 6 MB, while nobody reads."""
LOG_STEP_BYTES = 1_000_000
LOG_PATIENCE_MS = 200
"""Short reads of another program, one behind the other, are over by then."""
ROOM_WAIT_S = 60.0
GLANCE_S = 0.002
"""The longest a glance may hold the event loop, unless its caller says more; ten times what it takes."""
_DAMAGED = "{path} is damaged ({text}). Run `mneme check`, or restore a backup."
SENTENCES = {
    "not a database": _DAMAGED,
    "malformed": _DAMAGED,
    "readonly": "{path} is read-only. Give the user that runs Mneme the right to write it.",
    "full": "The disk that holds {path} is full. Make room and try again; nothing stored was lost.",
    "disk I/O error": "The disk that holds {path} cannot be used: it is full or has a fault. Make room and try again.",
    "locked": f"{{path}} is locked by another program for over {BUSY_TIMEOUT_MS // 1000} s. Close it and try again.",
}
"""What is told for a message of SQLite that has these words."""
GLANCE_STEPS = 1_000
"""Steps of SQLite's machine (0.1 ms) between two looks at the time."""
SHORT_S, SHORT_WRITES = 0.001, 32
"""A short write may hold the event loop where the last ones took less than this on average; the hop takes a tenth of
it. One in so many is done in the thread, which writes the log back into the file when that is due."""


class Database:
    """Runs transactions. Each method raises StoreError for what SQLite refuses. A write of what was read as of an
    `epoch` raises StaleReadError when something was erased since that it may repeat."""

    def __init__(
        self, path: Path, writer: aiosqlite.Connection, readers: list[aiosqlite.Connection], near: sqlite3.Connection
    ) -> None:
        self.path = path
        self._log_path = f"{path}-wal"
        self._log_kept_bytes = 0  # what a reader kept from being emptied
        self._writer = writer
        self._writing = threading.Lock()  # held by whoever uses the writer's connection
        self._is_patient = True  # the connection waits for a lock, and writes the log back into the file when it is due
        self._short_s, self._short_writes = SHORT_S, 0
        self._near = near
        # Last in, first out: the reader used last has its pages in memory.
        self._readers: asyncio.LifoQueue[aiosqlite.Connection] = asyncio.LifoQueue()
        for reader in readers:
            self._readers.put_nowait(reader)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, path: Path) -> AsyncIterator[Database]:
        """Opens (and creates, mode 0600) the file, migrates it, closes it at the end. Raises StoreError when it is
        damaged, not writable, or was written by a newer version."""
        async with contextlib.AsyncExitStack() as stack:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            except OSError as error:
                raise StoreError(
                    f"{path} cannot be opened for writing: {error.strerror}. Check its folder's rights."
                ) from error
            writer = await _connect(stack, path, is_reader=False)
            await _run(writer, path, lambda connection: _migrate(connection, path))
            connections = [await _connect(stack, path, is_reader=True) for _ in range(READERS)]
            with _translated(path):
                near = stack.enter_context(contextlib.closing(_opened(path)))
                _configure(near, is_reader=True)
                near.execute("PRAGMA busy_timeout = 0")
            yield cls(path, writer, connections, near)

    async def write(
        self, work: Callable[[sqlite3.Connection], T], epoch: ErasureEpoch | None = None, *, is_short: bool = False
    ) -> T:
        """Runs `work` in one write transaction, durable when this returns; an exception rolls it back. What `is_short`
        is done in the caller's thread while the disk is quick and nobody else writes."""

        def whole(connection: sqlite3.Connection) -> T:
            check(connection, epoch)
            return work(connection)

        def timed(connection: sqlite3.Connection) -> T:
            began_s = time.perf_counter()
            result = _transact(connection, "BEGIN IMMEDIATE", whole)
            if is_short:
                self._short_s += (time.perf_counter() - began_s - self._short_s) / SHORT_WRITES
            return result

        def written(connection: sqlite3.Connection) -> T:
            result = timed(connection)
            log_bytes = self._log_bytes()
            if log_bytes > max(LOG_BYTES, self._log_kept_bytes + LOG_STEP_BYTES):
                self._log_kept_bytes = log_bytes
                # What was written is safe, whatever becomes of this.
                with contextlib.suppress(sqlite3.DatabaseError):
                    self._log_kept_bytes = 0 if _empty_log(connection, LOG_PATIENCE_MS) else log_bytes
            return result

        self._short_writes += is_short
        if is_short and self._short_s < SHORT_S and self._short_writes % SHORT_WRITES:
            try:
                return self._at_hand(timed)
            except _BusyError:
                pass  # nothing was done: the thread waits until nobody else writes
        return await self._in_thread(written)

    def _at_hand(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `work` on the writer's connection in the caller's thread, without waiting for anything but the disk.
        Raises _BusyError where somebody else writes."""
        if not self._writing.acquire(blocking=False):
            raise _BusyError
        connection: sqlite3.Connection = self._writer._conn
        try:
            self._set_patient(connection, False)
            return work(connection)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise _BusyError from error
            raise _told(self.path, error) from error
        finally:
            self._writing.release()

    async def _in_thread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `work` on the writer's connection in its thread."""

        def alone(connection: sqlite3.Connection) -> T:
            with self._writing:
                self._set_patient(connection, True)
                return work(connection)

        return await _run(self._writer, self.path, alone)

    def _set_patient(self, connection: sqlite3.Connection, is_patient: bool) -> None:
        if is_patient is not self._is_patient:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS if is_patient else 0}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES if is_patient else 0}")
            self._is_patient = is_patient

    async def has_room(self, wait_s: float) -> bool:
        """For who writes much, between two transactions: waits while another program's reader keeps the log from being
        emptied, and others may write; False when it does so for longer than `wait_s`."""
        until = time.monotonic() + wait_s
        while self._log_bytes() > LOG_FULL_BYTES and not await self.checkpoint(LOG_PATIENCE_MS):
            if time.monotonic() > until:
                return False
            await asyncio.sleep(LOG_PATIENCE_MS / 1000)
        return True

    def _log_bytes(self) -> int:
        with contextlib.suppress(OSError):
            return os.stat(self._log_path).st_size
        return 0

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        reader = await self._readers.get()
        try:
            return await _run(reader, self.path, lambda connection: _transact(connection, "BEGIN", work))
        finally:
            self._readers.put_nowait(reader)

    async def glance(self, work: Callable[[sqlite3.Connection], T], limit_s: float = GLANCE_S) -> T:
        """Runs `work` in the caller's thread; what is not done after `limit_s` (a cold disk, a locked file) is broken
        off and done by a reader."""
        until = time.perf_counter() + limit_s
        self._near.set_progress_handler(lambda: time.perf_counter() > until, GLANCE_STEPS)
        with _translated(self.path):
            try:
                return _transact(self._near, "BEGIN", work)
            except sqlite3.OperationalError:
                return await self.read(work)

    async def execute(self, statement: str, values: Values | None = None, epoch: ErasureEpoch | None = None) -> int:
        """One statement as a write transaction; returns how many rows it changed."""
        return await self.write(lambda one: one.execute(statement, values or {}).rowcount, epoch)

    async def fetch_all(self, statement: str, values: Values | None = None) -> list[Row]:
        return await self.read(lambda connection: connection.execute(statement, values or {}).fetchall())

    async def fetch_one(self, statement: str, values: Values | None = None) -> Row | None:
        """The first row, at a glance."""
        return await self.glance(lambda connection: connection.execute(statement, values or {}).fetchone())

    async def checkpoint(self, patience_ms: int = BUSY_TIMEOUT_MS) -> bool:
        """Writes the log back into the file and truncates it, while nobody can write; False when a reader held a part
        of it for longer than `patience_ms`."""
        return await self._in_thread(lambda connection: _empty_log(connection, patience_ms))

    async def data_version(self) -> int:
        """A number that changes when another process has written."""
        return await self._in_thread(lambda one: one.execute("PRAGMA data_version").fetchone()[0])


class _BusyError(Exception):
    """Somebody else uses the writer's connection, or writes the file."""


class _Connection(sqlite3.Connection):
    """Binds text as valid Unicode, moments as seconds since 1970 UTC, accounts, addresses and scopes by their keys."""

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(statement, values)
        except UnicodeEncodeError:
            whole = {name: rows.clean(one) if isinstance(one, str) else one for name, one in values.items()}
            return super().execute(statement, whole)


async def _connect(stack: contextlib.AsyncExitStack, path: Path, *, is_reader: bool) -> aiosqlite.Connection:
    opening = aiosqlite.Connection(lambda: _opened(path), iter_chunk_size=64)
    with _translated(path):
        connection = await stack.enter_async_context(opening)
    await _run(connection, path, lambda opened: _configure(opened, is_reader))
    return connection


def _opened(path: Path) -> sqlite3.Connection:
    sqlite3.register_adapter(datetime, rows.timestamp)
    kinds: tuple[Any, ...] = (Account, Address, Scope)
    for kind in kinds:
        sqlite3.register_adapter(kind, lambda one: rows.clean(one.key))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=_Connection)
    connection.row_factory = sqlite3.Row
    return connection


def _configure(connection: sqlite3.Connection, is_reader: bool) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -16384")
    connection.execute("PRAGMA mmap_size = 2000000000")
    # A small list or sorter of a statement would open a file each: four fifths of the time of a search.
    connection.execute("PRAGMA temp_store = MEMORY")
    register(connection)
    if is_reader:
        connection.execute("PRAGMA query_only = ON")
        return
    _log_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    # Most of a message's ten pages are those of the one before it: the rarer a checkpoint, the fewer are copied twice.
    connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    # What is forgotten leaves no byte in freed pages. FAST leaves those; ON costs 0.2 % more written bytes.
    connection.execute("PRAGMA secure_delete = ON")


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Turns the write-ahead log on. For that SQLite does not wait where two processes do it to a new file at once."""
    ends_at = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends_at:
                raise
        time.sleep(0.02)


async def _run(connection: aiosqlite.Connection, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Runs `work` in the thread of the connection, for which aiosqlite has no public method."""
    with _translated(path):
        result: T = await connection._execute(work, connection._conn)  # type: ignore[no-untyped-call]
        return result


def _transact(connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException as error:
        _end_statements(error)
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def _end_statements(error: BaseException) -> None:
    """A cursor with rows left, which the frames of an error may have, would show what is seen now to all that follows:
    ROLLBACK does not end it."""
    known: BaseException | None = error
    while known is not None:
        traceback.clear_frames(known.__traceback__)
        known = known.__context__


def _empty_log(connection: sqlite3.Connection, patience_ms: int) -> bool:
    connection.execute(f"PRAGMA busy_timeout = {int(patience_ms)}")
    try:
        return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Applies what is missing, each migration in a transaction of its own."""

    def step(connection: sqlite3.Connection) -> bool:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{path} was written by a newer version of Mneme (schema {version}, this one knows "
                f"{len(MIGRATIONS)}). Update Mneme, or point MNEME_HOME at another folder."
            )
        for script in MIGRATIONS[version : version + 1]:
            for statement in _statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
        return bool(version < len(MIGRATIONS))

    while _transact(connection, "BEGIN IMMEDIATE", step):
        pass


def _statements(script: str) -> Iterator[str]:
    """Splits a script into statements, so that they can run inside one transaction (executescript commits)."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _told(path, error) from error


def _told(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    text = str(error)
    sentence = next((sentence for part, sentence in SENTENCES.items() if part in text), "{path}: {text}")
    return StoreError(sentence.format(path=path, text=text))


VERSION, OLDEST = sqlite3.sqlite_version_info, (3, 37, 0)
"""Of SQLite, and the oldest that can keep a state.db: RETURNING came with 3.35, STRICT with 3.37."""
REPORTED = 5


async def damage(database: Database) -> list[str]:
    """What `PRAGMA quick_check` and the foreign keys say is wrong with the file; empty when it is whole."""

    def work(connection: Connection) -> list[str]:
        found = [str(row[0]) for row in connection.execute(f"PRAGMA quick_check({REPORTED})")]
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()[:REPORTED]
        return [line for line in found if line != "ok"] + [f"a row of {row[0]} refers to nothing" for row in broken]

    return await database.read(work)


_COLUMNS = """
SELECT tables.name, columns.name FROM sqlite_master tables JOIN pragma_table_info(tables.name) columns
WHERE tables.name IN ('sessions', 'messages') AND tables.type = 'table'
"""
"""Of hermes-agent 0.19.0 (`hermes_state.py`, SCHEMA_SQL); older ones lack some columns."""
_NEEDED = {("sessions", name) for name in ("id", "source", "started_at")}
_NEEDED |= {("messages", name) for name in ("id", "session_id", "role", "content", "timestamp")}


@contextlib.contextmanager
def open_hermes(path: Path, title: str) -> Iterator[Connection]:
    """The state.db of Hermes Agent, read-only, and immutable where nobody can be writing it. `title` names it for
    people. Raises HistoryError when it is damaged or not of Hermes, also while it is read."""
    # Immutable reading takes no lock and makes no file beside it, but what waits in a log would be missing.
    logs = (path.with_name(path.name + end) for end in ("-wal", "-journal"))
    is_at_rest = not any(log.exists() and log.stat().st_size for log in logs)
    uri = f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if is_at_rest else ''}"
    try:
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000_000)
            columns = set(map(tuple, connection.execute(_COLUMNS)))
            if ("sessions", "scope_id") in columns:
                raise HistoryError(
                    f"{title} is a state.db of Mneme itself. Use `mneme export` in its home, and import that."
                )
            if not columns >= _NEEDED:
                raise HistoryError(
                    f"{title} is a database, but not of Hermes: sessions and messages as it has them are missing."
                )
            yield connection
    except (sqlite3.DatabaseError, OSError) as error:
        raise HistoryError(
            f"{title} cannot be read ({error}). Close Hermes, or copy its state.db and import the copy."
        ) from error
