"""Cron lines and intervals become recurrences of RFC 5545 that are due at the same moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.dates.recurrence import next_recurrence
from core.dates.rules import to_recurrences
from core.dates.schedule import Schedule, next_due_by_clock
from tests.fixtures.tables import each_row

START = datetime(2026, 1, 1, 5, 7, 20, tzinfo=UTC)
ZONES = ("Europe/Lisbon", "America/New_York", "Asia/Kolkata", "Australia/Sydney")
CRON_LINES = [
    "30 8 * * 1",
    "0 9-17/2 * * 1-5",
    "0 0 13 * 5",
    "15,45 6 1,15 jan,jul *",
    "*/20 7 * * *",
    "0 12 * * sun",
    "0 12 * * 7",
    "*/15 * * * *",
    "30 * * * *",
    "0,20 * * * *",
    "* * * * *",
    "*/7 * * * *",
    "5-59/10 * * * *",
    "0 9 */2 * *",
    "0 9 */2 * 1",
    "0 9 24 12 *",
    "0 8,20 * * *",
    "*/10 9-17 * * 1-5",
    "0 0 29 2 *",
    "0 9 * 1,2 *",
]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", CRON_LINES)
@pytest.mark.slow
def test_recurrence_rules_converted_from_a_cron_line_are_due_at_the_same_times(
    cron: str, zone: str
) -> None:
    line = Schedule(zone=zone, cron=cron)
    converted = to_recurrences(line, START)
    assert converted.cron is None
    assert _list_due(converted, 60) == _list_due(line, 60)


@each_row("cron", ["0 9 * * *", "30 * * * *", "*/15 * * * *"])
def test_recurrences_of_a_cron_line_agree_across_clock_changes(cron: str) -> None:
    line = Schedule(zone="Europe/Lisbon", cron=cron)
    converted = to_recurrences(line, START)
    for change in (datetime(2026, 3, 28, 20, tzinfo=UTC), datetime(2026, 10, 24, 20, tzinfo=UTC)):
        assert _list_due(converted, 40, change) == _list_due(line, 40, change)


@each_row("every_s", [60, 90, 3600, 5400, 86_400, 172_800, 604_800, 1_209_600])
@each_row("start_at", [None, datetime(2025, 11, 20, 10, 0, tzinfo=UTC)])
def test_recurrence_of_an_interval_is_due_when_the_interval_is(
    every_s: int, start_at: datetime | None
) -> None:
    interval = Schedule(zone="Europe/Lisbon", every_s=every_s, start_at=start_at)
    converted = to_recurrences(interval, START)
    assert (converted.every_s, len(converted.recurrences)) == (None, 1)
    for after in (START, datetime(2026, 3, 28, 20, tzinfo=UTC)):
        assert _list_due(converted, 30, after) == _list_due(interval, 30, after)


def test_day_of_month_or_weekday_becomes_two_recurrences() -> None:
    converted = to_recurrences(Schedule(zone="Europe/Lisbon", cron="0 0 13 * 5"), START)
    rules = [text.partition("RRULE:")[2] for text in converted.recurrences]
    assert rules == ["FREQ=MONTHLY;BYMONTHDAY=13", "FREQ=WEEKLY;BYDAY=FR"]


@each_row("cron", ["0 9 L * *", "0 9 * * 1#2"])
def test_cron_line_without_an_equivalent_recurrence_rule_is_kept_as_cron(cron: str) -> None:
    line = Schedule(zone="Europe/Lisbon", cron=cron)
    assert to_recurrences(line, START) == line


def test_schedule_of_one_time_is_not_converted_to_a_recurrence() -> None:
    once = Schedule(zone="Europe/Lisbon", at=START + timedelta(days=1))
    assert to_recurrences(once, START) == once


def _list_due(schedule: Schedule, count: int, after: datetime = START) -> list[datetime]:
    moments: list[datetime] = []
    moment: datetime | None = after
    while len(moments) < count:
        assert moment is not None
        if schedule.recurrences:
            moment = next_recurrence(schedule.recurrences, moment)
        else:
            moment = next_due_by_clock(schedule, moment)
        assert moment is not None
        moments.append(moment)
    return moments
