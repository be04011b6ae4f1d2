"""The text indexes over messages and chunks: their tables, the triggers that keep them, the functions these call.

All are external content over views, so text is stored once, and hold rows of kind 'chat' only. Each row carries a word
that names its scope, so that an owner of little searches little. While `state_meta` has `index_stale` the triggers
rest: a damaged index then costs no message, and `index_maintenance.py` builds it anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from core.store.engine import Connection
from core.store.query import DAY_IN_CHUNK
from core.text.normalize import SCOPE, VERSION, bare, plainly, spaced_words, unspaced_pairs, unspaced_runs
from core.text.terms import date_terms, terms_of

SHOWN = "messages.kind = 'chat' AND messages.role IN ('user', 'assistant') AND messages.text <> ''"
"""What people may see of a session; the condition of the index `messages_shown`."""

_CHUNK_TABLES = f"""
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

_UNCHUNK = """
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

INDEXED: tuple[tuple[str, str, str], ...] = (
    ("messages_fts", "messages_words", "text, tools, scope"),
    ("messages_fts_trigram", "messages_runs", "runs"),
    ("messages_fts_pairs", "messages_pairs", "pairs, scope"),
)
"""Each index, the view it stands over, its columns."""

_MESSAGE_TABLES = f"""
CREATE INDEX messages_shown ON messages (session_id, id)
WHERE {SHOWN};

CREATE VIEW messages_words AS
SELECT messages.id AS id, spaced_words(messages.text) AS text, spaced_words(messages.tools) AS tools,
    '{SCOPE}' || sessions.scope_id AS scope
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.kind = 'chat';

CREATE VIEW messages_runs AS
SELECT id, runs FROM (
    SELECT id, unspaced_runs(text, tools) AS runs FROM messages WHERE kind = 'chat'
) WHERE runs <> '';

CREATE VIEW messages_pairs AS
SELECT id, pairs, scope FROM (
    SELECT messages.id AS id, unspaced_pairs(messages.text, messages.tools) AS pairs,
        '{SCOPE}' || sessions.scope_id AS scope
    FROM messages JOIN sessions ON sessions.id = messages.session_id
    WHERE messages.kind = 'chat'
) WHERE pairs <> '';

