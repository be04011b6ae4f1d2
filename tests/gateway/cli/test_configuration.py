"""`mneme config`: shows and changes settings without rewriting anything else."""

from __future__ import annotations

import json
import os
import pty
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from filelock import FileLock

from gateway.cli.configuration import describe_effect
from gateway.sharing.home_lock import LOCK_FILE
from tests.fixtures.command_line import good, mneme
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

OWN = """\
# My settings
[model]
chat = "claude-sonnet-5-5"  # the good one

[limits]
day = { answers = 5 } # few
"""


def test_config_set_changes_one_option_and_keeps_every_other_line_of_the_file(home: Path) -> None:
    (home / "mneme.toml").write_text(OWN)
    assert good(home, "config", "set", "model.chat", "openai/gpt-6-astra").startswith(
        "model.chat is now openai/gpt-6-astra."
    )
    good(home, "config", "set", "limits.day.money", "3")
    good(home, "config", "set", "owner.telegram", "42,", "43")
    assert (home / "mneme.toml").read_text() == (
        OWN.replace("claude-sonnet-5-5", "openai/gpt-6-astra").replace(
            "answers = 5 }", "answers = 5, money = 3}"
        )
        + "\n[owner]\ntelegram = [42, 43]\n"
    )
    assert good(home, "config", "get", "limits.day.money") == "3\n"
    assert good(home, "config", "get", "limits.jobs") == "100\n"
    good(home, "config", "unset", "owner.telegram")
    assert "owner" not in (home / "mneme.toml").read_text()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("modle.chat", "x", "There is no option modle.chat. Did you mean model.chat?"),
        ("chat", "x", "There is no option chat. Did you mean model.chat?"),
        ("", "x", 'There is no option "".'),
        ("servers.openai.chat", "x", "Did you mean model.servers.openai.chat?"),
        ("model.tries", "many", "model.tries: should be a whole number."),
        ("general.zone", "Europe/Lissabon", "isn't a time zone"),
        ("model.chat", "[", "'[' isn't the name of a model"),
        ("model.fallbacks", '["a",', "isn't the name of a model"),
        ("retention.days", "-3", "retention.days: must be at least 0."),
        ("backup.keep", "0", "backup.keep: must be at least 1."),
        ("owner.telegram", "42 ana", "'ana' isn't a numeric user id"),
        ("backup.encrypt_to", "age1xyz", "type mneme config set backup.encrypt_to KEY."),
        ("backup.passphrase", "BACKUP_PW", "type mneme config set BACKUP_PW."),
        ("backup.folder", "/dev/null/backups", "/dev/null isn't a folder"),
        ("backup.folder", "{home}", "each backup would contain the earlier ones"),
        ("backup.folder", "/proc/nix", "/proc isn't a folder that Mneme may write to"),
        ("TELEGRAM_BOT_TOKEN", "abc", "Tokens of @BotFather look like"),
        ("telegram_bot_token", "x", "Did you mean TELEGRAM_BOT_TOKEN?"),
        ("model.chat.deep", "x", "can't be set"),
        ("telegram.enabled", "true", "TELEGRAM_BOT_TOKEN in secrets.env"),
        ("OPENAI_API_KEY", "ab c", "OPENAI_API_KEY can't contain blanks."),
        ("OPENAI_API_KEI", "x", "Did you mean OPENAI_API_KEY?"),
        ("MNEME_HOME", "/tmp", "set it in the environment"),
    ],
)
def test_invalid_config_set_is_refused_with_one_sentence_and_writes_no_file(
    home: Path, key: str, value: str, expected: str
) -> None:
    (home / "mneme.toml").write_text(OWN)
    refused = mneme(home, "config", "set", key, value.replace("{home}", str(home)))
    assert refused.returncode == 1
    assert expected in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert (home / "mneme.toml").read_text() == OWN
    assert not (home / "secrets.env").exists()


