"""Find the periods that a sentence names, in many languages.

Examples are ``on May 8th``, ``early January``, ``the two weeks after 3 December``, ``summer 2024``
and ``昨天``. Search ranks messages from these periods higher.

`tokenizer` splits the sentence with the words of all languages, `period_tokens` settles what is
ambiguous, and rules over the kinds of tokens read all languages. A
date without a year recurs each year. `find_periods` guesses, so its results may change the order of
search results, but must never exclude any. A wrong period harms a search more than a missing one,
so the grammar is strict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from core.dates import forms
from core.dates.period_lexicon import load_period_words
from core.dates.period_tokens import settle_sentence, tokenize_name, tokenize_word
from core.dates.schedule import add_months, date_if_valid, nth_weekday
from core.dates.tokenizer import plain_sentence, tokenize
from core.dates.tokens import (
    Item,
    Kind,
    Match,
    Rules,
    Token,
    Unit,
    compile_grammar,
    kinds_of,
    read_items,
)
from core.text.normalize import comparison_form, language_data

MAX_PERIODS = 6
"""Only the first periods of a text are used."""
RECURRENCE_YEARS = 20
"""The occurrences of a recurring period are from this many years ago until next year."""

ONE_DAY = timedelta(days=1)
UNIT_DAYS = {Unit.DAY: 1, Unit.WEEKEND: 2, Unit.WEEK: 7, Unit.MONTH: 30, Unit.YEAR: 365}
ONE_YEAR = UNIT_DAYS[Unit.YEAR] * ONE_DAY
ANY_YEAR = 2000
"""The year of a date without one. It is a leap year, so 29 February is valid."""
MONTH_THIRDS = ((0, 10), (9, 20), (19, 31))
"""Early, mid and late: the index of the first day (0 is the 1st), and the index after the last day.

Early May is 1 to 10 May, mid May is 10 to 20 May, and late May is 20 to 31 May.
"""


class Period(NamedTuple):
    """The days from `first` to `last`, both inclusive."""

    first: date
    last: date
    # The period recurs after this many months. 0 means that it doesn't recur.
    every_months: int = 0


_JUST_ONE_PERIOD = compile_grammar(
    "[in on weekday comma]* = (?: [in on]* [to until] [in on]* = )? filler?"
)
"""Matches a text that is one period or one range, after "=" has replaced each period."""
_WEEKDAY_THEN_MONTH = compile_grammar(
    "(?<! [ordinal last month_day] ) weekday [in on comma]* month (?! [number month_day] )"
)
"""A weekday before a word that may not be a month, as in "since:monday may be late"."""
_RANGE = compile_grammar("[in on]* [to until] [in on]*")
"""The tokens between the two ends of a range: the "to" of "March to May"."""
_LIST = compile_grammar("[and comma]+ [in on]*")
"""The tokens between two periods of a list: the "and" of "May and June 2024"."""
# The bound before a period: the "since" of "since May".
_BOUND = compile_grammar(
    r"""
    (?: (?<! weekday ) [after before since]      # "the Friday before 3 May" is close to 3 May
        | (?<! [month date year number month_day weekday unit season relative] ) until )
    [in on]* $
    """
)
_MAX_BOUND_TOKENS = 9
"""A bound is searched for in this many tokens before a period."""


# --- Queries ---


def find_periods(text: str, today: date) -> tuple[tuple[int, int], ...]:
    """Return the periods that a text names, each as the ordinals of its first and last day.

    `today` is the day on which the text was written. A recurring period results in one period per
    occurrence, from `RECURRENCE_YEARS` years ago until next year.
    """
    occurrences: list[tuple[date, date]] = []
    if not _tokenize_sentence(text):
        return ()
    try:
        for period in _parse(_tokenize_sentence(text), today)[:MAX_PERIODS]:
            occurrences += _occurrences(period, today)
    except (OverflowError, ValueError):
        return ()  # before year 1 or after year 9999
    return tuple(
        (first.toordinal(), last.toordinal()) for first, last in dict.fromkeys(occurrences)
    )


@lru_cache(maxsize=16)
def _tokenize_sentence(text: str) -> Sequence[Token]:
    """Return the tokens of a sentence in any language, or none if they can't name a period."""
    tokens = tokenize(plain_sentence(text), load_period_words().words)
    if all(token.kind in WEAK_KINDS for token in tokens):
        return ()
    return settle_sentence(tokens)


