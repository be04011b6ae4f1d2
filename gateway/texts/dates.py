"""Dates and periods as they are written in a language, by the data of Babel."""

from __future__ import annotations

import re
from datetime import date, datetime

DAYS_A_YEAR = 365


def format_date(day: date, locale: str, width: str = "long") -> str:
    """Format a date, in the width "long" or "full": ``3 mars 2026``, ``mardi 3 mars 2026``."""
    # Imported here, and below, because few messages have dates.
    from babel.dates import format_date

    return _correct_first(format_date(day, width, locale=locale), locale)


def format_parts(at: datetime, skeleton: str, locale: str) -> str:
    """Format the parts of a date that a skeleton names: ``yMMMM`` for ``mars 2026``."""
    from babel.dates import format_skeleton

    return _correct_first(format_skeleton(skeleton, at, locale=locale), locale)


def format_weekday(at: datetime, locale: str) -> str:
    """Format a date with its whole weekday and without the year: ``mardi 3 mars``."""
    from babel import Locale
    from babel.dates import match_skeleton, parse_pattern

    patterns = Locale.parse(locale).datetime_skeletons
    skeleton = match_skeleton("MMMMEEEEd", patterns)
    if skeleton is None:
        return format_date(at.date(), locale, "full")
    # The pattern of most languages has a short weekday.
    pattern = re.sub(r"E+|c+", "EEEE", patterns[skeleton].pattern)
    return _correct_first(parse_pattern(pattern).apply(at, locale), locale)


def format_days(days: int, locale: str) -> str:
    """Format a number of days, in years if they are whole: ``30 days``, ``1 year``."""
    from babel.units import format_unit

    if days % DAYS_A_YEAR == 0:
        return format_unit(days // DAYS_A_YEAR, "duration-year", length="long", locale=locale)
    return format_unit(days, "duration-day", length="long", locale=locale)


def _correct_first(text: str, locale: str) -> str:
    """Write the first day of a month in French as people do, "1er mars", unlike Babel."""
    return re.sub(r"\b1(?= [^\W\d])", "1er", text) if locale.startswith("fr") else text
