"""The schema of state.db: its migrations, the SQL functions that triggers and views call, and
expressions in SQLite's own dialect.

`PRAGMA user_version` is the number of migrations that have been applied. Never edit a released
migration: add a new migration at the end of `MIGRATIONS`.

The text indexes have external content: FTS5 reads the text from views, so text is stored only once.
Each row of an index contains an extra word for its scope. While `state_meta` has the key
`index_stale`, the triggers don't update the indexes, so that messages can be stored even if an
index is damaged.
"""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from string import Template

from core.errors import MnemeError
from core.store.query import DAY_TERM_COUNT
from core.store.rows import scoped_term
from core.text.normalize import (
    MAX_INDEXED_CHARS,
    SCOPE_MARKER,
    TERMS_VERSION,
    comparison_form,
    indexed_words,
)
from core.text.terms import date_terms, name_terms, terms_of
from core.types import MEMORY_TAG

# --- Expressions ---


@cache
def in_list(column: str, parameter: str) -> str:
    """Return the SQL condition that `column` is in the JSON list bound as `parameter`.

    Both names become part of the SQL, so they must be constants and never user input.
    """
    return f"{column} IN (SELECT value FROM json_each(:{parameter}))"


def overlaps(column: str, parameter: str) -> str:
    """Return the SQL condition that the lists in `column` and `parameter` share an item."""
    return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE {in_list('value', parameter)})"


def is_within(column: str, parameter: str) -> str:
    """Return the SQL condition that all items of the list in `column` are in `parameter`."""
    return f"NOT EXISTS (SELECT 1 FROM json_each({column}) WHERE NOT {in_list('value', parameter)})"


def sent_text_sql(*, of_memory: bool) -> str:
    """Return the SQL expression for the text of a message as it was sent to the model.

    With `of_memory`, only the blocks that memory added are included (see
    `core.types.is_memory_block`). Otherwise, only the other blocks are included.
    """
    is_memory = f"substr(value ->> 'text', 1, {len(MEMORY_TAG)}) = '{MEMORY_TAG}'"
    condition = is_memory if of_memory else f"NOT ({is_memory})"
    return f"(SELECT group_concat(value ->> 'text') FROM json_each(sent) WHERE {condition})"


IS_SHOWN = (
    "messages.kind = 'chat' AND messages.role IN ('user', 'assistant') AND messages.text <> ''"
)
"""The SQL condition for messages that are shown to people: chat messages with a text, from a person
or from the assistant."""


# --- Functions of triggers and views ---


class ChunkTerms:
    """The SQL aggregate `chunk_terms(scope id, text, name, time)`.

    The aggregate converts the messages of a chunk to the terms to index. Each term is prefixed with
    the id of its scope (see `scoped_term`).
    """

    def __init__(self) -> None:
        self._terms: list[str] = []
        self._days: set[tuple[str, ...]] = set()
        self._scope_id = 0

    def step(self, scope_id: int, text: str, name: str | None, created_at: float) -> None:
        """Add one message of the chunk."""
        self._scope_id = scope_id
        self._terms += terms_of(text[:MAX_INDEXED_CHARS])
        self._terms += name_terms(name or "")
        self._days.add(day_terms(created_at))

    def finalize(self) -> str:
        """Return the terms, separated by spaces: words and names, then the terms of the days.

        The terms of the days are repeated, so that they weigh more in the ranking.
        """
        days_terms: list[str] = []
        for terms in sorted(self._days):
            days_terms += terms
        all_terms = self._terms + days_terms * DAY_TERM_COUNT
        return " ".join(scoped_term(self._scope_id, term) for term in all_terms)


def day_terms(created_at: float) -> tuple[str, ...]:
    """Return the terms for the UTC date of a time in seconds since 1970."""
    return date_terms(datetime.fromtimestamp(created_at, UTC).date())


def register_functions(connection: sqlite3.Connection) -> None:
    """Register the SQL functions that the triggers and views use."""
    connection.create_function("indexed_words", 1, indexed_words, deterministic=True)
    # Views of earlier versions use these, and a migration reads all views.
    for name in ("spaced_words", "unspaced_runs", "unspaced_pairs"):
        connection.create_function(name, -1, lambda *_: "")
    # The type stubs know only aggregates that return an int.
    connection.create_aggregate("chunk_terms", 4, ChunkTerms)  # type: ignore[arg-type]
    connection.create_function("bare", 1, comparison_form, deterministic=True)
    # A migration uses it.
    connection.create_function("job_recurrences", 5, _convert_job_schedule)