CREATE VIRTUAL TABLE messages_fts USING fts5(
    text, tools, scope, content = 'messages_words', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(
    runs, content = 'messages_runs', content_rowid = 'id', tokenize = 'trigram'
);
CREATE VIRTUAL TABLE messages_fts_pairs USING fts5(
    pairs, scope, content = 'messages_pairs', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('rank', 'bm25(1.0, 0.5, 0.0)');
INSERT INTO messages_fts_pairs (messages_fts_pairs, rank) VALUES ('rank', 'bm25(1.0, 0.0)');
"""

TABLES = (*(table for table, _, _ in INDEXED), "chunks_fts")

_FRESH = f"NOT EXISTS (SELECT 1 FROM state_meta WHERE key = '{STALE}')"


def _quiet(table: str) -> str:
    """No merging while a message is written, unless 64 segments have piled up: maintenance does it."""
    return (
        f"INSERT INTO {table} ({table}, rank) VALUES ('automerge', 0);\n"
        f"INSERT INTO {table} ({table}, rank) VALUES ('crisismerge', 64);\n"
    )


def _adding(row: str, indexes: Sequence[tuple[str, str, str]] = INDEXED) -> str:
    return "".join(
        f"    INSERT INTO {table} (rowid, {columns}) SELECT id, {columns} FROM {view} WHERE id = {row}.id;\n"
        for table, view, columns in indexes
    )


def _removing(row: str) -> str:
    """Runs before the change, while the view still gives exactly what was indexed: FTS5 needs that to delete."""
    return "".join(
        f"    INSERT INTO {table} ({table}, rowid, {columns}) "
        f"SELECT 'delete', id, {columns} FROM {view} WHERE id = {row}.id;\n"
        for table, view, columns in INDEXED
    )


def _trigger(name: str, event: str, body: str, condition: str = _FRESH) -> str:
    return f"CREATE TRIGGER {name} {event} ON messages WHEN {condition}\nBEGIN\n{body}END;\n"


_WIDE = " OR ".join(f"length(NEW.{part}) <> length(CAST(NEW.{part} AS BLOB))" for part in ("text", "tools"))
"""More than ASCII: most messages have nothing for the other two indexes, and to find that out takes as long as the
first."""
_CHANGE = "UPDATE OF text, tools, kind"
_RESTART = f"    DELETE FROM state_meta WHERE key = '{CURSOR}';\n"
_REBUILDING = f"EXISTS (SELECT 1 FROM state_meta WHERE key = '{CURSOR}')"

INDEXES = (
    _MESSAGE_TABLES
    + _CHUNK_TABLES
    + "".join(_quiet(table) for table in TABLES)
    + f"INSERT INTO state_meta (key, value) VALUES ('index_version', '{VERSION}');\n"
    + _trigger("messages_indexed", "AFTER INSERT", _adding("NEW", INDEXED[:1]), f"NEW.kind = 'chat' AND {_FRESH}")
    + _trigger(
        "messages_indexed_wide",
        "AFTER INSERT",
        _adding("NEW", INDEXED[1:]),
        f"NEW.kind = 'chat' AND ({_WIDE}) AND {_FRESH}",
    )
    + _trigger("messages_unindexed", "BEFORE DELETE", _removing("OLD") + _UNCHUNK, f"OLD.kind = 'chat' AND {_FRESH}")
    + _trigger("messages_changing", f"BEFORE {_CHANGE}", _removing("OLD") + _UNCHUNK, f"OLD.kind = 'chat' AND {_FRESH}")
    + _trigger("messages_changed", f"AFTER {_CHANGE}", _adding("NEW"), f"NEW.kind = 'chat' AND {_FRESH}")
    + _trigger("messages_changed_in_rebuild", f"AFTER {_CHANGE}", _RESTART, _REBUILDING)
    + _trigger("messages_deleted_in_rebuild", "AFTER DELETE", _RESTART, _REBUILDING)
)


def register(connection: sqlite3.Connection) -> None:
    """Gives a connection the SQL functions that the triggers and views use."""
    connection.create_function("spaced_words", 1, spaced_words, deterministic=True)
    connection.create_function("unspaced_runs", -1, unspaced_runs, deterministic=True)
    connection.create_function("unspaced_pairs", -1, unspaced_pairs, deterministic=True)
    connection.create_aggregate("chunk_terms", 4, ChunkTerms)  # type: ignore[arg-type]  # typed for int results only
    connection.create_function("plainly", 1, plainly, deterministic=True)
    connection.create_function("bare", 1, bare, deterministic=True)


def blank(connection: Connection, table: str) -> None:
    """Makes an index an empty one that can be opened, whatever became of it: FTS5 refuses 'delete-all' and even DROP
    for one that it cannot open, so the tables behind it are set to what those of a new index hold."""
    connection.execute("CREATE VIRTUAL TABLE temp.blank USING fts5(text)")
    for part, columns in _PARTS:
        connection.execute(f"CREATE TABLE IF NOT EXISTS main.{table}_{part} ({columns}")
        connection.execute(f"DELETE FROM main.{table}_{part}")
        connection.execute(f"INSERT INTO main.{table}_{part} SELECT * FROM temp.blank_{part}")
    connection.execute("DROP TABLE temp.blank")
    for line in INDEXES.splitlines():
        if line.startswith(f"INSERT INTO {table} ({table}, rank) VALUES"):
            connection.execute(line)


_PARTS = (
    ("data", "id INTEGER PRIMARY KEY, block BLOB)"),
    ("idx", "segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID"),
    ("docsize", "id INTEGER PRIMARY KEY, sz BLOB)"),
    ("config", "k PRIMARY KEY, v) WITHOUT ROWID"),
)
"""The tables behind an index with external content (https://sqlite.org/fts5.html, "FTS5 Data Structures")."""
