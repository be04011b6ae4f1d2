"""Reminders leave as a calendar file and come in from one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from icalendar import Calendar

from core.agent.offline import OfflineModel
from core.dates.calendar_file import CalendarEntry, read_calendar, write_calendar
from core.dates.parsing import parse_schedule
from core.dates.recurrence import next_recurrences
from core.dates.rules import format_rules
from core.dates.schedule import Schedule
from core.errors import Refused
from core.scheduling.rules import list_calendar_entries
from core.store.jobs import Job
from core.types import Address, Scope
from tests.fixtures.command_line import good, mneme
from tests.fixtures.gateway_harness import open_gateway

pytestmark = pytest.mark.slow

ZONE = ZoneInfo("Europe/Lisbon")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TRIP = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Example//Trip//EN
BEGIN:VEVENT
UID:flight@example
DTSTAMP:20260101T000000Z
DTSTART;TZID=Europe/Berlin:20300510T071500
SUMMARY:Flight to Oslo
END:VEVENT
BEGIN:VEVENT
UID:old@example
DTSTAMP:20200101T000000Z
DTSTART:20200510T071500Z
SUMMARY:Flight to Rome
END:VEVENT
BEGIN:VEVENT
UID:class@example
DTSTAMP:20260101T000000Z
DTSTART;TZID=Europe/Lisbon:20260105T180000
RRULE:FREQ=WEEKLY;BYDAY=MO
SUMMARY:Dance class
END:VEVENT
BEGIN:VTODO
UID:visa@example
DTSTAMP:20260101T000000Z
DUE;VALUE=DATE:20300420
SUMMARY:Apply for the visa
END:VTODO
BEGIN:VTODO
UID:done@example
DTSTAMP:20260101T000000Z
DUE;VALUE=DATE:20300421
STATUS:COMPLETED
SUMMARY:Book the hotel
END:VTODO
END:VCALENDAR
"""


def make_job(schedule: Schedule, next_at: datetime) -> Job:
    return Job(
        schedule=schedule,
        text="pills",
        target=Address(platform="telegram", chat_id="42"),
        scope=Scope.account("telegram", "42"),
        created_at=NOW,
        next_at=next_at,
        id=7,
    )


def test_written_file_is_read_by_the_library_with_rule_and_alarm() -> None:
    start = datetime(2026, 11, 23, 8, 30, tzinfo=ZONE)
    entry = CalendarEntry(
        uid="reminder-1@mneme",
        text="stand-up; bring, notes",
        created_at=NOW,
        start=start,
        rule="FREQ=WEEKLY;BYDAY=MO",
    )
    (event,) = Calendar.from_ical(write_calendar([entry])).walk("VEVENT")
    assert event["SUMMARY"] == "stand-up; bring, notes"
    assert event.decoded("DTSTART") == start
    assert b"RRULE:FREQ=WEEKLY;BYDAY=MO\r\n" in event.to_ical()
    assert [alarm["ACTION"] for alarm in event.walk("VALARM")] == ["DISPLAY"]
    (item,) = read_calendar(write_calendar([entry]), NOW, ZONE)
    assert (item.uid, item.text) == (entry.uid, entry.text)
    assert item.recurrences == (
        "DTSTART;TZID=Europe/Lisbon:20261123T083000\nRRULE:FREQ=WEEKLY;BYDAY=MO",
    )


def test_open_events_and_tasks_are_read_and_past_or_finished_ones_are_not() -> None:
    items = {item.uid: item for item in read_calendar(TRIP.encode(), NOW, ZONE)}
    assert sorted(items) == ["class@example", "flight@example", "visa@example"]
    assert items["flight@example"].moment == datetime(2030, 5, 10, 5, 15, tzinfo=UTC)
    assert items["visa@example"].moment == datetime(2030, 4, 20, 8, tzinfo=UTC)
    assert items["class@example"].recurrences[0].startswith("DTSTART;TZID=Europe/Lisbon:")


@pytest.mark.parametrize(
    ("line", "broken_line"),
    [
        ("DTSTART;TZID=Europe/Berlin:20300510T071500", "DTSTART:yesterday"),
        ("SUMMARY:", "RRULE:FREQ=SECONDLY\nSUMMARY:"),
    ],
)
def test_event_that_cannot_be_a_reminder_is_left_out_and_the_others_are_read(
    line: str, broken_line: str
) -> None:
    first_event, end, others = TRIP.partition("END:VEVENT")
    content = first_event.replace(line, broken_line) + end + others
    items = [item.uid for item in read_calendar(content.encode(), NOW, ZONE)]
    assert sorted(items) == ["class@example", "visa@example"]


def test_excluded_and_moved_occurrences_of_an_event_are_left_out_and_exported_so() -> None:
    changed = TRIP.replace(
        "SUMMARY:Dance class\n",
        "EXDATE;TZID=Europe/Lisbon:20261130T180000\nEXDATE;VALUE=DATE:20261207\n"
        "SUMMARY:Dance class\n",
    ).replace(
        "BEGIN:VTODO",
        "BEGIN:VEVENT\nUID:class@example\nRECURRENCE-ID:20261214T180000Z\n"
        "DTSTART:20261215T190000Z\nSUMMARY:Dance class\nEND:VEVENT\nBEGIN:VTODO",
        1,
    )
    items = [i for i in read_calendar(changed.encode(), NOW, ZONE) if i.text == "Dance class"]
    days = [f"{at:%m-%d}" for at in next_recurrences(items[0].recurrences, NOW, 3)]
    assert days == ["11-23", "12-21", "12-28"]
    assert [item.moment for item in items] == [None, datetime(2026, 12, 15, 19, tzinfo=UTC)]
    assert len({item.uid for item in items}) == 2
    schedule = Schedule(zone="Europe/Lisbon", recurrences=items[0].recurrences)
    line = format_rules(schedule)
    assert parse_schedule(f"{line} | dance", NOW, ZONE.key).schedule == schedule
    (entry,) = list_calendar_entries(
        [make_job(schedule, datetime(2026, 11, 23, 18, tzinfo=UTC))], NOW
    )
    (again,) = read_calendar(write_calendar([entry]), NOW, ZONE)
    assert next_recurrences(again.recurrences, NOW, 3) == next_recurrences(
        items[0].recurrences, NOW, 3
    )


