"""The terms of text in scripts without spaces between words: Chinese, Japanese, Korean and the
scripts of Southeast Asia.

The terms are pairs of characters. Text in Han characters also has single characters as terms. Thai
and its neighbours have pairs of syllables instead. Words that only ask or join are removed from
questions, because ``什么时候`` would otherwise outweigh the other words. `data/cjk.toml` contains
these words. `normalize.TERMS_VERSION` also applies to this module.
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
    """The terms of a run of a message."""
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
    """The pairs of a Chinese or Japanese run, then its Han characters."""
    if len(run) < 2:
        return [run]
    return [*map(add, run, run[1:]), *_NOT_HAN.sub("", run)]


def _pairs(units: str | list[str]) -> list[str]:
    """All pairs of neighbouring units. A single unit is returned alone."""
    return [*map(add, units, units[1:])] or list(units)


@lru_cache(maxsize=20_000)
def _korean_terms(word: str) -> tuple[str, ...]:
    """The pairs of a Korean word, and its stem if that is a single letter.

    Korean is written with spaces, so a run is a single word with its particles. The result is
    cached, because words recur.
    """
    stem = _korean_stem(word) if len(word) > 1 else ""
    if len(stem) == 1:
        return (*_pairs(word), stem)
    return tuple(_pairs(word))


def _korean_stem(word: str) -> str:
    """The word without its particle or ending."""
    for ending in _longest_first("korean_endings"):
        if word.endswith(ending) and word != ending:
            return word.removesuffix(ending)
    return word


# --- Terms of questions ---


@lru_cache(maxsize=256)
def question_run_terms(run: str) -> tuple[str, ...]:
    """The terms of a run in a question, without words that only ask. There may be none."""
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
    """Add the terms of a word, unless it only asks."""
    stem = _korean_stem(word)
    if _korean_filler().fullmatch(word) or _korean_filler().fullmatch(stem):
        return
    pairs += _pairs(word if len(word) < 3 else stem)
    if len(stem) == 1:
        singles.append(stem)


def _add_chinese(text: str, pairs: list[str], singles: list[str]) -> None:
    """Add the terms of each part between words that only ask or join."""
    # Group 1 of the pattern is a longer word that contains such a word.
    for words in _chinese().sub(lambda match: match[1] or " ", text).split():
        pairs += _pairs(words)
        singles += _NOT_HAN.sub("", words)


def _add_japanese(text: str, pairs: list[str], singles: list[str]) -> None:
    """Add the terms of a Japanese text, without particles and most endings in Hiragana."""
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
    """The pairs of a stretch of Hiragana that follows the character `previous`."""
    particle = _any_of("japanese_particles").match(part) if previous else None
    rest = part[particle.end() :] if particle else part
    if previous and rest == part:
        # This is the ending of a verb. Its first sign distinguishes 取り from 取る.
        return [previous + part[0]]
    return _pairs(rest) if len(rest) > 1 else []


def drop_covered_characters(terms: Sequence[str]) -> list[str]:
    """The terms without the Han characters that are part of one of the pairs.

    If these were highlighted too, too much of a text would be.
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
    """A pattern for words that only ask or join.

    Group 1 matches words that contain such a word but mean something else.
    """
    return re.compile(f"({_any_of('chinese_kept').pattern})|{_any_of('chinese').pattern}")


@lru_cache(maxsize=1)
def _korean_filler() -> re.Pattern[str]:
    """A pattern for Korean words that only ask or join."""
    return re.compile(f"{_any_of('korean').pattern}|(?:{_any_of('korean_asking').pattern}).{{0,4}}")


@lru_cache(maxsize=1)
def _plain_han() -> frozenset[str]:
    """Han characters that are part of too many words to mean anything alone."""
    return frozenset(language_data("cjk")["plain_han"].split())


@lru_cache(maxsize=16)
def _longest_first(name: str) -> tuple[str, ...]:
    return tuple(sorted(language_data("cjk")[name].split(), key=len, reverse=True))


@lru_cache(maxsize=16)
def _any_of(name: str) -> re.Pattern[str]:
    """A pattern that matches the longest fitting word of a list of `data/cjk.toml`."""
    return re.compile("|".join(_longest_first(name)))


def asks_when_unspaced(text: str) -> bool:
    """Whether a text contains a word that asks for a time, in a script without spaces."""
    return _any_of("when").search(text) is not None
