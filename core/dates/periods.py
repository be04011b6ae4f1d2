"""Periods of the past as people name them: yesterday, last week, in May, 3 May 2025, 2026-05, two weeks ago.

Pure functions. What has no year is the latest such time that has begun; words that name no period give None, no error.
"""

from __future__ import annotations

import calendar
import re
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.scanner import Phrase, words
from core.dates.schedule import calendar_day, existing, later

Period = tuple[datetime, datetime | None]
"""From the first moment (UTC) until before the second; None: it goes on until now."""
_Wall = tuple[datetime, datetime | None]
"""The same as clocks show it, naive."""

WORDS = 7
"""No period is named with more words."""
_DAY = timedelta(days=1)
_LEADS = ("in the", "on the", "in", "on", "during the", "during", "over the", "over", "within the", "within", "the")
_MONTH = re.compile(r"(\d{4})[-/.](\d{1,2})")
_UNITS = {"hour": 0, "day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}


def read(text: str, now: datetime, zone: ZoneInfo) -> Period | None:
    """The period that `text` names as a whole, in the wall time of `zone`; None where it names none. ``since May`` has
    no end."""
    typed = text.replace(",", " ").split(maxsplit=WORDS)
    if not typed or len(typed) > WORDS:
        return None
    phrase = Phrase(typed)
    try:
        wall = _Reader(phrase, now.astimezone(zone).replace(tzinfo=None, microsecond=0, fold=0), zone).stretch()
        if wall is None or not phrase.is_done:
            return None
        start, end = wall
        return existing(start, zone), None if end is None else existing(end, zone)
    except (OverflowError, ValueError):
        # Before the year 1, or behind the year 9999.
        return None


class _Reader:
    """Reads one phrase, seen from the wall time `here`."""

    def __init__(self, phrase: Phrase, here: datetime, zone: ZoneInfo) -> None:
        self.phrase = phrase
        self.here = here
        self.today = here.date()
        self.zone = zone

    def stretch(self) -> _Wall | None:
        """``May``, ``since May``, ``May to July``, ``from May to July``, ``between May and July``."""
        lead = self.phrase.take("since", "from", "between")
        first = self.one()
        joints = ("and",) if lead == "between" else ("to", "until", "-") + (("till", "through") if lead else ())
        if first is None or not self.phrase.take(*joints):
            return first if first is None or not lead else None if lead == "between" else (first[0], None)
        second = self.one()
        if second is None or second[1] is None:
            return None
        start, end = first[0], second[1]
        while start >= end and start.year > 1:
            # "November to January": the first of the two was in the year before.
            start = datetime.combine(later(start.date(), -12), start.time())
        return start, end

    def one(self) -> _Wall | None:
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
            return datetime.combine(self.today - _DAY, time(18)), datetime.combine(self.today, time(6))
        if self.phrase.take("this morning", "this afternoon", "this evening"):
            return _day(self.today)
        if (named := self.phrase.take(*words()["days"])) is None:
            return None
        self.phrase.take("morning", "afternoon", "evening", "night")
        return _day(self.today + words()["days"][named] * _DAY)

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
            return None if is_this else (self.back(*amount), None)
        if (weekday := self.phrase.weekday()) is not None:
            back = (self.today.weekday() - weekday) % 7
            return _day(self.today - (back if is_this or back else 7) * _DAY)
        month = self.phrase.month()
        if month is None:
            return None
        return _month(self.today.year - (month >= self.today.month + is_this), month)

    def ago(self) -> _Wall | None:
        """``3 days ago``: that day; ``2 weeks ago``, ``a month ago``: that week, that month."""
        amount = self.amount()
        if amount is None or not self.phrase.take("ago", "back", "before now"):
            return None
        unit, count = amount
        return self.calendar("week", 2 * count) if unit == "fortnight" else self.calendar(unit, count)

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
        return None if year is None else _days(date(year, 1, 1), 365 + calendar.isleap(year))

    def named_day(self) -> _Wall | None:
        """``3 May``, ``May 3rd 2025``, ``friday``, ``friday 3 may``, ``the 3rd``."""
        weekday = self.phrase.weekday()
        if weekday is not None and self.phrase.is_done:
            return _day(self.today - (self.today.weekday() - weekday) % 7 * _DAY)
        if found := self.phrase.month_day():
            return self.dated(self.phrase.year(), *found)
        number = self.phrase.ordinal()
        return self.dated(None, None, number) if number is not None and number > 0 and self.phrase.is_done else None

    def named_month(self) -> _Wall | None:
        """``May``, ``May 2025``, ``May last year``."""
        month = self.phrase.month()
        if month is None:
            return None
        if relative := self.phrase.take("last year", "of last year", "this year", "of this year"):
            return _month(self.today.year - ("last" in relative), month)
        self.phrase.take("of")
        return _month(self.phrase.year() or self.today.year - (month > self.today.month), month)

    def amount(self) -> tuple[str, int] | None:
        """Unit and number of ``3 days``, ``a couple of weeks``, ``few months``."""
        few = self.phrase.take("couple of", "couple", "few", "a few")
        count = (2 if "couple" in few else 3) if few else self.phrase.number()
        unit = self.unit() if count is not None else None
        return None if count is None or unit is None else (unit, count)

    def unit(self) -> str | None:
        unit = self.phrase.peek().removesuffix("s")
        self.phrase.at += unit in _UNITS
        return unit if unit in _UNITS else None

    def calendar(self, unit: str, back: int) -> _Wall:
        """The hour, day, week (from Monday), month or year that lies so many back."""
        if unit == "hour":
            start = self.here - timedelta(hours=back)
            return start, start + timedelta(hours=1)
        if unit in ("week", "fortnight"):
            return _days(_monday(self.today) - _UNITS[unit] * back * _DAY, _UNITS[unit])
        if unit == "day":
            return _days(self.today - back * _DAY, 1)
        months = 12 if unit == "year" else 1
        first = later(self.today.replace(day=1, month=1 if unit == "year" else self.today.month), -back * months)
        return datetime.combine(first, time()), datetime.combine(later(first, months), time())

    def back(self, unit: str, count: int) -> datetime:
        """Where "the last 3 weeks" begin: hours are exact, all else begins with a day."""
        if unit == "hour":
            return self.here - timedelta(hours=count)
        months = count * {"month": 1, "year": 12}.get(unit, 0)
        first = later(self.today, -months) if months else self.today - _UNITS[unit] * count * _DAY
        return datetime.combine(first, time())

    def dated(self, year: int | None, month: int | None, day: int) -> _Wall | None:
        """A date; without a year the last such day that has begun, without a month of any."""
        if year is not None:
            return _day(calendar_day(year, month or 1, day))
        for back in range(60 if month is not None else 3):
            first = later(self.today.replace(day=1), -back)
            found = calendar_day(first.year, first.month, day) if month in (None, first.month) else None
            if found is not None and found <= self.today:
                return _day(found)
        return None


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _month(year: int, month: int) -> _Wall | None:
    first = calendar_day(year, month, 1)
    return None if first is None else (datetime.combine(first, time()), datetime.combine(later(first, 1), time()))


def _day(day: date | None) -> _Wall | None:
    return None if day is None else _days(day, 1)


def _days(first: date, count: int) -> _Wall:
    return datetime.combine(first, time()), datetime.combine(first + timedelta(days=count), time())
