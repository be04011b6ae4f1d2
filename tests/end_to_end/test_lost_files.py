"""state.db or its log is removed, replaced or cut off while Mneme runs: nothing that it says is kept is
lost."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.fixtures.command_line import process
from tests.fixtures.live_system import PERSON, LiveSystem
from tests.fixtures.sweeps import keep_first

# A server's files aren't in the home.
pytestmark = [pytest.mark.slow, pytest.mark.sqlite]


def stored_texts(home: Path) -> list[str]:
    """What a new process would find."""
    with closing(sqlite3.connect(home / "state.db")) as connection:
        return [
            row[0] for row in connection.execute("SELECT text FROM messages WHERE role = 'user'")
        ]


async def say(live: LiveSystem, text: str) -> None:
    """Say something on Telegram, and wait for the model's answer."""
    live.tells_telegram(text)
    await live.until(
        lambda: any(f"You said: {text}" in said for said in live.telegram.texts(PERSON))
    )


async def test_message_after_the_log_was_removed_survives_a_kill(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        await say(live, "The harbour is old.")
        (home / "state.db-wal").unlink()
        await say(live, "The ferry is new.")
        await live.kill()
        assert stored_texts(home) == ["The harbour is old.", "The ferry is new."]
        await live.start()
        await say(live, "The bakery is closed.")
        assert await live.stop() == 0
    assert len(stored_texts(home)) == 3


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
async def test_log_removed_while_nobody_writes_is_saved_and_the_owner_is_told(
    home: Path, suffix: str
) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        await say(live, "The harbour is old.")
        (home / f"state.db{suffix}").unlink()
        await live.until(
            lambda: any(
                "removed the log of state.db" in text for text in live.telegram.texts(PERSON)
            )
        )
        await live.kill()
        assert stored_texts(home) == ["The harbour is old."]


async def test_message_after_the_index_of_the_log_was_removed_survives_another_process_and_a_kill(
    home: Path, tmp_path: Path
) -> None:
    """Without the common index, the two processes don't see each other's locks."""
    history = tmp_path / "history.jsonl"
    line = {
        "session": "s",
        "role": "user",
        "text": "The ship is old.",
        "at": "2026-05-03T09:00:00Z",
    }
    history.write_text(json.dumps(line))
    async with LiveSystem.open(home) as live:
        await live.start()
        await say(live, "The harbour is old.")
        (home / "state.db-shm").unlink()
        await say(live, "The ferry is new.")
        environ = {"MNEME_HOME": str(home)}
        result = await asyncio.to_thread(process, home, ("import", str(history)), b"", environ)
        assert result.returncode == 0, result.stderr
        await say(live, "The bakery is closed.")
        await live.kill()
        said = ["The harbour is old.", "The ferry is new.", "The ship is old."]
        assert stored_texts(home) == [*said, "The bakery is closed."]


def cut_off(path: Path, *, pages: int) -> None:
    os.truncate(path, pages * 4096)


def replace(path: Path) -> None:
    """Put a copy in the place of a file, as a program that restores a backup does."""
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)


@pytest.mark.parametrize(
    "harm",
    keep_first(2, [*(partial(cut_off, pages=pages) for pages in (0, 3, 40)), Path.unlink, replace]),
    ids=["cut off before page 1", "cut off after 3", "cut off after 40", "removed", "replaced"],
)
async def test_file_that_is_cut_off_or_gone_ends_neither_the_process_nor_the_message(
    home: Path, harm: Callable[[Path], None]
) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        await say(live, "The harbour is old.")
        backup = home.with_name("backup.db")
        with (
            closing(sqlite3.connect(home / "state.db")) as source,
            closing(sqlite3.connect(backup)) as target,
        ):
            source.backup(target)
            source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await say(live, "The bakery is closed.")
        harm(home / "state.db")
        live.tells_telegram("The ferry is new.")
        live.tells_telegram("/recall harbour")
        await live.until(
            lambda: any(
                "was removed, replaced or cut off" in text for text in live.telegram.texts(PERSON)
            )
        )
        polls = len(live.telegram.called("getUpdates"))
        await live.until(lambda: len(live.telegram.called("getUpdates")) > polls + 3)
        assert not live.is_gone
        assert not any(
            "saved" in text for text in live.telegram.texts(PERSON)[1:] if "Your" in text
        )
        await live.kill()
        for name in ("state.db", "state.db-wal", "state.db-shm"):
            (home / name).unlink(missing_ok=True)
        backup.rename(home / "state.db")
        await live.start()
        await live.until(
            lambda: any(
                "You said: The ferry is new." in text for text in live.telegram.texts(PERSON)
            )
        )
        assert await live.stop() == 0


async def test_file_that_another_program_vacuums_is_not_taken_for_cut_off(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        await say(live, "The harbour is old.")
        script = (
            "CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(3000000)); "
            "DROP TABLE filler; PRAGMA wal_checkpoint(TRUNCATE); VACUUM; "
            "PRAGMA wal_checkpoint(TRUNCATE);"
        )
        await asyncio.to_thread(
            subprocess.run,
            ["sqlite3", "-cmd", ".timeout 5000", str(home / "state.db"), script],
            check=True,
        )
        await say(live, "The ferry is new.")
        assert await live.stop() == 0
    assert stored_texts(home) == ["The harbour is old.", "The ferry is new."]
