"""Calendars: ICS feeds on loopback, and a real Radicale server over CalDAV."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from unittest.mock import AsyncMock
from zoneinfo import ZoneInfo

import pytest
from caldav.davclient import DAVClient

from config.tool_options import CalendarSource
from core.dates.coming_day import read_coming_period
from core.errors import Refused, ToolError
from core.tools.agenda import calendar_tool, render_event
from core.tools.calendars import Calendars
from core.types import Address, Scope, Sender, Session, ToolContext
from tests.fixtures.tables import each_row
from tests.fixtures.web_pages import PageServer, serve_pages

LISBON = ZoneInfo("Europe/Lisbon")
FEED = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Tests//EN
BEGIN:VEVENT
UID:1@tests
SUMMARY:Swimming
LOCATION:Pool
DTSTART;TZID=Europe/Berlin:20261102T180000
DTEND;TZID=Europe/Berlin:20261102T190000
RRULE:FREQ=WEEKLY;BYDAY=MO
EXDATE;TZID=Europe/Berlin:20261207T180000
END:VEVENT
BEGIN:VEVENT
UID:2@tests
SUMMARY:Holiday in Porto
DTSTART;VALUE=DATE:20261208
DTEND;VALUE=DATE:20261211
END:VEVENT
BEGIN:VEVENT
UID:3@tests
SUMMARY:Cancelled dinner
STATUS:CANCELLED
DTSTART:20261201T190000Z
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")

HOURS = ",".join(map(str, range(24)))
MINUTES = ",".join(map(str, range(60)))
ENDLESS = """BEGIN:VEVENT
UID:6@tests
SUMMARY:Endless
DTSTART:20261101T000000Z
RRULE:{rule}
END:VEVENT
END:VCALENDAR
"""


def at(day: int, hour: int = 0, month: int = 12) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=LISBON)


@pytest.fixture
async def server() -> AsyncIterator[PageServer]:
    async with serve_pages() as pages:
        yield pages


def read_feed(url: str, **variables: str) -> Calendars:
    return Calendars({"home": CalendarSource(url=url)}, variables)


async def test_feed_is_expanded_into_occurrences_in_the_persons_zone(server: PageServer) -> None:
    server.add("/feed.ics", FEED, "text/calendar")
    server.add("/robots.txt", "User-agent: *\nDisallow: /", "text/plain")
    calendars = read_feed("${FEED}", FEED=f"http://127.0.0.1:{server.port}/feed.ics")
    agenda = await calendars.list_events(at(30, month=11), at(15), LISBON)
    assert [render_event(event, has_date=True) for event in agenda.events] == [
        "Mon 30 Nov 2026 17:00 to 18:00 Swimming (Pool)",
        "Tue 8 Dec 2026 until 10 Dec: Holiday in Porto",
        "Mon 14 Dec 2026 17:00 to 18:00 Swimming (Pool)",
    ]
    await calendars.list_events(at(1), at(2), LISBON)
    assert len(server.requests) == 1, "a feed is kept for some minutes"


@pytest.mark.parametrize("name", ["Asia/Tokyo", "America/Sao_Paulo", "Europe/Berlin"])
async def test_whole_day_is_on_its_own_day_in_every_zone(server: PageServer, name: str) -> None:
    zone = ZoneInfo(name)
    feed = FEED.replace("DTEND;VALUE=DATE:20261211", "DTEND;VALUE=DATE:20261209")
    server.add("/feed.ics", feed, "text/calendar")
    calendars = read_feed(f"http://127.0.0.1:{server.port}/feed.ics")
    days = []
    for day in (7, 8, 9):
        start = datetime(2026, 12, day, tzinfo=zone).astimezone(UTC)
        agenda = await calendars.list_events(start, start + timedelta(days=1), zone)
        days += [day for event in agenda.events if event.is_all_day]
    assert days == [8]


async def test_damaged_or_endless_calendar_event_does_not_hide_other_events(
    server: PageServer,
) -> None:
    odd = """BEGIN:VEVENT
