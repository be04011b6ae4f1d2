"""Splits text in scripts without spaces between words into terms.

The scripts are those of Chinese, Japanese, Korean, Thai, Lao, Burmese and Khmer. The terms are
pairs of neighbouring characters. Each Han character is also a term. In Thai, Lao, Burmese and
Khmer, the terms are pairs of syllables instead.

Question words and conjunctions are removed from questions, because ``什么时候`` ("when") would
otherwise outweigh the other words. `data/cjk.toml` contains these words. Raise
`normalize.TERMS_VERSION` if a change of this module changes terms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import add

from core.text.normalize import language_data

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u3096\u309d-\u309f"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7fb"
_SOUTHERN = "\u0e01-\u0edf\u1000-\u109f\u1780-\u17dd\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Thai, Lao, Burmese and Khmer."""

_BY_SCRIPT = re.compile(
    f"(?P<korean>[{_HANGUL}]+)|(?P<southern>[{_SOUTHERN}]+)|[^{_HANGUL}{_SOUTHERN}]+"
)
_KOREAN_OR_SOUTHERN = re.compile(f"[{_HANGUL}{_SOUTHERN}]")
_KANA = re.compile(f"[{_HIRAGANA}\u30a1-\u30ff]")
_BY_JAPANESE_SCRIPT = re.compile(f"[{_HAN}]+|(?P<hiragana>[{_HIRAGANA}]+)|[^{_HAN}{_HIRAGANA}]+")
_QUESTION_ENDING = re.compile("(?:んだ|のだ|のか|だ|か)$")
_NOT_HAN = re.compile(f"[^{_HAN}]+")
_SYLLABLE = re.compile(
    # A leading vowel and a consonant.
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?."
    # Vowels and tone marks after it, and consonants written below it.
    "(?:[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece\u102b-\u1038\u103a-\u103e"
    "\u1056-\u1060\u17b4-\u17d1\u17d3\u17dd]|[\u1039\u17d2].)*+"
)
"""Roughly one syllable of a southern script."""


# --- Terms of messages ---


def run_terms(run: str) -> list[str]:
    """Return the terms of a run in a message."""
    if _KOREAN_OR_SOUTHERN.search(run) is None:
        return _pairs_and_han(run)
    terms: list[str] = []
    for match in _BY_SCRIPT.finditer(run):
        if match["korean"]:
            terms += _korean_terms(match[0])
        elif match["southern"]:
            terms += _pairs(_SYLLABLE.findall(match[0]))
        else:
            terms += _pairs_and_han(match[0])
    return terms


def _pairs_and_han(run: str) -> list[str]:
    """Return the pairs of a Chinese or Japanese run, then its Han characters."""
    if len(run) < 2:
        return [run]
    return [*map(add, run, run[1:]), *_NOT_HAN.sub("", run)]


def _pairs(units: str | list[str]) -> list[str]:
    """Return all pairs of neighbouring characters or syllables.

    A single unit is returned unchanged.
    """
    return [*map(add, units, units[1:])] or list(units)


@lru_cache(maxsize=20_000)
def _korean_terms(word: str) -> tuple[str, ...]:
    """Return the pairs of a Korean word, and its stem if the stem is a single character.

    Korean is written with spaces, so a run is one word with its particles.
    """
    stem = _korean_stem(word) if len(word) > 1 else ""
    if len(stem) == 1:
        return (*_pairs(word), stem)
    return tuple(_pairs(word))


def _korean_stem(word: str) -> str:
    """Return a Korean word without its particle or ending."""
    for ending in _longest_first("korean_endings"):
        if word.endswith(ending) and word != ending:
            return word.removesuffix(ending)
    return word


# --- Terms of questions ---


@lru_cache(maxsize=256)
def question_run_terms(run: str) -> tuple[str, ...]:
    """Return the terms of a run in a question, pairs first.

    Question words, conjunctions and very common Han characters are left out. The result may be
    empty.
    """
    pairs: list[str] = []
    singles: list[str] = []
    for match in _BY_SCRIPT.finditer(run):
        part = match[0]
        if match["korean"]:
            _add_korean(part, pairs, singles)
        elif match["southern"]:
            for words in _any_of("thai").split(part):
                pairs += _pairs(_SYLLABLE.findall(words))
        elif _KANA.search(part):
            for words in _any_of("japanese").split(part):
                _add_japanese(_QUESTION_ENDING.sub("", words), pairs, singles)
        else:
            _add_chinese(part, pairs, singles)
    return (*pairs, *(single for single in singles if single not in _plain_han()))