def _convert_job_schedule(
    zone: str, cron: str | None, every_s: int | None, start_at: float | None, since: float
) -> str:
    """Return the recurrences of a cron line or an interval in JSON; "[]" if no rule expresses it.

    `since` is when the job was set.
    """
    from core.dates.rules import to_recurrences
    from core.dates.schedule import Schedule

    schedule = Schedule(
        zone=zone,
        cron=cron,
        every_s=every_s,
        start_at=None if start_at is None else datetime.fromtimestamp(start_at, UTC),
    )
    try:
        converted = to_recurrences(schedule, datetime.fromtimestamp(since, UTC))
    except (MnemeError, ValueError, OverflowError):
        # The scheduler pauses such a job with a reason.
        return "[]"
    return json.dumps(converted.recurrences)


# --- Text indexes ---

STALE_KEY = "index_stale"
"""A key of `state_meta`. It is set while the indexes may differ from the messages."""
REBUILD_CURSOR_KEY = "index_cursor"
"""A key of `state_meta`: the last message id that a running rebuild has indexed."""
INDEX_TABLES = ("messages_fts", "chunks_fts")
VERSION_KEY = "index_version"
"""A key of `state_meta`: the `TERMS_VERSION` with which the indexes were built."""
CHUNKED_UNTIL_KEY = "chunked_until"
"""A key of `state_meta`: the last message that was considered for a chunk."""


def _read_script(name: str) -> str:
    return Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")


def _read_template(name: str) -> str:
    """Read a script, and fill in the constants that it shares with the Python code."""
    template = Template(_read_script(name))
    return template.substitute(shown=IS_SHOWN, scope=SCOPE_MARKER, version=TERMS_VERSION)


CREATE_INDEXES = _read_template("indexes")
CREATE_TRIGGERS = _read_template("triggers")
SET_HASH_SIZE = """
INSERT INTO messages_fts (messages_fts, rank) VALUES ('hashsize', 131072);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('hashsize', 131072);
"""
"""Sets the bytes of memory in which FTS5 collects changes to an eighth of the default.

After an import, FTS5 keeps a hash table of the full size, even though the table is empty. Scanning
it took a tenth of the time that it takes to store a message.
"""
_SET_CRISIS_MERGE = """
INSERT INTO messages_fts (messages_fts, rank) VALUES ('crisismerge', 8);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('crisismerge', 8);
"""
"""Merges the segments of the indexes when there are 8, not only when there are 64."""
SET_FACTS_RANK = "INSERT INTO facts_fts (facts_fts, rank) VALUES ('rank', 'bm25(1.0, 0.6)');"
CREATE_FACTS_CONTENT = (
    "CREATE TABLE IF NOT EXISTS main.facts_fts_content (id INTEGER PRIMARY KEY, c0, c1)"
)
"""The table that FTS5 creates for an index that stores its own text."""

# --- Migrations ---

_FACTS_VERSION = f"INSERT INTO state_meta (key, value) VALUES ('facts_version', '{TERMS_VERSION}');"

_ORIGINS = """
ALTER TABLE messages ADD COLUMN origin TEXT NOT NULL DEFAULT 'typed';
UPDATE messages SET origin = 'forwarded' WHERE is_forward;
UPDATE messages SET origin = 'imported'
WHERE role = 'user' AND address_id IN (SELECT id FROM addresses WHERE platform = 'import');
ALTER TABLE messages DROP COLUMN is_forward;
"""
"""Adds where a message comes from. Earlier imports didn't mark which sender was the owner."""

_FREE_PAGES = """
INSERT INTO zeros (zeros)
SELECT zeroblob(MIN(freelist_count * page_size, 900000000))
FROM pragma_freelist_count, pragma_page_size;
DROP TABLE zeros;
UPDATE state_meta SET value = 'log' WHERE key = 'erasure_compaction'
    AND value IN ('zeroing', 'emptying');
"""
"""Overwrites pages that were freed while `PRAGMA secure_delete` was off: fills them with zeros."""

_DROP_LINK_TRIES = """
DROP TABLE link_tries;
DELETE FROM state_meta WHERE key = 'wrong_codes';
"""
"""Stops counting wrong link codes. Guessing is hopeless: there are 27 ** 8 codes, a code expires
within minutes, and a link must be confirmed as well."""

_SINGLE_MESSAGE_INDEX = f"""
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
{CREATE_TRIGGERS}
DELETE FROM state_meta WHERE key = 'index_cursor';
INSERT OR IGNORE INTO state_meta (key, value)
SELECT 'index_stale', '1' WHERE EXISTS (SELECT 1 FROM messages);
"""
"""Replaces three indexes over messages by a single one.

The new index also covers scripts without spaces.
"""

_SET_RAW_UPDATES_ASIDE = """
UPDATE raw_updates SET failed_at = CAST(strftime('%s', 'now') AS REAL),
    error = 'an earlier version had not handled it'
WHERE failed_at IS NULL;
"""
"""Marks updates that an earlier version didn't handle as failed.

Since this version, an update is confirmed as soon as it is in the inbox.
"""

