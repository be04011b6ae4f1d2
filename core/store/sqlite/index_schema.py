"""The text indexes over messages and chunks: their tables, triggers, and the SQL functions these call.

External content over views, so text is stored once; a word in each row names its scope. While `state_meta` has
`index_stale` the triggers rest: a damaged index costs no message.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from importlib.resources import files
from string import Template
from typing import Any

from core.store.engine import Connection
from core.store.query import DAY_IN_CHUNK
from core.text.normalize import SCOPE, VERSION, bare, indexed_words
from core.text.terms import date_terms, terms_of

SHOWN = "messages.kind = 'chat' AND messages.role IN ('user', 'assistant') AND messages.text <> ''"
"""What people may see of a session; the condition of the index `messages_shown`."""


class ChunkTerms:
    """The SQL aggregate chunk_terms(scope id, text, name, time): the terms of a chunk, each behind its scope."""

    def __init__(self) -> None:
        self._terms: list[str] = []
        self._days: set[tuple[str, ...]] = set()
        self._scope = 0

    def step(self, *row: Any) -> None:
        scope_id, text, name, created_at = row
        self._scope = scope_id
        self._terms += terms_of(text)
        self._terms += terms_of(name or "")
        self._days.add(day_of(created_at))

    def finalize(self) -> str:
        days = [term for day in sorted(self._days) for term in day] * DAY_IN_CHUNK
        return " ".join(scoped(self._scope, term) for term in [*self._terms, *days])


def scoped(scope_id: int, term: str) -> str:
    """A term as the index holds it."""
    return f"{scope_id}x{term}"


def day_of(created_at: float) -> tuple[str, ...]:
    """The terms of the day (UTC) of a moment in seconds since 1970."""
    return date_terms(datetime.fromtimestamp(created_at, UTC).date())


STALE = "index_stale"
"""Key of `state_meta`: the indexes do not hold what the messages say."""
CURSOR = "index_cursor"
"""Key of `state_meta`: a rebuild has got as far as this message id."""

TABLES = ("messages_fts", "chunks_fts")

_DRAWN = {"shown": SHOWN, "scope": SCOPE, "version": VERSION}
INDEXES, TRIGGERS = (
    Template(files("core.store.sqlite").joinpath(name).read_text("utf-8")).substitute(_DRAWN)
    for name in ("indexes.sql", "triggers.sql")
)


def register(connection: sqlite3.Connection) -> None:
    """Gives a connection the SQL functions that the triggers and views use."""
    connection.create_function("indexed_words", 1, indexed_words, deterministic=True)
    # The views of earlier versions name these; a migration reads all views.
    for name in ("spaced_words", "unspaced_runs", "unspaced_pairs"):
        connection.create_function(name, -1, lambda *_: "")
    connection.create_aggregate("chunk_terms", 4, ChunkTerms)  # type: ignore[arg-type]  # typed for int results only
    connection.create_function("bare", 1, bare, deterministic=True)


def merge_table(connection: Connection, table: str, pages: int) -> bool:
    """Merges at most `pages` (all if negative); whether there was anything to do (https://sqlite.org/fts5.html,
    "merge")."""
    before = connection.execute("SELECT total_changes()").fetchone()[0]
    connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)", {"pages": pages})
    return bool(connection.execute("SELECT total_changes()").fetchone()[0] - before >= 2)


def blank(connection: Connection, table: str) -> None:
    """Makes an index empty and openable by resetting its tables: FTS5 refuses 'delete-all' and DROP for a broken
    one."""
    connection.execute("CREATE VIRTUAL TABLE temp.blank USING fts5(text)")
    for part, columns in _PARTS:
        connection.execute(f"CREATE TABLE IF NOT EXISTS main.{table}_{part} ({columns}")
        connection.execute(f"DELETE FROM main.{table}_{part}")
        connection.execute(f"INSERT INTO main.{table}_{part} SELECT * FROM temp.blank_{part}")
    connection.execute("DROP TABLE temp.blank")
    for line in INDEXES.splitlines():
        if line.startswith(f"INSERT INTO {table} ({table}, rank) VALUES"):
            connection.execute(line)


_PARTS = (
    ("data", "id INTEGER PRIMARY KEY, block BLOB)"),
    ("idx", "segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID"),
    ("docsize", "id INTEGER PRIMARY KEY, sz BLOB)"),
    ("config", "k PRIMARY KEY, v) WITHOUT ROWID"),
)
"""The tables behind an index with external content (https://sqlite.org/fts5.html, "FTS5 Data Structures")."""
