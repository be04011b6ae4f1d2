"""Upgrades state.db at the first start of a new version: makes a backup and shows the progress.

The upgrade itself is in `core/store/sqlite/upgrade.py`. If it takes longer than a moment, a line in
the terminal shows the progress.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TextIO

import structlog

from config.settings import Settings
from core.ports import Clock
from core.store.sqlite.upgrade import UpgradeProgress, UpgradeStage, upgrade_file
from core.transfer.backup import STATE_FILE
from gateway.texts.catalog import SHELL as texts
from gateway.upkeep.backups import back_up_before_migration

_log = structlog.get_logger(__name__)
SHOW_AFTER_S = 1.0
"""If an upgrade takes less time, no progress is shown."""


class ProgressLine:
    """Shows the progress in one line of a terminal. It prints nothing to other outputs."""

    def __init__(self, output: TextIO, show_after_s: float = SHOW_AFTER_S) -> None:
        self._output = output
        self._shows_at = time.monotonic() + show_after_s
        # The length of the last line on the terminal.
        self._width = 0

    def show(self, progress: UpgradeProgress) -> None:
        """Update the line, if the output is a terminal and the upgrade takes long."""
        if time.monotonic() < self._shows_at or not self._output.isatty():
            return
        text = _describe(progress)
        self._output.write(f"\r{text:<{self._width}}")
        self._output.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Remove the line, so that the next output starts on an empty line."""
        if self._width:
            self._output.write(f"\r{'':<{self._width}}\r")
            self._output.flush()


def _describe(progress: UpgradeProgress) -> str:
    if progress.stage is UpgradeStage.COPY:
        return texts.UPGRADE_COPY.format(percent=100 * progress.done // max(progress.total, 1))
    if progress.stage is UpgradeStage.CHANGE:
        return texts.UPGRADE_CHANGE.format(done=progress.done, total=progress.total)
    return texts.UPGRADE_CHECK


async def upgrade_home(settings: Settings, clock: Clock) -> None:
    """Back up a home whose state.db has an older schema, and upgrade state.db.

    Raises StoreError if the backup or the upgrade fails. state.db isn't changed in that case.
    """
    await back_up_before_migration(settings, clock)
    line = ProgressLine(sys.stderr)
    started_at = time.monotonic()
    try:
        await asyncio.to_thread(upgrade_file, settings.home / STATE_FILE, line.show)
    finally:
        line.clear()
    _log.info("state.db was upgraded", seconds=round(time.monotonic() - started_at, 1))
