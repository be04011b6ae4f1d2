"""The command line as a program sees it: real processes, their output, their exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from gateway.sharing.home_lock import LOCK_FILE
from tests.fixtures.command_line import good, mneme

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
LINES = [
    {
        "session": "trip",
        "role": "user",
        "text": "The ferry to Porto leaves at noon.",
        "at": "2026-05-03",
        "id": "m1",
    },
    {
        "session": "trip",
        "role": "assistant",
        "text": "Noted: noon.",
        "at": "2026-05-03T00:01",
        "id": "m2",
    },
    {
        "session": "food",
        "title": "Dinner",
        "role": "user",
        "text": "Ana likes soup.",
        "at": "2026-05-04",
        "id": "m1",
    },
]


def imported(home: Path, lines: Sequence[dict[str, Any]] = LINES) -> None:
    file = home / "history.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    good(home, "import", str(file))


def test_a_conversation_in_a_pipe_remembers_across_sessions(home: Path) -> None:
    typed = (
        "My sister Ana lives in Porto and her birthday is on 3 May.\n/new\nWhen is Ana's birthday?\n/recall Porto\n"
        "/sessions\n"
    )
    done = mneme(home, "chat", stdin=typed)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    before, after = done.stdout.split("New conversation.")
    assert "3 May" not in before.splitlines()[0]
    assert "3 May" in after
    assert after.count("Porto") >= 2
    assert (home / "mneme.log").stat().st_mode & 0o777 == 0o600
    assert (home / "state.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_run_without_a_platform_starts_a_terminal_chat_and_names_the_command_that_sets_one_up(
    home: Path,
) -> None:
    out = good(home, "run")
    assert "To talk to me on Telegram or Discord, or to choose a model, type `mneme setup`" in out


@pytest.mark.slow
def test_recall_command_prints_json_or_a_table_or_nothing_found(home: Path) -> None:
    imported(home)
    found = json.loads(good(home, "recall", "ferry", "--json", "--messages", "5"))
    assert (found["query"], found["shape"]) == ("ferry", "discovery")
    (session,) = found["sessions"]
    assert session["external_session"] == "trip"
    assert session["matches"][0]["external_id"] == "m1"
    assert session["window"][0]["is_anchor"] is True
    assert found["messages"][0]["external_id"] == "m1"
    anchor = str(session["matches"][0]["message_id"])
    assert (
        json.loads(good(home, "recall", f"around:{anchor}", "--window", "1", "--json"))["shape"]
        == "scroll"
    )
    assert "ferry to Porto leaves" in good(home, "recall", "ferry")
    assert "ferry to Porto leaves" in good(home, "sessions", f"m{anchor}")
    assert "Dinner" in good(home, "recall")
    assert good(home, "recall", "zeppelin").strip()
    noted = json.loads(good(home, "recall", "noted", "role:assistant", "--json"))
    assert {match["role"] for found in noted["sessions"] for match in found["matches"]} == {
        "assistant"
    }
    assert (
        json.loads(good(home, "recall", "ferry", "--json", "--scope", "account:telegram:1"))[
            "sessions"
        ]
        == []
    )


@pytest.mark.slow
def test_recall_answers_queries_from_stdin_with_one_json_object_per_line(home: Path) -> None:
    imported(home)
    queries = b"ferry\n\n\xff\xfe\n\"don't (\n" + b"  soup  \r\n"
    answers = [
        json.loads(line)
        for line in good(home, "recall", "-", "--limit", "1", stdin=queries).splitlines()
    ]
    assert [answer["query"] for answer in answers] == [
        "ferry",
        "",
        "\ufffd\ufffd",
        "\"don't (",
        "  soup  ",
    ]
    assert [answer["shape"] for answer in answers] == [
        "discovery",
        "browse",
        "discovery",
        "discovery",
        "discovery",
    ]
    assert all("took_ms" in answer and "error" not in answer for answer in answers)
    assert answers[4]["sessions"][0]["external_session"] == "food"


@pytest.mark.slow
def test_sessions_command_lists_sessions_and_recall_shows_one(home: Path) -> None:
    imported(home)
    food, trip = json.loads(good(home, "sessions", "list", "--json"))
    assert (food["title"], trip["external_session"]) == ("Dinner", "trip")
    number = str(trip["session_id"])
    assert "leaves at noon" in good(home, "recall", f"in:{number}")
    (shown,) = json.loads(good(home, "recall", f"in:{number}", "--json"))["sessions"]
    assert [message["role"] for message in shown["window"]] == ["user", "assistant"]
    missing = mneme(home, "recall", "in:999")
    assert (missing.returncode, missing.stdout) == (1, "")


@pytest.mark.slow
def test_import_counts_refuses_by_number_and_export_gives_it_back(
    home: Path, tmp_path: Path
) -> None:
    lines = "\n".join(json.dumps(line) for line in LINES) + "\nnonsense\n"
    done = mneme(home, "import", "-", "--json", stdin=lines)
    report = json.loads(done.stdout)
    assert (done.returncode, report["taken"], report["refused"]) == (0, 3, 1)
    assert report["reasons"][0].startswith("line 4: ")
    again = mneme(home, "import", "-", stdin=lines)
    assert "Already known: 3 messages." in again.stdout
    assert "line 4" in again.stderr
    out = good(home, "export")
    assert len(out.splitlines()) == 3
    other = tmp_path / "other"
    assert "Imported 3 messages" in good(other, "import", "-", stdin=out)
    assert mneme(home, "import", "-", stdin="nonsense").returncode == 1
    missing = mneme(home, "import", str(tmp_path / "missing"))
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == f"{tmp_path / 'missing'} doesn't exist.\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("restore", ""), "FILE"),
        (("restore", "backup.tar.gz", "--key", " "), "--key"),
        (("backup", "--encrypt", ""), "--encrypt"),
        (("export", "--scope", ""), "--scope"),
        (("export", "--all", "--scope", ""), "--scope"),
        (("import", ""), "FILE"),
        (("import", "trip.jsonl", "--scope", ""), "--scope"),
        (("import", "trip.ics", "--scope", ""), "--scope"),
        (("import", "trip.jsonl", "--assistant", ""), "--assistant"),
        (("import", "trip.jsonl", "--me", "Ana", "--me", ""), "--me"),
        (("recall", "ferry", "--scope", ""), "--scope"),
    ],
)
def test_empty_option_or_argument_is_refused_with_one_sentence(
    home: Path, arguments: tuple[str, ...], name: str
) -> None:
    done = mneme(home, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{name} is empty. Nothing was changed.\n"
    assert not (home / "state.db").exists()


@pytest.mark.slow
def test_command_line_adds_replaces_and_removes_a_note(home: Path) -> None:
    good(home, "memory", "add", "Ana lives in Porto")
    good(home, "memory", "add", "user:", "Speaks German")
    good(home, "memory", "replace", "in Porto", "Ana lives in Lisbon")
    assert json.loads(good(home, "memory", "list", "--json")) == {
        "memory": ["Ana lives in Lisbon"],
        "user": ["Speaks German"],
    }
    good(home, "memory", "remove", "german")
    assert "German" not in good(home, "memory")
    refused = mneme(home, "memory", "remove", "nothing like it")
    assert refused.returncode == 1
    assert "Ana lives in Lisbon" in refused.stderr


@pytest.mark.slow
def test_cron_command_adds_pauses_and_removes_reminders(home: Path) -> None:
    good(home, "cron", "add", "every monday at 8:30 stand-up")
    (job,) = json.loads(good(home, "cron", "list", "--json"))
    number = str(job["job_id"])
    assert job["text"] == "stand-up"
    moments = [datetime.fromisoformat(moment) for moment in job["next"]]
    assert [f"{moment:%A %H:%M}" for moment in moments] == ["Monday 08:30"] * 3
    assert moments[0] == datetime.fromisoformat(job["next_at"])
    assert [(later.date() - earlier.date()).days for earlier, later in pairwise(moments)] == [7, 7]
    assert "paused" in good(home, "cron", "pause", number)
    assert "paused" not in good(home, "cron", "resume", number)
    before = json.loads(good(home, "cron", "list", "--json"))[0]["next_at"]
    good(home, "cron", "run", number)
    assert json.loads(good(home, "cron", "list", "--json"))[0]["next_at"] < before
    good(home, "cron", "remove", number)
    assert json.loads(good(home, "cron", "list", "--json")) == []
    assert mneme(home, "cron", "remove", number).returncode == 1
    assert mneme(home, "cron", "add", "no time in it").returncode == 1


@pytest.mark.slow
def test_approve_with_a_wrong_code_fails_and_approves_nobody(home: Path) -> None:
    assert "No one" in good(home, "approve")
    assert mneme(home, "approve", "WRONG123").returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("recall", "--limit", "many"),
        ("recall", "x", "--messages", "few"),
        ("recall", "x", "--scope", "everyone"),
        ("memory", "add", "x", "--elsewhere"),
        ("sessions", "--limit", "0"),
        ("import",),
    ],
)
def test_wrong_usage_of_the_shell_exits_with_two(home: Path, arguments: tuple[str, ...]) -> None:
    done = mneme(home, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


@pytest.mark.slow
def test_wrong_settings_are_one_message_with_every_problem(home: Path) -> None:
    (home / "mneme.toml").write_text('colour = "blue"\n[model]\ntries = "many"\n')
    for command in ("run", "recall"):
        done = mneme(home, command)
        assert done.returncode == 1
        assert "colour" in done.stderr
        assert "model.tries" in done.stderr
    check = mneme(home, "check", "--json")
    assert check.returncode == 1
    wrong = [finding["text"] for finding in json.loads(check.stdout) if finding["state"] == "wrong"]
    assert len(wrong) == 2


@pytest.mark.slow
def test_recall_on_a_damaged_database_fails_with_one_sentence(home: Path) -> None:
    (home / "state.db").write_bytes(b"this is no database" * 100)
    done = mneme(home, "recall", "x")
    assert done.returncode == 1
    assert re.fullmatch(r".*state\.db.*\n", done.stderr)


@pytest.mark.slow
def test_check_lists_each_part_as_right_or_off_in_a_fresh_home(home: Path) -> None:
    states = {
        finding["subject"]: finding["state"]
        for finding in json.loads(good(home, "check", "--json"))
    }
    assert states == {
        "settings": "right",
        "installation": "right",
        "sqlite": "right",
        "state.db": "right",
        "search index": "right",
        "backups": "off",
        "model": "off",
        "telegram": "off",
        "discord": "off",
    }
    assert "type mneme setup telegram" in good(home, "check")


@pytest.mark.slow
def test_check_fails_if_the_model_server_and_platforms_do_not_answer(home: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    done = mneme(
        home,
        "check",
        "--json",
        ANTHROPIC_API_KEY="sk-hush",
        ANTHROPIC_BASE_URL=nowhere,
        TELEGRAM_BOT_TOKEN="1:hush",
        MNEME_TELEGRAM_API_URL=nowhere,
        DISCORD_BOT_TOKEN="hush",
        MNEME_DISCORD_API_URL=nowhere,
    )
    assert done.returncode == 1
    states = {finding["subject"]: finding["state"] for finding in json.loads(done.stdout)}
    assert [states[name] for name in ("model", "telegram", "discord")] == ["wrong"] * 3
    assert "hush" not in done.stdout + done.stderr


@pytest.mark.slow
def test_command_whose_output_pipe_is_closed_early_ends_without_an_error(home: Path) -> None:
    imported(home, [{**LINES[0], "id": str(number), "text": "x" * 1000} for number in range(500)])
    variables = {**os.environ, "MNEME_HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "gateway.cli.main", "export"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


@pytest.mark.slow
def test_mneme_without_a_command_prints_the_next_steps_and_exits_0(home: Path) -> None:
    lines = good(home).splitlines()
    assert len(lines) == 5
    assert any("mneme chat" in line for line in lines)


def test_version_of_the_program_is_printed(home: Path) -> None:
    assert good(home, "--version").startswith("mneme ")


@pytest.mark.slow
def test_shell_completion_lists_the_commands_that_fit(home: Path) -> None:
    asked = {"_MNEME_COMPLETE": "complete_bash", "COMP_WORDS": "mneme rem", "COMP_CWORD": "1"}
    done = mneme(home, **asked)
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["remember", "remind"])


def test_second_process_with_one_home_is_refused_while_shell_commands_still_work(
    home: Path,
) -> None:
    imported(home)
    with FileLock(home / LOCK_FILE):
        refused = mneme(home, "chat", stdin="hello\n")
        assert refused.returncode != 0
        assert f"Mneme is already running with home {home}." in refused.stderr
        assert "noon" in good(home, "recall", "ferry")
        assert "Dinner" in good(home, "sessions")
    assert json.loads(good(home, "recall", "hello", "--json"))["sessions"] == []
