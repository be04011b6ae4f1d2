"""`mneme check` in broken situations: it names the fault, and the command that mends it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from config.operating_system import SYSTEM
from config.settings import Settings
from core.errors import StoreError
from core.store.mailbox import OutboxItem
from core.store.sqlite import opening
from core.types import Address, Answer
from gateway.services import Services
from gateway.texts.catalog import ENGLISH
from gateway.upkeep.home_checks import check_sqlite
from gateway.upkeep.mending import find_store_command
from tests.fixtures.bot_api import BotApi
from tests.fixtures.command_line import good, mneme
from tests.fixtures.forked import ROOT
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.mounts import can_mount

pytestmark = pytest.mark.slow

NOBODY = "http://127.0.0.1:9"
KEY = "sk-ant-check"


@dataclass(frozen=True)
class Fault:
    """A broken situation, and what the check says about it."""

    # Breaks a home in which something was said.
    break_home: Callable[[Path], None]
    subject: str
    # A part of the text that names the fault.
    text: str
    # The command, or a part of it. People also find it in the text or the advice.
    command: str
    # Environment variables.
    variables: tuple[tuple[str, str], ...] = ()


def write_settings(text: str) -> Callable[[Path], None]:
    def write(home: Path) -> None:
        (home / "mneme.toml").write_text(text)

    return write


def leave(home: Path) -> None:
    """The fault is in the environment."""


def damage(home: Path) -> None:
    with (home / "state.db").open("r+b") as file:
        file.write(b"\xff" * 30_000)


def lose_state(home: Path) -> None:
    for path in home.glob("state.db*"):
        path.unlink()


def remove_state(home: Path) -> None:
    good(home, "backup")
    lose_state(home)


def change_schema(home: Path) -> None:
    with closing(sqlite3.connect(home / "state.db")) as connection:
        connection.execute("PRAGMA user_version = 9999")


def replace_notes(home: Path) -> None:
    shutil.rmtree(home / "memories", ignore_errors=True)
    (home / "memories").write_text("")


def link_state(home: Path) -> None:
    target = home.with_name("elsewhere.db")
    (home / "state.db").rename(target)
    (home / "state.db").symlink_to(target)


async def set_aside(services: Services) -> None:
    await services.inbox.store_dead_letter("telegram", 7, {"message": "odd"}, "ValueError: odd")


async def give_up_answer(services: Services) -> None:
    now = services.clock.now()
    item = OutboxItem(
        key="k",
        kind="answer",
        address=Address(platform="telegram", chat_id="42"),
        answer=Answer(text="hi"),
        next_at=now,
    )
    await services.outbox.put(item)
    await services.database.execute(
        "UPDATE outbox SET dead_at = :now, error = 'blocked'", {"now": now}
    )


def in_store(change: Callable[[Services], Awaitable[None]]) -> Callable[[Path], None]:
    """Break something in the store itself."""

    async def work(home: Path) -> None:
        async with Services.open(Settings.load({"MNEME_HOME": str(home)})) as services:
            await change(services)

    return lambda home: asyncio.run(work(home))


def miss_folder(home: Path) -> None:
    write_settings(f'[context]\nfolders = ["{home}/nowhere"]\n')(home)


def write_secrets(home: Path) -> None:
    (home / "secrets.env").write_text("no equals sign\n")


def replace_secrets(home: Path) -> None:
    (home / "secrets.env").mkdir()


def break_plugin(home: Path) -> None:
    (home / "plugins").mkdir(mode=0o700)
    (home / "plugins" / "diary.py").write_text("def broken(:\n")
    write_settings("[memory.providers.diary]\nenabled = true\n")(home)


def break_skill(home: Path) -> None:
    (home / "skills" / "tidy-inbox").mkdir(parents=True)
    (home / "skills" / "tidy-inbox" / "SKILL.md").write_text("Sort the mail.\n")


def fail_backup(home: Path) -> None:
    (home.parent / "in-the-way").write_text("")
    write_settings(f'[backup]\nevery = "1d"\nfolder = "{home.parent}/in-the-way"\n')(home)
    assert mneme(home, "backup").returncode == 1


FAULTS = {
    "settings that aren't TOML": Fault(
        write_settings("[model\n"), "settings", "isn't valid TOML", "mneme config edit"
    ),
    "an unknown option": Fault(
        write_settings("[model]\nchta = 'x'\n"), "settings", "model.chta", "mneme config edit"
    ),
    "a platform without its token": Fault(
        write_settings("[telegram]\nenabled = true\n"),
        "settings",
        "there is no token",
        "mneme config set TELEGRAM_BOT_TOKEN",
    ),
    "a wrong line in secrets.env": Fault(
        write_secrets,
        "settings",
        "line 1 should be NAME=value",
        "${EDITOR:-vi} /",
    ),
    "a folder in place of secrets.env": Fault(
        replace_secrets, "settings", "secrets.env: can't be read", "mv /"
    ),
    "a plugin with a syntax error": Fault(
        break_plugin, "memory diary", "plugins/diary.py cannot be used", "${EDITOR:-vi} /"
    ),
    "a folder that isn't a skill": Fault(
        break_skill,
        "skills",
        "skills/tidy-inbox/SKILL.md, line 1",
        "${EDITOR:-vi} /",
    ),
    "a damaged state.db": Fault(damage, "state.db", "state.db", "mneme check --repair"),
    "a lost state.db with a backup": Fault(
        remove_state, "state.db", "is missing or empty", "mneme restore /"
    ),
    "a state.db of a newer version": Fault(
        change_schema, "state.db", "newer version", "mneme upgrade"
    ),
    "a folder that isn't there": Fault(
        miss_folder, "context files", "nowhere", "mneme config edit"
    ),
    "a file in place of the notes": Fault(
        replace_notes, "memories", "The folder memories/ cannot be used", "mv "
    ),
    "an MCP server that isn't installed": Fault(
        write_settings('[mcp.boats]\ncommand = "no-such-program"\n'),
        "settings",
        "mcp.boats.command",
        "mneme config edit",
    ),
    "a state.db that is a link": Fault(link_state, "privacy", "is a link to", "mv "),
    "an answer that couldn't be sent": Fault(
        in_store(give_up_answer), "outbox", "blocked", "mneme outbox retry"
    ),
    "a message that was set aside": Fault(
        in_store(set_aside), "set aside", "odd", "mneme check --repair"
    ),
    "a backup that fails": Fault(
        fail_backup, "backups", "backup.folder", "mneme config set backup.folder"
    ),
    "backups for a wrong key": Fault(
        write_settings('[backup]\nencrypt_to = "age1xyz"\n'),
        "backups",
        "backup.encrypt_to",
        "mneme config set backup.encrypt_to",
    ),
    "a server that doesn't answer": Fault(
        leave,
        "model",
        "claude-sonnet-5-5, claude-haiku-5-5: The model's server cannot be reached",
        "mneme check",
        (("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", NOBODY)),
    ),
    "a PostgreSQL server that doesn't run": Fault(
        write_settings('[store]\nurl = "postgresql://127.0.0.1:9/mneme"\n'),
        "postgresql",
        "can't be reached",
        "sudo systemctl start postgresql" if SYSTEM == "linux" else "brew services start",
    ),
    "a PostgreSQL server elsewhere that doesn't run": Fault(
        write_settings('[store]\nurl = "postgresql://127.0.0.2:9/mneme"\n'),
        "postgresql",
        "can't be reached",
        "pg_isready --host 127.0.0.2 --port 9",
    ),
    "a memory service that isn't set up": Fault(
        write_settings("[memory.providers.mem0]\nenabled = true\n"),
        "memory mem0",
        "",
        "mneme memory setup mem0",
    ),
}


def load_results(home: Path, subject: str) -> list[dict[str, Any]]:
    """Return the results of `mneme check --json` for a subject."""
    results = json.loads(mneme(home, "check", "--json").stdout)
    return [result for result in results if result["subject"] == subject]


@pytest.mark.parametrize("name", FAULTS)
def test_check_names_the_fault_and_the_command_that_mends_it(home: Path, name: str) -> None:
    fault = FAULTS[name]
    good(home, "remember", "Ana lives in Lisbon")
    fault.break_home(home)
    done = mneme(home, "check", "--json", **dict(fault.variables))
    assert done.returncode == 1
    results = [one for one in json.loads(done.stdout) if one["subject"] == fault.subject]
    wrong = [one for one in results if one["state"] == "wrong"]
    said = " ".join(f"{one['text']} {one['advice']}" for one in wrong)
    assert wrong, done.stdout
    assert fault.text in said
    assert fault.command in said
    assert fault.command in " ".join(one["command"] for one in wrong)
    assert all(one["key"] for one in results)


def test_check_offers_no_repair_of_a_lost_state_db(home: Path) -> None:
    good(home, "remember", "Ana lives in Lisbon")
    remove_state(home)
    (with_backup,) = load_results(home, "state.db")
    assert with_backup["command"].startswith("mneme restore /")
    assert "--repair" not in with_backup["advice"]
    shutil.rmtree(home.with_name("home.backups"))
    (home / "backups.json").unlink()
    (without_backup,) = load_results(home, "state.db")
    assert without_backup["key"] == "store_missing"
    assert without_backup["values"]["path"] == str(home / "state.db")
    assert [without_backup["advice"], without_backup["command"]] == ["", ""]


def test_check_names_a_port_that_another_program_uses_and_the_command_for_another(
    home: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other_program:
        port = other_program.getsockname()[1]
        (home / "mneme.toml").write_text(f"[web]\nenabled = true\nport = {port}\n")
        (result,) = [one for one in load_results(home, "settings") if one["key"] == "port_taken"]
    assert result["state"] == "wrong"
    assert result["text"] == f"Port {port} is in use by another program."
    assert result["command"].startswith("mneme config set web.port ")
    assert result["command"] in result["advice"]
    assert "port_taken" not in {one["key"] for one in load_results(home, "settings")}


@pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
def test_check_on_a_full_disk_names_it_and_lists_its_largest_folders(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    home = disk / "home"
    script = f"""
        set -e; mount -t tmpfs -o size=8m tmpfs {disk}; mkdir -m 700 {home}
        {sys.executable} -m gateway.cli.main remember Ana lives in Lisbon
        dd if=/dev/zero of={disk}/fill bs=64k 2>/dev/null || true
        {sys.executable} -m gateway.cli.main check --json
    """
    environment = {"PATH": os.environ["PATH"], "MNEME_HOME": str(home), "LANG": "C"}
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    results = json.loads(done.stdout.splitlines()[-1])
    (disk_result,) = [result for result in results if result["subject"] == "disk"]
    assert disk_result["state"] == "wrong"
    assert disk_result["text"] == f"The disk that holds {home} is nearly full."
    assert disk_result["command"] == f"du -xhd2 {disk} 2>/dev/null | sort -h | tail -n 20"
    assert disk_result["command"] in disk_result["advice"]


def test_check_with_an_old_sqlite_names_the_command_for_a_newer_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opening, "SQLITE_VERSION", (3, 31, 1))
    result = check_sqlite(ENGLISH)
    assert (result.state, result.text) == ("wrong", "SQLite 3.31.1 is older than 3.37.0.")
    assert "uv venv --clear --seed --managed-python --python 3.13 .venv" in result.command
    assert result.command in result.advice


def test_check_without_the_client_of_postgresql_names_the_command_that_installs_it(
    home: Path,
) -> None:
    (home / "mneme.toml").write_text('[store]\nurl = "postgresql://127.0.0.1:9/mneme"\n')
    script = "import sys; sys.modules['psycopg'] = None; sys.argv = ['mneme', 'check', '--json']\n"
    script += "from gateway.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "MNEME_HOME": str(home), "LANG": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    results = {result["subject"]: result for result in json.loads(done.stdout)}
    assert "a package is missing" in results["postgresql"]["text"]
    assert results["postgresql"]["command"].endswith("pip install 'psycopg[binary]>=3.3,<4'")


@pytest.mark.parametrize(
    ("url", "command"),
    [
        ("postgresql://db.example.org/mneme", "createdb --host db.example.org mneme"),
        (
            "postgresql://ana@db.example.org:5433/my%20notes",
            "createdb --host db.example.org --port 5433 --username ana 'my notes'",
        ),
    ],
)
def test_command_for_a_missing_database_creates_it_on_the_server_of_the_settings(
    home: Path, url: str, command: str
) -> None:
    settings = Settings.load({"MNEME_HOME": str(home)}, own_text=f'[store]\nurl = "{url}"\n')
    assert find_store_command(settings, StoreError("pg_no_database", name="mneme")) == command


def test_password_that_postgresql_refuses_is_set_by_the_name_of_its_variable(home: Path) -> None:
    text = '[store]\nurl = "postgresql://localhost/mneme"\npassword = "MNEME_DB"\n'
    settings = Settings.load({"MNEME_HOME": str(home)}, own_text=text)
    error = StoreError("pg_password", name="mneme")
    assert find_store_command(settings, error) == "mneme config set MNEME_DB"


async def test_check_names_a_refused_token_and_a_refused_key(home: Path) -> None:
    async with BotApi() as telegram, MessagesApi(key=KEY) as model:
        variables = {
            "TELEGRAM_BOT_TOKEN": telegram.token[:-3] + "xyz",
            "MNEME_TELEGRAM_API_URL": telegram.url,
            "ANTHROPIC_API_KEY": "sk-ant-wrong",
            "ANTHROPIC_BASE_URL": model.url,
        }
        done = await asyncio.to_thread(mneme, home, "check", "--json", **variables)
    said = {one["subject"]: f"{one['text']} {one['advice']}" for one in json.loads(done.stdout)}
    assert "mneme setup telegram" in said["telegram"]
    assert "mneme setup model" in said["model"]


async def test_check_probes_each_chat_model_and_each_helper_model(home: Path) -> None:
    def answer(body: dict[str, Any]) -> ModelReply:
        if body["model"] == "claude-haiku-4-5":
            return ModelReply.fail(404, f"model: {body['model']}")
        return ModelReply.say("Hello.")

    async with MessagesApi(answer, key=KEY) as model:
        (home / "mneme.toml").write_text(
            '[model]\nchat = ["claude-sonnet-5-5", "claude-opus-5-5"]\n'
            'helper = ["claude-haiku-5-5", "claude-haiku-4-5"]\n'
        )
        variables = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url}
        done = await asyncio.to_thread(mneme, home, "check", "--json", **variables)
    (finding,) = [part for part in json.loads(done.stdout) if part["subject"] == "model"]
    assert finding["state"] == "wrong"
    text = finding["text"]
    assert "claude-haiku-4-5: The server has no model named claude-haiku-4-5." in text
    for name in ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"):
        assert f"{name} answers at {model.url}." in text
