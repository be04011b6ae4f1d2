"""Rules for days: "tomorrow", "on the 30th", "next Friday", "Christmas Eve"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

from core.dates import forms
from core.dates.requests.feasts import feast_in_year, next_feast_dates, next_fixed_dates
from core.dates.requests.grammar import (
    SPAN,
    VAGUE_DAY,
    WHEN,
    Context,
    RequestRules,
    read_span,
)
from core.dates.requests.parts import Assumption, Problem, Span, TimeParts
from core.dates.schedule import add_months, date_if_valid
from core.dates.tokens import Kind, Match, Token, Unit

MAX_HOUR = 24
MAX_WEEKS = 53
WEEKEND = 8
"""The number of a DAY_GROUP token that means Saturday and Sunday."""

RULES = RequestRules()


@RULES.add(f"{WHEN} (?P<day> relative )")
def _relative(match: Match, context: Context) -> TimeParts | None:
    """Read "tomorrow", "next week" and "next month"."""
    token = match.get("day")
    assert token is not None
    count = int(token.number)
    if count < 0:
        return TimeParts(problem=Problem.PAST)
    if token.unit is Unit.DAY:
        return TimeParts(days=(context.today + timedelta(days=count),))
    if token.unit is Unit.WEEK:
        return TimeParts(week_offset=count)
    return TimeParts(month_offset=count * (12 if token.unit is Unit.YEAR else 1))


@RULES.add("(?: on | the | at | filler )* this? (?P<weekday> weekday )")
def _weekday(match: Match, context: Context) -> TimeParts | None:
    return TimeParts(weekdays=(match.number("weekday"),))


@RULES.add(
    f"{WHEN} next (?P<weekday> weekday )",
    f"{WHEN} (?P<weekday> weekday ) next",
)
def _next_weekday(match: Match, context: Context) -> TimeParts | None:
    """Read "next Friday" as the first Friday after today.

    Before this week's Friday, it may also mean the Friday of next week.
    """
    weekday = match.number("weekday")
    days = (weekday - context.today.weekday()) % 7 or 7
    is_this_week = weekday > context.today.weekday()
    assumptions = frozenset({Assumption.WEEKDAY} if is_this_week or days == 7 else ())
    return TimeParts(days=(context.today + timedelta(days=days),), assumptions=assumptions)


def _read_weeks(tokens: Sequence[Token], *, is_literal: bool) -> Span:
    """Read a span from a weekday. German "Montag in acht Tagen" counts both Mondays."""
    span = read_span(tokens)
    if is_literal:
        return span
    return span._replace(days={8: 7, 15: 14}.get(span.days, span.days))


@RULES.add(
    f"{WHEN} (?P<weekday> weekday ) in+ (?P<span> {SPAN} )",
    f"(?P<span> {SPAN} ) (?: on | from | start | later )"
    "(?: on | the | this | next )*"
    "(?P<weekday> weekday )",
    f"{WHEN} (?P<weekday> weekday ) (?P<span> [unit span] )"
    "(?= at | comma | clock | to | request | mention | $ )",
    f"{WHEN} (?P<weekday> weekday ) past (?P<next> next )",
    f"{WHEN} next (?P<next> next ) (?P<weekday> weekday )",
    "in (?P<skipped> weekday )",
)
def _weekday_in_weeks(match: Match, context: Context) -> TimeParts | None:
    """Read a weekday and a span after it, such as French "mardi en huit".

    "Mardi en huit", German "übernächsten Dienstag" and Russian "через вторник" mean the Tuesday
    after the next one. "Two days from Tuesday" is another weekday.
    """
    skipped = match.get("skipped")
    if skipped is not None and not context.lexicon.skips_weekdays:
        return None
    is_from = any(match.kinds(kind) for kind in (Kind.FROM, Kind.START, Kind.LATER))
    is_next = bool(match.get("next") or skipped)
    span = Span(days=7) if is_next else _read_weeks(match.all("span"), is_literal=is_from)
    is_weeks = span.days > 0 and span.days % 7 == 0 and not span.months
    if span.seconds or not (is_weeks or is_from):
        return None
    number = int(skipped.number) if skipped is not None else match.number("weekday")
    days = (number - context.today.weekday()) % 7
    if is_next:
        days = days or 7  # On a Friday, the next Friday is in a week.
    weekday = context.today + timedelta(days=days)
    return TimeParts(days=(add_months(weekday, span.months) + timedelta(days=span.days),))


@RULES.add(
    "in (?P<count> number ) (?P<weekday> weekday | weekdays )",
    "(?P<count> number ) (?P<weekday> weekday | weekdays ) later",
)
def _weekday_after_others(match: Match, context: Context) -> TimeParts | None:
    """Read "in two Tuesdays" as the second Tuesday after today."""
    count = int(match.number("count"))
    if not 1 <= count <= MAX_WEEKS:
        return None
    days = (int(match.number("weekday")) - context.today.weekday()) % 7 or 7
    return TimeParts(days=(context.today + timedelta(days=days + 7 * (count - 1)),))


MONTH_DAY = "(?: number | month_day | ordinal | one )"
_OF_MONTH = "of | from | the"


@RULES.add(
    f"(?: on | the | at | filler | day_prefix )* {forms.day_and_month(MONTH_DAY, _OF_MONTH)}",
    f"{WHEN} {forms.month_and_day(MONTH_DAY, 'from')}",
)
def _date(match: Match, context: Context) -> TimeParts | None:
    form = forms.read_month_days(match.all(0))
    if form is None or form.days[0] < 0:
        return None
    return date_parts(form.year, form.month, form.days[0], context)


def date_parts(year: int, month: int, day: int, context: Context) -> TimeParts | None:
    """Return the next two dates with a day and month.

    If `year` isn't 0, return the date in that year.
    """
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    if year:
        year += 2000 if year < 100 else 0
        exact = date_if_valid(year, month, day)
        return TimeParts(days=(exact,)) if exact else TimeParts(problem=Problem.NO_SUCH_DATE)
    days = next_fixed_dates(month, day, context.today)
    return TimeParts(days=days) if days else TimeParts(problem=Problem.NO_SUCH_DATE)


@RULES.add(
    f"{WHEN} month_day (?: (?: comma | and | the | on )+ month_day )+"
    "(?! of | the | in | month | weekday | weekdays | day_group )"
)
def _days_of_unnamed_month(match: Match, context: Context) -> TimeParts | None:
    """Read "on the 1st and 15th", which may be meant once or every month."""
    return TimeParts(problem=Problem.SEVERAL_DAYS)


@RULES.add("(?: on | the | at | day_prefix | filler )* (?P<date> date )")
def _numeric_date(match: Match, context: Context) -> TimeParts | None:
    """Read 2026-12-01, 2026-12, 3.5.2027 or 3/5.

    If both orders are possible, the language decides.
    """
    token = match.get("date")
    assert token is not None
    numbers = token.date
    if len(numbers) == 2 and numbers[0] > forms.MAX_MONTH_DAY:
        return _month_of_year(numbers[0], numbers[1], context)
    if numbers[0] > forms.MAX_MONTH_DAY:
        # The year comes first: 2026-12-01.
        parts = date_parts(numbers[0], numbers[1], numbers[2], context)
        return parts or TimeParts(problem=Problem.NO_SUCH_DATE)
    year = numbers[2] if len(numbers) > 2 else 0
    first, second = numbers[:2]
    is_day_first = context.lexicon.is_day_first
    day, month = (first, second) if is_day_first else (second, first)
    if month > 12 and day <= 12:
        day, month = month, day
    is_ambiguous = context.lexicon.language == "en" and first <= 12 and first != second <= 12
    parts = date_parts(year, month, day, context)
    if parts is None or not is_ambiguous:
        return parts
    return replace(parts, assumptions=frozenset({Assumption.DAY_ORDER}))


@RULES.add(
    f"{WHEN} (?: on | the | at ) (?P<day> month_day )",
    f"{WHEN} day_prefix (?P<day> number | month_day )",
    f"{WHEN} for? (?P<day> number | ordinal ) day_sign+",
    f"{WHEN} on (?P<day> number ) (?= at (?: number | clock ) )",
    f"{WHEN} on (?: the )? (?P<day> number ) point",
    f"{WHEN} the (?P<day> number ) point (?= comma | at | $ )",
    "for (?: the | on | day_prefix )* (?P<day> month_day )"
    "(?= at | comma | colon | clock | part | to | $ )",
    "on the (?P<day> ordinal | other_every ) (?= at | comma | clock | $ )",
)
def _month_day(match: Match, context: Context) -> TimeParts | None:
    """Read "on the 30th"."""
    day = match.number("day")
    return TimeParts(month_days=(day,)) if 1 <= day <= 31 else _no_such_day(match)


def _no_such_day(match: Match) -> TimeParts | None:
    """Return the problem of "the 32nd", or None. Larger numbers may belong to the task."""
    token = match.get("day")
    is_ordinal = token is not None and token.kind is Kind.MONTH_DAY
    return TimeParts(problem=Problem.NO_SUCH_DATE) if is_ordinal else None


@RULES.add(
    f"{WHEN} (?P<edge> month_edge )",
)
def _month_edge(match: Match, context: Context) -> TimeParts | None:
    return TimeParts(month_days=(match.number("edge"),))


@RULES.add("(?: on | the | at | in | for | filler | day_prefix )* (?P<feast> feast )")
def _feast(match: Match, context: Context) -> TimeParts | None:
    token = match.get("feast")
    return feast_parts(token, context) if token else None


@RULES.add(f"(?: on | the | at | in | for | filler | day_prefix )* {forms.FEAST_OF_YEAR}")
def _feast_of_year(match: Match, context: Context) -> TimeParts | None:
    """Read "Christmas 2028"."""
    form = forms.read_feast_of_year(match.all(0))
    day = feast_in_year(form.feast, form.year) if form else None
    return TimeParts(days=(day,)) if day else TimeParts(problem=Problem.NO_SUCH_DATE)


def feast_parts(feast: Token, context: Context) -> TimeParts | None:
    """Return the next two dates of a FEAST token."""
    if not feast.feast:
        month, day = divmod(int(feast.number), 100)
        return date_parts(0, month, day, context)
    days = next_feast_dates(feast.feast, int(feast.number), context.today)
    return TimeParts(days=days) if days else TimeParts(problem=Problem.NO_SUCH_DATE)


@RULES.add(
    "(?: on | the | at )* (?P<edge> edge_of ) (?: of | the )* (?P<month> month )"
    " (?: (?: of | from )? (?P<year> year ) )?",
    "(?: on | the | at )* (?P<month> month | number month_sign ) (?: of | the )*"
    "(?P<edge> edge_after | edge_of )",
    # Japanese "6月末": the sign of the month is also in the word for the end of a month.
    "(?: (?P<year> year ) unit? )? (?P<month> number ) (?P<edge> month_edge )",
    "(?: on | the | at )* (?P<edge> ordinal ) (?P<unit> unit ) (?: of | the | in | on )*"
    "(?P<month> month ) (?: (?: of | from )? (?P<year> year ) )?",
    "(?: on | the | at )* (?P<edge> edge_of ) (?: of | the )* (?P<relative> relative )",
    "(?: on | the | at )* (?P<relative> relative ) (?: of | the )* (?P<edge> edge_after )",
)
def _edge(match: Match, context: Context) -> TimeParts | None:
    """Read "the end of November" and "the beginning of next month"."""
    edge = match.number("edge")
    unit = match.get("unit")
    if edge not in (1, -1) or (unit is not None and unit.unit is not Unit.DAY):
        return None
    relative = match.get("relative")
    if relative is not None:
        is_month = relative.unit is Unit.MONTH and relative.number >= 0
        if not is_month:
            return None
        return TimeParts(month_days=(edge,), month_offset=int(relative.number))
    month = match.number("month")
    if edge > 0:
        return date_parts(match.number("year"), month, 1, context)
    year = match.number("year") or context.today.year
    if not match.get("year") and month < context.today.month:
        year += 1
    return TimeParts(days=(add_months(date(year, month, 1), 1) - timedelta(days=1),))


@RULES.add(
    "(?: (?<= start ) | (?<= until ) | (?: in | on | at ) ) (?: in | on | at | the | this )*"
    "(?P<month> month | number month_sign ) (?: of | in | comma )* (?P<year> year )?",
    "(?<= [unit repeat weekday day_prefix] ) (?: of | from ) the? (?P<month> month )",
    "this? (?P<month> month | number month_sign ) (?P<year> year )?"
    "(?= filler | every | repeat | start_after | in | on )",
)
def _month(match: Match, context: Context) -> TimeParts | None:
    """Read "in December", which limits a recurrence or leaves the day open."""
    if match.get("year"):
        return _month_of_year(match.number("year"), match.number("month"), context)
    return TimeParts(month_offset=(match.number("month") - context.today.month) % 12)


def _month_of_year(year: int, month: int, context: Context) -> TimeParts:
    """Return a month that is named with its year."""
    offset = (year - context.today.year) * 12 + month - context.today.month
    return TimeParts(month_offset=offset) if offset >= 0 else TimeParts(problem=Problem.PAST)


@RULES.add("(?P<word> vague )")
def _vague(match: Match, context: Context) -> TimeParts | None:
    """Read "soon" and "some day". "Some day" counts only without another day."""
    is_day = match.number("word") == VAGUE_DAY
    return TimeParts(problem=Problem.VAGUE_DAY if is_day else Problem.VAGUE)


@RULES.add(
    "(?P<zone> zone )", "(?P<zone> city ) zone_word", "zone_word (?: of | the )* (?P<zone> city )"
)
def _zone(match: Match, context: Context) -> TimeParts | None:
    token = match.get("zone")
    return TimeParts(zone=token.zone) if token else None


@RULES.add("(?: on | at | the | this | filler )* (?P<group> day_group )")
def _weekend(match: Match, context: Context) -> TimeParts | None:
    """Read "this weekend", which begins on Saturday."""
    if match.number("group") != WEEKEND:
        return None
    days = (5 - context.today.weekday()) % 7
    assumptions = frozenset({Assumption.FIRST_DAY})
    return TimeParts(days=(context.today + timedelta(days=days),), assumptions=assumptions)


@RULES.add(
    f"{WHEN} (?P<weekday> weekday ) (?: the | comma | on )* (?P<day> number )"
    "(?: point | day_sign )? (?= at | at_or_to | clock )",
    "(?P<day> number ) (?P<sign> oclock ) (?P<weekday> weekday )",
)
def _weekday_and_month_day(match: Match, context: Context) -> TimeParts | None:
    """Read Spanish "el lunes 24 a las 10" and Turkish "25'i pazartesi"."""
    day = match.number("day")
    is_hour = match.get("sign") is not None and day <= MAX_HOUR
    if is_hour or not 1 <= day <= 31:
        return None
    return TimeParts(weekdays=(match.number("weekday"),), month_days=(day,))
