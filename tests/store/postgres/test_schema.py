"""The schema on a real PostgreSQL server."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from core.errors import StoreError
from core.store.postgres.schema import SCHEMA, SCHEMA_VERSION, prepare_schema
from core.store.sqlite.schema import create_schema, register_functions
from core.text.normalize import comparison_form
from tests.fixtures.postgres import PostgresServer

pytestmark = pytest.mark.slow

OWN_TABLES_OF_SQLITE = (
    *("messages_words", "messages_fts", "chunk_texts", "chunks_fts", "chunk_vocabulary"),
    *("facts_fts", "facts_vocabulary", "files_fts"),
)


def read_columns_of_sqlite() -> dict[str, list[str]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        register_functions(connection)
        create_schema(connection)
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if not name.startswith((*OWN_TABLES_OF_SQLITE, "sqlite_"))
        ]
        return {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for name in names
        }


def test_postgres_has_all_tables_of_sqlite_with_the_same_columns(postgres_url: str) -> None:
    columns: dict[str, list[str]] = {}
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = %s ORDER BY table_name, ordinal_position",
            (SCHEMA,),
        )
        for table, column in rows:
            columns.setdefault(table, []).append(column)
    expected = read_columns_of_sqlite()
    assert len(expected) > 35
    assert {name: columns.get(name) for name in expected} == expected


def test_schema_prepared_by_several_processes_at_once_is_created_once(
    postgres_server: PostgresServer,
) -> None:
    name = postgres_server.create_database("template1")
    url = postgres_server.url_of(name)

    def prepare(_: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            prepare_schema(connection)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(prepare, range(4)))
    with psycopg.connect(url) as connection:
        versions = connection.execute(f"SELECT version FROM {SCHEMA}.schema_version").fetchall()
    postgres_server.drop_database(name)
    assert versions == [(SCHEMA_VERSION,)]


def test_schema_of_version_one_is_upgraded_and_keeps_its_rows(postgres_url: str) -> None:
    """Version 1 read JSON with a NUL as an error."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {SCHEMA}")
        connection.execute(
            "CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text "
            "LANGUAGE sql AS $$ SELECT jsonb_path_query_first(document::jsonb, path::jsonpath) "
            "#>> '{}' $$"
        )
        connection.execute("DROP INDEX facts_by_place")
        connection.execute("DROP TABLE chat_owners, gateways")
        connection.execute("DROP SEQUENCE gateway_numbers")
        connection.execute("ALTER TABLE skills DROP COLUMN is_pinned")
        connection.execute("UPDATE schema_version SET version = 1")
        connection.execute("INSERT INTO scopes (key) VALUES ('account:telegram:1')")
        statement = r"""SELECT json_extract('{"a": "x\u0000y"}', '$.a')"""
        with pytest.raises(psycopg.errors.UntranslatableCharacter):
            connection.execute(statement)
        prepare_schema(connection)
        assert connection.execute(statement).fetchone() == ("x\ufffdy",)
        assert connection.execute("SELECT key FROM scopes").fetchall() == [("account:telegram:1",)]
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [
            (SCHEMA_VERSION,)
        ]
        # Version 6 indexes more marks, so the next search builds the text indexes again.
        is_stale = "SELECT value FROM state_meta WHERE key = 'index_stale'"
        assert connection.execute(is_stale).fetchall() == [("1",)]


@pytest.mark.parametrize(
    ("escaped", "expected"),
    [
        (r"x\u0000y", "x\ufffdy"),
        (r"\u0000\u0000", "\ufffd\ufffd"),
        (r"x\\u0000y", r"x\u0000y"),
        (r"x\\\u0000y", "x\\\ufffdy"),
    ],
)
def test_nul_in_json_is_read_as_the_replacement_character(
    postgres_url: str, escaped: str, expected: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"SET search_path TO {SCHEMA}")
        row = connection.execute("SELECT value FROM json_each(%s)", (f'["{escaped}"]',)).fetchone()
    assert row == (expected,)


def test_schema_of_a_newer_version_is_refused_with_a_sentence(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"UPDATE {SCHEMA}.schema_version SET version = 999")
        with pytest.raises(StoreError, match="newer version of Mneme"):
            prepare_schema(connection)


NAMES = (
    *(
        "Ana",
        "Ångström",
        "Straße",
        "ПЁТР",
        "İstanbul",
        "\u0131s\u0131",
        "ﬁnd",
        "東京",
        "한국어",
        "naïve",
    ),
    *("Ἀθῆναι", "ΣΊΣΥΦΟΣ", "\uff26\uff55ll", "e\u0301", "Việt Nam", "हिन्दी", "ไทยเก่า", "ｶﾞ", "Łódź"),
    *("œuvre", "ẞ", "A\u00a0B", "x²", "Ø", "đ", "שָׁלוֹם", "漢字", "後", "愛", "😀", "l'été"),
)


def test_names_compare_on_the_server_as_in_python(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"SET search_path TO {SCHEMA}")
        for name in NAMES:
            row = connection.execute("SELECT bare(%s)", (name,)).fetchone()
            assert row == (comparison_form(name),)
