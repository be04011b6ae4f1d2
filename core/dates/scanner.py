"""A cursor over the words of a typed line that knows numbers, spans of time, clock times and lists of weekdays.

Takes words from the front and says what they mean; knows nothing about today. All patterns look at one word and are
bounded, so no line is slow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
PARTS = {"morning": 9, "afternoon": 15, "evening": 19, "night": 20}
"""Hours meant by a part of the day without a clock time."""

_SHORT_DAYS = {
    "mon": 0, "tue": 1, "tues": 1, "wed": 2, "weds": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4, "sat": 5, "sun": 6,
}  # fmt: skip
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "forty-five": 45,
    "fifty": 50, "sixty": 60, "ninety": 90,
}  # fmt: skip
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}
_SECOND, _MINUTE, _HOUR_S, _DAY, _WEEK = (0, 0, 1), (0, 0, 60), (0, 0, 3600), (0, 1, 0), (0, 7, 0)
_FORTNIGHT, _MONTH, _YEAR = (0, 14, 0), (1, 0, 0), (12, 0, 0)
_UNITS = {
    "second": _SECOND, "seconds": _SECOND, "sec": _SECOND, "secs": _SECOND, "s": _SECOND,
    "minute": _MINUTE, "minutes": _MINUTE, "min": _MINUTE, "mins": _MINUTE, "m": _MINUTE,
    "hour": _HOUR_S, "hours": _HOUR_S, "hr": _HOUR_S, "hrs": _HOUR_S, "h": _HOUR_S,
    "day": _DAY, "days": _DAY, "d": _DAY, "week": _WEEK, "weeks": _WEEK, "wk": _WEEK, "wks": _WEEK, "w": _WEEK,
    "fortnight": _FORTNIGHT, "fortnights": _FORTNIGHT, "month": _MONTH, "months": _MONTH,
    "year": _YEAR, "years": _YEAR, "yr": _YEAR, "yrs": _YEAR,
}  # fmt: skip
_NUMBER = re.compile(r"(\d{1,5})(?:[.,](\d{1,2}))?")
_ORDINAL = re.compile(r"(\d{1,2})(?:st|nd|rd|th)")
_COMPACT = re.compile(
    r"(?=\d)(?:(\d{1,3})w)?(?:(\d{1,4})d)?(?:(\d{1,4})h(?:rs?)?)?(?:(\d{1,5})m(?:ins?)?)?(?:(\d{1,6})s(?:ecs?)?)?"
)
_HALF_COMPACT = re.compile(r"(\d{1,2})h(\d{2})")
_CLOCK = re.compile(r"(\d{1,2})([:h])(\d{2})(?::\d{2})?(am|pm|a\.m|p\.m)?")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{2})(am|pm|a\.m|p\.m)?")
_HOUR = re.compile(r"(\d{1,2})(am|pm|a\.m|p\.m)")
_BARE = re.compile(r"(\d{1,2})h?")
_MILITARY = re.compile(r"(\d{2})(\d{2})")
_RANGE = re.compile(r"([a-z]{3,9})[-–]([a-z]{3,9})")

Span = tuple[int, int, int]
"""Months, days, seconds."""
Clock = tuple[int, int, bool]
"""Hour, minute, and whether it is a bare hour that could be of the morning or of the afternoon."""


class Phrase:
    """Words and how many of them are taken (`at`). Methods return None and take nothing where they do not fit.

    `is_strict`: the words stand behind other text, so only forms that can be nothing but a time count.
    """

    def __init__(self, words: Sequence[str], is_strict: bool = False) -> None:
        self._raw = words
        self._words = [clean(word) for word in words]
        self.at = 0
        self.is_strict = is_strict

    @property
    def is_done(self) -> bool:
        """Whether all words are taken."""
        return self.at >= len(self._words)

    def peek(self, ahead: int = 0) -> str:
        """The next word, or the one `ahead` of it; empty behind the end."""
        index = self.at + ahead
        return self._words[index] if index < len(self._words) else ""

    def raw(self) -> str:
        """The next word as it was typed; empty behind the end."""
        return self._raw[self.at] if self.at < len(self._raw) else ""

    def take(self, *options: str) -> str | None:
        """The first of `options` (each one or several words) that comes next."""
        for option in options:
            wanted = option.split()
            if self._words[self.at : self.at + len(wanted)] == wanted:
                self.at += len(wanted)
                return option
        return None

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next word, if all of it fits."""
        found = pattern.fullmatch(self.peek())
        if found is not None:
            self.at += 1
        return found

    def weekday(self) -> int | None:
        """0 for Monday; a short form only where it cannot be another word."""
        word = self.peek()
        if word in WEEKDAYS:
            self.at += 1
            return WEEKDAYS.index(word)
        if word in _SHORT_DAYS and not self.is_strict:
            self.at += 1
            return _SHORT_DAYS[word]
        return None

    def weekdays(self) -> tuple[int, ...] | None:
        """``monday and wednesday``, ``mon, wed, fri``, ``monday to friday``, ``mon-fri``, ``mondays``."""
        days = self._some_days()
        if days is None:
            return None
        while True:
            here = self.at
            self.take("and", "&", "or")
            more = self._some_days()
            if more is None:
                self.at = here
                return tuple(sorted(set(days)))
            days += more

    def _some_days(self) -> list[int] | None:
        both = _RANGE.fullmatch(self.peek())
        if both and (first := _day(both[1])) is not None and (last := _day(both[2])) is not None:
            self.at += 1
            return _through(first, last)
        day = _day(self.peek())
        if day is None:
            return None
        self.at += 1
        behind = self.at
        if self.take("to", "through", "until", "-", "–") and (last := _day(self.peek())) is not None:
            self.at += 1
            return _through(day, last)
        self.at = behind
        return [day]

    def month(self) -> int | None:
        """1 for January, also as ``jan``."""
        word = self.peek()
        for number, name in enumerate(MONTHS, 1):
            if word == name or (word == name[:3] and len(word) == 3) or (word == "sept" and number == 9):
                self.at += 1
                return number
        return None

    def ordinal(self) -> int | None:
        """``3rd`` or ``third``; -1 for ``last``."""
        word = self.peek()
        found = _ORDINAL.fullmatch(word)
        value = int(found[1]) if found else _ORDINALS.get(word)
        if value is None or value == 0 or value > 31:
            return None
        self.at += 1
        return value

    def span(self, is_bare_unit: bool = False) -> Span | None:
        """``20 minutes``, ``an hour and a half``, ``1h30m``, ``2 days and 3 hours``; with `is_bare_unit` also ``hour``.
        Parts of a second are dropped."""
        start = self.at
        total = self._one_span(is_bare_unit)
        if total is None:
            self.at = start
            return None
        while True:
            here = self.at
            self.take("and", "&")
            more = self._one_span(False) if self.peek() not in ("a", "an") else None
            if more is None or _size(more) >= _size(total):
                self.at = here
                return total
            total = (total[0] + more[0], total[1] + more[1], total[2] + more[2])

    def _one_span(self, is_bare_unit: bool) -> Span | None:
        if self.take("half an hour", "a half hour", "half hour", "half-hour"):
            return (0, 0, 1800)
        if self.take("a quarter of an hour", "quarter of an hour", "a quarter hour"):
            return (0, 0, 900)
        if self.take("three quarters of an hour"):
            return (0, 0, 2700)
        if found := self.match(_COMPACT) or self.match(_HALF_COMPACT):
            groups = [int(group or 0) for group in found.groups()]
            weeks, days, hours, minutes, seconds = groups if len(groups) == 5 else [0, 0, *groups, 0]
            return (0, weeks * 7 + days, hours * 3600 + minutes * 60 + seconds)
        hundredths = self._hundredths()
        if hundredths is None:
            if not is_bare_unit or len(self.peek()) == 1:
                return None
            hundredths = 100
        has_half = bool(self.take("and a half"))
        unit = _UNITS.get(self.peek())
        if unit is None:
            return None
        self.at += 1
        if has_half or self.take("and a half"):
            hundredths += 50
        return _times(unit, hundredths)

    def number(self) -> int | None:
        """A whole number: ``3``, ``three``, ``a couple of``."""
        start = self.at
        hundredths = self._hundredths()
        if hundredths is None or hundredths % 100:
            self.at = start
            return None
        return hundredths // 100

    def _hundredths(self) -> int | None:
        """A number in hundredths: ``1.5`` is 150."""
        if self.take("a couple of", "a couple"):
            return 200
        if found := self.match(_NUMBER):
            return int(found[1]) * 100 + int((found[2] or "").ljust(2, "0") or 0)
        word = self.peek()
        if word in _NUMBERS:
            self.at += 1
            return _NUMBERS[word] * 100
        return None

    def clock(self, is_announced: bool) -> Clock | None:
        """``17:30``, ``5pm``, ``9 a.m.``, ``noon``, ``half past five``; behind ``at`` (`is_announced`) also ``9``."""
        start = self.at
        clock = self._clock(is_announced)
        if clock is None:
            self.at = start
            return None
        self.take("sharp")
        return clock

    def _clock(self, is_announced: bool) -> Clock | None:
        if self.take("noon", "midday"):
            return (12, 0, False)
        if self.take("midnight"):
            return (0, 0, False)
        if spoken := self.take("half past", "quarter past", "a quarter past", "quarter to", "a quarter to"):
            hundredths = self._hundredths()
            if hundredths is None or hundredths % 100 or not 1 <= hundredths // 100 <= 12:
                return None
            minute = {"half past": 30, "past": 15, "to": -15}[spoken if spoken == "half past" else spoken.split()[-1]]
            hour = hundredths // 100 - (minute < 0)
            return self._half_day(hour, minute % 60, None, True)
        if found := self.match(_CLOCK):
            is_bare = found[2] == "h" and not is_announced
            return self._half_day(int(found[1]), int(found[3]), found[4], is_bare)
        if found := self.match(_HOUR):
            return self._half_day(int(found[1]), 0, found[2], False)
        if is_announced and (found := self.match(_DOTTED)):
            return self._half_day(int(found[1]), int(found[2]), found[3], False)
        if is_announced and (found := self.match(_MILITARY)):
            return self._half_day(int(found[1]), int(found[2]), None, False)
        return self._hour(is_announced)

    def _hour(self, is_announced: bool) -> Clock | None:
        if found := self.match(_BARE):
            hour, is_plain = int(found[1]), not found[1].startswith("0") and not found[0].endswith("h")
        elif self.peek() in _NUMBERS and self.peek() not in ("a", "an"):
            hour, is_plain = _NUMBERS[self.peek()], True
            self.at += 1
        else:
            return None
        has_suffix = self.peek() in ("am", "pm", "a.m", "p.m")
        is_told = bool(self.take("o'clock", "o’clock")) or has_suffix
        return self._half_day(hour, 0, None, is_plain) if is_announced or is_told else None

    def _half_day(self, hour: int, minute: int, suffix: str | None, is_bare: bool) -> Clock | None:
        suffix = suffix or self.take("am", "pm", "a.m", "p.m")
        if suffix and hour <= 12:
            is_bare = False
            hour = hour % 12 + (12 if suffix[0] == "p" else 0)
        if hour > 23 or minute > 59:
            return None
        return (hour, minute, is_bare and 1 <= hour <= 12)


def clean(word: str) -> str:
    """A word as it is compared: lower case, without the punctuation behind it."""
    return word[:40].lower().rstrip(",;:!?.") or word[:40]


def _day(word: str) -> int | None:
    if word in WEEKDAYS:
        return WEEKDAYS.index(word)
    if word.endswith("s") and word[:-1] in WEEKDAYS:
        return WEEKDAYS.index(word[:-1])
    return _SHORT_DAYS.get(word)


def _through(first: int, last: int) -> list[int]:
    return [(first + step) % 7 for step in range((last - first) % 7 + 1)]


def _size(span: Span) -> int:
    return span[0] * 30 * 86400 + span[1] * 86400 + span[2]


def _times(unit: Span, hundredths: int) -> Span | None:
    """A unit so many hundredths of times; half a month or year is nothing certain, half a day is twelve hours."""
    months, days, seconds = unit
    if months * hundredths % 100:
        return None
    whole_days, rest = divmod(days * hundredths, 100)
    return (months * hundredths // 100, whole_days, (seconds * hundredths + rest * 86400) // 100)
