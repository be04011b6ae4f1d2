"""`--json` in every command that lists: fields for programs, not sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from typer.main import get_command

from gateway.cli.main import app
from tests.fixtures.command_line import good, mneme

# Commands whose help begins like that of a list, but whose output is a text or a file.
TEXT_COMMANDS = {
    "completion",  # a script
    "export",  # JSON lines
    "service logs",
    "skills show",
}
LISTING = re.compile(r"(?:List|Show|Search|Check|Print)\b")


def walk_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield each command of the shell with its name."""
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            yield from walk_commands(child, (*path, name))
    else:
        yield " ".join(path), command


def test_every_command_that_lists_or_shows_prints_json() -> None:
    lacking = []
    for name, command in walk_commands(get_command(app())):
        options = {option for parameter in command.params for option in parameter.opts}
        is_listing = LISTING.match(command.help or "") and name not in TEXT_COMMANDS
        if is_listing and "--json" not in options:
            lacking.append(name)
    assert lacking == []


def read_json(home: Path, *arguments: str) -> Any:
    return json.loads(good(home, *arguments, "--json"))


@pytest.mark.slow
def test_status_as_json_has_fields_and_no_sentences(home: Path) -> None:
    good(home, "remind", "in 3 hours call Ana")
    state = read_json(home, "status")
    assert [state["state"], state["process"], state["models"]] == ["stopped", None, []]
    assert state["home"] == str(home)
    assert state["active_jobs"] == 1
    assert state["outbox"] == {"due": 0, "undelivered": 0}
    assert state["damage"] is None
    assert state["state_db_bytes"] > 0
    assert set(state["bytes"]) == {"database", "files", "logs", "backups"}
    assert state["bytes_per_month"] is None


@pytest.mark.slow
def test_check_as_json_says_by_keys_and_values_what_its_texts_say(home: Path) -> None:
    (home / "mneme.toml").write_text('[mcp.boats]\ncommand = "no-such-program"\n')
    english = json.loads(mneme(home, "check", "--json").stdout)
    german = json.loads(mneme(home, "check", "--json", LC_ALL="de_DE.UTF-8").stdout)
    names = [
        [(result["subject"], result["key"], result["values"], result["command"]) for result in run]
        for run in (english, german)
    ]
    assert names[0] == names[1]
    values = {"option": "mcp.boats.command", "program": "no-such-program"}
    assert ("settings", "program_missing", values, "mneme config edit") in names[0]
    assert {key for _, key, _, _ in names[0]} >= {"not_set_up", "undamaged", "backup_none"}


@pytest.mark.slow
def test_jobs_as_json_have_the_schedule_itself(home: Path) -> None:
    good(home, "remind", "every monday at 9 water the plants")
    (job,) = read_json(home, "cron")
    assert "RRULE" in job["schedule"]["recurrences"][0]
    assert [job["is_paused"], job["pause_reason"], job["is_urgent"]] == [False, None, False]


@pytest.mark.slow
def test_changes_pending_items_and_facts_of_memory_are_json(home: Path) -> None:
    good(home, "memory", "add", "user: Ana lives in Lisbon")
    good(home, "memory", "replace", "Lisbon", "Porto")
    latest, first = read_json(home, "memory", "history")
    assert [first["action"], first["target"], first["after"]] == [
        "add",
        "user",
        "Ana lives in Lisbon",
    ]
    assert [latest["before"], latest["after"]] == ["Ana lives in Lisbon", "Ana lives in Porto"]
    assert latest["at"].endswith("+00:00")
    assert read_json(home, "memory", "history", str(latest["id"])) == [first]
    assert read_json(home, "memory", "history", str(first["id"])) == []
    good(home, "memory", "add", "Bearer 0123456789abcdef01234567 opens the house", "--anyway")
    assert read_json(home, "memory", "pending") == []
    good(home, "remember", "Bo's birthday is on 3 May")
    assert read_json(home, "memory", "facts", "Bo")[0]["kind"]


@pytest.mark.slow
def test_unit_of_the_service_that_is_not_installed_is_json(home: Path) -> None:
    done = mneme(home, "service", "status", "--json", HOME=str(home.parent))
    state = json.loads(done.stdout)
    assert [state["is_installed"], state["is_active"]] == [False, False]


@pytest.mark.slow
def test_people_of_the_settings_who_have_not_written_yet_are_listed(home: Path) -> None:
    (home / "mneme.toml").write_text('[access]\npeople = ["telegram:7", "telegram:8"]\n')
    people = {row["account"]: row for row in read_json(home, "people")}
    for account in ("telegram:7", "telegram:8"):
        assert [people[account]["person"], people[account]["access"]] == [None, "listed"]
    lines = good(home, "people").splitlines()
    assert sum("listed under [access]" in line for line in lines) == 2
