"""Finds the periods that a sentence names, in many languages: ``on May 8th``, ``early January``,
``the two weeks after 3 December``, ``summer 2024``, ``昨天``. Recall prefers messages of these
times.

`tokens` splits the sentence, and one grammar over the kinds of tokens reads all languages. A date
without a year recurs each year. The results of `find_periods` are guesses: callers rank by them,
but never filter by them. A wrong period costs recall more than a missed one, so the grammar is
strict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import NamedTuple

from core.dates.cursor import word_tables
from core.dates.schedule import add_months, date_if_valid
from core.dates.tokens import (
    Kind,
    Token,
    Unit,
    compile_grammar,
    kinds_of,
    tokenize,
    tokenize_word,
)
from core.text.normalize import comparison_form

MAX_PERIODS = 6
"""Further periods of a text are ignored."""
RECURRENCE_YEARS = 20
"""How far back a recurring period is repeated."""

ONE_DAY = timedelta(days=1)
UNIT_DAYS = {Unit.DAY: 1, Unit.WEEKEND: 2, Unit.WEEK: 7, Unit.MONTH: 30, Unit.YEAR: 365}
ONE_YEAR = UNIT_DAYS[Unit.YEAR] * ONE_DAY
ANY_YEAR = 2000
"""Stands for the year of a recurring date. It is a leap year, so it has a 29 February."""
MONTH_THIRDS = ((0, 10), (9, 20), (19, 31))
"""Early, mid and late: the first day of the month, counted from 0, and the day after the last."""
LAST_ORDINAL = 5


class Period(NamedTuple):
    """The days from `first` to `last`, both included."""

    first: date
    last: date
    # The number of months after which the period recurs; 0 if it doesn't recur.
    every_months: int = 0


_FORMS = compile_grammar(
    r"""
    (?P<before>
        [number number_word]? unit [after before] in*           # two weeks after
        | unit in in? (?= [number month_day month year date] )  # the week of
    )?
    (?:
        (?P<week>
            (?: [ordinal last month_day] [to and] )? [ordinal last month_day] unit in in?
                (?: month (?: [in comma]* year )? | year )      # the first week of May
            | month ordinal unit
        )
        | (?P<day>
            date
            | [number month_day] (?: [until to and] [on in]* [number month_day] )?
                in? month (?: [in comma]* year )?               # 3 to 5 May 2024
            | year? month [number month_day]
                (?: [until to and] in? [number month_day] (?! month ) )?
                (?: [in comma]* year )?                         # May 3, 2024
            | (?<= on ) month_day
                (?= [comma and to between after in before on until since] | $ )
        )
        | (?P<relative>
            (?: relative | [last next this] unit | unit [last next this] ) in*
                [month season weekday] (?! [last next this] )   # last week on Friday
            | [month season weekday] in? (?: relative | [last next this] unit
                | unit [last next this] )
            | [last next this] [number number_word]? unit       # the last 3 days
            | [number number_word]? unit [last next this]
            | [number number_word] (?: unit ago | ago unit )    # 2 weeks ago
            | month_day ago
            | before [number number_word] unit                  # German "vor 2 Wochen"
            | [last next this] (?: month | in? [weekday season] )
            | [weekday month season] [last next this]
            | relative
            | (?<= [on in unit after before until since] ) (?<! [every to] [on in] ) weekday
                (?! [last next every] | [to until] [on in]* weekday
                    | [comma on in]* [month_day number month date] )
        )
        | (?P<month>
            (?: part (?: [to and] + part )? in? )? (?: year in? )? month (?: in? part )?
                (?: [in comma]* year )?                         # early May 2024
        )
        | (?P<season>
            (?<= [in last next this between since] ) part? season in? year?
            | part season | season in? year | year in? season
        )
        | (?P<year>
            part in? year
            | (?<= [in after before until since] ) year
            | (?<= [in after before until since] unit ) year
        )
    )
    (?P<behind> [after afterwards before] [number number_word] unit )?
    """
)
_JUST_ONE_PERIOD = compile_grammar("[in on weekday comma]* = (?: [in on]* [to until] [in on]* = )?")
"""Matches the name of a period after "=" has replaced each match of `_FORMS`."""
_WEEKDAY_THEN_MONTH = compile_grammar("weekday [in on comma]* month (?! [number month_day] )")
"""Matches a weekday before a word that may not be a month, as in "since:monday may be late"."""
_RANGE = compile_grammar("[in on]* [to until] [in on]*")
_LIST = compile_grammar("[and comma]+ [in on]*")
_BOUND = compile_grammar(
    r"""
    (?: (?<! weekday ) [after before since]      # "the Friday before 3 May" is close to 3 May
        | (?<! [month date year number month_day weekday unit season relative] ) until )
    [in on]* $
    """
)
_MAX_BOUND_TOKENS = 9


# --- Queries ---


def find_periods(text: str, today: date) -> tuple[tuple[int, int], ...]:
    """The periods that a text written `today` names, as ordinals of their first and last days.

    A recurring period gives its occurrences from `RECURRENCE_YEARS` years ago until next year.
    """
    try:
        periods = _parse(tokenize(text), today)[:MAX_PERIODS]
        spans = [span for period in periods for span in _occurrences(period, today)]
    except (OverflowError, ValueError):
        return ()  # before year 1 or after year 9999
    return tuple((first.toordinal(), last.toordinal()) for first, last in dict.fromkeys(spans))


def parse_named_period(text: str, today: date) -> tuple[date, date] | None:
    """The first and last day of the period that a text names, or None if it says more than that.

    A recurring period gives the occurrence that began last. Raises OverflowError or ValueError for
    days outside of the years 1 to 9999.
    """
    name = [token for token in tokenize(text, is_period_name=True) if token.kind != Kind.SINCE]
    tokens = [Token(Kind.IN), *name]
    kinds = kinds_of(tokens)
    periods = _parse(tokens, today)
    if len(periods) != 1 or _WEEKDAY_THEN_MONTH.search(kinds):
        return None
    if not _JUST_ONE_PERIOD.fullmatch(_FORMS.sub("=", kinds)):
        return None
    period = _latest_occurrence(periods[0], today)
    return period.first, period.last


def months_in(text: str) -> frozenset[int]:
    """The months (1 for January) that a text names, except after the words "before" and "after"."""
    tokens = [Token(Kind.OTHER), *tokenize(text)]
    months = set()
    for before, token in pairwise(tokens):
        if token.kind is Kind.MONTH and before.kind not in (Kind.AFTER, Kind.BEFORE):
            months.add(token.number)
    return frozenset(months)


def month_number(word: str) -> int | None:
    """The month (1 for January) that a word names in any of the languages, or None.

    Only English months may be shortened.
    """
    form = comparison_form(word)
    english: int | None = word_tables()["months"].get(form)
    if english is not None:
        return english
    if form[:1].isdecimal():
        return None
    tokens = tokenize_word(form)
    if tokens and tokens[0].kind in (Kind.MONTH, Kind.NAMELIKE_MONTH, Kind.VERBLIKE_MONTH):
        return tokens[0].number
    return None


# --- Recurrence ---


def _occurrences(period: Period, today: date) -> list[tuple[date, date]]:
    """The first and last day of each occurrence, the oldest first."""
    if not period.every_months:
        return [(period.first, period.last)]
    spans = []
    this_year = (today.year - period.first.year) * 12
    earliest = this_year - RECURRENCE_YEARS * 12
    for months in range(earliest, this_year + 13, period.every_months):
        first = add_months(period.first, months)
        is_real = first.day == period.first.day  # 29 February exists in leap years only
        if is_real:
            spans.append((first, add_months(period.last, months)))
    return spans


def _latest_occurrence(period: Period, today: date) -> Period:
    """The occurrence that began last. A period that doesn't recur is returned unchanged."""
    if not period.every_months:
        return period
    past = [span for span in _occurrences(period, today) if span[0] <= today]
    first, last = past[-1]
    return Period(first, last)


