"""Read dates from the words of a line: ``2026-12-01``, ``24.12.``, ``3 May 2027``.

The words and patterns are in `data/words.toml`.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from core.dates.schedule import date_if_valid
from core.text.normalize import language_data

WEEKDAYS = tuple(map(str.lower, calendar.day_name))
MONTHS = tuple(map(str.lower, calendar.month_name[1:]))
MAX_PATTERN_WORDS = 24
"""A pattern is matched against at most this many words."""
MAX_WORD_CHARS = 40
"""A longer word is cut to this length before it is compared."""
_LEAP_YEAR = 2028
"""A date without a year is checked in this leap year, so that 29 February is valid."""


class Day(NamedTuple):
    """A calendar day. The year may be missing."""

    # None if no year was named.
    year: int | None
    month: int
    day: int


@cache
def word_tables() -> Mapping[str, Any]:
    """Read the tables of `data/words.toml`."""
    return language_data("words", "core.dates")


@cache
def word_pattern(name: str, end: str = r"(?!\S)") -> re.Pattern[str]:
    """Compile a pattern of `data/words.toml`, followed by the expression `end`.

    In a pattern, ``%(name)s`` means any word of the table `name`, or the pattern `name`. By
    default, `end` makes the pattern match only whole words.
    """
    return re.compile(f"(?:{_expand(word_tables()['patterns'][name])}){end}", re.VERBOSE)


def _expand(pattern: str) -> str:
    """Replace each ``%(name)s`` with the pattern of that name, or with any word of that table."""
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
    """Return a word in lower case, without the punctuation after it.

    A word that consists only of punctuation is returned unchanged.
    """
    return word[:MAX_WORD_CHARS].lower().rstrip(",;:!?.") or word[:MAX_WORD_CHARS]


def parse_ordinal(text: str) -> int:
    """Parse an ordinal: 3 for ``3rd`` or ``third``, -1 for ``last``."""
    return int(word_tables()["ordinals"].get(text) or re.sub(r"\D", "", text))


class WordCursor:
    """A position in the words of a line, from which words are read one after the other.

    The methods `take`, `match` and `read_…` read words and move past them. If the next words don't
    fit, they return None and don't move.
    """

    def __init__(self, line: Sequence[str]) -> None:
        self._words = [normalize_word(word) for word in line]
        self.position = 0

    @property
    def is_done(self) -> bool:
        return self.position >= len(self._words)

    def take(self, *options: str) -> str | None:
        """Read the first of `options` that fits, and return it.

        An option may consist of several words, such as "from now". Returns None if none of them
        fits.
        """
        for option in options:
            phrase = option.split()
            if self._words[self.position : self.position + len(phrase)] == phrase:
                self.position += len(phrase)
                return option
        return None

    def match(self, name: str) -> re.Match[str] | None:
        """Read the words that match the pattern `name`, and return the match.

        Returns None if they don't.
        """
        words = self._words[self.position : self.position + MAX_PATTERN_WORDS]
        match = word_pattern(name).match(" ".join(words))
        if match is not None:
            self.position += len(match[0].split())
        return match

    def read_year(self) -> int | None:
        match = self.match("year")
        return int(match[0]) if match else None

    def read_month_day(self) -> Day | None:
        """Read a date with the name of a month: ``3 May``, ``the 3rd of May 2027``, ``May 3``.

        Returns None if the next words are no date.
        """
        start = self.position
        match = self.match("month_day")
        if match is None:
            return None
        month = word_tables()["months"][match["month"] or match["before"]]
        number = parse_ordinal(match["day"] or match["behind"])
        return self._check_day(Day(self.read_year(), month, number), start)

    def read_number_date(self) -> Day | None:
        """Read a date in digits: ``2026-12-01``, ``24.12.``, ``24.12.2026``, ``24/12``, ``12/24``.

        If both numbers may be the day, the first one is the day. Returns None if the next word is
        no date.
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
        if month > 12 and not is_dotted:
            # In "12/24", the first number is the month.
            number, month = month, number
        year = int(match["last"] or 0) or None
        return self._check_day(Day(year, month, number), start)

    def _check_day(self, day: Day, start: int) -> Day | None:
        """Return a valid day, or move the cursor back to `start` and return None.

        Without a year, 29 February is valid.
        """
        year = _LEAP_YEAR if day.year is None else day.year
        if date_if_valid(year, day.month, day.day) is not None:
            return day
        self.position = start
        return None

    def read_instant(self) -> datetime | None:
        """Read a date and time in ISO 8601: ``2026-12-01T10:00``.

        The result is aware if the text has an offset, such as ``+01:00``. Returns None if the next
        word is no instant.
        """
        start = self.position
        match = self.match("instant")
        try:
            return datetime.fromisoformat(match[0].upper()) if match else None
        except ValueError:
            self.position = start
            return None
