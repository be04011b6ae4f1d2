"""A disk that is full, read-only or holds something else: one sentence and exit code 1, and nothing
stored is lost."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from core.errors import StoreError
from core.search.recall import Recall
from core.store import archive
from core.store.archive import Archive
from core.store.sqlite.database import Database
from core.store.sqlite.schema import SCHEMA_VERSION
from core.transfer.formats import read_lines
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import good, mneme
from tests.fixtures.mounts import can_mount
from tests.gateway.cli.test_main import ROOT, imported
from tests.transfer.test_archive import exported, line, take

# The disk with state.db is full or read-only, or the file is damaged.
pytestmark = pytest.mark.sqlite

RUNNER = """
import os, shlex, subprocess, sys
import gateway.app
from gateway.cli.main import app, main

app()
folder, log, *lines = sys.argv[1:]
for number, line in enumerate(lines, start=100):
    name, *arguments = shlex.split(line)
    if name != "mneme":
        subprocess.run(line, shell=True, check=True, cwd=folder if number > 100 else None)
        continue
    child = os.fork()
    if not child:
        typed, typing = os.pipe()
        os.write(typing, b"hello\\n")
        os.close(typing)
        os.dup2(typed, 0)
        for stream, suffix in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{log}/{number}.{suffix}", os.O_CREAT | os.O_WRONLY), stream)
        os.chdir(folder)
        sys.argv[1:] = arguments
        main()
        break
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(f"{log}/{number}.code", "w") as file:
        file.write(str(code))
"""
"""Loads the program once and forks for each command, which goes through `main` as a fresh
interpreter does."""
COMMANDS = ("recall ferry", "import history.jsonl", "chat", "memory add 'likes tea'")


def _on_small_disk(folder: Path, script: Sequence[str]) -> list[tuple[int, str, str]]:
    """Runs lines of a shell script on a disk of 4 MB, mounted at `folder` for these processes only.
    Every line that begins with ``mneme`` is a process of its own; its exit code and both outputs
    are returned."""
    log = folder.parent / "log"
    log.mkdir()
    lines = [
        f'mount -t tmpfs -o size=4m tmpfs "{folder}"',
        f'mkdir -m 700 "{folder}/home"',
        *script,
    ]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "MNEME_HOME": f"{folder}/home"}
    command = ["unshare", "-rm", sys.executable, "-c", RUNNER, str(folder), str(log), *lines]
    done = subprocess.run(
        command, env=environ, input=b"", capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [
        (
            int(code.read_text()),
            code.with_suffix(".out").read_text(),
            code.with_suffix(".err").read_text(),
        )
        for code in sorted(log.glob("*.code"))
    ]


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="needs unshare and the right to mount")
@pytest.mark.parametrize(
    ("spoil", "mend", "told"),
    [
        ("dd if=/dev/zero of=fill bs=1k 2>/dev/null; true", "rm fill", "home/state.db"),
        pytest.param(
            "mount -o remount,ro {}",
            "mount -o remount,rw {}",
            "Read-only file system",
            marks=pytest.mark.sweep,
        ),
    ],
    ids=["full", "read-only"],
)
def test_commands_on_an_unwritable_disk_fail_with_one_sentence(
    tmp_path: Path, spoil: str, mend: str, told: str
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    (tmp_path / "history.jsonl").write_text(line("the ferry at noon"))
    before = [f'cp "{tmp_path}/history.jsonl" .', "mneme import history.jsonl"]
    during = [f"mneme {command}" for command in COMMANDS]
    after = ["mneme recall ferry --json", "mneme import history.jsonl --json"]
    script = [*before, spoil.format(folder), *during, mend.format(folder), *after]
    first, *failed, found, again = _on_small_disk(folder, script)
    assert first[0] == found[0] == again[0] == 0
    assert len(failed) == len(COMMANDS)
    for code, out, error in failed:
        assert (code, out) == (1, "")
        assert error.count("\n") == 1
        assert told in error
    assert json.loads(found[1])["sessions"][0]["matches"][0]["snippet"] == "the >>>ferry<<< at noon"
    assert (json.loads(again[1])["known"], json.loads(again[1])["taken"]) == (1, 0)


async def test_import_that_filled_the_disk_continues_without_duplicates_once_there_is_space(
    database: Database, clock: SteadyClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "BATCH_RECORDS", 20)
    lines = [
        line(f"ferry {n} " + f"word{n} " * 200, session=f"s{n // 5}", id=str(n)) for n in range(400)
    ]

    def narrow(connection: sqlite3.Connection) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 150}").close()

    await database.write(narrow)
    with pytest.raises(StoreError, match=r"disk that holds .* is full"):
        await Archive(database).import_records(read_lines(lines), lambda _: None)
    kept = await exported(database)
    assert 0 < len(kept) < 400
    assert len(kept) % 20 == 0, "whole transactions"
    assert await Recall(database, clock).verify() == []
    await database.write(
        lambda connection: connection.execute("PRAGMA max_page_count = 1000000").close()
    )
    again = await take(database, lines)
    assert (again.known_count, again.imported_count) == (len(kept), 400 - len(kept))
    assert [one["id"] for one in await exported(database)] == [str(n) for n in range(400)]
    assert await Recall(database, clock).verify() == []


@pytest.mark.slow
def test_database_of_a_newer_version_is_refused_and_left_unchanged(home: Path) -> None:
    imported(home)
    with closing(sqlite3.connect(home / "state.db")) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = (home / "state.db").read_bytes()
    for command in (("recall", "ferry"), ("check", "--repair")):
        done = mneme(home, *command)
        assert done.returncode == 1
        assert "newer version of Mneme" in done.stdout + done.stderr
        assert "Update Mneme" in done.stdout + done.stderr
    assert (home / "state.db").read_bytes() == before


@pytest.mark.slow
def test_recall_answers_despite_a_damaged_search_index_and_repair_reports_its_rebuild(
    home: Path,
) -> None:
    imported(home)
    with closing(sqlite3.connect(home / "state.db")) as connection:
        connection.execute("UPDATE messages_fts_data SET block = x'ffffffffffffffffffff'")
        connection.execute("DELETE FROM chunks_fts_data")
        connection.commit()
    for question in ("porto", "when does the ferry leave?"):
        found = json.loads(good(home, "recall", question, "--json"))
        assert found["sessions"][0]["external_session"] == "trip"
    (repair,) = [
        one
        for one in json.loads(good(home, "check", "--repair", "--json"))
        if one["subject"] == "repair"
    ]
    assert (repair["state"], repair["text"]) == (
        "right",
        "The text indexes were rebuilt from 3 messages.",
    )
    assert good(home, "export").count("\n") == 3


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_chat_works_when_the_log_file_cannot_be_written(home: Path) -> None:
    (home / "mneme.log").symlink_to("/dev/full")
    done = mneme(home, "chat", stdin="/memory\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
