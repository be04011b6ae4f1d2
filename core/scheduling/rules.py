"""Convert reminders to entries of a calendar file, with rules of RFC 5545."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from core.dates.calendar_file import CalendarEntry
from core.dates.recurrence import find_excluded_days, find_excluded_times, next_recurrences
from core.dates.rules import to_recurrences
from core.dates.schedule import Schedule, load_zone
from core.scheduling.due import next_due
from core.store.jobs import Job

_RULE = re.compile(r"RRULE:(\S+)")
_COUNT = re.compile(r"\bCOUNT=(\d+)")


class _Rule(NamedTuple):
    """A rule of a job. Its next moment becomes its DTSTART."""

    start: datetime
    # The RRULE, or "" for a single moment.
    text: str = ""
    excluded_days: frozenset[date] = frozenset()
    excluded_times: frozenset[datetime] = frozenset()


def list_calendar_entries(jobs: Sequence[Job], now: datetime) -> list[CalendarEntry]:
    """Return the calendar entries of all jobs that are due again."""
    entries: list[CalendarEntry] = []
    for job in jobs:
        for number, rule in enumerate(_list_rules(job, now)):
            suffix = f"-{number}" if number else ""
            entries.append(
                CalendarEntry(
                    uid=f"reminder-{job.id}{suffix}@mneme",
                    text=job.text,
                    created_at=job.created_at,
                    start=rule.start.astimezone(load_zone(job.schedule.zone)),
                    rule=rule.text,
                    excluded_days=rule.excluded_days,
                    excluded_times=rule.excluded_times,
                )
            )
    return entries


def _list_rules(job: Job, now: datetime) -> list[_Rule]:
    """Return the rules of a job, from its next moment on. Skipped moments are left out."""
    schedule = job.schedule
    next_at = job.next_at or next_due(schedule, now)
    if next_at is None:
        return []
    if schedule.at is not None:
        return [_Rule(next_at)]
    before_next = max(now, next_at - timedelta(seconds=1))
    schedule_by_rules = to_recurrences(schedule, now)
    rules = []
    for text in schedule_by_rules.recurrences:
        match = _RULE.search(text)
        start = next_due(Schedule(zone=schedule.zone, recurrences=(text,)), before_next)
        if match is not None and start is not None:
            remaining = _count_remaining(match[1], text, before_next)
            days, times = find_excluded_days(text), find_excluded_times(text)
            rules.append(_Rule(start, remaining, days, times))
    # If no rule expresses a cron line, only its next time is exported.
    return rules if schedule_by_rules.recurrences else [_Rule(next_at)]


def _count_remaining(rule: str, text: str, now: datetime) -> str:
    """Return a rule whose COUNT only counts the moments after `now`.

    A rule without COUNT is returned unchanged. `text` is the recurrence with its own DTSTART, from
    which its COUNT counts.
    """
    count = _COUNT.search(rule)
    if count is None:
        return rule
    remaining = len(next_recurrences([text], now, int(count[1])))
    return _COUNT.sub(f"COUNT={remaining}", rule)
