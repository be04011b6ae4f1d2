"""A connection to PostgreSQL that accepts the same statements as a connection to SQLite.

Parameters are named, and rows are read by name or position. The server prepares statements that run
often, so it plans them only once. It infers the types of text parameters from the statement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Self

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumperUnknown

from core.store import rows
from core.store.postgres.dialect import LIST_SUFFIX, MISSING_SUFFIX, Translated, translate
from core.store.postgres.schema import SCHEMA
from core.store.postgres.text_index import PostgresIndex
from core.types import Account, Address, Scope

CONNECT_TIMEOUT_S = 10
# After 10 seconds without packets, both sides check three times whether the other one still
# answers. So 25 seconds after a cable was cut, this process can reconnect, and the server releases
# the locks of a machine that is gone. By default, systems wait for hours.
KEEPALIVE_IDLE_S = 10
KEEPALIVE_INTERVAL_S = 5
KEEPALIVE_COUNT = 3
UNANSWERED_TIMEOUT_MS = 1_000 * (KEEPALIVE_IDLE_S + KEEPALIVE_COUNT * KEEPALIVE_INTERVAL_S)
# On a socket of this machine, the server ignores the settings for TCP.
_SESSION_SETTINGS = {
    "search_path": SCHEMA,
    # Searches are short, so compiling a statement takes longer than running it.
    "jit": "off",
    # The store writes joins in the order in which their tables are to be read.
    "join_collapse_limit": "1",
    # Without parallel workers, the rows of a UNION ALL come in the order of its parts.
    "max_parallel_workers_per_gather": "0",
    "tcp_keepalives_idle": str(KEEPALIVE_IDLE_S),
    "tcp_keepalives_interval": str(KEEPALIVE_INTERVAL_S),
    "tcp_keepalives_count": str(KEEPALIVE_COUNT),
    "tcp_user_timeout": str(UNANSWERED_TIMEOUT_MS),
}
_SET_ALL = "; ".join(f"SET {name} TO {value}" for name, value in _SESSION_SETTINGS.items())


class StoreRow(tuple[Any, ...]):
    """A row of a result, read as `row["name"]`, `row[0]` or `row[:3]`."""

    __slots__ = ()
    # The position of each column. `_row_type` makes a class for each list of columns.
    positions: dict[str, int] = {}  # noqa: RUF012

    def __getitem__(self, key: Any, /) -> Any:
        if isinstance(key, str):
            return tuple.__getitem__(self, self.positions[key])
        return tuple.__getitem__(self, key)

    def keys(self) -> list[str]:
        """Return the names of the columns, in their order."""
        return list(self.positions)


@cache
def _row_type(names: tuple[str, ...]) -> type[StoreRow]:
    positions = {name: position for position, name in reversed(list(enumerate(names)))}
    ordered = {name: positions[name] for name in names}
    return type("StoreRow", (StoreRow,), {"positions": ordered, "__slots__": ()})


def _make_rows(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], StoreRow]:
    names = tuple(column.name for column in cursor.description or ())
    return _row_type(names)


class StoreCursor(psycopg.Cursor[StoreRow]):
    """The result of a statement. It is empty after a statement that returns no rows."""

    # The id of the message that the statement inserted.
    lastrowid: int | None = None

    def take_id(self) -> None:
        """Set `lastrowid` to the id that the translated INSERT statement returns."""
        for row in self.fetchall():
            self.lastrowid = int(row[0])

    def fetchone(self) -> StoreRow | None:
        return None if self.description is None else super().fetchone()

    def fetchall(self) -> list[StoreRow]:
        return [] if self.description is None else super().fetchall()

    def fetchmany(self, size: int = 0) -> list[StoreRow]:
        return [] if self.description is None else super().fetchmany(size)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StoreRow:
        if self.description is None:
            raise StopIteration
        return super().__next__()


class StoreConnection:
    """A connection to the store's database that accepts statements in SQLite's SQL."""

    index = PostgresIndex()

    def __init__(self, url: str) -> None:
        """Connect to the server. Raises psycopg.OperationalError if it can't be reached."""
        self.raw = psycopg.connect(
            url,
            autocommit=True,
            row_factory=_make_rows,
            cursor_factory=StoreCursor,
            connect_timeout=CONNECT_TIMEOUT_S,
            keepalives_idle=KEEPALIVE_IDLE_S,
            keepalives_interval=KEEPALIVE_INTERVAL_S,
            keepalives_count=KEEPALIVE_COUNT,
            tcp_user_timeout=UNANSWERED_TIMEOUT_MS,
            application_name="mneme",
            client_encoding="utf-8",
        )
        # How many rows were changed on this connection.
        self.total_changes = 0
        _adapt_types(self.raw)
        self.raw.execute(_SET_ALL.encode())

    def execute(self, statement: str, values: Any = (), /) -> StoreCursor:
        """Run a statement. Texts that aren't valid Unicode are repaired first."""
        translated = translate(statement)
        if translated.lists or translated.nullable:
            values = _add_values(values, translated)
        cursor = StoreCursor(self.raw, row_factory=_make_rows)
        # Values are always passed, even empty ones, so "%%" means "%" in every statement.
        cursor.execute(translated.sql.encode(), values)
        if translated.returns_id:
            cursor.take_id()
        self._count_changes(cursor)
        return cursor

    def executemany(self, statement: str, values: Iterable[Any], /) -> StoreCursor:
        """Run a statement once for each item of `values`, sending many items at once."""
        cursor = StoreCursor(self.raw, row_factory=_make_rows)
        translated = translate(statement)
        if translated.lists or translated.nullable:
            values = (_add_values(item, translated) for item in values)
        cursor.executemany(translated.sql.encode(), values)
        self._count_changes(cursor)
        return cursor

    def fetch_each(
        self, statement: str, values: Iterable[Mapping[str, Any]], /
    ) -> list[list[StoreRow]]:
        """Run a query once for each item of `values`, in one round trip.

        Returns the rows of each run.
        """
        with self.raw.pipeline():
            cursors = [self.execute(statement, item) for item in values]
        return [cursor.fetchall() for cursor in cursors]

    def _count_changes(self, cursor: StoreCursor) -> None:
        status = cursor.statusmessage or ""
        if status.startswith(("INSERT", "UPDATE", "DELETE", "MERGE")):
            self.total_changes += max(0, cursor.rowcount)

    @property
    def is_cut(self) -> bool:
        """Whether the server or the network has closed the connection."""
        return bool(self.raw.closed)

    def close(self) -> None:
        self.raw.close()


