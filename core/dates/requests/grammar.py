"""Read times in requests of all languages: rules turn tokens into `TimeParts`.

The order of words differs between languages, so many rules have two patterns: "in 20 minutes" and
Turkish "20 dakika sonra". See `core.dates.tokens.Rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from core.dates.lexicon import Lexicon
from core.dates.requests.parts import (
    Assumption,
    Problem,
    Span,
    TimeParts,
)
from core.dates.schedule import add_months
from core.dates.tokens import (
    Item,
    Kind,
    Match,
    Rules,
    Token,
    Unit,
    compile_grammar,
    kinds_of,
)

QUARTER_MONTHS = 3
VAGUE_DAY = 1
VAGUE_LATER = 2
"""The numbers of VAGUE tokens: for "some day", and for words that are vague only without a
length."""


@dataclass(frozen=True, slots=True)
class Context:
    """The lexicon and the current time, on which the meaning of tokens depends."""

    lexicon: Lexicon
    # The present wall time.
    here: datetime

    @property
    def today(self) -> date:
        return self.here.date()


RequestRules = Rules[Context, TimeParts]
TimeItem = Item[TimeParts]

RULES = RequestRules()
"""The rules of spans."""

# --- Spans ---

WHEN = "(?: on | the | at | day_prefix )*"
ON = "(?: on | the | day_prefix )*"
UNIT = "(?: minute | hour | hour_or_at | hour_sign | unit | day_prefix | day_sign | part )"
_COUNT = "(?: number | one )"
_SPAN_PART = (
    f"(?: span | {_COUNT} and_half? {UNIT} (?: and_half | and? quarter )? | {UNIT} and_half )"
)
SPAN = f"(?: {_SPAN_PART} (?: and? {_SPAN_PART} )* )"
TIMER_LENGTH = f"(?: number to (?: minute | hour ) | {SPAN} )"
"""The length of a timer: "9 minutes", "9-minute"."""


def add_unit(unit: Unit | None, count: float) -> Span:
    """Return `count` units as a span.

    Half a day and half a month are rounded down to whole days.
    """
    sizes = {Unit.SECOND: 1, Unit.MINUTE: 60, Unit.HOUR: 3600}
    if unit in sizes:
        return Span(seconds=round(count * sizes[unit]))
    if unit is Unit.DAY or unit is Unit.WEEK:
        days = count * (7 if unit is Unit.WEEK else 1)
        return Span(days=int(days), seconds=round(days % 1 * 86400))
    months = count * (12 if unit is Unit.YEAR else 1)
    return Span(months=int(months), days=round(months % 1 * 30))


def read_span(tokens: Sequence[Token]) -> Span:
    """Return the sum of the parts of a span."""
    total = Span()
    count: float | None = None
    unit: Unit | None = None
    for token in tokens:
        if token.kind in (Kind.NUMBER, Kind.ONE):
            count = token.number if token.kind is Kind.NUMBER else 1
            unit = None
        elif token.kind is Kind.AND_HALF:
            if unit is None:
                count = (count or 0) + 0.5
            else:
                total = total.plus(add_unit(unit, 0.5))
        elif token.kind is Kind.QUARTER:
            # "An hour and a quarter", and the quarter of a year.
            quarter = Span(seconds=900) if unit is Unit.HOUR else Span(months=QUARTER_MONTHS)
            total = total.plus(quarter)
        elif token.kind is Kind.SPAN:
            total = total.plus(add_unit(token.unit, token.number))
        elif token.unit is not None:
            unit = token.unit
            number = 1 if token.kind is Kind.PART else token.number or 1
            total = total.plus(add_unit(unit, (1 if count is None else count) * number))
    return total


@RULES.add(
    f"in+ the? next? (?P<span> {SPAN} ) (?: later )?",
    f"the? (?P<span> {SPAN} ) (?: later | (?P<vague> vague ) )",
    "(?<= [request mention] ) (?: after | past | later ) of?(?P<span> number (?: minute | unit ) )",
)
def _offset(match: Match, context: Context) -> TimeParts | None:
    """Read "in 20 minutes" and "20 minutes later".

    Words such as "later" are vague only if there is no length.
    """
    if match.get("vague") and match.number("vague") != VAGUE_LATER:
        return None
    span = read_span(match.all("span"))
    return TimeParts(offset=span) if any(span) else None


@RULES.add(f"in+ the? {SPAN} or {_COUNT} {UNIT}?", f"in+ {_COUNT} or {_COUNT} {UNIT}")
def _several_offsets(match: Match, context: Context) -> TimeParts | None:
    """Read "in an hour or two", which doesn't name a single moment."""
    return TimeParts(problem=Problem.SEVERAL_TIMES)


