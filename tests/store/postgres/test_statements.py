"""PostgreSQL accepts each statement of the store that is a constant."""

from __future__ import annotations

import itertools
import re

import psycopg
import pytest

from core.store.postgres.dialect import translate
from core.store.postgres.schema import SCHEMA
from tests.store.sqlite.test_statements import list_statements

pytestmark = pytest.mark.slow

# Parts of statements, which are no statements by themselves.
PARTS = ("_NO_ID", "WITH_TURN_PARTS", "_HISTORY_PARTS", "_SUM_CALLS_SINCE")


def write_numbers(sql: str) -> str:
    """Write each parameter as a number of its own, so that the server infers its type."""
    numbers = itertools.count(1)
    # A comparison with NULL says nothing about the type.
    known = re.sub(r"%\(\w+\)s(?= IS (?:NOT )?NULL\b)", "NULL", sql)
    return re.sub(r"%\(\w+\)s|%s", lambda _: f"${next(numbers)}", known).replace("%%", "%")


def test_postgres_prepares_every_statement(postgres_url: str) -> None:
    problems = []
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {SCHEMA}")
        for name, statement in sorted(set(list_statements())):
            if name.startswith("core.store.sqlite.") or name.endswith(PARTS):
                continue
            sql = write_numbers(translate(statement).sql)
            try:
                connection.execute(f"PREPARE statement AS {sql}".encode())
                connection.execute("DEALLOCATE statement")
            except psycopg.Error as error:
                problems.append(f"{name}: {error.diag.message_primary}")
            if "->> '$" in statement:
                problems.append(f"{name}: a field has its name after ->>, not its path")
    assert problems == []
