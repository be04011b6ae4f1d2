"""The roles of a database engine, and SQL expressions that each engine understands.

`core/store/sqlite/` and `core/store/postgres/` implement the roles. All other modules use only this
one, so that they work with both engines. A statement is written once, as SQLite reads it; the
connection to PostgreSQL translates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from core.types import MEMORY_TAG, ErasureEpoch

if TYPE_CHECKING:
    from core.store.query import SearchPlan

T = TypeVar("T")

Values = Mapping[str, object]

LOG_SPACE_WAIT_S = 60.0
"""How long large writes wait for `Database.wait_for_log_space`."""


# --- Roles ---


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
    def lastrowid(self) -> int | None:
        """The id of the message that the statement has inserted. Other inserts return their id."""
        ...

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def fetchmany(self, size: int, /) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Ranking(NamedTuple):
    """A statement that ranks rows of a text index: it selects their ids and scores, lower first."""

    sql: str
    values: Values
    # The statement ranks at most so many rows, the newest ones.
    limit: int


class TextIndex(Protocol):
    """The text indexes over messages, chunks, facts and files.

    An object has no state. A term has the id of its scope before it: see `rows.scoped_term`.
    Methods that change an index run in a write transaction.
    """

    @property
    def order_of_hits(self) -> str:
        """The clause that keeps the ranked rows `hits` in order when other tables are joined."""
        ...

    # --- Searching ---

    def rank_messages(
        self, connection: Connection, plan: SearchPlan, scope_ids: Sequence[int], *, is_small: bool
    ) -> Iterator[Ranking]:
        """Yield rankings of the messages that match a plan: first of the newest, then of the rest.

        `is_small` means that the scopes hold a small share of all messages.
        """
        ...

    def count_chunks(self, connection: Connection, terms: Iterable[str]) -> Iterable[Sequence[Any]]:
        """Return the terms that chunks contain, each with the number of these chunks."""
        ...

    def rank_chunks(
        self,
        connection: Connection,
        leading: Sequence[str],
        lending: Sequence[str],
        match_count: int,
        limit: int,
    ) -> Iterator[Ranking]:
        """Yield rankings of the chunks that contain a leading term.

        Lending terms only improve the rank. `match_count` is an upper limit of the number of
        matches. If more than `limit` chunks match, the newest ones are ranked first.
        """
        ...

    def score_facts(
        self, connection: Connection, terms: Sequence[str], scope_ids: Sequence[int], limit: int
    ) -> dict[int, float]:
        """Return the positive scores, by fact id, of the best facts with any of the terms."""
        ...

    def rank_file_parts(self, terms: Sequence[str], *, needs_all: bool) -> Ranking:
        """Return a ranking of the parts of files that contain the terms, as a subquery."""
        ...

    # --- Filling ---

    def index_messages(self, connection: Connection, after: int, last: int) -> None:
        """Add the chat messages with ids greater than `after` and up to `last`."""
        ...

    def defer(self, connection: Connection) -> AbstractContextManager[None]:
        """Index the messages that the `with` block inserts when it ends."""
        ...

    def index_chunks(self, connection: Connection, chunk_ids: Sequence[int]) -> None:
        """Add chunks, and mark them as indexed."""
        ...

    def remove_chunk(self, connection: Connection, chunk_id: int) -> None: ...

    def index_fact(self, connection: Connection, fact_id: int) -> None:
        """Add a fact, replacing its earlier version."""
        ...

    def index_file_part(self, connection: Connection, part_id: int, text: str) -> None: ...

    # --- Upkeep ---

    def begin_rebuild(self, connection: Connection) -> None:
        """Empty the indexes over messages and chunks, and rebuild those over facts and files."""
        ...

    def merge(self, connection: Connection, pages: int) -> bool:
        """Merge about `pages` pages of the indexes. Returns True if there was work to do."""
        ...

    def find_damage(self, connection: Connection) -> list[str]:
        """Check the indexes. Returns a sentence about each problem."""
        ...


class Connection(Protocol):
    """An open transaction. Functions that take a connection neither begin nor end the transaction.

    Rows are read by name or position. Statements have named parameters.
    """

    @property
    def index(self) -> TextIndex: ...

    def execute(self, statement: str, values: Any = ..., /) -> Cursor: ...
    def executemany(self, statement: str, values: Iterable[Any], /) -> Cursor:
        """Run the statement once per item of `values`. All strings must be valid Unicode."""
        ...

    def fetch_each(self, statement: str, values: Iterable[Values], /) -> list[list[Any]]:
        """Run a query once per item of `values`, and return the rows of each.

        A server gets all of them at once, so that the caller waits only once.
        """
        ...


class Database(Protocol):
    """Runs transactions. Methods raise StoreError if the engine fails.

    A write with an `epoch` raises StaleReadError if data in its scopes was erased since then,
    because the write may repeat that data.
    """

    # Names the database in sentences for people.
    name: str
    # Describes the first damage that was noticed. "" if there is no known damage.
    damage: str

    async def write(
        self,
        work: Callable[[Connection], T],
        epoch: ErasureEpoch | None = None,
        *,
        is_short: bool = False,
    ) -> T:
        """Run `work` in one write transaction and return its result.

        It is durable when this method returns. If `work` raises an exception, the transaction is
        rolled back. If it changes nothing, no tool call is recorded. An engine may run short
        writes in the caller's thread.
        """
        ...

    async def write_indexed(
        self,
        work: Callable[[Connection], T],
        epoch: ErasureEpoch | None = None,
        *,
        is_short: bool = False,
    ) -> T:
        """Run `work`, which changes indexed text, as `write` does, even if an index is damaged."""
        ...

    async def execute(
        self, statement: str, values: Values | None = None, epoch: ErasureEpoch | None = None
    ) -> int:
        """Run one statement as a write transaction. Returns how many rows it changed."""
        ...

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one read transaction, which sees a consistent snapshot."""
        ...

    async def read_inline(self, work: Callable[[Connection], T], limit_s: float = ...) -> T:
        """Run a read that usually takes less time than a switch between threads.

        An engine may run it in the caller's thread for at most `limit_s`.

        `work` may run twice, so it must have no other effect.
        """
        ...

    async def fetch_all(self, statement: str, values: Values | None = None) -> list[Row]:
        """Return all rows of one statement."""
        ...

    async def fetch_one(self, statement: str, values: Values | None = None) -> Row | None:
        """Return the first row of one statement, or None."""
        ...

    async def compact(self, limit_s: float) -> bool:
        """Remove erased words from the bytes of the database, for about `limit_s` seconds.

        Returns whether all steps are done.
        """
        ...

    async def compact_step(self) -> bool:
        """Run one small step of `compact`. Returns whether another step can follow at once."""
        ...

    async def wait_for_log_space(self, wait_s: float) -> bool:
        """Wait until there is room for another large transaction.

        Returns False if another program has prevented it for `wait_s` seconds.
        """
        ...

    async def data_version(self) -> int:
        """Return a number that changes whenever another process writes."""
        ...


