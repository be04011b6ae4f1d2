"""The first hour with Mneme: from nothing to a bot on two platforms, with a backup and a restore.

Everything is a real process. The blocks of docs/first-hour.md are what a person saw here. To write
them again: ``MNEME_WRITE_DOCS=1 make test TESTS=tests/end_to_end/test_first_hour.py``.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.bot_api import BotApi
from tests.fixtures.command_line import process
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.forked import ROOT, ForkedProcess
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.scripted_terminal import open_terminal
from tests.fixtures.transcript import clean, cut, fill_blocks

# The hour ends with a backup and its restore, which contain state.db.
pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

PERSON = 4242
KEY = "sk-ant-first-hour"
OLD_TEXT = "The kayak is in the shed"
DONE = "Done"
REMIND = "/remind in 2 seconds water the plants"
DOCUMENT = ROOT / "docs" / "first-hour.md"


def answer(body: dict[str, Any]) -> ModelReply:
    if not body.get("tools"):
        return ModelReply.say("[]")
    text = str(body["messages"][-1]["content"])
    return ModelReply.say("Hello Ana." if "it's me" in text else "Noted.")


class FirstHour:
    """A home, its doubles, and all that was shown."""

    def __init__(self, home: Path, environ: dict[str, str], person: str, channel: str) -> None:
        self.home = home
        # The owner on Discord, and the direct channel with the bot.
        self.person = person
        self.channel = channel
        self.environ = environ
        # What was shown, by the blocks of the document.
        self.parts: dict[str, str] = {}
        self.gateway: ForkedProcess | None = None

    def keep(self, part: str, shown: str) -> None:
        """Add what was shown to a part of the document."""
        text = clean(shown, str(self.home.parent))
        self.parts[part] = f"{self.parts[part]}\n\n{text}" if part in self.parts else text

    async def run(self, *arguments: str, part: str = "", stdin: str = "") -> str:
        """Run a command of the shell. No key and no token is in its environment.

        What it prints belongs to a part of the document, if one is named.
        """
        done = await asyncio.to_thread(process, self.home.parent, arguments, stdin, self.environ)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        if part:
            self.keep(part, f"$ mneme {' '.join(arguments)}\n{done.stdout}")
        return done.stdout

    async def start(self) -> None:
        """Start ``mneme run`` with nothing but the addresses of the doubles in its environment."""
        with open(os.devnull, "r+b") as null, (self.home / "process.log").open("ab") as log:  # noqa: ASYNC230
            streams = (null.fileno(), log.fileno(), log.fileno())
            self.gateway = await asyncio.to_thread(
                ForkedProcess, ("run",), self.environ, ROOT, streams
            )

    async def stop(self, number: int = signal.SIGTERM) -> None:
        if self.gateway is not None and self.gateway.poll() is None:
            self.gateway.send_signal(number)
            await asyncio.to_thread(self.gateway.wait, 60.0)
        self.gateway = None


async def set_up(hour: FirstHour, telegram: BotApi, discord: DiscordApi) -> None:
    """Answer the wizard. The owner is who writes to the bots."""
    person, channel = hour.person, hour.channel
    async with open_terminal(hour.home, "setup", environ=hour.environ) as terminal:
        await terminal.answer("Your time zone", "")
        await terminal.answer("Number", "1")
        await terminal.answer("(hidden)", KEY)
        await terminal.answer("The model's name", "")
        await terminal.expect("and is now the model.")
        await terminal.answer("Use Telegram?", "y")
        await terminal.answer("(hidden)", telegram.token)
        await terminal.expect("Write anything to @mneme_bot now")
        telegram.user_says(PERSON, "it's me")
        await terminal.answer("Is that you?", "y")
        await terminal.answer("Use Discord?", "y")
        await terminal.answer("(hidden)", discord.token)
        await terminal.answer("Let Mneme read messages in servers", "n")
        await terminal.expect("Write a direct message to")
        await discord.wait_connected()
        await discord.user_says(channel, "it's me", person)
        await terminal.answer("Is that you?", "y")
        await terminal.answer("Show what Mneme knows on a page", "n")
        await terminal.answer("Back up every day?", "y")
        await terminal.answer("The folder for backups", str(hour.home.parent / "backups"))
        await terminal.answer("Run Mneme in the background", "n")
        assert await terminal.end() == 0
    sections = ("Time zone", "Telegram", "Discord", "Earlier conversations", "")
    for start, end in pairwise(sections):
        hour.keep(f"setup: {start}", cut(terminal.transcript, start, end))


async def use_platforms(hour: FirstHour, telegram: BotApi, discord: DiscordApi) -> None:
    """Both first messages are answered; a reminder comes and is ticked off with its button."""
    person, channel = hour.person, hour.channel
    await telegram.wait_for(lambda: "Hello Ana." in telegram.texts(PERSON), 90.0)
    await discord.wait_for(lambda: "Hello Ana." in discord.said(channel), 90.0)
    telegram.user_says(PERSON, REMIND)
    await telegram.wait_for(lambda: bool(find_reminder(telegram)), 90.0)
    reminder = find_reminder(telegram)
    telegram.user_presses(PERSON, reminder["message_id"], DONE)
    await telegram.wait_for(
        lambda: any("Done: “water the plants”" in text for text in telegram.texts(PERSON)), 90.0
    )
    keep_reminder(hour, telegram, reminder)
    await discord.user_says(channel, "My bicycle is green.", person)
    await discord.wait_for(lambda: "Noted." in discord.said(channel), 90.0)


def find_reminder(telegram: BotApi) -> dict[str, Any]:
    """Return the reminder that was delivered: the message with the words and a button, or {}."""
    for message in telegram.messages(PERSON):
        if "water the plants" in message["text"] and DONE in str(message.get("reply_markup")):
            return message
    return {}


def keep_reminder(hour: FirstHour, telegram: BotApi, reminder: dict[str, Any]) -> None:
    """Keep what the person wrote, pressed and saw in Telegram, with the buttons in brackets."""
    rows = reminder["reply_markup"]["inline_keyboard"]
    buttons = " ".join(f"[{button['text']}]" for row in rows for button in row)
    texts = telegram.texts(PERSON)
    promise, done = texts[texts.index("Hello Ana.") + 1], texts[-1]
    lines = [f"Ana: {REMIND}", f"Mneme: {promise}", f"Mneme: {reminder['text']}", buttons]
    hour.keep("reminder", "\n".join([*lines, f"Ana presses [{DONE}]", f"Mneme: {done}"]))


async def chat_beside(hour: FirstHour) -> None:
    async with open_terminal(hour.home, "chat", environ=hour.environ) as terminal:
        await terminal.expect("claude-sonnet-5-5 answers.")
        await terminal.expect(">")
        terminal.type("The safe code word is zanzibar.")
        await terminal.expect("Noted.")
        await terminal.expect(">")
        terminal.type("/quit")
        assert await terminal.end() == 0
        hour.keep("chat", terminal.transcript)


async def forget_and_restore(hour: FirstHour) -> None:
    """A backup is restored, and what was forgotten since it was made doesn't come back."""
    (hour.home.parent / "pass").write_text("correct horse battery\n")
    part = "restore"
    await hour.run("recall", "zanzibar")
    words = "correct horse battery\n"
    told = await hour.run("backup", "--encrypt", "passphrase", part=part, stdin=words)
    file = re.search(r"/\S+backups/\S+", told)
    assert file is not None, told
    await hour.run("forget", "zanzibar", "--yes", part=part)
    await hour.stop()
    key = str(hour.home.parent / "pass")
    await hour.run("restore", file[0], "--key", key, "--yes", part=part)
    await hour.start()
    assert "code word" not in await hour.run("recall", "zanzibar", part=part)
    assert "bicycle" in await hour.run("recall", "bicycle")