def test_port_of_another_program_is_refused_if_mneme_would_serve_it(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other_program:
        port = other_program.getsockname()[1]
        for table in ("web", "metrics"):
            good(home, "config", "set", f"{table}.port", str(port))
            text = (home / "mneme.toml").read_text()
            done = mneme(home, "config", "set", f"{table}.enabled", "true")
            assert (done.returncode, done.stdout) == (1, "")
            assert re.fullmatch(
                rf"Port {port} is in use by another program\. Choose another for {table}\.port, "
                r"such as \d+\. Nothing was changed\.\n",
                done.stderr,
            )
            assert (home / "mneme.toml").read_text() == text
        # A port that Mneme serves already may be its own.
        (home / "mneme.toml").write_text(f"[web]\nenabled = true\nport = {port}\n")
        good(home, "config", "set", "web.people", "true")


def test_config_set_works_despite_an_older_mistake_in_the_file(home: Path) -> None:
    (home / "mneme.toml").write_text("[model]\ntrys = 3\n")
    good(home, "config", "set", "model.tries", "3")
    assert (home / "mneme.toml").read_text() == "[model]\ntrys = 3\ntries = 3\n"


def test_secret_is_stored_privately_and_never_shown(home: Path) -> None:
    told = good(home, "config", "set", "OPENAI_API_KEY", stdin="sk-very-secret\n")
    file = home / "secrets.env"
    assert file.read_text() == "OPENAI_API_KEY=sk-very-secret\n"
    assert file.stat().st_mode & 0o777 == 0o600
    shown = good(home, "config", "get", "OPENAI_API_KEY") + good(home, "config", "list")
    assert "set in secrets.env" in shown
    assert "very-secret" not in shown + told
    good(home, "config", "unset", "OPENAI_API_KEY")
    assert file.read_text() == ""


def test_blank_secret_is_refused_with_one_sentence(home: Path) -> None:
    done = mneme(home, "config", "set", "OPENAI_API_KEY", " ")
    assert done.returncode == 2
    assert done.stderr == "The value is missing. Give it as an argument or on standard input.\n"
    assert not (home / "secrets.env").exists()


def test_value_of_two_lines_is_refused_with_one_sentence(home: Path) -> None:
    for key in ("OPENAI_API_KEY", "model.chat"):
        done = mneme(home, "config", "set", key, stdin="first\nsecond\n")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("The value has several lines.")
        assert done.stderr.count("\n") == 1
    assert not (home / "secrets.env").exists()
    assert not (home / "mneme.toml").exists()


def test_variable_of_the_environment_overrides_the_file_and_this_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    told = good(home, "config", "set", "OPENAI_API_KEY", "sk-mine")
    assert "also set in the environment" in told


def test_list_shows_own_options_and_as_json_all_of_them(home: Path) -> None:
    assert "haven't set any option" in good(home, "config")
    (home / "mneme.toml").write_text(OWN)
    assert good(home, "config", "list").splitlines() == [
        'model.chat = "claude-sonnet-5-5"',
        "limits.day.answers = 5",
    ]
    listed = json.loads(good(home, "config", "list", "--all", "--json"))
    assert listed["options"]["limits.day.answers"] == 5
    assert listed["options"]["model.max_tokens"] == 8192


def test_list_as_json_names_the_place_of_a_secret_alike_in_all_languages(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "mneme.toml").write_text('[general]\nlanguage = "de"\n')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    good(home, "config", "set", "GROQ_API_KEY", "gsk-mine")
    secrets = json.loads(good(home, "config", "list", "--json", LANG="de_DE.UTF-8"))["secrets"]
    assert secrets == {"OPENAI_API_KEY": "environment", "GROQ_API_KEY": "secrets.env"}


def test_unset_of_a_misspelt_option_suggests_the_right_one(home: Path) -> None:
    refused = mneme(home, "config", "unset", "backup.kepp")
    assert refused.returncode == 1
    assert "Did you mean backup.keep?" in refused.stderr


def test_option_with_an_old_name_is_shown_set_and_unset_under_its_new_one(home: Path) -> None:
    file = home / "mneme.toml"
    file.write_text("[page]\nport = 9471\npeople = true\n")
    assert good(home, "config", "get", "page.port").strip() == "9471"
    assert "web.port" in good(home, "config", "set", "page.port", "9472")
    assert tomllib.loads(file.read_text()) == {"page": {"people": True}, "web": {"port": 9472}}
    good(home, "config", "unset", "web.people")
    assert tomllib.loads(file.read_text()) == {"web": {"port": 9472}}


def test_change_beside_a_running_gateway_says_when_it_takes_effect(home: Path) -> None:
    with FileLock(home / LOCK_FILE):
        assert "after its next start" in good(home, "config", "set", "model.tries", "3")


def test_broken_file_is_named_with_the_place(home: Path) -> None:
    (home / "mneme.toml").write_text("[model]\nchat =\n")
    refused = mneme(home, "config", "list")
    assert (refused.returncode, "at line 2" in refused.stderr) == (1, True)


def test_config_edit_saves_the_file_only_if_it_is_valid(home: Path, tmp_path: Path) -> None:
    """The editor first writes a mistake, and after a yes the right text."""
    editor = tmp_path / "editor"
    editor.write_text(
        '#!/bin/sh\nif [ -e "$0.done" ]; then printf "[model]\\ntries = 3\\n" >"$1"; '
        'else : >"$0.done"; printf "[model]\\ntries = x3\\n" >"$1"; fi\n'
    )
    editor.chmod(0o700)
    main, side = pty.openpty()
    environ = {**os.environ, "MNEME_HOME": str(home), "EDITOR": str(editor)}
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway.cli.main", "config", "edit"],
        stdin=side, stdout=side, stderr=side, env=environ,
    )  # fmt: skip
    os.close(side)
    output = b""
    while b"Correct it?" not in output:
        output += os.read(main, 1000)
    assert not (home / "mneme.toml").exists()
    os.write(main, b"y\n")
    assert process.wait(60) == 0
    os.close(main)
    assert b"line 2" in output
    assert (home / "mneme.toml").read_text() == "[model]\ntries = 3\n"
    assert sorted(path.name for path in home.iterdir()) == ["mneme.toml"]


