"""Only parts of files that the person may see are ranked."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.store.engine import Connection
from core.text.terms import query_terms
from tests.fixtures.stores import open_store

PARTS = {"shown": "The lease of the flat in Porto", "hidden": "Porto and a lease"}


def store_parts(connection: Connection) -> None:
    for number, (name, text) in enumerate(PARTS.items(), 1):
        values = {"id": number, "hash": name, "text": text}
        connection.execute("INSERT INTO files (hash, type, size) VALUES (:hash, 'pdf', 1)", values)
        connection.execute(
            "INSERT INTO file_parts (id, hash, position, label, text) "
            "VALUES (:id, :hash, 1, '', :text)",
            values,
        )
        connection.index.index_file_part(connection, number, text)


def rank_parts(connection: Connection) -> list[int]:
    ranking = connection.index.rank_file_parts(query_terms("lease Porto"), needs_all=True)
    shown = "WITH shown AS (SELECT hash FROM files WHERE hash = 'shown')"
    statement = f"{shown} SELECT part_id FROM ({ranking.sql}) AS ranked"
    return [row[0] for row in connection.execute(statement, ranking.values)]


@pytest.mark.both_engines
async def test_parts_of_files_of_other_people_are_not_ranked(tmp_path: Path) -> None:
    async with open_store(tmp_path / "state.db") as database:
        await database.write(store_parts)
        assert await database.read(rank_parts) == [1]
