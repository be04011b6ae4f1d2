"""Copies a whole store to another engine, and compares both.

Each batch of rows is stored in one transaction together with the position. So a copy that was
killed continues from its last position. Ids stay the same. The text indexes are built from the
rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from graphlib import TopologicalSorter
from typing import Any

from core.errors import StoreError
from core.ports import Clock
from core.search.recall import Recall
from core.store.engine import (
    IS_SHOWN,
    LOG_SPACE_WAIT_S,
    Connection,
    CopiedTable,
    CopyTools,
    Database,
)
from core.store.erasure.epoch import JOURNAL_META_KEY
from core.store.query import SearchQuery
from core.store.rows import COMPACTION_KEY, COPY_KEY, get_meta, set_meta
from core.store.search.chunks import (
    REBUILD_CURSOR_KEY,
    find_index_damage,
    flag_for_rebuild,
    index_pending,
    rebuild_step,
)
from core.store.search.text_search import CHUNKED_UNTIL_KEY, STALE_KEY, VERSION_KEY, is_stale
from core.types import Scope

BATCH_ROWS = 1_000
BATCH_CHARS = 4_000_000
"""A batch has about this many characters, so that it fits into memory."""
SAMPLES = 12
"""This many messages are searched for in both stores."""
_SAMPLE_WORDS = 12
_META_TABLE = "state_meta"
_OWN_KEYS = frozenset(
    {
        *(STALE_KEY, CHUNKED_UNTIL_KEY, VERSION_KEY, REBUILD_CURSOR_KEY, "facts_version"),
        *(COMPACTION_KEY, COPY_KEY),
    }
)
"""Keys of `state_meta` that describe the store itself, not its content."""
_LATER_TABLES = {"message_files": "messages"}
"""Tables that must be copied after another table because its trigger changes their rows."""
_CONTENT_TABLES = ("messages", "facts", "jobs", "note_changes", "files", "skills")
_COUNTED_BY_TRIGGER = (
    "fact_count - (SELECT COUNT(*) FROM fact_entities WHERE entity_id = entities.id)"
)
"""The count of facts of each entity without those that a trigger adds. The trigger adds 1 for each
row of `fact_entities`, which are copied after the entities."""
_FIRST_SAMPLE = f"""
SELECT messages.id, messages.text, scopes.key AS scope
FROM messages JOIN sessions ON sessions.id = messages.session_id
    JOIN scopes ON scopes.id = sessions.scope_id
WHERE messages.id >= :id AND {IS_SHOWN} ORDER BY messages.id LIMIT 1
"""

# Called with the name of a table (or "" for the text indexes), the number of finished rows, and the
# number of all rows.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The table and row that a copy has reached. It's stored in the target as JSON."""

    # The key of the source. Each store has a different key.
    source: str
    # The table that is being copied, or "" if all tables are copied.
    table: str
    # The primary key of the last row that was copied of this table.
    after: Sequence[Any] | None = None
    rows: int = 0
    # The number of texts with NUL characters, which PostgreSQL can't store.
    repaired: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """The numbers of copied and compared rows and messages."""

    tables: int
    rows: int
    repaired: int
    # The number of samples for which both stores find the same message.
    equal_samples: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySide:
    """The source or the target of a copy."""

    database: Database
    tools: CopyTools


