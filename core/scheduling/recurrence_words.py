"""Describe recurrences of RFC 5545 in words: ``every Monday at 08:30``, ``every 2 weeks …``.

The words are those of one language (`ScheduleWords`). English is in `data/schedules.toml`, because
the model also reads it. Callers pass in the other languages.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from core.dates.schedule import format_moment, load_zone

_START = re.compile(r"DTSTART(?:;TZID=([\w+/-]+))?:(\d{8}T\d{6})(Z?)")
_UNITS = {
    "SECONDLY": "second",
    "MINUTELY": "minute",
    "HOURLY": "hour",
    "DAILY": "day",
    "WEEKLY": "week",
    "MONTHLY": "month",
    "YEARLY": "year",
}
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# The keys in the table of words for a month's weekdays: the second Tuesday, the last Friday.
_NTH = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last"}
# At most this many clock times are listed one by one.
_MAX_LISTED_TIMES = 6
_WORKDAYS = "MO,TU,WE,TH,FR"


class ScheduleWords(Protocol):
    """The words of one language for describing schedules."""

    @property
    def templates(self) -> Mapping[str, Any]:
        """The texts by the keys of `data/schedules.toml`."""

    def choose_plural(self, forms: Mapping[str, str], number: int) -> str:
        """Choose the plural form for a number."""

    def join_list(self, parts: Sequence[str]) -> str:
        """Join parts to a list: ``a, b and c``."""

    def join_alternatives(self, parts: Sequence[str]) -> str:
        """Join alternatives: ``a, b or c``."""

    def format_date(self, day: date) -> str:
        """Format a day: ``3 May 2026``."""

    def format_month_day(self, month: int, day: int) -> str:
        """Format a day of every year: ``3 May``."""

    def format_full_date(self, day: date) -> str:
        """Format a day with its weekday: ``Sunday 3 May 2026``."""

    def format_moment(self, local: datetime, *, has_seconds: bool = False) -> str:
        """Format a day and a clock time: ``Sunday 3 May 2026 at 10:30``."""


class _EnglishWords:
    """The English words, which the model also reads."""

    @property
    def templates(self) -> Mapping[str, Any]:
        return load_english_words()

    def choose_plural(self, forms: Mapping[str, str], number: int) -> str:
        return forms["one" if number == 1 else "other"]

    def join_list(self, parts: Sequence[str]) -> str:
        return self._join(parts, "and")

    def join_alternatives(self, parts: Sequence[str]) -> str:
        return self._join(parts, "or")

    def _join(self, parts: Sequence[str], conjunction: str) -> str:
        if len(parts) < 2:
            return "".join(parts)
        return f"{', '.join(parts[:-1])} {conjunction} {parts[-1]}"

    def format_date(self, day: date) -> str:
        return f"{day.day} {day:%B %Y}"

    def format_month_day(self, month: int, day: int) -> str:
        # 2028 is a leap year, so every day exists.
        return f"{day} {date(2028, month, 1):%B}"

    def format_full_date(self, day: date) -> str:
        return f"{day:%A} {day.day} {day:%B %Y}"

    def format_moment(self, local: datetime, *, has_seconds: bool = False) -> str:
        return format_moment(local, has_seconds=has_seconds)


ENGLISH_WORDS: ScheduleWords = _EnglishWords()


@cache
def load_english_words() -> Mapping[str, Any]:
    """Return the English texts by their keys."""
    path = Path(__file__).parent / "data" / "schedules.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def describe_recurrences(
    texts: Sequence[str], zone: str, words: ScheduleWords = ENGLISH_WORDS
) -> str:
    """Describe recurrences: ``every Monday at 08:30``.

    Clock times on the same days are joined. `zone` is the time zone for rules whose DTSTART is in
    UTC.
    """
    recurrences = [_Recurrence(text, zone, words) for text in texts]
    if all(recurrence.is_single_day for recurrence in recurrences):
        return _describe_single_day(recurrences, words)
    times_by_days: dict[str, set[str]] = {}
    for recurrence in recurrences:
        times = times_by_days.setdefault(recurrence.describe_days(), set())
        if recurrence.has_clock:
            times.update(recurrence.clock_times())
        elif len(texts) > 1:
            times.update(recurrence.minutes_of_hour())
    days_by_times: dict[tuple[str, ...], list[str]] = {}
    for days, times in times_by_days.items():
        days_by_times.setdefault(tuple(sorted(times)), []).append(days)
    parts = [
        _add_times(words, words.join_list(days), times_of_days)
        for times_of_days, days in days_by_times.items()
    ]
    return recurrences[0].add_end(words.join_list(parts))


def _describe_single_day(recurrences: Sequence[_Recurrence], words: ScheduleWords) -> str:
    """Describe recurrences that are due on one day, at different clock times."""
    clock_times: set[str] = set()
    for recurrence in recurrences:
        clock_times.update(recurrence.clock_times())
    times = words.join_list(sorted(clock_times))
    return _fill(words, "at", days=recurrences[0].describe_date(), times=times)


def has_clock_times(texts: Sequence[str]) -> bool:
    """Return whether recurrences are due at clock times. Intervals of minutes or hours aren't."""
    return _Recurrence(texts[0], "UTC", ENGLISH_WORDS).has_clock


