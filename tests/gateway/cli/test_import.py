"""`mneme import` as a person runs it: real processes, the report, and going on after being
killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.fixtures.command_line import good, mneme
from tests.fixtures.exports import (
    discord_package,
    hermes_store,
    telegram_chat,
    telegram_message,
    write,
    zipped,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
MANY = 8_000
PATIENCE_S = 60


def stored(home: Path) -> int:
    """How many messages another process has committed so far."""
    # A reader must not hold the file while the program sets it up for its write-ahead log.
    if not (home / "state.db-wal").exists():
        return 0
    with closing(sqlite3.connect(home / "state.db")) as connection:
        has_table = connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'messages'"
        ).fetchone()
        return (
            int(connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0])
            if has_table
            else 0
        )


def test_telegram_export_is_imported_with_a_report_and_found_by_recall(
    home: Path, tmp_path: Path
) -> None:
    messages = [
        telegram_message(1, "the ferry to Porto leaves at noon"),
        telegram_message(2, ""),
        {"id": 3, "type": "service", "date_unixtime": "1", "action": "pin_message", "text": ""},
        {"id": 4, "type": "service", "date_unixtime": "1", "action": "pin_message", "text": ""},
    ]
    file = write(tmp_path / "result.json", telegram_chat(messages))
    out = good(home, "import", str(file))
    assert out.splitlines() == [
        "This is a Telegram export.",
        "Imported 1 message. The file has 1 session.",
        "Skipped:",
        "  2 service messages (joined, pinned, called, …)",
        "  1 messages without text or media",
    ]
    (found,) = json.loads(good(home, "recall", "ferry", "--json"))["sessions"]
    assert (found["external_session"], found["title"], found["platform"]) == (
        "telegram:42",
        "Ana",
        "telegram",
    )
    with closing(sqlite3.connect(home / "state.db")) as connection:
        indexed = connection.execute(
            "SELECT value FROM state_meta WHERE key = 'chunked_until'"
        ).fetchone()
    assert indexed is None or int(indexed[0]) == 1


@pytest.mark.slow
def test_import_prints_its_report_as_json_and_applies_the_scope_and_assistant_options(
    home: Path, tmp_path: Path
) -> None:
    messages = [telegram_message(1), telegram_message(2, "beep", **{"from": "Helper"})]
    file = write(tmp_path / "result.json", telegram_chat(messages))
    scope = "account:telegram:7"
    arguments = ("import", str(file), "--scope", scope, "--assistant", "Helper", "--json")
    report = json.loads(good(home, *arguments))
    assert (report["kinds"], report["taken"], report["skipped"], report["broken"]) == (
        ["telegram"],
        2,
        {},
        None,
    )
    assert good(home, "export", "--scope", scope).count('"role": "assistant"') == 1
    assert json.loads(good(home, *arguments))["known"] == 2
    assert mneme(home, "import", str(file), "--scope", "everyone").returncode == 2


@pytest.mark.slow
def test_import_of_a_text_without_messages_is_refused_with_one_sentence(home: Path) -> None:
    done = mneme(home, "import", str(ROOT / "README.md"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "README.md is a text without messages" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_notes_of_hermes_are_reviewed_like_others_that_nobody_typed(
    home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "hermes"
    (folder / "memories").mkdir(parents=True)
    hermes_store(folder / "state.db", [{"id": "s1"}], [{"role": "user", "content": "hello"}])
    (folder / "memories" / "MEMORY.md").write_text("The boat is in Porto.\n§\n" + "long " * 1_000)
    (folder / "memories" / "USER.md").write_text("Likes tea.")
    done = mneme(home, "import", str(folder))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "2 notes for you to decide: mneme memory pending"
    assert done.stderr.count("A note wasn't imported: ") == 1, "one is longer than all notes may be"
    listed = good(home, "memory", "pending")
    assert "The boat is in Porto." in listed
    assert "Likes tea." in listed
    assert "Porto" not in good(home, "memory").partition("pending")[0]
    assert json.loads(good(home, "import", str(folder), "--json"))["notes"] == {
        "memory": 2,
        "user": 1,
    }


@pytest.mark.slow
def test_import_accepts_an_archive_from_stdin(home: Path, tmp_path: Path) -> None:
    archive = zipped(tmp_path / "package.zip", discord_package(tmp_path / "package"))
    out = good(home, "import", "-", stdin=archive.read_bytes())
    assert "This is a Discord data package." in out
    assert (
        "Read: messages/c111111111111111111/messages.json, messages/c222222222222222222/messages.json."
        in out
    )
    assert "Imported 4 messages. The file has 2 sessions." in out


@pytest.mark.slow
def test_import_of_a_truncated_file_keeps_its_readable_messages_and_fails_with_one_sentence(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    raw = json.dumps(telegram_chat([telegram_message(number) for number in range(9)]))
    file.write_text(raw[:-50])
    done = mneme(home, "import", str(file))
    assert done.returncode == 1
    assert "Imported 8 messages" in done.stdout
    assert done.stderr.count("\n") == 1
    assert "breaks off" in done.stderr
    unknown = mneme(home, "import", str(write(file, {"colour": "blue"})))
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "result.json" in unknown.stderr


@pytest.mark.slow
def test_killed_import_continues_without_duplicates_when_run_again(
    home: Path, tmp_path: Path
) -> None:
    file = write(
        tmp_path / "result.json",
        telegram_chat(telegram_message(n, f"message {n}") for n in range(MANY)),
    )
    command = [sys.executable, "-m", "gateway.cli.main", "import", str(file)]
    environment = {**os.environ, "MNEME_HOME": str(home), "PYTHONPATH": str(ROOT)}
    until = time.monotonic() + PATIENCE_S
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while not stored(home):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    before = stored(home)
    assert 0 < before < MANY
    report = json.loads(good(home, "import", str(file), "--json"))
    assert (report["taken"], report["known"], report["sessions"]) == (MANY - before, before, 1)
    with closing(sqlite3.connect(home / "state.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        ids = [row[0] for row in connection.execute("SELECT external_id FROM messages ORDER BY id")]
    assert ids == [str(number) for number in range(MANY)]