WEAK_KINDS = frozenset(
    (Kind.OTHER, Kind.NUMBER_WORD, Kind.COMMA, Kind.IN, Kind.ON, Kind.AND, Kind.BY)
)
"""Kinds that name a period only next to others. Most messages have no other kinds."""


def parse_named_period(text: str, today: date) -> tuple[date, date] | None:
    """Return the first and last day of the period that a text names.

    A recurring period means its latest occurrence that has begun. Returns None if the text isn't
    exactly one period. Raises OverflowError or ValueError for days outside the years 1 to 9999.
    """
    for is_short_first in (False, True):
        tokens = tokenize_name(text, is_short_first=is_short_first)
        period = _parse_name(tokens, today)
        if period is not None:
            return period
    return None


def _parse_name(name: Sequence[Token], today: date) -> tuple[date, date] | None:
    """Return the first and last day of the only period in a name, or None."""
    # Some forms need a preposition, so "2024" alone is read like "in 2024".
    tokens = [Token(Kind.IN), *(token for token in name if token.kind != Kind.SINCE)]
    kinds = kinds_of(tokens)
    periods = _parse(tokens, today)
    if len(periods) != 1 or _WEEKDAY_THEN_MONTH.search(kinds):
        return None
    if not _JUST_ONE_PERIOD.fullmatch(_replace_items(tokens, kinds, today)):
        return None
    period = _latest_occurrence(periods[0], today)
    return period.first, period.last


def _replace_items(tokens: Sequence[Token], kinds: str, today: date) -> str:
    """Return the kinds of tokens with "=" in place of each period."""
    pieces = []
    end = 0
    for item in read_items(tokens, today, (PERIODS,)):
        pieces += [kinds[end : item.start], "="]
        end = item.end
    return "".join([*pieces, kinds[end:]])


def months_in(text: str) -> frozenset[int]:
    """Return the numbers of the months that a text names, except after "before" or "after"."""
    tokens = [Token(Kind.OTHER), *_tokenize_sentence(text)]
    months = set()
    for before, token in pairwise(tokens):
        if token.kind is Kind.MONTH and before.kind not in (Kind.AFTER, Kind.BEFORE):
            months.add(int(token.number))
    return frozenset(months)


def month_number(word: str, *, is_in_date: bool = False) -> int | None:
    """Return the number of the month that a word means in any language, or None.

    Abbreviations such as "jan" are recognised only in English. With `is_in_date`, so are words that
    are months only in a date, such as "mayo" and "mars".
    """
    form = comparison_form(word)
    english: int | None = language_data("period_words", "core.dates")["english_months"].get(form)
    if english is not None:
        return english
    tokens = tokenize_word(form)
    kinds = {Kind.MONTH, Kind.NAMELIKE_MONTH, Kind.VERBLIKE_MONTH}
    if is_in_date:
        kinds.add(Kind.SHORT_MONTH)
    if tokens and tokens[0].kind in kinds:
        return int(tokens[0].number)
    return None


# --- Recurrence ---


def _occurrences(period: Period, today: date) -> list[tuple[date, date]]:
    """Return the first and last day of each occurrence of a period, oldest first.

    A period that doesn't recur has one occurrence.
    """
    if not period.every_months:
        return [(period.first, period.last)]
    spans = []
    # The numbers of months from the period to its occurrences.
    this_year = (today.year - period.first.year) * 12
    earliest = this_year - RECURRENCE_YEARS * 12
    for months in range(earliest, this_year + 13, period.every_months):
        first = add_months(period.first, months)
        is_real = first.day == period.first.day  # 29 February exists in leap years only
        if is_real:
            spans.append((first, add_months(period.last, months)))
    return spans


def _latest_occurrence(period: Period, today: date) -> Period:
    """Return the latest occurrence that has begun.

    A period that doesn't recur is returned unchanged.
    """
    if not period.every_months:
        return period
    past = [span for span in _occurrences(period, today) if span[0] <= today]
    first, last = past[-1]
    return Period(first, last)


def _move_to_year(period: Period, year: int) -> Period:
    """Return the occurrence of a period in a year.

    A period that doesn't recur is returned unchanged.
    """
    months = (year - period.first.year) * 12 if period.every_months else 0
    return Period(add_months(period.first, months), add_months(period.last, months))


