"""The real scheduler with many jobs: three simulated years of 1,000 mixed ones, compared with moments
that are counted day by day, and 100,000 of which only the due ones are read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from core.dates.schedule import Schedule
from core.scheduling.due import next_due
from core.store.jobs import Job
from core.types import Account
from tests.bench.jobs import JOBS, _fill
from tests.fixtures.scheduler_harness import NOON, SchedulerHarness, WatchedJobs, lifetime

pytestmark = pytest.mark.timeout(3600)

END = NOON + timedelta(days=3 * 365)
FIRST = date(2026, 11, 15)
DAY = timedelta(days=1)
ZONES = (
    *("Europe/Lisbon", "Europe/Berlin", "Europe/Athens", "America/New_York", "America/Chicago"),
    *("America/Los_Angeles", "America/Sao_Paulo", "America/Santiago", "Africa/Cairo", "Asia/Tokyo"),
    *("Africa/Casablanca", "Asia/Jerusalem", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Shanghai"),
    *("Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Chatham", "UTC"),
)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class _JumpingClock:
    """A clock that stands still until it's moved."""

    def __init__(self) -> None:
        self.moment = NOON

    def now(self) -> datetime:
        return self.moment


@dataclass(frozen=True, slots=True)
class _Plan:
    """A schedule, and the moments at which it's due by another way of counting."""

    schedule: Schedule
    moments: list[datetime]


def _days() -> Iterator[date]:
    day = NOON.date() - 5 * DAY
    while day <= END.date() + DAY:
        yield day
        day += DAY


def _plan_days(
    zone: str, hour: int, minute: int, rule: str, is_due: Callable[[date], bool]
) -> _Plan:
    """Return a plan for the days that fulfil a condition, at a clock time of a zone."""
    text = f"DTSTART;TZID={zone}:{FIRST:%Y%m%d}T{hour:02d}{minute:02d}00\nRRULE:{rule}"
    moments = set()
    for day in _days():
        if is_due(day):
            local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=ZoneInfo(zone))
            moment = local.astimezone(UTC)
            if NOON < moment <= END:
                moments.add(moment)
    return _Plan(Schedule(zone=zone, recurrences=(text,)), sorted(moments))


def _make_plans(count: int, chance: random.Random) -> list[_Plan]:
    """Return mixed plans. Frequent ones are few, so that the test takes minutes."""
    return [_make_plan(number, chance) for number in range(count)]


def _make_plan(number: int, chance: random.Random) -> _Plan:
    zone = ZONES[number % len(ZONES)]
    hour, minute = chance.randrange(24), chance.choice((0, 15, 30, 45))
    share = number % 250
    if share >= 90:
        at = NOON + timedelta(minutes=chance.randint(1, 3 * 365 * 1440 - 1))
        return _Plan(Schedule(zone=zone, at=at), [at])
    if share >= 80:
        return _plan_interval(zone, chance.randint(40, 400))
    rule, is_due = _make_rule(share, chance)
    return _plan_days(zone, hour, minute, rule, is_due)


def _make_rule(share: int, chance: random.Random) -> tuple[str, Callable[[date], bool]]:
    """Return an RRULE of days, and a condition that tells its days in another way."""
    weekday, month, day = chance.randrange(7), chance.randint(1, 12), chance.randint(1, 31)
    nth, step = chance.randint(1, 4), chance.randint(9, 60)

    def is_nth_weekday(each: date) -> bool:
        return each.weekday() == weekday and (each.day - 1) // 7 == nth - 1

    if share == 0:
        return "FREQ=DAILY", lambda each: True
    if share < 5:
        return f"FREQ=WEEKLY;BYDAY={WEEKDAYS[weekday]}", lambda each: each.weekday() == weekday
    if share < 15:
        return f"FREQ=DAILY;INTERVAL={step}", lambda each: (each - FIRST).days % step == 0
    if share < 30:
        return f"FREQ=MONTHLY;BYMONTHDAY={day}", lambda each: each.day == day
    if share < 45:
        return f"FREQ=MONTHLY;BYDAY={nth}{WEEKDAYS[weekday]}", is_nth_weekday
    if share < 55:
        return "FREQ=MONTHLY;BYMONTHDAY=-1", lambda each: (each + DAY).month != each.month
    day = min(day, 28)
    rule = f"FREQ=YEARLY;BYMONTH={month};BYMONTHDAY={day}"
    return rule, lambda each: (each.month, each.day) == (month, day)


