"""Compute when a job is due, for all kinds of schedules.

`core.dates.recurrence` computes recurrences, which follow RFC 5545. `core.dates.schedule` computes
cron lines, intervals and single times, and explains what happens at clock changes. The current time
is a parameter.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta

from core.dates.recurrence import next_recurrence
from core.dates.schedule import Schedule, load_zone, next_due_by_clock

MAX_SKIPPED = 1_000
"""At most this many skipped occurrences are kept when a schedule changes."""
_START_FORMAT = "%Y%m%dT%H%M%S"
_FIXED_STEP = re.compile(
    r"(?P<head>DTSTART[^:]*:)(?P<start>\d{8}T\d{6})"
    r"(?P<tail>Z?\nRRULE:FREQ=(?P<unit>MINUTELY|HOURLY|DAILY|WEEKLY)"
    r"(?:;INTERVAL=(?P<interval>\d+))?(?:;.*)?)"
)
_STEPS = {
    "MINUTELY": timedelta(minutes=1),
    "HOURLY": timedelta(hours=1),
    "DAILY": timedelta(days=1),
    "WEEKLY": timedelta(weeks=1),
}


def next_due(schedule: Schedule, after: datetime) -> datetime | None:
    """Return the first due time (UTC) after `after` (aware), or None."""
    if schedule.recurrences:
        return next_recurrence([_anchor_near(text, after) for text in schedule.recurrences], after)
    return next_due_by_clock(schedule, after)


def _anchor_near(text: str, after: datetime) -> str:
    """Return the same recurrence with a DTSTART shortly before `after`.

    The moments of a rule are counted from DTSTART, which takes long if the rule began years ago.
    DTSTART moves by a multiple of the interval, so the moments stay the same. Two kinds of rules
    aren't changed: those with COUNT, and those of months or years, which have few moments.
    """
    match = _FIXED_STEP.fullmatch(text)
    if match is None or "COUNT=" in text:
        return text
    interval = int(match["interval"] or 1)
    step = _STEPS[match["unit"]] * interval
    start = datetime.strptime(match["start"], _START_FORMAT)  # noqa: DTZ007
    # The clocks of two zones never differ by two days.
    distance = after.astimezone(UTC).replace(tzinfo=None) - timedelta(days=2) - start
    if distance <= step:
        return text
    # Weeks begin on Monday, so whole steps of weeks keep the weekday of DTSTART.
    near = start + distance // step * step
    return f"{match['head']}{near:{_START_FORMAT}}{match['tail']}"


def latest_due(schedule: Schedule, first: datetime, now: datetime) -> datetime:
    """Return the last due time up to `now`. `first` is the earliest missed due time.

    After a downtime, a job runs only once, for the last due time.
    """
    due = first
    following = next_due(schedule, first)
    if following is None or following > now:
        return first
    # Search from an hour before `now`, and from earlier times only if nothing was due. A schedule
    # for every minute may have missed a whole year.
    for days in (1 / 24, 1, 32, 367, 367 * 9):
        candidate = next_due(schedule, max(now - timedelta(days=days), first))
        while candidate is not None and candidate <= now:
            due = candidate
            candidate = next_due(schedule, candidate)
        if due > first:
            break
    return due


def next_due_after_skips(
    new: Schedule, old: Schedule, old_next_at: datetime | None, now: datetime
) -> datetime | None:
    """Return when a job is due next after its schedule, or only its zone, changed, or None.

    If the person skipped occurrences, the job was due at `old_next_at`. The new schedule then
    leaves out as many occurrences on the same days, unless it has no others.
    """
    first = next_due(new, now)
    skipped_days = _count_skipped_days(old, old_next_at, now)
    zone = load_zone(new.zone)
    moment = first
    while moment is not None and skipped_days:
        day = moment.astimezone(zone).date()
        if not skipped_days[day]:
            break
        skipped_days[day] -= 1
        moment = next_due(new, moment)
    return moment or first


def _count_skipped_days(
    schedule: Schedule, next_at: datetime | None, now: datetime
) -> Counter[date]:
    """Count the occurrences between `now` and `next_at` by their day in the schedule's zone."""
    days: Counter[date] = Counter()
    if schedule.at is not None or next_at is None:
        return days
    zone = load_zone(schedule.zone)
    moment = next_due(schedule, now)
    while moment is not None and moment < next_at and days.total() < MAX_SKIPPED:
        days[moment.astimezone(zone).date()] += 1
        moment = next_due(schedule, moment)
    return days
