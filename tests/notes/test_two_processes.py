"""Notes written by several processes at once, and by one that is killed in the middle of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from config.settings import Settings
from core.types import Scope
from gateway.services import Services
from tests.gateway.cli.test_main import ROOT

pytestmark = pytest.mark.slow

HERE = Scope.account("terminal", "local")
HERS = frozenset((HERE,))
WRITER = """
import asyncio, sys
from config.settings import Settings
from core.types import Scope
from gateway.services import Services
from tests.fixtures.note_edits import add_note

async def work(name, count):
    scope = Scope.account("terminal", "local")
    async with Services.open(Settings.load()) as services:
        for number in range(count):
            note = f"{name} keeps the number {number} in mind"
            await add_note(services.notebook, scope, frozenset((scope,)), "memory", note)
            print(number, flush=True)

asyncio.run(work(sys.argv[1], int(sys.argv[2])))
"""


def writer(name: str, count: int) -> subprocess.Popen[str]:
    """A process that adds so many notes and says each number once it is kept."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, name, str(count)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def roomy(home: Path) -> Path:
    (home / "mneme.toml").write_text("[memory]\nmemory_chars = 100000\n")
    return home


async def kept() -> tuple[list[str], list[str | None]]:
    """The notes, and what the history says was added by a command and by hand, oldest first."""
    async with Services.open(Settings.load()) as services:
        entries = await services.notebook.entries(HERS, "memory")
        history = await services.notebook.history(HERS, 1_000)
    return entries, [change.after for change in reversed(history)]


def test_two_processes_lose_nothing_and_log_each_note_once(roomy: Path) -> None:
    writers = [writer(name, 10) for name in ("Ana", "Bob")]
    for one in writers:
        _, errors = one.communicate(timeout=60)
        assert one.returncode == 0, errors
    entries, history = asyncio.run(kept())
    wanted = sorted(
        f"{name} keeps the number {number} in mind"
        for name in ("Ana", "Bob")
        for number in range(10)
    )
    assert sorted(entries) == wanted
    assert sorted(str(entry) for entry in history) == wanted


@pytest.mark.sweep
def test_confirmed_note_survives_a_kill_and_none_is_half_written(
    roomy: Path,
) -> None:
    wanted: set[str] = set()
    for name, count in (("Ana", 3), ("Bob", 7), ("Cy", 12)):
        one = writer(name, 10_000)
        assert one.stdout is not None
        said = [one.stdout.readline().strip() for _ in range(count)]
        one.kill()
        # Not communicate(), which leaves out what readline() has taken in already.
        said += one.stdout.read().split()
        one.communicate(timeout=60)
        wanted |= {f"{name} keeps the number {number} in mind" for number in said}
    entries, history = asyncio.run(kept())
    assert wanted <= set(entries)
    assert len(set(entries) - wanted) <= 3, "at most one of each was kept and not said any more"
    assert all(entry.endswith("in mind") for entry in entries)
    assert sorted(entries) == sorted(str(entry) for entry in history), (
        "what was not logged is found in the file"
    )
    left = [path.name for path in (roomy / "memories").rglob("*") if path.is_file()]
    assert sorted(left) == [".lock", "MEMORY.md"], "nothing lies beside it"


def test_leftover_file_of_a_killed_note_write_is_removed(roomy: Path) -> None:
    folder = roomy / "memories" / "account%3Aterminal%3Alocal"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("likes tea\n")
    left = folder / ".MEMORY.md.k1ll3d.half"
    left.write_text("a secret that nobody was told is kept\n")
    (folder / ".MEMORY.md.swp").write_text("what an editor keeps while the file is open in it\n")
    entries, _ = asyncio.run(kept())
    assert entries == ["likes tea"]
    assert not left.exists()
    assert (folder / ".MEMORY.md.swp").exists()
