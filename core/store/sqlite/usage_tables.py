"""The tables of the books: model calls that were paid for, and what has happened to a session's prefix since its last.

They hold numbers, names of models and digests, no word of anybody, so an erasure takes only the digests.
"""

from __future__ import annotations

CALL_TABLES = """
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    session_id INTEGER,
    kind TEXT NOT NULL,
    model TEXT NOT NULL,
    at REAL NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cache_write_hour_tokens INTEGER NOT NULL DEFAULT 0,
    miss TEXT,
    missed_tokens INTEGER NOT NULL DEFAULT 0,
    reply_id TEXT,
    imprint TEXT
);
CREATE INDEX calls_by_scope ON calls (scope_id, at);
CREATE INDEX calls_by_session ON calls (session_id, id) WHERE session_id IS NOT NULL;

CREATE TABLE disturbances (
    session_id INTEGER PRIMARY KEY,
    cause TEXT NOT NULL
);
"""