_CALL_ACCOUNTS = """
ALTER TABLE calls ADD COLUMN account TEXT;
ALTER TABLE calls ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
CREATE INDEX calls_by_account ON calls (account, at);
CREATE INDEX jobs_by_creation ON jobs (created_at);
UPDATE calls SET account = (
    SELECT substr(key, 9) FROM scopes
    WHERE scopes.id = calls.scope_id AND substr(key, 1, 8) = 'account:'
);
"""
"""Adds the account that caused a model call. It is unknown for earlier calls in groups."""

_CURATED_NOTES = """
ALTER TABLE notes ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pending_notes ADD COLUMN is_draft INTEGER NOT NULL DEFAULT 0;
CREATE TABLE note_reviews (
    scope_id INTEGER PRIMARY KEY REFERENCES scopes (id),
    mark INTEGER,
    rests_until REAL NOT NULL DEFAULT 0
);
"""
"""Adds pinned notes, which the curator doesn't change, drafts of the curator, and the last change
that it has reviewed."""

_MEMORY_REVIEWS = """
CREATE TABLE memory_reviews (
    scope_id INTEGER PRIMARY KEY REFERENCES scopes (id),
    message_id INTEGER NOT NULL,
    at REAL NOT NULL
);
"""
"""Adds when the memory of each private scope was last reviewed, and up to which message."""

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
"""Counts how often each skill is used. Skills are folders, and their versions are stored with those
of notes."""

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
"""Stores messages that were undone and can be redone.

Facts that only undone messages support are deleted. If a message is redone, its facts are extracted
again.
"""

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
"""Stores the vectors of messages for semantic search. See `core/store/vectors.py`."""

_TOOL_CALLS = """
CREATE TABLE tool_calls (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    PRIMARY KEY (session_id, call_id)
) WITHOUT ROWID;
CREATE TABLE unfinished_changes (
    note_id INTEGER PRIMARY KEY REFERENCES notes (id) ON DELETE CASCADE,
    session_id INTEGER,
    call_id TEXT
);
"""
"""Stores which tool calls were carried out, and which changes to files aren't written yet. See
`core/store/tool_calls.py`."""

_JOBS_IN_DEPTH = """
ALTER TABLE jobs ADD COLUMN recurrences TEXT NOT NULL DEFAULT '[]';
ALTER TABLE jobs ADD COLUMN is_urgent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN is_watch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_by_due ON jobs (next_at) WHERE ended_at IS NULL AND paused_at IS NULL;
CREATE TABLE preferences (
    account TEXT PRIMARY KEY,
    zone TEXT,
    quiet_from TEXT,
    quiet_until TEXT
);
"""
"""Adds recurrences of RFC 5545, urgent jobs, watches, and the time zone and quiet hours of people."""

_JOBS_AS_RECURRENCES = """
UPDATE jobs SET recurrences = job_recurrences(zone, cron, every_s, start_at, created_at)
WHERE cron IS NOT NULL OR every_s IS NOT NULL;
UPDATE jobs SET cron = NULL, every_s = NULL, start_at = NULL WHERE recurrences <> '[]';
"""
"""Stores cron lines and intervals as recurrences of RFC 5545. A cron line that no rule expresses
stays."""

_FILES = _read_script("files")
"""Stores the files that people send. See `core/store/media/files.py`."""

_THUMBS = """
CREATE TABLE thumbs (
    message_id INTEGER NOT NULL,
    account TEXT NOT NULL,
    -- 1: up, -1: down, 0: removed.
    verdict INTEGER NOT NULL,
    -- The ids of the facts that the person has judged with it.
    facts TEXT NOT NULL DEFAULT '[]',
    at REAL NOT NULL,
    PRIMARY KEY (message_id, account)
) WITHOUT ROWID;
CREATE TRIGGER thumb_of_message_erased AFTER UPDATE OF text ON messages WHEN NEW.text = '' AND OLD.text <> ''
BEGIN
    DELETE FROM thumbs WHERE message_id = OLD.id;
END;
CREATE TRIGGER thumb_of_message_gone AFTER DELETE ON messages
BEGIN
    DELETE FROM thumbs WHERE message_id = OLD.id;
END;
"""
"""Stores thumbs on answers. See `core/store/facts/feedback.py`."""

