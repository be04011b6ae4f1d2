"""The schema of state.db: ordered, forward-only migrations; the text indexes over messages and chunks with the SQL
functions that their triggers and views call; and expressions that every engine words otherwise.

`PRAGMA user_version` counts the migrations applied. A released one is never edited: the next change is the next entry.
The indexes have external content over views, so text is stored once; a word in each row names its scope. While
`state_meta` has `index_stale` the triggers rest: a damaged index costs no message.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from string import Template

from core.store.query import DAY_IN_CHUNK
from core.text.normalize import SCOPE, VERSION, bare, indexed_words
from core.text.terms import date_terms, name_terms, terms_of
from core.types import MEMORY


def in_list(column: str, parameter: str) -> str:
    """The condition that a column is one of a bound `list_value`. Both names are constants of the calling statement."""
    return f"{column} IN (SELECT value FROM json_each(:{parameter}))"


def overlaps(column: str, parameter: str) -> str:
    """The condition that a column, which holds a `list_value`, has something in common with a bound one."""
    return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE {in_list('value', parameter)})"


def is_within(column: str, parameter: str) -> str:
    """The condition that a column, which holds a `list_value`, has nothing that a bound one has not."""
    return f"NOT EXISTS (SELECT 1 FROM json_each({column}) WHERE NOT {in_list('value', parameter)})"


def sent_words(*, of_memory: bool) -> str:
    """What was sent of a message by memory, or all else: see `core.types.is_memory`."""
    is_memory = f"substr(value ->> 'text', 1, {len(MEMORY)}) = '{MEMORY}'"
    return f"(SELECT group_concat(value ->> 'text') FROM json_each(sent) WHERE ({is_memory}) = {int(of_memory)})"


def list_value(values: Iterable[int | str]) -> str:
    return json.dumps(list(values))


SHOWN = "messages.kind = 'chat' AND messages.role IN ('user', 'assistant') AND messages.text <> ''"
"""What people may see of a session."""


class ChunkTerms:
    """The SQL aggregate chunk_terms(scope id, text, name, time): the terms of a chunk, each behind its scope."""

    def __init__(self) -> None:
        self._terms: list[str] = []
        self._days: set[tuple[str, ...]] = set()
        self._scope = 0

    def step(self, scope_id: int, text: str, name: str | None, created_at: float) -> None:
        self._scope = scope_id
        self._terms += terms_of(text)
        self._terms += name_terms(name or "")
        self._days.add(day_of(created_at))

    def finalize(self) -> str:
        days = [term for day in sorted(self._days) for term in day] * DAY_IN_CHUNK
        return " ".join(scoped(self._scope, term) for term in [*self._terms, *days])


def scoped(scope_id: int, term: str) -> str:
    """A term as the index holds it."""
    return f"{scope_id}x{term}"


def day_of(created_at: float) -> tuple[str, ...]:
    """The terms of the day (UTC) of a moment in seconds since 1970."""
    return date_terms(datetime.fromtimestamp(created_at, UTC).date())


STALE = "index_stale"
"""Key of `state_meta`: the indexes do not hold what the messages say."""
CURSOR = "index_cursor"
"""Key of `state_meta`: a rebuild has got as far as this message id."""

TABLES = ("messages_fts", "chunks_fts")

_TABLES, _FACTS, *_TEMPLATES = (
    Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")
    for name in ("tables", "facts", "indexes", "triggers")
)
_FACTS_VERSION = f"INSERT INTO state_meta (key, value) VALUES ('facts_version', '{VERSION}');"
HASH_SIZE = """
INSERT INTO messages_fts (messages_fts, rank) VALUES ('hashsize', 131072);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('hashsize', 131072);
"""
"""Of what FTS5 holds in memory until it is written, in bytes, an eighth of its default: after an import each message
paid a tenth of its work for going through the empty hash table that was left."""
INDEXES, TRIGGERS = (Template(one).substitute(shown=SHOWN, scope=SCOPE, version=VERSION) for one in _TEMPLATES)


def register(connection: sqlite3.Connection) -> None:
    """Gives a connection the SQL functions that the triggers and views use."""
    connection.create_function("indexed_words", 1, indexed_words, deterministic=True)
    # The views of earlier versions name these; a migration reads all views.
    for name in ("spaced_words", "unspaced_runs", "unspaced_pairs"):
        connection.create_function(name, -1, lambda *_: "")
    connection.create_aggregate("chunk_terms", 4, ChunkTerms)  # type: ignore[arg-type]  # typed for int results only
    connection.create_function("bare", 1, bare, deterministic=True)


FACTS_RANK = "INSERT INTO facts_fts (facts_fts, rank) VALUES ('rank', 'bm25(1.0, 0.6)');"
FACTS_CONTENT = "CREATE TABLE IF NOT EXISTS main.facts_fts_content (id INTEGER PRIMARY KEY, c0, c1)"
"""As FTS5 makes it for an index that holds its own text."""

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
_NO_TRIES = """
DROP TABLE link_tries;
DELETE FROM state_meta WHERE key = 'wrong_codes';
"""
"""Wrong codes are not counted: there are 27 ** 8, each works for some minutes, and needs somebody's yes."""
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
_NO_RAW_UPDATES = """
UPDATE raw_updates SET failed_at = CAST(strftime('%s', 'now') AS REAL), error = 'an earlier version had not handled it'
WHERE failed_at IS NULL;
"""
"""An update is confirmed once it is in the inbox; what was confirmed before and not handled is listed as set aside."""
_WHO_ASKED = """  -- in rooms it was not noted before
ALTER TABLE calls ADD COLUMN account TEXT;
ALTER TABLE calls ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
CREATE INDEX calls_by_account ON calls (account, at);
CREATE INDEX jobs_by_creation ON jobs (created_at);
UPDATE calls SET account = (
    SELECT substr(key, 9) FROM scopes WHERE scopes.id = calls.scope_id AND substr(key, 1, 8) = 'account:'
);
"""
_CURATED_NOTES = """
ALTER TABLE notes ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pending_notes ADD COLUMN is_draft INTEGER NOT NULL DEFAULT 0;
CREATE TABLE note_reviews (
    scope_id INTEGER PRIMARY KEY REFERENCES scopes (id),
    mark INTEGER,
    rests_until REAL NOT NULL DEFAULT 0
);
"""
"""What the curator leaves alone, what it drafted, and after which change it has looked at a scope."""

