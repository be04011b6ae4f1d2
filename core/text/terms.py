"""Text as the terms that ranking counts: stems without stop words, pairs of unspaced characters, emoji. Pure.

English is stemmed by Porter's algorithm (Program 14, 1980), irregular forms first: about one point at hit@1 on LoCoMo.
`normalize.VERSION` also counts for this file.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache

import snowballstemmer  # type: ignore[import-untyped]

from core.text.cjk import apart, asked_terms, asks_moment, run_terms
from core.text.normalize import LIMIT_TERMS, clean, fold, language_data, parted, signed_terms, symbol_token, words_of

REMEMBERED_CHARS = 1_000
"""Of longer texts the terms are made anew; with 2,000 texts these are 10 MB at most."""
_PLAIN = bytes(code if chr(code).isascii() and chr(code).isalnum() else 32 for code in range(256)).lower()
"""For ASCII, one pass over the bytes instead of a regular expression: six times as fast, and ranking reads much."""
_WHEN = re.compile(r"\b(?:when|how long|what (?:date|day|month|year|time))\b", re.IGNORECASE)
_PORTER = snowballstemmer.stemmer("porter")
_PORTER_LOCK = threading.Lock()
"""A stemmer holds the word at hand; searches run in several threads. PyStemmer, if installed, is 15 times as fast."""


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """English words too common to tell one message from another."""
    return frozenset(language_data("words")["stop_words"].split())


@lru_cache(maxsize=1)
def irregular_forms() -> Mapping[str, str]:
    """Each irregular form of an English word and the base it belongs to."""
    families = [family.split() for family in language_data("words")["irregular_forms"]]
    return {form: family[0] for family in families for form in family[1:]}


def stem(word: str) -> str:
    """The common form of a word in lower case; words of other alphabets, numbers and short words stay as they are."""
    word = irregular_forms().get(word, word)
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    with _PORTER_LOCK:
        return str(_PORTER.stemWord(word))


def terms_of(text: str) -> list[str]:
    """The terms of a text in order, repeated, without stop words; those of signed words (``C++``) at the end."""
    if text.isascii():
        plain = text.encode().translate(_PLAIN).decode().split()
        return [*filter(None, map(_term, plain)), *signed_terms(text)]
    words, runs = parted(text)
    return [*_spaced_terms(words), *_unspaced_terms(runs, run_terms)]


def remembered_terms(text: str) -> tuple[str, ...]:
    """`terms_of`; those of short texts are kept, because ranking and indexing read the latest ones over and over."""
    return _remembered_terms(text) if len(text) <= REMEMBERED_CHARS else tuple(terms_of(text))


@lru_cache(maxsize=2_000)
def _remembered_terms(text: str) -> tuple[str, ...]:
    return tuple(terms_of(text))


def query_terms(text: str) -> list[str]:
    """The different terms of a query, at most `LIMIT_TERMS`, without words that only ask unless nothing is left."""
    typed = clean(text)
    if typed.isascii():
        return list(dict.fromkeys(terms_of(typed)))[:LIMIT_TERMS]
    words, runs = parted(typed)
    terms = [*_spaced_terms(words), *_unspaced_terms(runs, asked_terms)] or _unspaced_terms(runs, run_terms)
    return list(dict.fromkeys(sorted(terms, key=lambda term: len(term) == 1)))[:LIMIT_TERMS]


def _spaced_terms(text: str) -> list[str]:
    return [*filter(None, map(_term, words_of(text.casefold()))), *signed_terms(text)]


def _unspaced_terms(parts: list[tuple[str, str]], terms_of_run: Callable[[str], Sequence[str]]) -> list[str]:
    return [term for run, symbol in parts for term in (terms_of_run(run) if run else [symbol_token(symbol)])]


@lru_cache(maxsize=10_000)
def name_terms(name: str) -> tuple[str, ...]:
    return tuple(terms_of(name))


@lru_cache(maxsize=10_000)
def date_terms(day: date) -> tuple[str, ...]:
    """A day in words, as people ask for it: ``Monday 8 May 2023``. Worth two points at hit@1."""
    return tuple(terms_of(f"{day:%A} {day.day} {day:%B} {day.year}"))


def asks_when(text: str) -> bool:
    folded = fold(text[:2000])
    return _WHEN.search(folded) is not None or asks_moment(folded)


def is_question(text: str) -> bool:
    return text.rstrip()[-1:] in ("?", "\uff1f", "\u061f")


@lru_cache(maxsize=1)
def moment_terms() -> frozenset[str]:
    """Terms of messages that say when something was."""
    return frozenset([*terms_of(language_data("words")["moment_words"]), *language_data("cjk")["moments"].split()])


def marks_of(terms: list[str]) -> list[str]:
    """What to mark in a message where these terms count: words that begin with the stem, and its irregular forms."""
    forms = [form for form, base in _irregular_stems().items() if base in terms]
    stems = [term[:-1] if term.isascii() and term.endswith("i") else term for term in apart(terms)]
    return [*forms, *(f"{part}*" if len(part) > 3 and part.isascii() and part.isalpha() else part for part in stems)]


@lru_cache(maxsize=1)
def _irregular_stems() -> Mapping[str, str]:
    return {form: stem(base) for form, base in irregular_forms().items()}


@lru_cache(maxsize=100_000)
def _term(word: str) -> str:
    """The term of a word in lower case; empty for a stop word."""
    if word in stop_words():
        return ""
    if not word.isascii():
        decomposed = unicodedata.normalize("NFKD", fold(word))
        bare = "".join(character for character in decomposed if not unicodedata.combining(character))
        word = bare if bare.isascii() else unicodedata.normalize("NFKC", word)
    return stem(word)


SMALLTALK_CHARS = 80
"""A longer message is no small talk."""
_DRAWN_OUT = re.compile(r"(.)\1{2,}")


def is_smalltalk(text: str) -> bool:
    """Whether it is only "ok", "thanks!", "👍" or the like (`data/smalltalk.toml`), or empty. A word that may also be a
    name, or a question, is none: searching for nothing costs less than not searching."""
    if len(text) > SMALLTALK_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = "".join(sign if unicodedata.category(sign)[0] in "LMN" or sign == "'" else " " for sign in folded)
    # What is left of an emoji is a mark without a letter.
    said = " ".join(word.strip("'") for word in kept.split() if any(map(str.isalnum, word)))
    known, phrases, fillers = _smalltalk()
    rest = phrases.sub("", said).split()
    return all(
        word in known or _DRAWN_OUT.sub(r"\1", word) in known or fillers.fullmatch(word) is not None for word in rest
    )


@lru_cache(maxsize=1)
def _smalltalk() -> tuple[frozenset[str], re.Pattern[str], re.Pattern[str]]:
    """Small words, phrases, and what may stand for a word: laughter, or pieces of a script without spaces."""
    data = language_data("smalltalk")
    # Possessive: a long row of pieces that ends in something else is not tried in every cut.
    pieces = rf"(?:{_any(data['pieces'].casefold().split())})++"
    phrases = re.compile(rf"(?<!\S)(?:{_any(data['phrases'])})(?!\S)")
    return frozenset(data["words"].casefold().split()), phrases, re.compile(rf"{data['laughter']}|{pieces}")


def _any(texts: Iterable[str]) -> str:
    """Longer ones first."""
    return "|".join(sorted(map(re.escape, texts), key=len, reverse=True))
