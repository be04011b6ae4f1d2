"""Rules for recurrences: "every other day", "the 2nd Tuesday of the month", "twice a day"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from core.dates import forms
from core.dates.requests.clocks import clock_parts
from core.dates.requests.days import MONTH_DAY, WEEKEND, date_parts, feast_parts
from core.dates.requests.grammar import (
    ON,
    QUARTER_MONTHS,
    SPAN,
    UNIT,
    WHEN,
    Context,
    RequestRules,
    add_unit,
    read_span,
)
from core.dates.requests.parts import Assumption, Problem, Repeat, Span, TimeParts
from core.dates.schedule import add_months, nth_weekday
from core.dates.tokens import Kind, Match, Token, Unit

RULES = RequestRules()

_NTH = "(?: ordinal | month_day | other_every | number point )"
_NTHS = f"{_NTH} (?: (?: comma | and | the | on | day_prefix )* {_NTH} )*"
_DAY = forms.WEEKDAY
_SEPARATOR = "(?: comma | and | every | on | the | at | day_prefix | filler )*"
_WEEKDAY_LIST = f"weekday (?: {_SEPARATOR} {ON} weekday )*"


_RANGE_KINDS = (Kind.TO, Kind.UNTIL, Kind.AT, Kind.START_AFTER)


def _list_weekdays(tokens: Sequence[Token]) -> tuple[int, ...]:
    """Return the weekdays of a list or range: "mondays and thursdays", "mon-fri"."""
    kinds = (Kind.WEEKDAY, Kind.WEEKDAYS, Kind.DAY_GROUP)
    weekday_tokens = [token for token in tokens if token.kind in kinds]
    is_range = any(token.kind in _RANGE_KINDS for token in tokens[1:-1])
    if is_range and len(weekday_tokens) == 2:
        first, last = int(weekday_tokens[0].number), int(weekday_tokens[1].number)
        return tuple(sorted((first + step) % 7 for step in range((last - first) % 7 + 1)))
    return forms.list_weekdays(weekday_tokens)


@RULES.add(
    f"{ON} every {ON} (?P<days> {_WEEKDAY_LIST} )",
    f"(?P<days> {_WEEKDAY_LIST} ) (?: every_after | always )",
    f"{WHEN} (?P<days> weekdays (?: {_SEPARATOR} (?: weekdays | weekday ) )* )"
    "(?: every_after | always )?",
    f"{ON} every {ON} (?P<days> weekdays (?: {_SEPARATOR} (?: weekdays | weekday ) )* )",
    f"{WHEN} (?P<days> weekday (?: {_SEPARATOR} weekday )* (?: and | comma ) weekdays )",
    f"{WHEN} every? (?: from | start )? (?: the | on )*"
    "(?P<days> weekday (?: to | until | at | start_after ) (?: the | on )* weekday )"
    "(?: every_after | until_after | filler | always )*",
    f"{ON} every {ON} (?P<days> day_group )",
    f"(?P<repeat> repeat ) {WHEN} (?: of | from )? (?P<days> {_WEEKDAY_LIST} )",
)
def _every_weekday(match: Match, context: Context) -> TimeParts | None:
    """Read "every Monday", "mon-fri" and "weekly on Monday and Thursday"."""
    token = match.get("repeat")
    repeat = Repeat(Unit.WEEK)
    if token is not None:
        repeat = _repeat_of(add_unit(token.unit, token.number)) or repeat
    if repeat.unit is not Unit.WEEK:
        return None
    return TimeParts(repeat=repeat, weekdays=_list_weekdays(match.all("days")))


@RULES.add("(?<= [request mention] ) (?P<days> day_group ) (?= at | clock | number )")
def _working_days(match: Match, context: Context) -> TimeParts | None:
    """Read "remind me weekday at 7:45" as every working day."""
    if match.number("days") == WEEKEND:
        return None
    return TimeParts(repeat=Repeat(Unit.WEEK), weekdays=_list_weekdays(match.all("days")))


@RULES.add(
    f"on? (?P<days> weekday (?: {_SEPARATOR} weekday )+ )",
)
def _several_weekdays(match: Match, context: Context) -> TimeParts | None:
    """Read "Mon, Wed and Fri" as a rhythm. Two weekdays may be an alternative instead."""
    weekdays = _list_weekdays(match.all("days"))
    if len(weekdays) > 2:
        assumptions = frozenset({Assumption.RHYTHM})
        return TimeParts(repeat=Repeat(Unit.WEEK), weekdays=weekdays, assumptions=assumptions)
    return TimeParts(weekdays=weekdays, problem=Problem.SEVERAL_TIMES)


@RULES.add(
    f"every (?: other_every | (?P<nth> {_NTH} ) | (?P<count> number ) )?"
    f"(?P<days> {_WEEKDAY_LIST} )",
    f"(?: on | the | one )* (?P<days> {_WEEKDAY_LIST} ) (?P<after> alternate_after )",
)
def _alternate_weekday(match: Match, context: Context) -> TimeParts | None:
    """Read "every other Monday" and "every 2nd Tuesday"."""
    interval = match.number("nth") or match.number("count")
    if match.kinds(Kind.OTHER_EVERY) or match.get("after"):
        interval = 2
    if interval < 1 or (interval == 1 and match.get("nth")):
        return None  # "Every first Monday" is a rule of months.
    assumptions = frozenset({Assumption.FIRST_DAY})
    weekdays = _list_weekdays(match.all("days"))
    return TimeParts(repeat=Repeat(Unit.WEEK, interval), weekdays=weekdays, assumptions=assumptions)


@RULES.add(
    f"{ON} every+ the? (?P<span> {SPAN} | {UNIT} | quarter ) every_after?",
    f"{ON} every+ the? (?P<span> (?: number | one ) {UNIT} )",
    f"(?P<span> {SPAN} | {UNIT} ) every_after",
    f"from? number in (?P<span> number {UNIT} )",
    f"every (?P<other> other_every ) (?P<span> {UNIT} )",
    f"every (?P<nth> {_NTH} ) (?P<span> {UNIT} )",
    f"(?: one | the )* (?P<span> {UNIT} ) (?P<other> alternate_after )",
    "(?P<repeat> repeat )",
)
def _every(match: Match, context: Context) -> TimeParts | None:
    """Read "every 90 minutes", "every other day" and "daily"."""
    token = match.get("repeat")
    if _has_growing_units(match.all("span")):
        return None  # "Every 6 hours 3 days long": the days aren't part of the rhythm.
    span = add_unit(token.unit, token.number) if token else read_span(match.all("span"))
    factor = 2 if match.get("other") else max(match.number("nth"), 1)
    repeat = _repeat_of(span, factor)
    return TimeParts(repeat=repeat) if repeat else None


def _has_growing_units(tokens: Sequence[Token]) -> bool:
    """Return whether a larger unit follows a smaller one. Then the units aren't one length."""
    spans = [add_unit(token.unit, 1) for token in tokens if token.unit is not None]
    return any(left < right for left, right in pairwise(spans))