# --- Grammar ---


def _parse(tokens: Sequence[Token], today: date) -> list[Period]:
    """Return the periods that the tokens name, in the order of the text."""
    kinds = kinds_of(tokens)
    periods: list[Period] = []
    end = 0
    for item in read_items(tokens, today, (PERIODS,)):
        between = kinds[end : item.start]
        end = item.end
        if not item.parts:
            continue
        new = _bound_periods(item, kinds, today)
        if periods and _RANGE.fullmatch(between):
            new = _join_range(periods.pop(), new[0])
        has_year = Kind.YEAR in kinds[item.start : item.end] and not new[0].every_months
        if has_year and _LIST.fullmatch(between):
            # "May and June 2024": the year belongs to both.
            periods = [_move_to_year(period, new[0].last.year) for period in periods]
        periods += new
    return periods


def _bound_periods(item: Item[list[Period]], kinds: str, today: date) -> list[Period]:
    """Return the periods of an item. A bound before it ("since") applies to the first one."""
    start = max(0, item.start - _MAX_BOUND_TOKENS)
    bound = _BOUND.search(kinds, start, item.start)
    if bound is None:
        return item.parts
    return [_apply_bound(_latest_occurrence(item.parts[0], today), Kind(bound[0][0]), today)]


def _join_range(start: Period, end: Period) -> list[Period]:
    """Join the two ends of a range, such as "March" and "May 2024", into one period.

    If only one end has a year, the other end gets the same year. If the second end is earlier, the
    ends aren't a range, and both are returned.
    """
    if start.every_months != end.every_months:
        year = end.first.year if start.every_months else start.first.year
        start, end = _move_to_year(start, year), _move_to_year(end, year)
    if start.first > end.last:
        return [start, end]
    return [Period(start.first, end.last, start.every_months)]


def _apply_bound(period: Period, bound: Kind, today: date) -> Period:
    """Return the period that "before", "until", "after" or "since" a period means.

    "Before May" and "until May" begin one year before May. "After May" and "since May" end today.
    If the result would begin in the future, the period is returned unchanged.
    """
    if bound is Kind.BEFORE:
        return Period(period.first - ONE_YEAR, period.first - ONE_DAY)
    if bound is Kind.UNTIL:
        return Period(period.first - ONE_YEAR, period.last)

    start = period.last + ONE_DAY if bound is Kind.AFTER else period.first
    if start > today:
        return period
    return Period(start, today)


# --- Forms ---

_DAY = "[number month_day]"
_DAYS = f"(?: {_DAY} (?: [until to and] in? {_DAY} (?! month ) )? )"
_DISTANCE_BEFORE = """
    (?P<before>
        [number number_word]? unit [after before] in*           # two weeks after
        | unit in in? (?= [number month_day month year date] )  # the week of
    )?
"""
_DISTANCE_BEHIND = "(?P<behind> [after afterwards before] [number number_word] unit )?"

_Reader = Callable[[Sequence[Token], date], list[Period]]
PERIODS = Rules[date, list[Period]]()
"""The rules of periods. A rule returns no periods for a day that the calendar lacks."""


def _period(*patterns: str) -> Callable[[_Reader], _Reader]:
    """Return a decorator that adds a rule for the tokens of these patterns.

    A distance before or behind them ("two weeks after") applies to the first period.
    """

    def register(read: _Reader) -> _Reader:
        def build(match: Match, today: date) -> list[Period]:
            periods = read(match.all("form"), today)
            distance = match.all("before") or match.all("behind")
            return [_shift(periods[0], distance)] if periods and distance else periods

        form = " | ".join(patterns)
        PERIODS.add(f"{_DISTANCE_BEFORE} (?P<form> {form} ) {_DISTANCE_BEHIND}")(build)
        return read

    return register