class StoreCopy:
    """Copies one store to another. Other programs must not write to either store meanwhile.

    `truths` has the tables and columns with boolean values.
    """

    def __init__(
        self,
        source: CopySide,
        target: CopySide,
        tables: Iterable[CopiedTable],
        truths: frozenset[tuple[str, str]],
        on_progress: Progress,
    ) -> None:
        self._source = source
        self._target = target
        self._tables = sort_tables(tables)
        self._truths = truths
        self._on_progress = on_progress
        self._total = 0

    async def run(self, clock: Clock) -> CopyReport:
        """Copy, build the indexes and compare.

        Raises StoreError if the target contains other data.
        """
        position = await self._load_or_create_position()
        self._total = await self._source.database.read(self._count_rows)
        for number, table in enumerate(self._tables):
            if table.name == position.table:
                following = self._tables[number + 1 :]
                position = await self._copy_table(table, position, following)
        for table in self._tables:
            await self._compare(table)
        await self._advance_id_counters()
        await self._build_indexes()
        equal, samples = await self._compare_recall(clock)
        return CopyReport(
            tables=len(self._tables),
            rows=position.rows,
            repaired=position.repaired,
            equal_samples=equal,
            samples=samples,
        )

    async def finish(self) -> None:
        """Record that the target is a complete store."""
        await forget_position(self._target.database)

    # --- Copying ---

    async def _load_or_create_position(self) -> Position:
        """Return the position at which an earlier copy stopped, or begin a new copy."""
        key = await self._source.database.read(
            lambda connection: str(get_meta(connection, JOURNAL_META_KEY))
        )
        start = Position(source=_digest([key])[:16], table=self._tables[0].name)
        name = self._target.database.name

        def begin(connection: Connection) -> Position:
            stored = get_meta(connection, COPY_KEY)
            if stored is not None:
                position = Position(**json.loads(stored))
                if position.source != start.source:
                    raise StoreError("copy_of_another_store", name=name)
                return position
            if any(_has_rows(connection, table) for table in _CONTENT_TABLES):
                raise StoreError("copy_target_used", name=name)
            self._delete_target_rows(connection)
            _store_position(connection, start)
            return start

        return await self._target.database.write(begin)

    def _delete_target_rows(self, connection: Connection) -> None:
        """Delete all rows of the target."""
        flag_for_rebuild(connection)
        # Twice, because triggers add rows to some tables while others are emptied.
        for table in (*self._tables, *self._tables)[::-1]:
            if table.name != _META_TABLE:
                connection.execute(f"DELETE FROM {table.name}")

    def _count_rows(self, connection: Connection) -> int:
        statements = (f"SELECT COUNT(*) FROM {table.name}" for table in self._tables)
        return sum(connection.execute(each).fetchone()[0] for each in statements)

    async def _copy_table(
        self, table: CopiedTable, position: Position, following: Sequence[CopiedTable]
    ) -> Position:
        """Copy the remaining rows of a table.

        Returns the position at the beginning of the next one.
        """
        if position.after is None and table.name == _META_TABLE:
            await self._target.database.write(_delete_foreign_meta)
        while True:
            rows, is_end = await self._read_batch(table, position.after, is_for_copy=True)
            repaired_rows, repaired_count = self._replace_unstorable_text(rows)
            after = self._key_of(table, rows[-1]) if rows else position.after
            next_table = following[0].name if following else ""
            position = replace(
                position,
                after=None if is_end else after,
                table=next_table if is_end else table.name,
                rows=position.rows + len(rows),
                repaired=position.repaired + repaired_count,
            )
            links = await self._read_links(table) if is_end else []
            await self._store_batch(table, repaired_rows, links, position)
            self._on_progress(table.name, position.rows, self._total)
            if is_end:
                return position

    async def _read_batch(
        self, table: CopiedTable, after: Sequence[Any] | None, *, is_for_copy: bool
    ) -> tuple[list[tuple[Any, ...]], bool]:
        """Return the next rows of the source, and whether they are the last ones."""
        statement, values = _select_rows(table, after, is_for_copy=is_for_copy)
        return await self._source.database.read(
            lambda connection: _read_rows(connection, statement, values)
        )

    def _replace_unstorable_text(
        self, rows: Sequence[tuple[Any, ...]]
    ) -> tuple[list[tuple[Any, ...]], int]:
        """Return the rows in a form that the target can store, and how many texts changed."""
        count = 0
        for row in rows:
            count += sum(isinstance(value, str) and "\0" in value for value in row)
        if not count:
            return list(rows), 0
        return [tuple(map(_replace_nul, row)) for row in rows], count

    def _key_of(self, table: CopiedTable, row: Sequence[Any]) -> list[Any]:
        return [row[table.columns.index(column)] for column in table.key]

    async def _read_links(self, table: CopiedTable) -> list[dict[str, Any]]:
        """Return the values of columns that refer to rows of the same table."""
        (key,) = table.key if table.own_references else ("",)
        links: list[dict[str, Any]] = []
        for column in table.own_references:
            statement = (
                f"SELECT {key} AS id, {column} AS other FROM {table.name} "
                f"WHERE {column} IS NOT NULL ORDER BY {key}"
            )
            rows = await self._source.database.fetch_all(statement)
            links += [{"column": column, "id": row["id"], "other": row["other"]} for row in rows]
        return links

    async def _store_batch(
        self,
        table: CopiedTable,
        rows: Sequence[tuple[Any, ...]],
        links: Sequence[dict[str, Any]],
        position: Position,
    ) -> None:
        """Store rows and the position after them.

        The `links` are set when all rows exist.
        """
        empty = [table.columns.index(column) for column in table.own_references]
        truths = self._find_boolean_columns(table)

        def convert(row: Sequence[Any]) -> list[Any]:
            values = list(row)
            for place in truths:
                values[place] = None if values[place] is None else bool(values[place])
            for place in empty:
                values[place] = None
            return values

        def store(connection: Connection) -> None:
            converted = map(convert, rows)
            if table.name == _META_TABLE:
                for key, value in converted:
                    if key not in _OWN_KEYS:
                        set_meta(connection, key, value)
            elif rows:
                self._target.tools.insert_rows(connection, table, converted)
            for link in links:
                connection.execute(
                    f"UPDATE {table.name} SET {link['column']} = :other WHERE {table.key[0]} = :id",
                    {"other": link["other"], "id": link["id"]},
                )
            _store_position(connection, position)

        await self._target.database.wait_for_log_space(LOG_SPACE_WAIT_S)
        await self._target.database.write(store)

    def _find_boolean_columns(self, table: CopiedTable) -> list[int]:
        """Return the positions of the columns with boolean values."""
        columns = enumerate(table.columns)
        return [place for place, column in columns if (table.name, column) in self._truths]

    async def _advance_id_counters(self) -> None:
        """Make sure that the target doesn't assign ids that the source has already assigned."""
        last_ids = await self._source.database.read(self._source.tools.read_last_ids)
        await self._target.database.write(
            lambda connection: self._target.tools.raise_last_ids(connection, last_ids)
        )

    async def _build_indexes(self) -> None:
        """Build and check the text indexes of the target."""
        target = self._target.database
        indexed_count = 0
        if await target.read(is_stale):
            while count := await target.write_indexed(rebuild_step):
                indexed_count += count
                self._on_progress("", indexed_count, 0)
                await target.wait_for_log_space(LOG_SPACE_WAIT_S)
        while count := await target.write_indexed(index_pending):
            indexed_count += count
            self._on_progress("", indexed_count, 0)
            await target.wait_for_log_space(LOG_SPACE_WAIT_S)
        problems = await target.write(find_index_damage)
        if problems:
            await target.write(flag_for_rebuild)
            raise StoreError(problems[0])

    # --- Comparing ---

    async def _compare(self, table: CopiedTable) -> None:
        """Compare the number and the checksum of the rows. If they differ, discard the copy."""
        self._on_progress(table.name, self._total, self._total)
        source = await self._digest_table(self._source.database, table)
        if source == await self._digest_table(self._target.database, table):
            return

        def discard(connection: Connection) -> None:
            self._delete_target_rows(connection)
            connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": COPY_KEY})

        await self._target.database.write(discard)
        raise StoreError("copy_differs", name=self._source.database.name, table=table.name)

    async def _digest_table(self, database: Database, table: CopiedTable) -> tuple[int, int]:
        """Return the number of rows, and the sum of the digests of all rows.

        The sum doesn't depend on the order of the rows, which replaced characters can change.
        """
        truths = self._find_boolean_columns(table)
        count = 0
        total = 0
        after: Sequence[Any] | None = None
        is_end = False
        while not is_end:
            statement, values = _select_rows(table, after, is_for_copy=False)
            rows, is_end = await database.read(
                lambda connection, statement=statement, values=values: _read_rows(  # type: ignore[misc]
                    connection, statement, values
                )
            )
            for row in rows:
                if table.name == _META_TABLE and row[0] in _OWN_KEYS:
                    continue
                count += 1
                total += int(_digest(_normalize_row(row, truths)), 16)
            after = self._key_of(table, rows[-1]) if rows else None
        return count, total % 2**128

    async def _compare_recall(self, clock: Clock) -> tuple[int, int]:
        """Search for some messages in both stores.

        Returns for how many messages the results agree, and how many were searched for.
        """
        samples = await self._source.database.read(_choose_samples)
        databases = (self._source.database, self._target.database)
        equal = 0
        for id_, words, scope in samples:
            query = SearchQuery(scopes=frozenset({Scope(key=scope)}), text=words)
            is_found = []
            for database in databases:
                results = await Recall(database, clock).recall(query)
                ids = {hit.message_id for each in results.sessions for hit in each.matches}
                is_found.append(id_ in ids)
            if is_found[0] == is_found[1]:
                equal += 1
        return equal, len(samples)


