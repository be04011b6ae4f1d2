"""Removes erased words from the bytes of the database files.

A word that was deleted from a text index stays in older segments until these are merged. Segments
are merged in small steps, so that other writers wait only briefly. SQLite overwrites freed pages
(`PRAGMA secure_delete = ON`). Finally, the write-ahead log is truncated, unless another reader
still needs its contents.
"""

from __future__ import annotations

import time

from core.store.rows import Connection, get_meta, set_meta
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import FACT_INDEX_TABLE, FILE_INDEX_TABLE
from core.store.sqlite.schema import INDEX_TABLES, merge_table

STAGE_KEY = "erasure_compaction"
"""A key of `state_meta`. Its value is the next stage; without the key, there is nothing to do."""
MARK_SEGMENTS = "all"
"""The first stage: mark all segments of each index to be merged into one."""
MERGE_SEGMENTS = "merging"
TRUNCATE_LOG = "log"

STEP_PAGES = 16
STEP_S = 0.01
"""How long a transaction keeps merging. One merge per transaction would commit to disk too often.
"""
CHECKPOINT_TIMEOUT_MS = 250
"""How long truncating the log may wait for readers, which delays writers. If it takes longer,
truncation is tried again later."""


def request_compaction(connection: Connection) -> None:
    """Record that indexed words were deleted, which means that all compaction stages must run."""
    set_meta(connection, STAGE_KEY, MARK_SEGMENTS)


def request_checkpoint(connection: Connection) -> None:
    """Record that the log must be truncated, because data that isn't in a text index was deleted.

    If a stage is already recorded, nothing changes, because every run ends with this stage.
    """
    if get_meta(connection, STAGE_KEY) is None:
        set_meta(connection, STAGE_KEY, TRUNCATE_LOG)


async def compact(database: Database, limit_s: float) -> bool:
    """Run stages for about `limit_s` seconds. Returns whether all stages are done."""
    ends_at = time.monotonic() + limit_s
    while await compact_step(database) and time.monotonic() < ends_at:
        pass
    return await database.read(_load_stage) is None


async def compact_step(database: Database) -> bool:
    """Run one small step of the current stage. Returns whether another step can follow at once.

    Returns False after the last stage, even if readers prevented it from truncating the log.
    """
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
    """Mark the segments of all indexes or, in the next stage, merge marked segments.

    Merging stops after `STEP_S`. When all marked segments are merged, the next stage is recorded.
    """
    tables = (*INDEX_TABLES, FACT_INDEX_TABLE, FILE_INDEX_TABLE)
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
