"""Describe what a database engine must do, and write SQL that every engine understands.

`core/store/sqlite/` and `core/store/postgres/` implement the protocols of this module. All other
modules import only this one, so they work with both engines. Statements are written in SQLite's
SQL, and the connection to PostgreSQL translates them.
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
"""How long `Database.wait_for_log_space` lets a large write wait."""


# --- Roles ---


class Row(Protocol):
    """A row of a result, read as `row["name"]`, `row[0]` or `row[:3]`."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def keys(self) -> list[str]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...


class Cursor(Protocol):
    """The result of a statement: its rows, or how many rows it has changed."""

    @property
    def rowcount(self) -> int: ...

    @property
    def lastrowid(self) -> int | None:
        """The id of the row that the statement inserted.

        Only inserts of messages set it. Other inserts return their id with RETURNING.
        """
        ...

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def fetchmany(self, size: int, /) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class SqlCondition(NamedTuple):
    """An SQL condition and the values of its parameters."""

    sql: str
    values: dict[str, Any]


NO_CONDITION = SqlCondition("", {})


class Ranking(NamedTuple):
    """A statement that selects the ids and scores of matching rows. A lower score is better."""

    sql: str
    values: Values
    # The statement ranks at most this many rows, the newest ones.
    limit: int


class TextIndex(Protocol):
    """The text indexes over messages, chunks, facts and files.

    An instance has no state. Every indexed term starts with its scope's id; see `rows.scoped_term`.
    Call methods that change an index inside a write transaction.
    """

    @property
    def order_of_hits(self) -> str:
        """The ORDER BY clause that keeps `hits` in their order after a join. It may be empty.

        The braces stand for that order.
        """
        ...

    @property
    def count_of_hits(self) -> str:
        """The SQL expression for the number of rows that the ranking of `hits` selects."""
        ...

    @property
    def sends_all_rows(self) -> bool:
        """Whether a statement computes all rows of its result before the first one is read."""
        ...

    def define_hits(self, ranking: str, order: str) -> str:
        """Return the WITH clause for `hits`: the ids and scores that `ranking` selects, in `order`.

        Each score is computed only once. If the engine sends all rows, the parameters `hit_limit`
        and `hit_offset` limit the hits.
        """
        ...

    @property
    def message_hit(self) -> str:
        """The column with the id of a found message, for a condition of `rank_messages`."""
        ...

    @property
    def chunk_hit(self) -> str:
        """The column with the id of a found chunk, for a condition of `rank_chunks`."""
        ...

    # --- Searching ---

    def rank_messages(
        self,
        connection: Connection,
        plan: SearchPlan,
        scope_ids: Sequence[int],
        condition: SqlCondition,
        *,
        is_small: bool,
    ) -> Iterator[Ranking]:
        """Yield rankings of the messages that match a plan: first the newest, then the rest.

        Only messages that meet the condition on `message_hit` are ranked. `is_small` means that the
        scopes contain only a small share of all messages.
        """
        ...

    def count_chunks(self, connection: Connection, terms: Iterable[str]) -> Iterable[Sequence[Any]]:
        """Count the chunks that contain each term. Terms in no chunk are left out."""
        ...

    def rank_chunks(
        self,
        connection: Connection,
        leading: Sequence[str],
        lending: Sequence[str],
        match_count: int,
        limit: int,
        condition: SqlCondition,
    ) -> Iterator[Ranking]:
        """Yield rankings of the chunks with at least one `leading` term that meet the condition.

        The `lending` terms don't select chunks, but raise the rank of the selected ones. They weigh
        half as much as the leading terms. A term that is listed twice weighs as much.
        `match_count` is an upper bound of the number of matches. If more than `limit` chunks match,
        the newest ones are ranked first.
        """
        ...

    def score_facts(
        self, connection: Connection, terms: Sequence[str], scope_ids: Sequence[int], limit: int
    ) -> dict[int, float]:
        """Return the scores of the best facts with any of the terms, by fact id.

        All scores are positive, and a higher score is better.
        """
        ...

    def rank_file_parts(self, terms: Sequence[str], *, needs_all: bool) -> Ranking:
        """Return a subquery that ranks the file parts with these terms.

        The statement around the subquery has a common table expression `shown` with the hashes of
        the files that the person may see. With `needs_all`, a part must contain all of the terms.
        """
        ...

    # --- Filling ---

    def index_messages(self, connection: Connection, after: int, last: int) -> None:
        """Add the chat messages with ids greater than `after` and up to `last`."""
        ...

    def defer(self, connection: Connection) -> AbstractContextManager[None]:
        """Index the messages that the `with` block inserts, all at once when the block ends."""
        ...

    def index_chunks(self, connection: Connection, chunk_ids: Sequence[int]) -> None:
        """Add chunks, and mark them as indexed."""
        ...

    def remove_chunk(self, connection: Connection, chunk_id: int) -> None: ...

    def index_fact(self, connection: Connection, fact_id: int) -> None:
        """Add a fact, or replace its indexed version."""
        ...

    def index_file_part(self, connection: Connection, part_id: int, text: str) -> None: ...

    # --- Upkeep ---

    def begin_rebuild(self, connection: Connection) -> None:
        """Empty the indexes over messages and chunks, and rebuild those over facts and files."""
        ...

    def merge(self, connection: Connection, pages: int) -> bool:
        """Merge about `pages` pages of the indexes. Returns whether there was anything to merge."""
        ...

    def find_damage(self, connection: Connection) -> list[str]:
        """Check the indexes, and return one sentence per problem."""
        ...


