"""Fill and check the text indexes on PostgreSQL.

Triggers remove changed and deleted messages from the indexes, and record the ids of messages to
index. Only Python can compute the indexed words, so this module indexes the recorded messages at
the end of the same transaction.

Call functions that take a connection inside a write transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from core.errors import word_clause
from core.store.engine import IS_SHOWN, Connection, in_list
from core.store.postgres.words import Vector, message_vector, term_vector
from core.store.query import DAY_TERM_COUNT
from core.store.visibility import encode_list
from core.text.normalize import MAX_INDEXED_CHARS
from core.text.terms import date_terms, hint_terms, name_terms, terms_of

HINT_WEIGHT = 0.6
"""The weight of a hint, such as the name of an attribute, in the ranking of facts."""
BATCH = 500

_TAKE_NOTED = "DELETE FROM messages_to_index RETURNING message_id"
_MESSAGES = f"""
SELECT messages.id, sessions.scope_id, messages.text, messages.tools
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.kind = 'chat' AND {in_list("messages.id", "ids")}
"""
_INSERT_MESSAGES = """
INSERT INTO message_index (scope_id, message_id, length, words)
SELECT scope_id, message_id, length, CAST(words AS tsvector)
FROM unnest(
    CAST(:scope_ids AS bigint[]), CAST(:ids AS bigint[]), CAST(:lengths AS integer[]),
    CAST(:vectors AS text[])
) AS added (scope_id, message_id, length, words)
ON CONFLICT (scope_id, message_id) DO UPDATE
SET length = EXCLUDED.length, words = EXCLUDED.words
"""
_CHUNK_MESSAGES = f"""
SELECT chunks.id AS chunk_id, chunks.scope_id, messages.text, messages.sender_name,
    messages.created_at
FROM chunks JOIN messages ON messages.session_id = chunks.session_id
    AND messages.id BETWEEN chunks.first_id AND chunks.last_id AND {IS_SHOWN}
WHERE {in_list("chunks.id", "ids")} ORDER BY chunks.id, messages.id
"""
_DELETE_CHUNKS = f"""
DELETE FROM chunk_index USING chunks
WHERE {in_list("chunks.id", "ids")} AND chunk_index.scope_id = chunks.scope_id
    AND chunk_index.chunk_id = chunks.id
"""
_INSERT_CHUNKS = """
INSERT INTO chunk_index (scope_id, chunk_id, length, terms)
SELECT scope_id, chunk_id, length, CAST(terms AS tsvector)
FROM unnest(
    CAST(:scope_ids AS bigint[]), CAST(:ids AS bigint[]), CAST(:lengths AS integer[]),
    CAST(:vectors AS text[])
) AS added (scope_id, chunk_id, length, terms)
"""
_EMPTY = """
TRUNCATE message_index, messages_to_index, chunk_index, chunk_vocabulary, chunk_lengths,
    fact_terms, file_index
"""
_COUNT_DIFFERENCES = """
SELECT
    (SELECT count(*) FROM messages WHERE kind = 'chat')
        - (SELECT count(*) FROM message_index) AS messages,
    (SELECT count(*) FROM chunks WHERE is_indexed = 1)
        - (SELECT count(*) FROM chunk_index) AS chunks,
    (SELECT count(*) FROM facts)
        - (SELECT count(DISTINCT (scope_id, fact_id)) FROM fact_terms) AS facts