UID:4@tests
SUMMARY:Two starts
DTSTART:20261130T100000Z
DTSTART:20261130T110000Z
END:VEVENT
BEGIN:VEVENT
UID:5@tests
SUMMARY:Always
DTSTART:20261101T000000Z
RRULE:FREQ=SECONDLY
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")
    server.add("/feed.ics", FEED.replace("END:VCALENDAR\r\n", odd), "text/calendar")
    calendars = read_feed(f"http://127.0.0.1:{server.port}/feed.ics")
    agenda = await calendars.list_events(at(30, month=11), at(1), LISBON)
    assert [event.text for event in agenda.events] == ["Swimming"]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        f"FREQ=DAILY;BYHOUR={HOURS};BYMINUTE={MINUTES};BYSECOND={MINUTES}",
        "FREQ=SECONDLY",
    ],
)
async def test_event_that_repeats_without_end_is_named_and_the_other_events_are_shown(
    server: PageServer, rule: str
) -> None:
    endless = ENDLESS.format(rule=rule).replace("\n", "\r\n")
    server.add("/feed.ics", FEED.replace("END:VCALENDAR\r\n", endless), "text/calendar")
    calendars = read_feed(f"http://127.0.0.1:{server.port}/feed.ics")
    agenda = await calendars.list_events(at(30, month=11), at(1), LISBON)
    assert [event.text for event in agenda.events] == ["Swimming"]
    sentence = 'The event "Endless" in the calendar home repeats too often to be shown.'
    assert [str(problem) for problem in agenda.problems] == [sentence]


DAMAGED = [
    "DTSTART:20261130T100000Z\nRRULE:FREQ=DAILY;UNTIL=2027",
    "DTSTART:20261130T100000Z\nRRULE:FREQ=WEEKLY;BYDAY=XX",
    "DTSTART:20261130T100000Z\nRRULE:FREQ=DAILY\nEXDATE:x",
    "DTSTART:20261130T100000Z\nRECURRENCE-ID:x",
    "DTSTART:20261130T100000Z\nSEQUENCE:x",
    "DTSTART:20261130T100000Z\nDTEND:x",
    "DTSTART:20261130T100000Z\nDURATION:x",
    "DTSTART:20261130T100000Z\nDURATION:P99999999W",
    "DTSTART:20261130T100000Z\nDURATION:-PT1H",
    "DTSTART:20261130T100000Z\nDTSTART:20261130T110000Z",
    "DTSTART:x",
    "DTEND:20261130T100000Z",
]


async def test_damaged_event_is_named_and_the_other_events_are_shown(server: PageServer) -> None:
    for number, lines in enumerate(DAMAGED):
        event = f"BEGIN:VEVENT\nUID:7@tests\nSUMMARY:Broken\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n"
        content = FEED.replace("END:VCALENDAR\r\n", event.replace("\n", "\r\n"))
        server.add(f"/{number}.ics", content, "text/calendar")
        calendars = read_feed(f"http://127.0.0.1:{server.port}/{number}.ics")
        agenda = await calendars.list_events(at(30, month=11), at(1), LISBON)
        assert [event.text for event in agenda.events] == ["Swimming"], lines
        sentence = 'The event "Broken" in the calendar home is damaged and can\'t be shown.'
        assert [str(problem) for problem in agenda.problems] == [sentence], lines


async def test_event_without_a_title_is_listed_without_one(server: PageServer) -> None:
    event = "BEGIN:VEVENT\nUID:8@tests\nDTSTART:20261130T100000Z\nEND:VEVENT\nEND:VCALENDAR\n"
    content = FEED.replace("END:VCALENDAR\r\n", event.replace("\n", "\r\n"))
    server.add("/feed.ics", content, "text/calendar")
    calendars = read_feed(f"http://127.0.0.1:{server.port}/feed.ics")
    agenda = await calendars.list_events(at(30, month=11), at(1), LISBON)
    assert [render_event(event) for event in agenda.events] == [
        "10:00 (no title)",
        "17:00 to 18:00 Swimming (Pool)",
    ]


async def test_slow_calendar_does_not_delay_another_calendar(server: PageServer) -> None:
    server.add("/feed.ics", FEED, "text/calendar")
    url = f"http://127.0.0.1:{server.port}/feed.ics"
    sources = {name: CalendarSource(url=url) for name in ("slow", "good")}
    calendars = Calendars(sources, {})
    release = Event()
    blocked = [asyncio.create_task(calendars._run("slow", release.wait)) for _ in range(4)]
    await asyncio.sleep(0)
    try:
        await calendars._run("good", lambda: None)
        assert not any(task.done() for task in blocked)
    finally:
        release.set()
        await asyncio.gather(*blocked)