def _move_to_year(period: Period, year: int) -> Period:
    """The occurrence in this year. A period that doesn't recur is returned unchanged."""
    months = (year - period.first.year) * 12 if period.every_months else 0
    return Period(add_months(period.first, months), add_months(period.last, months))


# --- Grammar ---


def _parse(tokens: Sequence[Token], today: date) -> list[Period]:
    """All periods that the tokens name, in order."""
    kinds = kinds_of(tokens)
    periods: list[Period] = []
    end = 0
    for match in _FORMS.finditer(kinds):
        between = kinds[end : match.start()]
        end = match.end()
        new = _read_form(match, tokens, today)
        if not new:
            continue
        if periods and _RANGE.fullmatch(between):
            new = _join_range(periods.pop(), new[0])
        has_year = Kind.YEAR in match[0] and not new[0].every_months
        if has_year and _LIST.fullmatch(between):
            # "May and June 2024": the year belongs to both.
            periods = [_move_to_year(period, new[0].last.year) for period in periods]
        periods += new
    return periods


def _read_form(match: re.Match[str], tokens: Sequence[Token], today: date) -> list[Period]:
    """The periods that one match of `_FORMS` names, changed by the words around them."""
    form = next(name for name in _READERS if match[name])
    periods = _READERS[form](tokens[slice(*match.span(form))], today)
    if not periods:
        return []
    distance = "before" if match["before"] else "behind"
    if match[distance]:
        periods = [_shift(periods[0], tokens[slice(*match.span(distance))])]
    start = max(0, match.start() - _MAX_BOUND_TOKENS)
    if match_before := _BOUND.search(match.string, start, match.start()):
        kind = Kind(match.string[match_before.start()])
        periods = [_open_period(_latest_occurrence(periods[0], today), kind, today)]
    return periods