def test_excluded_times_of_an_hourly_event_and_added_times_are_read_and_exported() -> None:
    changed = TRIP.replace(
        "RRULE:FREQ=WEEKLY;BYDAY=MO\n",
        "RRULE:FREQ=HOURLY;INTERVAL=3\nEXDATE;TZID=Europe/Lisbon:20261120T150000\n"
        "RDATE:20261120T133000Z,20200101T100000Z\n",
    )
    items = [i for i in read_calendar(changed.encode(), NOW, ZONE) if i.text == "Dance class"]
    assert [item.moment for item in items] == [None, datetime(2026, 11, 20, 13, 30, tzinfo=UTC)]
    assert len({item.uid for item in items}) == 2
    hours = [f"{at:%d %H}" for at in next_recurrences(items[0].recurrences, NOW, 3)]
    assert hours == ["20 18", "20 21", "21 00"]
    schedule = Schedule(zone="Europe/Lisbon", recurrences=items[0].recurrences)
    line = format_rules(schedule)
    assert parse_schedule(f"{line} | dance", NOW, ZONE.key).schedule == schedule
    (entry,) = list_calendar_entries([make_job(schedule, NOW)], NOW)
    (again,) = read_calendar(write_calendar([entry]), NOW, ZONE)
    assert [f"{at:%d %H}" for at in next_recurrences(again.recurrences, NOW, 3)] == hours


def test_exported_calendar_leaves_out_the_time_that_the_person_skipped() -> None:
    rule = "DTSTART;TZID=Europe/Lisbon:20261118T083000\nRRULE:FREQ=DAILY"
    schedule = Schedule(zone="Europe/Lisbon", recurrences=(rule,))
    # The job is due on the 22nd, because the 21st was skipped.
    job = make_job(schedule, datetime(2026, 11, 22, 8, 30, tzinfo=UTC))
    (entry,) = list_calendar_entries([job], NOW)
    (item,) = read_calendar(write_calendar([entry]), NOW, ZONE)
    days = [f"{at:%m-%d}" for at in next_recurrences(item.recurrences, NOW, 2)]
    assert days == ["11-22", "11-23"]


def test_unknown_time_zone_of_a_calendar_file_is_named_before_the_import(
    home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "trip.ics"
    path.write_text(TRIP.replace("TZID=Europe/Berlin", "TZID=Mars/Base"))
    plan = mneme(home, "import", str(path)).stdout
    assert "I don't know the time zone “Mars/Base” of the file" in plan


def test_file_that_is_not_a_calendar_is_refused() -> None:
    with pytest.raises(Refused, match="isn't a calendar file"):
        read_calendar(b"\x00\x01 no calendar", NOW, ZONE)


def test_exported_calendar_rule_with_a_count_has_only_the_remaining_occurrences() -> None:
    rule = "DTSTART;TZID=Europe/Lisbon:20261118T083000\nRRULE:FREQ=DAILY;COUNT=5"
    schedule = Schedule(zone="Europe/Lisbon", recurrences=(rule,))
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    job = make_job(schedule, datetime(2026, 11, 21, 8, 30, tzinfo=UTC))
    (entry,) = list_calendar_entries([job], now)
    assert (entry.start, entry.rule) == (job.next_at, "FREQ=DAILY;COUNT=2")


async def test_export_in_a_chat_contains_a_calendar_of_the_reminders(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me every monday at 8:30 to do the payroll")
        await harness.say("/remind 0 0 13 * 5 | beware")
        await harness.say("/remind 2030-01-15 09:00 | water the lawn")
        answer = (await harness.say("/export")).answer
        assert answer is not None
        (file,) = [file for file in answer.files if file.name == "reminders.ics"]
        events = Calendar.from_ical(file.content).walk("VEVENT")
        titles = sorted(str(event["SUMMARY"]) for event in events)
        assert titles == ["beware", "beware", "do the payroll", "water the lawn"]


def test_import_asks_for_a_yes_and_sets_each_item_once(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "trip.ics"
    path.write_text(TRIP)
    refused = mneme(home, "import", str(path))
    assert refused.returncode == 2
    assert "I would set 3 reminders:" in refused.stdout
    assert json.loads(good(home, "cron", "--json")) == []
    assert "I set 3 reminders." in good(home, "import", str(path), "--yes")
    assert "I set 0 reminders." in good(home, "import", str(path), "--yes")
    jobs = json.loads(good(home, "cron", "--json"))
    assert sorted(job["text"] for job in jobs) == [
        "Apply for the visa",
        "Dance class",
        "Flight to Oslo",
    ]
    exported = good(home, "export", "--ics")
    assert len(Calendar.from_ical(exported).walk("VEVENT")) == 3
    assert timedelta(0) < datetime.fromisoformat(jobs[0]["next_at"]) - datetime.now(UTC)
