"""Finds the terms of a plan in a text as it was written, for marking them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from core.folding import LETTER, is_unspaced, plain

LOOK_CHARS = 50_000
"""A match is looked for in this much of a text; behind it, text is shown unmarked."""
MARKS = 200
"""At most so many places are compared to find the densest."""

_WORD = re.compile(f"{LETTER}+")


class Marker:
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
        self._beginnings = tuple(beginnings)
        self._phrases = re.compile("|".join(phrases)) if phrases else None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where terms stand in `text`: (start, end), ascending, apart from each other."""
        compared, origins = plain(text[:LOOK_CHARS])
        found = [
            match.span()
            for match in (_WORD.finditer(compared) if self._words or self._beginnings else ())
            if match[0] in self._words or match[0].startswith(self._beginnings)
        ]
        if self._phrases is not None:
            phrases = [match.span() for match in self._phrases.finditer(compared)]
            found = sorted(_apart(phrases, found))
        found = found[:MARKS]
        if origins is None:
            return found
        return [(origins[start], origins[end - 1] + 1) for start, end in found]


def _apart(phrases: list[tuple[int, int]], words: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """All phrases, and the words outside of them."""
    covered = {place for start, end in phrases[:MARKS] for place in range(start, end)}
    return [*phrases[:MARKS], *(span for span in words if span[0] not in covered and span[1] - 1 not in covered)]