async def forget_position(database: Database) -> None:
    """Delete the position from a copy, which makes it an ordinary store."""
    await database.execute("DELETE FROM state_meta WHERE key = :key", {"key": COPY_KEY})


def sort_tables(tables: Iterable[CopiedTable]) -> list[CopiedTable]:
    """Return the tables in an order in which rows refer only to earlier tables.

    `state_meta` is last.
    """
    by_name = {table.name: table for table in sorted(tables)}
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name, table in by_name.items():
        sorter.add(name, *table.parents)
        if name in _LATER_TABLES:
            sorter.add(name, _LATER_TABLES[name])
    names = [name for name in sorter.static_order() if name != _META_TABLE]
    return [by_name[name] for name in (*names, _META_TABLE)]


# --- Rows ---


def _select_rows(
    table: CopiedTable, after: Sequence[Any] | None, *, is_for_copy: bool
) -> tuple[str, dict[str, Any]]:
    """Return a statement that selects the next rows of a table in the order of its key."""
    columns = [f'"{column}"' for column in table.columns]
    if is_for_copy and table.name == "entities":
        columns[table.columns.index("fact_count")] = _COUNTED_BY_TRIGGER
    values: dict[str, Any] = {"limit": BATCH_ROWS}
    condition = ""
    key = ", ".join(f'"{column}"' for column in table.key)
    if after is not None:
        values |= {f"key_{place}": value for place, value in enumerate(after)}
        places = ", ".join(f":key_{place}" for place in range(len(after)))
        condition = f"WHERE ({key}) > ({places})"
    statement = f"SELECT {', '.join(columns)} FROM {table.name} {condition}"
    return f"{statement} ORDER BY {key} LIMIT :limit", values


