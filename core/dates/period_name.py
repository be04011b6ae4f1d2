"""Read the name of a period, such as "yesterday", "last week", "3 May 2025" or "vor zwei Wochen".

The whole text must be the name, as in a filter. `periods_in_text` finds periods within a sentence.

A name without a year means the latest such period that has begun. The current time is a parameter.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates import forms
from core.dates.period_tokens import tokenize_name
from core.dates.periods_in_text import ANY_YEAR, parse_named_period
from core.dates.schedule import ISO_MOMENT, date_if_valid, resolve_wall_time
from core.dates.tokens import compile_grammar, kinds_of

Interval = tuple[datetime, datetime]
"""The first moment of a period, and the first moment after it."""

MAX_PERIOD_WORDS = 7
"""The name of a period has at most this many words."""


_ANY_DAY = "[number month_day ordinal]"
_WHOLE_DAY = compile_grammar(
    f"[in on]* (?: {forms.day_and_month(_ANY_DAY, 'in')} | {forms.month_and_day(_ANY_DAY, 'in')} )"
)
"""The whole name of a day, with its year or without."""
_BEFORE_MOMENT = ("in", "on", "since")


def read_period(text: str, now: datetime, zone: ZoneInfo) -> Interval | None:
    """Return the period that a text names, in UTC, or None if the text is anything else.

    A day begins at midnight in `zone`.
    """
    if not 0 < len(text.split()) <= MAX_PERIOD_WORDS:
        return None
    today = now.astimezone(zone).date()
    try:
        wall_times = _read_moment(text, zone) or _read_days(text, today)
        if wall_times is None:
            return None
        start, end = wall_times
        return resolve_wall_time(start, zone), resolve_wall_time(end, zone)
    except (OverflowError, ValueError):
        return None  # The period is before year 1 or after year 9999.


def _read_moment(text: str, zone: ZoneInfo) -> Interval | None:
    """Read a time in ISO 8601, such as ``2026-05-01T10:30``: the minute that begins then.

    Returns naive wall times, or None.
    """
    *lead, last = text.split()
    match = ISO_MOMENT.fullmatch(last)
    if match is None or any(word not in _BEFORE_MOMENT for word in lead):
        return None
    moment = datetime.fromisoformat(match[1].upper())
    if moment.tzinfo is not None:
        moment = moment.astimezone(zone).replace(tzinfo=None, fold=0)
    return moment, moment + timedelta(minutes=1)


def _read_days(text: str, today: date) -> Interval | None:
    """Read the name of one or several days. Returns naive wall times, or None."""
    days = parse_named_period(text, today)
    return _whole_days(*days) if days else None


def _whole_days(first: date, last: date) -> Interval:
    """Return the naive wall times at which the first day begins and the last day ends."""
    day_after = last + timedelta(days=1)
    return datetime.combine(first, time()), datetime.combine(day_after, time())


def parse_day_name(text: str) -> forms.MonthDays | None:
    """Return the day that a text names, with its year or without: "3 May", "5月3日", "May 3, 1990".

    Returns None if the text isn't exactly one day.
    """
    for is_short_first in (False, True):
        tokens = [*tokenize_name(text, is_short_first=is_short_first)]
        match = _WHOLE_DAY.fullmatch(kinds_of(tokens))
        form = forms.read_month_days(tokens) if match is not None else None
        year = (form.year if form is not None else 0) or ANY_YEAR
        if form is not None and date_if_valid(year, form.month, form.days[0]):
            return form
    return None
