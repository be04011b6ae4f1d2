"""What may be meant by a word: slips of the finger (Latin letters on QWERTY, Cyrillic), other forms. Pure.

Kinds of slips after Kernighan, Church, Gale: "A spelling correction program based on a noisy channel model" (1990); the
likelihoods are rough, only their order matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import takewhile

from core.text.normalize import language_data

_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_ALPHABETS = (
    ("abcdefghijklmnopqrstuvwxyz", "aeiouy"),
    ("абвгдежзийклмнопрстуфхцчшщъыьэюя", "аеиоуыэюя"),
)
"""Letters and the vowels among them; what a word is mended with are those of its first letter."""
SWAPPED, DOUBLED, DROPPED, ADDED, BESIDE, VOWEL = 1.0, 1.0, 0.7, 0.5, 0.8, 0.4
FIRST = 0.6
"""The first letter is seldom wrong."""


def meant(word: str) -> dict[str, float]:
    """Every text from which `word` (small letters) is one slip away, with its likelihood between 0 and 1."""
    found: dict[str, float] = {}
    for text, likelihood in _meant(word):
        if text != word and likelihood > found.get(text, 0.0):
            found[text] = likelihood
    return found


def _meant(word: str) -> Iterator[tuple[str, float]]:
    beside = _beside()
    letters, vowels = next((alphabet for alphabet in _ALPHABETS if word[:1] in alphabet[0]), ("", ""))
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        trust = FIRST if place == 0 else 1.0
        for letter in letters:
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
        if after[0] in vowels:
            for letter in vowels:
                yield before + letter + after[1:], VOWEL * trust


@lru_cache(maxsize=1)
def _beside() -> Mapping[str, str]:
    """The keys around each key."""
    places = {
        letter: (row, column + row / 2) for row, keys in enumerate(_KEYBOARD) for column, letter in enumerate(keys)
    }
    return {
        letter: "".join(
            other
            for other, (line, column) in places.items()
            if other != letter and abs(line - row) <= 1 and abs(column - place) <= 1
        )
        for letter, (row, place) in places.items()
    }


KIN_LETTERS = 4
KIN_SHARE = 0.6


def are_kin(one: str, other: str) -> bool:
    """Whether two words begin alike for `KIN_LETTERS` and `KIN_SHARE` of the longer: adopt, adoptive; Russian cases."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return shared >= KIN_LETTERS and shared >= KIN_SHARE * max(len(one), len(other)) and one != other


FORM_LETTERS = 4
"""Letters of a word that is taken for the singular of another."""
_CYRILLIC = re.compile("[\u0430-\u044f\u0451]{3,}")


def forms_of(word: str) -> tuple[str, ...]:
    """All forms of a folded word by number and case, itself first: ferry, ferries; Москва, Москве. Nothing else."""
    if _CYRILLIC.fullmatch(word):
        found = _cases(word)
    elif word.isascii() and word.isalpha() and len(word) >= FORM_LETTERS - 1:
        found = _numbers(word)
    else:
        found = []
    return tuple(dict.fromkeys((word, *found)))


def _numbers(word: str) -> list[str]:
    found = [f"{word}s", f"{word}es"]
    if word.endswith("y"):
        found.append(f"{word[:-1]}ies")
    if word.endswith("ies"):
        found.append(f"{word[:-3]}y")
    found += [word[: -len(ending)] for ending in ("s", "es") if word.endswith(ending)]
    return [form for form in found if len(form) >= FORM_LETTERS]


def _cases(word: str) -> list[str]:
    """Which ending is one cannot be told for sure, so whatever may be is taken for it."""
    endings = ("", *language_data("words")["russian_endings"].split())
    fitting = [ending for ending in endings if word.endswith(ending) and len(word) - len(ending) >= FORM_LETTERS - 1]
    return [word[: len(word) - len(one)] + ending for one in fitting for ending in endings]