def _read_rows(
    connection: Connection, statement: str, values: dict[str, Any]
) -> tuple[list[tuple[Any, ...]], bool]:
    """Read rows up to `BATCH_CHARS` characters. Also return whether they are the last ones."""
    rows: list[tuple[Any, ...]] = []
    chars = 0
    for row in connection.execute(statement, values).fetchall():
        if chars >= BATCH_CHARS:
            return rows, False
        rows.append(tuple(row))
        chars += sum(len(value) for value in row if isinstance(value, str | bytes))
    return rows, len(rows) < BATCH_ROWS


def _replace_nul(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _normalize_row(row: Sequence[Any], truths: Sequence[int]) -> list[Any]:
    """Return the values of a row in a form that both engines share."""
    values: list[Any] = []
    for place, value in enumerate(row):
        if value is not None and place in truths:
            values.append(bool(value))
        elif isinstance(value, float) and value.is_integer():
            values.append(int(value))
        elif isinstance(value, bytes | bytearray | memoryview):
            values.append(bytes(value).hex())
        else:
            values.append(_replace_nul(value))
    return values


def _digest(values: Sequence[Any]) -> str:
    return hashlib.blake2b(repr(values).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _has_rows(connection: Connection, table: str) -> bool:
    return connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None


def _store_position(connection: Connection, position: Position) -> None:
    set_meta(connection, COPY_KEY, json.dumps(asdict(position)))


def _delete_foreign_meta(connection: Connection) -> None:
    """Delete keys that the target created itself and that the source may not have."""
    for row in connection.execute("SELECT key FROM state_meta").fetchall():
        if row[0] not in _OWN_KEYS:
            connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": row[0]})


def _choose_samples(connection: Connection) -> list[tuple[int, str, str]]:
    """Return the id, words and scope of messages that are spread over the whole store."""
    bounds = connection.execute("SELECT MIN(id), MAX(id) FROM messages").fetchone()
    samples: dict[int, tuple[int, str, str]] = {}
    if bounds[0] is None:
        return []
    for number in range(SAMPLES):
        first = bounds[0] + (bounds[1] - bounds[0]) * number // SAMPLES
        row = connection.execute(_FIRST_SAMPLE, {"id": first}).fetchone()
        if row is not None:
            letters = "".join(char if char.isalnum() else " " for char in row["text"][:500])
            words = " ".join(letters.split()[:_SAMPLE_WORDS])
            samples[row["id"]] = (row["id"], words, row["scope"])
    return list(samples.values())
