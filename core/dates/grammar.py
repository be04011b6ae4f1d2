"""Reads English times at the front of a line: days, clock times, spans and repetitions.

Each rule reads some words and stores their meaning in a `TimeExpression`, which computes the
schedule. Words that could mean something else make the expression uncertain. All patterns have a
limited length, so that reading a line is always fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import NamedTuple

from core.dates.cursor import WEEKDAYS, WordCursor, parse_ordinal, word_pattern, word_tables
from core.dates.expression import PART_OF_DAY_HOURS, ClockTime, Span, TimeExpression
from core.dates.schedule import add_months, date_if_valid

_PLURAL_WEEKDAYS = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days")

Rule = Callable[[WordCursor, TimeExpression, date], bool]
"""A function that reads words at the cursor and stores their meaning in the expression.

The date is today's. A rule returns False if the words don't fit. The rule may have moved the cursor
and changed the expression nevertheless, so its caller must restore both.
"""


class ParsedTime(NamedTuple):
    """The time at the front of some words, and the number of words that name it."""

    expression: TimeExpression
    word_count: int


def read_time(line: Sequence[str], today: date, is_strict: bool = False) -> ParsedTime | None:
    """Read the time at the beginning of a line, or return None if it doesn't begin with a time.

    With `is_strict`, the line follows other text, so "20 minutes" isn't read as "in 20 minutes".
    """
    cursor = WordCursor(line, is_strict)
    expression = TimeExpression()
    rules = _RULES
    while not cursor.is_done:
        new_expression = _apply_first_rule(rules, cursor, expression, today)
        if new_expression is None:
            break
        expression = new_expression
        rules = _RULES_AFTER_DAY if expression.has_day else _RULES
    if expression.has_day or expression.has_clock:
        return ParsedTime(expression, cursor.position)
    return None


def _apply_first_rule(
    rules: Sequence[Rule], cursor: WordCursor, expression: TimeExpression, today: date
) -> TimeExpression | None:
    """Return the expression with the changes of the first rule that fits, or None if none fits."""
    start = cursor.position
    for rule in rules:
        attempt = replace(expression)
        if rule(cursor, attempt, today) and cursor.position > start:
            return attempt
        cursor.position = start
    return None


# --- Moments and clock times ---


def _read_instant(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read a date and time in ISO format: ``2026-12-01T10:00``."""
    cursor.take("at", "on")
    moment = cursor.read_instant()
    if moment is None:
        return False
    expression.day = moment.date()
    if moment.tzinfo is not None:
        expression.moment = moment
    else:
        expression.clocks = (ClockTime(moment.hour, moment.minute),)
    return True