def _add_korean(word: str, pairs: list[str], singles: list[str]) -> None:
    """Add the pairs of a Korean word, and its stem if the stem is a single character.

    A question word or conjunction adds nothing.
    """
    stem = _korean_stem(word)
    if _korean_filler().fullmatch(word) or _korean_filler().fullmatch(stem):
        return
    pairs += _pairs(word if len(word) < 3 else stem)
    if len(stem) == 1:
        singles.append(stem)


def _add_chinese(text: str, pairs: list[str], singles: list[str]) -> None:
    """Add the pairs and characters of a Chinese text without question words and conjunctions."""
    # Group 1 of the pattern is a longer word that contains such a word and is kept.
    for words in _chinese().sub(lambda match: match[1] or " ", text).split():
        pairs += _pairs(words)
        singles += _NOT_HAN.sub("", words)


def _add_japanese(text: str, pairs: list[str], singles: list[str]) -> None:
    """Add the pairs and Han characters of a Japanese text.

    A particle after a word is left out. Of a verb ending, which is in Hiragana, only the first
    character is kept.
    """
    previous = ""
    for match in _BY_JAPANESE_SCRIPT.finditer(text):
        part = match[0]
        if match["hiragana"]:
            pairs += _hiragana_pairs(part, previous)
        else:
            if len(part) > 1:
                pairs += _pairs(part)
            singles += _NOT_HAN.sub("", part)
        previous = part[-1]


def _hiragana_pairs(part: str, previous: str) -> list[str]:
    """Return the pairs of a sequence of Hiragana, without a particle at its beginning.

    `previous` is the character before the sequence, or "" at the beginning of the text.
    """
    particle = _any_of("japanese_particles").match(part) if previous else None
    word_part = part[particle.end() :] if particle else part
    if previous and word_part == part:
        # Without a particle, this is the ending of a verb. The first character of the ending
        # distinguishes 取り from 取る.
        return [previous + part[0]]
    return _pairs(word_part) if len(word_part) > 1 else []


def drop_covered_characters(terms: Sequence[str]) -> list[str]:
    """Return the terms without the Han characters that one of the pairs contains.

    Otherwise, too much of a text would be highlighted.
    """
    in_pairs: set[str] = set()
    for term in terms:
        is_han_pair = len(term) == 2 and not _NOT_HAN.search(term)
        if is_han_pair and _plain_han().isdisjoint(term):
            in_pairs.update(term)
    return [term for term in terms if term not in in_pairs]


# --- Word lists ---


@lru_cache(maxsize=1)
def _chinese() -> re.Pattern[str]:
    """Return a pattern for Chinese question words and conjunctions.

    Group 1 matches longer words that contain such a word but have another meaning.
    """
    return re.compile(f"({_any_of('chinese_kept').pattern})|{_any_of('chinese').pattern}")


@lru_cache(maxsize=1)
def _korean_filler() -> re.Pattern[str]:
    """Return a pattern for Korean question words and conjunctions."""
    return re.compile(f"{_any_of('korean').pattern}|(?:{_any_of('korean_asking').pattern}).{{0,4}}")


@lru_cache(maxsize=1)
def _plain_han() -> frozenset[str]:
    """Return Han characters that occur in too many words to be useful as terms."""
    return frozenset(language_data("cjk")["plain_han"].split())


@lru_cache(maxsize=16)
def _longest_first(name: str) -> tuple[str, ...]:
    """Return a list of words from `data/cjk.toml`, longest first."""
    return tuple(sorted(language_data("cjk")[name].split(), key=len, reverse=True))


@lru_cache(maxsize=16)
def _any_of(name: str) -> re.Pattern[str]:
    """Return a pattern for the words in a list of `data/cjk.toml`. Longer words are preferred."""
    return re.compile("|".join(_longest_first(name)))


def asks_when_unspaced(text: str) -> bool:
    """Return whether a text in a script without spaces contains a word that asks for a time."""
    return _any_of("when").search(text) is not None
