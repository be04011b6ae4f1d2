"""Gets what was erased out of the bytes of state.db and its log: merges the text indexes and writes the log back.

Words stay in older segments of an index until these are merged, in small steps, so that no writer waits long. Freed
pages are overwritten by SQLite (`PRAGMA secure_delete = ON`). A program that reads an old state keeps the bytes.
"""

from __future__ import annotations

import time

from core.store.engine import Connection
from core.store.rows import meta, set_meta
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import merge_table
from core.store.sqlite.schema import TABLES

STAGE = "erasure_compaction"
"""Key of `state_meta`: "all" after every erasure, then "merging" and "log"; absent when nothing is to do."""
STEP_PAGES, STEP_S = 16, 0.01
"""A transaction merges so many pages at once, for so long: each costs a write to the disk."""
PATIENCE_MS = 250
"""How long writers wait for a reader of an old state, before they go first and the log is cut another time."""
_INDEXES = (*TABLES, "facts_fts")


class ByteErasure:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def step(self) -> bool:
        """One small step; True while there is more to do now."""
        stage = await self._stage()
        if stage not in (None, "log"):
            await self._database.write(_merge)
            return True
        if stage == "log" and await self._database.checkpoint(PATIENCE_MS):
            await self._database.execute("DELETE FROM state_meta WHERE key = :key AND value = 'log'", {"key": STAGE})
        return False

    async def run(self, limit_s: float) -> bool:
        """Goes on for `limit_s` seconds at most; whether no erased word lies in the files any more."""
        until = time.monotonic() + limit_s
        while await self.step() and time.monotonic() < until:
            pass
        return await self._stage() is None

    async def _stage(self) -> str | None:
        return await self._database.read(lambda connection: meta(connection, STAGE))


def want(connection: Connection) -> None:
    """Notes that something was erased."""
    set_meta(connection, STAGE, "all")


def want_checkpoint(connection: Connection) -> None:
    """Notes that something was deleted that no text index had: only the log may hold it."""
    if meta(connection, STAGE) is None:
        set_meta(connection, STAGE, "log")


def _merge(connection: Connection) -> None:
    until = time.monotonic() + STEP_S
    if meta(connection, STAGE) == "all":
        # A negative number marks all segments of an index to become one.
        for table in _INDEXES:
            merge_table(connection, table, -STEP_PAGES)
        set_meta(connection, STAGE, "merging")
        return
    for table in _INDEXES:
        while merge_table(connection, table, STEP_PAGES):
            if time.monotonic() > until:
                return
    set_meta(connection, STAGE, "log")
