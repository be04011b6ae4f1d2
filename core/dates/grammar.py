"""The English of time: which words at the front of a phrase name a day, a clock time, a span or a repetition.

What could mean something else makes the result uncertain; `When` does the arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta

from core.dates.scanner import WEEKDAYS, Clock, Phrase, Span, ordinals, words
from core.dates.schedule import When, calendar_day, later

_PLURALS = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days")

Step = Callable[[Phrase, When, date], bool]
"""Takes words and notes what they say; False where they do not fit, whatever it took or noted by then."""


def read(line: Sequence[str], today: date, is_strict: bool = False) -> tuple[When, int] | None:
    """What the first words of `line` say about time and how many those are; None when they do not begin with a time.
    `is_strict` for words behind other text, where "20 minutes" is more likely to be a length than a moment."""
    phrase, when = Phrase(line, is_strict), When()
    while (more := _more(phrase, when, today)) is not None:
        when = more
    return (when, phrase.at) if when.has_day or when.has_clock else None


def _more(phrase: Phrase, when: When, today: date) -> When | None:
    """What is known after one more step; None, and nothing taken, when no step fits."""
    start = phrase.at
    for step in _STEPS if not phrase.is_done else ():
        more = replace(when)
        if step(phrase, more, today) and phrase.at > start:
            return more
        phrase.at = start
    return None


def _instant(phrase: Phrase, when: When, today: date) -> bool:
    """``2026-12-01T10:00``, with an offset or without."""
    phrase.take("at", "on")
    moment = None if when.has_day else phrase.instant()
    if moment is None:
        return False
    when.day = moment.date()
    if moment.tzinfo is not None:
        when.moment = moment
    else:
        when.clocks = (Clock(moment.hour, moment.minute),)
    return True


def _in_span(phrase: Phrase, when: When, today: date) -> bool:
    """``in 20 minutes``, ``2 hours from now``; at the front also ``1h30m``."""
    if when.has_day:
        return False
    is_led = bool(phrase.take("in"))
    is_front = phrase.at == 0 and not phrase.is_strict and phrase.peek()[:1].isdigit()
    when.span = phrase.span()
    is_followed = bool(phrase.take("from now", "from today", "later"))
    return any(when.span or ()) and (is_led or is_followed or is_front)


def _clock(phrase: Phrase, when: When, today: date) -> bool:
    if when.clocks:
        return False
    is_loose = bool(phrase.take("around", "at around", "at about"))
    clock = phrase.clock(bool(phrase.take("at", "@")) or is_loose)
    if clock is None and when.day is not None and not phrase.is_strict and not when.part:
        clock, is_loose = phrase.clock(True), True
    if clock is None:
        return False
    when.clocks, when.is_certain = (clock,), when.is_certain and not is_loose
    return True


def _more_clocks(phrase: Phrase, when: When, today: date) -> bool:
    """``every day at 9 and 21``."""
    if not when.is_repeated or not when.clocks or not phrase.take("and", "&"):
        return False
    is_announced = bool(phrase.take("at"))
    clock = phrase.clock(True)
    if clock is None:
        return False
    when.clocks = (*when.clocks, clock)
    when.is_certain = when.is_certain and (is_announced or not clock.is_bare or phrase.is_done)
    return True


def _part(phrase: Phrase, when: When, today: date) -> bool:
    """``in the morning``, ``at night``, ``this evening``; directly behind a day also ``morning``."""
    if when.part:
        return False
    lead = phrase.take("in the", "at", "during the", "this")
    if lead or when.day or when.weekdays:
        when.part = phrase.take(*words()["parts"])
    if lead == "this" and not when.has_day:
        when.day = today
    return when.part is not None


def _day(phrase: Phrase, when: When, today: date) -> bool:
    if when.has_day:
        return False
    if named := phrase.take(*words()["days"]):
        when.day = today + timedelta(days=words()["days"][named])
        when.part = "night" if named == "tonight" else when.part
    elif phrase.take("next"):
        return _next(phrase, when, today)
    else:
        return _written(phrase, when) or _weekday(phrase, when, today)
    return True


def _next(phrase: Phrase, when: When, today: date) -> bool:
    monday = today + timedelta(days=7 - today.weekday())
    if phrase.take("week"):
        phrase.take("on")
        weekday = phrase.weekday()
        when.day, when.is_certain = monday + timedelta(days=weekday or 0), weekday is not None
    elif phrase.take("month"):
        first = later(today.replace(day=1), 1)
        phrase.take("on")
        number = phrase.ordinal() if phrase.take("the") else None
        when.day, when.is_certain = calendar_day(first.year, first.month, number or 1), number is not None
    elif (weekday := phrase.weekday()) is not None:
        when.day = monday + timedelta(days=weekday)
        # On a Wednesday "next friday" is in two days for some and in nine for others.
        when.is_certain = (when.day - today).days <= 7
    return when.day is not None


def _weekday(phrase: Phrase, when: When, today: date) -> bool:
    """``friday``, ``on friday``, ``friday next week``, ``friday 27 november``."""
    is_led = bool(phrase.take("on", "this", "coming", "this coming"))
    word = phrase.peek()
    weekday = phrase.look_up(words()["weekdays"])
    if weekday is None or (phrase.is_strict and word not in WEEKDAYS):
        return False
    if phrase.take("next week"):
        when.day = today + timedelta(days=7 - today.weekday() + weekday)
    elif _written(phrase, when):
        when.said_weekday = weekday
    else:
        when.weekdays = (weekday,)
        when.is_certain = is_led or len(word) > 5 or phrase.is_done or bool(when.clocks) or phrase.peek() in ("at", "@")
    return True


def _written(phrase: Phrase, when: When) -> bool:
    """A date: ``2026-12-01``, ``3 May 2027``, ``May 3rd``, ``24.12.``, ``the 3rd``."""
    start = phrase.at
    is_led = bool(phrase.take("on"))
    is_dated = is_led or phrase.raw().endswith(".")
    found = phrase.number_date()
    if found is not None and (found.year is not None or is_dated or not phrase.is_strict):
        is_doubtful = found.is_ambiguous or (found.is_dotted and not is_dated and found.year is None)
        when.is_certain = when.is_certain and not is_doubtful
        return _dated(when, found.year, found.month, found.day)
    phrase.at = start + is_led
    month_day = phrase.month_day()
    if month_day is not None:
        return _dated(when, phrase.year(), *month_day)
    if _month_day(phrase, when, is_led):
        return True
    phrase.at = start
    return False


def _month_day(phrase: Phrase, when: When, is_led: bool) -> bool:
    """``the 3rd``, ``on 3rd``."""
    is_named = bool(phrase.take("the"))
    is_number = phrase.peek()[:1].isdigit() or not phrase.is_strict
    number = phrase.ordinal() if (is_led or is_named) and is_number else None
    if number is None or number < 0 or phrase.peek() in WEEKDAYS:
        return False
    phrase.take("of the month", "of this month")
    when.month_day, when.is_certain = number, is_led
    return True


def _dated(when: When, year: int | None, month: int, day: int) -> bool:
    """Notes a date; without a year the next such day. False where the calendar has none such."""
    if year is None:
        when.month, when.month_day = month, day
        return calendar_day(2028, month, day) is not None
    when.day = calendar_day(year, month, day)
    return when.day is not None


def _repeat(phrase: Phrase, when: When, today: date) -> bool:
    """``every monday``, ``daily``, ``weekdays``, ``mondays``, ``on the 1st of every month``."""
    if when.has_day:
        return False
    phrase.take("on")
    start = phrase.at
    if group := phrase.look_up_phrase("weekday_groups"):
        when.weekdays = group
    elif _PLURALS.fullmatch(phrase.peek()):
        when.weekdays = phrase.weekdays() or ()
    elif word := phrase.take(*words()["repeated"]):
        when.span = Span(*words()["repeated"][word])
        when.part = "night" if word == "nightly" else when.part
    elif phrase.take("every", "each"):
        when.is_repeated = True
        return _every(phrase, when)
    else:
        phrase.at = start
        if not _nth(phrase, when):
            return False
    when.is_repeated = True
    return True


def _every(phrase: Phrase, when: When) -> bool:
    weekdays = phrase.look_up_phrase("every_weekday_groups") or ()
    if weekdays:
        when.weekdays, when.is_certain = weekdays, len(weekdays) > 2
    elif (part := phrase.take(*words()["parts"])) or phrase.peek() in ("noon", "midday", "midnight"):
        when.span, when.part = Span(days=1), part or when.part
    elif month_day := phrase.month_day():
        when.span, (when.month, when.month_day) = Span(months=12), month_day
    elif _nth(phrase, when, is_every=True):
        pass
    elif named := phrase.take("other", "second"):
        when.is_certain = named == "other"
        return _every_other(phrase, when)
    else:
        when.weekdays = phrase.weekdays() or ()
        when.span = None if when.weekdays else phrase.span(is_bare_unit=True)
    return bool(when.weekdays or when.month_days or any(when.span or ()))


def _every_other(phrase: Phrase, when: When) -> bool:
    """``every other monday``, ``every other day``."""
    if (weekday := phrase.weekday()) is not None:
        when.span, when.weekdays = Span(days=14), (weekday,)
    elif span := phrase.span(is_bare_unit=True):
        when.span = Span(*(part * 2 for part in span))
    return when.span is not None


def _nth(phrase: Phrase, when: When, *, is_every: bool = False) -> bool:
    """``first monday of every month``, ``1st and 15th of the month``, ``last day of each month``; behind "every"
    (`is_every`) also ``3rd`` and ``last friday``."""
    start = phrase.at
    found = phrase.read("nth")
    days = ordinals(found["days"]) if found else ()
    if found is not None and max(days) <= 31:
        is_monthly = bool(found["ending"] if is_every else found["each"])
        if found["weekday"] and len(days) == 1 and days[0] <= 5 and (is_monthly or (is_every and days[0] != 2)):
            when.weekdays, when.nth = (words()["weekdays"][found["weekday"]],), days[0]
            return True
        if not found["weekday"] and _nth_days(when, found, days, is_monthly, is_every):
            return True
    phrase.at = start
    return False


def _nth_days(when: When, found: re.Match[str], days: tuple[int, ...], is_monthly: bool, is_every: bool) -> bool:
    is_sure = is_monthly or (is_every and found["days"][0].isdigit() and not found[0].endswith("day"))
    if not is_sure and (found["ending"] is None or len(days) == 1):
        return False
    when.month_days, when.is_certain = days, when.is_certain and is_sure
    return True


def _detail(phrase: Phrase, when: When, today: date) -> bool:
    """Which day of what repeats: ``every week on monday``, ``every month on the 3rd``, ``every year on 3 May``."""
    if when.span is None or not when.is_plain_interval:
        return False
    is_led = bool(phrase.take("on", "on the", "the"))
    if when.span.months:
        found = phrase.month_day() if when.span.months == 12 else None
        when.month, when.month_day = found or (None, None)
        return found is not None or (is_led and _nth(phrase, when, is_every=True))
    when.weekdays = phrase.weekdays() or ()
    return bool(when.weekdays) and when.span.days > 0 and when.span.days % 7 == 0


_STEPS: tuple[Step, ...] = (
    _instant, _repeat, _in_span, _detail, _more_clocks, _part, _day, _clock,
)  # fmt: skip
