"""The command line in this process: words without quotes, options anywhere, limits, scopes, where a
reminder goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from filelock import FileLock

from config.settings import Settings
from core.types import Account, Address, Message, Scope, Sender, Session
from gateway.services import Services
from tests.fixtures.command_line import invoked

pytestmark = pytest.mark.slow

AT = datetime(2026, 5, 3, 9, tzinfo=UTC)
EVIL = "Ana\x1b]0;owned\x07\n\u202eowner"
TAMED = "Ana]0;owned owner"


@dataclass(frozen=True)
class Mneme:
    """Commands in a home. No process of its own: what is asked of streams and signals is in
    test_cli_streams.py."""

    home: Path

    def __call__(
        self, *arguments: str, is_good: bool = True, environ: Mapping[str, str] | None = None
    ) -> str:
        done = invoked(arguments, environ=environ)
        said = done.stdout + done.stderr
        assert (done.returncode == 0) is is_good, said
        return said

    def code(self, *arguments: str) -> tuple[int, str]:
        done = invoked(arguments)
        return done.returncode, done.stderr

    def inside(self, work: Callable[[Services], Awaitable[None]]) -> None:
        async def visit() -> None:
            async with Services.open(Settings.load({"MNEME_HOME": str(self.home)})) as services:
                await work(services)

        asyncio.run(visit())


@pytest.fixture
def mneme(home: Path) -> Mneme:
    return Mneme(home)


async def said(
    services: Services,
    address: Address,
    scope: Scope,
    text: str,
    *,
    name: str = "Ana",
    title: str = "",
) -> int:
    """A conversation somewhere with one message; its number."""
    session = await services.conversations.create(
        Session(address=address, scope=scope, started_at=AT)
    )
    sender = Sender(id="1", name=name)
    message = Message(role="user", text=text, session_id=session.id, created_at=AT, sender=sender)
    await services.conversations.append([message])
    if title:
        await services.conversations.retitle(session.id, title)
    return session.id


def test_command_line_accepts_unquoted_trailing_words_and_options_at_any_position(
    mneme: Mneme,
) -> None:
    async def work(services: Services) -> None:
        place = Address(platform="terminal", chat_id="local")
        await said(services, place, Scope.account("terminal", "local"), "the ferry to Lisbon")

    mneme.inside(work)
    found = json.loads(mneme("recall", "ferry", "--limit", "5", "to", "Lisbon", "--json"))
    assert (found["query"], len(found["sessions"])) == ("ferry to Lisbon", 1)
    assert "Noted: “Ana likes tea”" in mneme("memory", "add", "user:", "Ana", "likes", "tea")
    assert "Now noted: “Ana likes mate”" in mneme(
        "memory", "replace", "likes tea", "Ana", "likes", "mate"
    )
    assert json.loads(mneme("memory", "--json")) == {"memory": [], "user": ["Ana likes mate"]}
    assert "Removed" in mneme("memory", "remove", "likes", "mate")
    planned = mneme("remind", "tomorrow", "at", "9", "call", "Ana")
    assert planned.startswith("Reminder 1 is set for ")
    assert planned.endswith(": “call Ana” (in the terminal)\n")
    (job,) = json.loads(mneme("cron", "--json"))
    assert (job["text"], job["target"]) == ("call Ana", "terminal:local")


@pytest.mark.parametrize(
    "arguments",
    [
        ("recall", "x", "--limit", "0"),
        ("recall", "x", "--limit", "11"),
        ("recall", "x", "--messages", "-1"),
        ("recall", "in:1", "around:1", "--window", "101"),
        ("recall", "x", "--scope", "everyone"),
        ("recall", "x", "--scope", "account:telegram:"),
        ("recall", "x", "--scope", "account:tele gram:1"),
        ("memory", "--scope", "room:discord"),
        ("cron", "--json", "pause", "1"),
        ("memory", "--scope", "account:telegram:1", "add", "x"),
    ],
)
def test_senseless_arguments_are_a_usage_error_and_create_nothing(
    mneme: Mneme, arguments: tuple[str, ...]
) -> None:
    code, error = mneme.code(*arguments)
    assert code == 2
    assert "Error: " in error
    assert not (mneme.home / "state.db").exists()


def test_reminder_from_the_shell_goes_to_the_owners_last_used_connected_chat(mneme: Mneme) -> None:
    (mneme.home / "mneme.toml").write_text(
        '[owner]\ntelegram = [42]\ndiscord = [7]\nrooms = ["telegram:-5"]\n'
    )
    line = {
        "session": "old",
        "role": "user",
        "text": "mum",
        "at": "2026-06-01",
        "platform": "telegram",
        "chat": "99",
    }

    async def work(services: Services) -> None:
        await said(
            services,
            Address(platform="telegram", chat_id="42"),
            Scope.account("telegram", "42"),
            "hello",
        )
        await said(
            services,
            Address(platform="discord", chat_id="700"),
            Scope.account("discord", "7"),
            "hello",
        )
        await said(
            services,
            Address(platform="telegram", chat_id="-5"),
            Scope.group("telegram", "-5"),
            "hello all",
        )

    mneme.inside(work)
    (mneme.home / "old.jsonl").write_text(json.dumps(line))
    mneme("import", str(mneme.home / "old.jsonl"))
    telegram, discord = {"TELEGRAM_BOT_TOKEN": "1:x"}, {"DISCORD_BOT_TOKEN": "x"}
    add = ("cron", "add", "tomorrow", "at", "9", "call", "Ana")
    assert mneme(*add).endswith("(in the terminal)\n")
    assert mneme(*add, environ=telegram).endswith("(on Telegram)\n")
    assert mneme(*add, environ=discord).endswith("(on Discord)\n")
    jobs = json.loads(mneme("cron", "list", "--json"))
    assert [job["target"] for job in jobs] == ["terminal:local", "telegram:42", "discord:700"]
    assert {job["scope"] for job in jobs} == {
        "account:terminal:local",
        "account:telegram:42",
        "account:discord:7",
    }


def test_a_reminder_that_is_due_waits_for_a_mneme_that_runs(mneme: Mneme) -> None:
    mneme("cron", "add", "every", "monday", "at", "8:30", "stand-up")
    out = mneme("cron", "run", "1")
    assert "Due now" in out
    assert "is not running" in out
    with FileLock(mneme.home / "gateway.lock"):
        out = mneme("cron", "run", "1")
    assert "Due now" in out
    assert "is not running" not in out


def test_control_characters_of_other_people_are_stripped_in_the_terminal(mneme: Mneme) -> None:
    number = 0

    async def work(services: Services) -> None:
        nonlocal number
        place, scope = (
            Address(platform="terminal", chat_id="local"),
            Scope.account("terminal", "local"),
        )
        text = "first \x1b[2J line\n" + "long " * 100 + "end"
        number = await said(services, place, scope, text, name=EVIL, title=EVIL)
        await services.people.request_pairing(
            Account(platform="telegram", user_id="5"), EVIL, services.clock.now()
        )

    mneme.inside(work)
    shown = mneme("recall", f"in:{number}")
    assert f"{TAMED}: first [2J line {'long ' * 100}end\n" in shown
    assert TAMED in mneme("recall", "line")
    marked = "Ana\u2039U+001B\u203a]0;owned\u2039U+0007\u203a \u2039U+202E\u203aowner"
    assert mneme("approve").endswith(f"{marked} (⚠ invisible characters; Telegram, id 5)\n")
    mneme("cron", "add", "tomorrow", "at", "9", "call", EVIL)
    for command in (("cron",), ("recall",), ("recall", f"in:{number}")):
        out = mneme(*command)
        assert "owned" in out
        assert not set("\x1b\x07\u202e") & set(out)
    (known,) = json.loads(mneme("sessions", "list", "--json"))
    assert known["title"] == EVIL


def test_check_repair_rebuilds_the_search_indexes(mneme: Mneme) -> None:
    async def work(services: Services) -> None:
        place, scope = (
            Address(platform="terminal", chat_id="local"),
            Scope.account("terminal", "local"),
        )
        await said(services, place, scope, "the ferry")
        statement = "INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')"
        await services.database.write(lambda connection: connection.execute(statement).close())
        assert await services.recall.verify()

    mneme.inside(work)
    findings = {
        finding["subject"]: finding for finding in json.loads(mneme("check", "--repair", "--json"))
    }
    assert findings["repair"]["text"] == "The text indexes were rebuilt from 1 message."
    assert findings["search index"]["state"] == "right"
    assert "ferry" in mneme("recall", "ferry")


def test_check_of_a_damaged_database_advises_restoring_a_backup(mneme: Mneme) -> None:
    (mneme.home / "state.db").write_bytes(b"this is no database" * 100)
    findings = json.loads(mneme("check", "--json", is_good=False))
    (wrong,) = [finding for finding in findings if finding["state"] == "wrong"]
    assert wrong["text"].endswith("is damaged: file is not a database")
    assert "restore a backup" in wrong["advice"]
    code, error = mneme.code("recall", "x")
    assert (code, error.count("\n")) == (1, 1)


def test_memory_command_fails_with_one_sentence_if_a_file_is_in_place_of_the_notes_folder(
    mneme: Mneme,
) -> None:
    (mneme.home / "memories").touch()
    assert "MEMORY.md cannot be read (Not a directory)" in mneme("memory", "list")
    code, error = mneme.code("memory", "add", "x")
    assert (code, error.count("\n")) == (1, 1)
    assert "memories" in error


def test_shell_commands_accept_the_same_words_as_chat_commands(mneme: Mneme) -> None:
    assert mneme("remind", "2026-12-01", "10:00", "call", "Ana").startswith(
        "Reminder 1 is set for "
    )
    doubt = mneme("remind", "tomorrow at 5 feed the cat", is_good=False)
    assert "17:00" in doubt, "who is not there to answer reads what was understood"
    assert "1 active" in mneme("status")
    assert "17:00" in mneme("remind", "tomorrow at 5 feed the cat", "--yes")
    mneme("cron", "remove", "2")
    asks = mneme("cron", "add", "every monday at 8:30 what is open?")
    assert asks.startswith("Scheduled question 3 is set for ")
    assert "asks me: what is open?" in mneme("cron")
    mneme("cron", "remove", "3")
    mneme("memory", "add", "likes", "tea")
    assert "Now noted: “likes mate”" in mneme("memory", "replace", "tea => likes mate")
    mneme("remember", "Ana", "lives", "in", "Porto")
    assert mneme("facts", "Ana").startswith("f1: Ana lives in Porto")
    assert mneme("facts", "zeppelin") == "I know nothing about “zeppelin”.\n"
    assert "I know nothing about “zeppelin” here. mneme memory facts lists what I know." in mneme(
        "memory", "facts", "zeppelin"
    )
    assert "Pinned." in mneme("memory", "pin", "f1")
    assert "Before: Ana lives in Porto" in mneme(
        "memory", "correct", "f1", "Ana", "lives", "in", "Faro"
    )
    assert "Undone. " in mneme("memory", "undo", "f1")
    code, error = mneme.code("memory", "why", "f9")
    assert (code, error) == (1, "There's no fact f9 here. mneme memory facts lists them.\n")
    assert "erase it permanently" in mneme("memory", "forget", "f1", is_good=False)
    assert "Forgotten" in mneme("memory", "forget", "f1", "--yes")
    assert mneme("facts") == "Nothing yet.\n"


def test_help_option_has_a_short_form_and_completion_is_a_command(mneme: Mneme) -> None:
    for command in ((), ("memory",), ("cron", "add")):
        assert mneme(*command, "-h") == mneme(*command, "--help")
    for option in ("completion", "--version"):
        assert option in mneme("-h")
