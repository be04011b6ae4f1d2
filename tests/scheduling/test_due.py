"""Recurrences that began years ago are due at the same moments, and skipped ones stay skipped."""

from __future__ import annotations

from datetime import UTC, datetime

from core.dates.recurrence import next_recurrence
from core.dates.schedule import Schedule
from core.scheduling.due import next_due, next_due_after_skips
from tests.fixtures.tables import each_row


@each_row(
    ("start", "rule"),
    [
        (";TZID=Europe/Lisbon:20261120T083000", "FREQ=DAILY;INTERVAL=3"),
        (";TZID=America/New_York:20261122T233000", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU"),
        (";TZID=Asia/Kathmandu:20261120T000500", "FREQ=DAILY;BYHOUR=8,20;BYMINUTE=5;BYSECOND=0"),
        (";TZID=Europe/Lisbon:20261120T013000", "FREQ=DAILY;UNTIL=20280101T000000Z"),
        (";TZID=Europe/Lisbon:20261120T083000", "FREQ=DAILY;COUNT=400"),
        (";TZID=Europe/Lisbon:20261113T100000", "FREQ=MONTHLY;BYDAY=2FR"),
        (":20261120T103000Z", "FREQ=HOURLY;INTERVAL=7"),
    ],
)
def test_recurrence_is_due_at_the_moments_of_its_rule(start: str, rule: str) -> None:
    text = f"DTSTART{start}\nRRULE:{rule}"
    schedule = Schedule(zone="Europe/Lisbon", recurrences=(text,))
    for day in range(1, 29, 3):
        for month in (1, 3, 10):
            for year in (2026, 2027, 2028):
                after = datetime(year, month, day, 1, 15, tzinfo=UTC)
                assert next_due(schedule, after) == next_recurrence([text], after)


def test_recurrence_of_every_minute_is_due_ten_years_later() -> None:
    text = "DTSTART:20261120T103000Z\nRRULE:FREQ=MINUTELY;INTERVAL=2"
    after = datetime(2036, 11, 20, 10, 30, 30, tzinfo=UTC)
    schedule = Schedule(zone="UTC", recurrences=(text,))
    assert next_due(schedule, after) == datetime(2036, 11, 20, 10, 32, tzinfo=UTC)


@each_row(
    ("start", "rule", "skipped_until", "due"),
    [
        # The same rhythm at another hour, later or earlier on the day.
        (";TZID=Europe/Lisbon:20261120T110000", "FREQ=DAILY", "21T08:30", "21T11:00"),
        (";TZID=Europe/Lisbon:20261120T073000", "FREQ=DAILY", "22T08:30", "22T07:30"),
        (";TZID=Asia/Tokyo:20261120T083000", "FREQ=DAILY", "22T08:30", "21T23:30"),
        # Nothing was skipped, or the skipped day isn't in the new schedule.
        (";TZID=Europe/Lisbon:20261120T110000", "FREQ=DAILY", "20T08:30", "20T11:00"),
        (";TZID=Europe/Lisbon:20261120T110000", "FREQ=WEEKLY;BYDAY=SU", "21T08:30", "22T11:00"),
        # One of two times of a day was skipped.
        (
            ";TZID=Europe/Lisbon:20261120T090000",
            "FREQ=DAILY;BYHOUR=9,20;BYMINUTE=0;BYSECOND=0",
            "21T08:30",
            "20T20:00",
        ),
    ],
)
def test_skipped_occurrence_stays_skipped_after_a_change(
    start: str, rule: str, skipped_until: str, due: str
) -> None:
    daily = "DTSTART;TZID=Europe/Lisbon:20261101T083000\nRRULE:FREQ=DAILY"
    old = Schedule(zone="Europe/Lisbon", recurrences=(daily,))
    zone = start.partition("=")[2].partition(":")[0]
    new = Schedule(zone=zone, recurrences=(f"DTSTART{start}\nRRULE:{rule}",))
    old_next_at = datetime.fromisoformat(f"2026-11-{skipped_until}:00+00:00")
    now = datetime(2026, 11, 20, 6, 0, tzinfo=UTC)
    moment = next_due_after_skips(new, old, old_next_at, now)
    assert moment == datetime.fromisoformat(f"2026-11-{due}:00+00:00")
