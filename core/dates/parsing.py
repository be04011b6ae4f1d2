"""A typed line taken apart into when and what: the time stands at the front, at the end, or parted between both.

Times in other languages than English: tries the front and the end of a line, and is never certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from core.dates.moments import read as read_moment
from core.dates.resolver import DEFAULT_HOUR, When, existing
from core.dates.scanner import clean
from core.dates.schedule import Reading, Schedule

_FRONT_WORDS = 24
_END_WORDS = 14
_MIDDLE_WORDS = 60
_LEADS = (
    "please remind me", "please remind us", "can you remind me", "could you remind me", "could you please remind me",
    "remind me", "remind us", "set a reminder", "set reminder", "reminder",
)  # fmt: skip
_AFTER_LEAD = ("to", "that", "about", "of", "for")
_LIMITS = ("from", "until", "till", "between", "starting", "except", "or", "and", "before", "after", "at")
_ORDINAL = re.compile(r"\d{1,2}(?:st|nd|rd|th)")
_OUTER = ("by", "before", "until", "till", "since", "after", "from", "of", "about", "than")


def read(line: str, now: datetime, zone: ZoneInfo) -> Reading | None:
    """What English rules read in a line; None when they see no time. Raises Refused when they see one that is past or
    cannot be kept."""
    found = list(re.finditer(r"\S+", line))
    words = [match[0] for match in found]
    today = now.astimezone(zone).date()
    skipped = _lead(words)
    while len(words) > skipped and clean(words[-1]) in ("please", "thanks"):
        words.pop()
    taken = _front(words, skipped, today) or _end(words, skipped, today) or _middle(words, skipped, today)
    if taken is None:
        return None
    when, spans = taken
    schedule = when.schedule(now, zone.key)
    kept = [index for index in range(skipped, len(words)) if not any(start <= index < end for start, end in spans)]
    pieces: list[str] = []
    for index in kept:
        is_next = bool(pieces) and index - 1 in kept
        gap = line[found[index - 1].end() : found[index].start()] if is_next else " " if pieces else ""
        pieces.append(gap + words[index])
    text = _trimmed("".join(pieces), bool(skipped))
    return Reading(schedule=schedule, text=text, is_certain=when.is_certain)


Taken = tuple[When, list[tuple[int, int]]]
"""What was read, and the ranges of words that said so."""


def _lead(words: Sequence[str]) -> int:
    """How many words only ask to be reminded."""
    lowered = " ".join(clean(word) for word in words[:6])
    for lead in _LEADS:
        if (lowered + " ").startswith(lead + " "):
            return len(lead.split())
    return 0


def _front(words: Sequence[str], skipped: int, today: date) -> Taken | None:
    found = read_moment(words[skipped : skipped + _FRONT_WORDS], today)
    if found is None:
        return None
    when, count = found
    spans = [(skipped, skipped + count)]
    rest = words[skipped + count :]
    if rest and (clean(rest[0]) in _LIMITS or any(_ORDINAL.fullmatch(clean(word)) for word in rest[:2])):
        when.is_certain = False
    has_clock = bool(when.clocks or when.part) or when.moment is not None
    is_half = not has_clock or not when.has_day
    if rest and is_half and not (when.span and not when.is_repeated):
        _complete(when, spans, words, skipped + count, today)
    return when, spans


def _complete(when: When, spans: list[tuple[int, int]], words: Sequence[str], start: int, today: date) -> None:
    """``tomorrow call Ana at 9``: the clock time stands at the other end."""
    for index in range(max(start + 1, len(words) - _END_WORDS), len(words)):
        found = read_moment(words[index:], today, is_strict=True)
        if found is None or index + found[1] < len(words):
            continue
        other = found[0]
        if when.has_day and not (other.has_day or when.clocks or when.part):
            when.clocks, when.part, when.zone = other.clocks, other.part, other.zone
        elif not when.has_day and other.has_day and not (other.clocks or other.span):
            other.clocks, other.zone = when.clocks, when.zone
            other.part = other.part or when.part
            for name in When.__slots__:
                setattr(when, name, getattr(other, name))
        else:
            continue
        when.is_certain = when.is_certain and other.is_certain
        spans.append((index, len(words)))
        return


def _end(words: Sequence[str], skipped: int, today: date) -> Taken | None:
    for index in range(max(skipped, len(words) - _END_WORDS), len(words)):
        found = read_moment(words[index:], today, is_strict=True)
        if found is None or index + found[1] < len(words) or _is_past(words, index):
            continue
        when = found[0]
        before = clean(words[index - 1]) if index > skipped else ""
        if before == "for":
            when.is_certain = False
            return when, [(index - 1, len(words))]
        if before in _OUTER:
            # "Pay the rent by friday": the time belongs to the text.
            when.is_certain = False
            return when, []
        return when, [(index, len(words))]
    return None


def _middle(words: Sequence[str], skipped: int, today: date) -> Taken | None:
    """The longest time in the midst of a text; what it belongs to is a guess."""
    best: tuple[int, int, When] | None = None
    for index in range(skipped, min(len(words), _MIDDLE_WORDS)):
        found = read_moment(words[index : index + _END_WORDS], today, is_strict=True)
        if found is not None and (best is None or found[1] > best[1]) and not _is_past(words, index):
            best = (index, found[1], found[0])
    if best is None:
        return None
    index, count, when = best
    when.is_certain = False
    return when, [(index, index + count)]


def _is_past(words: Sequence[str], index: int) -> bool:
    return index > 0 and clean(words[index - 1]) in ("last", "past")


def _trimmed(text: str, has_lead: bool) -> str:
    text = text.strip(" \t\r\n,;:-–—")
    first, _, rest = text.partition(" ")
    if rest and first.lower() in (_AFTER_LEAD if has_lead else ("to",)):
        text = rest.strip()
    return text


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


def foreign_read(line: str, now: datetime, zone: ZoneInfo, guess: Guess) -> Reading | None:
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
