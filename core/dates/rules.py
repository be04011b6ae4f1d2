"""Convert cron lines and intervals to recurrences of RFC 5545.

If a cron line restricts both the day of the month and the weekday, it is due when either of them
matches, so it becomes two recurrences. Lines that are due every hour become recurrences in UTC, so
that a clock change neither skips nor repeats a due time. Other cron lines keep their wall times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from core.dates.schedule import DAY_S, MIN_INTERVAL_S, Schedule, load_zone, next_due_by_clock

_WEEK_S = 7 * DAY_S
_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LIMIT = re.compile(r";(?:COUNT|UNTIL)=[^;\s]+")
# Matches a DTSTART with a zone: its beginning, the hour and the minute.
_WALL_START = re.compile(r"(DTSTART;TZID=[^:]+:\d{8}T)(\d\d)(\d\d)")
_SHORT_RHYTHM = re.compile(r"FREQ=(?:HOURLY|MINUTELY|SECONDLY)")
# A line for certain minutes of every hour becomes one recurrence per minute, at most this many.
_MAX_HOURLY_RULES = 12


def to_recurrences(schedule: Schedule, now: datetime) -> Schedule:
    """Convert a schedule to recurrences that are due at the same times.

    A single time is returned unchanged, and so is a cron line with a character that no RRULE can
    express, such as ``L`` or ``#``. The recurrences start at `now`.
    """
    if schedule.cron is not None:
        texts = _convert_cron_line(schedule, now)
    elif schedule.every_s is not None:
        texts = [_convert_interval(schedule, schedule.every_s)]
    else:
        return schedule
    if not texts:
        return schedule
    return Schedule(zone=schedule.zone, recurrences=tuple(texts))


def end_at(schedule: Schedule, last: datetime | None) -> Schedule:
    """Let a schedule of recurrences end at `last` (aware), or never if `last` is None.

    The end replaces a COUNT of the recurrences.
    """
    end = "" if last is None else f";UNTIL={last.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    texts = tuple(f"{_LIMIT.sub('', text)}{end}" for text in schedule.recurrences)
    return replace(schedule, recurrences=texts)


def find_clock(schedule: Schedule) -> int | None:
    """Return the time of day of a schedule, in minutes after midnight.

    Returns None if the schedule has no time of day or several.
    """
    clocks = set()
    for text in schedule.recurrences:
        start = _WALL_START.match(text)
        if start is None or "BYHOUR" in text or _SHORT_RHYTHM.search(text):
            return None
        clocks.add(60 * int(start[2]) + int(start[3]))
    return clocks.pop() if len(clocks) == 1 else None


def move_clock(schedule: Schedule, minutes: int) -> Schedule:
    """Move a schedule to another time of day, on the same days."""
    clock = f"{minutes // 60:02}{minutes % 60:02}"
    texts = [_WALL_START.sub(rf"\g<1>{clock}", text) for text in schedule.recurrences]
    return replace(schedule, recurrences=tuple(texts))


# --- Intervals ---


def _convert_interval(schedule: Schedule, every_s: int) -> str:
    """Convert an interval to a recurrence, in the largest unit that divides it."""
    every_s = max(every_s, MIN_INTERVAL_S)
    start = (schedule.start_at or datetime(1970, 1, 1, tzinfo=UTC)).astimezone(UTC)
    if every_s % DAY_S == 0:
        unit, size = ("WEEKLY", _WEEK_S) if every_s % _WEEK_S == 0 else ("DAILY", DAY_S)
        local = start.astimezone(load_zone(schedule.zone))
        return _at_wall_time(f"FREQ={unit}{_interval(every_s // size)}", local)
    if every_s % 3600 == 0:
        return _in_utc(f"FREQ=HOURLY{_interval(every_s // 3600)}", start)
    if every_s % 60 == 0:
        return _in_utc(f"FREQ=MINUTELY{_interval(every_s // 60)}", start)
    return _in_utc(f"FREQ=SECONDLY{_interval(every_s)}", start)


def _interval(number: int) -> str:
    return "" if number == 1 else f";INTERVAL={number}"


def _at_wall_time(rule: str, local: datetime) -> str:
    """Return a recurrence at the wall time of an aware moment with an IANA zone."""
    return f"DTSTART;TZID={local.tzinfo}:{local:%Y%m%dT%H%M%S}\nRRULE:{rule}"


def _in_utc(rule: str, moment: datetime) -> str:
    return f"DTSTART:{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}\nRRULE:{rule}"


# --- Cron ---


@dataclass(frozen=True, slots=True)
class _CronLine:
    """The fields of a cron line, each with the numbers that it allows."""

    minutes: list[int]
    hours: list[int]
    days: list[int]
    months: list[int]
    weekdays: list[int]
    # Whether either the day of the month or the weekday is enough. Cron combines them by AND only
    # if one of the fields begins with a star.
    is_any_of_days: bool

    @property
    def has_all_days(self) -> bool:
        return self.has_every_month and not self.has_days and not self.has_weekdays

    @property
    def has_every_month(self) -> bool:
        return len(self.months) == 12

    @property
    def has_days(self) -> bool:
        """Whether the line restricts the days of the month."""
        return len(self.days) < 31

    @property
    def has_weekdays(self) -> bool:
        """Whether the line restricts the weekdays."""
        return len(self.weekdays) < 7

    def list_day_rules(self) -> list[str]:
        """Return the rules for the days, without clock times."""
        limit = "" if self.has_every_month else f";BYMONTH={_join(self.months)}"
        by_day = f";BYDAY={','.join(_WEEKDAYS[number] for number in self.weekdays)}"
        by_month_day = f";BYMONTHDAY={_join(self.days)}"
        if self.is_any_of_days:
            return [f"FREQ=MONTHLY{limit}{by_month_day}", f"FREQ=WEEKLY{limit}{by_day}"]
        if self.has_days and self.has_weekdays:
            return [f"FREQ=MONTHLY{limit}{by_month_day}{by_day}"]
        if self.has_weekdays:
            return [f"FREQ=WEEKLY{limit}{by_day}"]
        if not self.has_days:
            return [f"FREQ=DAILY{limit}"]
        unit = "YEARLY" if len(self.months) == 1 and len(self.days) == 1 else "MONTHLY"
        return [f"FREQ={unit}{limit}{by_month_day}"]


def _convert_cron_line(schedule: Schedule, now: datetime) -> list[str]:
    """Return the recurrences of a cron line, or [] if no rule can express it."""
    line = _read_cron_line(schedule.cron or "")
    if line is None:
        return []
    first = next_due_by_clock(schedule, now)
    if first is None:
        return []
    if len(line.hours) == 24 and line.has_all_days:
        rules = _list_hourly(line, schedule, now)
        if rules:
            return rules
    zone = load_zone(schedule.zone)
    # DTSTART is one day before all due times. The rules contain the clock times.
    start = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    times = f";BYHOUR={_join(line.hours)};BYMINUTE={_join(line.minutes)};BYSECOND=0"
    if len(line.hours) == 1 and len(line.minutes) == 1:
        start = start.replace(hour=line.hours[0], minute=line.minutes[0])
        times = ""
    return [_at_wall_time(f"{rule}{times}", start) for rule in line.list_day_rules()]


def _list_hourly(line: _CronLine, schedule: Schedule, now: datetime) -> list[str]:
    """Return recurrences for minutes of every hour, or [] if there are too many."""
    step = line.minutes[1] - line.minutes[0] if len(line.minutes) > 1 else 60
    is_regular = 60 % step == 0 and line.minutes == [*range(line.minutes[0] % step, 60, step)]
    if is_regular and line.minutes[0] < step:
        first = next_due_by_clock(schedule, now)
        assert first is not None
        rule = "FREQ=HOURLY" if step == 60 else f"FREQ=MINUTELY{_interval(step)}"
        return [_in_utc(rule, first)]
    if len(line.minutes) > _MAX_HOURLY_RULES:
        return []
    starts = [
        next_due_by_clock(replace(schedule, cron=f"{minute} * * * *"), now)
        for minute in line.minutes
    ]
    return [_in_utc("FREQ=HOURLY", start) for start in starts if start is not None]


def _read_cron_line(cron: str) -> _CronLine | None:
    """Parse the five fields, or return None if no RRULE can express one of them."""
    minute, hour, day, month, weekday = cron.lower().split()
    minutes = _expand(minute, 0, 59)
    hours = _expand(hour, 0, 23)
    days = _expand(day, 1, 31)
    months = _expand(month, 1, 12, _MONTH_NAMES)
    weekdays = _expand(weekday, 0, 7, _DAY_NAMES)
    if minutes is None or hours is None or days is None or months is None or weekdays is None:
        return None
    return _CronLine(
        minutes,
        hours,
        days,
        months,
        # Sunday is 0 and 7. Weeks begin on Monday.
        sorted({number % 7 for number in weekdays}, key=lambda number: (number - 1) % 7),
        is_any_of_days=not day.startswith("*") and not weekday.startswith("*"),
    )


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _expand(field: str, low: int, high: int, names: Sequence[str] = ()) -> list[int] | None:
    """Return the numbers that a cron field allows, or None if it has an unknown character."""
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


def format_rules(schedule: Schedule) -> str:
    """Write recurrences as words that `core.dates.parsing` reads back."""
    return " ".join(" ".join(text.split()) for text in schedule.recurrences)
