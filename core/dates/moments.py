"""The English of time: which words at the front of a phrase name a day, a clock time, a span or a repetition.

Takes only what is certain to be meant so, or says that it is not; the sums are done by `When`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from core.dates.days import day
from core.dates.recurrences import detail, hours, repeat
from core.dates.resolver import When
from core.dates.scanner import PARTS, Phrase

_EXACT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?(?:\.\d{1,6})?(?:Z|[+-]\d{2}:?\d{2})")
_ZONE = re.compile(r"\(?([A-Z][A-Za-z_]{1,20}/[A-Za-z_/+-]{2,40})\)?")

Step = Callable[[Phrase, When, date], bool]
"""Takes words and notes what they say; False where they do not fit, whatever it took or noted by then."""


def wall_time(local: datetime) -> str:
    """``Friday 20 November 2026, 14:05``."""
    return f"{local:%A} {local.day} {local:%B %Y}, {local:%H:%M}"


def read(words: Sequence[str], today: date, is_strict: bool = False) -> tuple[When, int] | None:
    """What the first of `words` say about time and how many those are; None when they do not begin with a time.
    `is_strict` for words behind other text, where "20 minutes" is more likely to be a length than a moment."""
    phrase, when = Phrase(words, is_strict), When()
    while (more := _more(phrase, when, today)) is not None:
        when = more
    return None if when.is_empty else (when, phrase.at)


def _more(phrase: Phrase, when: When, today: date) -> When | None:
    """What is known after one more step; None, and nothing taken, when no step fits."""
    start = phrase.at
    for step in _STEPS if not phrase.is_done else ():
        more = replace(when)
        if step(phrase, more, today) and phrase.at > start:
            return more
        phrase.at = start
    return None


def _exact(phrase: Phrase, when: When, today: date) -> bool:
    """``2026-12-01T10:00:00+01:00``: a moment with its own offset."""
    phrase.take("at", "on")
    if when.has_day or not _EXACT.fullmatch(phrase.raw()):
        return False
    try:
        moment = datetime.fromisoformat(phrase.raw())
    except ValueError:
        return False
    phrase.at += 1
    when.moment, when.day = moment, moment.date()
    return True


def _in_span(phrase: Phrase, when: When, today: date) -> bool:
    """``in 20 minutes``, ``2 hours from now``; at the front also ``1h30m``."""
    if when.has_day:
        return False
    is_led = bool(phrase.take("in"))
    is_front = phrase.at == 0 and not phrase.is_strict and phrase.peek()[:1].isdigit()
    span = phrase.span()
    if span is None or not any(span):
        return False
    is_followed = bool(phrase.take("from now", "from today", "later"))
    when.span = span
    return is_led or is_followed or is_front


def _clock(phrase: Phrase, when: When, today: date) -> bool:
    if when.clocks:
        return False
    is_loose = bool(phrase.take("around", "at around", "at about"))
    is_announced = bool(phrase.take("at", "@")) or is_loose
    clock = phrase.clock(is_announced)
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
    when.is_certain = when.is_certain and (is_announced or not clock[2] or phrase.is_done)
    return True


def _part(phrase: Phrase, when: When, today: date) -> bool:
    """``in the morning``, ``at night``, ``this evening``; directly behind a day also ``morning``."""
    if when.part:
        return False
    if phrase.take("in the", "at", "during the"):
        when.part = phrase.take(*PARTS)
    elif phrase.take("this"):
        when.part = phrase.take(*PARTS)
        if when.part and not when.has_day:
            when.day = today
    elif when.day or when.weekdays:
        when.part = phrase.take(*PARTS)
    return when.part is not None


def _zone(phrase: Phrase, when: When, today: date) -> bool:
    if when.zone or not when.clocks:
        return False
    if phrase.take("utc", "gmt"):
        when.zone = "UTC"
        return True
    found = _ZONE.fullmatch(phrase.raw())
    if found is None:
        return False
    try:
        ZoneInfo(found[1])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    when.zone = found[1]
    phrase.at += 1
    return True


_STEPS: tuple[Step, ...] = (
    _exact, repeat, _in_span, detail, hours, _more_clocks, _part, day, _clock, _zone,
)  # fmt: skip