def _repeat_of(span: Span, factor: int = 1) -> Repeat | None:
    """Return the rhythm for a span, in the largest unit that divides it."""
    months, days, seconds = (value * factor for value in span)
    if months and not days and not seconds:
        is_years = months % 12 == 0
        return Repeat(Unit.YEAR, months // 12) if is_years else Repeat(Unit.MONTH, months)
    if days and not months and not seconds:
        is_weeks = days % 7 == 0
        return Repeat(Unit.WEEK, days // 7) if is_weeks else Repeat(Unit.DAY, days)
    if months or seconds < 60:
        return None
    minutes = days * 1440 + seconds // 60
    is_hours = minutes % 60 == 0
    return Repeat(Unit.HOUR, minutes // 60) if is_hours else Repeat(Unit.MINUTE, minutes)


@RULES.add(
    f"{WHEN} every {ON} (?P<part> part | past_or_part )",
    "(?P<part> part ) every_after",
)
def _every_part(match: Match, context: Context) -> TimeParts | None:
    return TimeParts(repeat=Repeat(Unit.DAY), part=match.number("part"))


@RULES.add("this? part (?: and | comma ) (?: every | the | on )* part (?! part )")
def _parts_of_each_day(match: Match, context: Context) -> TimeParts | None:
    """Read "morning and evening" as every day, if clock times are named."""
    if match.kinds(Kind.THIS) or any(part.unit for part in match.kinds(Kind.PART)):
        return None
    return TimeParts(repeat=Repeat(Unit.DAY), times=2)


@RULES.add(
    f"every {ON} (?P<clock> (?: number oclock | clock ) ) (?= . | $ )",
    "(?P<clock> (?: number oclock minute? | clock ) ) every_after",
    "(?P<clock> number ) oclock (?P<minutes> number ) minute every_after",
)
def _every_clock(match: Match, context: Context) -> TimeParts | None:
    """Read Korean "7시마다" (every day at 7)."""
    token = match.all("clock")[0]
    minute = int(token.number) * (1 if token.kind is Kind.CLOCK else 60) + match.number("minutes")
    parts = clock_parts(minute // 60, minute % 60, is_bare=token.kind is not Kind.CLOCK)
    return replace(parts, repeat=Repeat(Unit.DAY)) if parts else None


@RULES.add(
    "(?: (?P<count> number ) times | (?P<named> times_count ) )"
    "(?: per | one | the | on | in | every | at | for | to )* (?P<unit> unit | day_prefix )",
    "(?: (?P<count> number ) times | (?P<named> times_count ) ) (?P<repeat> repeat )",
    "(?P<repeat> repeat ) (?: (?P<count> number ) times | (?P<named> times_count ) )",
    "(?P<first> one | number ) (?P<unit> unit | day_sign ) (?P<count> number ) times",
    "(?P<unit> span ) (?P<count> number ) times",
    "(?: every | per )? (?P<unit> unit )(?: (?P<count> number ) times | (?P<named> times_count ) )",
)
def _times_per(match: Match, context: Context) -> TimeParts | None:
    """Read "twice a day"."""
    unit = match.get("unit") or match.get("repeat")
    times = match.number("count") or match.number("named")
    if match.get("first") and match.number("first") != 1:
        return None
    repeat = _repeat_of(add_unit(unit.unit, unit.number or 1)) if unit else None
    return TimeParts(repeat=repeat, times=times) if repeat else None


@RULES.add(
    "(?P<count> number ) times",
    "in? (?: the )? (?P<count> number ) times in_total?".replace("in_total?", ""),
)
def _count(match: Match, context: Context) -> TimeParts | None:
    count = match.number("count")
    return TimeParts(count=count) if 0 < count < 10_000 else None


def _monthly_repeat(unit: Token | None) -> Repeat:
    """Return a rhythm for days of a month or quarter. Without a unit, it is monthly."""
    if unit is None:
        return Repeat(Unit.MONTH)
    if unit.kind is Kind.QUARTER:
        return Repeat(Unit.MONTH, QUARTER_MONTHS)
    return _repeat_of(add_unit(unit.unit, unit.number or 1)) or Repeat(Unit.DAY)


_OF_EVERY = (
    "(?: of | the | in | on | from | and )*"
    "(?: (?: every | repeat ) (?: of | the )* (?P<unit> unit | quarter ) | (?P<repeat> repeat ) )"
)
_DAY_LIST = (
    "(?: ordinal | month_day | number (?: day_sign | point )* | day_prefix number )"
    "(?: (?: comma | and | the | on | day_prefix )+"
    "(?: ordinal | month_day | number (?: day_sign | point )* ) )*"
)

_MARKED_DAY = "(?: ordinal | month_day | day_prefix? number (?: day_sign | point )* )"
_SEVERAL_DAYS = f"{_MARKED_DAY} (?: (?: comma | and | the | on | day_prefix )+ {_MARKED_DAY} )+"


@RULES.add(
    f"{WHEN} (?P<days> {_DAY_LIST} ) (?P<day> unit | day_prefix )? {_OF_EVERY}",
    f"{ON} every (?P<unit> unit ) (?: on | the | of | comma )*"
    f"(?P<days> {_DAY_LIST} ) (?P<day> unit | day_prefix )?",
    f"{ON} (?P<repeat> repeat ) {ON} (?P<days> {_DAY_LIST} )",
    f"{ON} every {ON} (?P<days> month_day | day_prefix number"
    " | (?: number | ordinal ) day_sign ) (?: of the? (?P<unit> unit ) )?",
    f"{ON} every {ON} (?P<days> {_DAY_LIST} ) (?: of | the )+ (?P<unit> unit )",
    f"{WHEN} (?P<days> month_day (?: (?: comma | and | the | on )+ month_day )+ )"
    " (?: of | the | in )+ (?P<unit> unit )",
    "every (?P<prefix> day_prefix ) (?P<days> number )"
    "(?= at | comma | clock | request | mention | $ )",
    f"{WHEN} (?P<days> month_edge ) {_OF_EVERY}",
    f"{ON} every {ON} (?P<days> number ) point? (?: of | from | the | on | in )+ (?P<unit> unit )",
    f"{ON} every {ON} (?P<days> month_edge )",
    f"{ON} every {ON} (?P<days> {_SEVERAL_DAYS} )"
    "(?= at | on | comma | clock | part | filler | request | mention | to | $ )",
    f"{ON} every (?P<days> number ) point (?= at | comma | clock | request | mention | $ )",
    f"{ON} every (?P<unit> unit ) (?: on | the | at | of | comma )*(?P<days> month_edge )",
    f"{_OF_EVERY} (?: on | the | of )* (?P<days> {_DAY_LIST} ) (?P<day> unit | day_prefix )?",
)
def _every_month_day(match: Match, context: Context) -> TimeParts | None:
    """Read "on the 1st of every month" and Portuguese "todo dia 10"."""
    repeat = _monthly_repeat(match.get("unit") or match.get("repeat"))
    days = [
        int(token.number)
        for token in match.all("days")
        if token.kind in (Kind.ORDINAL, Kind.MONTH_DAY, Kind.NUMBER, Kind.MONTH_EDGE)
    ]
    is_valid = all(day == -1 or 1 <= day <= 31 for day in days)
    if not is_valid or repeat.unit is not Unit.MONTH:
        return None
    unit_tokens = match.all("day") if match.get("day") else ()
    if unit_tokens and unit_tokens[0].unit is not Unit.DAY:
        return None
    return TimeParts(repeat=repeat, month_days=tuple(days))


@RULES.add(
    f"{WHEN} every? {ON} (?P<nths> {_NTHS} )(?P<weekday> {_DAY} ) {_OF_EVERY}",
    f"{WHEN} (?P<every> every ) {ON}"
    f"(?P<nths> {_NTHS} ) (?P<weekday> {_DAY} )"
    "(?: of | from | the | in | on )* (?P<unit> unit | quarter )",
    f"{WHEN} (?P<nths> {_NTHS} ) (?P<weekday> {_DAY} )"
    "(?: of | from | the | in | on )* (?P<unit> unit )",
    f"{_OF_EVERY} (?: on | the | at | of )*(?P<nths> {_NTHS} ) (?P<weekday> {_DAY} )",
    f"{WHEN} (?P<weekday> {_DAY} ) (?P<nths> {_NTH} ) {_OF_EVERY}",
    f"{ON} every {ON} (?P<only> ordinal ) (?P<weekday> {_DAY} )",
    f"{ON} every {ON} (?P<several> {_NTHS} ) (?P<weekday> {_DAY} )",
    f"{_OF_EVERY} (?: on | the | at | of )* (?P<weekday> {_DAY} )(?P<nths> ordinal )",
    # Turkish has "of the month" first.
    f"(?P<unit> day_prefix ) (?P<nths> {_NTHS} ) (?P<weekday> {_DAY} )",
)
def _every_nth_weekday(match: Match, context: Context) -> TimeParts | None:
    """Read "the 2nd Tuesday of every month" and "every 1st and 3rd Tuesday"."""
    unit = match.get("unit") or match.get("repeat")
    weekdays = _list_weekdays(match.all("weekday"))
    several = _list_nths(match.all("several"))
    if match.number("only") in (1, -1) or len(several) > 1:
        # "Every last Friday" can only mean once a month. "Every second Monday" means every two
        # weeks.
        nths = several or (match.number("only"),)
        return TimeParts(repeat=Repeat(Unit.MONTH), nths=nths, weekdays=weekdays)
    repeat = _monthly_repeat(unit)
    nths = _list_nths(match.all("nths"))
    if unit is None or repeat.unit is not Unit.MONTH or not nths:
        return None
    return TimeParts(repeat=repeat, nths=nths, weekdays=weekdays)


def _list_nths(tokens: Sequence[Token]) -> tuple[int, ...]:
    """Return which weekdays of a month are named, or () if one of them can't exist."""
    kinds = (Kind.ORDINAL, Kind.MONTH_DAY, Kind.OTHER_EVERY, Kind.NUMBER)
    nths = tuple(int(token.number) for token in tokens if token.kind in kinds)
    return nths if set(nths) <= {-1, 1, 2, 3, 4, 5} else ()


@RULES.add(
    f"{WHEN} (?P<nth> {_NTH} ) (?P<weekday> {_DAY} ) (?: of | the | in | on )*"
    "(?P<month> relative )",
    f"{WHEN} (?P<month> relative ) (?: of | the | in | on | filler )* (?P<nth> {_NTH} )"
    f"(?P<weekday> {_DAY} )",
)
def _nth_weekday_of_relative_month(match: Match, context: Context) -> TimeParts | None:
    """Read "the first Monday of next month"."""
    month = match.get("month")
    if month is None or month.unit is not Unit.MONTH:
        return None
    weekdays = _list_weekdays(match.all("weekday"))
    return TimeParts(nths=(match.number("nth"),), weekdays=weekdays, month_offset=int(month.number))


def _has_passed(form: forms.NthWeekday, offset: int, context: Context) -> bool:
    """Return whether a weekday of the month in `offset` months is before today."""
    first = add_months(context.today.replace(day=1), offset)
    day = nth_weekday(first, form.nth, form.weekdays)
    return day is not None and day < context.today


@RULES.add(f"{WHEN} {forms.NTH_WEEKDAY}")
def _nth_weekday_of_month(match: Match, context: Context) -> TimeParts | None:
    """Read "the first Monday in January" and "the first Monday of January 2028"."""
    form = forms.read_nth_weekday(match.all(0))
    if form is None:
        return None
    offset = form.month - context.today.month
    if form.year:
        offset += (form.year - context.today.year) * 12
    else:
        offset %= 12
        offset += 12 if _has_passed(form, offset, context) else 0
    if offset < 0:
        return TimeParts(problem=Problem.PAST)
    return TimeParts(nths=(form.nth,), weekdays=form.weekdays, month_offset=offset)


@RULES.add(
    f"every {ON} (?P<day> {MONTH_DAY} ) day_sign? of? (?P<month> month )",
    f"every {ON} (?P<month> month ) the? (?P<day> {MONTH_DAY} )",
    "every (?P<feast> feast )",
)
def _every_date(match: Match, context: Context) -> TimeParts | None:
    """Read "every 3 May"."""
    feast = match.get("feast")
    if feast is not None and feast.feast:
        # A movable feast doesn't recur at a regular interval.
        return TimeParts(problem=Problem.NO_SUCH_DATE)
    if feast is not None:
        parts = feast_parts(feast, context)
    else:
        parts = date_parts(0, match.number("month"), match.number("day"), context)
    return replace(parts, repeat=Repeat(Unit.YEAR)) if parts else None
