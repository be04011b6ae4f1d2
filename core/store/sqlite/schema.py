"""Define the schema of state.db, the SQL functions of its triggers, and index maintenance.

`schema.sql` is the present schema, which a new file gets. `earlier.sql` has one section per earlier
version. `upgrade.py` runs these sections to upgrade an older file. `PRAGMA user_version` is a
file's version.

The text indexes have external content: FTS5 reads the text from views, so text is stored only once.
Each row of an index contains an extra word for its scope. While `state_meta` has the key
`index_stale`, the triggers don't update the indexes, so messages can be stored even if an index is
damaged.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from string import Template

from core.errors import MnemeError
from core.store.engine import IS_SHOWN, Connection
from core.store.query import DAY_TERM_COUNT
from core.store.rows import scoped_term
from core.text.normalize import (
    MAX_INDEXED_CHARS,
    SCOPE_MARKER,
    TERMS_VERSION,
    comparison_form,
    indexed_words,
)
from core.text.terms import (
    SHORT_TEXT_CHARS,
    date_terms,
    has_cached_terms,
    message_terms,
    name_terms,
    terms_of,
)

# --- Functions of triggers and views ---


class ChunkTerms:
    """The SQL aggregate `chunk_terms(scope id, text, name, time)`.

    It converts the messages of a chunk to the terms to index, each with its scope's id as a prefix
    (see `scoped_term`).
    """

    def __init__(self) -> None:
        self._terms: list[str] = []
        self._days: set[tuple[str, ...]] = set()
        self._scope_id = 0

    def step(self, scope_id: int, text: str, name: str | None, created_at: float) -> None:
        """Add a message of the chunk."""
        self._scope_id = scope_id
        self._terms += _find_terms(text, name or "", created_at)
        self._terms += name_terms(name or "")
        self._days.add(day_terms(created_at))

    def finalize(self) -> str:
        """Return the terms, separated by spaces: words and names, then the terms of the days.

        The terms of the days are repeated, which raises their weight in the ranking.
        """
        days_terms: list[str] = []
        for terms in sorted(self._days):
            days_terms += terms
        all_terms = self._terms + days_terms * DAY_TERM_COUNT
        start = scoped_term(self._scope_id, "")
        # This is faster than a call of `scoped_term` for each of the many terms of a long message.
        return start + f" {start}".join(all_terms) if all_terms else ""


def _find_terms(text: str, name: str, created_at: float) -> Sequence[str]:
    """Return the terms of a message. Those of a long message may be known from a search."""
    day_number = datetime.fromtimestamp(created_at, UTC).toordinal()
    if len(text) > SHORT_TEXT_CHARS and has_cached_terms(text, name, day_number):
        return message_terms(text, name, day_number).terms
    return terms_of(text[:MAX_INDEXED_CHARS])


def day_terms(created_at: float) -> tuple[str, ...]:
    """Return the terms for the UTC date of a time in seconds since 1970."""
    return date_terms(datetime.fromtimestamp(created_at, UTC).date())


def register_functions(connection: sqlite3.Connection) -> None:
    """Register the SQL functions that the triggers and views use."""
    connection.create_function("indexed_words", 1, indexed_words, deterministic=True)
    # Views of earlier versions use these, and a migration reads all views.
    for name in ("spaced_words", "unspaced_runs", "unspaced_pairs"):
        connection.create_function(name, -1, lambda *_: "")
    # The type stubs know only aggregates that return an int.
    connection.create_aggregate("chunk_terms", 4, ChunkTerms)  # type: ignore[arg-type]
    connection.create_function("bare", 1, comparison_form, deterministic=True)
    # A migration uses it.
    connection.create_function("job_recurrences", 5, _convert_job_schedule)


def _convert_job_schedule(
    zone: str, cron: str | None, every_s: int | None, start_at: float | None, since: float
) -> str:
    """Convert a cron line or an interval to recurrences in JSON.

    Returns "[]" if no recurrence can express it. `since` is the time when the job was created.
    """
    from core.dates.rules import to_recurrences
    from core.dates.schedule import Schedule

    schedule = Schedule(
        zone=zone,
        cron=cron,
        every_s=every_s,
        start_at=None if start_at is None else datetime.fromtimestamp(start_at, UTC),
    )
    try:
        converted = to_recurrences(schedule, datetime.fromtimestamp(since, UTC))
    except (MnemeError, ValueError, OverflowError):
        # The scheduler pauses such a job with a reason.
        return "[]"
    return json.dumps(converted.recurrences)


# --- Text indexes ---

INDEX_TABLES = ("messages_fts", "chunks_fts")
SET_FACTS_RANK = "INSERT INTO facts_fts (facts_fts, rank) VALUES ('rank', 'bm25(1.0, 0.6)');"
CREATE_FACTS_CONTENT = (
    "CREATE TABLE IF NOT EXISTS main.facts_fts_content (id INTEGER PRIMARY KEY, c0, c1)"
)
"""The table that FTS5 creates for an index that stores its own text."""

# --- The schema ---

SCHEMA_VERSION = 43
"""The number of sections in `earlier.sql`."""
RENAMES_VERSION = 38
"""Files of this version or later have the triggers and views of `schema.sql`."""
_SECTION = re.compile(r"(?m)^-- ## \d+\. .*\n")


@cache
def list_schema_statements() -> tuple[str, ...]:
    """Return the statements of the present schema."""
    return tuple(_split_statements(_read_template("schema")))


@cache
def list_upgrades() -> tuple[tuple[str, ...], ...]:
    """Return the statements that upgrade a file to each version, beginning with version 1."""
    sections = _SECTION.split(_read_template("earlier"))[1:]
    return tuple(tuple(_split_statements(section)) for section in sections)


def create_schema(connection: sqlite3.Connection, version: int = SCHEMA_VERSION) -> None:
    """Create the schema of a version in an empty file, in the open transaction.

    For versions between `RENAMES_VERSION` and the present one, the triggers and views are left out,
    because an upgrade creates them.
    """
    if version == SCHEMA_VERSION:
        for statement in list_schema_statements():
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    else:
        for number in range(version):
            apply_upgrade(connection, number + 1)


def apply_upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Upgrade a file from the previous version to `version`, in the open transaction."""
    if version >= RENAMES_VERSION:
        drop_triggers_and_views(connection)
    for statement in list_upgrades()[version - 1]:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")