@RULES.add(
    f"in+ (?P<span> {SPAN} ) and? (?P<minutes> number )"
    "(?P<end> (?= of | from | to | at | comma | colon | request | mention | polite | $ ) )?"
)
def _offset_and_minutes(match: Match, context: Context) -> TimeParts | None:
    """Read Russian "через час пятнадцать" and French "dans 2 heures 30", without "minutes".

    In "in 2 hours 30 squats", the digits belong to the task.
    """
    minutes = match.get("minutes")
    span = read_span(match.all("span"))
    if minutes is None or not span.seconds or span.seconds % 3600:
        return None
    if minutes.is_digits and (minutes.end - minutes.start != 2 or not match.has("end")):
        return None
    if minutes.number >= HOUR_MINUTES:
        return None
    return TimeParts(offset=span.plus(Span(seconds=60 * int(minutes.number))))


HOUR_MINUTES = 60


@RULES.add(
    "in+ (?P<clock> clock ) minute? later?",
    "(?P<clock> clock ) minute? later",
    "(?P<clock> clock ) minute",
)
def _clock_offset(match: Match, context: Context) -> TimeParts | None:
    """Read "in 2h30", where the clock time is a length."""
    token = match.get("clock")
    if token is None or not token.is_digits:
        return None
    return TimeParts(offset=Span(seconds=int(token.number) * 60))


@RULES.add("(?P<unit> minute | hour ) in (?P<count> number )")
def _offset_after_unit(match: Match, context: Context) -> TimeParts | None:
    """Read Russian "минут через 40", which means about 40 minutes."""
    unit = match.get("unit")
    count = match.number("count")
    return TimeParts(offset=add_unit(unit.unit, count)) if unit and count else None


@RULES.add("in (?P<count> number ) (?= comma | polite | request | $ )")
def _minutes_offset(match: Match, context: Context) -> TimeParts | None:
    """Read "in 5", where "minutes" is implied."""
    minutes = match.number("count")
    assumptions = frozenset({Assumption.MINUTES})
    return TimeParts(offset=Span(seconds=minutes * 60), assumptions=assumptions)


@RULES.add(
    f"(?P<span> {SPAN} ) ago",
    f"ago (?P<span> {SPAN} )",
    "last (?: weekday | unit )",
    "(?P<last> ordinal ) (?: weekday | unit )",
)
def _past(match: Match, context: Context) -> TimeParts | None:
    """Read "two days ago" and "last Friday"."""
    if match.get("last") and match.number("last") != -1:
        return None
    return TimeParts(problem=Problem.PAST)


@RULES.add(
    f"(?P<span> {SPAN} ) (?: before | to_after )",
    f"before (?P<span> {SPAN} ) (?: until | before )?",
    f"before (?P<span> {UNIT} ) (?: until | before )",
    # German "eine Stunde vor dem Treffen". In "fünf Minuten vor acht", a number follows.
    f"(?P<span> {_COUNT} {UNIT} ) to_hour the? (?= other )",
    "before per (?P<span> unit )",
    "the (?P<span> unit ) before (?! of | the | number | one )",
)
def _lead(match: Match, context: Context) -> TimeParts | None:
    span = read_span(match.all("span"))
    return TimeParts(lead=span) if any(span) else None


