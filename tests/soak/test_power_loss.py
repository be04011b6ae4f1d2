"""The power fails again and again: what was not synced is gone or there in part. What Mneme has
confirmed is there all the same, and state.db is whole."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from core.store.sqlite.schema import register_functions
from tests.fixtures.kill_storm import TOKEN, KillStorm, answer_all
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.power_loss import Disk, find_compiler

CUTS = 75
WRITER = """
import os, sys
folder = sys.argv[1]
def write(name, text, is_synced):
    with open(f"{folder}/{name}", "a") as file:
        file.write(text)
        file.flush()
        if is_synced:
            os.fsync(file.fileno())
write("unsynced", "u" * 5000, False)
os.rename(f"{folder}/old", f"{folder}/new")
write("synced", "s" * 5000, True)
write("synced", "t" * 5000, False)
os.unlink(f"{folder}/kept")
"""

pytestmark = pytest.mark.skipif(
    find_compiler() is None, reason="The simulation needs a C compiler, and there is none here."
)


def test_simulated_power_loss_keeps_synced_bytes_and_drops_unsynced_ones_at_random(
    tmp_path: Path,
) -> None:
    results: dict[str, set[int | None]] = {}
    for seed in range(20):
        folder, scratch = tmp_path / f"{seed}", tmp_path / f"{seed}-scratch"
        folder.mkdir()
        scratch.mkdir()
        for name in ("old", "kept"):
            (folder / name).write_text(name)
        disk = Disk(folder, scratch, seed)
        disk.remember()
        command = (sys.executable, "-c", WRITER, str(folder))
        subprocess.run(command, check=True, env=disk.variables)
        disk.cut_power()
        assert not (folder / "old").exists()
        assert (folder / "new").read_text() == "old"
        assert (folder / "synced").read_text().startswith("s" * 5000)
        for name in ("unsynced", "synced", "kept"):
            path = folder / name
            size = path.stat().st_size if path.exists() else None
            results.setdefault(name, set()).add(size)
    assert results == {"unsynced": {0, 5000}, "synced": {5000, 10_000}, "kept": {4, None}}


class FailingPower(LiveSystem):
    """A kill is a power loss. `wrong` says what state.db lacked after one."""

    disk: Disk

    def use_disk(self, scratch: Path, seed: int) -> None:
        scratch.mkdir()
        self.disk = Disk(self.home, scratch, seed)
        self.copy = scratch / "copy"
        self.confirmed_count = 0
        self.wrong: list[str] = []

    async def start(self, *, is_fresh: bool = True, **more: str) -> None:
        self.disk.remember()
        await super().start(is_fresh=True, **more, **self.disk.variables)

    async def kill(self) -> None:
        if self.is_gone:
            return
        await super().kill()
        self.disk.cut_power()
        confirmed = self._list_confirmed()
        self.confirmed_count += len(confirmed)
        stored = self._read_stored()
        self.wrong += [f"{token} was lost" for token in confirmed if token not in stored]

    def _list_confirmed(self) -> set[str]:
        """The messages that Telegram no longer has, and those whose answers are shown."""
        history = self.telegram.history.get(PERSON, {}).values()
        waiting = " ".join(str(update) for update in self.telegram.updates)
        written = " ".join(message["text"] for message in history if not message["from"]["is_bot"])
        shown = [*self.telegram.texts(PERSON), *self.discord.said(self.channel), *self.printed]
        confirmed = set(TOKEN.findall(written)) - set(TOKEN.findall(waiting))
        return confirmed | set(TOKEN.findall(" ".join(shown)))

    def _read_stored(self) -> set[str]:
        """The messages in a copy of state.db, so that Mneme itself opens the file first."""
        shutil.rmtree(self.copy, ignore_errors=True)
        self.copy.mkdir()
        for path in self.home.glob("state.db*"):
            shutil.copy(path, self.copy / path.name)
        with closing(sqlite3.connect(self.copy / "state.db")) as connection:
            register_functions(connection)
            damage = connection.execute("PRAGMA integrity_check").fetchall()
            if damage != [("ok",)]:
                self.wrong.append(f"state.db is damaged: {damage}")
            rows = connection.execute(
                "SELECT text FROM messages WHERE role = 'user' UNION ALL "
                "SELECT inbound FROM inbox UNION ALL SELECT raw FROM raw_updates"
            )
            return set(TOKEN.findall(" ".join(text for (text,) in rows)))


@pytest.mark.timeout(3000)
async def test_power_losses_lose_nothing_that_was_confirmed(home: Path, tmp_path: Path) -> None:
    async with FailingPower.open(home, MessagesApi(answer_all, key=KEY)) as live:
        assert isinstance(live, FailingPower)
        live.use_disk(tmp_path / "scratch", seed=26)
        storm = KillStorm(live=live, seed=2026)
        await storm.blow(CUTS)
        print(  # noqa: T201  The figures are asked for.
            f"{CUTS} power losses, {live.disk.lost_bytes:,} bytes not synced, "
            f"{live.confirmed_count:,} confirmed messages looked for"
        )
        assert live.wrong == []
        assert live.disk.lost_bytes > 0
        await storm.assert_whole()
