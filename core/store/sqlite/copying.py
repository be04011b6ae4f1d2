"""Copy SQLite files while programs use them, and read a file's version and epoch.

The module also implements `CopyTools` for SQLite.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote

from core.errors import StoreError
from core.store.engine import Connection, CopiedTable
from core.store.erasure.epoch import JOURNAL_META_KEY, UNKNOWN_META_KEY
from core.store.sqlite.faults import translate_errors
from core.store.sqlite.opening import leave_mark, mark_of
from core.store.sqlite.salvage import find_file_damage
from core.store.sqlite.schema import SCHEMA_VERSION
from core.store.visibility import epoch_number

FILE_START = b"SQLite format 3\0"
# After this many pages of 4 KB, the progress is reported.
PAGES_PER_STEP = 1_000
LOCK_TIMEOUT_S = 10.0
# The bytes of the file's header that contain `PRAGMA user_version`.
_VERSION_BYTES = slice(60, 64)

_SELECT_ERASURES = """
SELECT id, json_extract(list, '$.where') LIKE 'room:%' FROM erasures
WHERE started_at IS NOT NULL AND COALESCE(epoch, :epoch + 1) > :epoch
"""
_COUNT_DETACHMENTS = "SELECT COUNT(*) FROM scope_detachments WHERE epoch > :epoch"

# Called with the number of copied pages and the total number of pages.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseInfo:
    """The schema version, the erasure epoch and the key of a state.db."""

    schema: int
    # The erasure epoch. It grows with each erasure.
    epoch: int
    # The key of the next erasure, or "" if an earlier version has written the file. Only copies of
    # the same state.db have the same key, until one of them erases something.
    key: str = ""
    # Differs between a backup and the home if the home was restored without the journal of the
    # backup's home. Its erasures are unknown then.
    unknown_erasures: str = ""


@dataclass(frozen=True, slots=True)
class ErasuresSince:
    """The advances of the erasure epoch of a state.db since an earlier epoch."""

    # The tokens of erasures of the last 30 days. True if an erasure was in a group: its line in the
    # journal may then be that of the request in a direct chat.
    tokens: Mapping[str, bool]
    # How many advances weren't erasures, but people who lost access to a chat.
    detachments: int


def copy_database(source: Path, target: Path, on_progress: Progress | None = None) -> None:
    """Copy a SQLite file and its log to a new file, which needs no log.

    Other programs may write meanwhile, because the copy is a consistent snapshot. Raises StoreError
    if the file can't be read.
    """

    def report(status: int, remaining: int, total: int) -> None:
        if on_progress is not None:
            on_progress(total - remaining, total)

    with (
        translate_errors(source),
        contextlib.closing(_connect(source)) as reader,
        contextlib.closing(sqlite3.connect(target, isolation_level=None)) as writer,
    ):
        # The open transaction keeps a snapshot. Otherwise, the copy would start again after each
        # write of another program.
        reader.execute("BEGIN")
        reader.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        writer.execute("PRAGMA synchronous = OFF")
        reader.backup(writer, pages=PAGES_PER_STEP, progress=report)
        writer.execute("PRAGMA journal_mode = DELETE")


def verify_copy(path: Path) -> None:
    """Raise StoreError if a copy is damaged, or if a newer version of Mneme has written it."""
    damage = find_file_damage(path)
    if damage:
        raise StoreError("store_copy_damaged", name=path.name, damage=damage)
    schema = read_database_info(path).schema
    if schema > SCHEMA_VERSION:
        raise StoreError("store_copy_newer", schema=schema, known=SCHEMA_VERSION)


def read_database_info(path: Path) -> DatabaseInfo:
    """Return the schema version and the erasure epoch of a state.db.

    Raises StoreError if the file can't be read.
    """
    with translate_errors(path), contextlib.closing(_connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        schema = connection.execute("PRAGMA user_version").fetchone()[0]
        has_epoch = connection.execute(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'state_meta'"
        ).fetchone()
        if not has_epoch:
            return DatabaseInfo(schema=schema, epoch=0)
        epoch = epoch_number(cast(Connection, connection))
        statement = "SELECT key, value FROM state_meta WHERE key IN (?, ?)"
        values = dict(connection.execute(statement, (JOURNAL_META_KEY, UNKNOWN_META_KEY)))
        return DatabaseInfo(
            schema=schema,
            epoch=epoch,
            key=values.get(JOURNAL_META_KEY, ""),
            unknown_erasures=values.get(UNKNOWN_META_KEY, ""),
        )


def load_erasures(path: Path, epoch: int) -> ErasuresSince:
    """Load the erasures that a state.db has made after an epoch. Raises StoreError."""
    with translate_errors(path), contextlib.closing(_connect(path)) as connection:
        tokens = connection.execute(_SELECT_ERASURES, {"epoch": epoch}).fetchall()
        count = connection.execute(_COUNT_DETACHMENTS, {"epoch": epoch}).fetchone()[0]
    return ErasuresSince({row[0]: bool(row[1]) for row in tokens}, count)


def count_rows(path: Path, table: Literal["messages", "jobs"]) -> int:
    """Return the number of rows in a table of a state.db, or 0 if the file is missing.

    Raises StoreError if it can't be read.
    """
    if not path.exists():
        return 0
    with translate_errors(path), contextlib.closing(_connect(path)) as connection:
        has_table = connection.execute(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)
        ).fetchone()
        if not has_table:
            return 0
        count: int = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        return count


def needs_migration(path: Path) -> bool:
    """Return whether this version of Mneme would change the schema of a state.db.

    Returns False if the file is missing, empty, or can't be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError:
        return False
    if not head.startswith(FILE_START):
        return False
    # The log may have a later version than the file, never an earlier one.
    if int.from_bytes(head[_VERSION_BYTES], "big") >= SCHEMA_VERSION:
        return False
    try:
        return 0 < read_database_info(path).schema < SCHEMA_VERSION
    except StoreError:
        return False


