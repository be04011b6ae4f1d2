"""Periods of the past as people name them: yesterday, last week, in May, 3 May 2025, 2026-05, two weeks ago.

Pure functions. What has no year is the latest such time that has begun; words that name no period give None, no error.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.grammar import Day, Phrase
from core.dates.schedule import calendar_day, existing, later

Period = tuple[datetime, datetime]
"""From the first moment (UTC) until before the second; while it is read, as clocks show it, naive."""

WORDS = 7  # no period is named with more words
_DAY = timedelta(days=1)
_LEADS = ("in the", "on the", "in", "on", "during the", "during", "over the", "over", "since", "the")
_NEAR = {"last night": -1, "this morning": 0, "this afternoon": 0, "this evening": 0}
_UNITS = ("day", "week", "month", "year")


def read(text: str, now: datetime, zone: ZoneInfo) -> Period | None:
    """The period that `text` names as a whole, in the wall time of `zone`; None where it names none."""
    typed = text.replace(",", " ").split(maxsplit=WORDS)
    if not typed or len(typed) > WORDS:
        return None
    reader = _Reader(typed, now.astimezone(zone).date(), zone)
    try:
        wall = reader.period()
        return (existing(wall[0], zone), existing(wall[1], zone)) if wall and reader.is_done else None
    except (OverflowError, ValueError):
        # Before the year 1, or behind the year 9999.
        return None


class _Reader(Phrase):
    def __init__(self, typed: list[str], today: date, zone: ZoneInfo) -> None:
        super().__init__(typed)
        self.today = today
        self.zone = zone

    def period(self) -> Period | None:
        """The first reading that fits what comes next."""
        self.take(*_LEADS)
        start = self.at
        for reading in (self.near, self.running, self.ago, self.numbers, self.named):
            found = reading()
            if found is not None:
                return found
            self.at = start
        return None

    def near(self) -> Period | None:
        named = self.take(*_NEAR)
        ahead = _NEAR[named] if named else self.look_up("days")
        return None if ahead is None else _days(self.today + ahead * _DAY)

    def running(self) -> Period | None:
        """``this week``, ``last month``, ``the past 3 days``, ``last friday``, ``last may``."""
        lead = self.take("this", "last", "past", "previous")
        if lead is None:
            return None
        is_this = lead == "this"
        if self.take("weekend"):
            return _days(self.today - (self.today.weekday() - 5 + 7 * (not is_this)) * _DAY, 2)
        if unit := self.unit():
            return self.calendar(unit, 0 if is_this else 1)
        if amount := self.amount():
            return self.calendar(*amount)[0], self.calendar("day", 0)[1]
        if (weekday := self.weekday()) is not None:
            back = (self.today.weekday() - weekday) % 7
            return _days(self.today - (back if is_this or back else 7) * _DAY)
        month = self.look_up("months")
        return None if month is None else _months(self.today.year - (month >= self.today.month + is_this), month)

    def ago(self) -> Period | None:
        """``3 days ago``: that day; ``2 weeks ago``, ``a month ago``: that week, that month."""
        amount = self.amount()
        return self.calendar(*amount) if amount is not None and self.take("ago") else None

    def numbers(self) -> Period | None:
        """``2026-05-01``, ``2026-05-01T10:30`` (that minute), ``2026-05``, ``2026``, ``1.5.2026``, ``1.5.``."""
        if moment := self.instant():
            wall = moment if moment.tzinfo is None else moment.astimezone(self.zone).replace(tzinfo=None, fold=0)
            return wall, wall + timedelta(minutes=1)
        if day := self.number_date():
            return self.dated(day)
        if found := self.read("year_month"):
            return _months(int(found["of_year"]), int(found["number"]))
        year = self.year()
        return None if year is None else _months(year, 1, 12)

    def named(self) -> Period | None:
        """``3 May``, ``May 3rd 2025``, ``friday``, ``friday 3 may``; ``May``, ``May 2025``."""
        weekday = self.weekday()
        if weekday is not None and self.is_done:
            return _days(self.today - (self.today.weekday() - weekday) % 7 * _DAY)
        if found := self.month_day():
            return self.dated(found)
        month = self.look_up("months") if weekday is None else None
        return None if month is None else _months(self.year() or self.today.year - (month > self.today.month), month)

    def amount(self) -> tuple[str, int] | None:
        """Unit and number of ``3 days``, ``a couple of weeks``, ``few months``."""
        count = 3 if self.take("few", "a few") else self.number()
        unit = self.unit() if count is not None else None
        return None if count is None or unit is None else (unit, count)

    def unit(self) -> str | None:
        unit = self.peek().removesuffix("s")
        self.at += unit in _UNITS
        return unit if unit in _UNITS else None

    def calendar(self, unit: str, back: int) -> Period:
        """The day, week (from Monday), month or year that lies so many back."""
        if unit == "week":
            return _days(self.today - (self.today.weekday() + 7 * back) * _DAY, 7)
        if unit == "day":
            return _days(self.today - back * _DAY)
        if unit == "year":
            return _months(self.today.year - back, 1, 12)
        first = later(self.today.replace(day=1), -back)
        return _months(first.year, first.month)

    def dated(self, day: Day) -> Period | None:
        """A date; without a year the last such day that has begun. 29 February comes within eight years."""
        years = (day.year,) if day.year else range(self.today.year, self.today.year - 9, -1)
        found = (calendar_day(year, day.month, day.day) for year in years)
        begun = next((one for one in found if one and (day.year or one <= self.today)), None)
        return _days(begun) if begun else None


def _months(year: int, month: int, count: int = 1) -> Period:
    first = date(year, month, 1)
    return datetime.combine(first, time()), datetime.combine(later(first, count), time())


def _days(first: date, count: int = 1) -> Period:
    return datetime.combine(first, time()), datetime.combine(first + timedelta(days=count), time())
