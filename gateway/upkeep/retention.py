"""Erases messages and usage older than the retention period.

The owner sets the period in the settings, and the admins of a group with `/setup retention`. The
owner is notified a day before messages are erased for the first time, and again if a period
changes. Pinned notes and facts, skills and active jobs are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

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

# A key in `state_meta` for the periods that were announced, and the times of the announcements.
ANNOUNCED_KEY = "retention_announced"
# The first run follows this long after the announcement.
NOTICE_PERIOD = timedelta(days=1)
RUN_INTERVAL = timedelta(hours=6)
_OWNER = "owner"
_ADDRESS = Address(platform=TERMINAL.platform, chat_id=TERMINAL.user_id)
_log = structlog.get_logger("retention")


@dataclass(frozen=True, slots=True)
class Period:
    """How many days the messages of a scope are kept."""

    days: int
    # The group whose admins set the period. None for the owner's settings.
    group: str | None = None


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
        periods = await self._load_periods()
        due_scopes = await self._list_due(periods, now)
        for scope in due_scopes:
            if await self._expire(scope, now - timedelta(days=periods[scope].days)):
                return True
        is_complete = len(due_scopes) == len(periods)
        self._runs_at = now + (RUN_INTERVAL if is_complete else RUN_INTERVAL / 6)
        return False

    async def _load_periods(self) -> dict[Scope, Period]:
        """Return the retention period by scope, without scopes that keep their messages."""
        own_scopes = await self._services.people.load_visible_scopes(LOCAL_SCOPE)
        await self._services.chat_rules.load()
        rows = await self._services.database.fetch_all("SELECT key FROM scopes ORDER BY id", {})
        periods = {}
        for row in rows:
            scope = Scope(key=row["key"])
            period = self._find_period(scope, is_own=scope in own_scopes)
            if period.days:
                periods[scope] = period
        return periods

    def _find_period(self, scope: Scope, *, is_own: bool) -> Period:
        """Return the period of a scope, with 0 days if its messages don't expire.

        A setting by the admins of a group can only shorten the owner's period.
        """
        days = self._find_owners_days(scope, is_own=is_own)
        if scope.is_group and not is_own:
            group = scope.key.removeprefix("room:").partition("#")[0]
            admins_days = self._services.chat_rules.find_retention(group)
            if admins_days is not None and (not days or admins_days < days):
                return Period(admins_days, group)
        return Period(days)

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

    async def _list_due(self, periods: Mapping[Scope, Period], now: datetime) -> list[Scope]:
        """Return the scopes whose period was announced to the owner early enough.

        Periods that haven't been announced and would erase messages are announced now. While the
        owner can't be notified, no messages are erased for them.
        """
        announced = await self._load_announced()
        due_scopes = []
        new_scopes = []
        for scope, period in periods.items():
            at = self._find_announcement(announced, period)
            if at is None:
                new_scopes.append(scope)
            elif now - at >= NOTICE_PERIOD:
                due_scopes.append(scope)
        counts = {scope: await self._count(scope, periods[scope], now) for scope in new_scopes}
        counts = {scope: count for scope, count in counts.items() if count}
        if not counts:
            return due_scopes
        if await self._services.find_private_chat(LOCAL_SCOPE) is None:
            _log.warning("some messages don't expire, because the owner can't be told")
            return due_scopes
        await self._announce(periods, counts, now)
        for period in {periods[scope] for scope in counts}:
            if period.group is None:
                announced |= {"options": self._describe_options(), "at": now.isoformat()}
            else:
                announced["chats"][period.group] = {"days": period.days, "at": now.isoformat()}
        value = json.dumps(announced)
        await self._services.database.write(
            lambda connection: set_meta(connection, ANNOUNCED_KEY, value)
        )
        return due_scopes

    def _describe_options(self) -> dict[str, object]:
        return {"days": self._options.days, "scopes": dict(self._options.scopes)}

    async def _load_announced(self) -> dict[str, Any]:
        """Return the announcements: `options` and `at` of the settings, and `chats` by group."""
        stored = await self._services.database.read(
            lambda connection: get_meta(connection, ANNOUNCED_KEY)
        )
        announced: dict[str, Any] = json.loads(stored) if stored else {}
        # An earlier version announced the periods of groups together with the settings.
        earlier_chats = announced.get("options", {}).pop("chats", {})
        earlier = {
            group: {"days": days, "at": announced["at"]} for group, days in earlier_chats.items()
        }
        return {**announced, "chats": earlier | announced.get("chats", {})}

    def _find_announcement(self, announced: Mapping[str, Any], period: Period) -> datetime | None:
        """Return when a period was announced, or None if it wasn't."""
        if period.group is None:
            is_announced = announced.get("options") == self._describe_options()
            return datetime.fromisoformat(announced["at"]) if is_announced else None
        announcement = announced["chats"].get(period.group)
        if announcement is None or announcement["days"] != period.days:
            return None
        return datetime.fromisoformat(announcement["at"])

    async def _announce(
        self, periods: Mapping[Scope, Period], counts: Mapping[Scope, int], now: datetime
    ) -> None:
        """Tell the owner how many messages will be erased, and when.

        `counts` has the number of messages for each scope of the announcement.
        """
        texts = await self._services.owner_notices.load_texts()
        zone = await self._services.load_zone(TERMINAL)
        moment = texts.format_moment(now + NOTICE_PERIOD, zone)
        group_counts = {
            scope: count for scope, count in counts.items() if periods[scope].group is not None
        }
        group_count = sum(group_counts.values())
        own_count = sum(counts.values()) - group_count
        paragraphs = []
        if own_count:
            messages = texts.format_count(own_count, "message")
            paragraphs.append(texts.RETENTION_ANNOUNCED.format(messages=messages, moment=moment))
        if group_count:
            messages = texts.format_count(group_count, "message")
            groups = sorted({f"`{periods[scope].group}`" for scope in group_counts})
            paragraphs.append(
                texts.RETENTION_OF_GROUPS_ANNOUNCED.format(
                    messages=messages, moment=moment, groups=texts.COMMA.join(groups)
                )
            )
        await self._services.owner_notices.notify(
            f"retention:{now.isoformat()}", "\n\n".join(paragraphs)
        )

    async def _count(self, scope: Scope, period: Period, now: datetime) -> int:
        """Return how many messages of a scope would be erased."""
        values = {
            "scopes": scope_parameter(frozenset({scope})),
            "before": now - timedelta(days=period.days),
        }
        row = await self._services.database.fetch_one(expiry.COUNT_EXPIRED_MESSAGES, values)
        return row[0] if row is not None else 0

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
