"""A cursor over the words of a typed line that reads numbers, dates, spans of time, clock times and weekdays.

Knows nothing about today. Every pattern looks at one word and is bounded, so no line is slow.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip

_NUMBER = re.compile(r"(\d{1,5})(?:[.,](\d{1,2}))?")
_ORDINAL = re.compile(r"(\d{1,2})(?:st|nd|rd|th)")
_COMPACT = re.compile(
    r"(?=\d)(?:(\d{1,3})w)?(?:(\d{1,4})d)?(?:(\d{1,4})h(?:rs?)?)?(?:(\d{1,5})m(?:ins?)?)?(?:(\d{1,6})s(?:ecs?)?)?"
)
_HALF_COMPACT = re.compile(r"()()(\d{1,2})h(\d{2})()")
_CLOCK = re.compile(r"(\d{1,2})([:h.])(\d{2})(?::\d{2})?(am|pm|a\.m|p\.m)?")
_HOUR = re.compile(r"(\d{1,2})(am|pm|a\.m|p\.m)")
_BARE = re.compile(r"(\d{1,2})h?")
_MILITARY = re.compile(r"(\d{2})(\d{2})")
_WEEKDAY_RANGE = re.compile(r"([a-z]{3,9})[-–]([a-z]{3,9})")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:z|[+-]\d\d:?\d\d)?")
_ISO_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_DAY_FIRST = re.compile(r"(\d{1,2})([./])(\d{1,2})(?:[./](\d{4}))?")
_YEAR = re.compile(r"(?:19|20|21)\d{2}")
_DAY_NUMBER = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_HALF_DAYS = ("am", "pm", "a.m", "p.m")

V = TypeVar("V")


class Span(NamedTuple):
    months: int = 0
    days: int = 0
    seconds: int = 0


class Clock(NamedTuple):
    """A wall time; `is_bare`: an hour that could be of the morning or of the afternoon."""

    hour: int
    minute: int = 0
    is_bare: bool = False


class NumberDate(NamedTuple):
    """A date in numbers, not checked against the calendar; `is_dotted`: ``24.12.``, `is_ambiguous`: ``3/5``."""

    year: int | None
    month: int
    day: int
    is_dotted: bool = False
    is_ambiguous: bool = False


@cache
def words() -> Mapping[str, Any]:
    """The tables of `data/words.toml`."""
    return tomllib.loads(files("core.dates").joinpath("data/words.toml").read_text("utf-8"))


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

    def raw(self) -> str:
        """The next word as it was typed; empty behind the end."""
        return "" if self.is_done else self._raw[self.at]

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
        self.at += found is not None
        return found

    def look_up(self, table: Mapping[str, V]) -> V | None:
        found = table.get(self.peek())
        self.at += found is not None
        return found

    def look_up_phrase(self, table: str) -> tuple[int, ...] | None:
        """What the next words stand for in a table of phrases in `words`."""
        phrase = self.take(*words()[table])
        return None if phrase is None else tuple(words()[table][phrase])

    def weekday(self) -> int | None:
        """0 for Monday; a short form only where it cannot be another word."""
        return None if self.is_strict and self.peek() not in WEEKDAYS else self.look_up(words()["weekdays"])

    def weekdays(self) -> tuple[int, ...] | None:
        """``monday and wednesday``, ``mon, wed, fri``, ``monday to friday``, ``mon-fri``, ``mondays``."""
        found = self._some_weekdays()
        more = found
        while more:
            here = self.at
            self.take("and", "&", "or")
            more = self._some_weekdays()
            if not more:
                self.at = here
            found = [*(found or ()), *(more or ())]
        return tuple(sorted(set(found))) if found else None

    def _some_weekdays(self) -> list[int] | None:
        both = self.match(_WEEKDAY_RANGE)
        first = _weekday(both[1] if both else self.peek())
        last = _weekday(both[2]) if both else first
        if first is None or last is None:
            self.at -= both is not None
            return None
        if both is None:
            self.at += 1
            behind = self.at
            end = _weekday(self.peek()) if self.take("to", "through", "until", "-", "–") else None
            last, self.at = (first, behind) if end is None else (end, self.at + 1)
        return [(first + step) % 7 for step in range((last - first) % 7 + 1)]

    def month(self) -> int | None:
        """1 for January, also as ``jan``."""
        return self.look_up(words()["months"])

    def year(self) -> int | None:
        """``2026``."""
        found = self.match(_YEAR)
        return int(found[0]) if found else None

    def ordinal(self) -> int | None:
        """``3rd`` or ``third``; -1 for ``last``."""
        found = _ORDINAL.fullmatch(self.peek())
        value: int = int(found[1]) if found else words()["ordinals"].get(self.peek(), 0)
        self.at += value != 0 and value <= 31
        return value if value != 0 and value <= 31 else None

    def month_day(self) -> tuple[int, int] | None:
        """Month and day of ``3 May``, ``the 3rd of May``, ``May 3``."""
        start = self.at
        self.take("the")
        found = self.match(_DAY_NUMBER)
        day = int(found[1]) if found else self.ordinal()
        self.take("of")
        month = self.month()
        if day is None or month is None:
            self.at = start
            month, day = self.month(), None
            self.take("the")
            if month is not None and (found := self.match(_DAY_NUMBER)) is not None and self.peek()[:1] != ":":
                day = int(found[1])
        if month is None or day is None or not _is_day(month, day):
            self.at = start
            return None
        return month, day

    def number_date(self) -> NumberDate | None:
        """``2026-12-01``, ``24.12.``, ``24.12.2026``, ``24/12``, ``12/24``; the day first where both are possible."""
        if found := self.match(_ISO_DATE):
            return NumberDate(int(found[1]), int(found[2]), int(found[3]))
        found = self.match(_DAY_FIRST)
        if found is None:
            return None
        day, month, year = int(found[1]), int(found[3]), int(found[4]) if found[4] else None
        if found[2] == ".":
            return NumberDate(year, month, day, is_dotted=True)
        if month > 12:
            return NumberDate(year, day, month)
        return NumberDate(year, month, day, is_ambiguous=day <= 12 and day != month)

    def instant(self) -> datetime | None:
        """``2026-12-01T10:00``, aware where an offset is given."""
        found = self.match(_INSTANT)
        try:
            return datetime.fromisoformat(found[0].upper()) if found else None
        except ValueError:
            self.at -= 1
            return None

    def span(self, is_bare_unit: bool = False) -> Span | None:
        """``20 minutes``, ``an hour and a half``, ``1h30m``, ``2 days and 3 hours``; with `is_bare_unit` also ``hour``.
        Parts of a second are dropped."""
        start = self.at
        total = self._one_span(is_bare_unit)
        if total is None:
            self.at = start
        while total is not None:
            here = self.at
            self.take("and", "&")
            more = self._one_span(False) if self.peek() not in ("a", "an") else None
            if more is None or _size(more) >= _size(total):
                self.at = here
                break
            total = Span(*(sum(pair) for pair in zip(total, more, strict=True)))
        return total

    def _one_span(self, is_bare_unit: bool) -> Span | None:
        if spoken := self.look_up_phrase("spans"):
            return Span(*spoken)
        if found := self.match(_COMPACT) or self.match(_HALF_COMPACT):
            weeks, days, hours, minutes, seconds = (int(group or 0) for group in found.groups())
            return Span(0, weeks * 7 + days, hours * 3600 + minutes * 60 + seconds)
        hundredths = self._hundredths()
        if hundredths is None:
            if not is_bare_unit or len(self.peek()) == 1:
                return None
            hundredths = 100
        has_half = bool(self.take("and a half"))
        unit = self.look_up(words()["units"])
        if unit is None:
            return None
        if has_half or self.take("and a half"):
            hundredths += 50
        months, days, seconds = unit
        if months * hundredths % 100:
            return None  # half a month is nothing certain
        whole_days, rest = divmod(days * hundredths, 100)
        return Span(months * hundredths // 100, whole_days, (seconds * hundredths + rest * 86400) // 100)

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
            return int(found[1]) * 100 + int((found[2] or "").ljust(2, "0"))
        spoken = self.look_up(words()["numbers"])
        return None if spoken is None else spoken * 100

    def clock(self, is_announced: bool) -> Clock | None:
        """``17:30``, ``5pm``, ``9 a.m.``, ``noon``, ``half past five``; behind ``at`` (`is_announced`) also ``9``."""
        start = self.at
        clock = self._clock(is_announced)
        if clock is None:
            self.at = start
        else:
            self.take("sharp")
        return clock

    def _clock(self, is_announced: bool) -> Clock | None:
        if named := self.take("noon", "midday", "midnight"):
            return Clock(0 if named == "midnight" else 12)
        if spoken := self.take("half past", "quarter past", "a quarter past", "quarter to", "a quarter to"):
            hour = self.number() or 0
            is_before = spoken.endswith("to")
            minute = 45 if is_before else 30 if spoken == "half past" else 15
            return self._half_day(hour - is_before, minute, None, True) if 1 <= hour <= 12 else None
        if found := self.match(_CLOCK):
            if found[2] == "." and not is_announced:
                return None
            return self._half_day(int(found[1]), int(found[3]), found[4], found[2] == "h" and not is_announced)
        if found := self.match(_HOUR):
            return self._half_day(int(found[1]), 0, found[2], False)
        if is_announced and (found := self.match(_MILITARY)):
            return self._half_day(int(found[1]), int(found[2]), None, False)
        return self._hour(is_announced)

    def _hour(self, is_announced: bool) -> Clock | None:
        if found := self.match(_BARE):
            hour, is_plain = int(found[1]), not found[1].startswith("0") and not found[0].endswith("h")
        else:
            hour, is_plain = (self.look_up(words()["numbers"]) if self.peek() not in ("a", "an") else None) or 99, True
        is_hour = self.peek() in _HALF_DAYS or bool(self.take("o'clock", "o’clock"))
        return self._half_day(hour, 0, None, is_plain) if is_announced or is_hour else None

    def _half_day(self, hour: int, minute: int, suffix: str | None, is_bare: bool) -> Clock | None:
        suffix = suffix or self.take(*_HALF_DAYS)
        if suffix and hour <= 12:
            is_bare, hour = False, hour % 12 + (12 if suffix[0] == "p" else 0)
        return Clock(hour, minute, is_bare and 1 <= hour <= 12) if hour <= 23 and minute <= 59 else None


def clean(word: str) -> str:
    """A word as it is compared: lower case, without the punctuation behind it."""
    return word[:40].lower().rstrip(",;:!?.") or word[:40]


def _weekday(word: str) -> int | None:
    singular = word[:-1] if word.endswith("s") and word[:-1] in WEEKDAYS else word
    found: int | None = words()["weekdays"].get(singular)
    return found


def _is_day(month: int, day: int) -> bool:
    return 1 <= day <= (29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31)


def _size(span: Span) -> int:
    return span.months * 30 * 86400 + span.days * 86400 + span.seconds