async def expire_old_messages(hour: FirstHour, channels: Callable[[], list[str]]) -> None:
    """Messages of long ago are kept for a year only. The owner is told a day before.

    `channels` returns the texts in the owner's chats.
    """
    line = {"session": "old", "role": "user", "text": OLD_TEXT, "at": "2020-05-03T09:00:00Z"}
    (hour.home.parent / "old.jsonl").write_text(json.dumps(line))
    await hour.run("import", str(hour.home.parent / "old.jsonl"))
    assert OLD_TEXT in await hour.run("recall", "kayak")
    await hour.run("config", "set", "retention.days", "365", part="retention")
    await hour.stop()
    await hour.start()
    await wait_until(lambda: any("I erase messages that are older" in each for each in channels()))
    notice = next(text for text in channels() if "I erase messages that are older" in text)
    hour.keep("retention", notice)
    assert OLD_TEXT in await hour.run("recall", "kayak")
    await hour.stop()
    let_a_day_pass(hour.home)
    await hour.start()
    while "Nothing found" not in await hour.run("recall", "kayak"):  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    await hour.run("recall", "kayak", part="retention: after")
    assert "bicycle" in await hour.run("recall", "bicycle")


def let_a_day_pass(home: Path) -> None:
    """Move the announcement of the retention two days back."""
    with closing(sqlite3.connect(home / "state.db")) as connection, connection:
        statement = "SELECT value FROM state_meta WHERE key = 'retention_announced'"
        value = json.loads(connection.execute(statement).fetchone()[0])
        value["at"] = (datetime.fromisoformat(value["at"]) - timedelta(days=2)).isoformat()
        connection.execute(
            "UPDATE state_meta SET value = ? WHERE key = 'retention_announced'",
            (json.dumps(value),),
        )


