"""What the store asks of its database engine: rows by name and by place, statements, whole transactions.

`core/store/sqlite/` fills these roles; nothing above it imports an SQLite module. Statements take named parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, overload

T = TypeVar("T")

Values = Mapping[str, object]


class Row(Protocol):
    """One row of a result: `row["name"]`, `row[0]`, `row[:3]`."""

    @overload
    def __getitem__(self, key: int | str, /) -> Any: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[Any, ...]: ...
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
    def executemany(self, statement: str, values: Iterable[Any], /) -> Cursor: ...


class Database(Protocol):
    """Runs transactions. Each method raises StoreError for what the engine refuses. A write with `has_words`, which may
    store what was read before, raises StaleReadError when something was erased that the running task may have read.
    """

    async def write(self, work: Callable[[Connection], T], *, has_words: bool = True) -> T:
        """Runs `work` in one write transaction, durable when this returns; an exception rolls it back."""

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in one read transaction."""

    async def glance(self, work: Callable[[Connection], T]) -> T:
        """`read` for what takes far less than a millisecond."""

    async def execute(self, statement: str, values: Values | None = ..., *, has_words: bool = True) -> int:
        """One statement as a write transaction; returns how many rows it changed."""

    async def fetch_all(self, statement: str, values: Values | None = ...) -> list[Row]:
        """All rows of one statement."""

    async def fetch_one(self, statement: str, values: Values | None = ...) -> Row | None:
        """The first row of one statement; None when it gives none."""
