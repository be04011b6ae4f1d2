"""No page reads a whole table of the store, however long the history is."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.store.sqlite.text_index import StoreConnection
from gateway.web.pages import PAGES
from tests.fixtures.page_browser import open_page
from tests.fixtures.page_year import fill_year

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

# Tables that grow with every message, fact, note or call of a model.
GROWING = frozenset(
    {"messages", "sessions", "chunks", "facts", "fact_changes", "note_changes", "model_calls"}
)
SCAN = re.compile(r"SCAN (\w+)\b(?! VIRTUAL)(?: USING (?:COVERING )?INDEX (\w+))?")
# Partial indexes, which have only the few rows that wait or were delegated.
SMALL_INDEXES = frozenset({"chunks_waiting", "sessions_delegated"})
ALIAS = re.compile(r"(\w+) AS (\w+)\b", re.IGNORECASE)
FILTERED = (
    "ferry",
    "ferry before:2026-05-15",
    "ferry since:2026-05-01 before:2026-06-01",
    "when does the ferry leave? before:2026-05-15",
    "ferry in:{session}",
    "ferry title:boiler",
    "ferry platform:telegram",
    "ferry from:me",
    "ferry from:owner",
    "ferry has:photo",
    "has:file",
    "from:me since:2026-05-01",
    "in:{session}",
)


@contextmanager
def record_statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Collect the statements that all connections run, with the values of the last run."""
    statements: dict[str, Any] = {}
    run = StoreConnection.execute

    def execute(self: StoreConnection, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            statements[statement] = values
        return run(self, statement, values)

    with monkeypatch.context() as patch:
        patch.setattr(StoreConnection, "execute", execute)
        yield statements


def find_scanned_tables(connection: StoreConnection, statement: str, values: Any) -> set[str]:
    """Return the growing tables that a statement reads from beginning to end."""
    aliases: dict[str, str] = {alias: table for table, alias in ALIAS.findall(statement)}
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    scans = [match for row in plan if (match := SCAN.search(row["detail"]))]
    names = {str(match[1]) for match in scans if match[2] not in SMALL_INDEXES}
    return {aliases.get(name, name) for name in names} & GROWING


def test_scan_of_a_table_is_found(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "test.db", factory=StoreConnection)
    connection.row_factory = sqlite3.Row
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, role, created_at)")
    connection.execute("CREATE INDEX messages_by_role ON messages (role)")
    for statement in (
        "SELECT * FROM messages WHERE created_at < 5",
        "SELECT 1 FROM messages AS other WHERE other.created_at < 5",
        "SELECT id FROM messages ORDER BY role",
    ):
        assert find_scanned_tables(connection, statement, ()) == {"messages"}
    assert find_scanned_tables(connection, "SELECT * FROM messages WHERE id = 5", ()) == set()


async def test_no_page_reads_a_whole_table(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_page(home, options="people = true") as page:
        await fill_year(page.harness, 12)
        paths = [view.path for each in PAGES for view in each.views if "{" not in view.path]
        paths.remove("/today/checks")
        paths += [f"/recall?q={text.format(session=3)}" for text in FILTERED]
        paths += ["/conversations/3", "/conversations/3?q=ferry", "/conversations/at/30"]
        paths += ["/conversations?before=3", "/memory/facts?before=4", "/memory/facts/2"]
        paths += ["/memory/history?notes=3&facts=3", "/conversations?q=porto"]
        scans = {}
        for path in paths:
            with record_statements(monkeypatch) as statements:
                answer = await page.browser.open(path)
            assert answer.status == 200, path
            assert statements, path

            def explain(connection: Any, statements: dict[str, Any] = statements) -> dict[str, Any]:
                found = {
                    statement: find_scanned_tables(connection, statement, values)
                    for statement, values in statements.items()
                }
                return {statement: tables for statement, tables in found.items() if tables}

            scans[path] = await page.harness.services.database.read(explain)
        assert {path: found for path, found in scans.items() if found} == {}
