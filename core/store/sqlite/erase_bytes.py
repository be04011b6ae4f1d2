"""Gets what was erased out of the bytes of state.db and its log: merges the text indexes, fills free pages with zeros,
and writes the log back.

A deletion leaves the words in older parts of an index until these are merged, and in pages that nobody uses. Small
steps, each a transaction, so that no writer waits long; maintenance goes on where they were left. A program that reads
an old state keeps the bytes until it is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from core.store.engine import Connection
from core.store.rows import meta, set_meta
from core.store.sqlite.database import Database
from core.store.sqlite.index_schema import TABLES, merge_table

STAGE = "erasure_compaction"
"""Key of `state_meta`: how far it is. Every erasure sets it to the first stage."""
STEP_PAGES, STEP_S = 16, 0.01
"""A transaction does so much of the merging at once: each costs a write to the disk."""
PATIENCE_MS = 250
"""How long writers wait for a reader of an old state, before they go first and the log is cut another time."""
ZEROED_PAGES = 128
_INDEXES = (*TABLES, "facts_fts")


class ByteErasure:
    """Over one state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def step(self) -> bool:
        """One small step; True while there is more to do now. What another program's reader holds up is no work for
        now: the next call tries again."""
        stage = await self._database.read(lambda connection: meta(connection, STAGE))
        if stage is None:
            return False
        if stage != "log":
            work = _STEPS[stage]
            await self._database.write(lambda connection: set_meta(connection, STAGE, work(connection)))
            return True
        if await self._database.checkpoint(PATIENCE_MS):
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
        return await self._database.read(lambda connection: meta(connection, STAGE)) is not None


def want(connection: Connection) -> None:
    """Notes that something was erased."""
    set_meta(connection, STAGE, "all")


def want_pages(connection: Connection) -> None:
    """Notes that something was deleted that no text index had: free pages and the log may hold it."""
    if meta(connection, STAGE) is None:
        set_meta(connection, STAGE, "zeroing")


def _begin(connection: Connection) -> str:
    """All segments of every index are to become one."""
    for table in _INDEXES:
        merge_table(connection, table, -STEP_PAGES)
    return "merging"


def _go_on(connection: Connection) -> str:
    until = time.monotonic() + STEP_S
    for table in _INDEXES:
        while merge_table(connection, table, STEP_PAGES):
            if time.monotonic() > until:
                return "merging"
    return "zeroing"


def _fill(connection: Connection) -> str:
    """Takes free pages until there are none."""
    free, page_bytes = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_size")
    )
    if not free:
        return "emptying"
    connection.execute(
        "INSERT INTO zeros (zeros) VALUES (zeroblob(:size))", {"size": min(free, ZEROED_PAGES) * page_bytes}
    )
    return "zeroing"


def _empty(connection: Connection) -> str:
    """Gives them back, overwritten to their last byte."""
    connection.execute("PRAGMA secure_delete = ON")
    gone = connection.execute("DELETE FROM zeros WHERE id = (SELECT MAX(id) FROM zeros)").rowcount
    connection.execute("PRAGMA secure_delete = FAST")
    return "emptying" if gone else "log"


def _finish(connection: Connection) -> None:
    connection.execute("DELETE FROM state_meta WHERE key = :key AND value = 'log'", {"key": STAGE})


_STEPS: dict[str, Callable[[Connection], str]] = {
    "all": _begin,
    "merging": _go_on,
    "zeroing": _fill,
    "emptying": _empty,
}
