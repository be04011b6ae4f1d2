"""Opens the state.db of Hermes Agent. Never writes: opened read-only, and immutable where nobody can be writing it.

The schema is that of hermes-agent 0.19.0 (`hermes_state.py`, SCHEMA_SQL); older ones lack some columns.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from core.errors import HistoryError
from core.store.engine import Connection

_COLUMNS = """
SELECT tables.name, columns.name FROM sqlite_master tables JOIN pragma_table_info(tables.name) columns
WHERE tables.name IN ('sessions', 'messages')
"""
_NEEDED = {("sessions", name) for name in ("id", "source", "started_at")}
_NEEDED |= {("messages", name) for name in ("id", "session_id", "role", "content", "timestamp")}


@contextlib.contextmanager
def open_hermes(path: Path, title: str) -> Iterator[Connection]:
    """`title` names it for people. Raises HistoryError when it is damaged or not of Hermes, also while it is read."""
    # Immutable reading takes no lock and makes no file beside it, but what waits in a log would be missing.
    logs = (path.with_name(path.name + end) for end in ("-wal", "-journal"))
    is_at_rest = not any(log.exists() and log.stat().st_size for log in logs)
    uri = f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if is_at_rest else ''}"
    try:
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
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