"""
_FACT = "SELECT id, scope_id, content, speaker, attribute FROM facts WHERE id = :id"
_DELETE_FACT = "DELETE FROM fact_terms WHERE scope_id = :scope_id AND fact_id = :id"
_INSERT_FACT = """
INSERT INTO fact_terms (scope_id, fact_id, length, term, weight)
SELECT :scope_id, :id, :length, term, weight
FROM unnest(CAST(:terms AS text[]), CAST(:weights AS double precision[])) AS added (term, weight)
"""
_INSERT_FILE_PART = """
INSERT INTO file_index (part_id, length, terms) VALUES (:id, :length, CAST(:vector AS tsvector))
"""


# --- Messages ---


def index_noted_messages(connection: Connection) -> None:
    """Index the messages that this transaction has inserted or changed."""
    noted = connection.execute(_TAKE_NOTED, {}).fetchall()
    if noted:
        index_messages(connection, sorted(row[0] for row in noted))


def index_messages(connection: Connection, ids: Sequence[int]) -> None:
    """Add messages to the index, or replace their indexed words."""
    for start in range(0, len(ids), BATCH):
        batch = encode_list(ids[start : start + BATCH])
        rows = connection.execute(_MESSAGES, {"ids": batch}).fetchall()
        keys = [(row["scope_id"], row["id"]) for row in rows]
        vectors = [message_vector(row["scope_id"], row["text"], row["tools"]) for row in rows]
        _insert_vectors(connection, _INSERT_MESSAGES, keys, vectors)


def _insert_vectors(
    connection: Connection,
    statement: str,
    keys: Sequence[tuple[int, int]],
    vectors: Sequence[Vector],
) -> None:
    """Insert vectors with one statement. `keys` are their scope ids and row ids."""
    if not keys:
        return
    values = {
        "scope_ids": [scope_id for scope_id, _ in keys],
        "ids": [id_ for _, id_ in keys],
        "lengths": [vector.length for vector in vectors],
        "vectors": [vector.literal for vector in vectors],
    }
    connection.execute(statement, values)


# --- Chunks ---


def index_chunks(connection: Connection, chunk_ids: Iterable[int]) -> None:
    """Add chunks to the index, or replace their indexed terms."""
    ids = encode_list(chunk_ids)
    connection.execute(_DELETE_CHUNKS, {"ids": ids})
    terms: dict[tuple[int, int], list[str]] = {}
    days: dict[tuple[int, int], set[tuple[str, ...]]] = {}
    for row in connection.execute(_CHUNK_MESSAGES, {"ids": ids}).fetchall():
        key = (row["scope_id"], row["chunk_id"])
        words = terms.setdefault(key, [])
        words += terms_of(row["text"][:MAX_INDEXED_CHARS])
        words += name_terms(row["sender_name"] or "")
        day = datetime.fromtimestamp(row["created_at"], UTC).date()
        days.setdefault(key, set()).add(date_terms(day))
    for key, day_terms in days.items():
        for repeated in day_terms:
            terms[key] += repeated * DAY_TERM_COUNT
    vectors = [term_vector(scope_id, terms[scope_id, id_]) for scope_id, id_ in terms]
    _insert_vectors(connection, _INSERT_CHUNKS, list(terms), vectors)
    connection.execute(
        f"UPDATE chunks SET is_indexed = 1 WHERE {in_list('id', 'ids')}", {"ids": ids}
    )


def remove_chunk(connection: Connection, chunk_id: int) -> None:
    """Remove a chunk from the index."""
    connection.execute(_DELETE_CHUNKS, {"ids": encode_list([chunk_id])})


# --- Facts and files ---


def index_fact(connection: Connection, fact_id: int) -> None:
    """Add a fact to the index, or replace its indexed version."""
    row = connection.execute(_FACT, {"id": fact_id}).fetchone()
    words = [*terms_of(row["content"]), *terms_of(row["speaker"])]
    hints = hint_terms(row["attribute"])
    weights: dict[str, float] = {}
    for term in words:
        weights[term] = weights.get(term, 0.0) + 1.0
    for term in hints:
        weights[term] = weights.get(term, 0.0) + HINT_WEIGHT
    values = {
        "id": fact_id,
        "scope_id": row["scope_id"],
        "length": len(words) + len(hints),
        "terms": list(weights),
        "weights": list(weights.values()),
    }
    connection.execute(_DELETE_FACT, values)
    if weights:
        connection.execute(_INSERT_FACT, values)


def index_file_part(connection: Connection, part_id: int, text: str) -> None:
    """Index a new part of a file's text.

    The scope id 0 is used, because several scopes may share a file's content.
    """
    vector = term_vector(0, terms_of(text))
    values = {"id": part_id, "length": vector.length, "vector": vector.literal}
    connection.execute(_INSERT_FILE_PART, values)


# --- Rebuilding and checking ---


def begin_rebuild(connection: Connection) -> None:
    """Empty the indexes over messages and chunks, and rebuild those over facts and files."""
    connection.execute(_EMPTY, {})
    for row in connection.execute("SELECT id FROM facts ORDER BY id", {}).fetchall():
        index_fact(connection, row["id"])
    for row in connection.execute("SELECT id, text FROM file_parts ORDER BY id", {}).fetchall():
        index_file_part(connection, row["id"], row["text"])


def find_damage(connection: Connection) -> list[str]:
    """Compare the indexes with the rows, and return one sentence per difference."""
    row = connection.execute(_COUNT_DIFFERENCES, {}).fetchone()
    return [
        word_clause("damage_index_rows", table=name, count=abs(row[name]))
        for name in ("messages", "chunks", "facts")
        if row[name]
    ]