# --- Copying to another engine ---

_DERIVED_TABLES = frozenset({"chunks", "chunk_counts"})
"""Tables that are filled when the text indexes are built."""
_TABLES = """
SELECT listed.name FROM pragma_table_list AS listed
WHERE listed.schema = 'main' AND listed.type = 'table' AND substr(listed.name, 1, 7) <> 'sqlite_'
ORDER BY listed.name
"""
_COLUMNS = "SELECT name, pk FROM pragma_table_info(:table) ORDER BY cid"
_REFERENCES = 'SELECT "table", "from" FROM pragma_foreign_key_list(:table) ORDER BY id'
_COUNTING_TABLES = """
SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'
"""


def list_tables(connection: Connection) -> list[CopiedTable]:
    """List the tables whose rows a copy must include, ordered by name."""
    names = [row[0] for row in connection.execute(_TABLES).fetchall()]
    return [_describe_table(connection, name) for name in names if name not in _DERIVED_TABLES]


def _describe_table(connection: Connection, name: str) -> CopiedTable:
    """Read the columns, the primary key and the references of a table."""
    columns = connection.execute(_COLUMNS, {"table": name}).fetchall()
    references = connection.execute(_REFERENCES, {"table": name}).fetchall()
    key = sorted((row["pk"], row["name"]) for row in columns if row["pk"])
    return CopiedTable(
        name=name,
        columns=tuple(row["name"] for row in columns),
        key=tuple(column for _, column in key),
        parents=tuple(sorted({row[0] for row in references if row[0] != name})),
        own_references=tuple(row[1] for row in references if row[0] == name),
    )


def insert_rows(connection: Connection, table: CopiedTable, rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows with all columns of a table."""
    columns = ", ".join(f'"{column}"' for column in table.columns)
    places = ", ".join("?" for _ in table.columns)
    connection.executemany(f"INSERT INTO {table.name} ({columns}) VALUES ({places})", rows)


def read_last_ids(connection: Connection) -> dict[str, int]:
    """Return the highest id that each table with AUTOINCREMENT has assigned so far."""
    return dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())


def raise_last_ids(connection: Connection, last_ids: Mapping[str, int]) -> None:
    """Let tables with AUTOINCREMENT continue after these ids.

    Other tables continue after their last row.
    """
    known = read_last_ids(connection)
    for (name,) in connection.execute(_COUNTING_TABLES).fetchall():
        values = {"name": name, "id": max(known.get(name, 0), last_ids.get(name) or 0)}
        connection.execute("DELETE FROM sqlite_sequence WHERE name = :name", values)
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :id)", values)


def publish_copy(part: Path, path: Path) -> None:
    """Give a complete copy its final name. No connection may have it open."""
    with translate_errors(part), contextlib.closing(_connect(part)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    os.replace(part, path)
    mark_of(part).unlink(missing_ok=True)
    leave_mark(path)


def _connect(path: Path) -> sqlite3.Connection:
    """Open an existing file. Raises sqlite3.OperationalError if it is missing."""
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw", uri=True, timeout=LOCK_TIMEOUT_S, isolation_level=None
    )
