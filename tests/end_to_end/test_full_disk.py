"""A disk that is full while Mneme runs: everybody is told, nothing is lost, and it goes on once
there is room."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.fixtures.bot_api import BotApi
from tests.fixtures.forked import ROOT
from tests.fixtures.live_system import LiveSystem
from tests.fixtures.mounts import can_mount

# The disk that is full is the one with state.db. On a server, `core/store/postgres/faults.py` reports it.
pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

PERSON = 4242
OTHERS = (5001, 5002)
PATIENCE_S = 5.0
START_S = 30.0
# A line of the log: "2026-11-24T00:54:33.054543Z [error    ] the outbox cannot be written [delivery]".
LOG_EVENT = re.compile(r"\S+Z \[\w+ *\] (.+?)(?: {2,}| \[|$)")


class Disk(ABC):
    """A folder for a home; `shell` runs a script there, and `prepare` is what it begins with."""

    shell: tuple[str, ...] = ("sh", "-c")
    prepare = "true"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pid = 0

    @property
    def seen(self) -> Path:
        """The folder as it is seen from outside of the program."""
        return self.folder

    @abstractmethod
    def full(self) -> contextlib.AbstractContextManager[None]:
        """While it is open, the disk takes nothing more."""


class MountedDisk(Disk):
    """A file system of 8 MB of its own, which something else fills."""

    shell = ("unshare", "-rm", "sh", "-c")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.prepare = f'mount -t tmpfs -o size=8m tmpfs "{folder}"'

    @property
    def seen(self) -> Path:
        return Path(f"/proc/{self.pid}/root{self.folder}")

    @contextmanager
    def full(self) -> Iterator[None]:
        fill = self.seen / "fill"
        with contextlib.suppress(OSError), fill.open("wb", buffering=0) as file:
            for size in (65536, 4096, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass
        yield
        fill.unlink()


class LimitedDisk(Disk):
    """No file of the program may grow or be written any more: that can be had everywhere on
    Linux."""

    @contextmanager
    def full(self) -> Iterator[None]:
        before = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (0, before[1]))
        yield
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, before)


@asynccontextmanager
async def running(disk: Disk, api: BotApi, log: Path) -> AsyncIterator[None]:
    """Mneme with a home on the disk and no model, until it is killed."""
    settings = log.with_name("mneme.toml")
    listed = ", ".join(f'"telegram:{person}"' for person in OTHERS)
    settings.write_text(
        f"[owner]\ntelegram = [{PERSON}]\n[access]\npeople = [{listed}]\n"
        '[general]\nzone = "Europe/Lisbon"\n'
    )
    script = f"""
        set -e; {disk.prepare}; mkdir -m 700 "{disk.folder}/home"; cp "{settings}" "{disk.folder}/home"
        exec "{sys.executable}" -m gateway.cli.main run
    """
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        "MNEME_HOME": f"{disk.folder}/home",
        "TELEGRAM_BOT_TOKEN": api.token,
        "MNEME_TELEGRAM_API_URL": api.url,
    }
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *disk.shell, script, cwd=ROOT, env=environment, stderr=errors
        )
    disk.pid = process.pid
    try:
        await api.wait_for(lambda: bool(api.called("getUpdates")), START_S)
        yield
    finally:
        process.kill()
        await process.wait()


# The limit is for machines that don't let a test mount a disk. Elsewhere it's left to `make sweep`.
LIMIT_MARKS = [
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux"),
    *([pytest.mark.sweep] if can_mount() else []),
]
EVERY_DISK = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            MountedDisk,
            marks=[
                pytest.mark.sweep,
                pytest.mark.skipif(not can_mount(), reason="needs the right to mount"),
            ],
        ),
        pytest.param(LimitedDisk, marks=LIMIT_MARKS),
    ],
)


@EVERY_DISK
async def test_full_disk_is_reported_and_messages_are_answered_once_there_is_space(
    kind: type[Disk], tmp_path: Path
) -> None:
    disk = kind(tmp_path / "disk")
    disk.folder.mkdir()
    async with BotApi() as api, running(disk, api, tmp_path / "log"):

        def told(words: str) -> int:
            return sum(words in text for text in api.texts(PERSON))

        async def until(words: str, patience_s: float = PATIENCE_S) -> None:
            try:
                await api.wait_for(lambda: told(words) > 0, patience_s)
            except TimeoutError:
                log = (tmp_path / "log").read_text(errors="replace")
                raise AssertionError(
                    f"nobody read “{words}”:\n{api.texts(PERSON)}\n{log[-4000:]}"
                ) from None

        api.user_says(PERSON, "/whoami")
        await until("my owner", START_S)
        api.user_says(PERSON, "/remind in 5 seconds water the plants")
        await until("water the plants", START_S)
        with disk.full():
            api.user_says(PERSON, "/title Boats")
            await until("I can't save messages right now")
            api.user_says(PERSON, "/title Ferries")
            polls = len(api.called("getUpdates"))
            await api.wait_for(lambda: len(api.called("getUpdates")) >= polls + 4, START_S)
            assert told("I can't save messages right now") == 1, "not again and again"
            assert told("⏰") == 0
        api.user_says(PERSON, "/title Harbours")
        await until("is now called “Harbours”")
        await until("is now called “Boats”", 0.1)
        await until("⏰ Reminder 1: water the plants")
        assert told("is now called “Ferries”") == told("⏰") == 1


@EVERY_DISK
async def test_each_chat_is_told_once_of_a_full_disk_and_reading_commands_still_work(
    kind: type[Disk], tmp_path: Path
) -> None:
    disk = kind(tmp_path / "disk")
    disk.folder.mkdir()
    log = tmp_path / "log"
    async with BotApi() as api, running(disk, api, log):
        people = (PERSON, *OTHERS)

        def count(person: int, words: str) -> int:
            return sum(words in text for text in api.texts(person))

        async def until(person: int, words: str) -> None:
            try:
                await api.wait_for(lambda: count(person, words) > 0, START_S)
            except TimeoutError:
                tail = log.read_text(errors="replace")[-4000:]
                raise AssertionError(f"no {words}: {api.texts(person)}\n{tail}") from None

        for person in people:
            api.user_says(person, "the harbour is old")
            await api.wait_for(lambda person=person: bool(api.texts(person)), START_S)  # type: ignore[misc]
        before = log.read_text(errors="replace")
        began_at = time.monotonic()
        with disk.full():
            for person in people:
                api.user_says(person, "the ferry is late")
                api.user_says(person, "the ferry is very late")
            for person in people:
                await until(person, "I can't save messages right now")
            api.user_says(PERSON, "/recall harbour")
            await until(PERSON, "1. the harbour is old")
            api.user_says(PERSON, "/status")
            await until(PERSON, "messages to be sent: ")
            polls = len(api.called("getUpdates"))
            await api.wait_for(lambda: len(api.called("getUpdates")) >= polls + 4, START_S)
            assert [count(person, "I can't save messages right now") for person in people] == [
                1
            ] * 3
            assert count(PERSON, "messages to be sent: ") == 1
        new_lines = log.read_text(errors="replace").removeprefix(before).splitlines()
        about_the_disk = [
            match[1] for line in new_lines if "disk" in line and (match := LOG_EVENT.match(line))
        ]
        minutes = 1 + int((time.monotonic() - began_at) // 60)
        assert len(about_the_disk) <= 1 + minutes, "a line a minute"


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
async def test_on_discord_messages_and_commands_wait_for_room(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        discord, disk = live.discord, LimitedDisk(home)
        assert live.process is not None
        disk.pid = live.process.pid

        def told(words: str) -> int:
            return sum(
                words in text for text in discord.said(live.channel, viewer=live.discord_person)
            )

        await live.tells_discord("/whoami")
        await live.until(lambda: told("my owner") == 1)
        with disk.full():
            await live.tells_discord("/title Boats")
            await live.until(lambda: told("I can't save messages right now") == 1, PATIENCE_S)
            await discord.slash(live.channel, live.discord_person, "title", text="Ferries")
            await live.tells_discord("/title Harbours")
        await live.until(lambda: told("is now called “Harbours”") == 1, PATIENCE_S)
        assert (told("is now called “Boats”"), told("is now called “Ferries”")) == (1, 1)
        assert told("I can't save messages right now") == 1, "not again and again"