def test_config_set_takes_a_list_without_commas_and_a_zone_in_small_letters(home: Path) -> None:
    good(home, "config", "set", "owner.telegram", "42", "43")
    good(home, "config", "set", "general.zone", "europe/berlin")
    assert json.loads(good(home, "config", "get", "owner.telegram")) == [42, 43]


def test_config_get_of_a_misspelt_or_empty_name_prints_no_value(home: Path) -> None:
    misspelt = mneme(home, "config", "get", "OPENAI_API_KY")
    assert "Did you mean OPENAI_API_KEY?" in misspelt.stderr
    empty = mneme(home, "config", "get", "")
    assert (empty.returncode, empty.stdout) == (1, "")


def test_config_set_of_a_variable_that_no_setting_uses_says_so(home: Path) -> None:
    assert "No setting uses it yet." in good(home, "config", "set", "FOO_BAR", "3")
    assert "No setting uses it yet." not in good(home, "config", "set", "OPENAI_API_KEY", "3")


def test_unused_variable_is_not_said_to_take_effect(home: Path) -> None:
    with FileLock(home / LOCK_FILE):
        printed = good(home, "config", "set", "FOO_BAR", "3")
    assert printed.endswith("No setting uses it yet.\n")


def test_passphrase_of_backups_is_accepted_once_its_variable_is_set(home: Path) -> None:
    good(home, "config", "set", "BACKUP_PW", "correct horse")
    assert "BACKUP_PW" in good(home, "config", "set", "backup.passphrase", "BACKUP_PW")
    refused = mneme(home, "config", "set", "BACKUP_PW", "short")
    assert "Use at least 8 characters." in refused.stderr
    assert (home / "secrets.env").read_text() == "BACKUP_PW=correct horse\n"


@each_row(
    ("key", "expected"),
    [
        ("owner.telegram", "uses it from now on"),
        ("limits.jobs", "uses limits.jobs after its next start"),
        ("model.servers.openai", "uses model.servers.openai.url after its next start"),
        ("OPENAI_API_KEY", "uses OPENAI_API_KEY after its next start"),
    ],
)
def test_effect_of_a_change_is_told_for_its_option_although_others_wait(
    key: str, expected: str
) -> None:
    waiting = ["limits.jobs", "model.servers.openai.url", "variables.OPENAI_API_KEY"]
    report = {"applied": [], "restart": waiting}
    assert expected in describe_effect(report, key)
