"""Watches the files of state.db while the gateway runs, and tells the owner what is wrong."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import structlog

from core.errors import StoreError
from core.ports import Clock
from core.store.sqlite.database import Database
from gateway import texts
from gateway.owner_notices import OwnerNotices

# How often `StoreWatch.run` looks at the files.
WATCH_INTERVAL_S = 2.0
# The write-ahead log is too large if it's over this size for this long.
LARGE_LOG_BYTES = 64_000_000
LARGE_LOG_PERIOD = timedelta(minutes=1)
_log = structlog.get_logger("store_watch")


class StoreWatch:
    """Looks at the files of state.db every few seconds."""

    def __init__(self, database: Database, notices: OwnerNotices, clock: Clock) -> None:
        self._database = database
        self._notices = notices
        self._clock = clock
        # When the log was first seen over its limit; None while it's small.
        self._log_large_since: datetime | None = None
        self._is_log_reported = False

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                await self.check()
            except StoreError as error:
                _log.error("state.db cannot be watched", error=error)
            await asyncio.sleep(WATCH_INTERVAL_S)

    async def check(self) -> None:
        """Look at the files once."""
        await self._check_log_size()

    async def _check_log_size(self) -> None:
        """Tell the owner once if the write-ahead log stays too large."""
        log_bytes = self._database.log_bytes()
        now = self._clock.now()
        if log_bytes < LARGE_LOG_BYTES:
            self._log_large_since = None
            self._is_log_reported = False
            return
        if self._log_large_since is None:
            self._log_large_since = now
        if self._is_log_reported or now - self._log_large_since < LARGE_LOG_PERIOD:
            return
        size = f"{log_bytes / 1e6:.0f}"
        _log.warning("the log of state.db is large", megabytes=size)
        key = f"log:{self._log_large_since.isoformat()}"
        await self._notices.notify(key, texts.LOG_IS_LARGE.format(size=size))
        self._is_log_reported = True