async def wait_until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not is_true():  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def print_unit(hour: FirstHour) -> str:
    """Print the unit of the service. In the document, the command is the one of an installation."""
    unit = await hour.run("service", "install", "--print")
    shown = re.sub("(?m)^ExecStart=.*", "ExecStart=… run", unit)
    hour.keep("service", f"$ mneme service install --print\n{shown}")
    return unit


def check_unit(unit: str, folder: Path) -> None:
    """The unit of the service is accepted by systemd, where it is installed."""
    assert "NoNewPrivileges=true" in unit
    if shutil.which("systemd-analyze"):
        (folder / "mneme.service").write_text(unit)
        arguments = ["systemd-analyze", "verify", "--man=no", str(folder / "mneme.service")]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        assert "mneme.service:" not in done.stderr, done.stderr


@pytest.mark.sweep
@pytest.mark.timeout(600)
async def test_first_hour_from_nothing_to_a_restored_backup(home: Path) -> None:
    model = MessagesApi(answer, key=KEY)
    async with BotApi() as telegram, DiscordApi() as discord, model:
        telegram.person(PERSON, "Ana")
        environ = {
            "PATH": os.environ["PATH"],
            "TZ": "Europe/Lisbon",
            "MNEME_HOME": str(home),
            "ANTHROPIC_BASE_URL": model.url,
            "MNEME_TELEGRAM_API_URL": telegram.url,
            "MNEME_DISCORD_API_URL": discord.rest_url,
            "MNEME_DISCORD_GATEWAY_URL": discord.gateway_url,
        }
        person = discord.user("Ana")
        hour = FirstHour(home, environ, person, discord.dm(person))
        try:
            await set_up(hour, telegram, discord)
            await hour.start()
            await use_platforms(hour, telegram, discord)
            await chat_beside(hour)
            status = await hour.run("status", part="status")
            assert "telegram: connected" in status
            assert "discord: connected" in status
            await forget_and_restore(hour)
            chat, channel = PERSON, hour.channel
            await expire_old_messages(hour, lambda: [*telegram.texts(chat), *discord.said(channel)])
            await hour.run("check", part="check")
            check_unit(await print_unit(hour), home.parent)
        finally:
            await hour.stop(signal.SIGKILL)
        assert discord.violations == []
        assert telegram.violations == []
    check_document(hour.parts, home.parent)


def check_document(parts: Mapping[str, str], folder: Path) -> None:
    """The blocks of the document are what was shown. The one that should be there is in `folder`."""
    document = DOCUMENT.read_text("utf-8")
    expected = fill_blocks(document, parts)
    (folder / DOCUMENT.name).write_text(expected)
    if os.environ.get("MNEME_WRITE_DOCS"):
        DOCUMENT.write_text(expected)
    assert document == expected
