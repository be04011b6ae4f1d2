"""Removes erased words from the bytes of the files.

A word that is deleted from a text index stays in older segments until these are merged. The merge
is done in small steps, so that no writer waits long. SQLite overwrites freed pages (`PRAGMA
secure_delete = ON`). At the end the write-ahead log is truncated. A program that still reads an
older state keeps its bytes alive.
"""

from __future__ import annotations

import time

from core.store.rows import Connection, get_meta, set_meta
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import FACT_INDEX_TABLE
from core.store.sqlite.fts5 import merge_table
from core.store.sqlite.schema import INDEX_TABLES

STAGE_KEY = "erasure_compaction"
"""A key of `state_meta` with the next stage. It is absent when there is nothing to do."""
MARK_SEGMENTS = "all"
"""The first stage: mark all segments of each index to be merged into one."""
MERGE_SEGMENTS = "merging"
TRUNCATE_LOG = "log"

STEP_PAGES = 16
STEP_S = 0.01
"""How long one transaction merges, `STEP_PAGES` at a time, because each commit writes to disk."""
CHECKPOINT_TIMEOUT_MS = 250
"""How long writers wait while a reader blocks the log. Otherwise the log is truncated later."""


def request_compaction(connection: Connection) -> None:
    """Record that indexed words were erased."""
    set_meta(connection, STAGE_KEY, MARK_SEGMENTS)


def request_checkpoint(connection: Connection) -> None:
    """Record that data was deleted that only the log may still contain, but no text index."""
    if get_meta(connection, STAGE_KEY) is None:
        set_meta(connection, STAGE_KEY, TRUNCATE_LOG)


async def compact(database: Database, limit_s: float) -> bool:
    """Work for at most `limit_s` seconds. Returns whether no erased word is left in the files."""
    ends_at = time.monotonic() + limit_s
    while await compact_step(database) and time.monotonic() < ends_at:
        pass
    return await database.read(_load_stage) is None


async def compact_step(database: Database) -> bool:
    """Do one small step. Returns whether there is more to do now."""
    stage = await database.read(_load_stage)
    if stage is None:
        return False
    if stage != TRUNCATE_LOG:
        await database.write(_compact_indexes)
        return True
    if await database.checkpoint(CHECKPOINT_TIMEOUT_MS):
        await database.execute(
            "DELETE FROM state_meta WHERE key = :key AND value = :stage",
            {"key": STAGE_KEY, "stage": TRUNCATE_LOG},
        )
    return False


def _load_stage(connection: Connection) -> str | None:
    return get_meta(connection, STAGE_KEY)


def _compact_indexes(connection: Connection) -> None:
    """Mark all segments, or merge marked ones for a short time; then go to the next stage."""
    tables = (*INDEX_TABLES, FACT_INDEX_TABLE)
    if get_meta(connection, STAGE_KEY) != MERGE_SEGMENTS:
        for table in tables:
            # A negative number marks all segments of an index.
            merge_table(connection, table, -STEP_PAGES)
        set_meta(connection, STAGE_KEY, MERGE_SEGMENTS)
        return
    ends_at = time.monotonic() + STEP_S
    for table in tables:
        while merge_table(connection, table, STEP_PAGES):
            if time.monotonic() > ends_at:
                return
    set_meta(connection, STAGE_KEY, TRUNCATE_LOG)
