"""Define the forms of days that requests and periods share: "3 May 2027".

`requests` reads these forms as days in the future, and `periods_in_text` as days in the past. A
form is a part of a grammar over kinds of tokens (see `compile_grammar`), and a function that
returns the parts that its tokens name. A new word order or sign is added here once, for both
readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from core.dates.schedule import add_months
from core.dates.tokens import Kind, Token, Unit

LAST = -1
"""The number of an ORDINAL token that means "last"."""
MAX_MONTH_DAY = 31
"""A larger number in a date is a year."""
WEEKDAY_GROUPS = {7: (0, 1, 2, 3, 4), 8: (5, 6)}
"""The weekdays of the numbers that mean working days and weekends; see `Kind.DAY_GROUP`."""

NTH = "(?: ordinal | last | month_day | other_every | number point )"
WEEKDAY = "(?: weekday | weekdays | day_group )"
_MONTH = "(?: month | number month_sign )"
_OF = "(?: of | the | in | on | from | filler )*"
_YEAR = "(?: (?: of | from | in | comma )* year unit? )?"
_YEAR_FIRST = "(?: year (?: unit | in | of )? )?"

NTH_WEEKDAY = (
    f"(?: {NTH} (?: in | on )* {WEEKDAY} {_OF} {_MONTH} {_YEAR}"
    f" | {_YEAR_FIRST} {_MONTH} {_OF} {NTH} (?: in | on )* {WEEKDAY} )"
)
"""A weekday of a month: "the last Friday in May 2024", Japanese "10月の第2火曜日"."""

FEAST_OF_YEAR = "(?: feast (?: of | from | in | comma )? year | year (?: of | in | unit )? feast )"
"""A feast of a year: "Easter 2027", Chinese "2027年春节"."""


def day_and_month(day: str, of: str) -> str:
    """Return the form of a date that begins with its day: "the 3rd of May, 2027".

    `day` matches the number of a day, and `of` a word between the day and the month.
    """
    return (
        f"(?: {day} (?: day_sign | point )? (?: {of} )* month"
        f" (?: (?: {of} | comma )* year unit? )? )"
    )


def month_and_day(day: str, of: str) -> str:
    """Return the form of a date that begins with its month or year: "May 3, 2027".

    See `day_and_month` for the parameters.
    """
    return (
        f"(?: year? month (?: the )? {day} day_sign? (?: (?: {of} | comma )* year unit? )?"
        " | (?: year unit? )? number month_sign number day_sign )"
    )


def period_of_unit(unit: Unit, offset: int, today: date) -> tuple[date, date]:
    """Return the first and last day of a day, week, weekend, month or year.

    Its distance from the current one is `offset` units. If `offset` is negative, the period is in
    the past.
    """
    if unit is Unit.DAY:
        day = today + timedelta(days=offset)
        return day, day
    if unit in (Unit.WEEK, Unit.WEEKEND):
        monday = today + timedelta(days=7 * offset - today.weekday())
        first = monday + timedelta(days=5) if unit is Unit.WEEKEND else monday
        return first, monday + timedelta(days=6)
    if unit is Unit.MONTH:
        first = add_months(today.replace(day=1), offset)
        return first, add_months(first, 1) - timedelta(days=1)
    first = add_months(today.replace(day=1, month=1), 12 * offset)
    return first, add_months(first, 12) - timedelta(days=1)


class NthWeekday(NamedTuple):
    """A weekday of a month, such as the second Tuesday of May."""

    # Counted from 1. -1 means the last.
    nth: int
    # 0 means Monday. Several weekdays mean the nth working day, or the nth day of a weekend.
    weekdays: tuple[int, ...]
    month: int
    # 0 without a year.
    year: int = 0


class MonthDays(NamedTuple):
    """One or several days of a month."""

    days: tuple[int, ...]
    month: int
    # 0 without a year.
    year: int = 0


def list_weekdays(tokens: Sequence[Token]) -> tuple[int, ...]:
    """Return the weekdays that the tokens name, in order: 0 for Monday."""
    days: set[int] = set()
    for token in tokens:
        if token.kind in (Kind.WEEKDAY, Kind.WEEKDAYS, Kind.DAY_GROUP):
            number = int(token.number)
            days.update(WEEKDAY_GROUPS.get(number, (number,)))
    return tuple(sorted(days))


def read_nth_weekday(tokens: Sequence[Token]) -> NthWeekday | None:
    """Return the weekday of a month that the tokens of `NTH_WEEKDAY` name.

    Returns None if they name none.
    """
    month_index = _find_month(tokens)
    weekdays = list_weekdays(tokens)
    if month_index is None or not weekdays:
        return None
    for index, token in enumerate(tokens):
        if index == month_index or token.kind not in _COUNTERS:
            continue
        nth = LAST if token.kind is Kind.LAST else int(token.number)
        month = int(tokens[month_index].number)
        return NthWeekday(nth, weekdays, month, _find_year(tokens))
    return None


_COUNTERS = (Kind.ORDINAL, Kind.LAST, Kind.MONTH_DAY, Kind.OTHER_EVERY, Kind.NUMBER)


def read_month_days(tokens: Sequence[Token]) -> MonthDays | None:
    """Return the days that a date names: `day_and_month`, `month_and_day` or a list of days.

    Returns None if no month is named.
    """
    month_index = _find_month(tokens)
    if month_index is None:
        return None
    days = []
    for index, token in enumerate(tokens):
        if index != month_index and token.kind in _DAY_NUMBERS:
            days.append(1 if token.kind is Kind.ONE else int(token.number))
    month = int(tokens[month_index].number)
    return MonthDays(tuple(days), month, _find_year(tokens))


_DAY_NUMBERS = (Kind.NUMBER, Kind.MONTH_DAY, Kind.ORDINAL, Kind.ONE)


class FeastOfYear(NamedTuple):
    """A feast, and the year in which it is."""

    feast: Token
    year: int


def read_feast_of_year(tokens: Sequence[Token]) -> FeastOfYear | None:
    """Return the feast and the year that the tokens of `FEAST_OF_YEAR` name.

    Returns None if one of them is missing.
    """
    feasts = [token for token in tokens if token.kind is Kind.FEAST]
    year = _find_year(tokens)
    return FeastOfYear(feasts[0], year) if feasts and year else None


def _find_month(tokens: Sequence[Token]) -> int | None:
    """Return the index of the month's name, or of the number before its sign.

    Returns None if there is neither.
    """
    for index, token in enumerate(tokens):
        if token.kind is Kind.MONTH:
            return index
        if token.kind is Kind.MONTH_SIGN and index:
            return index - 1
    return None


def _find_year(tokens: Sequence[Token]) -> int:
    for token in tokens:
        if token.kind is Kind.YEAR:
            return int(token.number)
    return 0
