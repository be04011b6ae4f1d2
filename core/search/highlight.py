"""Shows the part of a text that matters: the match between ``>>>`` and ``<<<``, cut at words. Pure.

Finds the terms of a plan in a text as it was written, for marking them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from core.text.normalize import LETTER, is_unspaced, plain

LOOK_CHARS = 50_000
"""A match is looked for in this much of a text; behind it, text is shown unmarked."""
MARKS = 200
"""At most so many places are compared to find the densest."""

_WORD = re.compile(f"{LETTER}+")
_LETTER = re.compile(LETTER)


class Highlighter:
    """Terms are those of a plan: words, ``ferr*`` for a prefix, a blank between the words of a phrase; runs and emoji
    are found inside of others."""

    def __init__(self, terms: Iterable[str]) -> None:
        words: set[str] = set()
        beginnings: set[str] = set()
        phrases: list[str] = []
        for term in sorted(terms, key=len, reverse=True):
            parts = [plain(part)[0] for part in term.rstrip("*").split()]
            if len(parts) == 1 and _WORD.fullmatch(parts[0]):
                (beginnings if term.endswith("*") else words).add(parts[0])
            elif parts and is_unspaced(term):
                phrases.append(re.escape("".join(parts)))
            elif parts:
                body = r"[\W_]{1,4}".join(map(re.escape, parts))
                end = f"{LETTER}{{0,40}}" if term.endswith("*") else f"(?!{LETTER})"
                phrases.append(f"(?<!{LETTER}){body}{end}")
        self._words = frozenset(words)
        self._beginnings = frozenset(beginnings)
        self._phrases = re.compile("|".join(phrases)) if phrases else None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where terms stand in `text`: (start, end), ascending, apart from each other."""
        compared, origins = plain(text[:LOOK_CHARS])
        # To look for each term is five times as fast as to look at each word.
        found = sorted(
            {span for word in self._words if word in compared for span in _whole(word, compared)}
            | {span for start in self._beginnings if start in compared for span in _beginning(start, compared)}
        )
        if self._phrases is not None:
            found = sorted(_apart(_joined(islice(_overlapping(self._phrases, compared), 2 * MARKS)), found))
        found = found[:MARKS]
        if origins is None:
            return found
        behind = [*origins[1:], min(len(text), LOOK_CHARS)]
        return [(origins[start], max(origins[end - 1] + 1, behind[end - 1])) for start, end in found]


def _whole(word: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a word stands as a word of its own."""
    for start, end in _places(word, text):
        if not _is_letter(text, end):
            yield start, end


def _beginning(part: str, text: str) -> Iterator[tuple[int, int]]:
    """The words that begin so, as far as they go."""
    for start, end in _places(part, text):
        rest = _WORD.match(text, end)
        yield start, end if rest is None else rest.end()


def _places(part: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the part begins a word."""
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        if start == 0 or not _is_letter(text, start - 1):
            yield start, end
        start = text.find(part, end)


def _is_letter(text: str, place: int) -> bool:
    return _LETTER.match(text, place) is not None


def _overlapping(phrases: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Where phrases stand, also one within another: in 資料庫 both 資料 and 料庫."""
    match = phrases.search(text)
    while match is not None:
        yield match.span()
        match = phrases.search(text, match.start() + 1)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ascending spans, those that touch as one."""
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _apart(phrases: list[tuple[int, int]], words: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """All phrases, and the words outside of them."""
    covered = {place for start, end in phrases[:MARKS] for place in range(start, end)}
    return [*phrases[:MARKS], *(span for span in words if span[0] not in covered and span[1] - 1 not in covered)]


OPEN, CLOSE, CUT = ">>>", "<<<", "…"
WIDTH_CHARS = 200


def snippet(text: str, marker: Highlighter, width_chars: int = WIDTH_CHARS) -> str:
    """About `width_chars` of `text` on one line, where most different terms stand close together, all of them marked;
    the beginning where nothing matches."""
    spans = marker.spans(text)
    start, end = excerpt(text, spans, width_chars)
    parts = [CUT if start > 0 else ""]
    position = start
    for first, last in spans:
        if first >= position and last <= end:
            parts += [text[position:first], OPEN, text[first:last], CLOSE]
            position = last
    parts += [text[position:end], CUT if end < len(text) else ""]
    return " ".join("".join(parts).split())


def excerpt(text: str, spans: Sequence[tuple[int, int]], width_chars: int) -> tuple[int, int]:
    """The part of a text to show: (start, end) around the densest marks, a quarter of what is left before them, cut
    between words where there is a blank nearby."""
    if len(text) <= width_chars:
        return 0, len(text)
    first, last = _densest(text, spans, width_chars)
    room = max(0, width_chars - (last - first))
    start = max(0, first - room // 4)
    end = min(len(text), start + width_chars)
    start = max(0, min(start, end - width_chars))
    if start > 0:
        blank = text.find(" ", start, min(first, start + 20) + 1)
        start = blank + 1 if blank >= 0 else start
    if end < len(text):
        blank = text.rfind(" ", max(last, end - 20), end)
        end = blank if blank > 0 else end
    return start, end


def _densest(text: str, spans: Sequence[tuple[int, int]], width_chars: int) -> tuple[int, int]:
    """The stretch no longer than the width that holds most different matches; (0, 0) without any."""
    best, best_count = (0, 0), 0
    starts = [start for start, _ in spans]
    for index, (start, _) in enumerate(spans):
        inside = spans[index : bisect_left(starts, start + width_chars)]
        held = [span for span in inside if span[1] <= start + width_chars] or inside[:1]
        count = len({text[a:b].casefold() for a, b in held})
        if count > best_count:
            best, best_count = (start, min(held[-1][1], start + width_chars)), count
    return best
