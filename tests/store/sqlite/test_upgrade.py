"""A state.db of any earlier version gets exactly the schema of a new one, in one step or not at
all."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreDamagedError, StoreError
from core.store.sqlite import upgrade
from core.store.sqlite.database import Database
from core.store.sqlite.opening import COPY_SUFFIX
from core.store.sqlite.schema import RENAMES_VERSION, SCHEMA_VERSION, list_upgrades
from core.store.sqlite.upgrade import UpgradeProgress, UpgradeStage, upgrade_file
from tests.fixtures.new_database import place, write_earlier
from tests.fixtures.sweeps import list_cases

FACT_CHANGE = """
INSERT INTO scopes (id, key) VALUES (1, 'account:telegram:42');
INSERT INTO fact_changes (scope_id, fact_id, action, before, after, at) VALUES
    (1, 1, 'edit', '{"content":"tea","said":2,"grain":null}', '{"content":"hot tea","said":3}', 0);
"""
_COLUMNS = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(:name)'
_KEYS = 'SELECT "table", "from", "to", on_delete FROM pragma_foreign_key_list(:name) ORDER BY 1, 2'


def read_schema(path: Path) -> dict[str, Any]:
    """Return everything that the schema of a file says, without the layout of its statements."""
    schema: dict[str, Any] = {}
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql NOT NULL")
        for kind, name, sql in rows.fetchall():
            if kind == "table" and not sql.startswith("CREATE VIRTUAL"):
                columns = connection.execute(_COLUMNS, {"name": name}).fetchall()
                keys = connection.execute(_KEYS, {"name": name}).fetchall()
                schema[f"table {name}"] = (columns, keys, "WITHOUT ROWID" in sql)
            else:
                schema[f"{kind} {name}"] = upgrade._normalize(sql)
        schema["meta"] = sorted(connection.execute("SELECT key FROM state_meta"))
        for index in ("messages_fts", "chunks_fts", "facts_fts", "files_fts"):
            schema[index] = sorted(connection.execute(f"SELECT k, v FROM {index}_config"))
        schema["version"] = connection.execute("PRAGMA user_version").fetchone()
    return schema


def list_files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_number_of_versions_is_that_of_the_sections() -> None:
    assert len(list_upgrades()) == SCHEMA_VERSION


# Each version runs the last sections of the same list, and the names change in one of them.
@pytest.mark.parametrize(
    "version",
    list_cases(
        map(str, range(1, SCHEMA_VERSION)),
        "1",
        str(RENAMES_VERSION - 1),
        str(SCHEMA_VERSION - 1),
    ),
)
def test_upgraded_file_of_each_earlier_version_has_the_schema_of_a_new_one(
    version: str, tmp_path: Path
) -> None:
    write_earlier(tmp_path / "state.db", int(version))
    upgrade_file(tmp_path / "state.db")
    assert read_schema(tmp_path / "state.db") == read_schema(place(tmp_path / "new.db"))


def test_history_of_facts_gets_the_new_names_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    write_earlier(path, RENAMES_VERSION - 1, FACT_CHANGE)
    upgrade_file(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (row,) = connection.execute("SELECT before, after FROM fact_changes")
    assert row == (
        '{"content":"tea","mention_count":2,"precision":null}',
        '{"content":"hot tea","mention_count":3}',
    )


def test_copy_stands_beside_the_file_until_the_check_and_is_deleted_then(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    write_earlier(path, 1, "INSERT INTO scopes (key) VALUES ('account:telegram:42')")
    copied: list[UpgradeStage] = []

    def note(progress: UpgradeProgress) -> None:
        if (tmp_path / f"state.db{COPY_SUFFIX}").exists():
            copied.append(progress.stage)

    upgrade_file(path, note)
    assert copied[0] is UpgradeStage.CHANGE
    assert copied[-1] is UpgradeStage.CHECK
    assert list_files(tmp_path) == {"state.db"}


def test_damaged_file_is_not_upgraded_and_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    write_earlier(path, 1, "INSERT INTO scopes (key) VALUES ('account:telegram:42')")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        # The index of the unique keys then has the rows of another table.
        connection.execute(
            "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema "
            "WHERE name = 'accounts_by_person') WHERE name = 'sqlite_autoindex_scopes_1'"
        )
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError, match="Nothing was changed"):
        upgrade_file(path)
    assert path.read_bytes() == before
    assert list_files(tmp_path) == {"state.db"}


def test_file_that_cannot_be_copied_is_not_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    write_earlier(path, 1)
    (tmp_path / f"state.db{COPY_SUFFIX}.part").mkdir()
    with pytest.raises(StoreError, match="Nothing was changed"):
        upgrade_file(path)


@pytest.mark.parametrize("suffix", [COPY_SUFFIX, f"{COPY_SUFFIX}.part"])
@pytest.mark.parametrize("version", [1, SCHEMA_VERSION])
async def test_copy_that_a_killed_upgrade_left_is_deleted_at_the_next_start(
    version: int, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / "state.db"
    write_earlier(path, version)
    (tmp_path / f"state.db{COPY_SUFFIX}").write_text("the words of somebody")
    (tmp_path / f"state.db{suffix}").write_text("the words of somebody")
    async with Database.open(path):
        assert not [name for name in list_files(tmp_path) if COPY_SUFFIX in name]
