"""Save the readable rows of a damaged state.db in a new file.

Rows are read in ranges of row ids. If a range has a damaged page, its halves are read, down to
single rows, so that only the rows of that page are lost. The text indexes aren't copied, because
they are rebuilt from the rows.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from config.operating_system import sync_file
from core.errors import StoreError
from core.store.search.text_search import STALE_KEY
from core.store.sqlite.faults import translate_errors
from core.store.sqlite.opening import configure
from core.store.sqlite.schema import SCHEMA_VERSION, create_schema

BATCH_ROWS = 500
UNKNOWN_ROWS = 100_000
"""How many row ids after the last readable row are tried if no index knows the last id."""
MAX_READS = 50_000
"""At most this many ranges of row ids of a table are tried."""
MAX_ROUNDS = 10
"""Rows that refer to lost rows are removed at most this many times. Each removal can leave further
such rows."""

_SELECT_TABLES = """
SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'
"""
_CREATE_LOST_PEOPLE = """
INSERT INTO people (id)
SELECT DISTINCT person_id FROM accounts WHERE person_id NOT IN (SELECT id FROM people)
"""
"""Creates a person for each account whose person is lost. The new file doesn't record who the owner
is, but the next start reads it from the settings."""
_CREATE_LOST_FILES = """
INSERT INTO files (hash, type, size)
SELECT hash, MAX(mime), MAX(size) FROM (
    SELECT hash, COALESCE(mime, 'application/octet-stream') AS mime, COALESCE(size, 0) AS size
    FROM message_files WHERE hash IS NOT NULL
    UNION ALL SELECT hash, 'application/octet-stream', 0 FROM file_parts
) WHERE hash NOT IN (SELECT hash FROM files) GROUP BY hash
"""
"""Creates rows for files whose own row is lost, so that recall still finds their text."""
_SELECT_SESSION_SCOPES = "SELECT id, scope_id FROM sessions INDEXED BY sessions_by_scope"
_CREATE_LOST_SESSIONS = """
INSERT INTO sessions (id, address_id, scope_id, title, started_at, last_at, ended_at, end_reason,
    {count})
SELECT session_id, address_id, COALESCE((
        SELECT scope_id FROM session_scopes WHERE session_scopes.id = session_id
    ), (
        SELECT scope_id FROM sessions AS others WHERE others.address_id = messages.address_id
        ORDER BY others.id DESC LIMIT 1
    )) AS scope, 'Recovered', MIN(created_at), MAX(created_at), MAX(created_at), 'repair', COUNT(*)
FROM messages WHERE session_id NOT IN (SELECT id FROM sessions)
GROUP BY session_id HAVING scope IS NOT NULL
"""
"""Creates sessions for messages whose own session is lost. Their scope is read from an index. If
the index can't be read, they get the scope of their chat. `count` is the column with the number of
messages."""


@dataclass(kw_only=True)
class SalvageReport:
    """The numbers of rows that a repair has saved and lost."""

    # A copy of the damaged file.
    damaged_path: Path
    # The numbers of rows, by table.
    saved: dict[str, int] = field(default_factory=dict)
    # The highest possible number of rows, by table. None if the table's number of rows is unknown.
    lost: dict[str, int | None] = field(default_factory=dict)


def find_file_damage(path: Path) -> str:
    """Return SQLite's description of the first problem in the file, or "" if there is none.

    A file that isn't a database counts as damaged. Raises StoreError if the file is locked or can't
    be opened.
    """
    try:
        with contextlib.closing(_open(path)) as connection:
            line = connection.execute("PRAGMA integrity_check(1)").fetchone()
            connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError as error:
        raise StoreError("store_unchecked", path=path, reason=str(error)) from error
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if line[0] == "ok" else str(line[0])


def repair(path: Path, now: datetime) -> SalvageReport:
    """Replace a damaged state.db with a new file that contains all readable rows.

    A copy of the damaged file stays next to it. No other process may use the file. Raises
    StoreError if no row can be read, or if there is no space for the new file.
    """
    damaged_path = path.with_name(f"{path.name}.damaged-{now:%Y%m%d-%H%M%S}")
    new_path = path.with_name(f"{path.name}.repaired")
    report = SalvageReport(damaged_path=damaged_path)
    try:
        _create_repaired(path, new_path, report)
        _replace(path, new_path)
    except OSError as error:
        raise StoreError("store_unrepaired", path=path, reason=error.strerror) from error
    return report


def _create_repaired(path: Path, new_path: Path, report: SalvageReport) -> None:
    """Copy the damaged file, and create a new file with its readable rows.

    If that fails, neither file is left, because each attempt would need more space.
    """
    try:
        _copy_damaged(path, report.damaged_path)
        _remove_files(new_path)
        os.close(os.open(new_path, os.O_CREAT | os.O_RDWR, 0o600))
        with translate_errors(path):
            _salvage(path, new_path, report)
    except (StoreError, OSError):
        _remove_files(new_path)
        _remove_files(report.damaged_path)
        raise


def _copy_damaged(path: Path, damaged_path: Path) -> None:
    """Copy the damaged file with its log."""
    for suffix in ("", "-wal"):
        source = Path(f"{path}{suffix}")
        if source.exists():
            shutil.copy2(source, f"{damaged_path}{suffix}")


def _replace(path: Path, new_path: Path) -> None:
    """Delete the old log, then replace the damaged file with the new one.

    With the old log, SQLite would apply its changes to the new file.
    """
    with new_path.open("rb") as file:
        sync_file(file.fileno())
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    new_path.replace(path)


def _remove_files(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _open(path: Path) -> sqlite3.Connection:
    """Open a file that may be damaged or truncated."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    # Otherwise SQLite refuses a file that is shorter than its header says.
    connection.execute("PRAGMA writable_schema = ON")
    return connection


