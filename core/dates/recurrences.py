"""The English of what comes again: every Monday, daily, every 2 hours from 9 to 17, the 1st and 15th of the month."""

from __future__ import annotations

import re
from datetime import date

from core.dates.days import month_day
from core.dates.resolver import When
from core.dates.scanner import PARTS, Phrase

_HOUR = re.compile(r"(\d{1,2})(?::00)?(am|pm)?")
_PLURALS = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days")
_WORKDAYS = (0, 1, 2, 3, 4)
_REPEATS = {
    "hourly": (0, 0, 3600), "daily": (0, 1, 0), "nightly": (0, 1, 0), "weekly": (0, 7, 0), "fortnightly": (0, 14, 0),
    "monthly": (1, 0, 0), "yearly": (12, 0, 0), "annually": (12, 0, 0),
}  # fmt: skip


def repeat(phrase: Phrase, when: When, today: date) -> bool:
    if when.has_day:
        return False
    phrase.take("on")
    if phrase.take("weekdays", "workdays", "working days"):
        when.weekdays = _WORKDAYS
    elif phrase.take("weekends"):
        when.weekdays = (5, 6)
    elif _PLURALS.fullmatch(phrase.peek()):
        when.weekdays = phrase.weekdays() or ()
    elif word := phrase.take(*_REPEATS):
        when.span = _REPEATS[word]
        when.part = "night" if word == "nightly" else when.part
    elif not (phrase.take("every", "each") and _every(phrase, when)):
        return False
    when.is_repeated = True
    return True


def _every(phrase: Phrase, when: When) -> bool:
    if phrase.take("weekday", "workday", "working day", "business day", "week day"):
        when.weekdays = _WORKDAYS
    elif phrase.take("weekend"):
        when.weekdays, when.is_certain = (5, 6), False
    elif part := phrase.take(*PARTS):
        when.span, when.part = (0, 1, 0), part
    elif phrase.peek() in ("noon", "midday", "midnight"):
        when.span = (0, 1, 0)
    elif phrase.take("other"):
        return _every_second(phrase, when)
    elif phrase.take("single day"):
        when.span = (0, 1, 0)
    elif _yearly(phrase, when) or _nth(phrase, when):
        return True
    elif (days := phrase.weekdays()) is not None:
        when.weekdays = days
    else:
        when.span = phrase.span(is_bare_unit=True)
        return when.span is not None and any(when.span)
    return True


def _every_second(phrase: Phrase, when: When) -> bool:
    weekday = phrase.weekday()
    if weekday is not None:
        when.span, when.weekdays = (0, 14, 0), (weekday,)
        return True
    span = phrase.span(is_bare_unit=True)
    if span is None:
        return False
    when.span = (span[0] * 2, span[1] * 2, span[2] * 2)
    return True


def _yearly(phrase: Phrase, when: When) -> bool:
    """``3 May``, ``May 3rd``."""
    start = phrase.at
    found = month_day(phrase)
    if found is None:
        phrase.at = start
        return False
    when.month, when.month_day = found
    when.span = (12, 0, 0)
    return True


def _nth(phrase: Phrase, when: When) -> bool:
    """``first monday of the month``, ``3rd``, ``1st and 15th of the month``, ``last day of the month``, ``3rd day``."""
    start = phrase.at
    phrase.take("the")
    number = phrase.ordinal()
    if number is None:
        phrase.at = start
        return False
    weekday = phrase.weekday()
    if weekday is not None:
        is_monthly = bool(phrase.take("of the month", "of each month", "of every month", "in the month"))
        if number == 2 and not is_monthly:
            when.span, when.weekdays, when.is_certain = (0, 14, 0), (weekday,), False
        elif -1 <= number <= 5:
            when.nth, when.weekdays = number, (weekday,)
        return -1 <= number <= 5
    if number == -1:
        when.month_days = (-1,)
        return bool(phrase.take("day of the month", "day of each month", "day of every month", "of the month"))
    behind = phrase.at
    unit = phrase.span(is_bare_unit=True)
    if unit is not None:
        when.span = (unit[0] * number, unit[1] * number, unit[2] * number)
        return True
    phrase.at = behind
    days = [number]
    while phrase.take("and", "&") and (more := phrase.ordinal()) is not None:
        days.append(more)
        behind = phrase.at
    phrase.at = behind
    phrase.take("of the month", "of each month", "of every month", "day of the month")
    when.month_days = tuple(days)
    return True


def detail(phrase: Phrase, when: When, today: date) -> bool:
    """Which day of what repeats: ``every week on monday``, ``every month on the 3rd``, ``every year on 3 May``."""
    if not when.is_repeated or when.span is None or when.month_day or when.month_days or when.weekdays:
        return False
    months, days, seconds = when.span
    is_led = bool(phrase.take("on", "on the", "the"))
    if months % 12 == 0 and months and (found := month_day(phrase)):
        when.month, when.month_day = found
        return months == 12
    if months and is_led:
        phrase.take("the")
        return _nth(phrase, when) if phrase.peek() else False
    if phrase.take("weekdays"):
        when.weekdays = _WORKDAYS
    elif is_led or days % 7 == 0:
        when.weekdays = phrase.weekdays() or ()
    return bool(when.weekdays) and not months and (bool(seconds) or days % 7 == 0)


def hours(phrase: Phrase, when: When, today: date) -> bool:
    """``from 9 to 17``, ``between 9am and 5pm`` behind a repetition within the day."""
    if not when.is_repeated or when.hours or when.span is None or not when.span[2]:
        return False
    joint = {"from": ("to", "until", "till"), "between": ("and",)}.get(phrase.take("from", "between") or "", ())
    first = phrase.match(_HOUR)
    if first is None or not joint or not phrase.take(*joint):
        return False
    last = phrase.match(_HOUR)
    if last is None:
        return False
    hours = [int(end[1]) % 12 + 12 * (end[2] == "pm") if end[2] else int(end[1]) for end in (first, last)]
    when.hours = (hours[0], hours[1])
    return hours[0] < hours[1] <= 23
