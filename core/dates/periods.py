"""Stretches of the past as people name them: yesterday, last week, in May, 3 May 2025, 2026-05, two weeks ago.

Pure; the present moment and the person's zone are given. What has no year is the latest such time that has begun. Times
to come are read by `core.scheduling.schedule`; here a word that names no stretch of time is None, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.days import month_day
from core.dates.resolver import calendar_day, existing, later
from core.dates.scanner import WEEKDAYS, Phrase, clean

Period = tuple[datetime, datetime | None]
"""From the first moment (UTC) until before the second; None: it goes on until now."""
_Wall = tuple[datetime, datetime | None]
"""The same as clocks show it, naive."""

WORDS = 7
"""No stretch of time is named with more words."""
_LOOKED_AT = 60
_DAY = timedelta(days=1)
_LEADS = ("in the", "on the", "in", "on", "during the", "during", "over the", "over", "within the", "within", "the")
_SURE_LEADS = frozenset({"in", "on", "during", "since", "last", "this", "past", "previous", "of"})
_DOUBTFUL = frozenset({"first", "second", "third", "fourth", "fifth", "last", "sun", "sat", "mar"})
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_ISO_MONTH = re.compile(r"(\d{4})[-/.](\d{1,2})")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:z|[+-]\d\d:\d\d)?")
_DAY_FIRST = re.compile(r"(\d{1,2})([./])(\d{1,2})(?:[./](\d{4})?)?")
_YEAR = re.compile(r"(?:19|20|21)\d{2}")
_SURELY = re.compile(r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?")
_UNITS = {"hour": 0, "day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}


def read(text: str, now: datetime, zone: ZoneInfo) -> Period | None:
    """The stretch of time that `text` names as a whole, as the clocks in `zone` have it; None where it names none.
    ``since May`` has no end."""
    words = text.replace(",", " ").split(maxsplit=WORDS)
    if not words or len(words) > WORDS:
        return None
    phrase = Phrase(words)
    try:
        here = now.astimezone(zone).replace(tzinfo=None, microsecond=0, fold=0)
        wall = _since(phrase, here, zone) or _span(phrase, here, zone)
        if wall is None or not phrase.is_done:
            return None
        start, end = wall
        return existing(start, zone).astimezone(UTC), None if end is None else existing(end, zone).astimezone(UTC)
    except (OverflowError, ValueError):
        # Before the year 1, or behind the year 9999.
        return None


def mentioned(text: str, now: datetime, zone: ZoneInfo) -> Period | None:
    """The first stretch of time that is surely named somewhere in a sentence: "What was said about the ferry *last
    week*?" A month alone counts behind "in" and the like only, because "may" is more often no month."""
    words = text[:2000].split()[:_LOOKED_AT]
    compared = [clean(word) for word in words]
    for first in range(len(words)):
        for size in range(min(WORDS, len(words) - first), 0, -1):
            part = compared[first : first + size]
            if _is_sure(part) and (found := read(" ".join(words[first : first + size]).rstrip("?!.,;:"), now, zone)):
                return found
    return None


def _is_sure(part: list[str]) -> bool:
    """Whether words that may name a time can hardly mean anything else."""
    if len(part) == 1:
        return part[0] in ("yesterday", "today") or part[0] in WEEKDAYS or _SURELY.fullmatch(part[0]) is not None
    if part[-1] == "ago" or part[0] in _SURE_LEADS:
        return part[-1] not in _DOUBTFUL
    return any(_YEAR.fullmatch(word) for word in part[1:]) or part == ["last", "night"]


def _since(phrase: Phrase, here: datetime, zone: ZoneInfo) -> _Wall | None:
    if not phrase.take("since", "from"):
        return None
    found = _one(phrase, here, zone)
    if found is None:
        return None
    if not phrase.take("to", "until", "till", "through", "-"):
        return found[0], None
    return _joined(found, _one(phrase, here, zone))


