"""Watches the files of state.db while the gateway runs, and notifies the owner of problems."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import structlog

from core.errors import StoreError, StoreLostError
from core.ports import Clock
from core.store.sqlite.database import Database
from core.store.sqlite.integrity import IntegrityCheck
from core.types import LOCAL_SCOPE, Address, Answer, Scope
from gateway.owner_notices import OwnerNotices

# How often `StoreWatch.run` looks at the files.
WATCH_INTERVAL_S = 2.0
# The write-ahead log is too large if it's over this size for this long.
LARGE_LOG_BYTES = 64_000_000
LARGE_LOG_PERIOD = timedelta(minutes=1)
# How long the owner's chat is remembered.
OWNER_CHAT_PERIOD = timedelta(minutes=1)
_log = structlog.get_logger("store_watch")


# A function that finds the private chat of a scope's person. The second argument names an excluded
# platform.
FindPrivateChat = Callable[[Scope, str], Awaitable[tuple[Address, Scope] | None]]
# A function that sends a notice without storing it, and returns whether it was sent.
TellUnstored = Callable[[Address, Answer], Awaitable[bool]]


class StoreWatch:
    """Checks the files of state.db every few seconds."""

    def __init__(
        self,
        database: Database,
        notices: OwnerNotices,
        clock: Clock,
        find_private_chat: FindPrivateChat,
        notify_unstored: TellUnstored,
        owner_chat: Address | None = None,
    ) -> None:
        """Prepare the watch.

        `owner_chat` is used until the owner's last chat was read from the store.
        """
        self._database = database
        self._notices = notices
        self._clock = clock
        self._find_private_chat = find_private_chat
        self._tell_unstored = notify_unstored
        # The owner's chat, for notices that can't be stored.
        self._owner_chat = owner_chat
        self._found_chat_at: datetime | None = None
        # When the log was first seen over its limit; None while it's small.
        self._log_large_since: datetime | None = None
        self._is_log_reported = False
        self._known_rescue_count = 0
        self._is_loss_reported = False
        # Whether the last check of the files failed. Another program may lock them for a moment.
        self._has_check_failed = False
        self._is_damage_logged = False
        self._is_damage_reported = False
        self._integrity = IntegrityCheck(database, clock)

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                await self.check()
            except StoreError as error:
                _log.error("state.db cannot be watched", error=error)
            await asyncio.sleep(WATCH_INTERVAL_S)

    async def check(self) -> None:
        """Check the files once."""
        await self._find_owner_chat()
        if await self._check_files():
            await self._report_damage()
            await self._check_log_size()

    async def check_integrity(self) -> bool:
        """Check a part of state.db for damage. Returns whether another part is due at once."""
        has_more = await self._integrity.run_slice()
        await self._report_damage()
        return has_more

    async def _report_damage(self) -> None:
        """Tell the owner once that state.db is damaged, even if the notice can't be stored."""
        damage = self._database.damage
        if not damage or self._is_damage_reported:
            return
        if not self._is_damage_logged:
            self._is_damage_logged = True
            _log.error("state.db is damaged", damage=damage)
        texts = await self._notices.load_texts()
        text = texts.STORE_IS_DAMAGED.format(damage=damage)
        # Checks of the file and of its integrity report concurrently.
        self._is_damage_reported = True
        try:
            await self._notices.notify(f"damaged:{self._clock.now().date()}", text)
        except StoreError:
            self._is_damage_reported = await self._notify_owner_unstored(text)

    async def _notify_owner_unstored(self, text: str) -> bool:
        """Send the owner a notice that can't be stored. Returns whether that succeeded."""
        if self._owner_chat is None:
            return False
        return await self._tell_unstored(self._owner_chat, Answer(text=text))

    async def _find_owner_chat(self) -> None:
        """Look up the owner's private chat, at most once a minute, while the store can be read."""
        now = self._clock.now()
        if self._found_chat_at is not None and now - self._found_chat_at < OWNER_CHAT_PERIOD:
            return
        with contextlib.suppress(StoreError):
            chat = await self._find_private_chat(LOCAL_SCOPE, "")
            self._owner_chat = chat[0] if chat else self._owner_chat
            self._found_chat_at = now

    async def _check_files(self) -> bool:
        """Tell the owner once if a file was removed or truncated, or repeatedly can't be checked.

        Returns False if state.db is lost or can't be used.

        If only the write-ahead log was removed, its content has been saved, and state.db isn't
        lost.
        """
        try:
            await self._database.check_files()
        except StoreError as error:
            _log.error("the files of state.db can't be used", error=error)
            is_sure = isinstance(error, StoreLostError) or self._has_check_failed
            self._has_check_failed = True
            if is_sure and not self._is_loss_reported:
                texts = await self._notices.load_texts()
                text = texts.STORE_IS_LOST.format(error=texts.word(error))
                self._is_loss_reported = await self._notify_owner_unstored(text)
            return False
        self._is_loss_reported = False
        self._has_check_failed = False
        if self._database.rescue_count != self._known_rescue_count:
            self._known_rescue_count = self._database.rescue_count
            _log.warning("the log of state.db was removed, and its content was saved")
            texts = await self._notices.load_texts()
            key = f"log-removed:{self._clock.now().isoformat()}"
            await self._notices.notify(key, texts.LOG_WAS_REMOVED)
        return True

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
        texts = await self._notices.load_texts()
        key = f"log:{self._log_large_since.isoformat()}"
        await self._notices.notify(key, texts.LOG_IS_LARGE.format(size=size))
        self._is_log_reported = True
