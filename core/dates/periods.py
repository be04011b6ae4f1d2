"""Periods of the past as people name them: yesterday, last week, in May, 3 May 2025, 2026-05, two weeks ago.

Pure functions. What has no year is the latest such time that has begun; words that name no period give None, no error.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.scanner import Phrase, words
from core.dates.schedule import calendar_day, existing, later

Period = tuple[datetime, datetime]
"""From the first moment (UTC) until before the second."""
_Wall = tuple[datetime, datetime]
"""The same as clocks show it, naive."""

WORDS = 7
"""No period is named with more words."""
_DAY = timedelta(days=1)
_LEADS = ("in the", "on the", "in", "on", "during the", "during", "over the", "over", "since", "the")
_MONTH = re.compile(r"(\d{4})[-/.](\d{1,2})")
_UNITS = ("day", "week", "month", "year")


def read(text: str, now: datetime, zone: ZoneInfo) -> Period | None:
    """The period that `text` names as a whole, in the wall time of `zone`; None where it names none."""
    typed = text.replace(",", " ").split(maxsplit=WORDS)
    if not typed or len(typed) > WORDS:
        return None
    phrase = Phrase(typed)
    try:
        wall = _Reader(phrase, now.astimezone(zone).date(), zone).period()
        return (existing(wall[0], zone), existing(wall[1], zone)) if wall and phrase.is_done else None
    except (OverflowError, ValueError):
        # Before the year 1, or behind the year 9999.
        return None


class _Reader:
    """Reads one phrase."""

    def __init__(self, phrase: Phrase, today: date, zone: ZoneInfo) -> None:
        self.phrase = phrase
        self.today = today
        self.zone = zone

    def period(self) -> _Wall | None:
        """The first reading that fits what comes next."""
        self.phrase.take(*_LEADS)
        start = self.phrase.at
        for reading in (self.near, self.running, self.ago, self.numbers, self.named_day, self.named_month):
            found = reading()
            if found is not None:
                return found
            self.phrase.at = start
        return None

    def near(self) -> _Wall | None:
        if self.phrase.take("last night"):
            return _days(self.today - _DAY)
        if self.phrase.take("this morning", "this afternoon", "this evening"):
            return _days(self.today)
        named = self.phrase.take(*words()["days"])
        return None if named is None else _days(self.today + words()["days"][named] * _DAY)

    def running(self) -> _Wall | None:
        """``this week``, ``last month``, ``the past 3 days``, ``last friday``, ``last may``."""
        lead = self.phrase.take("this", "last", "past", "previous")
        if lead is None:
            return None
        is_this = lead == "this"
        if self.phrase.take("weekend"):
            return _days(_monday(self.today) + (5 if is_this else -2) * _DAY, 2)
        if unit := self.unit():
            return self.calendar(unit, 0 if is_this else 1)
        if amount := self.amount():
            return self.calendar(*amount)[0], self.calendar("day", 0)[1]
        if (weekday := self.phrase.weekday()) is not None:
            back = (self.today.weekday() - weekday) % 7
            return _days(self.today - (back if is_this or back else 7) * _DAY)
        month = self.phrase.month()
        return None if month is None else _month(self.today.year - (month >= self.today.month + is_this), month)

    def ago(self) -> _Wall | None:
        """``3 days ago``: that day; ``2 weeks ago``, ``a month ago``: that week, that month."""
        amount = self.amount()
        return self.calendar(*amount) if amount is not None and self.phrase.take("ago") else None

    def numbers(self) -> _Wall | None:
        """``2026-05-01``, ``2026-05-01T10:30`` (that minute), ``2026-05``, ``2026``, ``1.5.2026``, ``1.5.``."""
        if moment := self.phrase.instant():
            wall = moment if moment.tzinfo is None else moment.astimezone(self.zone).replace(tzinfo=None, fold=0)
            return wall, wall + timedelta(minutes=1)
        if found := self.phrase.number_date():
            return self.dated(found.year, found.month, found.day)
        if match := self.phrase.match(_MONTH):
            return _month(int(match[1]), int(match[2]))
        year = self.phrase.year()
        return None if year is None else _months(date(year, 1, 1), 12)

    def named_day(self) -> _Wall | None:
        """``3 May``, ``May 3rd 2025``, ``friday``, ``friday 3 may``."""
        weekday = self.phrase.weekday()
        if weekday is not None and self.phrase.is_done:
            return _days(self.today - (self.today.weekday() - weekday) % 7 * _DAY)
        found = self.phrase.month_day()
        return self.dated(self.phrase.year(), *found) if found else None

    def named_month(self) -> _Wall | None:
        """``May``, ``May 2025``."""
        month = self.phrase.month()
        if month is None:
            return None
        return _month(self.phrase.year() or self.today.year - (month > self.today.month), month)

    def amount(self) -> tuple[str, int] | None:
        """Unit and number of ``3 days``, ``a couple of weeks``, ``few months``."""
        count = 3 if self.phrase.take("few", "a few") else self.phrase.number()
        unit = self.unit() if count is not None else None
        return None if count is None or unit is None else (unit, count)

    def unit(self) -> str | None:
        unit = self.phrase.peek().removesuffix("s")
        self.phrase.at += unit in _UNITS
        return unit if unit in _UNITS else None

    def calendar(self, unit: str, back: int) -> _Wall:
        """The day, week (from Monday), month or year that lies so many back."""
        if unit == "week":
            return _days(_monday(self.today) - 7 * back * _DAY, 7)
        if unit == "day":
            return _days(self.today - back * _DAY)
        months = 12 if unit == "year" else 1
        first = self.today.replace(day=1, month=1 if unit == "year" else self.today.month)
        return _months(later(first, -back * months), months)

    def dated(self, year: int | None, month: int, day: int) -> _Wall | None:
        """A date; without a year the last such day that has begun."""
        # 29 February comes within eight years.
        for candidate in (year,) if year is not None else range(self.today.year, self.today.year - 9, -1):
            found = calendar_day(candidate, month, day)
            if found is not None and (year is not None or found <= self.today):
                return _days(found)
        return None


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _month(year: int, month: int) -> _Wall | None:
    first = calendar_day(year, month, 1)
    return None if first is None else _months(first, 1)


def _months(first: date, count: int) -> _Wall:
    return datetime.combine(first, time()), datetime.combine(later(first, count), time())


def _days(first: date, count: int = 1) -> _Wall:
    return datetime.combine(first, time()), datetime.combine(first + timedelta(days=count), time())