def _span(phrase: Phrase, here: datetime, zone: ZoneInfo) -> _Wall | None:
    """One stretch, or ``May to July``, ``between May and July``."""
    is_between = bool(phrase.take("between"))
    first = _one(phrase, here, zone)
    if first is None or not phrase.take("and" if is_between else "to", "until", "-"):
        return None if is_between else first
    return _joined(first, _one(phrase, here, zone))


def _joined(first: _Wall, second: _Wall | None) -> _Wall | None:
    if second is None or second[1] is None:
        return None
    start, end = first[0], second[1]
    while start >= end and start.year > 1:
        # "November to January": the first of the two was in the year before.
        start = datetime.combine(later(start.date(), -12), start.time())
    return start, end


def _one(phrase: Phrase, here: datetime, zone: ZoneInfo) -> _Wall | None:
    """The first reading that fits what comes next."""
    phrase.take(*_LEADS)
    start = phrase.at
    readings: tuple[Callable[[Phrase, datetime], _Wall | None], ...] = (
        _near,
        _running,
        _ago,
        _numbers,
        _day_of,
        _named,
    )
    for reading in readings:
        found = reading(phrase, here)
        if found is not None:
            return found
        phrase.at = start
    return _instant(phrase, zone)


def _near(phrase: Phrase, here: datetime) -> _Wall | None:
    today = here.date()
    if phrase.take("last night"):
        return datetime.combine(today - _DAY, time(18)), datetime.combine(today, time(6))
    if phrase.take("today", "tonight", "this morning", "this afternoon", "this evening"):
        return _days(today, today + _DAY)
    if phrase.take("day before yesterday"):
        return _days(today - 2 * _DAY, today - _DAY)
    if phrase.take("yesterday"):
        phrase.take("morning", "afternoon", "evening", "night")
        return _days(today - _DAY, today)
    if phrase.take("tomorrow"):
        return _days(today + _DAY, today + 2 * _DAY)
    return None


def _running(phrase: Phrase, here: datetime) -> _Wall | None:
    """``this week``, ``last month``, ``the past 3 days``, ``last friday``, ``last may``."""
    today = here.date()
    is_this = bool(phrase.take("this"))
    if not is_this and not phrase.take("last", "past", "previous"):
        return None
    if phrase.take("weekend"):
        saturday = _monday(today) + 5 * _DAY
        saturday -= timedelta() if is_this else 7 * _DAY
        return _days(saturday, saturday + 2 * _DAY)
    unit = _unit(phrase)
    if unit is not None:
        return _calendar(unit, here, 0 if is_this else 1)
    if (count := _count(phrase)) is not None:
        unit = _unit(phrase)
        return None if unit is None or is_this else (_back(unit, count, here), None)
    weekday = phrase.weekday()
    if weekday is not None:
        back = (today.weekday() - weekday) % 7
        day = today - timedelta(days=back if is_this or back else 7)
        return _days(day, day + _DAY)
    month = phrase.month()
    if month is None:
        return None
    year = today.year - (month > today.month or (month == today.month and not is_this))
    return _month(year, month)


def _ago(phrase: Phrase, here: datetime) -> _Wall | None:
    """``3 days ago``: that day; ``2 weeks ago``, ``a month ago``: that week, that month."""
    count = _count(phrase)
    unit = _unit(phrase) if count is not None else None
    if count is None or unit is None or not phrase.take("ago", "back", "before now"):
        return None
    if unit == "hour":
        start = here - timedelta(hours=count)
        return start, start + timedelta(hours=1)
    if unit == "fortnight":
        unit, count = "week", 2 * count
    return _calendar(unit, here, count)


def _numbers(phrase: Phrase, here: datetime) -> _Wall | None:
    """``2026-05-01``, ``2026-05``, ``2026``, ``1.5.2026``, ``1/5/2026`` (day first), ``1.5.``."""
    if found := phrase.match(_ISO):
        return _day(calendar_day(int(found[1]), int(found[2]), int(found[3])))
    if found := phrase.match(_ISO_MONTH):
        return _month(int(found[1]), int(found[2]))
    if found := phrase.match(_YEAR):
        return _days(date(int(found[0]), 1, 1), date(int(found[0]) + 1, 1, 1))
    if found := phrase.match(_DAY_FIRST):
        day, month = int(found[1]), int(found[3])
        if month > 12 and found[2] == "/":
            day, month = month, day
        return _day(calendar_day(int(found[4]), month, day) if found[4] else _latest(month, day, here.date()))
    return None