def _salvage(path: Path, new_path: Path, report: SalvageReport) -> None:
    """Fill the new file with the readable rows of the copy of the damaged one, which is `path`.

    Raises StoreError if the schema of the damaged file can't be read.
    """
    with (
        contextlib.closing(_open(report.damaged_path)) as source,
        contextlib.closing(sqlite3.connect(new_path, isolation_level=None)) as target,
    ):
        version = _read_schema_version(source)
        if not 0 < version <= SCHEMA_VERSION:
            raise StoreError("store_no_schema", path=path)
        configure(target, is_reader=False)
        target.execute("PRAGMA foreign_keys = OFF")
        target.execute("PRAGMA synchronous = OFF")
        target.execute("BEGIN")
        create_schema(target, version)
        triggers = target.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            target.execute(f'DROP TRIGGER "{name}"')
        for name in _list_tables(target):
            _copy_table(source, target, name, report)
        if not report.saved:
            raise StoreError("store_no_row", path=path)
        _read_session_scopes(source, target)
        _mend_references(target, report)
        target.execute("REPLACE INTO state_meta (key, value) VALUES (?, '1')", (STALE_KEY,))
        for _, statement in triggers:
            target.execute(statement)
        target.execute("COMMIT")
        target.execute("PRAGMA journal_mode = DELETE")


def _read_schema_version(connection: sqlite3.Connection) -> int:
    """Return the version of the schema, or 0 if the schema can't be read."""
    try:
        connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.DatabaseError:
        return 0


def _list_tables(connection: sqlite3.Connection) -> list[str]:
    """List the tables with rows of their own, without the tables of the text indexes."""
    tables = connection.execute(_SELECT_TABLES).fetchall()
    indexes = [name for name, sql in tables if sql.startswith("CREATE VIRTUAL TABLE")]
    names = []
    for name, _ in tables:
        if not any(name == index or name.startswith(f"{index}_") for index in indexes):
            names.append(name)
    return names


def _copy_table(
    source: sqlite3.Connection, target: sqlite3.Connection, name: str, report: SalvageReport
) -> None:
    """Copy the readable rows of one table, and count the lost ones."""
    columns = [row[1] for row in target.execute(f'PRAGMA table_info("{name}")')]
    column_list = ", ".join(f'"{column}"' for column in columns)
    marks = ", ".join("?" for _ in columns)
    # The rows that migrations insert are in the damaged file, too.
    target.execute(f'DELETE FROM "{name}"')
    insert = f'INSERT OR IGNORE INTO "{name}" ({column_list}) VALUES ({marks})'
    reader = TableReader(source, name, column_list)
    before = target.total_changes
    batch: list[Sequence[object]] = []
    for row in reader.read_rows():
        batch.append(row)
        if len(batch) == BATCH_ROWS:
            target.executemany(insert, batch)
            batch.clear()
    target.executemany(insert, batch)
    saved_count = target.total_changes - before
    if saved_count:
        report.saved[name] = saved_count
    if reader.has_failed:
        lost_count = reader.count_lost_rows(saved_count)
        if lost_count != 0:
            report.lost[name] = lost_count