# --- Copying a store to another engine ---


class CopiedTable(NamedTuple):
    """A table whose rows can't be derived from other tables."""

    name: str
    columns: tuple[str, ...]
    # The columns of the primary key.
    key: tuple[str, ...]
    # Tables that must be copied before this one.
    parents: tuple[str, ...]
    # The columns that name rows of the same table.
    own_references: tuple[str, ...]


class CopyTools(Protocol):
    """The engine-specific steps of copying a store.

    Each engine has a module with these functions.
    """

    def insert_rows(
        self, connection: Connection, table: CopiedTable, rows: Iterable[Sequence[Any]], /
    ) -> None: ...

    def read_last_ids(self, connection: Connection, /) -> dict[str, int]:
        """Return the highest id that each table has assigned so far, where it is known."""
        ...

    def raise_last_ids(self, connection: Connection, last_ids: Mapping[str, int], /) -> None:
        """Make new ids higher than these ids and all existing ones."""
        ...


# --- Expressions ---


@cache
def in_list(column: str, parameter: str) -> str:
    """Return the SQL condition that `column` is in the JSON list bound as `parameter`.

    Both names become part of the SQL, so they must be constants and never user input.
    """
    return f"{column} IN (SELECT value FROM json_each(:{parameter}))"


def listed(parameter: str, name: str = "listed") -> str:
    """Return the SQL source of the items of the JSON list bound as `parameter`.

    It has the columns `key`, the position of an item, and `value`.
    """
    return f"json_each(:{parameter}) AS {name}"


LISTED_ID = "CAST(listed.value AS INTEGER)"
"""The SQL expression for an id in the source `listed`."""


def contains_item(column: str, parameter: str) -> str:
    """Return the SQL condition that the list in `column` contains the text bound as `parameter`."""
    return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value = :{parameter})"


def overlaps(column: str, parameter: str) -> str:
    """Return the SQL condition that the lists in `column` and `parameter` share an item."""
    return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE {in_list('value', parameter)})"


def is_within(column: str, parameter: str) -> str:
    """Return the SQL condition that all items of the list in `column` are in `parameter`."""
    return f"NOT EXISTS (SELECT 1 FROM json_each({column}) WHERE NOT {in_list('value', parameter)})"


def sent_text_sql(*, of_memory: bool) -> str:
    """Return the SQL expression for the text of a message as it was sent to the model.

    With `of_memory`, only the blocks that memory added are included (see
    `core.types.is_memory_block`). Otherwise, only the other blocks are included.
    """
    is_memory = f"substr(value ->> 'text', 1, {len(MEMORY_TAG)}) = '{MEMORY_TAG}'"
    condition = is_memory if of_memory else f"NOT ({is_memory})"
    return f"(SELECT group_concat(value ->> 'text') FROM json_each(sent) WHERE {condition})"


IS_SHOWN = (
    "messages.kind = 'chat' AND messages.role IN ('user', 'assistant') AND messages.text <> ''"
)
"""The SQL condition for messages that are shown to people: chat messages with a text, from a person
or from the assistant."""
