"""Opens the state.db of Hermes Agent, read-only, so that its history can be imported."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from core.errors import HistoryError
from core.store.rows import Connection

MAX_VALUE_BYTES = 10_000_000
"""SQLite refuses to read a longer text."""
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
"""Older versions than hermes-agent 0.19.0 (`hermes_state.py`, SCHEMA_SQL) lack other columns."""
_COLUMN_OF_MNEME = ("sessions", "scope_id")


@contextlib.contextmanager
def open_hermes(path: Path, title: str) -> Iterator[Connection]:
    """Open the database of Hermes. `title` names it in errors.

    Raises HistoryError if it is damaged or doesn't belong to Hermes, also while it is read.
    """
    try:
        with contextlib.closing(sqlite3.connect(_read_only_uri(path), uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            _check_columns(connection, title)
            yield connection
    except (sqlite3.DatabaseError, OSError) as error:
        raise HistoryError(
            f"{title} cannot be read ({error}). Close Hermes, or copy its state.db and import the "
            "copy."
        ) from error


def _read_only_uri(path: Path) -> str:
    """The URI that opens a file for reading, as immutable if no process can be writing it.

    An immutable file is read without a lock and without files next to it. But SQLite would then
    ignore what a log still holds.
    """
    logs = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    has_log = any(log.exists() and log.stat().st_size for log in logs)
    uri = f"{path.resolve().as_uri()}?mode=ro"
    return uri if has_log else f"{uri}&immutable=1"


def _check_columns(connection: sqlite3.Connection, title: str) -> None:
    """Raise HistoryError if the tables aren't those of Hermes."""
    columns = set(map(tuple, connection.execute(_COLUMNS)))
    if _COLUMN_OF_MNEME in columns:
        raise HistoryError(
            f"{title} is a state.db of Mneme itself. Use `mneme export` in its home, and import "
            "that."
        )
    if not columns >= _REQUIRED_COLUMNS:
        raise HistoryError(
            f"{title} is a database, but not of Hermes: sessions and messages as it has them are "
            "missing."
        )
