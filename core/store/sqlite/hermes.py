"""Open the state.db of Hermes Agent read-only, to import its history."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from core.errors import HistoryError
from core.store.engine import Connection
from core.store.sqlite.text_index import StoreConnection

MAX_VALUE_BYTES = 10_000_000
"""SQLite raises an error if a value is longer than this."""
_COLUMNS = """
SELECT tables.name, columns.name
FROM sqlite_master tables JOIN pragma_table_info(tables.name) columns
WHERE tables.name IN ('sessions', 'messages') AND tables.type = 'table'
"""
_REQUIRED_COLUMNS = frozenset(
    [
        ("sessions", "id"),
        ("sessions", "source"),
        ("sessions", "started_at"),
        ("messages", "id"),
        ("messages", "session_id"),
        ("messages", "role"),
        ("messages", "content"),
        ("messages", "timestamp"),
    ]
)
"""The columns that all versions have. Other columns of hermes-agent 0.19.0 (`hermes_state.py`,
SCHEMA_SQL) may be missing in older versions."""
_COLUMN_OF_MNEME = ("sessions", "scope_id")


@contextlib.contextmanager
def open_hermes(path: Path, title: str) -> Iterator[Connection]:
    """Open Hermes's database for reading. `title` is the file's name in error messages.

    Raises HistoryError if the file isn't a Hermes database, or if it can't be read. SQLite's errors
    in the `with` block become HistoryErrors, too.
    """
    try:
        uri = _read_only_uri(path)
        opened = sqlite3.connect(uri, uri=True, factory=StoreConnection)
        with contextlib.closing(opened) as connection:
            connection.row_factory = sqlite3.Row
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            _check_columns(connection, title)
            yield connection
    except (sqlite3.DatabaseError, OSError) as error:
        raise HistoryError("history_hermes_unreadable", title=title, reason=str(error)) from error


def _read_only_uri(path: Path) -> str:
    """Return a URI that opens a database read-only.

    If the database has no log with changes that are missing in the file, the URI says "immutable",
    so SQLite needs no lock and creates no files. If it has such a log, "immutable" would make
    SQLite ignore these changes.
    """
    logs = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    has_log = any(log.exists() and log.stat().st_size for log in logs)
    uri = f"{path.resolve().as_uri()}?mode=ro"
    return uri if has_log else f"{uri}&immutable=1"


def _check_columns(connection: sqlite3.Connection, title: str) -> None:
    """Raise HistoryError if a table or column of Hermes is missing."""
    columns = set(map(tuple, connection.execute(_COLUMNS)))
    if _COLUMN_OF_MNEME in columns:
        raise HistoryError("history_own_database", title=title)
    if not columns >= _REQUIRED_COLUMNS:
        raise HistoryError("history_other_database", title=title)
