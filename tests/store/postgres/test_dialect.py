"""Statements for SQLite as PostgreSQL reads them."""

from __future__ import annotations

from core.store.engine import in_list
from core.store.postgres.dialect import translate
from tests.fixtures.tables import each_row


@each_row(
    ("statement", "expected"),
    [
        ("SELECT 1 WHERE a = :a AND b = '50% :c'", "SELECT 1 WHERE a = %(a)s AND b = '50%% :c'"),
        ("a IS :a AND b IS NOT 'x'", "a IS NOT DISTINCT FROM %(a)s AND b IS DISTINCT FROM 'x'"),
        ("a IS NULL AND b IS NOT NULL", "a IS NULL AND b IS NOT NULL"),
        ("SELECT MAX(id)", "SELECT MAX(id)"),
        ("SELECT MAX(MIN(a, 1), f(b, c))", "SELECT GREATEST(LEAST(a, 1), f(b, c))"),
        ("SELECT MIN(a || ', ')", "SELECT MIN(a || ', ')"),
        ("a GLOB '*[^0-9]*'", "a ~ '^(?:.*[^0-9].*)$'"),
        ("a NOT GLOB 'x.?'", r"a !~ '^(?:x\..)$'"),
        ("FROM a CROSS JOIN b ON b.id = a.id", "FROM a JOIN b ON b.id = a.id"),
        ("FROM a CROSS JOIN b", "FROM a CROSS JOIN b"),
        ("FROM a INDEXED BY a_by_b WHERE c", "FROM a  WHERE c"),
        ("LIMIT :count OFFSET 2", "LIMIT NULLIF(GREATEST(%(count)s, -1), -1) OFFSET 2"),
    ],
)
def test_statement_is_written_for_postgres(statement: str, expected: str) -> None:
    assert translate(statement).sql == expected


def test_list_is_bound_as_an_array() -> None:
    translated = translate(f"SELECT 1 WHERE {in_list('id', 'ids')} AND :ids <> ''")
    assert translated.sql == "SELECT 1 WHERE id = ANY(%(ids__list)s) AND %(ids)s <> ''"
    assert translated.lists == {"ids"}


@each_row(
    ("statement", "returns_id"),
    [
        ("INSERT INTO messages (id) VALUES (1)", True),
        ("INSERT INTO messages (id) VALUES (1) RETURNING id", False),
        ("INSERT INTO message_files (id) VALUES (1)", False),
    ],
)
def test_only_an_inserted_message_returns_its_id_unasked(statement: str, returns_id: bool) -> None:
    assert translate(statement).returns_id is returns_id
