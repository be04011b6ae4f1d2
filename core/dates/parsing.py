"""A typed line taken apart into when and what: the time stands at the front, at the end, or parted between both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

from core.dates.moments import read as read_moment
from core.dates.reading import Reading
from core.dates.resolver import When
from core.dates.scanner import clean

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
