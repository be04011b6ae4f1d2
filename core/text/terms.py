"""Text as the terms that ranking counts: stems of words without stopwords, pairs of unspaced characters, emoji. Pure.

What the chunk index holds is made here too, so `folding.VERSION` also counts for this file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache

from core.search.query import LIMIT_TERMS, STOPWORDS, clean
from core.text.cjk import MOMENTS, apart, asked_terms, asks_moment, run_terms
from core.text.normalize import fold, parted, symbol_token, words_of
from core.text.stemming import irregular_forms, stem

_PLAIN = bytes(code if chr(code).isascii() and chr(code).isalnum() else 32 for code in range(256)).lower()
"""For ASCII, one pass over the bytes instead of a regular expression: six times as fast, and ranking reads much."""

_WHEN = re.compile(r"\b(?:when|how long|what (?:date|day|month|year|time))\b", re.IGNORECASE)
_MOMENTS = """
yesterday today tomorrow tonight ago last next week month year weekend morning evening night summer winter spring autumn
fall monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
september october november december recently since
"""


def terms_of(text: str) -> list[str]:
    """The terms of a text in order, with repetitions. Stopwords do not count: half the words, none of the meaning."""
    if text.isascii():
        return list(filter(None, map(_term, text.encode().translate(_PLAIN).decode().split())))
    words, runs = parted(text)
    return [*_spaced_terms(words), *_unspaced_terms(runs, run_terms)]


def query_terms(text: str) -> list[str]:
    """The different terms of what was typed, at most `LIMIT_TERMS`; empty where it is all stopwords. Of scripts without
    spaces the words that only ask are cut out, unless nothing is left."""
    typed = clean(text)
    if typed.isascii():
        return list(dict.fromkeys(terms_of(typed)))[:LIMIT_TERMS]
    words, runs = parted(typed)
    terms = [*_spaced_terms(words), *_unspaced_terms(runs, asked_terms)] or _unspaced_terms(runs, run_terms)
    return list(dict.fromkeys(sorted(terms, key=_is_single)))[:LIMIT_TERMS]


def _is_single(term: str) -> bool:
    return len(term) == 1


def _spaced_terms(text: str) -> list[str]:
    return list(filter(None, map(_term, words_of(text.casefold()))))


def _unspaced_terms(parts: list[tuple[str, str]], terms_of_run: Callable[[str], Sequence[str]]) -> list[str]:
    return [term for run, symbol in parts for term in (terms_of_run(run) if run else [symbol_token(symbol)])]


@lru_cache(maxsize=10_000)
def name_terms(name: str) -> tuple[str, ...]:
    """The terms of a speaker's name."""
    return tuple(terms_of(name))


@lru_cache(maxsize=10_000)
def date_terms(day: date) -> tuple[str, ...]:
    """A day in words, as people ask for it: ``Monday 8 May 2023``. Worth two points at hit@1."""
    return tuple(terms_of(f"{day:%A} {day.day} {day:%B} {day.year}"))


def asks_when(text: str) -> bool:
    """Whether a moment is asked for."""
    folded = fold(text[:2000])
    return _WHEN.search(folded) is not None or asks_moment(folded)


@lru_cache(maxsize=1)
def moment_terms() -> frozenset[str]:
    """Terms of messages that say when something was."""
    return frozenset([*terms_of(_MOMENTS), *MOMENTS.split()])


def marks_of(terms: list[str]) -> list[str]:
    """What to mark in a message where these terms count: words that begin with the stem, and its irregular forms."""
    forms = [form for form, base in irregular_forms().items() if stem(base) in terms]
    stems = [term[:-1] if term.isascii() and term.endswith("i") else term for term in apart(terms)]
    return [*forms, *(f"{part}*" if len(part) > 3 and part.isascii() and part.isalpha() else part for part in stems)]


@lru_cache(maxsize=100_000)
def _term(word: str) -> str:
    """The term of a word in lower case; empty for a stopword."""
    if word in STOPWORDS:
        return ""
    if not word.isascii():
        decomposed = unicodedata.normalize("NFKD", fold(word))
        bare = "".join(character for character in decomposed if not unicodedata.combining(character))
        word = bare if bare.isascii() else unicodedata.normalize("NFKC", word)
    return stem(word)