async def test_feed_of_the_owner_may_have_a_low_port_but_leads_to_none(server: PageServer) -> None:
    calendars = read_feed("http://127.0.0.1:9/feed.ics")
    (problem,) = (await calendars.list_events(at(1), at(2), LISBON)).problems
    assert "can't be reached" in str(problem)
    server.redirect("/feed.ics", "http://127.0.0.2:9/inside.ics")
    calendars = read_feed(f"http://127.0.0.1:{server.port}/feed.ics")
    (problem,) = (await calendars.list_events(at(1), at(2), LISBON)).problems
    assert "can't be reached" not in str(problem)


async def test_feed_leads_to_no_address_of_the_local_network(server: PageServer) -> None:
    server.redirect("/feed.ics", f"http://localhost:{server.port}/inside")
    server.add("/inside", FEED, "text/calendar")
    agenda = await read_feed(f"http://127.0.0.1:{server.port}/feed.ics").list_events(
        at(30, month=11), at(1), LISBON
    )
    assert agenda.events == []
    assert [path for _, path in server.requests] == ["/feed.ics"]


async def test_failing_feed_is_reported_together_with_the_events_of_the_other_feeds(
    server: PageServer,
) -> None:
    server.add("/feed.ics", FEED, "text/calendar")
    server.add("/page", "<p>no calendar</p>")
    base = f"http://127.0.0.1:{server.port}"
    sources = {
        "good": CalendarSource(url=f"{base}/feed.ics"),
        "page": CalendarSource(url=f"{base}/page"),
        "gone": CalendarSource(url=f"{base}/gone.ics"),
        "secret": CalendarSource(url="${NOT_SET}"),
    }
    agenda = await Calendars(sources, {}).list_events(at(30, month=11), at(1), LISBON)
    assert [event.text for event in agenda.events] == ["Swimming"]
    problems = "\n".join(map(str, agenda.problems))
    assert "The calendar page can't be read" in problems
    assert "Its content isn't a calendar that I can read" in problems
    assert "password" not in problems
    assert "answered with the error 404" in problems
    assert "NOT_SET isn't set. Put it into secrets.env." in problems


async def test_too_long_a_span_or_a_write_to_a_read_only_feed_is_refused() -> None:
    calendars = read_feed("http://127.0.0.1:9/feed.ics")
    with pytest.raises(Refused, match="400 days"):
        await calendars.list_events(at(1), at(1).replace(year=2028), LISBON)
    with pytest.raises(ToolError, match="No calendar can be written to"):
        await calendars.add_event("Dentist", at(1, 9), at(1, 10), LISBON)


@each_row(
    ("words", "start"),
    [("", "2026-11-28"), ("tomorrow", "2026-11-29"), ("friday", "2026-12-04"),
     ("morgen", "2026-11-29"), ("next week", "2026-11-30"), ("3 May", "2027-05-03"),
     ("29 February", "2027-02-28")],
)  # fmt: skip
def test_calendar_period_words_mean_the_next_period_of_that_name(words: str, start: str) -> None:
    now = datetime(2026, 11, 28, 12, tzinfo=LISBON)
    period = read_coming_period(words, now, LISBON)
    assert period is not None
    assert f"{period[0].astimezone(LISBON):%Y-%m-%d}" == start


def test_words_that_are_not_a_time_have_no_period() -> None:
    assert read_coming_period("banana", datetime(2026, 11, 28, tzinfo=LISBON), LISBON) is None


