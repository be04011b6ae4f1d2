"""The PostgreSQL-specific steps of copying a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from core.errors import StoreError
from core.store.engine import Connection, CopiedTable
from core.store.postgres.connection import StoreConnection
from core.store.postgres.schema import SCHEMA
from core.store.rows import COPY_KEY, get_meta

_TRUTHS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = :schema AND data_type = 'boolean'
"""
_COUNTING_TABLES = """
SELECT table_name FROM information_schema.columns
WHERE table_schema = :schema AND is_identity = 'YES' ORDER BY table_name
"""
_SEQUENCE = "pg_get_serial_sequence(CAST(:table AS text), 'id')"
_LAST_ID = f"SELECT pg_sequence_last_value(CAST({_SEQUENCE} AS regclass))"
_RAISE = f"SELECT setval({_SEQUENCE}, GREATEST(:id, 1), :id > 0)"


def list_truths(connection: Connection) -> frozenset[tuple[str, str]]:
    """Return the table and name of each boolean column."""
    rows = connection.execute(_TRUTHS, {"schema": SCHEMA}).fetchall()
    return frozenset((row[0], row[1]) for row in rows)


def insert_rows(connection: Connection, table: CopiedTable, rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows with all columns of a table.

    Boolean columns need values of the type bool.
    """
    columns = ", ".join(f'"{column}"' for column in table.columns)
    statement = f"COPY {SCHEMA}.{table.name} ({columns}) FROM STDIN"
    raw = cast(StoreConnection, connection).raw
    with raw.cursor() as cursor, cursor.copy(statement.encode()) as copy:
        for row in rows:
            copy.write_row(row)


def read_last_ids(connection: Connection) -> dict[str, int]:
    """Return the highest id that each table has assigned so far."""
    last_ids = {}
    for name in _list_counting_tables(connection):
        row = connection.execute(_LAST_ID, {"table": f"{SCHEMA}.{name}"}).fetchone()
        last_ids[name] = row[0] or 0
    return last_ids


def raise_last_ids(connection: Connection, last_ids: Mapping[str, int]) -> None:
    """Make new ids higher than `last_ids` and all existing ids."""
    for name in _list_counting_tables(connection):
        row = connection.execute(f"SELECT COALESCE(MAX(id), 0) FROM {name}").fetchone()
        values = {"table": f"{SCHEMA}.{name}", "id": max(row[0], last_ids.get(name) or 0)}
        connection.execute(_RAISE, values)


def _list_counting_tables(connection: Connection) -> list[str]:
    rows = connection.execute(_COUNTING_TABLES, {"schema": SCHEMA}).fetchall()
    return [row[0] for row in rows]


def refuse_unfinished_copy(connection: Connection, name: str) -> None:
    """Raise StoreError if the database contains an unfinished copy of a store."""
    if get_meta(connection, COPY_KEY) is not None:
        raise StoreError("copy_unfinished", name=name)
