"""How `mneme status` shows what a home takes, and how much it grows in a month."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from config.settings import Settings
from gateway.services import Services
from gateway.texts.catalog import load_texts
from gateway.upkeep.growth import SizeLog, compute_growth, measure_sizes
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import good, mneme
from tests.fixtures.forked import ROOT

EARLIER = {"database": 1_000_000, "files": 10, "logs": 20, "backups": 0}


def test_size_growth_is_scaled_to_thirty_days() -> None:
    sizes = {"database": 2_000_000, "files": 10, "logs": 20, "backups": 500}
    growth = compute_growth(sizes, date(2026, 11, 16), {date(2026, 11, 1): EARLIER})
    assert growth == {"database": 2_000_000, "files": 0, "logs": 0, "backups": 1000}


def test_growth_is_unknown_on_the_first_day() -> None:
    assert compute_growth(EARLIER, date(2026, 11, 1), {}) is None
    assert compute_growth(EARLIER, date(2026, 11, 1), {date(2026, 11, 1): EARLIER}) is None


@pytest.mark.slow
async def test_sizes_are_stored_once_a_day_and_compared(home: Path) -> None:
    good(home, "sessions")
    good(home, "backup")
    (home / "boats.md").write_text("x" * 3_000_000)
    settings = Settings.load({"MNEME_HOME": str(home)})
    assert measure_sizes(settings)["files"] > 3_000_000
    async with Services.open(settings) as services:
        clock = SteadyClock()
        size_log = SizeLog(settings, services.database, clock)
        assert "MB a month" not in await size_log.describe()
        await size_log.tend()
        (home / "boats.md").write_text("x" * 5_000_000)
        clock.advance(days=15)
        await size_log.tend()
        description = await size_log.describe()
        french_description = await size_log.describe(load_texts("fr"))
    assert "files 5.0 MB (+4.0)" in description
    assert "fichiers 5 Mo (+4)" in french_description
    assert "backups 0.0 MB" in description
    assert description.endswith("MB a month")


@pytest.mark.slow
def test_status_command_shows_the_size_of_the_database_on_disk(home: Path) -> None:
    assert "disk: database " in good(home, "status")
    assert mneme(home, "status", "--watch").returncode == 2


@pytest.mark.slow
def test_watched_status_is_shown_again_until_ctrl_c(home: Path) -> None:
    good(home, "sessions")
    terminal, inside = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "gateway.cli.main", "status", "--watch"],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, "MNEME_HOME": str(home), "PYTHONPATH": str(ROOT), "TERM": "xterm"},
    ) as process:
        os.close(inside)
        try:
            shown = b""
            while shown.count(b"not running") < 2:
                shown += os.read(terminal, 10_000)
            process.send_signal(signal.SIGINT)
            # What it still shows is read until it ends, which a terminal says with an error.
            with contextlib.suppress(OSError):
                while chunk := os.read(terminal, 10_000):
                    shown += chunk
            assert process.wait(60) == 130
        finally:
            process.kill()
            os.close(terminal)
    assert b"Ctrl-C ends this" in shown
    assert b"Traceback" not in shown
