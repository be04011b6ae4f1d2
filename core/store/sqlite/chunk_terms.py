"""The tables of the chunk index, its one trigger body, and the SQL aggregate that makes the terms of a chunk.

`chunks.py` fills and asks it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from core.search.ranking import DAY_IN_BLOCK
from core.text.terms import date_terms, terms_of

SHOWN = "messages.kind = 'chat' AND messages.role IN ('user', 'assistant') AND messages.text <> ''"
"""What people may see of a session; the condition of the index `messages_shown`."""

TABLES = f"""
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    scope_id INTEGER NOT NULL,
    place INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    is_indexed INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX chunks_by_session ON chunks (session_id, place);
CREATE INDEX chunks_waiting ON chunks (id) WHERE is_indexed = 0;
CREATE TABLE chunk_counts (
    scope_id INTEGER PRIMARY KEY,
    chunks INTEGER NOT NULL
);
CREATE TRIGGER chunk_counted AFTER INSERT ON chunks
BEGIN
    INSERT INTO chunk_counts (scope_id, chunks) VALUES (NEW.scope_id, 1)
    ON CONFLICT (scope_id) DO UPDATE SET chunks = chunks + 1;
END;
CREATE TRIGGER chunk_uncounted AFTER DELETE ON chunks
BEGIN
    UPDATE chunk_counts SET chunks = chunks - 1 WHERE scope_id = OLD.scope_id;
END;
CREATE VIEW chunk_texts AS
SELECT chunks.id AS id, (
    SELECT chunk_terms(chunks.scope_id, messages.text, messages.sender_name, messages.created_at)
    FROM messages
    WHERE messages.session_id = chunks.session_id AND messages.id BETWEEN chunks.first_id AND chunks.last_id
        AND {SHOWN}
) AS terms
FROM chunks WHERE chunks.is_indexed = 1;
CREATE VIRTUAL TABLE chunks_fts USING fts5(
    terms, content = 'chunk_texts', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE chunk_vocabulary USING fts5vocab('chunks_fts', 'row');
"""

UNCHUNK = """
    INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id IN (
        SELECT id FROM chunks WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id
    );
    UPDATE chunks SET is_indexed = 0
    WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id AND is_indexed = 1;
"""
"""Runs before a message changes or goes: its chunk waits to be indexed again."""


class ChunkTerms:
    """The SQL aggregate chunk_terms(scope id, text, name, time): the terms of a chunk, each behind its scope."""

    def __init__(self) -> None:
        self._terms: list[str] = []
        self._days: set[tuple[str, ...]] = set()
        self._scope = 0

    def step(self, *row: Any) -> None:
        scope_id, text, name, created_at = row
        self._scope = scope_id
        self._terms += terms_of(text)
        self._terms += terms_of(name or "")
        self._days.add(day_of(created_at))

    def finalize(self) -> str:
        days = [term for day in self._days for term in day] * DAY_IN_BLOCK
        return " ".join(scoped(self._scope, term) for term in [*self._terms, *days])


def scoped(scope_id: int, term: str) -> str:
    """A term as the index holds it."""
    return f"{scope_id}x{term}"


def day_of(created_at: float) -> tuple[str, ...]:
    """The terms of the day (UTC) of a moment in seconds since 1970."""
    return date_terms(datetime.fromtimestamp(created_at, UTC).date())