def drop_triggers_and_views(connection: sqlite3.Connection) -> None:
    """Drop all triggers and views, because they prevent tables and columns from being renamed."""
    rows = connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY type"
    ).fetchall()
    for kind, name in rows:
        connection.execute(f'DROP {kind} IF EXISTS "{name}"')


def _read_template(name: str) -> str:
    """Read a script, and fill in the constants that it shares with Python code."""
    script = Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")
    return Template(script).substitute(shown=IS_SHOWN, scope=SCOPE_MARKER, version=TERMS_VERSION)


def _split_statements(script: str) -> Iterator[str]:
    """Yield the statements of a script.

    They are run one by one, because `executescript` would commit the open transaction.
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


# --- Upkeep of text indexes, see https://sqlite.org/fts5.html ---

_SHADOW_TABLES = {
    "data": "(id INTEGER PRIMARY KEY, block BLOB)",
    "idx": "(segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID",
    "docsize": "(id INTEGER PRIMARY KEY, sz BLOB)",
    "config": "(k PRIMARY KEY, v) WITHOUT ROWID",
}
"""The tables in which FTS5 stores an index with external content, and their columns.

See "FTS5 Data Structures" in the documentation.
"""


def merge_table(connection: Connection, table: str, pages: int) -> bool:
    """Merge about `pages` pages of an index's segments. Returns whether there was work to do.

    A negative number of pages first marks all segments, so that they are merged into one. FTS5
    changes at least two rows when there is something to merge (see "The 'merge' Command").
    """
    changes_before = connection.execute("SELECT total_changes()").fetchone()[0]
    connection.execute(
        f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)", {"pages": pages}
    )
    changes_after = connection.execute("SELECT total_changes()").fetchone()[0]
    return bool(changes_after - changes_before >= 2)


def reset_index(connection: Connection, table: str) -> None:
    """Empty an index, even if it is too damaged to be opened.

    FTS5 refuses 'delete-all' and DROP for a broken index, so the rows of its internal tables are
    replaced by those of a new, empty index.
    """
    connection.execute("CREATE VIRTUAL TABLE temp.blank USING fts5(text)")
    for suffix, columns in _SHADOW_TABLES.items():
        shadow = f"main.{table}_{suffix}"
        connection.execute(f"CREATE TABLE IF NOT EXISTS {shadow} {columns}")
        connection.execute(f"DELETE FROM {shadow}")
        connection.execute(f"INSERT INTO {shadow} SELECT * FROM temp.blank_{suffix}")
    connection.execute("DROP TABLE temp.blank")
    _restore_options(connection, table)


def _restore_options(connection: Connection, table: str) -> None:
    """Set the options of an index, such as its rank function, as the schema defines them."""
    for statement in list_schema_statements():
        if f"INSERT INTO {table} ({table}, rank) VALUES" in statement:
            connection.execute(statement)
