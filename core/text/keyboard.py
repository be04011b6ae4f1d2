"""What somebody may have meant who typed a word with one slip of the finger, and how likely each is. Pure.

The kinds of slips are those of Kernighan, Church, Gale: "A spelling correction program based on a noisy channel model"
(1990); their likelihoods are rough, and only their order matters. Latin letters without accents, a QWERTY keyboard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_VOWELS = "aeiouy"
SWAPPED, DOUBLED, DROPPED, ADDED, BESIDE, VOWEL = 1.0, 1.0, 0.7, 0.5, 0.8, 0.4
FIRST = 0.6
"""The first letter is seldom wrong."""


def meant(word: str) -> dict[str, float]:
    """Every text from which `word` (small Latin letters) is one slip away, with its likelihood between 0 and 1."""
    found: dict[str, float] = {}
    for text, likelihood in _meant(word):
        if text != word and likelihood > found.get(text, 0.0):
            found[text] = likelihood
    return found


def _meant(word: str) -> Iterator[tuple[str, float]]:
    beside = _beside()
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        trust = FIRST if place == 0 else 1.0
        for letter in _LETTERS:
            is_double = letter in (before[-1:], after[:1])
            yield before + letter + after, (DOUBLED if is_double else DROPPED) * trust
        if not after:
            return
        is_double = after[0] == before[-1:]
        yield before + after[1:], (DOUBLED if is_double else ADDED) * trust
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:], SWAPPED * trust
        for letter in beside.get(after[0], ""):
            yield before + letter + after[1:], BESIDE * trust
        if after[0] in _VOWELS:
            for letter in _VOWELS:
                yield before + letter + after[1:], VOWEL * trust


@lru_cache(maxsize=1)
def _beside() -> Mapping[str, str]:
    """The keys around each key: its neighbours in the row, and in the rows above and below."""
    places = {letter: (row, column + row / 2) for row, keys in enumerate(_ROWS) for column, letter in enumerate(keys)}
    return {
        letter: "".join(
            other
            for other, (line, column) in places.items()
            if other != letter and abs(line - row) <= 1 and abs(column - place) <= 1
        )
        for letter, (row, place) in places.items()
    }
