"""The owner is reminded of events of their calendars, once, and in time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.tools import calendars
from gateway import services
from gateway.upkeep.event_reminders import EventReminders
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, notices, open_gateway
from tests.fixtures.web_pages import PageServer, serve_pages

pytestmark = pytest.mark.slow

NOW = datetime(2026, 11, 13, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVENT = """BEGIN:VEVENT
UID:{name}@tests
SUMMARY:{name}
{start}
END:VEVENT
"""


def write_feed(pages: PageServer, **starts: datetime | str) -> None:
    """Serve a calendar with an event for each keyword. A text is the day of a whole-day event."""
    body = ""
    for name, start in starts.items():
        value = (
            f":{start:%Y%m%dT%H%M%SZ}" if isinstance(start, datetime) else f";VALUE=DATE:{start}"
        )
        body += EVENT.format(name=name, start=f"DTSTART{value}")
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Tests//EN\n{body}END:VCALENDAR\n"
    pages.add("/feed.ics", text.replace("\n", "\r\n"), "text/calendar")


@asynccontextmanager
async def open_calendar(
    home: Path, monkeypatch: pytest.MonkeyPatch, remind_minutes: int = 15
) -> AsyncIterator[tuple[GatewayHarness, SteadyClock, PageServer]]:
    """Run a gateway whose owner has written to it, and whose calendar is a feed on loopback."""
    clock = SteadyClock(NOW)
    monkeypatch.setattr(services, "WallClock", lambda: clock)
    monkeypatch.setattr(calendars, "FEED_CACHE_S", 0.0)
    async with serve_pages() as pages:
        options = (
            f'[calendar.home]\nurl = "http://127.0.0.1:{pages.port}/feed.ics"\n'
            f"remind_minutes = {remind_minutes}\n"
        )
        async with open_gateway(home, options=options) as harness:
            await harness.say("/status")
            yield harness, clock, pages


async def look(harness: GatewayHarness, reminders: EventReminders) -> list[str]:
    """Let the chore look once, and return the texts of the notices."""
    await reminders.tend()
    return [text for _, text in await notices(harness)]


async def test_event_is_announced_once_fifteen_minutes_before_it_begins(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_calendar(home, monkeypatch) as (harness, clock, pages):
        write_feed(pages, Dentist=NOW + 20 * MINUTE, Holiday="20261113")
        reminders = EventReminders(harness.services, clock)
        assert await look(harness, reminders) == []
        clock.advance(minutes=5)
        assert await look(harness, reminders) == ["Soon in your calendar: 08:20 Dentist."]
        clock.advance(minutes=5)
        assert await look(harness, reminders) == []
        # A restart in these minutes announces nothing twice.
        assert await look(harness, EventReminders(harness.services, clock)) == []


async def test_event_that_is_moved_is_announced_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_calendar(home, monkeypatch) as (harness, clock, pages):
        write_feed(pages, Dentist=NOW + 10 * MINUTE)
        reminders = EventReminders(harness.services, clock)
        assert len(await look(harness, reminders)) == 1
        write_feed(pages, Dentist=NOW + 30 * MINUTE)
        clock.advance(minutes=16)
        assert await look(harness, reminders) == ["Soon in your calendar: 08:30 Dentist."]


async def test_event_that_has_begun_and_one_of_a_calendar_out_of_reach_are_not_announced(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_calendar(home, monkeypatch) as (harness, clock, pages):
        reminders = EventReminders(harness.services, clock)
        assert await look(harness, reminders) == [], "the feed doesn't exist yet"
        write_feed(pages, Late=NOW - 5 * MINUTE, Next=NOW + 11 * MINUTE)
        clock.advance(minutes=10)
        assert await look(harness, reminders) == ["Soon in your calendar: 08:11 Next."]


async def test_time_of_an_event_is_in_the_zone_of_the_owner(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_calendar(home, monkeypatch, remind_minutes=60) as (harness, clock, pages):
        await harness.say("/timezone Berlin")
        write_feed(pages, Call=NOW + 59 * MINUTE)
        reminders = EventReminders(harness.services, clock)
        assert await look(harness, reminders) == ["Soon in your calendar: 09:59 Call."]