_HISTORY_CHANGES = """
CREATE TABLE history_changes (
    session_id INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    changes INTEGER NOT NULL
);
CREATE TRIGGER message_changed_of_history AFTER UPDATE OF role, kind, text, blocks, sent, tools, tool_name,
    external_id, sender_id, sender_name, sender_is_nobody, origin, quoted, created_at, usage ON messages
BEGIN
    INSERT INTO history_changes (session_id, changes) VALUES (OLD.session_id, 1)
    ON CONFLICT (session_id) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER message_gone_of_history AFTER DELETE ON messages
BEGIN
    INSERT INTO history_changes (session_id, changes) VALUES (OLD.session_id, 1)
    ON CONFLICT (session_id) DO UPDATE SET changes = changes + 1;
END;
"""
"""Counts how often messages of a session were changed or deleted. See `HistoryCache` in
`core/store/messages.py`."""

MIGRATIONS: tuple[str, ...] = (
    _read_script("tables")
    + CREATE_INDEXES
    + _read_script("facts")
    + f"{SET_FACTS_RANK}\n{_FACTS_VERSION}",
    _ORIGINS,
    _FREE_PAGES,
    # The keys of outbox and inbox show which runs a job has delivered. Past runs were never shown.
    "DROP TABLE runs;",
    _DROP_LINK_TRIES,
    # All messages of a memory service's backfill are now queued at the start.
    "DROP TABLE pasts;",
    # The reason for a cache miss is now found without a digest of the request.
    "ALTER TABLE calls DROP COLUMN imprint;",
    _SINGLE_MESSAGE_INDEX,
    _SET_RAW_UPDATES_ASIDE,
    # Accounts that lost their access, and the reason why a job is paused.
    "ALTER TABLE accounts ADD COLUMN admitted_by TEXT;\n"
    "ALTER TABLE accounts ADD COLUMN removed_at REAL;\n"
    "ALTER TABLE accounts ADD COLUMN is_blocked INTEGER NOT NULL DEFAULT 0;\n"
    "ALTER TABLE jobs ADD COLUMN pause_reason TEXT;\n",
    # The message that a stranger sent, which is answered once they are approved.
    "ALTER TABLE pairings ADD COLUMN inbound TEXT;",
    # The group used to belong to the owner alone. Its messages of that time stay the owner's.
    "ALTER TABLE own_rooms ADD COLUMN is_past INTEGER NOT NULL DEFAULT 0;",
    # See `core.store.erasure.epoch.JOURNAL_META_KEY`.
    "INSERT INTO state_meta (key, value) VALUES ('erasure_key', lower(hex(randomblob(32))));",
    _CALL_ACCOUNTS,
    # The index `messages_by_session` is as fast, so each message needn't be written to both.
    "DROP INDEX IF EXISTS messages_shown;",
    # Sessions in which the model works on a delegated task.
    "ALTER TABLE sessions ADD COLUMN is_delegated INTEGER NOT NULL DEFAULT 0;\n"
    "CREATE INDEX sessions_delegated ON sessions (is_delegated) WHERE is_delegated;",
    SET_HASH_SIZE,
    _CURATED_NOTES,
    _SKILLS,
    # The message that is quoted, and an index by the platform ids of answers.
    "ALTER TABLE messages ADD COLUMN quoted TEXT;\n"
    "CREATE INDEX messages_posted ON messages (address_id, posted_id) WHERE posted_id IS NOT NULL;",
    _UNDONE,
    # The first exchange of a conversation, which compression doesn't remove.
    "ALTER TABLE sessions ADD COLUMN head_from INTEGER;\n"
    "ALTER TABLE sessions ADD COLUMN head_until INTEGER;",
    _VECTORS,
    _TOOL_CALLS,
    _JOBS_IN_DEPTH,
    # A note that the helper model hasn't compared yet with what was typed.
    "ALTER TABLE pending_notes ADD COLUMN is_proposed INTEGER NOT NULL DEFAULT 0;",
    _MEMORY_REVIEWS,
    _JOBS_AS_RECURRENCES,
    _FILES,
    # Digests of the changes that a person has rejected, so no review proposes them again.
    "ALTER TABLE memory_reviews ADD COLUMN rejections TEXT NOT NULL DEFAULT '[]';",
    # Whether a call waits for approval. It's NULL for the calls that an earlier version recorded.
    "ALTER TABLE tool_calls ADD COLUMN is_waiting INTEGER;",
    _THUMBS,
    # Whether a person's answers are spoken, too.
    "ALTER TABLE preferences ADD COLUMN voice TEXT;",
    _HISTORY_CHANGES,
    _SET_CRISIS_MERGE,
    # The language of a person, or of a group, whose row has the key of its scope.
    "ALTER TABLE preferences ADD COLUMN language TEXT;",
    # Why a platform takes no message for the chat of an item: see `core.errors.ChatRefused`.
    "ALTER TABLE outbox ADD COLUMN cause TEXT NOT NULL DEFAULT '';",
)