def _read_span_from_now(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read a time from now: ``in 20 minutes``, ``2 hours from now``.

    At the front of a line, a span in digits is enough: ``1h30m``.
    """
    has_in = cursor.take("in") is not None
    begins_line = cursor.position == 0 and not cursor.is_strict and cursor.peek()[:1].isdigit()
    expression.span = cursor.read_span()
    has_from_now = cursor.take("from now", "from today", "later") is not None
    return any(expression.span or ()) and (has_in or has_from_now or begins_line)


def _read_clock(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read a clock time: ``at 9``, ``around 17:30``. Times with "around" are uncertain.

    After a day, a bare number is an uncertain clock time: the ``9`` of "tomorrow 9".
    """
    if expression.clocks:
        return False
    is_vague = cursor.take("around", "at around", "at about") is not None
    has_at = cursor.take("at", "@") is not None
    clock = cursor.read_clock(has_at or is_vague)
    follows_day = expression.day is not None and not cursor.is_strict and not expression.part
    if clock is None and follows_day:
        clock = cursor.read_clock(True)
        is_vague = True
    if clock is None:
        return False
    expression.clocks = (clock,)
    if is_vague:
        expression.is_certain = False
    return True


def _read_further_clock(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read a further clock time: the ``and 21`` of "every day at 9 and 21"."""
    if not expression.is_repeated or not expression.clocks or not cursor.take("and", "&"):
        return False
    has_at = cursor.take("at") is not None
    clock = cursor.read_clock(True)
    if clock is None:
        return False
    expression.clocks = (*expression.clocks, clock)
    if not has_at and clock.is_bare and not cursor.is_done:
        expression.is_certain = False
    return True


def _read_part_of_day(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read a part of the day: ``in the morning``, ``at night``, ``this evening``.

    Right after a day, the name of the part is enough: the ``morning`` of "friday morning".
    """
    if expression.part:
        return False
    lead = cursor.take("in the", "at", "during the", "this")
    if lead or expression.day or expression.weekdays:
        expression.part = cursor.take(*PART_OF_DAY_HOURS)
    if lead == "this" and not expression.has_day:
        expression.day = today
    return expression.part is not None


# --- Days ---


def _read_day(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read a day: ``tomorrow``, ``next week``, ``3 May``, ``friday``."""
    name = cursor.take(*word_tables()["days"])
    if name is not None:
        expression.day = today + timedelta(days=word_tables()["days"][name])
        if name == "tonight":
            expression.part = "night"
        return True
    if cursor.take("next"):
        return _read_next(cursor, expression, today)
    return _read_date(cursor, expression) or _read_weekday(cursor, expression, today)


def _read_next(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read the words after "next": ``week on friday``, ``month on the 3rd``, ``friday``.

    A week or month without a day means its first day, which is uncertain.
    """
    next_monday = today + timedelta(days=7 - today.weekday())
    if cursor.take("week"):
        cursor.take("on")
        weekday = cursor.read_weekday()
        expression.day = next_monday + timedelta(days=weekday or 0)
        expression.is_certain = weekday is not None
    elif cursor.take("month"):
        first = add_months(today.replace(day=1), 1)
        cursor.take("on")
        number = cursor.read_ordinal() if cursor.take("the") else None
        expression.day = date_if_valid(first.year, first.month, number or 1)
        expression.is_certain = number is not None
    elif (weekday := cursor.read_weekday()) is not None:
        expression.day = next_monday + timedelta(days=weekday)
        # On a Wednesday, "next friday" is in two days for some people and in nine for others.
        expression.is_certain = (expression.day - today).days <= 7
    return expression.day is not None


def _read_weekday(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read a weekday: ``friday``, ``on friday``, ``friday next week``, ``friday 27 november``.

    A short form such as "sat" is uncertain unless the words around it show that it is a day.
    """
    has_lead = cursor.take("on", "this", "coming", "this coming") is not None
    word = cursor.peek()
    weekday = cursor.read_weekday()
    if weekday is None:
        return False
    if cursor.take("next week"):
        expression.day = today + timedelta(days=7 - today.weekday() + weekday)
    elif _read_date(cursor, expression):
        expression.stated_weekday = weekday
    else:
        expression.weekdays = (weekday,)
        is_written_out = len(word) > 5
        has_clock = bool(expression.clocks) or cursor.peek() in ("at", "@")
        expression.is_certain = has_lead or is_written_out or cursor.is_done or has_clock
    return True


def _read_date(cursor: WordCursor, expression: TimeExpression) -> bool:
    """Read a date: ``2026-12-01``, ``3 May 2027``, ``May 3rd``, ``24.12.``, ``the 3rd``.

    A date is uncertain if it may be a number (``3.5``) or if the day and month may be swapped
    (``3/5``).
    """
    start = cursor.position
    has_on = cursor.take("on") is not None
    is_clearly_date = has_on or cursor.is_dotted()
    day = cursor.read_number_date()
    if day is not None and day.year is None and cursor.is_strict and not is_clearly_date:
        cursor.position = start
        day = None
    if day is None:
        day = cursor.read_month_day()
    if day is None:
        is_read = _read_day_of_month(cursor, expression, has_on)
        if not is_read:
            cursor.position = start
        return is_read

    may_be_number = day.is_dotted and not is_clearly_date and day.year is None
    if day.is_ambiguous or may_be_number:
        expression.is_certain = False
    if day.year is None:
        expression.month = day.month
        expression.month_days = (day.day,)
    else:
        expression.day = date(day.year, day.month, day.day)
    return True


def _read_day_of_month(cursor: WordCursor, expression: TimeExpression, has_on: bool) -> bool:
    """Read a day of the month: ``the 3rd``, ``on 3rd``. A day without "on" is uncertain."""
    has_the = cursor.take("the") is not None
    if not has_on and not has_the:
        return False
    if cursor.is_strict and not cursor.peek()[:1].isdigit():
        return False
    number = cursor.read_ordinal()
    if number is None or number < 0 or cursor.peek() in WEEKDAYS:
        return False
    cursor.take("of the month", "of this month")
    expression.month_days = (number,)
    expression.is_certain = has_on
    return True


# --- Repetition ---


def _read_repetition(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read a repetition: ``every monday``, ``daily``, ``on the 1st of every month``."""
    cursor.take("on")
    expression.is_repeated = True
    # The tables map a word to the words that could follow "every", e.g. "daily" to "day".
    words_after_every = cursor.look_up("repeated") or cursor.look_up("weekday_groups")
    if words_after_every:
        return _read_every(WordCursor(words_after_every.split()), expression)
    if _PLURAL_WEEKDAYS.fullmatch(cursor.peek()) or cursor.take("every", "each"):
        return _read_every(cursor, expression)
    return _read_nth(cursor, expression)


def _read_every(cursor: WordCursor, expression: TimeExpression) -> bool:
    """Read the words after "every": a weekday, a date, a part of the day or an interval."""
    if weekdays := cursor.look_up("every_weekday_groups"):
        expression.weekdays = tuple(weekdays)
        expression.is_certain = len(weekdays) > 2
    elif part := cursor.take(*PART_OF_DAY_HOURS):
        expression.span = Span(days=1)
        expression.part = part
    elif cursor.peek() in ("noon", "midday", "midnight"):
        expression.span = Span(days=1)
    elif month_day := cursor.read_month_day():
        expression.span = Span(months=12)
        expression.month = month_day.month
        expression.month_days = (month_day.day,)
    elif _read_nth(cursor, expression, has_every=True):
        pass
    elif word := cursor.take("other", "second"):
        expression.is_certain = word == "other"
        _read_every_other(cursor, expression)
    else:
        expression.weekdays = cursor.read_weekdays()
        expression.span = None if expression.weekdays else cursor.read_span("every_span")
    return bool(expression.weekdays or expression.month_days or any(expression.span or ()))


def _read_every_other(cursor: WordCursor, expression: TimeExpression) -> None:
    """Read the words after "every other": ``friday`` is every 14 days, ``day`` every 2 days."""
    weekday = cursor.read_weekday()
    if weekday is not None:
        expression.span = Span(days=14)
        expression.weekdays = (weekday,)
    elif span := cursor.read_span("every_span"):
        expression.span = Span(span.months * 2, span.days * 2, span.seconds * 2)


def _read_nth(cursor: WordCursor, expression: TimeExpression, *, has_every: bool = False) -> bool:
    """Read days of every month: ``first monday of every month``, ``1st and 15th of the month``.

    With `has_every`, "every" comes before these words, so ``3rd`` or ``last friday`` is enough.
    """
    start = cursor.position
    match = cursor.match("nth")
    if match is None:
        return False
    # After "every", an ending such as "of the month" is enough. Otherwise, the ending itself must
    # contain "every": "first monday of every month".
    is_monthly = bool(match["ending"] if has_every else match["each"])
    if match["weekday"]:
        expression.weekdays = (word_tables()["weekdays"][match["weekday"]],)
        expression.nth = parse_ordinal(match["nth"])
        # "Every second monday" means every other Monday, not the second Monday of each month.
        is_read = is_monthly or (has_every and expression.nth != 2)
    else:
        ordinals = word_pattern("ordinal").finditer(match["days"])
        expression.month_days = tuple(parse_ordinal(ordinal[0]) for ordinal in ordinals)
        is_number = match["days"][0].isdigit() and not match[0].endswith("day")
        is_clear = is_monthly or (has_every and is_number)
        if not is_clear:
            expression.is_certain = False
        # "1st and 15th of the month" repeats even without "every".
        has_several_days = bool(match["ending"]) and len(expression.month_days) > 1
        is_read = is_clear or has_several_days
    if not is_read:
        cursor.position = start
        expression.weekdays = ()
        expression.nth = None
        expression.month_days = ()
    return is_read


def _read_day_of_repetition(cursor: WordCursor, expression: TimeExpression, today: date) -> bool:
    """Read the day of a repetition: ``on monday`` after "every week", ``on the 3rd`` after "every
    month", ``on 3 May`` after "every year"."""
    span = expression.span
    if span is None or not expression.is_repeated or expression.weekdays or expression.month_days:
        return False
    has_on = cursor.take("on", "on the", "the") is not None
    if span.months == 12 and (month_day := cursor.read_month_day()):
        expression.month = month_day.month
        expression.month_days = (month_day.day,)
        return True
    if span.months:
        return has_on and _read_nth(cursor, expression, has_every=True)
    expression.weekdays = cursor.read_weekdays()
    return bool(expression.weekdays) and span.days > 0 and span.days % 7 == 0


# The order matters: the first rule that fits is used.
_RULES: tuple[Rule, ...] = (
    _read_instant,
    _read_repetition,
    _read_span_from_now,
    _read_day_of_repetition,
    _read_further_clock,
    _read_part_of_day,
    _read_day,
    _read_clock,
)
_RULES_AFTER_DAY: tuple[Rule, ...] = (
    _read_day_of_repetition,
    _read_further_clock,
    _read_part_of_day,
    _read_clock,
)
