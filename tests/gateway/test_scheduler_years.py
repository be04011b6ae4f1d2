"""The real scheduler through three simulated years, compared with moments counted one by one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from core.dates.schedule import Schedule
from core.scheduling.due import next_due
from tests.fixtures.scheduler_harness import NOON, SchedulerHarness, lifetime

pytestmark = pytest.mark.slow

LISBON = ZoneInfo("Europe/Lisbon")
NEW_YORK = ZoneInfo("America/New_York")
END = NOON + timedelta(days=3 * 365)


class _JumpingClock:
    """A clock that stands still until it's moved."""

    def __init__(self) -> None:
        self.moment = NOON

    def now(self) -> datetime:
        return self.moment


def recurring(zone: ZoneInfo, start: str, rule: str) -> Schedule:
    text = f"DTSTART;TZID={zone.key}:{start}\nRRULE:{rule}"
    return Schedule(zone=zone.key, recurrences=(text,))


def days_at(zone: ZoneInfo, hour: int, minute: int, weekday: int | None = None) -> list[datetime]:
    """Count the days one by one, and return the moments (UTC) at a clock time."""
    moments = []
    day = NOON.date() - timedelta(days=1)
    while day <= END.date():
        if weekday is None or day.weekday() == weekday:
            local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
            moments.append(local.astimezone(UTC))
        day += timedelta(days=1)
    return [moment for moment in moments if NOON < moment <= END]


def second_tuesdays(zone: ZoneInfo, hour: int) -> list[datetime]:
    tuesdays: dict[tuple[int, int], list[date]] = {}
    day = date(NOON.year, NOON.month, 1)
    while day <= END.date():
        if day.weekday() == 1:
            tuesdays.setdefault((day.year, day.month), []).append(day)
        day += timedelta(days=1)
    seconds = [days[1] for days in tuesdays.values() if len(days) > 1]
    moments = [
        datetime(day.year, day.month, day.day, hour, tzinfo=zone).astimezone(UTC) for day in seconds
    ]
    return [moment for moment in moments if NOON < moment <= END]


async def _run_until_end(life: SchedulerHarness, clock: _JumpingClock) -> list[tuple[str, str]]:
    """Jump from one due moment to the next, and return what was put into the outbox: job, time."""
    delivered: list[tuple[str, str]] = []
    async with life.listening() as cron:
        await life.woken()
        while (next_at := await life.jobs.find_next_due(clock.moment)) and next_at <= END:
            clock.moment = next_at
            await cron.reload()
            await cron.reload()
            for item in await life.parcels():
                _, job_id, due_at = item.key.split(":", 2)
                delivered.append((job_id, due_at))
    return delivered


@pytest.mark.sweep
async def test_each_reminder_is_delivered_once_at_each_moment_of_three_years(
    tmp_path: Path,
) -> None:
    once = NOON + timedelta(days=400, hours=3)
    plans = [
        (Schedule(zone="UTC", at=once), [once]),
        (recurring(LISBON, "20261120T083000", "FREQ=WEEKLY;BYDAY=MO"), days_at(LISBON, 8, 30, 0)),
        (recurring(NEW_YORK, "20261120T210000", "FREQ=DAILY"), days_at(NEW_YORK, 21, 0)),
        (
            recurring(LISBON, "20261101T100000", "FREQ=MONTHLY;BYDAY=2TU"),
            second_tuesdays(LISBON, 10),
        ),
        (Schedule(zone=LISBON.key, cron="15 7 * * 3"), days_at(LISBON, 7, 15, 2)),
    ]
    clock = _JumpingClock()
    async with lifetime(tmp_path, clock) as life:  # type: ignore[arg-type]
        # Its delivery shows that the scheduler is listening.
        await life.add(text="begin")
        expected = set()
        for schedule, moments in plans:
            job = await life.add(schedule=schedule, due_at=next_due(schedule, NOON))
            expected |= {(str(job.id), moment.isoformat()) for moment in moments}
        delivered = await _run_until_end(life, clock)
    assert len(delivered) == len(set(delivered)), "nothing comes twice"
    assert set(delivered) == expected
