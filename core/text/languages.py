"""The stems and stop words of languages besides English. Pure.

Stems are those of snowballstemmer, Arabic apart. What is written in a script that one language has nearly for itself
(Arabic, Cyrillic, Greek, Devanagari, …) is stemmed by that script: Persian as Arabic, Ukrainian as Russian, alike in
messages and in questions. `normalize.VERSION` also counts for this file.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from functools import lru_cache

import snowballstemmer  # type: ignore[import-untyped]

from core.text.normalize import fold, language_data

_LOCK = threading.Lock()
"""A stemmer holds the word at hand; searches run in several threads. PyStemmer, if installed, is 15 times as fast."""
_SAME = str.maketrans({"\u0901": "\u0902", "\u093c": None})
"""Of one sound in Devanagari: the nasal signs, and dots below that are often left out."""


@lru_cache(maxsize=64)
def stemmer(algorithm: str) -> Callable[[str], str]:
    """The stemmer of that name, for small letters; for any thread."""
    stem_word = snowballstemmer.stemmer(algorithm).stemWord

    def stem(word: str) -> str:
        with _LOCK:
            return str(stem_word(word))

    return stem


@lru_cache(maxsize=1)
def script_stop_words() -> frozenset[str]:
    """Stop words of the languages known by their script, as `script_form` has them."""
    scripts = language_data("languages")["scripts"].values()
    return frozenset(script_form(word) for script in scripts for word in script["words"].split())


def script_form(word: str) -> str:
    """A word as its stem is made of: folded, small letters."""
    return unicodedata.normalize("NFKC", fold(word).casefold()).translate(_SAME)


def script_stem(word: str) -> str:
    """The stem of a word that is in no Latin letters, as its script has it; empty for a stop word."""
    form = script_form(word)
    if form in script_stop_words():
        return ""
    found = _scripts().match(form)
    language = found.lastgroup if found else None
    if language == "arabic":
        return _arabic(form)
    return stemmer(language)(form) if language in ALGORITHMS else form


ALGORITHMS = frozenset(snowballstemmer.algorithms())


def _arabic(word: str) -> str:
    """The word without its article and endings: light10 of Larkey, Ballesteros, Connell, "Light stemming for Arabic
    information retrieval" (2007). Snowball's stemmer leaves a word with the article longer than the same without."""
    if len(word) > 3:
        word = word.removeprefix("و")
    arabic = language_data("languages")["scripts"]["arabic"]
    article = next((one for one in arabic["articles"] if word.startswith(one) and len(word) >= len(one) + 2), "")
    word = word.removeprefix(article)
    for ending in arabic["endings"]:
        if word.endswith(ending) and len(word) >= len(ending) + 2:
            word = word.removesuffix(ending)
    return word


@lru_cache(maxsize=1)
def _scripts() -> re.Pattern[str]:
    """What a word of a script begins with, in the group of its language."""
    scripts = language_data("languages")["scripts"]
    return re.compile("|".join(f"(?P<{name}>[{script['letters']}])" for name, script in scripts.items()))
