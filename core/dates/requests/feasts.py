"""Compute the dates of feasts that move: Easter, Thanksgiving, Chinese New Year.

`core/dates/data/feasts.toml` has a rule for each of them, and explains the rules. A lexicon names a
feast by its rule: ``"feast easter 1" = "easter monday"`` is the day after Easter.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from core.dates.recurrence import easter_sunday
from core.dates.schedule import date_if_valid, nth_weekday
from core.dates.tokens import Token
from core.text.normalize import language_data

MAX_YEARS_SEARCHED = 8
"""29 February comes at least once in this many years."""


def next_fixed_dates(month: int, day: int, today: date) -> tuple[date, ...]:
    """Return the next two dates with this day and month. The list is empty for 31 November."""
    years = range(today.year, today.year + MAX_YEARS_SEARCHED)
    dates = [date_if_valid(year, month, day) for year in years]
    return tuple(candidate for candidate in dates if candidate and candidate >= today)[:2]


def next_feast_dates(name: str, days_after: int, today: date) -> tuple[date, ...]:
    """Return the next two dates that are `days_after` days after a movable feast."""
    rule = language_data("feasts", "core.dates")[name]
    dates = []
    for year in range(today.year - 1, today.year + MAX_YEARS_SEARCHED):
        for feast in _dates_in_year(rule, year):
            day = feast + timedelta(days=days_after)
            if day >= today:
                dates.append(day)
    return tuple(dates[:2])


def feast_in_year(feast: Token, year: int) -> date | None:
    """Return the date of a FEAST token in a year, or None if the year has none."""
    if not feast.feast:
        month, day = divmod(int(feast.number), 100)
        return date_if_valid(year, month, day)
    rule = language_data("feasts", "core.dates")[feast.feast]
    dates = _dates_in_year(rule, year)
    return dates[0] + timedelta(days=feast.number) if dates else None


def _dates_in_year(rule: Mapping[str, Any], year: int) -> list[date]:
    """Return the dates of a feast in a year. A feast of the lunar calendar may come twice."""
    if "dates" in rule:
        return [day for day in rule["dates"] if day.year == year]
    if "easter" in rule:
        return [easter_sunday(year) + timedelta(days=rule["easter"])]
    if "orthodox_easter" in rule:
        sunday = easter_sunday(year, is_orthodox=True)
        return [sunday + timedelta(days=rule["orthodox_easter"])]
    if "before" in rule:
        month, day = divmod(rule["before"], 100)
        eve = date(year, month, day) - timedelta(days=1)
        last = eve - timedelta(days=(eve.weekday() - rule["weekday"]) % 7)
        return [last - timedelta(weeks=rule["nth"] - 1)]
    first = date(year, rule["month"], 1)
    day_of_month = nth_weekday(first, rule["nth"], (rule["weekday"],))
    return [day_of_month] if day_of_month else []