def _join_range(start: Period, end: Period) -> list[Period]:
    """Join "March" and "May 2024" into one period, in the year that either of them names.

    If the second period ends before the first one begins, both are returned.
    """
    if start.every_months != end.every_months:
        year = end.first.year if start.every_months else start.first.year
        start, end = _move_to_year(start, year), _move_to_year(end, year)
    if start.first > end.last:
        return [start, end]
    return [Period(start.first, end.last, start.every_months)]


def _open_period(period: Period, bound: Kind, today: date) -> Period:
    """Turn "before May", "until May", "after May" or "since May" into a closed period.

    An open past reaches back one year; an open future ends today. A period that would begin in the
    future is returned unchanged.
    """
    if bound is Kind.BEFORE:
        return Period(period.first - ONE_YEAR, period.first - ONE_DAY)
    if bound is Kind.UNTIL:
        return Period(period.first - ONE_YEAR, period.last)

    start = period.last + ONE_DAY if bound is Kind.AFTER else period.first
    if start > today:
        return period
    return Period(start, today)


def _shift(period: Period, tokens: Sequence[Token]) -> Period:
    """Apply "two weeks after", "two weeks before" or "the week of" to a period.

    "After" and "before" extend the period. "The week of" a day is the day with the three days
    before and after it.
    """
    unit = _unit_of(tokens)
    after = _find(tokens, Kind.AFTER, Kind.AFTERWARDS)
    before = _find(tokens, Kind.BEFORE)
    if not after and not before:
        is_week_of_day = unit is Unit.WEEK and period.first == period.last
        around = 3 * ONE_DAY if is_week_of_day else timedelta()
        return period._replace(first=period.first - around, last=period.last + around)

    numbers = _numbers(tokens, Kind.NUMBER, Kind.NUMBER_WORD)
    length = UNIT_DAYS[unit] * (numbers[0] if numbers else 1) * ONE_DAY
    if after:
        return period._replace(last=period.last + length)
    return period._replace(first=period.first - length)


# --- Forms ---


def _find(tokens: Sequence[Token], *kinds: Kind) -> Token | None:
    """The first token that has one of the given kinds."""
    return next((token for token in tokens if token.kind in kinds), None)


def _numbers(tokens: Sequence[Token], *kinds: Kind) -> list[int]:
    return [token.number for token in tokens if token.kind in kinds]


def _unit_of(tokens: Sequence[Token]) -> Unit:
    token = _find(tokens, Kind.UNIT)
    if token is None or token.unit is None:
        raise ValueError("no unit")
    return token.unit


class _MonthOfYear(NamedTuple):
    """The month and year that a form names. January and `ANY_YEAR` stand for missing ones."""

    year: int
    month: int
    has_year: bool

    @property
    def every_months(self) -> int:
        """How often it recurs: each year, unless a year is named."""
        return 0 if self.has_year else 12


def _month_of_year(tokens: Sequence[Token]) -> _MonthOfYear:
    years = _numbers(tokens, Kind.YEAR)
    months = _numbers(tokens, Kind.MONTH)
    year = years[0] if years else ANY_YEAR
    month = months[0] if months else 1
    return _MonthOfYear(year, month, has_year=bool(years))


