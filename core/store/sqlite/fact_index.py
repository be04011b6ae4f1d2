"""Maintain the FTS5 indexes over facts and files.

Call all functions inside a write transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from core.errors import word_clause
from core.store.engine import Connection
from core.store.rows import scoped_term
from core.store.sqlite.schema import CREATE_FACTS_CONTENT, SET_FACTS_RANK, reset_index
from core.text.terms import hint_terms, terms_of

FACT_INDEX_TABLE = "facts_fts"
FILE_INDEX_TABLE = "files_fts"
_FACT = "SELECT id, scope_id, content, speaker, attribute FROM facts WHERE id = :id"
_COUNT_DIFFERENCES = """
SELECT (SELECT COUNT(*) FROM facts WHERE id NOT IN (SELECT id FROM facts_fts_content))
    + (SELECT COUNT(*) FROM facts_fts_content WHERE id NOT IN (SELECT id FROM facts))
"""


def index_fact(connection: Connection, fact_id: int) -> None:
    """Add a fact to the index, or replace its indexed version."""
    row = connection.execute(_FACT, {"id": fact_id}).fetchone()
    terms = [*terms_of(row["content"]), *terms_of(row["speaker"])]
    values = {
        "id": fact_id,
        "terms": _join_scoped(row["scope_id"], terms),
        "hints": _join_scoped(row["scope_id"], hint_terms(row["attribute"])),
    }
    connection.execute("DELETE FROM facts_fts WHERE rowid = :id", values)
    connection.execute(
        "INSERT INTO facts_fts (rowid, terms, hints) VALUES (:id, :terms, :hints)", values
    )


def _join_scoped(scope_id: int, terms: Iterable[str]) -> str:
    return " ".join(scoped_term(scope_id, term) for term in terms)


def repair_fact_index(connection: Connection) -> bool:
    """Rebuild the index if it is damaged or incomplete. Returns whether it was rebuilt."""
    is_damaged = bool(find_fact_index_damage(connection))
    if is_damaged:
        rebuild_fact_index(connection)
    return is_damaged


def find_fact_index_damage(connection: Connection) -> list[str]:
    """Check the index, and return one sentence per problem."""
    try:
        connection.execute(
            "SELECT rowid FROM facts_fts WHERE facts_fts MATCH 'x' LIMIT 1"
        ).fetchall()
        connection.execute("INSERT INTO facts_fts (facts_fts, rank) VALUES ('integrity-check', 1)")
        differences = connection.execute(_COUNT_DIFFERENCES).fetchone()[0]
    except sqlite3.DatabaseError as error:
        return [word_clause("damage_fact_index", reason=str(error))]
    if not differences:
        return []
    return [word_clause("damage_index_rows", table="facts", count=differences)]


def rebuild_fact_index(connection: Connection) -> None:
    """Rebuild the index in a single step, because people have few facts."""
    reset_index(connection, FACT_INDEX_TABLE)
    connection.execute(CREATE_FACTS_CONTENT)
    connection.execute("DELETE FROM facts_fts_content")
    # FTS5 caches parts of its tables. 'rebuild' makes FTS5 read them again.
    connection.execute("INSERT INTO facts_fts (facts_fts) VALUES ('rebuild')")
    connection.execute(SET_FACTS_RANK)
    for row in connection.execute("SELECT id FROM facts").fetchall():
        index_fact(connection, row["id"])


def index_file_part(connection: Connection, part_id: int, text: str) -> None:
    """Index a new part of the text of a file."""
    values = {"id": part_id, "terms": " ".join(terms_of(text))}
    connection.execute("INSERT INTO files_fts (rowid, terms) VALUES (:id, :terms)", values)


def rebuild_file_index(connection: Connection) -> None:
    """Rebuild the index over the text of files."""
    reset_index(connection, FILE_INDEX_TABLE)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS main.files_fts_content (id INTEGER PRIMARY KEY, c0)"
    )
    connection.execute("DELETE FROM files_fts_content")
    connection.execute("INSERT INTO files_fts (files_fts) VALUES ('rebuild')")
    for row in connection.execute("SELECT id, text FROM file_parts").fetchall():
        index_file_part(connection, row["id"], row["text"])
