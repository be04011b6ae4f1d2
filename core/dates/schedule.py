"""Compute when schedules are due, also across clock changes, and describe them in words.

The current time is a parameter.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from core.errors import ConfigError, Refused

MIN_INTERVAL_S = 60
DAY_S = 86400
_UNITS = ((604800, "week"), (DAY_S, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_TIMES_THEN_DAY = re.compile(r"At (\d\d:\d\d(?:(?:,| and|, and) \d\d:\d\d)*) (.+)")
"""Matches CronSim's explanations, such as "At 09:00 and 21:00 on Monday"."""
ISO_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:?\d\d)?)(?!\S)"
)
"""A moment in ISO format: ``2026-12-01T10:00``, ``2026-12-01T10:00:30+01:00``."""
_ANY_DAY = datetime(2026, 1, 1)  # noqa: DTZ001
"""CronSim requires a start time, even to check or explain a cron line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The times when a job is due.

    Exactly one of these fields is set: `recurrences`, `cron`, `every_s` (an interval in seconds),
    or `at` (a single time). This module computes all kinds except recurrences, and
    `core.scheduling.due` computes all kinds.
    """

    # An IANA name, such as "Europe/Lisbon".
    zone: str
    # iCalendar texts with DTSTART and RRULE; see `core.dates.recurrence`.
    recurrences: tuple[str, ...] = ()
    # Five fields, in the wall time of `zone`.
    cron: str | None = None
    every_s: int | None = None
    # The first due time of an interval.
    start_at: datetime | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSchedule:
    """The schedule and the text of a typed line."""

    schedule: Schedule
    # The line without the words of the time.
    text: str
    # False if the words may mean another time, or if their language was guessed. The person must
    # then confirm the schedule.
    is_certain: bool
    # Whether the text is a question to the model; see `core.store.jobs.Job`.
    is_prompt: bool = False


# --- Calendar ---


def load_zone(zone: str) -> ZoneInfo:
    """Return the time zone with an IANA name. Raises ConfigError if the name is unknown."""
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError("zone_unknown", zone=zone[:40]) from error


def wall_moment(day: date, hour: int, minute: int, here: datetime, second: int = 0) -> datetime:
    """Return the moment (UTC) of a clock time on a day, in the time zone of `here`."""
    return resolve_wall_time(datetime.combine(day, time(hour, minute, second)), here.tzinfo)


def resolve_wall_time(naive: datetime, zone: tzinfo | None) -> datetime:
    """Convert a wall time to UTC.

    A wall time that a clock change repeats means the first occurrence. If a clock change skips a
    wall time, the offset from before the change applies, so 2:30 becomes 3:30 (RFC 5545, section
    3.3.5).
    """
    return naive.replace(tzinfo=zone, fold=0).astimezone(UTC)


def add_months(day: date, months: int) -> date:
    """Return the same day `months` months later, or the last day of a shorter month.

    One month after 31 January is 28 or 29 February.
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def nth_weekday(first: date, nth: int, weekdays: Collection[int]) -> date | None:
    """Return the `nth` of these weekdays in a month. -1 is the last one.

    The month begins on `first`. With Monday to Friday as weekdays, the result is the `nth` working
    day. Returns None if the month has fewer such days.
    """
    length = calendar.monthrange(first.year, first.month)[1]
    days = [first + timedelta(days=index) for index in range(length)]
    matches = [day for day in days if day.weekday() in weekdays]
    index = nth - 1 if nth > 0 else len(matches) + nth
    return matches[index] if 0 <= index < len(matches) else None


def date_if_valid(year: int, month: int, day: int) -> date | None:
    """Return the date, or None if the calendar has no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


# --- Due times ---


def parse_cron(fields: Sequence[str], zone: ZoneInfo) -> Schedule:
    """Return the schedule of five cron fields.

    Raises Refused if the fields are invalid or if no date matches them.
    """
    cron = " ".join(fields)
    try:
        CronSim(cron, _ANY_DAY)
    except (CronSimError, ValueError) as error:
        raise Refused("invalid_cron_line", line=cron, reason=str(error)) from error
    return Schedule(zone=zone.key, cron=cron)


def next_due_by_clock(schedule: Schedule, after: datetime) -> datetime | None:
    """Return the first due time (UTC) after `after` (aware), or None.

    Recurrences are ignored; `core.scheduling.due.next_due` handles all kinds of schedules.

    If a clock change skips a wall time, the schedule is due after the change. If a clock change
    repeats a wall time, the schedule is due once. As in Debian's cron, a line with a star in the
    minute or hour field is an exception: it is due at every matching minute. An interval of whole
    days is always due at the same wall time. Other intervals have a fixed number of seconds.
    """
    zone = load_zone(schedule.zone)
    try:
        if schedule.at is not None:
            return schedule.at.astimezone(UTC) if schedule.at > after else None
        if schedule.cron is None:
            return _next_interval(schedule, zone, after)
        for local in CronSim(schedule.cron, after.astimezone(zone)):
            moment = local.astimezone(UTC)
            # If `after` is in the second pass of a repeated hour, CronSim starts in the first pass.
            if moment > after:
                return moment
    except (OverflowError, StopIteration):
        pass
    return None