class Connection(Protocol):
    """An open transaction. A function that receives it neither begins nor ends the transaction.

    Rows are read by column name or position. Statements have named parameters.
    """

    @property
    def index(self) -> TextIndex: ...

    def execute(self, statement: str, values: Any = ..., /) -> Cursor: ...
    def executemany(self, statement: str, values: Iterable[Any], /) -> Cursor:
        """Run a statement once for each item of `values`. All strings must be valid Unicode."""
        ...

    def fetch_each(self, statement: str, values: Iterable[Values], /) -> list[list[Any]]:
        """Run a query once for each item of `values`, and return the rows of each run.

        A database server gets all runs in one round trip.
        """
        ...


class Database(Protocol):
    """Runs transactions. Methods raise StoreError if the engine fails.

    If data in the scopes of `epoch` was erased after `epoch` was read, a write raises
    StaleReadError, because it may repeat the erased data.
    """

    # Names the database in sentences for people.
    name: str
    # Describes the first damage that was found, or "" if there is none.
    damage: str

    async def write(
        self,
        work: Callable[[Connection], T],
        epoch: ErasureEpoch | None = None,
        *,
        is_short: bool = False,
    ) -> T:
        """Run `work` in a write transaction and return its result.

        The transaction is durable when this method returns. If `work` raises an exception, the
        transaction is rolled back. If `work` changes nothing, the current tool call isn't recorded
        as carried out. With `is_short`, an engine may run `work` in the caller's thread.
        """
        ...

    async def write_indexed(
        self,
        work: Callable[[Connection], T],
        epoch: ErasureEpoch | None = None,
        *,
        is_short: bool = False,
    ) -> T:
        """Run `work`, which changes indexed text, even if an index is damaged.

        In all other respects, this works like `write`.
        """
        ...

    async def execute(
        self, statement: str, values: Values | None = None, epoch: ErasureEpoch | None = None
    ) -> int:
        """Run one statement in a write transaction, and return how many rows it changed."""
        ...

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a read transaction, which sees a consistent snapshot."""
        ...

    async def read_inline(self, work: Callable[[Connection], T], limit_s: float = ...) -> T:
        """Run a read that is usually faster than a switch to another thread.

        An engine may run it in the caller's thread for up to `limit_s` seconds.

        `work` may run twice, so it must have no side effects.
        """
        ...

    async def fetch_all(self, statement: str, values: Values | None = None) -> list[Row]:
        """Return all rows of one statement."""
        ...

    async def fetch_one(self, statement: str, values: Values | None = None) -> Row | None:
        """Return the first row of one statement, or None."""
        ...

    async def compact(self, limit_s: float) -> bool:
        """Overwrite erased words in the database files, for about `limit_s` seconds.

        Returns whether all steps are done.
        """
        ...

    async def compact_step(self) -> bool:
        """Run one small step of `compact`. Returns whether another step can follow at once."""
        ...

    async def wait_for_log_space(self, wait_s: float) -> bool:
        """Wait until the log has room for another large transaction.

        Returns False if another program still blocks it after `wait_s` seconds.
        """
        ...

    async def data_version(self) -> int:
        """Return a number that changes whenever another process writes."""
        ...


# --- Copying a store to another engine ---


class CopiedTable(NamedTuple):
    """A table that a copy of the store must include, because it can't be derived."""

    name: str
    columns: tuple[str, ...]
    # The columns of the primary key.
    key: tuple[str, ...]
    # Tables that must be copied before this one.
    parents: tuple[str, ...]
    # The columns that reference rows of the same table.
    own_references: tuple[str, ...]


