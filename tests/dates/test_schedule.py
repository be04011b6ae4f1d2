"""Due times follow the clocks of their zone through every change of them, and are said in plain
words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dates.parsing import parse_schedule
from core.dates.recurrence import next_recurrence
from core.dates.schedule import Schedule, describe_cron, format_duration, next_due_by_clock
from core.scheduling.due import latest_due
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
"""A Friday; in Lisbon it is noon too."""
ZONE = "Europe/Lisbon"
ZONES = (
    ZONE,
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "UTC",
    "Africa/Casablanca",
)

FIELDS = st.tuples(
    st.one_of(
        st.just("*"), st.integers(0, 59).map(str), st.integers(1, 30).map(lambda step: f"*/{step}")
    ),
    st.one_of(
        st.just("*"),
        st.integers(0, 23).map(str),
        st.tuples(st.integers(0, 11), st.integers(12, 23)).map(lambda ends: f"{ends[0]}-{ends[1]}"),
    ),
    st.one_of(st.just("*"), st.integers(1, 28).map(str), st.just("L")),
    st.one_of(st.just("*"), st.integers(1, 12).map(str)),
    st.one_of(
        st.just("*"), st.integers(0, 7).map(str), st.just("1-5"), st.just("1#1"), st.just("5L")
    ),
)
MOMENTS = st.integers(0, 5 * 366 * 86400).map(
    lambda seconds: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)


@given(FIELDS, st.sampled_from(ZONES), MOMENTS)
def test_due_times_of_cron_increase(fields: tuple[str, ...], zone: str, after: datetime) -> None:
    schedule = Schedule(zone=zone, cron=" ".join(fields))
    assert describe_cron(schedule.cron or "")
    for _ in range(3):
        following = next_due_by_clock(schedule, after)
        assert following is not None
        assert following > after
        assert following.tzinfo is UTC
        assert (following.second, following.microsecond) == (0, 0)
        after = following


@given(st.integers(60, 40 * 86400), st.booleans(), st.sampled_from(ZONES), MOMENTS, MOMENTS)
def test_due_times_of_intervals_increase(
    every_s: int, is_by_day: bool, zone: str, start: datetime, after: datetime
) -> None:
    every_s = max(every_s // 86400, 1) * 86400 if is_by_day else every_s
    start = start.replace(microsecond=0)
    schedule = Schedule(zone=zone, every_s=every_s, start_at=start)
    following = next_due_by_clock(schedule, after)
    assert following is not None
    assert following > after
    assert following >= start
    if every_s % 86400:
        assert (following - start) % timedelta(seconds=every_s) == timedelta()
    second = next_due_by_clock(schedule, following)
    assert second is not None
    assert abs((second - following).total_seconds() - every_s) <= 7200


def matches(fields: list[set[int]], wall: datetime) -> bool:
    return wall.minute in fields[0] and wall.hour in fields[1]


def reference(cron: str, zone: ZoneInfo, first: datetime, last: datetime) -> list[datetime]:
    """Every due time of a daily cron line, found by looking at each minute of the span."""
    minutes, hours = cron.split()[:2]
    fields = [_numbers(minutes, 60), _numbers(hours, 24)]
    is_fixed = not minutes.startswith("*") and not hours.startswith("*")
    found: list[datetime] = []
    moment, shown = first, (first - timedelta(minutes=1)).astimezone(zone).replace(tzinfo=None)
    while moment <= last:
        wall = moment.astimezone(zone).replace(tzinfo=None)
        if not is_fixed and matches(fields, wall):
            found.append(moment)
        if is_fixed:
            # Everything on the clock between the last minute and this one is due now, but nothing
            # twice.
            while shown < wall:
                shown += timedelta(minutes=1)
                if matches(fields, shown) and (not found or found[-1] != moment):
                    found.append(moment)
        moment += timedelta(minutes=1)
    return found


def _numbers(field: str, size: int) -> set[int]:
    body, _, step = field.partition("/")
    every = range(size) if body == "*" else [int(number) for number in body.split(",")]
    return set(list(every)[:: int(step or 1)])


CHANGES = [
    (ZONE, datetime(2026, 3, 29, tzinfo=UTC)),
    (ZONE, datetime(2026, 10, 25, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 4, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 4, tzinfo=UTC)),
    ("Asia/Kolkata", datetime(2026, 3, 29, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 13, tzinfo=UTC)),
]
LINES = [
    "30 1 * * *",
    "30 2 * * *",
    "15,45 1,2 * * *",
    "0 3 * * *",
    "0 * * * *",
    "*/20 * * * *",
    "*/30 1 * * *",
]
LINES += ["* 2 * * *", "10 */2 * * *", "45 1 * * *", "0 0 * * *"]


@each_row(("zone", "day"), CHANGES, ids=[f"{zone} {day:%B}" for zone, day in CHANGES])
@each_row("cron", LINES)
def test_cron_line_follows_the_clocks_of_its_zone_through_their_changes(
    cron: str, zone: str, day: datetime
) -> None:
    """Against a reference that looks at every minute: a gap comes later, what is shown twice comes
    once."""
    first, last = day - timedelta(hours=8), day + timedelta(hours=20)
    expected = reference(cron, ZoneInfo(zone), first, last)
    schedule = Schedule(zone=zone, cron=cron)
    found: list[datetime] = []
    after = first - timedelta(seconds=1)
    while (following := next_due_by_clock(schedule, after)) is not None and following <= last:
        found.append(following)
        after = following
    assert found == expected
    # Asked from any moment between, not only from one due time to the next.
    for step in range(0, 28 * 60, 41):
        moment = first + timedelta(minutes=step, seconds=30)
        assert next_due_by_clock(schedule, moment) == next(
            (due for due in expected if due > moment), None
        ) or (not expected or moment >= expected[-1])


def test_clock_change_moves_a_skipped_time_later_and_takes_a_repeated_times_first_hour() -> None:
    before = datetime(2026, 3, 7, 12, tzinfo=UTC)
    gap = parse_schedule("tomorrow at 2:30am x", before, "America/New_York").schedule
    assert gap.at == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)
    before = datetime(2026, 10, 31, 12, tzinfo=UTC)
    fold = parse_schedule("tomorrow at 1:30am x", before, "America/New_York").schedule
    assert fold.at == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)


def test_a_clock_time_in_the_second_of_two_equal_hours() -> None:
    second = datetime(2026, 10, 25, 1, 45, tzinfo=UTC)
    assert parse_schedule("in 10 minutes x", second, ZONE).schedule.at == second + timedelta(
        minutes=10
    )
    assert parse_schedule("at 1:50am x", second, ZONE).schedule.at == datetime(
        2026, 10, 26, 1, 50, tzinfo=UTC
    )


def test_days_keep_their_wall_time_and_hours_their_length() -> None:
    before = datetime(2026, 10, 24, 10, tzinfo=UTC)
    by_day = parse_schedule("every 2 days at 9 water", before, ZONE).schedule
    first = next_recurrence(by_day.recurrences, before)
    assert first == datetime(2026, 10, 25, 9, tzinfo=UTC)
    earlier = Schedule(zone=ZONE, every_s=2 * 86400, start_at=datetime(2026, 10, 24, 8, tzinfo=UTC))
    assert next_due_by_clock(earlier, before) == datetime(2026, 10, 26, 9, tzinfo=UTC)
    by_hour = Schedule(zone=ZONE, every_s=12 * 3600, start_at=datetime(2026, 10, 24, 8, tzinfo=UTC))
    assert next_due_by_clock(by_hour, before + timedelta(hours=20)) == datetime(
        2026, 10, 25, 8, tzinfo=UTC
    )


def test_schedule_of_one_moment_is_due_once() -> None:
    schedule = Schedule(zone=ZONE, at=NOW)
    assert next_due_by_clock(schedule, NOW - timedelta(seconds=1)) == NOW
    assert next_due_by_clock(schedule, NOW) is None


def test_schedule_beyond_the_last_representable_date_has_no_next_time() -> None:
    late = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    for schedule in (
        Schedule(zone=ZONE, cron="0 9 * * *"),
        Schedule(zone=ZONE, every_s=86400, start_at=NOW),
    ):
        assert next_due_by_clock(schedule, late) is None


@each_row(
    ("schedule", "first", "expected"),
    [
        (Schedule(zone=ZONE, cron="0 9 * * *"), "2026-11-17T09:00Z", "2026-11-20T09:00Z"),
        (Schedule(zone=ZONE, cron="* * * * *"), "2026-01-01T00:00Z", "2026-11-20T12:00Z"),
        (Schedule(zone=ZONE, cron="0 9 3 5 *"), "2020-05-03T08:00Z", "2026-05-03T08:00Z"),
        (Schedule(zone=ZONE, cron="0 9 20 11 *"), "2026-11-20T09:00Z", "2026-11-20T09:00Z"),
        (Schedule(zone=ZONE, cron="0 9 29 2 *"), "2016-02-29T09:00Z", "2024-02-29T09:00Z"),
        (
            Schedule(zone=ZONE, every_s=7200, start_at=datetime(2026, 11, 1, 1, tzinfo=UTC)),
            "2026-11-01T03:00Z",
            "2026-11-20T11:00Z",
        ),
        (
            Schedule(zone=ZONE, at=datetime(2026, 11, 19, tzinfo=UTC)),
            "2026-11-19T00:00Z",
            "2026-11-19T00:00Z",
        ),
    ],
)
def test_only_the_latest_of_several_missed_occurrences_is_due(
    schedule: Schedule, first: str, expected: str
) -> None:
    assert latest_due(schedule, datetime.fromisoformat(first), NOW) == datetime.fromisoformat(
        expected
    )


@each_row(
    ("seconds", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (90, "1 minute 30 seconds"),
        (7200, "2 hours"),
        (5400, "1 hour 30 minutes"),
        (86400 + 60, "1 day"),
        (8 * 86400, "1 week 1 day"),
    ],
)
def test_duration_is_spelled_out_in_its_two_largest_units(seconds: int, words: str) -> None:
    assert format_duration(seconds) == words