def _add_values(values: Mapping[str, Any], translated: Translated) -> dict[str, Any]:
    """Convert the parameters for a translated statement.

    JSON lists become arrays. For each parameter that the statement compares with NULL, a boolean
    parameter is added.
    """
    added = dict(values)
    for name in translated.lists:
        added[name + LIST_SUFFIX] = None if values[name] is None else json.loads(values[name])
    for name in translated.nullable:
        added[name + MISSING_SUFFIX] = values[name] is None
    return added


# --- Types ---


class _TextDumper(StrDumperUnknown):
    """Sends texts to the server, without lone surrogates and NUL, which PostgreSQL can't store."""

    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj:
            obj = obj.replace("\0", "\ufffd")
        return super().dump(rows.clean(obj))


class _KeyDumper(Dumper):
    """Sends a scope, an account or an address to the server as its key."""

    def dump(self, obj: Any) -> Buffer | None:
        return rows.clean(obj.key).encode()


class _TimeDumper(Dumper):
    """Sends a time to the server as seconds since 1970."""

    oid = psycopg.adapters.types["float8"].oid

    def dump(self, obj: datetime) -> Buffer | None:
        return repr(rows.to_timestamp(obj)).encode()


class _TruthLoader(Loader):
    """Reads a boolean as 1 or 0, as SQLite returns it."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _NumberLoader(Loader):
    """Reads the results of SUM and AVG: an int if the number is whole, otherwise a float."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


def _adapt_types(connection: psycopg.Connection[Any]) -> None:
    """Register types, so that they are sent and read as on the SQLite connection."""
    adapters = connection.adapters
    adapters.register_dumper(str, _TextDumper)
    for type_with_key in (Account, Address, Scope):
        adapters.register_dumper(type_with_key, _KeyDumper)
    adapters.register_dumper(datetime, _TimeDumper)
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_loader("numeric", _NumberLoader)
    adapters.register_loader("bool", _TruthLoader)
