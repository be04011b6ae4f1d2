"""The English of time: a cursor over the words of a line that reads numbers, dates, spans and clock times, and rules
for which words at its front name a day, a clock time, a span or a repetition.

What could mean something else makes the result uncertain; `When` does the arithmetic. Every pattern is bounded, so no
line is slow.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from core.dates.schedule import PARTS, Clock, Span, When, calendar_day, later
from core.text.normalize import language_data

WEEKDAYS = tuple(map(str.lower, calendar.day_name))
MONTHS = tuple(map(str.lower, calendar.month_name[1:]))
_PLURALS = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days")
_READ_WORDS = 24


class Day(NamedTuple):
    """A date that the calendar has; `is_dotted`: ``24.12.``, `is_ambiguous`: ``3/5``."""

    year: int | None
    month: int
    day: int
    is_dotted: bool = False
    is_ambiguous: bool = False


@cache
def words() -> Mapping[str, Any]:
    """The tables of `data/words.toml`."""
    return language_data("words", "core.dates")


@cache
def pattern(name: str, end: str = r"(?!\S)") -> re.Pattern[str]:
    """A pattern over several words of `data/words.toml`, which names tables and other patterns as ``%(units)s``."""
    return re.compile(f"(?:{_spelled_out(words()['patterns'][name])}){end}", re.VERBOSE)


def _spelled_out(text: str) -> str:
    """With the words of each named table, and each named pattern without the names of its groups."""

    def embedded(found: re.Match[str]) -> str:
        if inner := words()["patterns"].get(found[1]):
            return f"(?:{re.sub('[?]P<[^>]+>', '?:', _spelled_out(inner))})"
        return f"(?:{'|'.join(sorted(map(re.escape, words()[found[1]]), key=len, reverse=True))})"

    return re.sub(r"%\((\w+)\)s", embedded, text)


class Phrase:
    """Words and how many of them are taken (`at`). Methods return None and take nothing where they do not fit.

    `is_strict`: the words stand behind other text, so only forms that can be nothing but a time count.
    """

    def __init__(self, line: Sequence[str], is_strict: bool = False) -> None:
        self._raw = line
        self._words = [clean(word) for word in line]
        self.at = 0
        self.is_strict = is_strict

    @property
    def is_done(self) -> bool:
        return self.at >= len(self._words)

    def peek(self) -> str:
        """The next word; empty behind the end."""
        return "" if self.is_done else self._words[self.at]

    def is_dotted(self) -> bool:
        """Whether the next word was typed with a full stop."""
        return not self.is_done and self._raw[self.at].endswith(".")

    def take(self, *options: str) -> str | None:
        """The first of `options` (each one or several words) that comes next."""
        for option in options:
            wanted = option.split()
            if self._words[self.at : self.at + len(wanted)] == wanted:
                self.at += len(wanted)
                return option
        return None

    def read(self, name: str) -> re.Match[str] | None:
        """The next words, as far as they fit a `pattern`."""
        found = pattern(name).match(" ".join(self._words[self.at : self.at + _READ_WORDS]))
        self.at += len(found[0].split()) if found else 0
        return found

    def look_up(self, table: str) -> Any:
        """What the next words stand for in a table of `words`."""
        named = self.take(*words()[table])
        return None if named is None else words()[table][named]

    def weekday(self) -> int | None:
        """0 for Monday; a short form only where it cannot be another word."""
        return None if self.is_strict and self.peek() not in WEEKDAYS else self.look_up("weekdays")

    def weekdays(self) -> tuple[int, ...]:
        """``monday and wednesday``, ``mon, wed, fri``, ``monday to friday``, ``mon-fri``, ``mondays``."""
        days: set[int] = set()
        behind = self.at
        while found := self.read("weekday_range"):
            first, last = (words()["weekdays"][name] for name in (found["first"], found["last"] or found["first"]))
            days.update((first + step) % 7 for step in range((last - first) % 7 + 1))
            behind = self.at
            self.take("and", "&", "or")
        self.at = behind
        return tuple(sorted(days))

    def year(self) -> int | None:
        return int(found[0]) if (found := self.read("year")) else None

    def ordinal(self) -> int | None:
        """``3rd`` or ``third``; -1 for ``last``."""
        return _ordinal(found[0]) if (found := self.read("ordinal")) else None

    def month_day(self) -> Day | None:
        """``3 May``, ``the 3rd of May 2027``, ``May 3``."""
        start = self.at
        if (found := self.read("month_day")) is None:
            return None
        month = words()["months"][found["month"] or found["before"]]
        return self._checked(Day(self.year(), month, _ordinal(found["day"] or found["behind"])), start)

    def number_date(self) -> Day | None:
        """``2026-12-01``, ``24.12.``, ``24.12.2026``, ``24/12``, ``12/24``; the day first where both are possible."""
        start = self.at
        if (found := self.read("number_date")) is None:
            return None
        if found["year"]:
            return self._checked(Day(int(found["year"]), int(found["month"]), int(found["day"])), start)
        day, month = int(found["first"]), int(found["second"])
        is_dotted = found["mark"] == "."
        is_ambiguous = not is_dotted and month <= 12 and day <= 12 and day != month
        if month > 12 and not is_dotted:
            day, month = month, day
        return self._checked(Day(int(found["last"] or 0) or None, month, day, is_dotted, is_ambiguous), start)

    def _checked(self, day: Day, start: int) -> Day | None:
        # Without a year a leap year: it has all days there are.
        if calendar_day(2028 if day.year is None else day.year, day.month, day.day) is not None:
            return day
        self.at = start
        return None

    def instant(self) -> datetime | None:
        """``2026-12-01T10:00``, aware where an offset is given."""
        start = self.at
        found = self.read("instant")
        try:
            return datetime.fromisoformat(found[0].upper()) if found else None
        except ValueError:
            self.at = start
            return None

    def span(self, name: str = "span") -> Span | None:
        """``20 minutes``, ``an hour and a half``, ``1h30m``, ``2 days and 3 hours``; as an `every_span` also ``hour``.
        Parts of a second are dropped."""
        start = self.at
        if (found := self.read(name)) is None:
            return None
        total = [Fraction(0)] * 3
        for part in pattern("span_part", "").finditer(found[0]):
            half = Fraction(1, 2) if part["half"] or part["too"] else 0
            count = _number(part["number"] or part["rest"] or "1") + half
            size = words()["spoken_spans"].get(part["spoken"]) or words()["units"][part["unit"] or "m"]
            total = [sum_ + count * one for sum_, one in zip(total, size, strict=True)]
        months, days, seconds = total
        if months % 1:
            self.at = start  # half a month is nothing certain
            return None
        return Span(int(months), int(days), int(seconds + days % 1 * 86400))

    def clock(self, is_announced: bool) -> Clock | None:
        """``17:30``, ``5pm``, ``9 a.m.``, ``noon``, ``half past five``; behind ``at`` (`is_announced`) also ``9``."""
        start = self.at
        found = self.read("clock")
        clock = _clock_of(found, is_announced) if found else None
        self.at = start if clock is None else self.at
        return clock


def clean(word: str) -> str:
    """A word as it is compared: lower case, without the punctuation behind it."""
    return word[:40].lower().rstrip(",;:!?.") or word[:40]


def _clock_of(found: re.Match[str], is_announced: bool) -> Clock | None:
    if found["named"]:
        return Clock(0 if found["named"] == "midnight" else 12)
    if found["spoken"]:
        hour = int(_number(found["spoken"])) - bool(found["to"])
        minute = 30 if found["quarter"] is None else 45 if found["to"] else 15
        return Clock(hour, minute, is_bare=True) if 1 <= hour <= 12 else None
    is_sure = is_announced or found["half"] or found["oclock"] or found["mark"] in (":", "h")
    return _numbered_clock(found, is_announced) if is_sure else None


def _numbered_clock(found: re.Match[str], is_announced: bool) -> Clock | None:
    hour, minute, mark = int(_number(found["hour"])), int(found["minute"] or 0), found["mark"]
    if hour > 23 or minute > 59:
        return None
    if found["half"] and hour <= 12:
        return Clock(hour % 12 + 12 * (found["half"][0] == "p"), minute)
    is_bare = not is_announced if mark == "h" else mark is None and not (found["h"] or found["hour"][0] == "0")
    return Clock(hour, minute, is_bare and 1 <= hour <= 12)


def _number(text: str) -> Fraction:
    return Fraction(words()["numbers"].get(text.strip()) or text.replace(",", "."))


def _ordinal(text: str) -> int:
    return int(words()["ordinals"].get(text) or re.sub(r"\D", "", text))


Step = Callable[[Phrase, When, date], bool]
"""Takes words and notes what they say; False where they do not fit, whatever it took or noted by then."""


def read(line: Sequence[str], today: date, is_strict: bool = False) -> tuple[When, int] | None:
    """What the first words of `line` say about time and how many those are; None when they do not begin with a time.
    `is_strict` for words behind other text, where "20 minutes" is more likely to be a length than a moment."""
    phrase, when, steps = Phrase(line, is_strict), When(), iter(_STEPS)
    while not phrase.is_done and (step := next(steps, None)):
        start, more = phrase.at, replace(when)
        if step(phrase, more, today) and phrase.at > start:
            when, steps = more, iter(_BEHIND_A_DAY if more.has_day else _STEPS)
        else:
            phrase.at = start
    return (when, phrase.at) if when.has_day or when.has_clock else None


def _instant(phrase: Phrase, when: When, today: date) -> bool:
    phrase.take("at", "on")
    if (moment := phrase.instant()) is None:
        return False
    when.day = moment.date()
    if moment.tzinfo is not None:
        when.moment = moment
    else:
        when.clocks = (Clock(moment.hour, moment.minute),)
    return True


def _in_span(phrase: Phrase, when: When, today: date) -> bool:
    """``in 20 minutes``, ``2 hours from now``; at the front also ``1h30m``."""
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
        when.part = phrase.take(*PARTS)
    if lead == "this" and not when.has_day:
        when.day = today
    return when.part is not None


def _day(phrase: Phrase, when: When, today: date) -> bool:
    if named := phrase.take(*words()["days"]):
        when.day = today + timedelta(days=words()["days"][named])
        when.part = "night" if named == "tonight" else when.part
        return True
    if phrase.take("next"):
        return _next(phrase, when, today)
    return _written(phrase, when) or _on_weekday(phrase, when, today)


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


def _on_weekday(phrase: Phrase, when: When, today: date) -> bool:
    """``friday``, ``on friday``, ``friday next week``, ``friday 27 november``."""
    is_led = bool(phrase.take("on", "this", "coming", "this coming"))
    word, weekday = phrase.peek(), phrase.weekday()
    if weekday is None:
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
    """A date: ``2026-12-01``, ``3 May 2027``, ``May 3rd``, ``24.12.``; ``the 3rd``, ``on 3rd``."""
    start = phrase.at
    is_led = bool(phrase.take("on"))
    is_dated = is_led or phrase.is_dotted()
    found = phrase.number_date()
    if found is not None and found.year is None and phrase.is_strict and not is_dated:
        phrase.at, found = start, None
    found = found or phrase.month_day()
    if found is None:
        is_read = _month_day(phrase, when, is_led)
        phrase.at = phrase.at if is_read else start
        return is_read
    is_doubtful = found.is_ambiguous or (found.is_dotted and not is_dated and found.year is None)
    when.is_certain = when.is_certain and not is_doubtful
    if found.year is None:
        when.month, when.month_days = found.month, (found.day,)
    else:
        when.day = date(found.year, found.month, found.day)
    return True


def _month_day(phrase: Phrase, when: When, is_led: bool) -> bool:
    """``the 3rd``, ``on 3rd``."""
    is_named = bool(phrase.take("the"))
    is_number = phrase.peek()[:1].isdigit() or not phrase.is_strict
    number = phrase.ordinal() if (is_led or is_named) and is_number else None
    if number is None or number < 0 or phrase.peek() in WEEKDAYS:
        return False
    phrase.take("of the month", "of this month")
    when.month_days, when.is_certain = (number,), is_led
    return True


def _repeat(phrase: Phrase, when: When, today: date) -> bool:
    """``every monday``, ``daily``, ``weekdays``, ``mondays``, ``on the 1st of every month``."""
    phrase.take("on")
    when.is_repeated = True
    if words_behind_every := phrase.look_up("repeated") or phrase.look_up("weekday_groups"):
        return _every(Phrase(words_behind_every.split()), when)
    if _PLURALS.fullmatch(phrase.peek()) or phrase.take("every", "each"):
        return _every(phrase, when)
    return _nth(phrase, when)


def _every(phrase: Phrase, when: When) -> bool:
    if weekdays := phrase.look_up("every_weekday_groups"):
        when.weekdays, when.is_certain = tuple(weekdays), len(weekdays) > 2
    elif (part := phrase.take(*PARTS)) or phrase.peek() in ("noon", "midday", "midnight"):
        when.span, when.part = Span(days=1), part or when.part
    elif month_day := phrase.month_day():
        when.span, when.month, when.month_days = Span(months=12), month_day.month, (month_day.day,)
    elif _nth(phrase, when, is_every=True):
        pass
    elif named := phrase.take("other", "second"):
        when.is_certain = named == "other"
        if (weekday := phrase.weekday()) is not None:
            when.span, when.weekdays = Span(days=14), (weekday,)
        elif span := phrase.span("every_span"):
            when.span = Span(*(part * 2 for part in span))
    else:
        when.weekdays = phrase.weekdays()
        when.span = None if when.weekdays else phrase.span("every_span")
    return bool(when.weekdays or when.month_days or any(when.span or ()))


def _nth(phrase: Phrase, when: When, *, is_every: bool = False) -> bool:
    """``first monday of every month``, ``1st and 15th of the month``, ``last day of each month``; behind "every"
    (`is_every`) also ``3rd`` and ``last friday``."""
    start = phrase.at
    if (found := phrase.read("nth")) is None:
        return False
    is_monthly = bool(found["ending"] if is_every else found["each"])
    if found["weekday"]:
        when.weekdays, when.nth = (words()["weekdays"][found["weekday"]],), _ordinal(found["nth"])
        # "Every second monday" is every other one.
        is_read = is_monthly or (is_every and when.nth != 2)
    else:
        when.month_days = tuple(_ordinal(day[0]) for day in pattern("ordinal").finditer(found["days"]))
        is_sure = is_monthly or (is_every and found["days"][0].isdigit() and not found[0].endswith("day"))
        when.is_certain = when.is_certain and is_sure
        is_read = is_sure or (bool(found["ending"]) and len(when.month_days) > 1)
    if not is_read:
        phrase.at, when.weekdays, when.nth, when.month_days = start, (), None, ()
    return is_read


def _detail(phrase: Phrase, when: When, today: date) -> bool:
    """Which day of what repeats: ``every week on monday``, ``every month on the 3rd``, ``every year on 3 May``."""
    if when.span is None or not when.is_repeated or when.weekdays or when.month_days:
        return False
    is_led = bool(phrase.take("on", "on the", "the"))
    if when.span.months == 12 and (found := phrase.month_day()):
        when.month, when.month_days = found.month, (found.day,)
        return True
    if when.span.months:
        return is_led and _nth(phrase, when, is_every=True)
    when.weekdays = phrase.weekdays()
    return bool(when.weekdays) and when.span.days > 0 and when.span.days % 7 == 0


_STEPS: tuple[Step, ...] = (_instant, _repeat, _in_span, _detail, _more_clocks, _part, _day, _clock)
_BEHIND_A_DAY: tuple[Step, ...] = (_detail, _more_clocks, _part, _clock)
