"""A home that had a database doesn't begin with an empty one unless its owner wants it to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from core.errors import StoreError
from core.store.rows import get_meta, set_meta
from core.store.sqlite.database import Database
from tests.end_to_end.test_restore import backed_up
from tests.fixtures.command_line import good, mneme
from tests.gateway.cli.test_main import imported


def remove(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(b"")


def remove_all_of_its_name(path: Path) -> None:
    for file in path.parent.glob("state.db*"):
        file.unlink()


def drop_everything(path: Path) -> None:
    """Leave a database without tables, as after the loss of a log that held them."""
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


@pytest.mark.parametrize("damage", [remove, remove_all_of_its_name, truncate, drop_everything])
async def test_home_that_had_a_database_refuses_an_empty_one(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        await database.write(lambda connection: set_meta(connection, "a", "1"))
    damage(path)
    before = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(
            StoreError, match=r"had a database.*backup.*delete .*database-state\.created"
        ):
            async with Database.open(path):
                pass
    assert (path.read_bytes() if path.exists() else None) == before


async def test_home_whose_database_marker_was_deleted_creates_a_new_database(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path):
        pass
    path.unlink()
    (tmp_path / "database-state.created").unlink()
    async with Database.open(path) as database:
        assert await database.read(lambda connection: get_meta(connection, "a")) is None
    assert (tmp_path / "database-state.created").exists()


async def test_mark_of_an_earlier_version_counts_and_is_replaced(tmp_path: Path) -> None:
    path, old_mark = tmp_path / "state.db", tmp_path / "state.db.created"
    old_mark.touch()
    with pytest.raises(StoreError, match=r"delete .*state\.db\.created and start"):
        async with Database.open(path):
            pass
    old_mark.unlink()
    async with Database.open(path):
        pass
    (tmp_path / "database-state.created").rename(old_mark)
    async with Database.open(path):
        pass
    assert not old_mark.exists()
    assert (tmp_path / "database-state.created").exists()


async def test_first_start_that_was_killed_before_its_schema_was_complete_can_be_repeated(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"")
    async with Database.open(path):
        pass
    assert "delete this file" in (tmp_path / "database-state.created").read_text()


@pytest.mark.slow
def test_command_in_a_home_without_its_database_says_how_to_restore_it(
    home: Path, tmp_path: Path
) -> None:
    imported(home)
    copy = backed_up(home)
    (home / "state.db").unlink()
    for command in (("recall", "ferry"), ("check",), ("chat",)):
        done = mneme(home, *command)
        assert done.returncode == 1
        assert "had a database" in done.stdout + done.stderr
    assert not (home / "state.db").exists()
    (home / "state.db").write_bytes((copy / "state.db").read_bytes())
    assert "ferry" in good(home, "recall", "ferry")


async def test_log_that_a_lost_file_left_behind_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path):
        pass
    path.unlink()
    (tmp_path / "state.db-wal").write_bytes(b"old")
    with pytest.raises(StoreError, match=r"Delete .*state\.db-wal, which belongs to the lost file"):
        async with Database.open(path):
            pass
    assert (tmp_path / "state.db-wal").read_bytes() == b"old"


async def test_empty_log_of_an_empty_database_is_not_said_to_belong_to_the_lost_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with Database.open(path):
        pass
    drop_everything(path)
    with pytest.raises(StoreError, match="had a database") as caught:
        async with Database.open(path):
            pass
    assert "state.db-wal" not in str(caught.value)