def _shift(period: Period, tokens: Sequence[Token]) -> Period:
    """Apply a distance such as "two weeks after" or "the week of" to a period.

    "After" and "before" extend the period. "The week of" a day begins three days before the day and
    ends three days after it.
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


def _find(tokens: Sequence[Token], *kinds: Kind) -> Token | None:
    """Return the first token that has one of the kinds, or None."""
    return next((token for token in tokens if token.kind in kinds), None)


def _numbers(tokens: Sequence[Token], *kinds: Kind) -> list[int]:
    return [int(token.number) for token in tokens if token.kind in kinds]


def _unit_of(tokens: Sequence[Token]) -> Unit:
    token = _find(tokens, Kind.UNIT)
    if token is None or token.unit is None:
        raise ValueError("no unit")
    return token.unit


class _MonthOfYear(NamedTuple):
    """The month and year that some tokens name. The defaults are January and `ANY_YEAR`."""

    year: int
    month: int
    has_year: bool

    @property
    def every_months(self) -> int:
        """The number of months after which the date recurs: 12, or 0 (never) with a year."""
        return 0 if self.has_year else 12


def _month_of_year(tokens: Sequence[Token]) -> _MonthOfYear:
    years = _numbers(tokens, Kind.YEAR)
    months = _numbers(tokens, Kind.MONTH)
    year = years[0] if years else ANY_YEAR
    month = months[0] if months else 1
    return _MonthOfYear(year, month, has_year=bool(years))


@_period(forms.NTH_WEEKDAY)
def _read_nth_weekday(tokens: Sequence[Token], today: date) -> list[Period]:
    """Read a weekday of a month: ``the second Tuesday of October``, ``last Friday in May 2024``.

    Without a year, it's the latest such day up to today. Returns no periods if there is none.
    """
    form = forms.read_nth_weekday(tokens)
    if form is None:
        return []
    for year in [form.year] if form.year else [today.year, today.year - 1]:
        day = nth_weekday(date(year, form.month, 1), form.nth, form.weekdays)
        if day is not None and (form.year or day <= today):
            return [Period(day, day)]
    return []


@_period(
    """
    (?: [ordinal last month_day] [to and] )? [ordinal last month_day] unit in in?
        (?: month (?: [in comma]* year )? | year )      # the first week of May
    """,
    "month ordinal unit",
)
def _read_week(tokens: Sequence[Token], today: date) -> list[Period]:
    """Read a week or day of a month or year: ``the first week of May``, ``the last day of 2024``.

    Weeks are counted from the first of the month or year: the first week of May is 1 to 7 May.
    """
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
        is_last = token.kind is Kind.LAST or token.number == forms.LAST
        begin = end - length if is_last else first + (token.number - 1) * length
        periods.append(Period(begin, begin + length - ONE_DAY, month.every_months))
    return periods


@_period(
    "date",
    f"(?: [number month_day] [until to and] [on in]* )? {forms.day_and_month(_DAY, 'in')}",
    forms.month_and_day(_DAYS, "in"),
    "(?<= on ) month_day (?= [comma and to between after in before on until since] | $ )",
)
def _read_day(tokens: Sequence[Token], today: date) -> list[Period]:
    """Read a day or several: ``3 May``, ``3 to 5 May 2024``, ``3 and 5 May``, ``the 5th``.

    Returns no periods if the calendar has no such day.
    """
    if tokens[0].kind is Kind.DATE:
        return _read_date(tokens[0].date, is_dotted=tokens[0].number == 1)
    form = forms.read_month_days(tokens)
    if form is None:
        day = date_if_valid(ANY_YEAR, 1, int(tokens[0].number))
        return [Period(day, day, every_months=1)] if day else []  # "on the 5th"
    dates = [date_if_valid(form.year or ANY_YEAR, form.month, day) for day in form.days]
    days = [day for day in dates if day is not None]
    if not days:
        return []
    every_months = 0 if form.year else 12
    if _find(tokens, Kind.AND):
        return [Period(day, day, every_months) for day in days]
    return [Period(days[0], max(days), every_months)]


def _read_date(parts: tuple[int, ...], *, is_dotted: bool) -> list[Period]:
    """Return the period of a date in digits: (2024, 5) is a month, (1, 5, 2024) is a day.

    (24, 12) is a day of any year. If the date is invalid, the day and month are swapped, so
    (5, 13, 2024) is 13 May. In "5.13.", they aren't swapped. Returns an empty list if the date is
    invalid.
    """
    if len(parts) == 2 and parts[0] <= forms.MAX_MONTH_DAY:
        number, month = parts
        day = date_if_valid(ANY_YEAR, month, number)
        if day is None and not is_dotted:
            day = date_if_valid(ANY_YEAR, number, month)
        return [Period(day, day, every_months=12)] if day else []
    if len(parts) == 2:
        year, month = parts
        first = date(year, month, 1)
        return [Period(first, add_months(first, 1) - ONE_DAY)]
    is_year_first = parts[0] > forms.MAX_MONTH_DAY
    year, month, number = parts if is_year_first else parts[::-1]
    day = date_if_valid(year, month, number) or date_if_valid(year, number, month)
    return [Period(day, day)] if day else []


@_period(
    """
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
    """
)
def _read_relative(tokens: Sequence[Token], today: date) -> list[Period]:
    """Read a time relative to today: ``yesterday``, ``last week``, ``3 days ago``, ``last May``."""
    relative = _find(tokens, Kind.RELATIVE)
    if relative is not None and relative.unit is not None:
        return [_narrow(_unit_period(relative.unit, int(relative.number), today), tokens)]
    days_ago = _find(tokens, Kind.MONTH_DAY)
    if days_ago is not None:
        # Chinese and Japanese write "3 days ago" with the sign for the day of a month: "3日前".
        return [_unit_period(Unit.DAY, -int(days_ago.number), today)]
    if _find(tokens, Kind.UNIT):
        return _read_relative_unit(tokens, today)
    direction = _direction(tokens)
    weekday = _find(tokens, Kind.WEEKDAY)
    if weekday is not None:
        return [_relative_weekday(int(weekday.number), direction, tokens, today)]
    read_name = _read_season if _find(tokens, Kind.SEASON) else _read_month
    return [_relative_name(read_name(tokens, today)[0], direction, today)]


def _direction(tokens: Sequence[Token]) -> int:
    """Return 1 for "next", 0 for "this", and -1 for all other words ("last", "ago")."""
    if _find(tokens, Kind.NEXT):
        return 1
    return 0 if _find(tokens, Kind.THIS) else -1


def _read_relative_unit(tokens: Sequence[Token], today: date) -> list[Period]:
    """Read a time with a unit: ``last week``, ``the last 3 days``, ``last year in May``."""
    unit = _unit_of(tokens)
    direction = _direction(tokens)
    number = _find(tokens, Kind.NUMBER, Kind.NUMBER_WORD)
    if number is None:
        if unit is Unit.DAY and direction != 0:
            return []  # "the last day" alone doesn't say of which period.
        return [_narrow(_unit_period(unit, direction, today), tokens)]
    if _find(tokens, Kind.LAST):
        return [Period(_unit_period(unit, -int(number.number), today).first, today)]
    return [_narrow(_unit_period(unit, direction * int(number.number), today), tokens)]


def _relative_weekday(weekday: int, direction: int, tokens: Sequence[Token], today: date) -> Period:
    """Return the day that a weekday (0 for Monday) means.

    "On Friday" is today or the latest Friday before today. "Last Friday" is never today.
    """
    days_back = (today.weekday() - weekday) % 7
    if days_back == 0 and _find(tokens, Kind.LAST):
        days_back = 7
    offset = 7 - days_back if direction > 0 else -days_back
    return _unit_period(Unit.DAY, offset, today)


def _relative_name(period: Period, direction: int, today: date) -> Period:
    """Return the last, present or next occurrence of a month or season, such as "last May".

    `direction` is the result of `_direction`. Raises ValueError if no year fits.
    """
    # Take the first year that fits: "last May" is in this year if that May is over, or else in the
    # previous one. A winter begins in the previous year, so two years back may be needed.
    for step in (0, 1, -1, -2):
        occurrence = _move_to_year(period, today.year + step)
        if direction > 0 and occurrence.first <= today:
            continue
        if direction < 0 and occurrence.last >= today:
            continue
        return occurrence
    raise ValueError(f"{period} has no occurrence near {today}")


def _narrow(period: Period, tokens: Sequence[Token]) -> Period:
    """Narrow a period to the weekday, month or season that is named with it.

    For example, "last week on Friday" becomes that Friday, and a year becomes its May or summer.
    Without such a token, the period is returned unchanged.
    """
    # `length` is one day less than the number of days.
    length = period.last - period.first
    weekday = _find(tokens, Kind.WEEKDAY)
    if weekday is not None and length == 6 * ONE_DAY:
        day = period.first + weekday.number * ONE_DAY
        return Period(day, day)
    if length <= 31 * ONE_DAY:
        return period
    month = _find(tokens, Kind.MONTH)
    if month is not None:
        return _move_to_year(_read_month([month], period.first)[0], period.first.year)
    season = _find(tokens, Kind.SEASON)
    if season is not None:
        return _move_to_year(_read_season([season], period.first)[0], period.first.year)
    return period


def _unit_period(unit: Unit, offset: int, today: date) -> Period:
    """Return the day, week, weekend, month or year `offset` units after the current one."""
    return Period(*forms.period_of_unit(unit, offset, today))


@_period(
    forms.FEAST_OF_YEAR,
    "[last next] feast | feast [last next]",  # last Christmas
    """
    (?<= [on in since until] ) feast
        (?= [comma and to between after in before on until since] | $ )
    """,
)
def _read_feast(tokens: Sequence[Token], today: date) -> list[Period]:
    """Read a feast: ``on Christmas Eve``, ``Easter 2024``, ``last Christmas``.

    Without a year, a feast means its latest day, or the next one if it hasn't occurred yet.
    """
    from core.dates.requests.feasts import feast_in_year

    form = forms.read_feast_of_year(tokens)
    if form is not None:
        day = feast_in_year(form.feast, form.year)
        return [Period(day, day)] if day else []
    years = [today.year, today.year - 1, today.year + 1]
    feast = next(token for token in tokens if token.kind is Kind.FEAST)
    days = list(filter(None, (feast_in_year(feast, year) for year in years)))
    future_days = sorted(day for day in days if day > today)
    past_days = [day for day in days if day <= today]
    if any(token.kind is Kind.NEXT for token in tokens):
        candidates = future_days
    else:
        candidates = past_days or days
    return [Period(candidates[0], candidates[0])] if candidates else []


@_period(
    """
    (?: third (?: [to and] + third )? in? )? (?: year in? )? month (?: in? third )?
        (?: [in comma]* year )?                         # early May 2024
    """
)
def _read_month(tokens: Sequence[Token], today: date) -> list[Period]:
    """Read a month or part of it: ``May``, ``May 2024``, ``early May``, ``mid to late May``."""
    month = _month_of_year(tokens)
    first = date(month.year, month.month, 1)
    next_month = add_months(first, 1)
    parts = sorted(_numbers(tokens, Kind.THIRD))
    if not parts:
        return [Period(first, next_month - ONE_DAY, month.every_months)]
    begin, _ = MONTH_THIRDS[parts[0]]
    _, end = MONTH_THIRDS[parts[-1]]
    after = min(first + end * ONE_DAY, next_month)
    return [Period(first + begin * ONE_DAY, after - ONE_DAY, month.every_months)]


@_period(
    "(?<= [in last next this between since] ) third? season in? year?",
    "third season | season in? year | year in? season",
)
def _read_season(tokens: Sequence[Token], today: date) -> list[Period]:
    """Read a season: ``summer``, ``summer 2024``.

    Without a year, the period recurs every twelve months and has the year `ANY_YEAR`. A winter
    begins in December, so "winter 2024" results in two periods: the winter that ends in 2024 and
    the one that begins in 2024.
    """
    month = _month_of_year(tokens)
    season = _numbers(tokens, Kind.SEASON)[0]
    if season != 0:
        firsts = [date(month.year, 3 * season, 1)]
    else:
        firsts = [date(month.year - 1, 12, 1)]
        if month.has_year:
            firsts.append(date(month.year, 12, 1))
    return [Period(first, add_months(first, 3) - ONE_DAY, month.every_months) for first in firsts]


@_period(
    """
    third in? year
    | (?<= [in after before until since] ) year
    | (?<= [in after before until since] unit ) year
    """
)
def _read_year(tokens: Sequence[Token], today: date) -> list[Period]:
    """Read a year or its beginning: ``in 2024``, ``early 2024`` (the first four months)."""
    first = date(int(tokens[-1].number), 1, 1)
    if tokens[0].kind is Kind.THIRD:
        first = add_months(first, 4 * int(tokens[0].number))
        return [Period(first, add_months(first, 4) - ONE_DAY)]
    return [Period(first, add_months(first, 12) - ONE_DAY)]
