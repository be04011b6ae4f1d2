"""Read the name of a period, such as "yesterday", "last week", "3 May 2025" or "vor zwei Wochen".

The whole text must be the name, as in a filter. `periods_in_text` finds periods within a sentence.

A name without a year means the latest such period that has begun. The current time is a parameter.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.cursor import WEEKDAYS, Day, WordCursor, normalize_word, word_tables
from core.dates.periods_in_text import parse_named_period
from core.dates.schedule import date_if_valid, resolve_wall_time

Interval = tuple[datetime, datetime]
"""The first moment of a period, and the first moment after it."""

MAX_PERIOD_WORDS = 7
"""The name of a period has at most this many words."""
LEAP_YEAR_SEARCH_YEARS = 9
"""29 February is searched for in this many years, because the latest one may be eight years ago."""


def read_period(text: str, now: datetime, zone: ZoneInfo) -> Interval | None:
    """Return the period that a text names, in UTC, or None if the text is anything else.

    A day begins at midnight in `zone`.
    """
    words = text.replace(",", " ").split(maxsplit=MAX_PERIOD_WORDS)
    if not words or len(words) > MAX_PERIOD_WORDS:
        return None
    today = now.astimezone(zone).date()
    try:
        wall_times = _read_figures(words, today, zone) or _read_words(words, today)
        if wall_times is None:
            return None
        start, end = wall_times
        return resolve_wall_time(start, zone), resolve_wall_time(end, zone)
    except (OverflowError, ValueError):
        return None  # The period is before year 1 or after year 9999.


def _read_figures(words: list[str], today: date, zone: ZoneInfo) -> Interval | None:
    """Read a date or time in digits: ``2026-05-01``, ``1.5.2026``, ``1.5.``, ``2026-05-01T10:30``.

    A time means the minute that begins then. Returns naive wall times, or None.
    """
    cursor = WordCursor(words)
    cursor.take("in", "on", "since")
    moment = cursor.read_instant()
    day = cursor.read_number_date() if moment is None else None
    if not cursor.is_done:
        return None
    if moment is not None:
        if moment.tzinfo is not None:
            moment = moment.astimezone(zone).replace(tzinfo=None, fold=0)
        return moment, moment + timedelta(minutes=1)
    latest = None if day is None else _latest_date(day, today)
    return None if latest is None else _whole_days(latest, latest)


def _latest_date(day: Day, today: date) -> date | None:
    """Return the date of a day, or None if it is invalid.

    Without a year, return the latest such date that isn't in the future.
    """
    if day.year:
        return date_if_valid(day.year, day.month, day.day)
    for year in range(today.year, today.year - LEAP_YEAR_SEARCH_YEARS, -1):
        candidate = date_if_valid(year, day.month, day.day)
        if candidate and candidate <= today:
            return candidate
    return None


def _read_words(words: list[str], today: date) -> Interval | None:
    """Read a period in words, such as ``last fri``. Weekdays may be abbreviated.

    Returns naive wall times, or None.
    """
    weekdays = word_tables()["weekdays"]
    full_words = []
    for word in words:
        weekday = weekdays.get(normalize_word(word))
        full_words.append(word if weekday is None else WEEKDAYS[weekday])
    days = parse_named_period(" ".join(full_words), today)
    return _whole_days(*days) if days else None


def _whole_days(first: date, last: date) -> Interval:
    """Return the naive wall times at which the first day begins and the last day ends."""
    day_after = last + timedelta(days=1)
    return datetime.combine(first, time()), datetime.combine(day_after, time())