@pytest.fixture
def radicale(tmp_path: Path) -> Iterator[str]:
    """The address of a CalDAV server with the account ana and an empty calendar."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    users = tmp_path / "users"
    users.write_text("ana:s3cret\n")
    options = [
        f"--server-hosts=127.0.0.1:{port}",
        "--auth-type=htpasswd",
        f"--auth-htpasswd-filename={users}",
        "--auth-htpasswd-encryption=plain",
        f"--storage-filesystem-folder={tmp_path / 'storage'}",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "radicale", *options], stderr=subprocess.DEVNULL
    )
    try:
        _wait_for_port(port)
        url = f"http://127.0.0.1:{port}/"
        client = DAVClient(url=url, username="ana", password="s3cret")
        principal = client.principal()  # type: ignore[no-untyped-call]
        principal.make_calendar(name="Home")
        client.close()
        yield url
    finally:
        process.kill()
        process.wait()


def _wait_for_port(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("Radicale didn't start")


@pytest.mark.slow
async def test_event_is_added_to_a_caldav_account_and_listed(radicale: str) -> None:
    source = CalendarSource(url=radicale, kind="caldav", user="ana", key="CALENDAR_PASSWORD")
    calendars = Calendars({"home": source}, {"CALENDAR_PASSWORD": "s3cret"})
    event = await calendars.add_event("Dentist", at(3, 10), at(3, 11), LISBON)
    assert render_event(event) == "10:00 to 11:00 Dentist"
    agenda = await calendars.list_events(at(3), at(4), LISBON)
    assert ([each.text for each in agenda.events], agenda.problems) == (["Dentist"], [])
    assert (await calendars.list_events(at(4), at(5), LISBON)).events == []
    await calendars.remove_event("home", event.uid)
    assert (await calendars.list_events(at(3), at(4), LISBON)).events == []
    with pytest.raises(ToolError):
        await calendars.remove_event("home", event.uid)


@pytest.mark.slow
async def test_event_of_whole_days_is_added_to_a_caldav_account_with_its_last_day(
    radicale: str,
) -> None:
    source = CalendarSource(url=radicale, kind="caldav", user="ana", key="CALENDAR_PASSWORD")
    calendars = Calendars({"home": source}, {"CALENDAR_PASSWORD": "s3cret"})

    zone_of, is_owner = AsyncMock(return_value="Europe/Lisbon"), AsyncMock(return_value=True)
    tool = calendar_tool(calendars, zone_of, is_owner)
    scope = Scope.account("telegram", "42")
    chat = Address(platform="telegram", chat_id="42")
    context = ToolContext(
        session=Session(address=chat, scope=scope, started_at=at(1, month=7)),
        scope=scope,
        scopes=frozenset({scope}),
        sender=Sender(id="42", name="Ana"),
        now=at(1, month=7),
    )
    trip = {"action": "add", "start": "2026-08-03", "end": "2026-08-10", "text": "Trip"}
    added = await tool.run(trip, context)
    assert added.startswith("Added: Mon 3 Aug 2026 until 10 Aug: Trip [event ")
    await tool.run({"action": "add", "start": "2026-08-12", "text": "Fair"}, context)
    agenda = await calendars.list_events(at(1, month=8), at(30, month=8), LISBON)
    assert [render_event(event, has_date=True) for event in agenda.events] == [
        "Mon 3 Aug 2026 until 10 Aug: Trip",
        "Wed 12 Aug 2026 all day: Fair",
    ]


@pytest.mark.slow
async def test_endless_event_of_a_caldav_account_does_not_hide_its_other_events(
    radicale: str,
) -> None:
    with DAVClient(url=radicale, username="ana", password="s3cret") as client:
        (calendar,) = client.principal().calendars()  # type: ignore[no-untyped-call]
        endless = ENDLESS.format(rule="FREQ=SECONDLY").replace("\n", "\r\n").replace("2026", "2016")
        calendar.save_event(f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Tests\r\n{endless}")
    source = CalendarSource(
        url=radicale, kind="caldav", user="ana", key="CALENDAR_PASSWORD", timeout_s=30
    )
    calendars = Calendars({"home": source}, {"CALENDAR_PASSWORD": "s3cret"})
    await calendars.add_event("Dentist", at(3, 10), at(3, 11), LISBON)
    agenda = await calendars.list_events(at(3), at(4), LISBON)
    assert [each.text for each in agenda.events] == ["Dentist"]
    assert '"Endless"' in str(agenda.problems[0])


@pytest.mark.slow
async def test_wrong_calendar_password_is_reported_with_one_sentence(radicale: str) -> None:
    source = CalendarSource(url=radicale, kind="caldav", user="ana", key="CALENDAR_PASSWORD")
    calendars = Calendars({"home": source}, {"CALENDAR_PASSWORD": "wrong"})
    agenda = await calendars.list_events(at(3), at(4), LISBON)
    assert "Check its address and password" in str(agenda.problems[0])
