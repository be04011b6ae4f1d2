"""Reminds the owner of calendar events, `remind_minutes` before they begin.

The running gateway reads the calendars every ten minutes and sends due reminders every minute. The
key of a notice contains the event and its start, so the notice is sent once, even after a restart,
and again if the event is moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

import structlog

from core.dates.schedule import load_zone
from core.markup.markdown import escape
from core.ports import Clock
from core.store import rows
from core.tools.calendars import CalendarEvent
from core.types import LOCAL_SCOPE

if TYPE_CHECKING:
    from gateway.services import Services

READ_INTERVAL = timedelta(minutes=10)
LOOK_INTERVAL = timedelta(minutes=1)


class EventReminders:
    """Queues a notice for each calendar event that begins soon."""

    def __init__(self, services: Services, clock: Clock) -> None:
        self._services = services
        self._clock = clock
        self._events: Sequence[CalendarEvent] = ()
        self._looks_at: datetime | None = None
        self._reads_at: datetime | None = None
        self._log = structlog.get_logger("calendars")

    async def tend(self) -> bool:
        """Send the notices that are due. Returns False, because no more are due at once."""
        now = self._clock.now()
        if self._looks_at is not None and now < self._looks_at:
            return False
        self._looks_at = now + LOOK_INTERVAL
        if self._reads_at is None or now >= self._reads_at:
            self._reads_at = now + READ_INTERVAL
            self._events = await self._read_events(now)
        for event in self._events:
            if event.start - self._find_lead(event) <= now < event.start:
                await self._notify(event)
        return False

    def _find_lead(self, event: CalendarEvent) -> timedelta:
        """Return how long before an event the owner is reminded of it."""
        return timedelta(minutes=self._services.settings.calendar[event.calendar].remind_minutes)

    async def _read_events(self, now: datetime) -> list[CalendarEvent]:
        """Return the events whose reminders may be due before the calendars are read again.

        A calendar that can't be read is skipped until then, and the problem is logged.
        """
        services = self._services
        chat = await services.find_private_chat(LOCAL_SCOPE)
        if services.calendars is None or chat is None:
            return []
        account = rows.parse_account(chat[1].key.partition(":")[2])
        zone = load_zone(await services.appointments.zone_of(account))
        leads = [source.remind_minutes for source in services.settings.calendar.values()]
        end = now + timedelta(minutes=max(leads)) + 2 * READ_INTERVAL
        agenda = await services.calendars.list_events(now, end, zone)
        for problem in agenda.problems:
            self._log.warning("events can't be announced", problem=str(problem))
        return [event for event in agenda.events if not event.is_all_day and self._find_lead(event)]

    async def _notify(self, event: CalendarEvent) -> None:
        notices = self._services.owner_notices
        identity = f"{event.calendar}\n{event.text}\n{event.start.timestamp()}"
        texts = await notices.load_texts()
        text = texts.EVENT_SOON.format(event=escape(texts.describe_event(event)))
        await notices.notify(f"event:{sha256(identity.encode()).hexdigest()[:32]}", text)
