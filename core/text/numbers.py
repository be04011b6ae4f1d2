"""Numbers as somebody else may have written them: ``912345678`` and ``912 345 678``, ``€1,200`` and ``1200``, ``7pm``
and ``19:00``. Pure; gives words to look for, decides nothing about whether they were said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, pairwise

_RUN = re.compile(r"\d+(?:[ .,/'()-]{1,2}\d+)*", re.ASCII)
_TIME = re.compile(r"\b(\d{1,2})(?:[:.h](\d\d))? ?(am|pm)?\b", re.ASCII | re.IGNORECASE)
SHORTEST, LONGEST = 4, 15
"""Digits of a number that may be written in groups."""
GROUPS_MOST = 5
PHONE = 7
MOST = 60
"""So many ways at most, of a text."""


def other_ways(text: str) -> list[tuple[str, ...]]:
    """For the numbers and times of a text, folded, the words of other ways to write them; the words of one way belong
    together."""
    found: dict[tuple[str, ...], None] = {}
    for way in _ways(text[:500]):
        found[way] = None
        if len(found) == MOST:
            break
    return list(found)


def _ways(text: str) -> Iterator[tuple[str, ...]]:
    for match in _TIME.finditer(text):
        yield from _times(int(match[1]), match[2], (match[3] or "").lower())
    for run in _RUN.finditer(text):
        groups = re.findall(r"\d+", run[0])
        for start, end in combinations(range(len(groups) + 1), 2):
            joined = "".join(groups[start:end])
            if end - start > 1 and SHORTEST <= len(joined) <= LONGEST:
                yield (joined,)
        if len(groups) == 1 and SHORTEST <= len(groups[0]) <= LONGEST:
            yield from _grouped(groups[0])


def _grouped(digits: str) -> Iterator[tuple[str, ...]]:
    """In thousands; what is long enough for a telephone, in all groups of two to four."""
    head = len(digits) % 3 or 3
    yield (digits[:head], *(digits[place : place + 3] for place in range(head, len(digits), 3)))
    if len(digits) < PHONE:
        return
    for count in range(1, GROUPS_MOST):
        for cuts in combinations(range(2, len(digits) - 1), count):
            parts = tuple(digits[start:end] for start, end in pairwise((0, *cuts, len(digits))))
            if all(2 <= len(part) <= 4 for part in parts):
                yield parts


def _times(hour: int, minute: str | None, half: str) -> Iterator[tuple[str, ...]]:
    if half and 1 <= hour <= 12:
        full = hour % 12 + (12 if half == "pm" else 0)
        yield (str(full), minute or "00")
        yield (f"{full:02}", minute or "00")
        yield from _half(hour, minute, half)
    elif minute and not half and hour < 24:
        yield from _half(hour % 12 or 12, minute, "pm" if hour >= 12 else "am")


def _half(hour: int, minute: str | None, half: str) -> Iterator[tuple[str, ...]]:
    if minute in (None, "00"):
        yield (f"{hour}{half}",)
        yield (str(hour), half)
    if minute is not None:
        yield (str(hour), f"{minute}{half}")
        yield (str(hour), minute, half)
