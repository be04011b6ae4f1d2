"""Computes when a job is due, for all kinds of schedules.

Recurrences follow RFC 5545. Cron lines, intervals and single times are computed by
`core.dates.schedule`. The functions don't read the system clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from core.dates import schedule as other_kinds
from core.dates.recurrence import next_recurrence
from core.dates.schedule import Schedule


def next_due(schedule: Schedule, after: datetime) -> datetime | None:
    """Return the first due time later than `after` (aware), in UTC, or None if there is none."""
    if schedule.recurrences:
        return next_recurrence(schedule.recurrences, after)
    return other_kinds.next_due(schedule, after)


def latest_due(schedule: Schedule, first: datetime, now: datetime) -> datetime:
    """Return the last due time up to `now`. `first` is the earliest due time that was missed.

    After a downtime, a job runs once for this due time instead of once for each missed one.
    """
    due = first
    # The search begins an hour before `now` and goes further back only if nothing was due. A
    # schedule of every minute may have missed a whole year.
    for days in (1 / 24, 1, 32, 367, 367 * 9):
        candidate = next_due(schedule, max(now - timedelta(days=days), first))
        while candidate is not None and candidate <= now:
            due = candidate
            candidate = next_due(schedule, candidate)
        if due > first:
            break
    return due
