"""Create state.db, and configure connections with PRAGMAs.

A marker file next to state.db records that the home has a database. If the marker exists but
state.db is missing or empty, the database was lost, and Mneme refuses to start with an empty one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from core.errors import StoreError
from core.store import rows
from core.store.sqlite.faults import is_busy
from core.store.sqlite.schema import SCHEMA_VERSION, register_functions
from core.store.sqlite.text_index import CHECKPOINT_PAGES, StoreConnection
from core.types import Account, Address, Scope

READ_TIMEOUT_MS = 4_000
"""How long a read waits for a program that has locked the whole file, which is rare."""
OPEN_TIMEOUT_MS = 10_000
"""How long opening waits while another process writes."""
LOG_TIMEOUT_S = 10.0
"""How long opening waits while another process turns on the write-ahead log."""
RETRY_S = 0.02
START_RETRY_S = 0.5
"""How long a start waits between two attempts while another program locks the file."""

OLD_MARK_SUFFIX = ".created"
"""The suffix of the marker file of earlier versions. `rm state.db*` deletes that file, too."""
MARK_TEXT = """\
This home has a database. While this file is here, Mneme doesn't start with an empty state.db.
To begin with an empty memory on purpose, delete this file and state.db.
"""

COPY_SUFFIX = ".before-upgrade"
"""The suffix of the copy next to state.db during an upgrade. See `upgrade.py`."""
SECURE_DELETE = "PRAGMA secure_delete = ON"
"""Makes SQLite overwrite deleted text with zeros."""

FOREIGN_KEYS = "PRAGMA foreign_keys = ON"
"""Makes SQLite also delete dependent rows, where the schema says so."""

SQLITE_VERSION = sqlite3.sqlite_version_info
MIN_SQLITE_VERSION = (3, 37, 0)  # for RETURNING (3.35) and STRICT tables (3.37)


def create_file(path: Path) -> None:
    """Create the file and its folder if they are missing, readable only by the user.

    Raises StoreError if the file can't be written, or if the home has lost its database.
    """
    if not _has_content(path):
        refuse_if_lost(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError("store_unopened", path=path, reason=error.strerror) from error


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def refuse_if_lost(path: Path) -> None:
    """Raise StoreError if a marker file shows that the database was lost."""
    log_path = Path(f"{path}-wal")
    marks = ", ".join(str(mark) for mark in (mark_of(path), _old_mark_of(path)) if mark.exists())
    if not marks:
        return
    if _has_content(log_path):  # opening a connection creates an empty log
        raise StoreError("store_missing_log", path=path, log=log_path, marks=marks)
    raise StoreError("store_missing", path=path, marks=marks)


def mark_of(path: Path) -> Path:
    """Return the path of the marker file, such as `database-state.created` for `state.db`.

    The name begins differently, so `rm state.db*` doesn't delete the marker by mistake.
    """
    return path.with_name(f"database-{path.stem}.created")


def _old_mark_of(path: Path) -> Path:
    return path.with_name(path.name + OLD_MARK_SUFFIX)


def leave_mark(path: Path) -> None:
    """Create a database's marker file, if its folder can be written."""
    mark = mark_of(path)
    with contextlib.suppress(OSError):
        if not mark.exists():
            mark.touch(mode=0o600)
            mark.write_text(MARK_TEXT, encoding="utf-8")
        _old_mark_of(path).unlink(missing_ok=True)


def open_connection(path: Path, *, is_reader: bool, may_wait: bool) -> StoreConnection:
    """Open a connection that can store times, scopes, accounts and addresses, and configure it.

    If the file is locked, statements fail at once unless it `may_wait`. Raises
    sqlite3.DatabaseError if SQLite fails.
    """
    sqlite3.register_adapter(datetime, rows.to_timestamp)
    types_with_key: tuple[Any, ...] = (Account, Address, Scope)
    for type_with_key in types_with_key:
        sqlite3.register_adapter(type_with_key, rows.to_clean_key)
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=StoreConnection
    )
    connection.row_factory = sqlite3.Row
    try:
        configure(connection, is_reader=is_reader)
        if not may_wait:
            connection.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def configure(connection: sqlite3.Connection, *, is_reader: bool) -> None:
    """Set the PRAGMAs of a new connection and register the SQL functions."""
    connection.execute(f"PRAGMA busy_timeout = {READ_TIMEOUT_MS}")
    connection.execute("PRAGMA foreign_keys = ON")
    # The size of the page cache, in KB. Each connection keeps this memory until it is closed. With
    # 16 MB, recall is no faster.
    connection.execute("PRAGMA cache_size = -2048")
    # A memory-mapped page of a file that another program cuts off would end the process (SIGBUS).
    connection.execute("PRAGMA mmap_size = 0")
    # Otherwise each small list or sort of a statement opens a file, which takes four fifths of a
    # search's time.
    connection.execute("PRAGMA temp_store = MEMORY")
    register_functions(connection)
    if is_reader:
        connection.execute("PRAGMA query_only = ON")
        return
    _turn_on_log(connection)
    connection.execute("PRAGMA synchronous = FULL")
    # Only macOS has this; see `config.operating_system.sync_file`.
    connection.execute("PRAGMA fullfsync = ON")
    # A message changes ten pages, mostly the same ones as the previous message. With fewer
    # checkpoints, these pages are copied less often.
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    # Erased text must not stay in freed pages, as it would with FAST. ON writes 0.2 % more bytes.
    connection.execute(SECURE_DELETE)


def _turn_on_log(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log.

    If another process does the same at the same time, SQLite fails instead of waiting, so try
    again.
    """
    ends_at = time.monotonic() + LOG_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > ends_at:
                raise
        time.sleep(RETRY_S)


def count_file_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of the file as SQLite knows it, with all pages that are still in the log."""
    query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    return int(connection.execute(query).fetchone()[0])


def truncate_log(connection: sqlite3.Connection, timeout_ms: int) -> bool:
    """Copy the log into the file and truncate it. Returns False if a reader prevented it."""
    connection.execute(f"PRAGMA busy_timeout = {int(timeout_ms)}")
    try:
        is_blocked = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return not is_blocked
    finally:
        connection.execute("PRAGMA busy_timeout = 0")


async def wait_until_unlocked(path: Path, on_wait: Callable[[], None]) -> None:
    """Wait while another program locks the file. Before the wait, call `on_wait` once."""
    has_waited = False
    while _has_content(path) and await asyncio.to_thread(_is_locked, path):
        if not has_waited:
            on_wait()
            has_waited = True
        await asyncio.sleep(START_RETRY_S)


def _is_locked(path: Path) -> bool:
    """Return whether a lock prevents writing to the file. For other errors, returns False."""
    try:
        with contextlib.closing(
            sqlite3.connect(path, timeout=START_RETRY_S, isolation_level=None)
        ) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.DatabaseError as error:
        return is_busy(error)
    return False


def is_current(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a file has the present schema, and no upgrade of it was interrupted."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return version == SCHEMA_VERSION and not path.with_name(f"{path.name}{COPY_SUFFIX}").exists()


def can_load_extensions() -> bool:
    """Return whether this Python's SQLite can load extensions."""
    return hasattr(sqlite3.Connection, "enable_load_extension")