@RULES.add(
    f"(?P<span> the? {SPAN} | the? {UNIT} ) (?P<after> past | before | to_hour )"
    "(?: of | the | from | at | on )* (?= feast | date | clock | number oclock )",
    # "Three days from now at noon" counts from now.
    f"(?P<span> the? {SPAN} | the? {UNIT} ) (?P<after> later ) (?: of | the | from )*"
    "(?= feast | date | clock | number oclock )",
)
def _distance(match: Match, context: Context) -> TimeParts | None:
    """Read "the day after" before a feast, date or clock time, as a negative lead time."""
    span = read_span(match.all("span"))
    if match.kinds(Kind.BEFORE) or match.kinds(Kind.TO_HOUR):
        return TimeParts(lead=span) if any(span) else None
    return TimeParts(lead=Span(*(-size for size in span))) if any(span) else None


@RULES.add(
    "the? (?P<part> part ) (?: before | to_hour ) (?: of | the )* (?= feast | date )",
    "(?<! [relative weekday part_of_relative] ) the? (?P<part> part ) (?: before | to_hour )"
    "(?: of | from | the )* (?= other )",
)
def _part_of_day_before(match: Match, context: Context) -> TimeParts | None:
    """Read "the night before Christmas" and "the evening before the exam on Friday"."""
    return TimeParts(part=match.number("part"), lead=Span(days=1))


@RULES.add(
    f"(?P<span> {SPAN} ) (?: from | later ) (?P<base> relative )",
    f"(?P<base> relative ) in+ (?P<span> {SPAN} )",
    f"(?P<span> {SPAN} ) (?P<base> relative ) (?= at | comma | request | mention | $ )",
)
def _offset_from_day(match: Match, context: Context) -> TimeParts | None:
    """Read "a week from today", "two weeks today" and German "heute in einer Woche"."""
    span, base = read_span(match.all("span")), match.get("base")
    if not match.kinds(Kind.FROM) and not match.kinds(Kind.IN) and span.days % 7:
        return None
    if span.seconds or base is None or base.unit is not Unit.DAY:
        return None
    day = add_months(context.today, span.months) + timedelta(days=span.days + base.number)
    return TimeParts(days=(day,))


@RULES.add(
    f"(?: for | on )? the? next (?P<span> {SPAN} )",
    f"for the? next? (?P<span> {SPAN} ) during_after?",
    f"the? next? (?P<span> {SPAN} ) during_after",
    f"(?: for | on | the | day_prefix )* (?P<span> number next {UNIT} )",
    f"(?P<span> {SPAN} ) (?= comma? (?: repeat | every ) )",
    f"(?<= every_after ) (?P<span> {SPAN} ) (?! every_after | later | ago | before )",
)
def _duration(match: Match, context: Context) -> TimeParts | None:
    span = match.all("span")
    if not any(token.kind in (Kind.NUMBER, Kind.ONE, Kind.SPAN) for token in span):
        return None  # "next week" is no length.
    length = read_span(span)
    return TimeParts(duration=length) if any(length) else None


@RULES.add("for the? next (?P<unit> hour | unit )")
def _unit_duration(match: Match, context: Context) -> TimeParts | None:
    return TimeParts(duration=read_span(match.all("unit")))


_LENGTH = compile_grammar(f"(?: {SPAN} | {UNIT} )")


def find_length(tokens: Sequence[Token]) -> tuple[Span, int, int] | None:
    """Return the longest length of time in the tokens, and where it starts and ends.

    A unit without a number counts once, as in Russian "на час". Returns None if there is no length.
    """
    kinds = kinds_of(tokens)
    matches = [match for match in _LENGTH.finditer(kinds) if match.end() > match.start()]
    for match in sorted(matches, key=lambda match: match.start() - match.end()):
        if match[0] == Kind.HOUR_OR_AT and kinds[match.end() : match.end() + 1] == Kind.NUMBER:
            continue  # Turkish "saat 11'e" is a clock time.
        span = read_span(tokens[match.start() : match.end()])
        if any(span):
            return span, match.start(), match.end()
    return None
