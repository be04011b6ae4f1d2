"""Periods of the past as people name them alone: yesterday, last week, in May, 3 May 2025, 2026-05, vor zwei Wochen.

Pure functions. What has no year is the latest such time that has begun; words that name no period give None, no error.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.grammar import WEEKDAYS, Phrase, clean, words
from core.dates.mentions import named
from core.dates.schedule import calendar_day, existing

Period = tuple[datetime, datetime]
"""From the first moment (UTC) until before the second; while it is read, as clocks show it, naive."""

WORDS = 7  # no period is named with more words
_DAY = timedelta(days=1)


def read(text: str, now: datetime, zone: ZoneInfo) -> Period | None:
    """The period that `text` names as a whole, in the wall time of `zone`; None where it names none."""
    typed = text.replace(",", " ").split(maxsplit=WORDS)
    if not typed or len(typed) > WORDS:
        return None
    today = now.astimezone(zone).date()
    try:
        wall = _figures(Phrase(typed), today, zone) or _named(typed, today)
        return (existing(wall[0], zone), existing(wall[1], zone)) if wall else None
    except (OverflowError, ValueError):
        # Before the year 1, or behind the year 9999.
        return None


def _named(typed: list[str], today: date) -> Period | None:
    """As sentences name times, and weekdays shortened."""
    shortened = words()["weekdays"]
    full = (WEEKDAYS[shortened[clean(word)]] if clean(word) in shortened else word for word in typed)
    days = named(" ".join(full), today)
    return _days(*days) if days else None


def _figures(phrase: Phrase, today: date, zone: ZoneInfo) -> Period | None:
    """``2026-05-01``, ``2026-05-01T10:30`` (that minute), ``1.5.2026``, ``1.5.``."""
    phrase.take("in", "on", "since")
    period: Period | None = None
    if moment := phrase.instant():
        wall = moment if moment.tzinfo is None else moment.astimezone(zone).replace(tzinfo=None, fold=0)
        period = wall, wall + timedelta(minutes=1)
    elif day := phrase.number_date():
        years = (day.year,) if day.year else range(today.year, today.year - 9, -1)
        found = (calendar_day(year, day.month, day.day) for year in years)
        begun = next((one for one in found if one and (day.year or one <= today)), None)
        period = _days(begun, begun) if begun else None
    return period if phrase.is_done else None


def _days(first: date, last: date) -> Period:
    return datetime.combine(first, time()), datetime.combine(last + _DAY, time())
