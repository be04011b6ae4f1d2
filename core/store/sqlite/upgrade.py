"""Upgrade a state.db of any earlier version to the present schema.

A single transaction, which holds the file's write lock, does all of this:

1. Copy state.db to a file next to it.
2. Run the sections of `earlier.sql`, then create the triggers, views and indexes of `schema.sql`.
3. Check the integrity of the result.

Then the transaction is committed, and the copy is deleted. If the process is killed before the
commit, SQLite rolls the transaction back, and the next start deletes the copy and begins again. If
the process is killed after the commit, the next start finds the new version and deletes the copy.
state.db isn't used before that, so no erasure runs while a copy still has the erased words.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from config.operating_system import sync_file
from core.errors import StoreDamagedError, StoreError
from core.store.sqlite.copying import copy_database
from core.store.sqlite.faults import translate_errors
from core.store.sqlite.opening import (
    COPY_SUFFIX,
    OPEN_TIMEOUT_MS,
    configure,
    is_current,
    refuse_if_lost,
)
from core.store.sqlite.schema import (
    SCHEMA_VERSION,
    apply_upgrade,
    create_schema,
    drop_triggers_and_views,
    list_schema_statements,
)

_PARTIAL_SUFFIX = f"{COPY_SUFFIX}.part"
_LOG_SUFFIXES = ("", "-journal", "-wal", "-shm")
_OBJECT = re.compile(r"CREATE (?:UNIQUE )?(TRIGGER|VIEW|INDEX) (\w+)")
_COMMENT = re.compile(r"--[^\n]*")


class UpgradeStage(Enum):
    COPY = "copy"
    CHANGE = "change"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class UpgradeProgress:
    """The progress of an upgrade.

    In the stage COPY, `done` and `total` count pages, and later versions.
    """

    stage: UpgradeStage
    done: int
    total: int


OnProgress = Callable[[UpgradeProgress], None]


def upgrade_file(path: Path, on_progress: OnProgress | None = None) -> None:
    """Upgrade an existing file to the present schema.

    Raises StoreError if the upgrade fails. In that case, the file stays unchanged.
    """
    with (
        translate_errors(path),
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        configure(connection, is_reader=False)
        create_or_upgrade(connection, path, on_progress)


def create_or_upgrade(
    connection: sqlite3.Connection, path: Path, on_progress: OnProgress | None = None
) -> None:
    """Create the schema in an empty file, or upgrade a file of an earlier version.

    Raises StoreError if a newer version has written the file, if its content is gone, or if the
    upgrade fails. In that case, the file stays unchanged.
    """
    copy = path.with_name(f"{path.name}{COPY_SUFFIX}")
    if is_current(connection, path):
        return
    connection.execute(f"PRAGMA busy_timeout = {OPEN_TIMEOUT_MS}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _read_version(connection)
        _refuse_newer(path, version)
        if version == 0:
            refuse_if_lost(path)
            create_schema(connection)
        elif version < SCHEMA_VERSION:
            _copy_file(path, copy, on_progress)
            _upgrade(connection, version, on_progress)
            _check(connection, path, on_progress)
    except BaseException:
        connection.execute("ROLLBACK")
        with contextlib.suppress(OSError):
            _delete_copy(path)
        raise
    connection.execute("COMMIT")
    try:
        _delete_copy(path)
    except OSError as error:
        raise StoreError("store_copy_kept", path=copy, reason=error.strerror) from error
    connection.execute("PRAGMA busy_timeout = 0")


def _refuse_newer(path: Path, version: int) -> None:
    """Raise StoreError if a newer version of Mneme has written the file."""
    if version > SCHEMA_VERSION:
        raise StoreError("store_newer", path=path, schema=version, known=SCHEMA_VERSION)


def _read_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _copy_file(path: Path, copy: Path, on_progress: OnProgress | None) -> None:
    """Copy state.db before its upgrade. The caller has its write lock."""
    partial = path.with_name(f"{path.name}{_PARTIAL_SUFFIX}")

    def report(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress(UpgradeProgress(UpgradeStage.COPY, done, total))

    try:
        _delete_copy(path)
        os.close(os.open(partial, os.O_CREAT | os.O_RDWR, 0o600))
        copy_database(path, partial, report)
        with partial.open("rb") as file:
            sync_file(file.fileno())
        partial.replace(copy)
    except (OSError, StoreError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StoreError("store_not_copied", path=path, reason=reason) from error


def _delete_copy(path: Path) -> None:
    """Delete the copy, and any remains of an interrupted copy."""
    for suffix in (COPY_SUFFIX, _PARTIAL_SUFFIX):
        for log_suffix in _LOG_SUFFIXES:
            path.with_name(f"{path.name}{suffix}{log_suffix}").unlink(missing_ok=True)


def _upgrade(connection: sqlite3.Connection, version: int, on_progress: OnProgress | None) -> None:
    """Apply the changes since a version, then create the present triggers, views and indexes."""
    for number in range(version + 1, SCHEMA_VERSION + 1):
        if on_progress is not None:
            on_progress(UpgradeProgress(UpgradeStage.CHANGE, number, SCHEMA_VERSION))
        apply_upgrade(connection, number)
    drop_triggers_and_views(connection)
    _replace_indexes(connection)
    for statement in list_schema_statements():
        if _kind_and_name(statement)[0] in ("TRIGGER", "VIEW"):
            connection.execute(statement)


def _replace_indexes(connection: sqlite3.Connection) -> None:
    """Create the missing indexes of `schema.sql`, and drop all other indexes."""
    statements: dict[str, str] = {}
    for statement in list_schema_statements():
        kind, name = _kind_and_name(statement)
        if kind == "INDEX":
            statements[name] = statement
    existing = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall()
    for name, sql in existing:
        if name in statements and _normalize(sql) == _normalize(statements[name]):
            del statements[name]
        else:
            connection.execute(f'DROP INDEX "{name}"')
    for statement in statements.values():
        connection.execute(statement)


def _kind_and_name(statement: str) -> tuple[str, str]:
    """Return the kind and name of the object that a statement creates.

    For example, ("VIEW", "chunk_texts"). Both are empty if the statement creates nothing.
    """
    match = _OBJECT.match(_COMMENT.sub("", statement).strip())
    return (match[1], match[2]) if match else ("", "")


def _normalize(sql: str) -> str:
    """Return a statement without comments, spaces, quotes and the semicolon, to compare it."""
    return re.sub(r'[\s";]', "", _COMMENT.sub("", sql))


def _check(connection: sqlite3.Connection, path: Path, on_progress: OnProgress | None) -> None:
    """Raise StoreDamagedError if the upgraded database fails its integrity checks."""
    if on_progress is not None:
        on_progress(UpgradeProgress(UpgradeStage.CHECK, 0, 1))
    problems = _list_problems(connection.execute("PRAGMA integrity_check(5)"))
    if problems:
        raise StoreDamagedError("store_not_upgraded", path=path, text="; ".join(problems))


def _list_problems(lines: Iterable[tuple[object, ...]]) -> list[str]:
    return [str(line[0]) for line in lines if line[0] != "ok"]
