"""Wrong inputs of `mneme setup`: each gets one sentence, and nothing is half-written."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from gateway.sharing.home_lock import LOCK_FILE
from tests.fixtures.bot_api import BotApi
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.command_line import good, mneme
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.forked import ROOT
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.mounts import can_mount
from tests.fixtures.scripted_terminal import open_terminal

# A port that no server uses: its number is reserved.
CLOSED = "http://127.0.0.1:1"
KEY = "sk-ant-right-key"


@dataclass(kw_only=True)
class World:
    telegram: BotApi
    discord: DiscordApi
    model: MessagesApi
    own: ChatApi


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with BotApi() as telegram, DiscordApi() as discord:
        model = MessagesApi(lambda body: ModelReply.say("Hi"), key=KEY)
        own = ChatApi(lambda body: ModelReply.say("Hi"), is_local=True)
        async with model, own:
            yield World(telegram=telegram, discord=discord, model=model, own=own)


# Name: the options, the environment, and words of the sentence. Texts in braces are addresses.
CASES: dict[str, tuple[list[str], dict[str, str], str]] = {
    "wrong key": ([], {"ANTHROPIC_API_KEY": "sk-ant-wrong"}, "does not accept the key"),
    "key with a line break": (
        [],
        {"ANTHROPIC_API_KEY": "sk-änt"},
        "characters that a key can't have",
    ),
    "no network to the model": (
        [],
        {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": CLOSED},
        "cannot be reached",
    ),
    "address that isn't one": ([], {"ANTHROPIC_BASE_URL": "localhost"}, "isn't an address"),
    "model that doesn't exist": (
        ["--model", "claude-none"],
        {"ANTHROPIC_API_KEY": KEY},
        "has no model named claude-none",
    ),
    "model without its key": (["--model", "openai/gpt-6"], {}, "OPENAI_API_KEY"),
    "server that isn't one": (["--url", "{telegram}"], {}, "isn't a server for models"),
    "server address that isn't one": (["--url", "my server"], {}, "isn't an address"),
    "server that is off": (["--url", CLOSED], {}, f"{CLOSED} cannot be reached"),
    "model without a server": (
        ["--model", "gpt"],
        {},
        "gpt names no server, so it would be one of Anthropic's models",
    ),
    "language that isn't spoken": (["--language", "xx"], {}, "doesn't speak xx"),
    "backups in a part of a path": (["--backup", "disk"], {}, "disk isn't a whole path"),
    "step without its token": (["telegram"], {}, "TELEGRAM_BOT_TOKEN isn't set"),
    "step without its option": (["history"], {}, "--import is missing"),
    "model step without a model": (["model"], {}, "--model is missing"),
    "option of another step": (
        ["backup", "--zone", "Europe/Berlin"],
        {},
        "--zone only works with `mneme setup zone`",
    ),
    "wrong Telegram token": ([], {"TELEGRAM_BOT_TOKEN": "110201543:wrong"}, "refused the token"),
    "something else as Telegram token": (
        [],
        {"TELEGRAM_BOT_TOKEN": "my bot/../token"},
        "isn't a bot's token",
    ),
    "no network to Telegram": (
        [],
        {"TELEGRAM_BOT_TOKEN": "1:abc", "MNEME_TELEGRAM_API_URL": CLOSED},
        "Telegram can't be reached",
    ),
    "another server as Telegram's": (
        [],
        {"TELEGRAM_BOT_TOKEN": "1:abc", "MNEME_TELEGRAM_API_URL": "{model}"},
        "isn't from a Bot API",
    ),
    "wrong Discord token": ([], {"DISCORD_BOT_TOKEN": "MTA.wrong.token"}, "token was refused"),
    "no network to Discord": (
        [],
        {"DISCORD_BOT_TOKEN": "MTA.test.token", "MNEME_DISCORD_API_URL": CLOSED},
        "Discord can't be reached",
    ),
    "Discord without encryption": (
        [],
        {"DISCORD_BOT_TOKEN": "MTA.test.token", "MNEME_DISCORD_API_URL": "http://example.com"},
        "must begin with https://",
    ),
    "zone that doesn't exist": (["--zone", "Europe/Lissabon"], {}, "isn't a time zone"),
    "owner that is a name": (["--owner", "ana"], {}, "“ana” isn't an account"),
    "owner on another platform": (["--owner", "signal:42"], {}, "isn't an account"),
    "taken port": (
        ["--zone", "Lisbon", "--page", "{taken}"],
        {},
        "is in use by another program. Choose another for web.port, such as ",
    ),
    "port that isn't one": (["--page", "none"], {}, "web.port: should be a whole number"),
    "port of the system": (["--page", "80"], {}, "web.port: must be at least 1024"),
    "empty port": (["--page", ""], {}, "--page is empty."),
    "empty owner": (["--owner", "telegram:42", "--owner", ""], {}, "--owner is empty."),
    "empty import": (["--import", ""], {}, "--import is empty."),
    "empty language": (["--language", ""], {}, "--language is empty."),
    "empty model": (["--model", ""], {}, "--model is empty."),
    "empty address": (["--url", ""], {}, "--url is empty."),
    "empty zone": (["--zone", " "], {}, "--zone is empty."),
    "empty backup folder": (["--backup", ""], {}, "--backup is empty."),
    "export that isn't there": (["--import", "/nowhere/result.json"], {}, "There is no file"),
}


async def set_up(
    home: Path, world: World, arguments: list[str], environ: dict[str, str]
) -> tuple[int, str]:
    """Run `mneme setup --yes`, and return its exit code and what it says on standard error."""
    places = {
        "telegram": world.telegram.url,
        "model": world.model.url,
        "taken": world.telegram.url.rpartition(":")[2].strip("/"),
    }
    variables = {
        "ANTHROPIC_BASE_URL": world.model.url if "ANTHROPIC_API_KEY" in environ else "",
        "MNEME_TELEGRAM_API_URL": world.telegram.url,
        "MNEME_DISCORD_API_URL": world.discord.rest_url,
        **environ,
    }
    variables = {name: value.format_map(places) for name, value in variables.items()}
    words = [word.format_map(places) for word in arguments]
    done = await asyncio.to_thread(mneme, home, "setup", "--yes", *words, **variables)
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
async def test_wrong_setup_input_is_refused_with_one_sentence_and_no_file_is_written(
    home: Path, world: World, name: str
) -> None:
    arguments, environ, words = CASES[name]
    code, said = await set_up(home, world, arguments, environ)
    assert code == 1, said
    assert words in said
    assert len(said.splitlines()) == 1, said
    assert "Traceback" not in said
    assert all(
        value not in said for name, value in environ.items() if name.endswith(("KEY", "TOKEN"))
    )
    assert os.listdir(home) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "words", "sentence"),
    [
        (400, "Your credit balance is too low", "cannot pay for this"),
        (402, "Pay first", "cannot pay for this"),
        (403, "Not yours", "doesn't have permission"),
        (429, "Slow down", "rate limit"),
        (500, "Oops", "internal error"),
        (529, "Overloaded", "overloaded"),
    ],
)
async def test_api_key_that_the_model_server_refuses_is_not_stored_by_setup(
    home: Path, status: int, words: str, sentence: str
) -> None:
    async with MessagesApi(lambda body: ModelReply.fail(status, words), key=KEY) as model:
        variables = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": KEY}
        done = await asyncio.to_thread(mneme, home, "setup", "--yes", **variables)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert os.listdir(home) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "environ", "sentence"),
    [
        (["--zone", "Lissabun"], {}, "Lissabun ist keine Zeitzone."),
        (["--url", "localhost"], {}, "localhost ist keine Adresse."),
        ([], {"TELEGRAM_BOT_TOKEN": "110201543:wrong"}, "nimmt das Token nicht an"),
        (
            [],
            {"TELEGRAM_BOT_TOKEN": "1:abc", "MNEME_TELEGRAM_API_URL": CLOSED},
            "Telegram ist unter http://127.0.0.1:1 nicht erreichbar",
        ),
        ([], {"DISCORD_BOT_TOKEN": "MTA.wrong.token"}, "discord: Das Token wurde abgelehnt."),
    ],
)
async def test_wrong_setup_input_is_refused_in_the_language_of_the_shell(
    home: Path, world: World, arguments: list[str], environ: dict[str, str], sentence: str
) -> None:
    german = {"LC_ALL": "de_DE.UTF-8"}
    code, said = await set_up(home, world, arguments, environ | german)
    assert code == 1
    assert sentence in said
    assert said.endswith("Nichts wurde geändert.\n")


@pytest.mark.slow
async def test_time_zone_may_be_named_by_a_city(home: Path, world: World) -> None:
    code, said = await set_up(home, world, ["--zone", "Lissabon"], {})
    assert (code, said) == (0, "")
    assert 'zone = "Europe/Lisbon"' in (home / "mneme.toml").read_text()


def test_home_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    done = mneme(tmp_path / "home", "setup", "--yes")
    assert (done.returncode, "can't be created" in done.stderr) == (1, True)


def test_home_with_a_line_break_is_refused_and_not_created(tmp_path: Path) -> None:
    home = tmp_path / "home\nExecStartPre=touch"
    done = mneme(home, "check", LANG="de_DE.UTF-8")
    assert done.returncode == 1
    assert "enthält einen Zeilenumbruch" in done.stdout + done.stderr
    assert not home.exists()


def test_setup_that_cannot_write_the_settings_file_leaves_the_secrets_file_unwritten(
    home: Path,
) -> None:
    """The settings can't be written, so the secret is taken back."""
    (home / "mneme.toml").mkdir()
    done = mneme(home, "setup", "--yes", "--owner", "telegram:42")
    assert done.returncode == 1
    assert "mneme.toml" in done.stderr
    assert sorted(path.name for path in home.iterdir()) == ["mneme.toml"]


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="needs unshare and the right to mount")
def test_setup_on_a_read_only_disk_names_the_file_that_it_cannot_write(home: Path) -> None:
    mneme_command = f"{sys.executable} -m gateway.cli.main setup --yes"
    script = (
        f'mount --bind "{home}" "{home}" && mount -o remount,bind,ro "{home}" && {mneme_command}'
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "MNEME_HOME": str(home), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    sentence = f"{home}/mneme.toml can't be used: Read-only file system. Nothing was changed.\n"
    assert (done.returncode, done.stderr) == (1, sentence)
    assert os.listdir(home) == []


def test_settings_that_are_no_toml_are_named_with_the_place(home: Path) -> None:
    (home / "mneme.toml").write_text("[model\n")
    done = mneme(home, "setup", "--yes")
    assert (done.returncode, "line 1" in done.stderr) == (1, True)
    assert (home / "mneme.toml").read_text() == "[model\n"


def test_setup_without_a_terminal_asks_nothing_and_names_the_yes_option(home: Path) -> None:
    done = mneme(home, "setup")
    assert (done.returncode, "mneme setup --yes" in done.stderr) == (1, True)


@pytest.mark.slow
async def test_script_stores_what_the_environment_has_and_its_options_name(
    home: Path, world: World
) -> None:
    history = home.parent / "history.jsonl"
    line = {"session": "trip", "role": "user", "text": "The ferry leaves at nine."}
    history.write_text(json.dumps(line | {"at": "2026-05-03T09:00:00+01:00"}) + "\n")
    environ = {
        "ANTHROPIC_API_KEY": KEY,
        "TELEGRAM_BOT_TOKEN": world.telegram.token,
        "DISCORD_BOT_TOKEN": world.discord.token,
    }
    arguments = ["--zone", "Europe/Lisbon", "--owner", "telegram:42", "--import", str(history)]
    code, said = await set_up(home, world, arguments, environ)
    assert (code, said) == (0, "")
    assert (home / "mneme.toml").read_text() == (
        '[general]\nzone = "Europe/Lisbon"\n\n[model]\nchat = "claude-sonnet-5-5"\n\n'
        "[owner]\ntelegram = [42]\n"
    )
    stored = (home / "secrets.env").read_text()
    assert sorted(stored.splitlines()) == sorted(
        f"{name}={value}" for name, value in environ.items()
    )
    found = await asyncio.to_thread(mneme, home, "recall", "ferry")
    assert "leaves at nine" in found.stdout


@pytest.mark.slow
async def test_wrong_token_in_a_terminal_can_be_corrected(home: Path, world: World) -> None:
    environ = {"MNEME_TELEGRAM_API_URL": world.telegram.url}
    async with open_terminal(home, "setup", "telegram", environ=environ) as terminal:
        await terminal.answer("(hidden)", "110201543:wrong")
        await terminal.expect("refused the token")
        await terminal.answer("Try again?", "y")
        await terminal.answer("(hidden)", world.telegram.token)
        await terminal.expect("Write anything to @mneme_bot")
        terminal.interrupt()
        await terminal.expect("Skipped. `mneme setup telegram` does it later.")
        assert await terminal.end() == 0
    assert (home / "secrets.env").read_text() == f"TELEGRAM_BOT_TOKEN={world.telegram.token}\n"
    assert "110201543:wrong" not in terminal.transcript


@pytest.mark.slow
async def test_setup_reports_that_another_program_already_reads_the_telegram_bots_messages(
    home: Path, world: World
) -> None:
    world.telegram.fail(
        409, "Conflict: terminated by other getUpdates request", method="getUpdates"
    )
    environ = {
        "MNEME_TELEGRAM_API_URL": world.telegram.url,
        "TELEGRAM_BOT_TOKEN": world.telegram.token,
    }
    async with open_terminal(home, "setup", "telegram", environ=environ) as terminal:
        await terminal.expect("Another program reads this bot's messages. Stop it, and try again.")
        await terminal.answer("Try again?", "n")
        assert await terminal.end() == 0


def test_script_of_one_step_sets_up_only_that_step(home: Path) -> None:
    folder = home.parent / "disk"
    good(home, "setup", "backup", "--yes", "--backup", str(folder))
    good(home, "setup", "language", "--yes", "--language", "de")
    options = tomllib.loads((home / "mneme.toml").read_text())
    assert options == {
        "backup": {"folder": str(folder), "every": "1d"},
        "general": {"language": "de"},
    }
    assert folder.is_dir()


def test_script_with_an_unusable_import_exits_with_one_sentence(home: Path) -> None:
    (home.parent / "result.json").write_text("no export")
    done = mneme(home, "setup", "--yes", "--import", str(home.parent / "result.json"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("Nothing was changed.\n")
    assert len(done.stderr.splitlines()) == 1
    assert os.listdir(home) == []


@pytest.mark.parametrize("name", ["trip.ics", "all.tar.gz"])
def test_script_refuses_a_calendar_and_a_whole_home_before_it_writes_settings(
    home: Path, name: str
) -> None:
    path = home.parent / name
    path.write_bytes(b"BEGIN:VCALENDAR\r\n" if name == "trip.ics" else b"\x1f\x8b\x08\0")
    done = mneme(home, "setup", "--yes", "--import", str(path))
    assert done.returncode == 1
    assert done.stderr == (
        f"{path} isn't a history that the setup imports. After the setup, import it with `mneme "
        f"import {path}`. Nothing was changed.\n"
    )
    assert os.listdir(home) == []


def test_script_with_a_folder_of_folders_without_end_changes_nothing(home: Path) -> None:
    folder = home.parent / "disk"
    deepest = folder.joinpath(*["a"] * 40)
    deepest.mkdir(parents=True)
    (deepest / "loop").symlink_to(folder)
    done = mneme(home, "setup", "--yes", "--zone", "Lisbon", "--import", str(folder))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"{folder} has folders more than 32 levels deep. Name the folder or the file of the export "
        "itself. Nothing was changed.\n"
    )
    assert os.listdir(home) == []


def test_refused_script_prints_no_results_of_its_steps(home: Path) -> None:
    done = mneme(home, "setup", "--yes", "--zone", "Lisbon", "--owner", "ana")
    assert (done.returncode, done.stdout) == (1, "")


def test_script_next_to_a_running_gateway_says_when_it_uses_the_changes(home: Path) -> None:
    with FileLock(home / LOCK_FILE):
        answer = good(home, "setup", "--yes", "--zone", "Lisbon")
    assert "It uses what you change here after its next start." in answer
    assert "mneme run" not in answer
