"""Erases messages and usage older than the retention period in the settings.

The owner is notified a day before the first run, and again if the settings change. Pinned notes and
facts, skills and active jobs are kept.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from core.errors import Refused
from core.ports import Clock
from core.store.erasure import expiry
from core.store.erasure.statements import ErasureRequest
from core.store.ownership.people import TERMINAL
from core.store.rows import get_meta, parse_account, set_meta
from core.store.visibility import scope_parameter
from core.types import LOCAL_SCOPE, Address, Scope

if TYPE_CHECKING:
    from gateway.services import Services

# A key in `state_meta` for the settings that were announced, and the time of the announcement.
ANNOUNCED_KEY = "retention_announced"
# The first run follows this long after the announcement.
NOTICE_PERIOD = timedelta(days=1)
RUN_INTERVAL = timedelta(hours=6)
_OWNER = "owner"
_ADDRESS = Address(platform=TERMINAL.platform, chat_id=TERMINAL.user_id)
_log = structlog.get_logger("retention")


class RetentionKeeper:
    """Erases old messages, scope by scope, a few thousand at a time."""

    def __init__(self, services: Services, clock: Clock) -> None:
        self._services = services
        self._clock = clock
        self._options = services.settings.retention
        self._runs_at: datetime | None = None

    async def tend(self) -> bool:
        """Take one step if a run is due. Returns whether another step is due at once."""
        now = self._clock.now()
        if self._runs_at is not None and now < self._runs_at:
            return False
        days_by_scope = await self._load_days()
        if not await self._is_announced(days_by_scope, now):
            self._runs_at = now + RUN_INTERVAL / 6
            return False
        for scope, days in days_by_scope.items():
            if await self._expire(scope, now - timedelta(days=days)):
                return True
        self._runs_at = now + RUN_INTERVAL
        return False

    async def _load_days(self) -> dict[Scope, int]:
        """Return the retention period in days by scope, without scopes that keep their messages."""
        own_scopes = await self._services.people.load_visible_scopes(LOCAL_SCOPE)
        await self._services.chat_rules.load()
        rows = await self._services.database.fetch_all("SELECT key FROM scopes ORDER BY id", {})
        days_by_scope = {}
        for row in rows:
            scope = Scope(key=row["key"])
            days = self._find_days(scope, is_own=scope in own_scopes)
            if days:
                days_by_scope[scope] = days
        return days_by_scope

    def _find_days(self, scope: Scope, *, is_own: bool) -> int:
        """Return the retention period of a scope in days, or 0 if its messages don't expire.

        A setting by the admins of a group can only shorten the owner's period.
        """
        days = self._find_owners_days(scope, is_own=is_own)
        if not scope.is_group or is_own:
            return days
        key = scope.key.removeprefix("room:").partition("#")[0]
        admins_days = self._services.chat_rules.find_retention(key)
        if admins_days is None:
            return days
        return min(days, admins_days) if days else admins_days

    def _find_owners_days(self, scope: Scope, *, is_own: bool) -> int:
        """Return the period in the owner's settings in days, or 0 if messages don't expire."""
        # A group that was given up and listed again has a number: "room:telegram:-5#2".
        names = [scope.key, scope.key.partition("#")[0]]
        if is_own:
            names.append(_OWNER)
        for name in names:
            if name in self._options.scopes:
                return self._options.scopes[name]
        return self._options.days

    async def _is_announced(self, days_by_scope: dict[Scope, int], now: datetime) -> bool:
        """Return whether the owner was told early enough that messages will be erased.

        If these settings haven't been announced and would erase messages, they are announced now.
        While the owner can't be notified, no messages are erased.
        """
        current: dict[str, object] = {
            "days": self._options.days,
            "scopes": dict(self._options.scopes),
        }
        chats = self._services.chat_rules.list_retention()
        if chats:
            current["chats"] = chats
        database = self._services.database
        stored_announcement = await database.read(
            lambda connection: get_meta(connection, ANNOUNCED_KEY)
        )
        announced = json.loads(stored_announcement) if stored_announcement else {}
        if announced.get("options") == current:
            return now - datetime.fromisoformat(announced["at"]) >= NOTICE_PERIOD
        count = await self._count(days_by_scope, now)
        if not count:
            return False
        if await self._services.find_private_chat(LOCAL_SCOPE) is None:
            _log.warning("nothing expires, because the owner can't be told")
            return False
        await self._announce(count, now)
        value = json.dumps({"options": current, "at": now.isoformat()})
        await database.write(lambda connection: set_meta(connection, ANNOUNCED_KEY, value))
        return False

    async def _announce(self, message_count: int, now: datetime) -> None:
        """Tell the owner how many messages will be erased, and when."""
        texts = await self._services.owner_notices.load_texts()
        text = texts.RETENTION_ANNOUNCED.format(
            messages=texts.format_count(message_count, "message"),
            moment=texts.format_moment(now + NOTICE_PERIOD, self._services.zone),
        )
        await self._services.owner_notices.notify(f"retention:{now.isoformat()}", text)

    async def _count(self, days_by_scope: dict[Scope, int], now: datetime) -> int:
        """Return how many messages would be erased."""
        count = 0
        for scope, days in days_by_scope.items():
            values = {
                "scopes": scope_parameter(frozenset({scope})),
                "before": now - timedelta(days=days),
            }
            row = await self._services.database.fetch_one(expiry.COUNT_EXPIRED_MESSAGES, values)
            count += row[0] if row is not None else 0
        return count

    async def _expire(self, scope: Scope, before: datetime) -> bool:
        """Erase the messages of a scope before a time. Returns whether messages were erased."""
        values = {"scopes": scope_parameter(frozenset({scope})), "before": before}
        calls = await self._services.database.execute(expiry.DELETE_EXPIRED_CALLS, values)
        account = TERMINAL
        if not scope.is_group:
            account = parse_account(scope.key.partition(":")[2]) or TERMINAL
        request = ErasureRequest(
            account=account,
            scope=scope,
            scopes=frozenset({scope}),
            address=_ADDRESS,
            # In a group, only the owner may erase everyone's messages.
            is_owner=scope.is_group,
        )
        try:
            count = await self._services.forgetting.expire(request, before)
        except (Refused, OSError) as error:
            # The search index is being rebuilt, or a file can't be written.
            _log.warning("messages can't expire now", reason=str(error))
            return False
        if count or calls:
            _log.info("something has expired", messages=count, calls=calls)
        return count > 0
