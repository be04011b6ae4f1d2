"""The SQL of the store names only tables and columns that the schema has."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import core.store
from core.store.sqlite.schema import register_functions
from tests.fixtures.new_database import place

# Parts of statements, which name tables of the statement around them.
PARTS = {"_CHILD", "_FIRST_MESSAGE_ID", "_RANKED_FILE_PARTS"}
_STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\b")


def list_texts(value: object) -> Iterator[str]:
    """Yield the texts of a constant, also those in its lists and tables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from list_texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from list_texts(item)


def list_statements(other_engine: str = "postgres") -> Iterator[tuple[str, str]]:
    """Yield the statements that are constants of the store, each with the name of its constant.

    Those of the other engine are left out.
    """
    for module in pkgutil.walk_packages(core.store.__path__, "core.store."):
        if module.name.startswith(f"core.store.{other_engine}"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            for text in list_texts(value):
                if _STATEMENT.match(text) and name not in PARTS:
                    yield f"{module.name}.{name}", text


def test_every_statement_names_tables_and_columns_of_the_schema(tmp_path: Path) -> None:
    problems = []
    with closing(sqlite3.connect(place(tmp_path / "state.db"))) as connection:
        register_functions(connection)
        for name, statement in list_statements():
            # Only gateways that share a database on PostgreSQL own chats.
            if "chat_owners" in statement:
                continue
            values = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
            try:
                connection.execute(f"EXPLAIN {statement}", values)
            except sqlite3.Error as error:
                if "no such" in str(error) or "no column" in str(error):
                    problems.append(f"{name}: {error}")
    assert problems == []