def _read_day(tokens: Sequence[Token], today: date) -> list[Period]:
    """``3 May``, ``3 to 5 May 2024``, ``3 and 5 May``, ``the 5th``, ``1.5.2024``, ``2024-05``."""
    if tokens[0].kind is Kind.DATE:
        return _read_date(tokens[0].date)
    month = _month_of_year(tokens)
    days = []
    for number in _numbers(tokens, Kind.NUMBER, Kind.MONTH_DAY):
        day = date_if_valid(month.year, month.month, number)
        if day is not None:
            days.append(day)
    if not days:
        return []
    if len(tokens) == 1:
        return [Period(days[0], days[0], every_months=1)]  # "on the 5th"
    if _find(tokens, Kind.AND):
        return [Period(day, day, month.every_months) for day in days]
    return [Period(days[0], max(days), month.every_months)]


def _read_date(parts: tuple[int, ...]) -> list[Period]:
    """A date in figures. If the calendar has no such date, the day and month are swapped."""
    if len(parts) == 2:
        year, month = parts
        first = date(year, month, 1)
        return [Period(first, add_months(first, 1) - ONE_DAY)]
    year, month, number = parts
    day = date_if_valid(year, month, number) or date_if_valid(year, number, month)
    return [Period(day, day)] if day else []


def _read_month(tokens: Sequence[Token], today: date) -> list[Period]:
    """``May``, ``May 2024``, ``early May``, ``mid to late May``."""
    month = _month_of_year(tokens)
    first = date(month.year, month.month, 1)
    next_month = add_months(first, 1)
    parts = sorted(_numbers(tokens, Kind.PART))
    if not parts:
        return [Period(first, next_month - ONE_DAY, month.every_months)]
    begin, _ = MONTH_THIRDS[parts[0]]
    _, end = MONTH_THIRDS[parts[-1]]
    after = min(first + end * ONE_DAY, next_month)
    return [Period(first + begin * ONE_DAY, after - ONE_DAY, month.every_months)]


def _read_week(tokens: Sequence[Token], today: date) -> list[Period]:
    """``the first week of May``, ``the last two days of 2024``, ``the second or third week``."""
    month = _month_of_year(tokens)
    unit = _unit_of(tokens)
    if unit is Unit.YEAR and not month.has_year:
        return _read_relative(tokens, today)  # "last year in May"
    first = date(month.year, month.month, 1)
    end = add_months(first, 1 if _find(tokens, Kind.MONTH) else 12)
    if unit in (Unit.MONTH, Unit.YEAR):
        return [Period(first, end - ONE_DAY, month.every_months)]

    length = ONE_DAY if unit is Unit.DAY else 7 * ONE_DAY
    periods = []
    for token in tokens:
        if token.kind not in (Kind.ORDINAL, Kind.LAST, Kind.MONTH_DAY):
            continue
        is_last = token.kind is Kind.LAST or token.number == LAST_ORDINAL
        begin = end - length if is_last else first + (token.number - 1) * length
        periods.append(Period(begin, begin + length - ONE_DAY, month.every_months))
    return periods


def _read_season(tokens: Sequence[Token], today: date) -> list[Period]:
    """``summer``, ``summer 2024``. The winter of 2024 is the one that begins or ends that year."""
    month = _month_of_year(tokens)
    season = _numbers(tokens, Kind.SEASON)[0]
    if season != 0:
        firsts = [date(month.year, 3 * season, 1)]
    else:
        firsts = [date(month.year - 1, 12, 1)]
        if month.has_year:
            firsts.append(date(month.year, 12, 1))
    return [Period(first, add_months(first, 3) - ONE_DAY, month.every_months) for first in firsts]


def _read_year(tokens: Sequence[Token], today: date) -> list[Period]:
    """``in 2024``, ``early 2024`` (four months)."""
    first = date(tokens[-1].number, 1, 1)
    if tokens[0].kind is Kind.PART:
        first = add_months(first, 4 * tokens[0].number)
        return [Period(first, add_months(first, 4) - ONE_DAY)]
    return [Period(first, add_months(first, 12) - ONE_DAY)]


