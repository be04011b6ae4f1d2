"""The state.db of Hermes: its conversations as they were, nothing it hides, and not one byte
written."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.errors import HistoryError
from core.store.archive import Archive
from core.store.sqlite.database import Database
from core.transfer import hermes
from core.transfer.formats import HIDDEN, NO_TEXT, ImportOptions, format_line, read_lines
from core.transfer.source import Source
from core.types import LOCAL_SCOPE
from tests.fixtures.exports import HERMES_TABLES, NOON, fill, hermes_store, zipped
from tests.fixtures.import_reading import sorted_out, taken_from

SESSION = {"id": "s1", "source": "telegram", "chat_id": "-100", "thread_id": "7", "title": "Boats"}


def test_sessions_imported_from_hermes_have_title_address_and_times(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    path = hermes_store(
        tmp_path / "state.db",
        [SESSION, {"id": "s2", "started_at": NOON + 9}],
        [
            {"role": "user", "content": "hello", "timestamp": NOON + 0.5},
            {"role": "assistant", "content": "ahoy"},
            {"role": "user", "content": "\0json:" + json.dumps(parts)},
            {"role": "tool", "content": "42 °C", "tool_name": "thermometer"},
            {"role": "user", "content": "on the command line", "session_id": "s2"},
        ],
    )
    taken, skipped = taken_from(path)
    assert not skipped
    assert [(line.role, line.text) for line in taken] == [
        ("user", "hello"),
        ("assistant", "ahoy"),
        ("user", "look\n[image]"),
        ("tool", "42 °C"),
        ("user", "on the command line"),
    ]
    first, last = taken[0], taken[-1]
    boats, last_one = first.conversation, last.conversation
    assert (boats.name, boats.title, first.id, boats.address.key) == (
        "hermes:s1",
        "Boats",
        "1",
        "telegram:-100/7",
    )
    assert first.at == datetime(2026, 5, 3, 12, 0, 0, 500_000, tzinfo=UTC)
    assert (last_one.name, last_one.title, last_one.address.key) == (
        "hermes:s2",
        None,
        "terminal:s2",
    )


def test_import_counts_messages_that_hermes_hides_by_reason(tmp_path: Path) -> None:
    path = hermes_store(
        tmp_path / "state.db",
        [SESSION, {"id": "sub", "source": "subagent"}],
        [
            {"role": "user", "content": "taken back", "active": 0},
            {"role": "session_meta", "content": "{}"},
            {"role": "assistant", "content": None, "tool_calls": "[]"},
            {"role": "tool", "content": "found yourself", "tool_name": "session_search"},
            {"role": "user", "content": "do this", "session_id": "sub"},
            {"role": "user", "content": "kept"},
        ],
    )
    taken, skipped = taken_from(path)
    assert [line.text for line in taken] == ["kept"]
    assert skipped == {
        HIDDEN: 4,
        NO_TEXT: 1,
    }


async def test_hermes_session_that_continues_another_session_is_imported_with_its_parent(
    tmp_path: Path, database: Database
) -> None:
    sessions: list[dict[str, Any]] = [
        SESSION,
        {"id": "s2", "parent_session_id": "s1", "started_at": NOON + 9, "title": "Boats #2"},
    ]
    third = {"id": "s3", "parent_session_id": "s2", "started_at": NOON + 18}
    messages = [
        {"role": "user", "content": f"in {one}", "session_id": one} for one in ("s1", "s2", "s3")
    ]
    path = hermes_store(tmp_path / "hermes.db", [*sessions, third], messages)
    for _ in range(2):
        with Source.open(path, ImportOptions()) as source:
            report = await Archive(database).import_records(source.read_records(), lambda _: None)
    assert (report.known_count, len(report.session_ids)) == (3, 3)

    def lineage(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
        found = connection.execute(
            "SELECT external_id, parent_id, COALESCE(root_id, id) FROM sessions ORDER BY id"
        )
        return [tuple(row) for row in found]

    assert await database.read(lineage) == [
        ("hermes:s1", None, 1),
        ("hermes:s2", 1, 1),
        ("hermes:s3", 2, 1),
    ]
    lines = [
        format_line(record) async for record in Archive(database).export(frozenset({LOCAL_SCOPE}))
    ]
    assert [json.loads(line).get("parent") for line in lines] == [None, "hermes:s1", "hermes:s2"]
    async with Database.open(tmp_path / "other.db") as other:
        await Archive(other).import_records(read_lines(lines), lambda _: None)
        assert await other.read(lineage) == await database.read(lineage)


def test_notes_of_hermes_are_found_next_to_its_database_in_a_folder_and_in_an_archive(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "hermes"
    (folder / "memories").mkdir(parents=True)
    path = hermes_store(folder / "state.db", [SESSION], [{"role": "user", "content": "hello"}])
    (folder / "memories" / "MEMORY.md").write_text(
        "The boat is in Porto.\n§\nTests run with `make`.\n§\n \n"
    )
    (folder / "memories" / "USER.md").write_text("Name: Tom\nlikes tea")
    wanted = {
        "memory": ["The boat is in Porto.", "Tests run with `make`."],
        "user": ["Name: Tom\nlikes tea"],
    }
    for place in (folder, path, zipped(tmp_path / "h.zip", folder)):
        with Source.open(place, ImportOptions()) as source:
            assert source.read_notes() == wanted
            assert source.kinds == ("hermes",), "notes are no history"


def test_a_compressed_conversation_is_taken_once(tmp_path: Path) -> None:
    old = [
        {"role": "user", "content": "one", "timestamp": NOON + 1},
        {"role": "assistant", "content": "yes", "timestamp": NOON + 2},
        {"role": "user", "content": "two", "timestamp": NOON + 3},
    ]
    archived = [{**row, "active": 0, "compacted": 1} for row in old]
    summary = {
        "role": "user",
        "content": "[CONTEXT COMPACTION — REFERENCE ONLY] …",
        "timestamp": NOON + 60,
    }
    kept = [{**old[1], "timestamp": NOON + 60}, old[2]]
    later = [{"role": "assistant", "content": "yes", "timestamp": NOON + 99}]
    path = hermes_store(tmp_path / "state.db", [SESSION], [*archived, summary, *kept, *later])
    taken, skipped = taken_from(path)
    assert [line.text for line in taken] == ["one", "yes", "two", "yes"]
    assert skipped == {HIDDEN: 3}


def test_hermes_database_of_an_older_version_without_some_columns_is_imported(
    tmp_path: Path,
) -> None:
    tables = """
        CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, started_at REAL NOT NULL);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);
    """
    path = hermes_store(
        tmp_path / "old.db", [{"id": "s1"}], [{"role": "user", "content": "old"}], tables
    )
    assert [line.text for line in taken_from(path)[0]] == ["old"]


def test_import_from_hermes_writes_no_file_next_to_its_database(tmp_path: Path) -> None:
    folder = tmp_path / "hermes"
    folder.mkdir()
    path = hermes_store(folder / "state.db", [SESSION], [{"role": "user", "content": "hello"}])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    before = path.read_bytes()
    path.chmod(0o400)
    folder.chmod(0o500)
    try:
        assert len(taken_from(path)[0]) == 1
        assert [file.name for file in folder.iterdir()] == ["state.db"]
    finally:
        folder.chmod(0o700)
    assert path.read_bytes() == before


def test_import_reads_the_log_of_a_running_hermes(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.executescript(HERMES_TABLES)
        fill(running, [SESSION], [{"role": "user", "content": "just said"}])
        assert path.with_name("state.db-wal").stat().st_size
        assert [line.text for line in taken_from(path)[0]] == ["just said"]


def test_database_of_hermes_in_an_archive_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    hermes_store(folder / "anything.bin", [SESSION], [{"role": "user", "content": "hello"}])
    assert [line.text for line in taken_from(zipped(tmp_path / "b.zip", folder))[0]] == ["hello"]


async def test_import_refuses_a_database_that_is_not_from_hermes(
    tmp_path: Path, database: Database
) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE songs (id INTEGER)")
    with pytest.raises(HistoryError, match="not one of Hermes"):
        taken_from(tmp_path / "other.db")
    with pytest.raises(HistoryError, match="mneme export"), database.path.open("rb") as stream:
        sorted_out(hermes.read_hermes(stream, "state.db", ImportOptions()))


async def test_unrelated_database_is_refused_without_being_called_hermes(
    tmp_path: Path, database: Database
) -> None:
    with (
        pytest.raises(HistoryError, match="of Mneme itself"),
        Source.open(database.path, ImportOptions()),
    ):
        pass


def test_unrelated_database_next_to_a_history_is_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "another.db")) as connection:
        connection.execute("CREATE TABLE songs (id INTEGER)")
    hermes_store(folder / "state.db", [SESSION], [{"role": "user", "content": "hello"}])
    for path in (folder, zipped(tmp_path / "b.zip", folder)):
        assert [line.text for line in taken_from(path)[0]] == ["hello"]


def test_damaged_hermes_database_is_refused_with_one_sentence(tmp_path: Path) -> None:
    path = hermes_store(
        tmp_path / "state.db", [SESSION], [{"role": "user", "content": "x" * 9000}] * 50
    )
    raw = bytearray(path.read_bytes())
    raw[100:4096] = b"\xff" * 3996
    path.write_bytes(raw)
    with pytest.raises(HistoryError, match=r"state\.db cannot be read"):
        taken_from(path)