class _Recurrence:
    """A recurrence: its start and the parts of its RRULE."""

    def __init__(self, text: str, zone: str, words: ScheduleWords) -> None:
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
        self._words = words

    @property
    def has_clock(self) -> bool:
        """Whether the rule is due at clock times. Intervals of minutes or hours aren't."""
        return self._parts["FREQ"] not in ("SECONDLY", "MINUTELY", "HOURLY")

    @property
    def is_single_day(self) -> bool:
        """Whether the rule is due on a single day."""
        return self._parts["FREQ"] == "DAILY" and self._parts.get("COUNT") == "1"

    def describe_date(self) -> str:
        """Describe the day of DTSTART: ``Saturday 21 November 2026``."""
        return self._words.format_full_date(self._start.date())

    def clock_times(self) -> list[str]:
        times: list[str] = []
        minutes = self._numbers("BYMINUTE") or [self._start.minute]
        for hour in self._numbers("BYHOUR") or [self._start.hour]:
            times += [f"{hour:02d}:{minute:02d}" for minute in minutes]
        return times

    def minutes_of_hour(self) -> list[str]:
        """Return the minutes of an hourly rule, such as ``:30``, or [] for any other rule."""
        is_hourly = self._parts["FREQ"] == "HOURLY" and self._interval == 1
        return [f":{self._start.minute:02d}"] if is_hourly else []

    def describe_days(self) -> str:
        """Describe the days of the rule, without clock times and end."""
        frequency = self._parts["FREQ"]
        if frequency == "MONTHLY":
            return self._describe_months()
        if frequency == "YEARLY":
            month = self._numbers("BYMONTH") or [self._start.month]
            day = self._numbers("BYMONTHDAY") or [self._start.day]
            date_of_year = self._words.format_month_day(month[0], day[0])
            return _fill(self._words, "year_on", every=self._describe_unit(), date=date_of_year)
        days = self._describe_weeks() if frequency == "WEEKLY" else self._describe_unit()
        months = self._numbers("BYMONTH")
        if not months:
            return days
        return _fill(
            self._words, "in_months", days=days, months=self._join_months("in_months_names", months)
        )

    def add_end(self, when: str) -> str:
        """Add the rule's end to its description, if it has one."""
        count = self._parts.get("COUNT")
        if count == "1":
            return _fill(self._words, "once", when=when)
        if count is not None:
            forms: Mapping[str, str] = self._words.templates["count"]
            form = self._words.choose_plural(forms, int(count))
            return form.format(when=when, count=count)
        until = self._parts.get("UNTIL")
        if until is None:
            return when
        end = datetime.strptime(until.rstrip("Z"), "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        local = end.astimezone(ZoneInfo(self._zone.key))
        return _fill(self._words, "until", when=when, day=self._words.format_date(local.date()))

    def _describe_unit(self) -> str:
        """Describe the interval: ``every day``, ``every 90 minutes``."""
        return _describe_interval(self._words, _UNITS[self._parts["FREQ"]], self._interval)

    def _describe_weeks(self) -> str:
        """Describe a weekly rule: ``every weekday``, ``every 2 weeks on Monday``."""
        days = self._parts.get("BYDAY", "")
        if self._interval == 1 and days == _WORKDAYS:
            return _fill(self._words, "workdays")
        names = days.split(",") if days else [_DAYS[self._start.weekday()]]
        if self._interval == 1:
            return _fill(self._words, "weekly", days=self._join_days("weekly_days", names))
        return _fill(
            self._words,
            "weeks_on",
            every=self._describe_unit(),
            days=self._join_days("weeks_on_days", names),
        )

    def _describe_months(self) -> str:
        """Describe a monthly rule: ``every month on the 1st``."""
        every = self._describe_unit()
        months = self._numbers("BYMONTH")
        if months:
            every = _fill(
                self._words, "each_months", months=self._join_months("each_months_names", months)
            )
        weekdays = self._parts.get("BYDAY", "").split(",")
        if "BYDAY" in self._parts and "BYMONTHDAY" in self._parts:
            weekday_names = self._names("month_on_if_weekdays")
            alternatives = [weekday_names[_DAYS.index(day[-2:])] for day in weekdays]
            return _fill(
                self._words,
                "month_on_if",
                every=every,
                days=self._join_month_days(self._numbers("BYMONTHDAY")),
                weekdays=self._words.join_alternatives(alternatives),
            )
        if "BYDAY" in self._parts:
            days = self._words.join_list([self._describe_nth(day) for day in weekdays])
            return _fill(self._words, "month_on", every=every, days=days)
        numbers = self._numbers("BYMONTHDAY") or [self._start.day]
        if "BYSETPOS" in self._parts:
            day = self._join_month_days([max(numbers)])
            return _fill(self._words, "month_on_or_last", every=every, day=day)
        return _fill(self._words, "month_on", every=every, days=self._join_month_days(numbers))

    def _describe_nth(self, day: str) -> str:
        """Describe a day such as ``2TU``: ``2nd Tuesday``."""
        row = _NTH.get(int(day[:-2] or "0"), "weekly_days")
        return self._names(row)[_DAYS.index(day[-2:])]

    def _join_days(self, key: str, days: Iterable[str]) -> str:
        names = self._names(key)
        return self._words.join_list([names[_DAYS.index(day)] for day in days])

    def _join_months(self, key: str, numbers: Iterable[int]) -> str:
        names = self._names(key)
        return self._words.join_list([names[number - 1] for number in numbers])

    def _join_month_days(self, numbers: Iterable[int]) -> str:
        names = self._names("month_days")
        last_day: str = self._words.templates["last_day"]
        days = [last_day if number == -1 else names[number - 1] for number in numbers]
        return self._words.join_list(days)

    def _names(self, key: str) -> list[str]:
        """Return a list from the table of words."""
        names: str = self._words.templates[key]
        return [name.strip() for name in names.split(",")]

    def _numbers(self, key: str) -> list[int]:
        values = self._parts.get(key)
        return [int(value) for value in values.split(",")] if values else []


def _describe_interval(words: ScheduleWords, unit: str, count: int) -> str:
    """Describe an interval: ``every day``, ``every 90 minutes``."""
    if count == 1:
        alone: str = words.templates[f"every_{unit}"]
        return alone
    forms: Mapping[str, str] = words.templates[f"every_{unit}s"]
    return words.choose_plural(forms, count).format(count=count)


def _add_times(words: ScheduleWords, days: str, times: Sequence[str]) -> str:
    """Add clock times to the days: ``every day at 08:00 and 20:00``.

    Clock times at regular intervals are described as a run.
    """
    if not times:
        return days
    key = "at_minute" if times[0].startswith(":") else "at"
    if len(times) <= _MAX_LISTED_TIMES or key == "at_minute":
        return _fill(words, key, days=days, times=words.join_list(times))
    minutes = [int(time[:2]) * 60 + int(time[3:]) for time in times]
    steps = {later - earlier for earlier, later in pairwise(minutes)}
    if len(steps) != 1:
        more = _fill(words, "and_more", count=str(len(times)))
        listed = words.join_list([*times[:_MAX_LISTED_TIMES], more])
        return _fill(words, key, days=days, times=listed)
    step = steps.pop()
    if step % 60 == 0:
        every = _describe_interval(words, "hour", step // 60)
    else:
        every = _describe_interval(words, "minute", step)
    return _fill(words, "between", days=days, every=every, first=times[0], last=times[-1])


def _fill(words: ScheduleWords, key: str, **values: str) -> str:
    template: str = words.templates[key]
    return template.format(**values)
