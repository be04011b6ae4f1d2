"""A cursor over the words of a typed line that reads numbers, dates, spans of time, clock times and weekdays.

Knows nothing about today. Every pattern looks at a few words and is bounded, so no line is slow.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip

_COMPACT = re.compile(
    r"(?=\d)(?:(\d{1,3})w)?(?:(\d{1,4})d)?(?:(\d{1,4})h(?:rs?)?)?(?:(\d{1,5})m(?:ins?)?)?(?:(\d{1,6})s(?:ecs?)?)?"
)
_HALF_COMPACT = re.compile(r"()()(\d{1,2})h(\d{2})()")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:z|[+-]\d\d:?\d\d)?")
_ISO_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_DAY_FIRST = re.compile(r"(\d{1,2})([./])(\d{1,2})(?:[./](\d{4}))?")
_YEAR = re.compile(r"(?:19|20|21)\d{2}")

V = TypeVar("V")
_READ_WORDS = 24


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


@cache
def pattern(name: str) -> re.Pattern[str]:
    """A pattern over several words of `data/words.toml`, which names tables of words as ``%(units)s``."""
    tables = {table: _either(entries) for table, entries in words().items() if table != "script"}
    return re.compile(rf"(?:{words()['patterns'][name] % tables})(?!\S)", re.VERBOSE)


def _either(options: Iterable[str]) -> str:
    return "(?:" + "|".join(sorted(map(re.escape, options), key=len, reverse=True)) + ")"


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

    def match(self, word: re.Pattern[str]) -> re.Match[str] | None:
        """The next word, if all of it fits."""
        found = word.fullmatch(self.peek())
        self.at += found is not None
        return found

    def read(self, name: str) -> re.Match[str] | None:
        """The next words, as far as they fit a `pattern`."""
        found = pattern(name).match(" ".join(self._words[self.at : self.at + _READ_WORDS]))
        self.at += len(found[0].split()) if found else 0
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
        days: set[int] = set()
        behind = self.at
        while found := self.read("weekday_range"):
            first, last = (_weekday(name) for name in (found["first"], found["last"] or found["first"]))
            days.update((first + step) % 7 for step in range((last - first) % 7 + 1))
            behind = self.at
            self.take("and", "&", "or")
        self.at = behind
        return tuple(sorted(days)) or None

    def month(self) -> int | None:
        """1 for January, also as ``jan``."""
        return self.look_up(words()["months"])

    def year(self) -> int | None:
        """``2026``."""
        found = self.match(_YEAR)
        return int(found[0]) if found else None

    def ordinal(self) -> int | None:
        """``3rd`` or ``third``; -1 for ``last``."""
        start = self.at
        found = self.read("ordinal")
        value = _value(found[0], "ordinals") if found else 32
        self.at = start if value > 31 else self.at
        return value if value <= 31 else None

    def month_day(self) -> tuple[int, int] | None:
        """Month and day of ``3 May``, ``the 3rd of May``, ``May 3``."""
        start = self.at
        if (found := self.read("month_day")) is None:
            return None
        month: int = words()["months"][found["month"] or found["before"]]
        day = _value(found["day"] or found["behind"], "ordinals")
        if not 1 <= day <= (29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31):
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
        found = self.read("span")
        if found is None or (found["number"] is None and (not is_bare_unit or len(found["unit"]) == 1)):
            return None
        number = _number(found["number"] or "1") + (Fraction(1, 2) if found["half"] or found["too"] else 0)
        months, days, seconds = (number * part for part in words()["units"][found["unit"]])
        if months % 1:
            return None  # half a month is nothing certain
        return Span(int(months), int(days), int(seconds + days % 1 * 86400))

    def number(self) -> int | None:
        """A whole number: ``3``, ``three``, ``a couple of``."""
        start = self.at
        found = self.read("number")
        number = _number(found[0]) if found else Fraction(1, 2)
        self.at = start if number % 1 else self.at
        return None if number % 1 else int(number)

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
    is_sure = is_announced or bool(found["half"] or found["oclock"]) or found["mark"] in (":", "h")
    return _numbered_clock(found, is_announced) if is_sure else None


def _numbered_clock(found: re.Match[str], is_announced: bool) -> Clock | None:
    hour, minute, mark = int(_number(found["hour"])), int(found["minute"] or 0), found["mark"]
    if hour > 23 or minute > 59:
        return None
    if found["half"] and hour <= 12:
        return Clock(hour % 12 + 12 * (found["half"][0] == "p"), minute)
    is_bare = not is_announced if mark == "h" else mark is None and not (found["h"] or found["hour"][0] == "0")
    return Clock(hour, minute, is_bare and 1 <= hour <= 12)


def ordinals(text: str) -> tuple[int, ...]:
    """The numbers of ``1st and 15th``; -1 for ``last``."""
    return tuple(_value(found[0], "ordinals") for found in pattern("ordinal").finditer(text))


def _weekday(name: str) -> int:
    found: int = words()["weekdays"][name if name in words()["weekdays"] else name.removesuffix("s")]
    return found


def _number(text: str) -> Fraction:
    return Fraction(words()["numbers"].get(text) or text.replace(",", "."))


def _value(text: str, table: str) -> int:
    """Of ``3rd``, or of a word in a table."""
    return int(words()[table].get(text) or re.sub(r"\D", "", text))


def _size(span: Span) -> int:
    return span.months * 30 * 86400 + span.days * 86400 + span.seconds
