"""Mneme with its store on a real PostgreSQL server, as a person uses it in a shell."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.fixtures.command_line import mneme

pytestmark = pytest.mark.slow


@pytest.fixture
def home_on_server(home: Path, postgres_url: str) -> Path:
    (home / "mneme.toml").write_text(f'[store]\nurl = "{postgres_url}"\n', encoding="utf-8")
    return home


def chat(home: Path, *lines: str) -> str:
    result = mneme(home, "chat", stdin="\n".join(lines) + "\n")
    assert result.returncode == 0, result.stderr
    return result.stdout


def recall(home: Path, query: str) -> str:
    result = mneme(home, "recall", query)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_chat_on_postgres_is_found_by_recall_and_no_sqlite_file_is_written(
    home_on_server: Path,
) -> None:
    answer = chat(
        home_on_server,
        "The ferry to Porto leaves at nine.",
        "remember that my dentist is Dr. Silva",
        "/remind in 2 hours call Ana",
        "/status",
    )
    assert "Noted" in answer
    assert "Reminder 1 is set" in answer
    assert "reminders and schedules: 1 active" in answer
    assert "PostgreSQL" in answer
    for query in ("When does the ferry leave?", '"ferry to porto"', "ferr* -bus"):
        assert "The ferry to Porto leaves at nine." in recall(home_on_server, query)
    assert "Nothing found" in recall(home_on_server, "bus")
    assert "Dr. Silva" in chat(home_on_server, "/memory")
    assert not (home_on_server / "state.db").exists()


def test_words_forgotten_on_postgres_are_in_no_row_and_the_receipt_names_the_servers_copies(
    home_on_server: Path, postgres_url: str
) -> None:
    chat(home_on_server, "My secret word is xylophone.", "Good morning.")
    # The file that was copied to the server is still in the home.
    (home_on_server / "state.db").write_text("My secret word is xylophone.", encoding="utf-8")
    receipt = chat(home_on_server, "/forget xylophone", "/yes")
    assert "in unused space of its files, in archives of its log, in replicas" in receipt
    assert "state.db isn't used any more" in receipt
    assert "Nothing found" in recall(home_on_server, "xylophone")
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'mneme'"
        ).fetchall()
        found = [
            table
            for (table,) in tables
            if connection.execute(
                f"SELECT 1 FROM mneme.{table} AS stored WHERE stored::text ILIKE '%xyloph%' LIMIT 1"
            ).fetchone()
        ]
    assert found == []


def test_last_exchange_on_postgres_is_undone_and_restored(home_on_server: Path) -> None:
    answer = chat(home_on_server, "The ferry leaves at nine.", "The bus leaves at ten.", "/undo")
    assert "took back" in answer
    assert "Nothing found" in recall(home_on_server, "bus")
    chat(home_on_server, "/undo back")
    assert "The bus leaves at ten." in recall(home_on_server, "bus")


def test_check_describes_the_postgres_server_and_backup_refers_to_pg_dump(
    home_on_server: Path,
) -> None:
    check = mneme(home_on_server, "check")
    assert "postgresql" in check.stdout
    assert "PostgreSQL 1" in check.stdout
    assert "It matches the messages and facts." in check.stdout
    backup = mneme(home_on_server, "backup")
    assert backup.returncode == 1
    assert "Back up the database with pg_dump" in backup.stderr


def test_server_that_is_away_is_named_with_what_to_do(home: Path) -> None:
    url = "postgresql://mneme@127.0.0.1:1/mneme"
    (home / "mneme.toml").write_text(f'[store]\nurl = "{url}"\n', encoding="utf-8")
    result = mneme(home, "recall", "ferry")
    assert result.returncode == 1
    assert "127.0.0.1/mneme can't be reached" in result.stderr
    assert "Check that PostgreSQL runs there." in result.stderr
    assert "wrong  postgresql" in mneme(home, "check").stdout


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://localhost/mneme", "write an address such as postgresql://localhost/mneme"),
        ("postgresql://mneme:hush@localhost/mneme", "leave the password out of the address"),
    ],
)
def test_address_of_a_server_that_is_no_good_is_refused_by_name(
    home: Path, url: str, problem: str
) -> None:
    (home / "mneme.toml").write_text(f'[store]\nurl = "{url}"\n', encoding="utf-8")
    result = mneme(home, "recall", "ferry")
    assert result.returncode != 0
    assert f"store.url: {problem}" in result.stderr
    assert "hush" not in result.stderr
