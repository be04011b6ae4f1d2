"""What the store asks of a connection: rows by name and by place, statements with named parameters.

`core/store/sqlite/` fills these roles; nothing above it imports an SQLite module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Values = Mapping[str, object]


class Row(Protocol):
    """One row of a result: `row["name"]`, `row[0]`, `row[:3]`."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def keys(self) -> list[str]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...

    @property
    def lastrowid(self) -> int | None: ...

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Inside one transaction, which a function that is given one neither begins nor ends."""

    def execute(self, statement: str, values: Any = ..., /) -> Cursor: ...
    def executemany(self, statement: str, values: Iterable[Any], /) -> Cursor:
        """For each of the values, whose texts must be valid Unicode."""
        ...
