"""Converts schedules to rules of RFC 5545, so that reminders can leave for a calendar.

Cron is due if the day of the month OR the weekday fits, if both are restricted. That takes two
rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from core.dates.calendar_file import CalendarEntry
from core.dates.schedule import DAY_S, MIN_INTERVAL_S, load_zone
from core.scheduling.due import next_due
from core.store.jobs import Job

_RULE = re.compile(r"RRULE:(\S+)")
_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def list_calendar_entries(jobs: Sequence[Job], now: datetime) -> list[CalendarEntry]:
    """Return the entries of a calendar file for jobs that are due again."""
    entries: list[CalendarEntry] = []
    for job in jobs:
        for number, (start, rule) in enumerate(_list_rules(job, now)):
            suffix = f"-{number}" if number else ""
            entries.append(
                CalendarEntry(
                    uid=f"reminder-{job.id}{suffix}@mneme",
                    text=job.text,
                    created_at=job.created_at,
                    start=start.astimezone(load_zone(job.schedule.zone)),
                    rule=rule,
                )
            )
    return entries


def _list_rules(job: Job, now: datetime) -> list[tuple[datetime, str]]:
    """Return the rules of a job, each with its next moment, which becomes its DTSTART."""
    schedule = job.schedule
    next_at = job.next_at or next_due(schedule, now)
    if next_at is None:
        return []
    if schedule.at is not None:
        return [(next_at, "")]
    if schedule.recurrences:
        rules = []
        for text in schedule.recurrences:
            match = _RULE.search(text)
            start = next_due(type(schedule)(zone=schedule.zone, recurrences=(text,)), now)
            if match is not None and start is not None:
                rules.append((start, _without_count(match[1])))
        return rules
    if schedule.cron is not None:
        return [(next_at, rule) for rule in convert_cron(schedule.cron)] or [(next_at, "")]
    every_s = max(schedule.every_s or 0, MIN_INTERVAL_S)
    if every_s % DAY_S == 0:
        return [(next_at, f"FREQ=DAILY;INTERVAL={every_s // DAY_S}")]
    return [(next_at, f"FREQ=MINUTELY;INTERVAL={max(every_s // 60, 1)}")]


def _without_count(rule: str) -> str:
    """Return a rule without its COUNT, which is counted from another DTSTART."""
    return ";".join(part for part in rule.split(";") if not part.startswith("COUNT="))


def convert_cron(cron: str) -> list[str]:
    """Return the rules of a cron line, without DTSTART.

    Returns [] if a field has a sign that no rule can express, such as ``L`` or ``#``.
    """
    minute, hour, day, month, weekday = cron.lower().split()
    minutes = _expand(minute, 0, 59)
    hours = _expand(hour, 0, 23)
    days = _expand(day, 1, 31)
    months = _expand(month, 1, 12, _MONTH_NAMES)
    weekdays = _expand(weekday, 0, 7, _DAY_NAMES)
    if minutes is None or hours is None or days is None or months is None or weekdays is None:
        return []
    parts = ["FREQ=DAILY"]
    if not month.startswith("*"):
        parts.append(f"BYMONTH={_list(months)}")
    times = [f"BYHOUR={_list(hours)}", f"BYMINUTE={_list(minutes)}", "BYSECOND=0"]
    restrictions = []
    if not day.startswith("*"):
        restrictions.append(f"BYMONTHDAY={_list(days)}")
    if not weekday.startswith("*"):
        names = dict.fromkeys(_WEEKDAYS[number % 7] for number in weekdays)
        restrictions.append(f"BYDAY={','.join(names)}")
    return [
        ";".join([*parts, *limit, *times]) for limit in ([[one] for one in restrictions] or [[]])
    ]


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _expand(field: str, low: int, high: int, names: Sequence[str] = ()) -> list[int] | None:
    """Return the numbers of a cron field, or None if it has another sign."""
    first_name = low if names and len(names) == 12 else 0
    for index, name in enumerate(names):
        field = field.replace(name, str(index + first_name))
    numbers: set[int] = set()
    for part in field.split(","):
        match = re.fullmatch(r"(?:\*|(\d+)(?:-(\d+))?)(?:/(\d+))?", part)
        if match is None:
            return None
        begin = low if match[1] is None else int(match[1])
        end = int(match[2]) if match[2] else (begin if match[1] and not match[3] else high)
        numbers.update(range(begin, end + 1, int(match[3] or 1)))
    return sorted(number for number in numbers if low <= number <= high)