_SKILLS = """
CREATE TABLE skills (
    id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    name TEXT NOT NULL,
    uses INTEGER NOT NULL DEFAULT 0,
    used_at REAL,
    is_disabled INTEGER NOT NULL DEFAULT 0,
    UNIQUE (scope_id, name)
);
"""
"""What is kept of skills, which are folders: their use. Their versions stand with those of notes."""

_UNDONE = """
CREATE TABLE undone (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    origin TEXT NOT NULL,
    at REAL NOT NULL,
    back TEXT
);
CREATE INDEX undone_by_session ON undone (session_id, at);
CREATE INDEX undone_by_origin ON undone (origin);
CREATE INDEX undone_by_back ON undone (back) WHERE back IS NOT NULL;
CREATE TRIGGER message_undone_of_fact AFTER UPDATE OF kind ON messages WHEN 'undone' IN (OLD.kind, NEW.kind)
BEGIN
    UPDATE facts SET said = said - 1, message_id = told.message_id
    FROM fact_changes AS told JOIN messages AS first ON first.id = told.message_id AND first.kind = 'chat'
    WHERE facts.message_id = OLD.id AND NEW.kind = 'undone' AND told.fact_id = facts.id AND told.action = 'learn';
    DELETE FROM facts WHERE message_id = OLD.id AND NEW.kind = 'undone' AND NOT is_pinned;
    DELETE FROM pending_notes WHERE message_id = OLD.id AND NEW.kind = 'undone' AND target = 'fact';
    DELETE FROM fact_rereads WHERE message_id = OLD.id;
    INSERT INTO fact_rereads (message_id)
    SELECT NEW.id WHERE NEW.role = 'user' AND NEW.kind = 'chat' AND NEW.text <> '';
END;
"""
"""What was undone and can be brought back. Facts that only undone messages bear out go, and are read out of them anew
when they are brought back."""

_VECTORS = """
CREATE TABLE message_vectors (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE TRIGGER message_vector_changed AFTER UPDATE OF text, kind, sender_name ON messages
BEGIN
    DELETE FROM message_vectors WHERE message_id = OLD.id;
    UPDATE state_meta SET value = OLD.id - 1
    WHERE key = 'vectors_until' AND NEW.kind = 'chat' AND CAST(value AS INTEGER) >= OLD.id;
END;
"""
"""See `core/store/vectors.py`."""

MIGRATIONS: tuple[str, ...] = (
    f"{_TABLES}{INDEXES}{_FACTS}{FACTS_RANK}\n{_FACTS_VERSION}",
    _ORIGINS,
    _FREE_PAGES,
    # Outbox and inbox know by their keys what a job has handed over; its past runs were shown nowhere.
    "DROP TABLE runs;",
    _NO_TRIES,
    # A backfill of a memory service is queued at once.
    "DROP TABLE pasts;",
    # Why a prefix missed is said without a digest of what was sent.
    "ALTER TABLE calls DROP COLUMN imprint;",
    _ONE_INDEX,
    _NO_RAW_UPDATES,
    # Who is not served any more, and why a job does not run.
    "ALTER TABLE accounts ADD COLUMN admitted_by TEXT;\nALTER TABLE accounts ADD COLUMN removed_at REAL;\n"
    "ALTER TABLE accounts ADD COLUMN is_blocked INTEGER NOT NULL DEFAULT 0;\n"
    "ALTER TABLE jobs ADD COLUMN pause_reason TEXT;\n",
    # What waits for an answer until somebody is let in.
    "ALTER TABLE pairings ADD COLUMN inbound TEXT;",
    # Of a room that was the owner's own: what was said there before stays the owner's.
    "ALTER TABLE own_rooms ADD COLUMN is_past INTEGER NOT NULL DEFAULT 0;",
    # `core.store.epoch.KEY`
    "INSERT INTO state_meta (key, value) VALUES ('erasure_key', lower(hex(randomblob(32))));",
    _WHO_ASKED,
    # `messages_by_session` answers as fast, and each message was written into both.
    "DROP INDEX IF EXISTS messages_shown;",
    # What a model says to itself, on behalf of a session.
    "ALTER TABLE sessions ADD COLUMN is_delegated INTEGER NOT NULL DEFAULT 0;\n"
    "CREATE INDEX sessions_delegated ON sessions (is_delegated) WHERE is_delegated;",
    HASH_SIZE,
    _CURATED_NOTES,
    _SKILLS,
    # What a message answers; who finds by the platform's id what the assistant said.
    "ALTER TABLE messages ADD COLUMN quoted TEXT;\n"
    "CREATE INDEX messages_posted ON messages (address_id, posted_id) WHERE posted_id IS NOT NULL;",
    _UNDONE,
    # The first exchange of a conversation, which stays when it is compressed.
    "ALTER TABLE sessions ADD COLUMN head_from INTEGER;\nALTER TABLE sessions ADD COLUMN head_until INTEGER;",
    _VECTORS,
)
