"""Gets what was erased out of the bytes of state.db and its log: merges the text indexes, fills free pages with zeros,
and writes the log back.

A deletion leaves the words in older parts of an index until these are merged, and in pages that nobody uses. Small
steps, each a transaction, so that no writer waits long. `erasure.py` asks for it; the caretaker goes on where it was
left. A program that reads an old state keeps the bytes until it is done.

What `mneme check` asks SQLite: can it do what state.db needs, and is the file whole. Changes nothing.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from core.store.engine import Connection
from core.store.rows import keep_meta, meta
from core.store.sqlite.database import Database
from core.store.sqlite.index_schema import TABLES as INDEXES_OF_MESSAGES

WANTED = "erasure_compaction"
"""Key of `state_meta`: how far it is. Every erasure sets it to the first stage."""
STEP_PAGES = 16
STEP_S = 0.01
"""A transaction does so much of the merging at once: each costs a write to the disk."""
PATIENCE_MS = 250
"""How long writers wait for a reader of an old state, before they go first and the log is cut another time."""
ZEROED_PAGES = 128
_INDEXES = (*INDEXES_OF_MESSAGES, "facts_fts")
_OVERFLOW_BYTES = 4
_STAGES = ("all", "merging", "zeroing", "emptying", "log")


class ByteErasure:
    """Over one state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def step(self) -> bool:
        """One small step; True while there is more to do now. What another program's reader holds up is no work for
        now: the next call tries again."""
        stage = await self._database.read(lambda connection: meta(connection, WANTED))
        if stage is None:
            return False
        if stage != "log":
            await self._database.write(_STEPS[stage])
            return True
        if not await self._database.checkpoint(PATIENCE_MS):
            return False
        await self._database.write(_finish)
        return False

    async def run(self, limit_s: float) -> bool:
        """All of it, as far as it gets in the time; whether it is done."""
        until = time.monotonic() + limit_s
        while await self.step():
            if time.monotonic() > until:
                return False
        return not await self.is_wanted()

    async def is_wanted(self) -> bool:
        """Whether erased words may still lie in the files."""
        return await self._database.read(lambda connection: meta(connection, WANTED)) is not None


def want(connection: sqlite3.Connection) -> None:
    """Notes that something was erased."""
    keep_meta(connection, WANTED, _STAGES[0])


def want_pages(connection: Connection) -> None:
    """Notes that something was deleted that no text index had: free pages and the log may hold it."""
    if meta(connection, WANTED) is None:
        keep_meta(connection, WANTED, "zeroing")


def _begin(connection: sqlite3.Connection) -> None:
    """All segments of every index are to become one."""
    for table in _INDEXES:
        _merge(connection, table, -STEP_PAGES)
    keep_meta(connection, WANTED, "merging")


def _go_on(connection: sqlite3.Connection) -> None:
    until = time.monotonic() + STEP_S
    for table in _INDEXES:
        while _merge(connection, table, STEP_PAGES):
            if time.monotonic() > until:
                return
    keep_meta(connection, WANTED, "zeroing")


def _merge(connection: sqlite3.Connection, table: str, pages: int) -> bool:
    before = connection.total_changes
    connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)", {"pages": pages})
    return connection.total_changes - before >= 2


def _zero(connection: sqlite3.Connection) -> None:
    """Takes free pages and fills them. The size is such that the row's overflow is whole pages: what is beyond the end
    of a value would keep what it was (https://sqlite.org/fileformat2.html, "B-tree Cell Format")."""
    free = int(connection.execute("PRAGMA freelist_count").fetchone()[0])
    if not free:
        keep_meta(connection, WANTED, "emptying")
        return
    usable = int(connection.execute("PRAGMA page_size").fetchone()[0])
    least = (usable - 12) * 32 // 255 - 23
    payload = least + min(free, ZEROED_PAGES) * (usable - _OVERFLOW_BYTES)
    # The header of the record: its own length, the id's type, the type of the value, which has its length in it.
    header = 2 + _varint_bytes(2 * payload + 12)
    connection.execute("INSERT INTO zeros (zeros) VALUES (zeroblob(:size))", {"size": payload - header})


def _varint_bytes(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def _empty(connection: sqlite3.Connection) -> None:
    gone = connection.execute("DELETE FROM zeros WHERE id = (SELECT MAX(id) FROM zeros)").rowcount
    if not gone:
        keep_meta(connection, WANTED, "log")


def _finish(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM state_meta WHERE key = :key AND value = 'log'", {"key": WANTED})


_STEPS: dict[str, Callable[[sqlite3.Connection], None]] = {
    "all": _begin,
    "merging": _go_on,
    "zeroing": _zero,
    "emptying": _empty,
}

OLDEST = (3, 37, 0)
"""RETURNING is of 3.35, STRICT and the trigram tokenizer's present form of 3.37."""
REPORTED = 5


def version() -> str:
    """SQLite's version, as ``3.40.1``."""
    return sqlite3.sqlite_version


def missing_features() -> list[str]:
    """What this SQLite lacks, each as a few words; empty when it has everything."""
    missing = []
    if sqlite3.sqlite_version_info < OLDEST:
        missing.append(f"version {'.'.join(map(str, OLDEST))} or newer")
    connection = sqlite3.connect(":memory:")
    try:
        for tokenizer, name in (("unicode61", "FTS5, the full-text search"), ("trigram", "the trigram tokenizer")):
            try:
                connection.execute(f"CREATE VIRTUAL TABLE {tokenizer}_probe USING fts5(text, tokenize = '{tokenizer}')")
            except sqlite3.OperationalError:
                missing.append(name)
        try:
            connection.execute("SELECT json_each.value FROM json_each('[1]')")
        except sqlite3.OperationalError:
            missing.append("JSON functions")
    finally:
        connection.close()
    return missing


async def damage(database: Database) -> list[str]:
    """What `PRAGMA quick_check` and the foreign keys say is wrong with the file; empty when it is whole."""

    def work(connection: sqlite3.Connection) -> list[str]:
        found = [str(row[0]) for row in connection.execute(f"PRAGMA quick_check({REPORTED})")]
        broken = connection.execute("PRAGMA foreign_key_check").fetchmany(REPORTED)
        return [line for line in found if line != "ok"] + [f"a row of {row[0]} refers to nothing" for row in broken]

    return await database.read(work)