def next_cron_dates(fields: str, today: date, count: int) -> list[date]:
    """Return the first `count` dates, starting today, that match a cron line's date fields.

    `fields` are the last three fields of the line: day of the month, month and weekday.
    """
    evening_before = datetime.combine(today - timedelta(days=1), time(23, 59))
    return [moment.date() for moment in islice(CronSim(f"0 0 {fields}", evening_before), count)]


def _next_interval(schedule: Schedule, zone: ZoneInfo, after: datetime) -> datetime:
    """Return when a schedule with an interval is next due after `after`."""
    every = timedelta(seconds=max(schedule.every_s or 0, MIN_INTERVAL_S))
    start = (schedule.start_at or datetime(1970, 1, 1, tzinfo=UTC)).astimezone(UTC)
    if start > after:
        return start
    is_whole_days = not every % timedelta(days=1)
    if not is_whole_days:
        return start + ((after - start) // every + 1) * every
    # Whole days are added to the wall time, which a clock change doesn't move.
    first = start.astimezone(zone).replace(tzinfo=None, fold=0)
    # The search begins one step early, because a clock change may move the due time in UTC.
    steps = max((after.astimezone(zone).replace(tzinfo=None) - first) // every - 1, 0)
    moment = resolve_wall_time(first + steps * every, zone)
    while moment <= after:
        steps += 1
        moment = resolve_wall_time(first + steps * every, zone)
    return moment


# --- Words ---


def to_parseable_text(schedule: Schedule, zone: str) -> str:
    """Write a schedule as a person in `zone` would type it.

    `parse_schedule` reads the text as a schedule with the same times, and the result is certain.
    """
    if schedule.cron is not None:
        return schedule.cron
    if schedule.at is not None:
        info = load_zone(zone)
        local = schedule.at.astimezone(info).replace(microsecond=0)
        whole_minute = resolve_wall_time(local.replace(tzinfo=None, second=0, fold=0), info)
        return f"{local:%Y-%m-%d %H:%M}" if whole_minute == schedule.at else local.isoformat()
    start = schedule.start_at or datetime(1970, 1, 1, tzinfo=UTC)
    every_s = schedule.every_s or MIN_INTERVAL_S
    if every_s % DAY_S == 0:
        local_start = start.astimezone(load_zone(schedule.zone))
        rule = f"FREQ=DAILY;INTERVAL={every_s // DAY_S}"
        return f"DTSTART;TZID={schedule.zone}:{local_start:%Y%m%dT%H%M%S} RRULE:{rule}"
    utc_start = start.astimezone(UTC)
    return f"DTSTART:{utc_start:%Y%m%dT%H%M%SZ} RRULE:FREQ=SECONDLY;INTERVAL={every_s}"


def describe_cron(cron: str) -> str:
    """Describe a cron line: ``every Monday at 08:30``, ``every 15th minute of every hour``."""
    words = CronSim(cron, _ANY_DAY).explain()
    match = _TIMES_THEN_DAY.fullmatch(words)
    if match is None:
        return words[:1].lower() + words[1:]
    times, day = match.groups()
    if not day.startswith(("every", "on the")):
        day = f"every {day.removeprefix('on ')}"
    return f"{day} at {times}"


def format_duration(seconds: float) -> str:
    """Describe a length of time in its two largest units: ``2 hours``, ``1 day 3 hours``."""
    parts = [f"{count} {name}{'s' if count > 1 else ''}" for count, name in split_duration(seconds)]
    return " ".join(parts) or "0 seconds"


def split_duration(seconds: float) -> list[tuple[int, str]]:
    """Split a length of time into its two largest adjacent units: 1 day, 3 hours."""
    remaining_s = max(int(seconds), 0)
    parts: list[tuple[int, str]] = []
    for size_s, name in _UNITS:
        count, remaining_s = divmod(remaining_s, size_s)
        if count:
            parts.append((count, name))
        elif parts:
            break
    return parts[:2]


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time for use in a sentence. ``str()`` returns it in English."""

    seconds: float

    def __str__(self) -> str:
        return format_duration(self.seconds)


def format_moment(local: datetime, *, has_seconds: bool = False) -> str:
    """Format a date and time: ``Friday 20 November 2026 at 09:30``.

    With `has_seconds`, include seconds unless they are 0.
    """
    seconds = f":{local:%S}" if has_seconds and local.second else ""
    return f"{local:%A} {local.day} {local:%B %Y} at {local:%H:%M}{seconds}"