class CopyTools(Protocol):
    """The steps of copying a store that differ between engines.

    Each engine has a module with these functions.
    """

    def insert_rows(
        self, connection: Connection, table: CopiedTable, rows: Iterable[Sequence[Any]], /
    ) -> None: ...

    def read_last_ids(self, connection: Connection, /) -> dict[str, int]:
        """Return the highest id that each table has ever assigned, if the engine records it."""
        ...

    def raise_last_ids(self, connection: Connection, last_ids: Mapping[str, int], /) -> None:
        """Make new ids higher than `last_ids` and all existing ids."""
        ...


# --- Expressions ---


@cache
def in_list(column: str, parameter: str) -> str:
    """Return the SQL condition that `column` is in the JSON list bound as `parameter`.

    Both names become part of the SQL. Pass only constants, never user input.
    """
    return f"{column} IN (SELECT value FROM json_each(:{parameter}))"


def listed(parameter: str, name: str = "listed") -> str:
    """Return SQL that lists the items of the JSON list bound as `parameter`.

    The rows have the columns `key` (the item's position) and `value`.
    """
    return f"json_each(:{parameter}) AS {name}"


LISTED_ID = "CAST(listed.value AS INTEGER)"
"""The SQL expression for an id in the source `listed`."""


def contains_item(column: str, parameter: str) -> str:
    """Return the SQL condition that the JSON list in `column` contains the bound text."""
    return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value = :{parameter})"


def overlaps(column: str, parameter: str) -> str:
    """Return the SQL condition that the JSON lists `column` and `parameter` share an item."""
    return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE {in_list('value', parameter)})"


def is_within(column: str, parameter: str) -> str:
    """Return the SQL condition that every item of the JSON list in `column` is in `parameter`."""
    return f"NOT EXISTS (SELECT 1 FROM json_each({column}) WHERE NOT {in_list('value', parameter)})"


def sent_text_sql(*, of_memory: bool) -> str:
    """Return SQL for the text of a message as the model got it.

    With `of_memory`, the text consists of the blocks that memory added (see
    `core.types.is_memory_block`). Otherwise, it consists of the other blocks.
    """
    is_memory = f"substr(value ->> 'text', 1, {len(MEMORY_TAG)}) = '{MEMORY_TAG}'"
    condition = is_memory if of_memory else f"NOT ({is_memory})"
    return f"(SELECT group_concat(value ->> 'text') FROM json_each(sent) WHERE {condition})"


IS_SHOWN = (
    "messages.kind = 'chat' AND messages.role IN ('user', 'assistant') AND messages.text <> ''"
)
"""The SQL condition for messages that are shown to people: chat messages with a text, from a person
or from the assistant."""
