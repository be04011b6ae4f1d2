"""The terms of runs of unspaced scripts, folded: pairs, for Han also single characters, for Thai pairs of syllables.
Pure.

Of a question the words that only ask or join are cut out, or ``什么时候`` would outweigh what is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from operator import add

from core.text.normalize import language_data

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u3096\u309d-\u309f"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7fb"
_SOUTHERN = "\u0e01-\u0edf\u1000-\u109f\u1780-\u17dd\ua9e0-\ua9ff\uaa60-\uaa7f"

_SCRIPT = re.compile(f"([{_HANGUL}]+)|([{_SOUTHERN}]+)|[^{_HANGUL}{_SOUTHERN}]+")
_CLUSTER = re.compile(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?."
    "(?:[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece\u102b-\u1038\u103a-\u103e\u1056-\u1060\u17b4-\u17d1"
    "\u17d3\u17dd]|[\u1039\u17d2].)*"
)
"""A consonant with its vowels and tone marks (and what is written below it): about a syllable."""

_KANA = re.compile(f"[{_HIRAGANA}\u30a1-\u30ff]")
_ALIKE = re.compile(f"([{_HAN}]+)|([{_HIRAGANA}]+)|[^{_HAN}{_HIRAGANA}]+")
_LAST = re.compile("(?:んだ|のだ|のか|だ|か)$")
_OTHER = re.compile(f"[{_HANGUL}{_SOUTHERN}]")
_NOT_HAN = re.compile(f"[^{_HAN}]+")
_SINGLE = re.compile(f"[{_HAN}]")


def run_terms(run: str) -> list[str]:
    """The terms of a run as the index holds it."""
    if _OTHER.search(run) is None:
        return _eastern(run)
    terms: list[str] = []
    for match in _SCRIPT.finditer(run):
        if match[1]:
            terms += _korean(match[1])
        elif match[2]:
            terms += _pairs(_CLUSTER.findall(match[2]))
        else:
            terms += _eastern(match[0])
    return terms


def _eastern(run: str) -> list[str]:
    if len(run) < 2:
        return [run]
    return [*map(add, run, run[1:]), *_NOT_HAN.sub("", run)]


@lru_cache(maxsize=20_000)
def _korean(word: str) -> tuple[str, ...]:
    """Korean is written with spaces, so a run is a word with what hangs on it, and comes again."""
    stem = _korean_stem(word) if len(word) > 1 else ""
    return (*_pairs(word), *([stem] if len(stem) == 1 else []))


@lru_cache(maxsize=256)
def asked_terms(run: str) -> tuple[str, ...]:
    """The terms of a run as a question asks for them, without words that only ask; may be empty."""
    pairs: list[str] = []
    singles: list[str] = []
    for match in _SCRIPT.finditer(run):
        part = match[0]
        if match[1]:
            stem = _korean_stem(part)
            if _korean_filler().fullmatch(part) is None and _korean_filler().fullmatch(stem) is None:
                pairs += _pairs(part if len(part) < 3 else stem)
                singles += [stem] if len(stem) == 1 else []
        elif match[2]:
            for words in _any_of("thai").split(part):
                pairs += _pairs(_CLUSTER.findall(words))
        elif _KANA.search(part):
            for words in _any_of("japanese").split(part):
                _japanese(_LAST.sub("", words), pairs, singles)
        else:
            for words in _chinese().sub(lambda match: match[1] or " ", part).split():
                pairs += _pairs(words)
                singles += _SINGLE.findall(words)
    return (*pairs, *(one for one in singles if one not in _plain_han()))


def apart(terms: Sequence[str]) -> list[str]:
    """The terms without single characters that stand in one of the pairs, which would be too much to show."""
    words = [term for term in terms if len(term) == 2 and _plain_han().isdisjoint(term) and not _NOT_HAN.search(term)]
    inside = set("".join(words))
    return [term for term in terms if term not in inside]


def asks_moment(text: str) -> bool:
    """Whether folded text asks for a moment in one of these scripts."""
    return not text.isascii() and _any_of("when").search(text) is not None


def _japanese(words: str, pairs: list[str], singles: list[str]) -> None:
    """Han and Katakana as they are; of Hiragana what is neither particle nor ending."""
    previous = ""
    for match in _ALIKE.finditer(words):
        part = match[0]
        if not match[2]:
            pairs += _pairs(part) if len(part) > 1 else []
            singles += _SINGLE.findall(part)
        else:
            particle = _any_of("japanese_particles").match(part) if previous else None
            rest = part[particle.end() :] if particle else part
            if previous and rest == part:
                # The ending of a verb: its first sign tells 取り from 取る.
                pairs.append(previous + part[0])
            elif len(rest) > 1:
                pairs += _pairs(rest)
        previous = part[-1]


def _pairs(units: str | list[str]) -> list[str]:
    return [before + after for before, after in pairwise(units)] or list(units)


def _korean_stem(word: str) -> str:
    """A word without the particle or ending behind it; one letter only of a word of two."""
    for ending in _longest_first("korean_endings"):
        if word.endswith(ending) and len(word) > len(ending) + (len(ending) == 1 and len(word) > 2):
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=1)
def _chinese() -> re.Pattern[str]:
    return re.compile(f"({_any_of('chinese_kept').pattern})|{_any_of('chinese').pattern}")


@lru_cache(maxsize=1)
def _korean_filler() -> re.Pattern[str]:
    return re.compile(f"{_any_of('korean').pattern}|(?:{_any_of('korean_asking').pattern}).{{0,4}}")


@lru_cache(maxsize=1)
def _plain_han() -> frozenset[str]:
    return frozenset(language_data("cjk")["plain_han"].split())


@lru_cache(maxsize=16)
def _longest_first(words: str) -> tuple[str, ...]:
    return tuple(sorted(language_data("cjk")[words].split(), key=len, reverse=True))


@lru_cache(maxsize=16)
def _any_of(words: str) -> re.Pattern[str]:
    return re.compile("|".join(_longest_first(words)))
