"""Describes recurrences of RFC 5545 in words: ``every Monday at 08:30``, ``every 2 weeks …``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from core.dates.schedule import load_zone

_START = re.compile(r"DTSTART(?:;TZID=([\w+/-]+))?:(\d{8}T\d{6})(Z?)")
_UNIT_NAMES = {
    "SECONDLY": "second",
    "MINUTELY": "minute",
    "HOURLY": "hour",
    "DAILY": "day",
    "WEEKLY": "week",
    "MONTHLY": "month",
    "YEARLY": "year",
}
_DAY_NAMES = {
    "MO": "Monday",
    "TU": "Tuesday",
    "WE": "Wednesday",
    "TH": "Thursday",
    "FR": "Friday",
    "SA": "Saturday",
    "SU": "Sunday",
}
_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
# More clock times than this aren't listed one by one.
_MAX_LISTED_TIMES = 6
_WEEKDAYS = "MO,TU,WE,TH,FR"
_WEEKEND = "SA,SU"


def describe_recurrences(texts: Sequence[str], zone: str) -> str:
    """Describe recurrences: ``every Monday at 08:30``.

    Days with the same clock times are joined. `zone` is the time zone for rules whose DTSTART is in
    UTC.
    """
    recurrences = [_Recurrence(text, zone) for text in texts]
    if all(recurrence.is_single_day for recurrence in recurrences):
        clock_times = {time for recurrence in recurrences for time in recurrence.clock_times()}
        return f"{recurrences[0].describe_date()} at {_join(sorted(clock_times))}"
    times_by_days: dict[str, set[str]] = {}
    for recurrence in recurrences:
        times = recurrence.clock_times() if recurrence.has_clock else []
        if len(texts) > 1 and not recurrence.has_clock:
            times = recurrence.minutes_of_hour()
        times_by_days.setdefault(recurrence.describe_days(), set()).update(times)
    days_by_times: dict[str, list[str]] = {}
    for days, times_of_days in times_by_days.items():
        days_by_times.setdefault(_describe_times(sorted(times_of_days)), []).append(days)
    parts = [f"{' and '.join(days)}{times}" for times, days in days_by_times.items()]
    return " and ".join(parts) + recurrences[0].describe_end()


def has_clock_times(texts: Sequence[str]) -> bool:
    """Whether recurrences are due at certain clock times, and not after some minutes or hours."""
    return _Recurrence(texts[0], "UTC").has_clock


class _Recurrence:
    """One recurrence: its start and the parts of its RRULE."""

    def __init__(self, text: str, zone: str) -> None:
        match = _START.search(text)
        if match is None:
            raise ValueError("a recurrence without DTSTART")
        start = datetime.strptime(match[2], "%Y%m%dT%H%M%S")  # noqa: DTZ007
        self._zone = load_zone(match[1] or zone)
        if match[3]:
            start = start.replace(tzinfo=UTC).astimezone(self._zone).replace(tzinfo=None)
        self._start = start
        _, _, rule = text.partition("RRULE:")
        self._parts: Mapping[str, str] = dict(part.split("=", 1) for part in rule.split(";"))
        self._interval = int(self._parts.get("INTERVAL", "1"))

    @property
    def has_clock(self) -> bool:
        """Whether the rule is due at certain clock times, and not after some minutes or hours."""
        return self._parts["FREQ"] not in ("SECONDLY", "MINUTELY", "HOURLY")

    @property
    def is_single_day(self) -> bool:
        """Whether the rule is due on a single day."""
        return self._parts["FREQ"] == "DAILY" and self._parts.get("COUNT") == "1"

    def describe_date(self) -> str:
        """Describe the day of DTSTART: ``Saturday 21 November 2026``."""
        return f"{self._start:%A} {self._start.day} {self._start:%B %Y}"

    def clock_times(self) -> list[str]:
        hours = _numbers(self._parts.get("BYHOUR")) or [self._start.hour]
        minutes = _numbers(self._parts.get("BYMINUTE")) or [self._start.minute]
        return [f"{hour:02d}:{minute:02d}" for hour in hours for minute in minutes]

    def minutes_of_hour(self) -> list[str]:
        """Return the minute of a rule of every hour, such as ``:30``; [] for any other rule."""
        is_hourly = self._parts["FREQ"] == "HOURLY" and self._interval == 1
        return [f":{self._start.minute:02d}"] if is_hourly else []

    def describe_days(self) -> str:
        """Describe when the rule is due, without clock times and end."""
        frequency = self._parts["FREQ"]
        if frequency == "MONTHLY":
            return self._describe_months()
        if frequency == "YEARLY":
            month = _numbers(self._parts.get("BYMONTH")) or [self._start.month]
            day = _numbers(self._parts.get("BYMONTHDAY")) or [self._start.day]
            return f"{self._describe_unit()} on {day[0]} {_MONTH_NAMES[month[0] - 1]}"
        days = self._describe_weeks() if frequency == "WEEKLY" else self._describe_unit()
        months = _numbers(self._parts.get("BYMONTH"))
        return f"{days} in {_join_months(months)}" if months else days

    def describe_end(self) -> str:
        """Describe the end of the rule; empty if it has none."""
        count = self._parts.get("COUNT")
        if count is not None:
            return f", {count} times" if count != "1" else ", once"
        until = self._parts.get("UNTIL")
        if until is None:
            return ""
        end = datetime.strptime(until.rstrip("Z"), "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        local = end.astimezone(ZoneInfo(self._zone.key))
        return f" until {local.day} {local:%B %Y}"

    def _describe_unit(self) -> str:
        """Describe the interval: ``every day``, ``every 90 minutes``."""
        unit = _UNIT_NAMES[self._parts["FREQ"]]
        return f"every {unit}" if self._interval == 1 else f"every {self._interval} {unit}s"

    def _describe_weeks(self) -> str:
        """Describe a weekly rule: ``every weekday``, ``every 2 weeks on Monday``."""
        days = self._parts.get("BYDAY", "")
        if self._interval == 1 and days == _WEEKDAYS:
            return "every weekday"
        if self._interval == 1 and days == _WEEKEND:
            return "every Saturday and Sunday"
        names = [_DAY_NAMES[day] for day in days.split(",") if day] or [f"{self._start:%A}"]
        if self._interval == 1:
            return f"every {_join(names)}"
        return f"every {self._interval} weeks on {_join(names)}"

    def _describe_months(self) -> str:
        """Describe a monthly rule: ``every month on the 1st``."""
        unit = self._describe_unit()
        months = _numbers(self._parts.get("BYMONTH"))
        if months:
            unit = f"every {_join_months(months)}"
        if "BYDAY" in self._parts and "BYMONTHDAY" in self._parts:
            numbers = _numbers(self._parts["BYMONTHDAY"])
            names = [_DAY_NAMES[day] for day in self._parts["BYDAY"].split(",")]
            dates = _join([_ordinal(number) for number in numbers])
            return f"{unit} on the {dates} if it's a {_join_or(names)}"
        if "BYDAY" in self._parts:
            days = [_describe_nth(day) for day in self._parts["BYDAY"].split(",")]
            return f"{unit} on the {_join(days)}"
        numbers = _numbers(self._parts.get("BYMONTHDAY")) or [self._start.day]
        if "BYSETPOS" in self._parts:
            return f"{unit} on the {_ordinal(max(numbers))} or the last day"
        return f"{unit} on the {_join([_ordinal(number) for number in numbers])}"


def _numbers(values: str | None) -> list[int]:
    return [int(value) for value in values.split(",")] if values else []


def _describe_nth(day: str) -> str:
    """Describe a day such as ``2TU``: ``second Tuesday``."""
    number, name = day[:-2], _DAY_NAMES[day[-2:]]
    return f"{_ordinal(int(number), is_day=False)} {name}" if number else name


def _ordinal(number: int, *, is_day: bool = True) -> str:
    if number == -1:
        return "last day" if is_day else "last"
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 <= number % 100 <= 20 else suffix}"


def _describe_times(times: Sequence[str]) -> str:
    """Describe clock times: `` at 08:00 and 20:00``, or a regular run of them."""
    if len(times) <= _MAX_LISTED_TIMES or times[0].startswith(":"):
        return f" at {_join(times)}" if times else ""
    minutes = [int(time[:2]) * 60 + int(time[3:]) for time in times]
    steps = {later - earlier for earlier, later in pairwise(minutes)}
    if len(steps) != 1:
        return f" at {_join([*times[:_MAX_LISTED_TIMES], f'{len(times)} times a day in all'])}"
    step = steps.pop()
    unit = "hour" if step % 60 == 0 else "minute"
    count = step // 60 if step % 60 == 0 else step
    every = f"every {unit}" if count == 1 else f"every {count} {unit}s"
    return f", {every} between {times[0]} and {times[-1]}"


def _join_months(numbers: Sequence[int]) -> str:
    return _join([_MONTH_NAMES[number - 1] for number in numbers])


def _join_or(words: Sequence[str]) -> str:
    return _join(words).replace(" and ", " or ")


def _join(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
