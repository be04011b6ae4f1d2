"""Recurrences of RFC 5545, compared with an oracle that looks at every day."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from core.dates.recurrence import next_recurrence, next_recurrences
from core.errors import Refused
from tests.fixtures.tables import each_row

ZONES = (
    "Europe/Lisbon", "Europe/London", "Europe/Berlin", "Europe/Moscow", "Africa/Cairo",
    "Africa/Casablanca", "America/New_York", "America/Los_Angeles", "America/St_Johns",
    "America/Sao_Paulo", "America/Santiago", "America/Havana", "Asia/Tokyo", "Asia/Kolkata",
    "Asia/Kathmandu", "Asia/Beirut", "Australia/Lord_Howe", "Australia/Sydney",
    "Pacific/Auckland", "Pacific/Chatham",
)  # fmt: skip
FIRST_DAY = date(2026, 1, 1)
DAYS = 3 * 365 + 1

IsDue = Callable[[date], bool]


def is_nth_weekday(day: date, nth: int, weekday: int) -> bool:
    if day.weekday() != weekday:
        return False
    if nth < 0:
        return (day + timedelta(days=7)).month != day.month
    return (day.day - 1) // 7 + 1 == nth


def month_length(day: date) -> int:
    return ((day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)).day


# The RRULE without times, and whether a day is due.
RULES: list[tuple[str, IsDue]] = [
    ("FREQ=DAILY", lambda day: True),
    ("FREQ=DAILY;INTERVAL=2", lambda day: (day - FIRST_DAY).days % 2 == 0),
    ("FREQ=WEEKLY;BYDAY=MO,TH", lambda day: day.weekday() in (0, 3)),
    (
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=TH",
        lambda day: day.weekday() == 3 and (day - FIRST_DAY).days // 7 % 2 == 0,
    ),
    ("FREQ=MONTHLY;BYMONTHDAY=15", lambda day: day.day == 15),
    ("FREQ=MONTHLY;BYMONTHDAY=-1", lambda day: day.day == month_length(day)),
    (
        "FREQ=MONTHLY;BYMONTHDAY=28,29,30;BYSETPOS=-1",
        lambda day: day.day == min(30, month_length(day)),
    ),
    ("FREQ=MONTHLY;BYDAY=2TU", lambda day: is_nth_weekday(day, 2, 1)),
    ("FREQ=MONTHLY;BYDAY=-1FR", lambda day: is_nth_weekday(day, -1, 4)),
    ("FREQ=MONTHLY;BYMONTH=1,4,7,10;BYMONTHDAY=1", lambda day: day.month % 3 == 1 and day.day == 1),
    ("FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=3", lambda day: (day.month, day.day) == (5, 3)),
]


def due_moments(is_due: IsDue, at: time, zone: ZoneInfo) -> list[datetime]:
    """Return the moments of three years, one day after the other."""
    moments = set()
    for number in range(DAYS):
        day = FIRST_DAY + timedelta(days=number)
        if is_due(day):
            # A skipped wall time has the offset from before the clock change.
            moments.add(datetime.combine(day, at, zone).astimezone(UTC))
    return sorted(moments)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZONES)
def test_recurrences_of_three_years_agree_with_a_look_at_every_day(name: str) -> None:
    zone = ZoneInfo(name)
    chance = random.Random(name)
    for rule, is_due in RULES:
        # Clocks change between midnight and four in the morning.
        at = time(chance.choice((0, 1, 2, 3, 9, 23)), chance.choice((0, 15, 30)))
        text = f"DTSTART;TZID={name}:{FIRST_DAY:%Y%m%d}T{at:%H%M%S}\nRRULE:{rule}"
        expected = due_moments(is_due, at, zone)
        begin = expected[0] - timedelta(seconds=1)

        assert next_recurrences([text], begin, len(expected)) == expected, (rule, at)
        for _ in range(5):
            index = chance.randrange(1, len(expected))
            assert next_recurrence([text], expected[index - 1]) == expected[index], (rule, at)
            before = expected[index] - timedelta(minutes=1)
            if before > expected[index - 1]:
                assert next_recurrence([text], before) == expected[index], (rule, at)


def test_several_recurrences_are_merged_in_the_order_of_their_moments() -> None:
    texts = [
        "DTSTART;TZID=Europe/Lisbon:20260101T080000\nRRULE:FREQ=DAILY",
        "DTSTART;TZID=Europe/Lisbon:20260101T203000\nRRULE:FREQ=DAILY",
    ]

    moments = next_recurrences(texts, datetime(2026, 1, 1, 12, tzinfo=UTC), 3)

    assert [f"{moment:%d %H:%M}" for moment in moments] == ["01 20:30", "02 08:00", "02 20:30"]


def test_interval_in_utc_has_the_same_length_across_a_clock_change() -> None:
    text = "DTSTART:20260328T233000Z\nRRULE:FREQ=MINUTELY;INTERVAL=90"

    moments = next_recurrences([text], datetime(2030, 3, 31, tzinfo=UTC), 2)

    assert moments[1] - moments[0] == timedelta(minutes=90)
    assert (moments[0] - datetime(2026, 3, 28, 23, 30, tzinfo=UTC)) % timedelta(minutes=90) == (
        timedelta(0)
    )


def test_recurrence_until_a_date_without_a_time_includes_that_day() -> None:
    text = "DTSTART;TZID=Europe/Lisbon:20261202T090000\nRRULE:FREQ=DAILY;UNTIL=20261204"
    after = datetime(2026, 12, 3, 12, tzinfo=UTC)

    assert next_recurrences([text], after, 5) == [datetime(2026, 12, 4, 9, tzinfo=UTC)]


def test_recurrence_until_an_impossible_date_is_refused() -> None:
    text = "DTSTART;TZID=Europe/Lisbon:20261202T090000\nRRULE:FREQ=DAILY;UNTIL=20261341"

    with pytest.raises(Refused):
        next_recurrences([text], datetime(2026, 12, 3, tzinfo=UTC), 5)


@each_row("end", ["COUNT=3", "UNTIL=20260328T023000Z"])
def test_hourly_recurrence_ends_after_its_count_or_its_until_time(end: str) -> None:
    text = f"DTSTART:20260328T000000Z\nRRULE:FREQ=HOURLY;{end}"

    moments = next_recurrences([text], datetime(2026, 3, 1, tzinfo=UTC), 10)

    assert [moment.hour for moment in moments] == [0, 1, 2]
    assert next_recurrence([text], moments[-1]) is None


def test_end_of_a_recurrence_is_a_moment_and_not_a_wall_time() -> None:
    text = "DTSTART;TZID=America/New_York:20260101T200000\nRRULE:FREQ=DAILY;UNTIL=20260104T010000Z"

    moments = next_recurrences([text], datetime(2026, 1, 1, tzinfo=UTC), 10)

    assert [f"{moment:%d %H}" for moment in moments] == ["02 01", "03 01", "04 01"]


@each_row(
    "text",
    [
        "every monday",
        "DTSTART:20260101T080000\nRRULE:INTERVAL=2",
        "DTSTART:20260101T080000\nRRULE:FREQ=NEVER",
        "DTSTART:20269901T080000\nRRULE:FREQ=DAILY",
        "DTSTART:20260101T080000\nRRULE:FREQ=DAILY;INTERVAL=0",
        "DTSTART:20260101T080000\nRRULE:FREQ=WEEKLY;BYDAY=XX",
    ],
)
def test_recurrence_that_is_invalid_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        next_recurrences([text], datetime(2026, 1, 1, tzinfo=UTC), 1)


@each_row(
    ("rule", "sentence"),
    [
        ("FREQ=DAILY;BYMONTH=77", "BYMONTH of a recurrence must be between 1 and 12."),
        ("FREQ=DAILY;BYHOUR=9,24", "BYHOUR of a recurrence must be between 0 and 23."),
        ("FREQ=YEARLY;BYMONTH=MAY", "BYMONTH of a recurrence must be numbers with commas."),
        (
            "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30",
            "Month 2 has no day 30, so it would never be due.",
        ),
    ],
)
def test_rule_that_is_never_due_is_refused_without_a_search(rule: str, sentence: str) -> None:
    with pytest.raises(Refused, match=re.escape(sentence)):
        next_recurrences(
            [f"DTSTART:20260101T090000Z RRULE:{rule}"], datetime(2026, 1, 1, tzinfo=UTC), 1
        )
