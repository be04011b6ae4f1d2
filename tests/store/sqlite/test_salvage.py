"""A damaged state.db is found, reported, exported around, and repaired."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.errors import StoreError
from core.store.rows import get_meta
from core.store.sqlite import salvage
from core.store.sqlite.database import Database
from core.store.sqlite.integrity import CHECKED_AT_KEY, IntegrityCheck
from core.store.sqlite.salvage import find_file_damage, repair
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import good, mneme
from tests.transfer.test_archive import line

pytestmark = pytest.mark.slow

PAGE_BYTES = 4096
SESSIONS, MESSAGES = 12, 600
NOW = datetime(2026, 11, 24, 1, 0, tzinfo=UTC)


def fill(home: Path) -> Path:
    """Import some conversations into a home."""
    history = home.parent / "history.jsonl"
    lines = [
        line(f"ferry number {n} " + "leaves at noon " * 12, session=f"s{n % SESSIONS}", id=str(n))
        for n in range(MESSAGES)
    ]
    history.write_text("".join(lines) if lines[0].endswith("\n") else "\n".join(lines))
    good(home, "import", str(history))
    with closing(sqlite3.connect(home / "state.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return home / "state.db"


def find_pages(path: Path, table: str, page_type: str = "leaf") -> list[int]:
    """Find the pages of a table that hold rows, by reading the file format."""
    data = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        root = connection.execute(sql, (table,)).fetchone()[0]
    leaves: list[int] = []
    interior: list[int] = []
    pending = [root]
    while pending:
        number = pending.pop()
        start = (number - 1) * PAGE_BYTES
        kind = data[start]
        if kind == 13:
            leaves.append(number)
            continue
        interior.append(number)
        count = int.from_bytes(data[start + 3 : start + 5], "big")
        pending.append(int.from_bytes(data[start + 8 : start + 12], "big"))
        for cell in range(count):
            at = start + 12 + 2 * cell
            offset = int.from_bytes(data[at : at + 2], "big")
            pending.append(int.from_bytes(data[start + offset : start + offset + 4], "big"))
    return sorted(leaves if page_type == "leaf" else interior)


def overwrite(path: Path, pages: list[int]) -> None:
    noise = random.Random(7)
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE_BYTES)
            file.write(noise.randbytes(PAGE_BYTES))


def count_messages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0])


def test_repair_saves_all_rows_outside_of_a_damaged_page(home: Path) -> None:
    path = fill(home)
    pages = find_pages(path, "messages")
    damaged_pages = [pages[2], pages[len(pages) // 2]]
    overwrite(path, damaged_pages)
    before = path.read_bytes()
    assert find_file_damage(path)
    report = repair(path, NOW)
    assert find_file_damage(path) == ""
    assert report.damaged_path.read_bytes() == before
    saved = count_messages(path)
    per_page = MESSAGES / len(pages)
    assert MESSAGES - saved == report.lost["messages"] == pytest.approx(2 * per_page, rel=0.5)
    assert report.saved["messages"] == saved
    assert set(report.lost) == {"messages"}


@pytest.mark.parametrize("position", [0, 1, -1])
def test_repair_of_a_table_without_row_ids_loses_only_the_rows_of_the_damaged_page(
    home: Path, position: int
) -> None:
    path = fill(home)
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            "INSERT INTO actions (id, scope_id, command, arguments, expires_at) "
            "SELECT ?, min(id), 'cron', '', 0 FROM scopes",
            [(f"action-{number:04}",) for number in range(400)],
        )
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        leaves = connection.execute(
            "SELECT pageno, ncell FROM dbstat WHERE name = 'actions' AND pagetype = 'leaf' "
            "ORDER BY path"
        ).fetchall()
    page, row_count = leaves[position]
    overwrite(path, [page])
    report = repair(path, NOW)
    assert report.lost["actions"] == row_count
    assert report.saved["actions"] == 400 - row_count


@pytest.mark.parametrize("table", ["sessions", "addresses", "scopes", "state_meta"])
def test_database_repair_keeps_rows_that_refer_to_a_table_with_a_damaged_page(
    home: Path, table: str
) -> None:
    path = fill(home)
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        page = connection.execute(sql, (table,)).fetchone()[0]
    overwrite(path, [page])
    report = repair(path, NOW)
    assert find_file_damage(path) == ""
    assert count_messages(path) == MESSAGES
    # An index has all columns of these that a row needs.
    assert (table in report.lost) == (table not in ("scopes", "addresses"))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_repair_keeps_the_text_of_files_whose_own_rows_are_lost(home: Path) -> None:
    path = fill(home)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.executemany(
            "INSERT INTO files (hash, type, size) VALUES (?, 'application/pdf', 12)",
            [("ab" * 32,), ("cd" * 32,)],
        )
        connection.execute(
            "INSERT INTO file_parts (hash, position, label, text) "
            "VALUES (?, 0, 'page 1', 'The boiler is new.')",
            ("ab" * 32,),
        )
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'files'"
        page = connection.execute(sql).fetchone()[0]
    overwrite(path, [page])
    report = repair(path, NOW)
    assert find_file_damage(path) == ""
    assert "file_parts" not in report.lost
    with closing(sqlite3.connect(path)) as connection:
        select = "SELECT text, type FROM file_parts JOIN files USING (hash)"
        rows = connection.execute(select).fetchall()
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert rows == [("The boiler is new.", "application/octet-stream")]


def test_repair_saves_the_first_part_of_a_file_that_was_cut_off(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The repair looks for each of these row ids, because the largest one is lost.
    monkeypatch.setattr(salvage, "UNKNOWN_ROWS", 2 * MESSAGES)
    path = fill(home)
    pages = find_pages(path, "messages")
    os.truncate(path, (pages[len(pages) // 2] - 1) * PAGE_BYTES)
    repair(path, NOW)
    assert find_file_damage(path) == ""
    assert 0 < count_messages(path) < MESSAGES


def test_database_repair_recreates_people_whose_accounts_are_readable(home: Path) -> None:
    path = fill(home)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO people (id) VALUES (7)")
        connection.execute(
            "INSERT INTO accounts (platform, user_id, person_id) VALUES ('telegram', '70', 7)"
        )
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'people'"
        page = connection.execute(sql).fetchone()[0]
    overwrite(path, [page])
    report = repair(path, NOW)
    assert report.lost == {"people": None}
    with closing(sqlite3.connect(path)) as connection:
        assert (7,) in connection.execute("SELECT person_id FROM accounts").fetchall()
        assert (7,) in connection.execute("SELECT id FROM people").fetchall()
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.slow
def test_database_repair_of_rows_with_sparse_ids_terminates_and_loses_one_page_only(
    home: Path,
) -> None:
    path = fill(home)
    entries = [(1_790_000_000_000_000 + 1_000_000 * n, f"{n}", "x" * 400) for n in range(300)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO inbox (id, address_id, external_id, inbound, received_at) "
            "SELECT ?, MIN(id), ?, ?, 1790000000.0 FROM addresses",
            entries,
        )
    pages = find_pages(path, "inbox")
    overwrite(path, [pages[len(pages) // 2]])
    report = repair(path, NOW)
    lost_count = report.lost["inbox"]
    assert lost_count is not None
    assert 1 <= lost_count <= 2 * len(entries) / len(pages)
    assert report.saved["inbox"] == len(entries) - lost_count


@pytest.mark.parametrize("is_first", [True, False])
def test_repair_of_a_file_without_a_schema_leaves_it_alone(home: Path, is_first: bool) -> None:
    path = fill(home)
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT pageno FROM dbstat WHERE name = 'sqlite_schema' ORDER BY path"
        pages = [row[0] for row in connection.execute(sql)]
    overwrite(path, pages[:1] if is_first else pages[1:2])
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"{path} has no schema .*backup"):
        repair(path, NOW)
    assert path.read_bytes() == before
    # Each attempt would otherwise leave a copy, which may fill the disk.
    assert [file.name for file in home.glob("state.db*")] == ["state.db"]


@pytest.mark.slow
def test_check_command_repairs_a_damaged_database_and_reports_the_lost_rows(home: Path) -> None:
    path = fill(home)
    overwrite(path, [find_pages(path, "messages")[3]])
    exported = mneme(home, "export")
    assert exported.returncode == 1
    assert "couldn't be read, because state.db is damaged" in exported.stderr
    readable = exported.stdout.count("\n")
    assert MESSAGES - 40 < readable < MESSAGES
    checked = mneme(home, "check", "--repair", "--json")
    results = {result["subject"]: result for result in json.loads(checked.stdout)}
    assert results["repair"]["state"] == "right", results["repair"]
    assert "lost: messages: up to" in results["repair"]["text"]
    assert results["state.db"]["state"] == "right"
    assert results["search index"]["state"] == "right"
    assert good(home, "export").count("\n") == readable
    assert len(list(home.glob("state.db.damaged-*"))) == 1
    assert "ferry" in good(home, "recall", "ferry number 599")


async def test_full_check_runs_once_a_day_in_slices_and_finds_damage(home: Path) -> None:
    path = fill(home)
    clock = SteadyClock()
    async with Database.open(path) as database:
        check = IntegrityCheck(database, clock)
        while await check.run_slice():
            pass
        assert database.damage == ""
        checked_at = await database.read(lambda connection: get_meta(connection, CHECKED_AT_KEY))
        assert checked_at == clock.now().isoformat()
        assert not await check.run_slice()
    overwrite(path, [find_pages(path, "messages")[3]])
    async with Database.open(path) as database:
        check = IntegrityCheck(database, clock)
        while await check.run_slice():
            pass
        assert database.damage, "a quick check at the start finds it"
    clock.moment += timedelta(days=2)
    async with Database.open(path) as database:
        check = IntegrityCheck(database, clock)
        check._is_quick_check_due = False
        while not database.damage:
            assert await check.run_slice()


async def test_full_checks_continue_after_the_clock_was_years_ahead(home: Path) -> None:
    path = fill(home)
    clock = SteadyClock()
    async with Database.open(path) as database:
        check = IntegrityCheck(database, clock)
        clock.moment += timedelta(days=3650)
        while await check.run_slice():
            pass
        clock.moment -= timedelta(days=3650)
        assert await check.run_slice()
        while await check.run_slice():
            pass
        checked_at = await database.read(lambda connection: get_meta(connection, CHECKED_AT_KEY))
        assert checked_at == clock.now().isoformat()
        assert not await check.run_slice()


async def test_log_is_truncated_between_the_slices_of_a_check(home: Path) -> None:
    path = fill(home)
    clock = SteadyClock()
    async with Database.open(path) as database:
        check = IntegrityCheck(database, clock)
        counts = []
        for _ in ("quick", "full"):
            count = 0
            while await check.run_slice():
                count += 1
                await database.execute("CREATE TABLE mark (number)")
                await database.execute("DROP TABLE mark")
                assert database.log_bytes() > 0
                assert await database.checkpoint(timeout_ms=0)
                assert database.log_bytes() == 0
            counts.append(count)
            clock.moment += timedelta(days=2)
        tables = await database.fetch_all("SELECT name FROM sqlite_schema WHERE type = 'table'")
    assert min(counts) > len(tables)


async def test_quick_check_at_the_start_finds_damage_in_the_list_of_free_pages(home: Path) -> None:
    path = fill(home)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE filler (text)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(2000000))")
        connection.execute("DROP TABLE filler")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    first_free_page = int.from_bytes(content[32:36], "big")
    start = (first_free_page - 1) * 4096 + 8
    content[start : start + 400] = b"\xff" * 400
    path.write_bytes(content)
    async with Database.open(path) as database:
        check = IntegrityCheck(database, SteadyClock())
        while await check.run_slice():
            pass
        assert "freelist" in database.damage
        assert len(database.damage) < 1_000
