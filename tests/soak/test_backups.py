"""A backup is taken every second while people talk to the process, 200 times, and a third of them
are killed in the middle. Each file that is there can be restored, and has every message that was
answered before the backup began.

`SOAK_BACKUPS` in the environment changes the number. The times are printed; ``pytest -rP`` shows
them."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from gateway.upkeep.restoring import RestoreJob
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import good
from tests.fixtures.forked import ROOT, ForkedProcess
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

BACKUPS = int(os.environ.get("SOAK_BACKUPS", "200"))
SEED = int(os.environ.get("SEED", str(random.randrange(100_000))))
# The owner and nine others.
PEOPLE = (PERSON, *range(6001, 6010))
# Every so many backups, the restored home is also opened and asked.
ASKED_EVERY = 20
KEPT = 5
# How long people talk without a backup, to compare the times of answers.
ALONE_S = 30.0
BACKUP_S = 120.0
ANSWER_S = 300.0
OPTIONS = f"""
[access]
people = [{", ".join(f'"telegram:{person}"' for person in PEOPLE)}]
[limits]
turns_per_minute = 100000
[limits.day]
[backup]
keep = {KEPT}
"""


def answer(body: dict[str, Any]) -> ModelReply:
    return ModelReply.say("That is on the list." if body.get("tools") else "Na")


class Talk:
    """People who say their next message when the last one is answered."""

    def __init__(self, live: LiveSystem) -> None:
        self.live = live
        # The texts that were answered, and how long each answer took in seconds.
        self.answered: list[str] = []
        self.answer_times: list[float] = []

    async def run(self, person: int) -> None:
        """Talk until cancelled."""
        number = 0
        while True:
            number += 1
            text = f"Person {person} saw ferry number {number} leave the old harbour."
            said_at = time.monotonic()
            self.live.telegram.user_says(person, text)
            await self.live.until(lambda: self._is_answered(person), ANSWER_S)
            self.answered.append(text)
            self.answer_times.append(time.monotonic() - said_at)
            del self.live.telegram.calls[:], self.live.model.requests[:]

    def _is_answered(self, person: int) -> bool:
        history = self.live.telegram.history.get(person)
        if not history:
            return False
        last = next(reversed(history.values()))
        return bool(last["from"]["is_bot"]) and "on the list" in last.get("text", "")


def start_backup(home: Path) -> ForkedProcess:
    environment = {"PATH": os.environ["PATH"], "MNEME_HOME": str(home)}
    with Path(os.devnull).open("r+b") as nothing:
        log = (home.parent / "backups.log").open("ab")
        with log:
            streams = (nothing.fileno(), nothing.fileno(), log.fileno())
            return ForkedProcess(("backup",), environment, ROOT, streams)


def list_files(home: Path) -> Sequence[Path]:
    return sorted(home.with_name("home.backups").glob("mneme-*"))


def restore(file: Path, folder: Path) -> Path:
    """Restore a backup into a new home, as `mneme restore` does."""
    home = folder / "home"
    home.mkdir(parents=True)
    with RestoreJob(file, home) as job:
        manifest = job.prepare(str)
        job.swap(manifest, SteadyClock().now())
    return home


def read_texts(home: Path) -> set[str]:
    with closing(sqlite3.connect(home / "state.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {text for (text,) in connection.execute("SELECT text FROM messages")}


@pytest.mark.timeout(60 + BACKUPS * 60)
async def test_backup_every_second_under_load_is_restorable_each_time(home: Path) -> None:
    chance = random.Random(SEED)
    print(f"SEED={SEED}")  # noqa: T201  Asked for.
    durations: list[float] = []
    killed = 0
    api = MessagesApi(answer, key=KEY, is_local=True)
    async with LiveSystem.open(home, api, OPTIONS, is_loop_watched=False) as live:
        await live.start(is_fresh=True)
        talk = Talk(live)
        talking = [asyncio.create_task(talk.run(person)) for person in PEOPLE]
        await live.until(lambda: len(talk.answered) > len(PEOPLE), ANSWER_S)
        await asyncio.sleep(ALONE_S)
        times_alone = talk.answer_times[len(PEOPLE) :]
        for number in range(BACKUPS):
            before = set(list_files(home))
            answered = list(talk.answered)
            began_s = time.monotonic()
            process = start_backup(home)
            is_killed = bool(durations) and chance.random() < 1 / 3
            if is_killed:
                await asyncio.sleep(chance.random() * median(durations))
                process.send_signal(signal.SIGKILL)
                killed += 1
            code = await asyncio.to_thread(process.wait, BACKUP_S)
            assert is_killed or code == 0, (home.parent / "backups.log").read_text()
            if not is_killed:
                durations.append(time.monotonic() - began_s)
            new = set(list_files(home)) - before
            assert is_killed or len(new) == 1
            for file in new:
                folder = home.parent / f"restored{number}"
                restored = await asyncio.to_thread(restore, file, folder)
                texts = await asyncio.to_thread(read_texts, restored)
                assert [text for text in answered if text not in texts] == []
                if number % ASKED_EVERY == 0:
                    recalled = await asyncio.to_thread(good, restored, "recall", "old harbour")
                    assert "ferry number" in recalled
                shutil.rmtree(folder)
            await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began_s)))
        times_beside = talk.answer_times[len(PEOPLE) + len(times_alone) :]
        for task in talking:
            assert not task.done(), task.exception()
            task.cancel()
        await asyncio.wait(talking)
        assert await live.stop() == 0
        assert live.query("PRAGMA integrity_check") == [("ok",)]
    # After the last one that ended, nothing half is left.
    good(home, "backup")
    assert not list(home.with_name("home.backups").glob(".mneme-*.partial"))
    assert len(list_files(home)) <= KEPT
    slowest = max(durations)
    print(  # noqa: T201  Asked for.
        f"{BACKUPS} backups, {killed} killed, {len(talk.answered)} messages answered; "
        f"a backup took {median(durations):.2f} s (median), {slowest:.2f} s at most; an answer "
        f"took {median(times_beside):.2f} s beside backups, {median(times_alone):.2f} s alone"
    )
