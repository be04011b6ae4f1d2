"""Run transactions on PostgreSQL, with one writer and several readers in threads of their own.

A caller passes a function that gets the connection, as in `core/store/sqlite/database.py`. The
function runs in one thread from BEGIN to COMMIT, so a cancelled caller can't leave a transaction
open.

Several processes may write to the same store. Each write takes an advisory lock first, so writes
run one after the other. Therefore, ids grow in the order of the commits, and no write sees half of
another write.

If several gateways share the database, each holds a lock of its own on the writer's connection. If
a gateway dies, the server releases this lock after the gateway's last write has ended. Another
gateway may then give it up. A gateway that was only disconnected while it was given up can't write
any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg
from psycopg.conninfo import make_conninfo

from core.errors import StoreError
from core.store.engine import Row, T, Values
from core.store.postgres.connection import StoreConnection
from core.store.postgres.copying import refuse_unfinished_copy
from core.store.postgres.faults import (
    GivenUpError,
    StoreCutError,
    describe_url,
    to_connect_error,
    to_store_error,
)
from core.store.postgres.indexing import index_noted_messages
from core.store.postgres.schema import GATEWAY_LOCK as GATEWAY_LOCK
from core.store.postgres.schema import LIFE_LOCK, SCHEMA, prepare_schema
from core.store.rows import COMPACTION_KEY, get_meta
from core.store.tool_calls import record_call
from core.store.visibility import check_epoch
from core.types import ErasureEpoch

READERS = 3
WRITE_LOCK = 7_236_650_018
"""The advisory lock of all writes."""
_BEGIN_WRITE = f"""
BEGIN;
SELECT pg_advisory_xact_lock({WRITE_LOCK});
"""
CLAIM_POLL_S = 0.1
"""How often the gateway tries to get its lock, in seconds between attempts."""
_JOIN = """
INSERT INTO gateways (joined_at) VALUES (extract(epoch FROM clock_timestamp())) RETURNING id
"""
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_NEXT_WRITE_NUMBER = "SELECT nextval('write_numbers')"
_WRITE_NUMBER = "SELECT last_value + CAST(is_called AS integer) FROM write_numbers"
_TABLES = """
SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = :schema
"""


class Database:
    """Runs transactions. Methods raise StoreError if PostgreSQL fails.

    If data in the scopes of `epoch` was erased after `epoch` was read, a write raises
    StaleReadError, because it may repeat the erased data.
    """

    def __init__(
        self,
        name: str,
        writer: ConnectionThread,
        readers: list[ConnectionThread],
        cleaner: ConnectionThread,
    ) -> None:
        # The host and database, for messages to people.
        self.name = name
        # With SQLite, these report damage and a rescued log. A server checks its own files.
        self.damage = ""
        self.rescue_count = 0
        self._writer = writer
        # Runs VACUUM while the writer continues.
        self._cleaner = cleaner
        # How many write transactions of this process have changed something.
        self._write_count = 0
        # The most recently used reader is used first, because its connection is open.
        self._readers: asyncio.LifoQueue[ConnectionThread] = asyncio.LifoQueue()
        for reader in readers:
            self._readers.put_nowait(reader)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, url: str, password: str = "", *, may_be_part: bool = False
    ) -> AsyncIterator[Database]:
        """Connect to the server and bring the schema up to date.

        Pass `password` only if `url` has none. An empty password isn't used.

        Raises StoreError if the server can't be reached, if it is too old, or if its schema is
        newer than this version of Mneme. Unless `may_be_part` is set, an unfinished copy of a store
        also raises StoreError.
        """
        name = describe_url(url)
        address = make_conninfo(url, password=password) if password else url
        with contextlib.ExitStack() as stack:
            writer, cleaner, *readers = [
                stack.enter_context(contextlib.closing(ConnectionThread(address, name)))
                for _ in range(2 + READERS)
            ]
            await writer.run(lambda connection: prepare_schema(connection.raw))
            if not may_be_part:
                await writer.run(lambda connection: refuse_unfinished_copy(connection, name))
            yield cls(name, writer, readers, cleaner)

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
        transaction is rolled back. If `work` changes nothing, the current tool call isn't recorded
        as carried out. `is_short` has no effect.
        """

        def checked_work(connection: StoreConnection) -> T:
            """Check the epoch, run `work`, and index and count its changes."""
            check_epoch(connection, epoch)
            changes = connection.total_changes
            result = work(connection)
            if connection.total_changes > changes:
                if epoch is not None and epoch.call is not None:
                    record_call(connection, epoch.call)
                index_noted_messages(connection)
                self._write_count += 1
                connection.execute(_NEXT_WRITE_NUMBER)
            return result

        return await self._writer.write(checked_work)

    async def write_indexed(
        self,
        work: Callable[[StoreConnection], T],
        epoch: ErasureEpoch | None = None,
        *,
        is_short: bool = False,
    ) -> T:
        """Run `work`, which changes indexed text. See `write`.

        PostgreSQL needs no index repairs.
        """
        return await self.write(work, epoch, is_short=is_short)

    async def execute(
        self, statement: str, values: Values | None = None, epoch: ErasureEpoch | None = None
    ) -> int:
        """Run one statement in a write transaction, and return how many rows it changed."""
        return await self.write(
            lambda connection: connection.execute(statement, values or {}).rowcount, epoch
        )

    async def data_version(self) -> int:
        """Return a number that changes whenever another process writes."""

        def count_other_writes(connection: StoreConnection) -> int:
            row = connection.execute(_WRITE_NUMBER).fetchone()
            return 0 if row is None else int(row[0]) - self._write_count

        # This runs as a write, so every earlier write with a number has ended.
        return await self._writer.write(count_other_writes)

    # --- Reading ---

    async def read(self, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` in a read transaction, which sees a consistent snapshot.

        If the connection is cut, `work` runs once more on a new connection.
        """
        reader = await self._readers.get()
        try:
            return await reader.read(work)
        finally:
            self._readers.put_nowait(reader)

    async def read_inline(
        self, work: Callable[[StoreConnection], T], limit_s: float | None = None
    ) -> T:
        """Run `work` in a read transaction, in the thread of a reader.

        `limit_s` has no effect. It limits reads in the caller's thread, and here that thread never
        waits for the server.
        """
        return await self.read(work)

    async def fetch_all(self, statement: str, values: Values | None = None) -> list[Row]:
        """Return all rows of one statement."""
        return await self.read(
            lambda connection: [*connection.execute(statement, values or {}).fetchall()]
        )

    async def fetch_one(self, statement: str, values: Values | None = None) -> Row | None:
        """Return the first row of one statement, or None."""
        return await self.read(
            lambda connection: connection.execute(statement, values or {}).fetchone()
        )

    # --- Upkeep ---

    async def claim_for_gateway(self, timeout_s: float = 0.0) -> None:
        """Make this process the gateway that receives messages, until it closes the database.

        If another process is that gateway, wait `timeout_s` for its end. After that, raise
        StoreError.
        """
        ends_at = asyncio.get_running_loop().time() + timeout_s
        while True:
            try:
                await self._writer.take_lock(f"{GATEWAY_LOCK}")
                return
            except LockTakenError as error:
                if asyncio.get_running_loop().time() >= ends_at:
                    raise StoreError("pg_taken", name=self.name) from error
            await asyncio.sleep(CLAIM_POLL_S)

    async def join(self, on_given_up: Callable[[], None]) -> int:
        """Register this process as one of the gateways of the database, and return its number.

        From now on, each write fails with `GivenUpError` if another gateway has given this one up.
        `on_given_up` is then called in the thread of the writer.
        """
        return await self._writer.join(on_given_up)

    async def compact(self, limit_s: float) -> bool:
        """Run `compact_step`, which may take longer than `limit_s`.

        Returns True, because no step is left.
        """
        await self.compact_step()
        return True

    async def compact_step(self) -> bool:
        """Remove deleted rows from the tables' files, if data was erased.

        Returns False, because no step follows.
        """
        stage = await self.read(lambda connection: get_meta(connection, COMPACTION_KEY))
        if stage is not None:
            await self.vacuum()
            values = {"key": COMPACTION_KEY, "stage": stage}
            await self.execute("DELETE FROM state_meta WHERE key = :key AND value = :stage", values)
        return False

    async def wait_for_log_space(self, wait_s: float) -> bool:
        """Return True at once, because the server manages its log itself."""
        return True

    async def vacuum(self) -> None:
        """Remove deleted rows from the files of all tables of the store.

        They may remain in the server's log archives, replicas and backups.
        """
        await self._cleaner.run(_vacuum)


def _vacuum(connection: StoreConnection) -> None:
    tables = connection.execute(_TABLES, {"schema": SCHEMA}).fetchall()
    connection.execute(f"VACUUM {', '.join(row[0] for row in tables)}")


# --- Connections ---


class LockTakenError(Exception):
    """Another process holds an advisory lock."""


class ConnectionThread:
    """A connection with its own thread. The connection is opened at its first use."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._connection: StoreConnection | None = None
        # The keys of the advisory locks that each new connection takes.
        self._locks: list[str] = []
        self._begin_write = _BEGIN_WRITE
        self._on_given_up: Callable[[], None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="postgres")

    def close(self) -> None:
        """Wait for the thread, and close the connection."""
        self._thread.shutdown()
        if self._connection is not None:
            self._connection.close()

    async def run(self, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` without a transaction."""
        return await self._call(lambda: self._translate_errors(work, self._open()))

    async def take_lock(self, key: str) -> None:
        """Take an advisory lock. Each later connection takes it again.

        Raises LockTakenError if another process holds the lock.
        """

        def take(connection: StoreConnection) -> None:
            self._take_lock(connection, key)

        try:
            await self.run(take)
        except StoreCutError:
            # The idle connection was cut, so a new one is opened.
            await self.run(take)
        self._locks.append(key)

    async def join(self, on_given_up: Callable[[], None]) -> int:
        """Add a gateway, and take its lock before another process can see the gateway."""

        def add(connection: StoreConnection) -> int:
            number = int(connection.execute(_JOIN).fetchall()[0][0])
            self._take_lock(connection, f"{LIFE_LOCK}, {number}")
            return number

        number = await self.write(add)
        self._locks.append(f"{LIFE_LOCK}, {number}")
        self._begin_write = f"{_BEGIN_WRITE}SELECT check_gateway({number});"
        self._on_given_up = on_given_up
        return number

    async def write(self, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` in a write transaction, which waits for the writes of other processes.

        If the caller is cancelled, `work` still runs, even if it hasn't begun yet. So a caller that
        was cancelled finds out by its next write whether the earlier one was carried out.
        """
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, self._write, work))

    def _write(self, work: Callable[[StoreConnection], T]) -> T:
        try:
            return self._transact(self._begin_write, work)
        except GivenUpError:
            if self._on_given_up is not None:
                self._on_given_up()
            raise

    async def read(self, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` in a read transaction, and run it once more if the connection is cut."""

        def read_again() -> T:
            try:
                return self._transact(_BEGIN_READ, work)
            except StoreCutError:
                return self._transact(_BEGIN_READ, work)

        return await self._call(read_again)

    async def _call(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _open(self) -> StoreConnection:
        """Return the connection. If it was cut, open a new one."""
        if self._connection is None or self._connection.is_cut:
            self._connection = None
            try:
                connection = StoreConnection(self._url)
            except psycopg.Error as error:
                raise to_connect_error(self._name, error) from error
            self._take_locks_again(connection)
            self._connection = connection
        return self._connection

    def _take_locks_again(self, connection: StoreConnection) -> None:
        """Take the last connection's locks on the new one, or close it if that fails."""
        try:
            for key in self._locks:
                self._translate_errors(partial(self._take_lock, key=key), connection)
        except LockTakenError as error:
            connection.close()
            raise StoreError("pg_taken", name=self._name) from error

    def _take_lock(self, connection: StoreConnection, key: str) -> None:
        """Take an advisory lock for as long as the connection lasts."""
        row = connection.execute(f"SELECT pg_try_advisory_lock({key})").fetchone()
        if row is None or not row[0]:
            raise LockTakenError(key)

    def _transact(self, begin: str, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` in a transaction that begins with the statements `begin`."""
        connection = self._begin(begin)
        try:
            result = self._translate_errors(work, connection)
        except BaseException:
            _roll_back(connection)
            raise
        try:
            connection.raw.execute("COMMIT")
        except psycopg.Error as error:
            if connection.is_cut:
                raise StoreCutError("pg_cut_storing", name=self._name) from error
            raise to_store_error(self._name, error) from error
        return result

    def _begin(self, begin: str) -> StoreConnection:
        """Begin a transaction. If the idle connection was cut, open a new one first."""
        connection = self._open()
        try:
            connection.raw.execute(begin.encode(), prepare=False)
            return connection
        except psycopg.Error as error:
            if not connection.is_cut:
                _roll_back(connection)
                raise to_store_error(self._name, error) from error
        connection = self._open()
        self._translate_errors(
            lambda opened: opened.raw.execute(begin.encode(), prepare=False), connection
        )
        return connection

    def _translate_errors(
        self, work: Callable[[StoreConnection], T], connection: StoreConnection
    ) -> T:
        """Run `work`, and convert PostgreSQL's errors to StoreError."""
        try:
            return work(connection)
        except psycopg.Error as error:
            if connection.is_cut:
                raise StoreCutError("pg_cut", name=self._name) from error
            raise to_store_error(self._name, error) from error


def _roll_back(connection: StoreConnection) -> None:
    """Roll a failed transaction back. Close the connection if the rollback fails, too."""
    try:
        connection.raw.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()