class TableReader:
    """Reads the rows of a damaged table, skipping its damaged pages."""

    def __init__(self, connection: sqlite3.Connection, name: str, column_list: str) -> None:
        self._connection = connection
        self._name = name
        self._column_list = column_list
        self.has_failed = False
        # A column that each row has, also in the indexes.
        self._key_column = "rowid"
        # How many row ids were unreadable, including ids without a row. None if the last row id is
        # unknown.
        self._failed_count: int | None = None

    def read_rows(self) -> Iterator[Sequence[object]]:
        """Yield all readable rows."""
        sql = f'SELECT rowid, {self._column_list} FROM "{self._name}" ORDER BY rowid'
        last_id = 0
        try:
            for row in self._connection.execute(sql):
                last_id = row[0]
                yield row[1:]
        except sqlite3.DatabaseError as error:
            if "no such column: rowid" in str(error):
                yield from self._read_both_ends()
                return
            self.has_failed = True
        if self.has_failed:
            known_last_id = self._query_rows("MAX(rowid)")
            guess = last_id + UNKNOWN_ROWS
            yield from self._read_range(
                last_id + 1, guess if known_last_id is None else known_last_id
            )
            if known_last_id is None:
                self._failed_count = None
            yield from self._read_index()

    def _read_both_ends(self) -> Iterator[Sequence[object]]:
        """Yield the rows of a table without row ids, from each end up to a damaged page."""
        keys = self._connection.execute(f'PRAGMA table_info("{self._name}")').fetchall()
        names = [row[1] for row in sorted(keys, key=lambda row: row[5]) if row[5]]
        self._key_column = f'"{names[0]}"'
        for direction in ("ASC", "DESC"):
            order = ", ".join(f'"{name}" {direction}' for name in names)
            sql = f'SELECT {self._column_list} FROM "{self._name}" ORDER BY {order}'
            try:
                yield from _read_to_damage(self._connection, sql)
                return
            except sqlite3.DatabaseError:
                self.has_failed = True

    def _read_index(self) -> Iterator[Sequence[object]]:
        """Yield rows from an index that has all required columns.

        Columns that the index lacks get their defaults. Rows that were already read from the table
        are yielded again, which does no harm, because inserting them a second time changes nothing.
        """
        columns = self._connection.execute(f'PRAGMA table_info("{self._name}")').fetchall()
        keys = {column[1] for column in columns if column[5] and column[2] == "INTEGER"}
        required = {column[1] for column in columns if column[3] and column[4] is None} - keys
        for index in self._list_full_indexes():
            info = self._connection.execute(f'PRAGMA index_info("{index}")').fetchall()
            indexed = {row[2] for row in info} | keys
            if not keys or not required <= indexed:
                continue
            defaults = [
                f'"{column[1]}"' if column[1] in indexed else str(column[4] or "NULL")
                for column in columns
            ]
            sql = f'SELECT {", ".join(defaults)} FROM "{self._name}" INDEXED BY "{index}"'
            with contextlib.suppress(sqlite3.DatabaseError):
                yield from _read_to_damage(self._connection, sql)
                return

    def _read_range(self, first_id: int, last_id: int) -> Iterator[Sequence[object]]:
        """Yield the readable rows of a range of row ids.

        The row ids of a damaged page may be far apart. Therefore, the largest ranges are read
        first, and the remaining ones are abandoned after `MAX_READS`.
        """
        select = f'SELECT rowid, {self._column_list} FROM "{self._name}" WHERE rowid'
        # Negative sizes, because the smallest item of a heap is its first one.
        ranges = [(first_id - last_id, first_id, last_id)]
        self._failed_count = 0
        for _ in range(MAX_READS):
            if not ranges:
                return
            _, first_id, last_id = heapq.heappop(ranges)
            # A search for a single id doesn't read the next page, which may be damaged.
            is_single = first_id == last_id
            condition = "= ?1" if is_single else "BETWEEN ?1 AND ?2 ORDER BY rowid"
            values = (first_id,) if is_single else (first_id, last_id)
            next_id = first_id
            try:
                for row in self._connection.execute(f"{select} {condition}", values):
                    next_id = row[0] + 1
                    yield row[1:]
            except sqlite3.DatabaseError:
                if is_single:
                    self._failed_count += 1
                    continue
                middle_id = (next_id + last_id) // 2
                for first, last in ((next_id, middle_id), (middle_id + 1, last_id)):
                    if first <= last:
                        heapq.heappush(ranges, (first - last, first, last))
        self._failed_count = None

    def count_lost_rows(self, saved_count: int) -> int | None:
        """Return an upper bound of the number of lost rows.

        Returns None if the table's number of rows is unknown.
        """
        # COUNT(*) would read the first page of the table itself.
        count = self._query_rows(f"COUNT({self._key_column})")
        return self._failed_count if count is None else max(count - saved_count, 0)

    def _list_full_indexes(self) -> list[str]:
        """Return the indexes that contain all rows."""
        indexes = self._connection.execute(f'PRAGMA index_list("{self._name}")').fetchall()
        return [row[1] for row in indexes if not row[4]]

    def _query_rows(self, expression: str) -> int | None:
        """Evaluate an expression over the first readable index, or else over the table.

        Indexes are tried first, because the table is damaged. Returns None if none of them can be
        read.
        """
        for source in (*(f'INDEXED BY "{index}"' for index in self._list_full_indexes()), ""):
            sql = f'SELECT {expression} FROM "{self._name}" {source}'
            try:
                value = self._connection.execute(sql).fetchone()[0]
            except sqlite3.DatabaseError:
                continue
            return int(value or 0)
        return None


