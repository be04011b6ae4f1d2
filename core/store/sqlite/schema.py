"""The schema of state.db as ordered, forward-only migrations; `PRAGMA user_version` counts those applied.

A released migration is never edited: the next change is the next entry. Text indexes are drawn in `index_schema.py`.
"""

from __future__ import annotations

from pathlib import Path

from core.store.sqlite.index_schema import INDEXES, TRIGGERS
from core.text.normalize import VERSION

FACTS_VERSION = "facts_version"
"""Key of `state_meta`: the version of the normalization that the index of the facts was made with."""
FACTS_RANK = "INSERT INTO facts_fts (facts_fts, rank) VALUES ('rank', 'bm25(1.0, 0.6)');"
FACTS_CONTENT = "CREATE TABLE IF NOT EXISTS main.facts_fts_content (id INTEGER PRIMARY KEY, c0, c1)"
"""As FTS5 makes it for an index that holds its own text."""

_HERE = Path(__file__).parent
_TABLES = (_HERE / "tables.sql").read_text(encoding="utf-8")
_FACTS = (_HERE / "facts.sql").read_text(encoding="utf-8")
_FACTS_INDEX = f"""
{FACTS_RANK}
INSERT INTO state_meta (key, value) VALUES ('{FACTS_VERSION}', '{VERSION}');
"""
_ORIGINS = """
ALTER TABLE messages ADD COLUMN origin TEXT NOT NULL DEFAULT 'typed';
UPDATE messages SET origin = 'forwarded' WHERE is_forward;
UPDATE messages SET origin = 'imported'
WHERE role = 'user' AND address_id IN (SELECT id FROM addresses WHERE platform = 'import');
ALTER TABLE messages DROP COLUMN is_forward;
"""
"""Who said a message; in what was imported before, nobody was named as oneself."""
_FREE_PAGES = """
INSERT INTO zeros (zeros)
SELECT zeroblob(MIN(freelist_count * page_size, 900000000)) FROM pragma_freelist_count, pragma_page_size;
DROP TABLE zeros;
UPDATE state_meta SET value = 'log' WHERE key = 'erasure_compaction' AND value IN ('zeroing', 'emptying');
"""
"""Overwrites the pages that were freed before `PRAGMA secure_delete` was ON."""
_NO_RUNS = "DROP TABLE runs;"
"""Outbox and inbox know by their keys what a job has handed over; its past runs were shown nowhere."""
_NO_TRIES = """
DROP TABLE link_tries;
DELETE FROM state_meta WHERE key = 'wrong_codes';
"""
"""Wrong codes are not counted: there are 27 ** 8, each works for some minutes, and needs somebody's yes."""
_NO_BACKFILLS = "DROP TABLE pasts;"
"""A backfill of a memory service is queued at once."""
_NO_FINGERPRINTS = "ALTER TABLE calls DROP COLUMN imprint;"
"""Why a prefix missed is said without a digest of what was sent."""
_ONE_INDEX = f"""
DROP TRIGGER IF EXISTS messages_indexed;
DROP TRIGGER IF EXISTS messages_indexed_wide;
DROP TRIGGER IF EXISTS messages_unindexed;
DROP TRIGGER IF EXISTS messages_changing;
DROP TRIGGER IF EXISTS messages_changed;
DROP TRIGGER IF EXISTS messages_changed_in_rebuild;
DROP TRIGGER IF EXISTS messages_deleted_in_rebuild;
DROP VIEW IF EXISTS messages_words;
DROP TABLE IF EXISTS messages_fts_trigram;
DROP TABLE IF EXISTS messages_fts_pairs;
DROP VIEW IF EXISTS messages_runs;
DROP VIEW IF EXISTS messages_pairs;
{TRIGGERS}
DELETE FROM state_meta WHERE key = 'index_cursor';
INSERT OR IGNORE INTO state_meta (key, value) SELECT 'index_stale', '1' WHERE EXISTS (SELECT 1 FROM messages);
"""
"""One index over messages for words and for scripts without spaces, where there were three."""

MIGRATIONS: tuple[str, ...] = (
    _TABLES + INDEXES + _FACTS + _FACTS_INDEX,
    _ORIGINS,
    _FREE_PAGES,
    _NO_RUNS,
    _NO_TRIES,
    _NO_BACKFILLS,
    _NO_FINGERPRINTS,
    _ONE_INDEX,
)