def _read_relative(tokens: Sequence[Token], today: date) -> list[Period]:
    """``yesterday``, ``last week``, ``3 days ago``, ``next Friday``, ``last May``."""
    relative = _find(tokens, Kind.RELATIVE)
    if relative is not None and relative.unit is not None:
        return [_narrow(_unit_period(relative.unit, relative.number, today), tokens)]
    days_ago = _find(tokens, Kind.MONTH_DAY)
    if days_ago is not None:
        # Chinese and Japanese count days with the sign for the day of a month.
        return [_unit_period(Unit.DAY, -days_ago.number, today)]
    if _find(tokens, Kind.UNIT):
        return _read_relative_unit(tokens, today)
    direction = _direction(tokens)
    weekday = _find(tokens, Kind.WEEKDAY)
    if weekday is not None:
        return [_relative_weekday(weekday.number, direction, tokens, today)]
    read_name = _read_season if _find(tokens, Kind.SEASON) else _read_month
    return [_relative_name(read_name(tokens, today)[0], direction, today)]


def _direction(tokens: Sequence[Token]) -> int:
    """1 for "next", 0 for "this", and -1 for "last" or "ago"."""
    if _find(tokens, Kind.NEXT):
        return 1
    return 0 if _find(tokens, Kind.THIS) else -1


def _read_relative_unit(tokens: Sequence[Token], today: date) -> list[Period]:
    """``last week``, ``the last 3 days``, ``2 weeks ago``, ``last year in May``."""
    unit = _unit_of(tokens)
    direction = _direction(tokens)
    number = _find(tokens, Kind.NUMBER, Kind.NUMBER_WORD)
    if number is None:
        if unit is Unit.DAY and direction != 0:
            return []  # the last day of something
        return [_narrow(_unit_period(unit, direction, today), tokens)]
    if _find(tokens, Kind.LAST):
        return [Period(_unit_period(unit, -number.number, today).first, today)]
    return [_narrow(_unit_period(unit, direction * number.number, today), tokens)]


def _relative_weekday(weekday: int, direction: int, tokens: Sequence[Token], today: date) -> Period:
    """``on Friday`` is today or the Friday before; ``last Friday`` is never today."""
    days_back = (today.weekday() - weekday) % 7
    if days_back == 0 and _find(tokens, Kind.LAST):
        days_back = 7
    offset = 7 - days_back if direction > 0 else -days_back
    return _unit_period(Unit.DAY, offset, today)


def _relative_name(period: Period, direction: int, today: date) -> Period:
    """The last, this or the next month or season of a name."""
    for step in (0, 1, -1, -2):
        occurrence = _move_to_year(period, today.year + step)
        if direction > 0 and occurrence.first <= today:
            continue
        if direction < 0 and occurrence.last >= today:
            continue
        return occurrence
    raise ValueError(f"{period} has no occurrence near {today}")


def _narrow(period: Period, tokens: Sequence[Token]) -> Period:
    """The Friday of a week, the May or the summer of a year, if one of them is named too."""
    length = period.last - period.first
    weekday = _find(tokens, Kind.WEEKDAY)
    if weekday is not None and length == 6 * ONE_DAY:
        day = period.first + weekday.number * ONE_DAY
        return Period(day, day)
    if length <= 31 * ONE_DAY:
        return period
    if month := _find(tokens, Kind.MONTH):
        return _move_to_year(_read_month([month], period.first)[0], period.first.year)
    if season := _find(tokens, Kind.SEASON):
        return _move_to_year(_read_season([season], period.first)[0], period.first.year)
    return period


def _unit_period(unit: Unit, offset: int, today: date) -> Period:
    """The day, week, weekend, month or year that is `offset` units after the present one."""
    if unit is Unit.DAY:
        day = today + offset * ONE_DAY
        return Period(day, day)
    if unit in (Unit.WEEK, Unit.WEEKEND):
        monday = today + (7 * offset - today.weekday()) * ONE_DAY
        first = monday + 5 * ONE_DAY if unit is Unit.WEEKEND else monday
        return Period(first, monday + 6 * ONE_DAY)
    if unit is Unit.MONTH:
        first = add_months(today.replace(day=1), offset)
        return Period(first, add_months(first, 1) - ONE_DAY)
    first = add_months(today.replace(day=1, month=1), 12 * offset)
    return Period(first, add_months(first, 12) - ONE_DAY)


_READERS: Mapping[str, Callable[[Sequence[Token], date], list[Period]]] = {
    "week": _read_week,
    "day": _read_day,
    "relative": _read_relative,
    "month": _read_month,
    "season": _read_season,
    "year": _read_year,
}