def _read_to_damage(connection: sqlite3.Connection, sql: str) -> Iterator[Sequence[object]]:
    """Yield the rows of a query up to a damaged page.

    Raises sqlite3.DatabaseError after the last readable row. Python fetches each row before it
    returns the one before it, so it drops that row if the fetch fails; LIMIT ends before the fetch.
    """
    row_count = 0
    try:
        for row in connection.execute(sql):
            row_count += 1
            yield row
    except sqlite3.DatabaseError:
        yield from connection.execute(f"{sql} LIMIT 1 OFFSET {row_count}")
        raise


def _read_session_scopes(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Read the scopes of all sessions from an index, including those of lost sessions."""
    target.execute("CREATE TEMP TABLE session_scopes (id INTEGER PRIMARY KEY, scope_id INTEGER)")
    with contextlib.suppress(sqlite3.DatabaseError):
        for row in _read_to_damage(source, _SELECT_SESSION_SCOPES):
            target.execute("INSERT OR IGNORE INTO session_scopes VALUES (?, ?)", row)


def _mend_references(target: sqlite3.Connection, report: SalvageReport) -> None:
    """Create the lost people, sessions and files that saved rows refer to.

    Saved rows with other references to lost rows are removed.
    """
    target.execute(_CREATE_LOST_PEOPLE)
    names = {row[1] for row in target.execute("PRAGMA table_info(sessions)")}
    # Its name before version 38.
    count = "message_count" if "message_count" in names else "messages"
    target.execute(_CREATE_LOST_SESSIONS.format(count=count))
    # Earlier versions have no files.
    if target.execute("PRAGMA table_info(file_parts)").fetchall():
        target.execute(_CREATE_LOST_FILES)
    for _ in range(MAX_ROUNDS):
        tables = {row[0] for row in target.execute("PRAGMA foreign_key_check")}
        for name in tables:
            removed_count = _remove_broken_rows(target, name)
            if removed_count:
                lost_count = report.lost.get(name, 0)
                if lost_count is not None:
                    report.lost[name] = lost_count + removed_count
                report.saved[name] -= removed_count
        if not tables:
            return


def _remove_broken_rows(target: sqlite3.Connection, name: str) -> int:
    """Clear a table's references to lost rows, and return the number of removed rows.

    A row is removed if it requires the reference.
    """
    columns = target.execute(f'PRAGMA table_info("{name}")').fetchall()
    required_columns = {row[1] for row in columns if row[3] or row[5]}
    removed_count = 0
    for key in target.execute(f'PRAGMA foreign_key_list("{name}")').fetchall():
        parent, column, parent_column = key[2], key[3], key[4] or "id"
        condition = (
            f'"{column}" IS NOT NULL AND '
            f'"{column}" NOT IN (SELECT "{parent_column}" FROM "{parent}")'
        )
        if column in required_columns:
            removed_count += target.execute(f'DELETE FROM "{name}" WHERE {condition}').rowcount
        else:
            target.execute(f'UPDATE "{name}" SET "{column}" = NULL WHERE {condition}')
    return removed_count