def _plan_interval(zone: str, hours: int) -> _Plan:
    """Return a plan for every few hours, which a clock change neither lengthens nor shortens."""
    start = datetime(2026, 11, 15, 3, 30, tzinfo=UTC)
    text = f"DTSTART:{start:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=HOURLY;INTERVAL={hours}"
    moments = []
    moment = start
    while moment <= END:
        if moment > NOON:
            moments.append(moment)
        moment += timedelta(hours=hours)
    return _Plan(Schedule(zone=zone, recurrences=(text,)), moments)


async def _run_until_end(life: SchedulerHarness, clock: _JumpingClock) -> list[tuple[str, str]]:
    """Jump from one due moment to the next, and return what was put into the outbox: job, time."""
    delivered: list[tuple[str, str]] = []
    async with life.listening() as cron:
        await life.woken()
        while (next_at := await life.jobs.find_next_due(clock.moment)) and next_at <= END:
            clock.moment = next_at
            await cron.reload()
            for item in await life.parcels():
                _, job_id, due_at = item.key.split(":", 2)
                delivered.append((job_id, due_at))
    return delivered


async def test_thousand_mixed_jobs_are_each_delivered_once_at_each_moment_of_three_years(
    tmp_path: Path,
) -> None:
    clock = _JumpingClock()
    plans = _make_plans(1_000, random.Random(30))
    async with lifetime(tmp_path, clock) as life:  # type: ignore[arg-type]
        # Its delivery shows that the scheduler is listening.
        await life.add(text="begin")
        expected = set()
        for number, plan in enumerate(plans):
            # Every hundred jobs belong to another person, because of the limit for each person.
            account = Account(platform="telegram", user_id=str(1_000 + number // 90))
            job = await life.add(
                schedule=plan.schedule, due_at=next_due(plan.schedule, NOON), account=account
            )
            expected |= {(str(job.id), moment.isoformat()) for moment in plan.moments}
        delivered = await _run_until_end(life, clock)
    assert len(delivered) == len(set(delivered)), "nothing comes twice"
    assert set(delivered) == expected


class _CountingJobs(WatchedJobs):
    """Counts the jobs that a look at the store returns."""

    returned = 0

    async def list_due(self, now: datetime) -> list[Job]:
        jobs = await super().list_due(now)
        self.returned += len(jobs)
        return jobs

    async def list_active(self) -> list[Job]:
        raise AssertionError("a look must not read all jobs")


async def test_of_a_hundred_thousand_jobs_only_the_due_ones_are_read(tmp_path: Path) -> None:
    clock = _JumpingClock()
    async with lifetime(tmp_path, clock) as life:  # type: ignore[arg-type]
        database = life.jobs._database
        await _fill(life, JOBS, NOON + timedelta(hours=1), step=1)
        await _fill(life, 7, NOON - timedelta(seconds=1), step=0)
        jobs = _CountingJobs(database, life.watch)
        async with life.listening(life.made(jobs)) as cron:
            await life.watch.until(lambda: jobs.queued == 7)
            await cron.reload()
            assert jobs.returned == 7
        plan = await database.fetch_all(
            "EXPLAIN QUERY PLAN SELECT id FROM jobs WHERE ended_at IS NULL AND paused_at IS NULL"
            " AND next_at <= 0 ORDER BY next_at",
            {},
        )
        assert any("jobs_by_due" in row["detail"] for row in plan)
