"""The text indexes over files and facts on PostgreSQL."""

from __future__ import annotations

import pytest

from core.store.engine import Connection
from core.store.postgres.database import Database
from core.text.terms import query_terms

pytestmark = pytest.mark.slow

PARTS = {
    1: "The lease of the flat in Porto ends in May.",
    2: "Porto, Porto, Porto: the wine of Porto, and a lease.",
    3: "The bus to Lisbon.",
}


def store_parts(connection: Connection) -> None:
    connection.execute("INSERT INTO files (hash, type, size) VALUES ('h', 'pdf', 1)", {})
    connection.execute("INSERT INTO files (hash, type, size) VALUES ('hidden', 'pdf', 1)", {})
    connection.execute(
        "INSERT INTO file_parts (id, hash, position, label, text) "
        "VALUES (9, 'hidden', 1, '', 'Porto, a lease and a flat in Lisbon')",
        {},
    )
    connection.index.index_file_part(connection, 9, "Porto, a lease and a flat in Lisbon")
    for number, text in PARTS.items():
        connection.execute(
            "INSERT INTO file_parts (id, hash, position, label, text) "
            "VALUES (:id, 'h', :id, '', :text)",
            {"id": number, "text": text},
        )
        connection.index.index_file_part(connection, number, text)


def rank(connection: Connection, text: str, *, needs_all: bool) -> list[int]:
    """Return the parts that are found if the file "hidden" belongs to another person."""
    ranking = connection.index.rank_file_parts(query_terms(text), needs_all=needs_all)
    statement = (
        "WITH shown AS (SELECT hash FROM files WHERE hash = 'h') "
        f"SELECT part_id FROM ({ranking.sql}) AS found ORDER BY score"
    )
    return [row[0] for row in connection.execute(statement, ranking.values)]


async def test_postgres_search_ranks_the_file_part_with_more_occurrences_of_a_word_first(
    postgres_url: str,
) -> None:
    async with Database.open(postgres_url) as database:
        await database.write(store_parts)
        found = await database.read(lambda connection: rank(connection, "Porto", needs_all=True))
        assert found == [2, 1]


async def test_parts_of_files_have_all_words_or_any_as_asked(postgres_url: str) -> None:
    async with Database.open(postgres_url) as database:
        await database.write(store_parts)

        def rank_both(connection: Connection) -> tuple[list[int], list[int]]:
            text = "lease flat Lisbon"
            return rank(connection, text, needs_all=True), rank(connection, text, needs_all=False)

        assert await database.read(rank_both) == ([], [1, 3, 2])


async def test_deleted_file_leaves_no_terms_in_the_postgres_text_index(postgres_url: str) -> None:
    async with Database.open(postgres_url) as database:
        await database.write(store_parts)
        await database.execute("DELETE FROM files WHERE hash = 'h'")
        rows = await database.fetch_all("SELECT part_id FROM file_index")
        assert [row[0] for row in rows] == [9]
