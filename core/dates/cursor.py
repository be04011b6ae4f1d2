"""A cursor over the words of a line that reads English numbers, dates, spans and clock times.

The words and patterns are in `data/words.toml`.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from core.dates.expression import ClockTime, Span
from core.dates.schedule import date_if_valid
from core.text.normalize import language_data

WEEKDAYS = tuple(map(str.lower, calendar.day_name))
MONTHS = tuple(map(str.lower, calendar.month_name[1:]))
MAX_PATTERN_WORDS = 24
"""A pattern is matched against at most this many words."""
MAX_WORD_CHARS = 40
"""A longer word is cut to this length before it is compared."""
_LEAP_YEAR = 2028
"""A date without a year is checked in this year, so that 29 February is valid."""


class Day(NamedTuple):
    """A day of the calendar."""

    # None if no year was named.
    year: int | None
    month: int
    day: int
    # Whether full stops separate the numbers: ``24.12``.
    is_dotted: bool = False
    # Whether the day and the month may be swapped: ``3/5``.
    is_ambiguous: bool = False


@cache
def word_tables() -> Mapping[str, Any]:
    """Read the tables of `data/words.toml`."""
    return language_data("words", "core.dates")


@cache
def word_pattern(name: str, end: str = r"(?!\S)") -> re.Pattern[str]:
    """Compile a pattern of `data/words.toml`, followed by the expression `end`.

    In a pattern, ``%(name)s`` stands for any word of the table `name`, or for the pattern `name`.
    The default `end` makes the pattern match whole words only.
    """
    return re.compile(f"(?:{_expand(word_tables()['patterns'][name])}){end}", re.VERBOSE)


def _expand(pattern: str) -> str:
    """Replace each ``%(name)s`` with a pattern for the words of the table, or with the pattern."""
    return re.sub(r"%\((\w+)\)s", lambda name: _expand_name(name[1]), pattern)


def _expand_name(name: str) -> str:
    inner = word_tables()["patterns"].get(name)
    if inner:
        # A regular expression can't use a group name twice, and a pattern may be inserted twice.
        # So named groups become unnamed: "(?P<unit>...)" becomes "(?:...)".
        return f"(?:{re.sub('[?]P<[^>]+>', '?:', _expand(inner))})"
    longest_first = sorted(map(re.escape, word_tables()[name]), key=len, reverse=True)
    return f"(?:{'|'.join(longest_first)})"


def normalize_word(word: str) -> str:
    """Return a word in lower case and without the punctuation after it.

    A word that is only punctuation is returned unchanged.
    """
    return word[:MAX_WORD_CHARS].lower().rstrip(",;:!?.") or word[:MAX_WORD_CHARS]


def parse_number(text: str) -> Fraction:
    """Parse a number: ``20``, ``1,5``, ``twenty``."""
    return Fraction(word_tables()["numbers"].get(text.strip()) or text.replace(",", "."))


def parse_ordinal(text: str) -> int:
    """Parse an ordinal: 3 for ``3rd`` or ``third``, -1 for ``last``."""
    return int(word_tables()["ordinals"].get(text) or re.sub(r"\D", "", text))


class WordCursor:
    """The words of a line, and the position of the next word to read.

    The methods `take`, `match`, `look_up` and `read_…` move the cursor past the words that they
    read. If the next words don't fit, these methods return None and don't move the cursor.
    """

    def __init__(self, line: Sequence[str], is_strict: bool = False) -> None:
        self._typed = line
        self._words = [normalize_word(word) for word in line]
        self.position = 0
        # Whether the words follow other text. They are then less likely to be a time, so short
        # forms such as "fri" aren't accepted.
        self.is_strict = is_strict

    @property
    def is_done(self) -> bool:
        return self.position >= len(self._words)

    def peek(self) -> str:
        """Return the next word without moving the cursor, or "" at the end of the line."""
        return "" if self.is_done else self._words[self.position]

    def is_dotted(self) -> bool:
        """Whether the next word ends with a full stop."""
        return not self.is_done and self._typed[self.position].endswith(".")

    def take(self, *options: str) -> str | None:
        """Read one of `options`, the first one that fits, and return it.

        An option may have several words, such as "from now".
        """
        for option in options:
            phrase = option.split()
            if self._words[self.position : self.position + len(phrase)] == phrase:
                self.position += len(phrase)
                return option
        return None

    def match(self, name: str) -> re.Match[str] | None:
        """Read the words that match the pattern `name`, and return the match."""
        words = self._words[self.position : self.position + MAX_PATTERN_WORDS]
        match = word_pattern(name).match(" ".join(words))
        if match is not None:
            self.position += len(match[0].split())
        return match

    def look_up(self, table: str) -> Any:
        """Read a key of a table in `data/words.toml`, and return its value."""
        key = self.take(*word_tables()[table])
        return None if key is None else word_tables()[table][key]

    def read_weekday(self) -> int | None:
        """Read a weekday, and return its number (0 for Monday).

        If the cursor is strict, the weekday must be written in full.
        """
        if self.is_strict and self.peek() not in WEEKDAYS:
            return None
        weekday: int | None = self.look_up("weekdays")
        return weekday

    def read_weekdays(self) -> tuple[int, ...]:
        """Read a list of weekdays: ``monday and wednesday``, ``mon, wed, fri``, ``mon-fri``.

        Returns the numbers of the weekdays (0 for Monday), or () if the next word isn't a weekday.
        """
        weekdays = word_tables()["weekdays"]
        days: set[int] = set()
        end = self.position
        while match := self.match("weekday_range"):
            first = weekdays[match["first"]]
            last = weekdays[match["last"] or match["first"]]
            # A range may cross the end of the week: "sat-mon" has 3 days.
            count = (last - first) % 7 + 1
            days.update((first + step) % 7 for step in range(count))
            end = self.position
            self.take("and", "&", "or")
        self.position = end
        return tuple(sorted(days))

    def read_year(self) -> int | None:
        match = self.match("year")
        return int(match[0]) if match else None

    def read_ordinal(self) -> int | None:
        """Read an ordinal: 3 for ``3rd`` or ``third``, -1 for ``last``."""
        match = self.match("ordinal")
        return parse_ordinal(match[0]) if match else None

    def read_month_day(self) -> Day | None:
        """Read a date with the name of a month: ``3 May``, ``the 3rd of May 2027``, ``May 3``."""
        start = self.position
        match = self.match("month_day")
        if match is None:
            return None
        month = word_tables()["months"][match["month"] or match["before"]]
        number = parse_ordinal(match["day"] or match["behind"])
        return self._check_day(Day(self.read_year(), month, number), start)

    def read_number_date(self) -> Day | None:
        """Read a date in digits: ``2026-12-01``, ``24.12.``, ``24.12.2026``, ``24/12``, ``12/24``.

        If either number may be the day, the first number is the day.
        """
        start = self.position
        match = self.match("number_date")
        if match is None:
            return None
        if match["year"]:
            day = Day(int(match["year"]), int(match["month"]), int(match["day"]))
            return self._check_day(day, start)
        number, month = int(match["first"]), int(match["second"])
        is_dotted = match["mark"] == "."
        is_ambiguous = not is_dotted and month <= 12 and number <= 12 and number != month
        if month > 12 and not is_dotted:
            # In "12/24", the first number is the month.
            number, month = month, number
        year = int(match["last"] or 0) or None
        return self._check_day(Day(year, month, number, is_dotted, is_ambiguous), start)

    def _check_day(self, day: Day, start: int) -> Day | None:
        """Return a valid day. For an invalid day, move the cursor to `start` and return None.

        Without a year, 29 February is valid.
        """
        year = _LEAP_YEAR if day.year is None else day.year
        if date_if_valid(year, day.month, day.day) is not None:
            return day
        self.position = start
        return None

    def read_instant(self) -> datetime | None:
        """Read a date and time in ISO format: ``2026-12-01T10:00``.

        The result is aware if the text has an offset, such as ``+01:00``.
        """
        start = self.position
        match = self.match("instant")
        try:
            return datetime.fromisoformat(match[0].upper()) if match else None
        except ValueError:
            self.position = start
            return None

    def read_span(self, name: str = "span") -> Span | None:
        """Read a length of time: ``20 minutes``, ``an hour and a half``, ``1h30m``.

        With the pattern `every_span`, a unit without a number counts as one: the ``hour`` of "every
        hour". Fractions of a second are dropped.
        """
        start = self.position
        match = self.match(name)
        if match is None:
            return None
        months = days = seconds = Fraction(0)
        for part in word_pattern("span_part", "").finditer(match[0]):
            # The group "rest" is the "30" of "1h30", and "half" and "too" are "and a half".
            count = parse_number(part["number"] or part["rest"] or "1")
            if part["half"] or part["too"]:
                count += Fraction(1, 2)
            # A unit is its months, days and seconds: a week is (0, 7, 0).
            spoken_unit = word_tables()["spoken_spans"].get(part["spoken"])
            unit = spoken_unit or word_tables()["units"][part["unit"] or "m"]
            months += count * unit[0]
            days += count * unit[1]
            seconds += count * unit[2]
        if months % 1:
            self.position = start  # Half a month has no fixed length.
            return None
        # Half a day is 43200 seconds.
        return Span(int(months), int(days), int(seconds + days % 1 * 86400))

    def read_clock(self, is_announced: bool) -> ClockTime | None:
        """Read a clock time: ``17:30``, ``5pm``, ``9 a.m.``, ``noon``, ``half past five``.

        With `is_announced`, the word before was "at", so a number such as ``9`` is a clock time,
        too.
        """
        start = self.position
        match = self.match("clock")
        clock = _parse_clock(match, is_announced) if match else None
        if clock is None:
            self.position = start
        return clock


def _parse_clock(match: re.Match[str], is_announced: bool) -> ClockTime | None:
    """Return the clock time of a match of the pattern `clock`.

    Returns None if the time is invalid, or if the match may be just a number.
    """
    if match["named"]:
        return ClockTime(0 if match["named"] == "midnight" else 12)
    if match["spoken"]:
        return _parse_spoken_clock(match)
    has_clock_mark = match["half"] or match["oclock"] or match["mark"] in (":", "h")
    if not is_announced and not has_clock_mark:
        return None
    return _parse_numbered_clock(match, is_announced)


def _parse_spoken_clock(match: re.Match[str]) -> ClockTime | None:
    """Return the clock time of ``half past five`` or ``quarter to five``.

    Returns None if the hour isn't from 1 to 12.
    """
    hour = int(parse_number(match["spoken"]))
    minute = 30
    if match["to"]:
        hour -= 1
        minute = 45
    elif match["quarter"]:
        minute = 15
    return ClockTime(hour, minute, is_bare=True) if 1 <= hour <= 12 else None


def _parse_numbered_clock(match: re.Match[str], is_announced: bool) -> ClockTime | None:
    """Return the clock time of ``17:30``, ``5pm`` or ``9``, or None if it is invalid.

    The result is bare if the hour may be before or after noon: "9" is bare, but "09" and "17"
    aren't.
    """
    hour = int(parse_number(match["hour"]))
    minute = int(match["minute"] or 0)
    if hour > 23 or minute > 59:
        return None
    if match["half"] and hour <= 12:
        # "12am" is 0:00 and "12pm" is 12:00, so 12 counts as 0 here.
        is_afternoon = match["half"][0] == "p"
        return ClockTime(hour % 12 + 12 if is_afternoon else hour % 12, minute)
    if match["mark"] == "h":
        is_bare = not is_announced
    else:
        has_leading_zero = match["hour"][0] == "0"
        is_bare = match["mark"] is None and not match["h"] and not has_leading_zero
    return ClockTime(hour, minute, is_bare and 1 <= hour <= 12)