def _day_of(phrase: Phrase, here: datetime) -> _Wall | None:
    """``3 May``, ``May 3rd 2025``, ``friday``, ``friday 3 may``, ``the 3rd``."""
    weekday = phrase.weekday()
    if weekday is not None and phrase.is_done:
        day = here.date() - timedelta(days=(here.weekday() - weekday) % 7)
        return _day(day)
    start = phrase.at
    found = month_day(phrase)
    if found is None:
        phrase.at = start
        number = phrase.ordinal()
        return None if number is None or number < 1 or not phrase.is_done else _day(_latest(None, number, here.date()))
    year = phrase.match(_YEAR)
    return _day(calendar_day(int(year[0]), *found) if year else _latest(*found, here.date()))


def _named(phrase: Phrase, here: datetime) -> _Wall | None:
    """``May``, ``May 2025``, ``May last year``."""
    month = phrase.month()
    if month is None:
        return None
    if phrase.take("last year", "of last year"):
        return _month(here.year - 1, month)
    if phrase.take("this year", "of this year"):
        return _month(here.year, month)
    phrase.take("of")
    if year := phrase.match(_YEAR):
        return _month(int(year[0]), month)
    return _month(here.year - (month > here.month), month)


def _instant(phrase: Phrase, zone: ZoneInfo) -> _Wall | None:
    """``2026-05-01T10:30``, also with seconds and an offset: that minute."""
    found = phrase.match(_INSTANT)
    if found is None:
        return None
    moment = datetime.fromisoformat(found[0].upper())
    wall = moment if moment.tzinfo is None else moment.astimezone(zone).replace(tzinfo=None, fold=0)
    return wall, wall + timedelta(minutes=1)


def _count(phrase: Phrase) -> int | None:
    if phrase.take("couple of", "a couple of", "couple"):
        return 2
    if phrase.take("few", "a few"):
        return 3
    return phrase.number()


def _unit(phrase: Phrase) -> str | None:
    word = phrase.peek().removesuffix("s")
    if word not in _UNITS:
        return None
    phrase.at += 1
    return word


def _calendar(unit: str, here: datetime, back: int) -> _Wall:
    """The day, week (from Monday), month or year that lies so many back."""
    today = here.date()
    if unit == "hour":
        start = here - timedelta(hours=back)
        return start, start + timedelta(hours=1)
    if unit in ("week", "fortnight"):
        monday = _monday(today) - timedelta(days=_UNITS[unit] * back)
        return _days(monday, monday + timedelta(days=_UNITS[unit]))
    if unit == "month":
        first = later(today.replace(day=1), -back)
        return _days(first, later(first, 1))
    if unit == "year":
        return _days(date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1))
    return _days(today - back * _DAY, today - (back - 1) * _DAY)


def _back(unit: str, count: int, here: datetime) -> datetime:
    """Where "the last 3 weeks" begin: hours are exact, all else begins with a day."""
    if unit == "hour":
        return here - timedelta(hours=count)
    if unit in ("month", "year"):
        return datetime.combine(later(here.date(), -count * (12 if unit == "year" else 1)), time())
    return datetime.combine(here.date() - timedelta(days=_UNITS[unit] * count), time())


def _latest(month: int | None, day: int, today: date) -> date | None:
    """The last such day that has begun; without a month, of any."""
    for back in range(60 if month is not None else 3):
        first = later(today.replace(day=1), -back)
        if month in (None, first.month) and (found := calendar_day(first.year, first.month, day)) and found <= today:
            return found
    return None


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _day(day: date | None) -> _Wall | None:
    return None if day is None else _days(day, day + _DAY)


def _month(year: int, month: int) -> _Wall | None:
    first = calendar_day(year, month, 1)
    return None if first is None else _days(first, later(first, 1))


def _days(first: date, behind: date) -> _Wall:
    return datetime.combine(first, time()), datetime.combine(behind, time())
