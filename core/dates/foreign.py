"""Times in other languages than English: tries the front and the end of a line, and is never certain.

The guess at a single expression comes from outside; here stands which pieces are worth a guess, and what of the answer
is real: a library that knows "mañana a las 9" may still forget the nine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from core.dates.reading import Reading
from core.dates.resolver import DEFAULT_HOUR, existing
from core.records import Schedule

Guess = Callable[[str, tuple[str, ...], datetime], datetime | None]
"""An expression, the languages it may be in, and the present wall time (naive): the wall time that is meant."""

_SCRIPTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("[\u3040-\u30ff]", ("ja",)),
    ("[\uac00-\ud7af]", ("ko",)),
    ("[\u4e00-\u9fff]", ("zh", "ja")),
    ("[\u0400-\u04ff]", ("ru", "uk", "bg")),
    ("[\u0600-\u06ff]", ("ar", "fa")),
    ("[\u0590-\u05ff]", ("he",)),
    ("[\u0900-\u097f]", ("hi",)),
    ("[\u0370-\u03ff]", ("el",)),
    ("[\u0e00-\u0e7f]", ("th",)),
    ("[a-zA-Z]", ("es", "pt", "fr", "de", "it", "nl", "pl", "sv", "tr")),
)
_WORDS = 6
_SIGNS = 14
_CLOCK = re.compile(
    r"(.{2,40}?)[ ,]{1,2}(?:[^\W\d]{1,3} ){0,2}(\d{1,2})(?:[:.h](\d{2}))?"
    r" ?(?:h|uhr|uur|часов|часа|час|heures?|horas?)?",
    re.IGNORECASE,
)
_EAST_CLOCK = re.compile(
    r"(.{1,10}?) ?(上午|早上|下午|晚上|中午|午前|午後|오전|오후)? ?(\d{1,2})(?:[点點时時시]|:(?=\d{2}))"
    r"(?: ?(\d{1,2})[分분]?|(半|반))?"
)
_LATE = ("下午", "晚上", "午後", "오후")
_TELLING = re.compile(r"\d|[^\W\d_]{4}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_ONLY_NUMBERS = re.compile(r"[\d\s.,:;/+()-]{1,60}")


def read(line: str, now: datetime, zone: ZoneInfo, guess: Guess) -> Reading | None:
    """The time at the front of a line, or else at its end; None where nothing looks like one or it is past."""
    languages = next((found for script, found in _SCRIPTS if re.search(script, line[:200])), ())
    here = now.astimezone(zone).replace(tzinfo=None, microsecond=0)
    is_east = bool(languages) and languages[0] in ("zh", "ja", "ko")
    for piece, rest in [] if not languages else (*_fronts(line, is_east), *_ends(line)):
        meant = _meant(piece, languages, here, guess)
        if meant is None:
            continue
        moment = existing(meant, zone).astimezone(UTC)
        if moment > now:
            schedule = Schedule(zone=zone.key, at=moment)
            return Reading(schedule=schedule, text=rest.strip(" \t\n,;:、，。").removeprefix("に"), is_certain=False)
    return None


def _fronts(line: str, is_east: bool) -> Iterator[tuple[str, str]]:
    yield from _cut(line, [word.end() for word in re.finditer(r"\S+", line[:200])][:_WORDS][::-1])
    if is_east:
        start = len(line) - len(line.lstrip())
        yield from _cut(line, range(min(start + _SIGNS, len(line)), start + 1, -1))


def _cut(line: str, ends: object) -> Iterator[tuple[str, str]]:
    assert isinstance(ends, list | range)
    for end in ends:
        yield line[:end].strip(), line[end:]


def _ends(line: str) -> Iterator[tuple[str, str]]:
    tail = line[-200:]
    offset = len(line) - len(tail)
    starts = [offset + word.start() for word in re.finditer(r"\S+", tail)][-_WORDS:]
    for start in starts[1:] if len(starts) > 1 and not line[: starts[0]].strip() else starts:
        yield line[start:].strip(), line[:start]


def _meant(piece: str, languages: tuple[str, ...], here: datetime, guess: Guess) -> datetime | None:
    """The wall time that a piece means, if it is one as a whole."""
    piece = piece.rstrip(".!?。 ")
    if len(piece) > 60 or not _TELLING.search(piece) or _ONLY_NUMBERS.fullmatch(piece):
        return None
    found = _EAST_CLOCK.fullmatch(piece)
    if found is not None:
        hour = int(found[3]) + (12 if found[2] in _LATE and int(found[3]) < 12 else 0)
        return _day_at(found[1], hour, 30 if found[5] else int(found[4] or 0), languages, here, guess)
    found = _CLOCK.fullmatch(piece)
    if found is not None:
        meant = _day_at(found[1], int(found[2]), int(found[3] or 0), languages, here, guess)
        if meant is not None:
            return meant
    return _whole(piece, languages, here, guess)


def _day_at(
    words: str, hour: int, minute: int, languages: tuple[str, ...], here: datetime, guess: Guess
) -> datetime | None:
    if hour > 23 or minute > 59 or not _TELLING.search(words) or _ONLY_NUMBERS.fullmatch(words):
        return None
    day = guess(words, languages, here)
    if day is None or not (day.time() == here.time() or (day.hour, day.minute) == (0, 0)):
        return None
    return day.replace(hour=hour, minute=minute, second=0, microsecond=0)


def _whole(piece: str, languages: tuple[str, ...], here: datetime, guess: Guess) -> datetime | None:
    """Guesses twice, from two times of the same day: what moves along was not said."""
    other = here + timedelta(hours=7, minutes=13) * (1 if here.hour < 12 else -1)
    first, second = guess(piece, languages, here), guess(piece, languages, other)
    if first is None or second is None:
        return None
    first, second = first.replace(microsecond=0), second.replace(microsecond=0)
    if first - here == second - other:
        is_by_day = (first - here) % timedelta(days=1) == timedelta()
        return first.replace(hour=DEFAULT_HOUR, minute=0, second=0) if is_by_day else first
    if first == second:
        is_by_day = (first.hour, first.minute) == (0, 0) and "00" not in piece
        return first.replace(hour=DEFAULT_HOUR) if is_by_day else first
    return first.replace(minute=0, second=0) if first.hour == second.hour else None
