"""The English of days: today, next Friday, 3 May, the 3rd, 24.12., 2026-12-01, and how sure each is."""

from __future__ import annotations

import re
from datetime import date, timedelta

from core.dates.resolver import When, calendar_day, later
from core.dates.scanner import WEEKDAYS, Phrase

_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:t(\d{2}):(\d{2})(?::\d{2})?(?:\.\d{1,6})?)?")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})(?:\.(\d{4}))?")
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})(?:/(\d{4}))?")
_DAY_NUMBER = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(19|20|21)\d{2}")


def day(phrase: Phrase, when: When, today: date) -> bool:
    """Takes a day, if one comes next, into `when`; False (and anything taken) where there is none."""
    if when.has_day:
        return False
    if phrase.take("today"):
        when.day = today
    elif phrase.take("tonight"):
        when.day, when.part = today, "night"
    elif phrase.take("tomorrow", "tmrw", "tmr"):
        when.day = today + timedelta(days=1)
    elif phrase.take("the day after tomorrow", "day after tomorrow"):
        when.day = today + timedelta(days=2)
    elif phrase.take("yesterday"):
        when.day = today - timedelta(days=1)
    elif phrase.take("next"):
        return _next(phrase, when, today)
    elif phrase.take("on the weekend", "at the weekend", "this weekend"):
        when.day, when.is_certain = today + timedelta(days=(5 - today.weekday()) % 7), False
    else:
        return _written(phrase, when) or _weekday(phrase, when, today)
    return True


def _next(phrase: Phrase, when: When, today: date) -> bool:
    monday = today + timedelta(days=7 - today.weekday())
    if phrase.take("week"):
        phrase.take("on")
        weekday = phrase.weekday()
        when.day, when.is_certain = monday + timedelta(days=weekday or 0), weekday is not None
    elif phrase.take("weekend"):
        when.day, when.is_certain = monday + timedelta(days=5), False
    elif phrase.take("month"):
        first = later(today.replace(day=1), 1)
        phrase.take("on")
        number = phrase.ordinal() if phrase.take("the") else None
        day = calendar_day(first.year, first.month, number or 1)
        when.day, when.is_certain = day, number is not None
        return day is not None
    elif phrase.take("year"):
        when.day, when.is_certain = date(today.year + 1, 1, 1), False
    else:
        weekday = phrase.weekday()
        if weekday is None:
            return False
        when.day = monday + timedelta(days=weekday)
        # On a Wednesday "next friday" is in two days for some and in nine for others.
        when.is_certain = (when.day - today).days <= 7
    return True


def _weekday(phrase: Phrase, when: When, today: date) -> bool:
    """``friday``, ``on friday``, ``friday next week``, ``friday 27 november``."""
    is_led = bool(phrase.take("on", "this", "coming", "this coming"))
    word = phrase.peek()
    if phrase.is_strict and not is_led and len(word) < 6:
        return False
    weekday = phrase.weekday()
    if weekday is None:
        return False
    if phrase.take("next week"):
        when.day = today + timedelta(days=7 - today.weekday() + weekday)
        return True
    if _written(phrase, when):
        if when.day is not None:
            when.is_certain = when.is_certain and when.day.weekday() == weekday
        return True
    when.weekdays = (weekday,)
    when.is_certain = is_led or len(word) > 5 or phrase.is_done or bool(when.clocks) or phrase.peek() in ("at", "@")
    return True


def _written(phrase: Phrase, when: When) -> bool:
    """A date: ``2026-12-01``, ``3 May 2027``, ``May 3rd``, ``24.12.``, ``the 3rd``."""
    start = phrase.at
    if _number_date(phrase, when):
        return True
    phrase.at = start
    is_led = bool(phrase.take("on"))
    found = month_day(phrase)
    if found is not None:
        when.month, when.month_day = found
        return _with_year(phrase, when)
    is_named = bool(phrase.take("the"))
    is_number = phrase.peek()[:1].isdigit() or not phrase.is_strict
    number = phrase.ordinal() if (is_led or is_named) and is_number else None
    if number is not None and number > 0 and phrase.peek() not in WEEKDAYS:
        phrase.take("of the month", "of this month")
        when.month_day, when.is_certain = number, is_led
        return True
    phrase.at = start
    return False


def _number_date(phrase: Phrase, when: When) -> bool:
    is_led = bool(phrase.take("on")) or phrase.raw().endswith(".")
    if found := phrase.match(_ISO):
        when.day = calendar_day(int(found[1]), int(found[2]), int(found[3]))
        if found[4] and int(found[4]) < 24 and int(found[5]) < 60:
            when.clocks = ((int(found[4]), int(found[5]), False),)
        return when.day is not None
    dotted = phrase.match(_DOTTED)
    found = dotted or phrase.match(_SLASHED)
    if found is None or (found[3] is None and phrase.is_strict and not is_led):
        return False
    day, month = int(found[1]), int(found[2])
    if dotted is None and month > 12:
        day, month = month, day
    elif dotted is None and day <= 12:
        # 3/5 is in May for most of the world and in March for some.
        when.is_certain = when.is_certain and day == month
    elif dotted is not None:
        when.is_certain = when.is_certain and (is_led or found[3] is not None)
    if found[3] is not None:
        when.day = calendar_day(int(found[3]), month, day)
        return when.day is not None
    when.month, when.month_day = month, day
    return 1 <= month <= 12 and calendar_day(2028, month, day) is not None


def month_day(phrase: Phrase) -> tuple[int, int] | None:
    """Month and day of ``3 May``, ``the 3rd of May``, ``May 3``; None where there are none such."""
    start = phrase.at
    phrase.take("the")
    day = phrase.match(_DAY_NUMBER)
    number = int(day[1]) if day else phrase.ordinal()
    phrase.take("of")
    month = phrase.month()
    if number is None or month is None:
        phrase.at = start
        month, number = phrase.month(), None
        phrase.take("the")
        if month is not None and (day := phrase.match(_DAY_NUMBER)) is not None and phrase.peek()[:1] != ":":
            number = int(day[1])
    if month is None or number is None or calendar_day(2028, month, number) is None:
        phrase.at = start
        return None
    return month, number


def _with_year(phrase: Phrase, when: When) -> bool:
    year = phrase.match(_YEAR)
    if year is None:
        return True
    when.day = calendar_day(int(year[0]), when.month or 1, when.month_day or 1)
    return when.day is not None
