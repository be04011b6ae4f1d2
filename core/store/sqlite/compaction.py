"""Remove erased words from the bytes of the database files.

A word that was deleted from a text index remains in older segments until these are merged. Segments
are merged in small steps, so other writers wait only briefly. SQLite overwrites freed pages with
zeros (`PRAGMA secure_delete = ON`). Finally, the write-ahead log is truncated, unless another
reader still needs its contents.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from core.store.engine import Connection, Database
from core.store.rows import COMPACT_LOG, COMPACTION_KEY, get_meta, set_meta
from core.store.sqlite.fact_index import FACT_INDEX_TABLE, FILE_INDEX_TABLE
from core.store.sqlite.schema import INDEX_TABLES, merge_table

MERGE_SEGMENTS = "merging"
"""The second stage. The first stage marks all segments of each index, and this stage merges them
into one."""

STEP_PAGES = 16
STEP_S = 0.01
"""How long a transaction keeps merging. One merge per transaction would commit to disk too often.
"""
CHECKPOINT_TIMEOUT_MS = 250
"""The time limit for truncating the log, because waiting for readers delays writers. After this
time, truncation is tried again later."""


# Copies the log into the file and truncates it, within a time in milliseconds. Returns whether that
# succeeded.
Checkpoint = Callable[[int], Awaitable[bool]]


async def compact(database: Database, checkpoint: Checkpoint, limit_s: float) -> bool:
    """Run stages for about `limit_s` seconds. Returns whether all stages are done."""
    ends_at = time.monotonic() + limit_s
    while await compact_step(database, checkpoint) and time.monotonic() < ends_at:
        pass
    return await database.read(_load_stage) is None


async def compact_step(database: Database, checkpoint: Checkpoint) -> bool:
    """Run one small step of the current stage. Returns whether another can follow at once.

    Returns False after the last stage, even if a reader prevented it from truncating the log.
    """
    stage = await database.read(_load_stage)
    if stage is None:
        return False
    if stage != COMPACT_LOG:
        await database.write(_compact_indexes)
        return True
    if await checkpoint(CHECKPOINT_TIMEOUT_MS):
        await database.execute(
            "DELETE FROM state_meta WHERE key = :key AND value = :stage",
            {"key": COMPACTION_KEY, "stage": COMPACT_LOG},
        )
    return False


def _load_stage(connection: Connection) -> str | None:
    return get_meta(connection, COMPACTION_KEY)


def _compact_indexes(connection: Connection) -> None:
    """Mark the segments of all indexes or, in the next stage, merge the marked segments.

    Stop merging after `STEP_S`. Once all marked segments are merged, record the next stage.
    """
    tables = (*INDEX_TABLES, FACT_INDEX_TABLE, FILE_INDEX_TABLE)
    if get_meta(connection, COMPACTION_KEY) != MERGE_SEGMENTS:
        for table in tables:
            # A negative number marks all segments of an index.
            merge_table(connection, table, -STEP_PAGES)
        set_meta(connection, COMPACTION_KEY, MERGE_SEGMENTS)
        return
    ends_at = time.monotonic() + STEP_S
    for table in tables:
        while merge_table(connection, table, STEP_PAGES):
            if time.monotonic() > ends_at:
                return
    set_meta(connection, COMPACTION_KEY, COMPACT_LOG)
