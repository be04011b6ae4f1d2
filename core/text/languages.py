"""The stems and stop words of languages besides English. Pure.

Stems are those of snowballstemmer, Arabic apart. What is written in a script that one language has nearly for itself
(Arabic, Cyrillic, Greek, Devanagari, …) is stemmed by that script: Persian as Arabic, Ukrainian as Russian, alike in
messages and in questions. What is in Latin letters is told by its words (after Cavnar and Trenkle in spirit, but by
common words, of which short messages have some), and is known by its language's stems besides its English ones, which
every message has: so an English question finds a word in a German message, and a name is the same in both.
`normalize.VERSION` also counts for this file.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice

from core.text.normalize import ALGORITHMS, bare, fold, language_data, stemmer

_SAME = str.maketrans({"\u0901": "\u0902", "\u093c": None})
"""Of one sound in Devanagari: the nasal signs, and dots below that are often left out."""


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


WORDS_LOOKED_AT = 100
"""Words of a text that tell its language."""
LIKELIEST = 2


def languages_of(words: Sequence[str], letters: Iterable[str] = ()) -> tuple[str, ...]:
    """The likeliest languages besides English of a text's words and other letters, small; none where English is as
    likely, where one letter alone tells (a name may have it), and for a word alone."""
    is_told = not telling().isdisjoint(words[:WORDS_LOOKED_AT]) or sum(letter in _profiles() for letter in letters) > 1
    if len(words) < 2 or not is_told:
        return ()
    told = chain(islice(words, WORDS_LOOKED_AT), letters)
    counts = Counter(chain.from_iterable(_profiles()[one] for one in told if one in _profiles()))
    most = max(counts.values())
    return () if counts["english"] == most else tuple(name for name in counts if counts[name] == most)[:LIKELIEST]


@lru_cache(maxsize=1)
def telling() -> frozenset[str]:
    """Words that no English text has, but that of another language in Latin letters."""
    latin = language_data("languages")["latin"]
    found = frozenset().union(*(latin_stop_words(name) for name in latin if name != "english"))
    return found.difference(latin["english"].split(), language_data("words")["stop_words"].split())


@lru_cache(maxsize=1)
def _profiles() -> Mapping[str, tuple[str, ...]]:
    """The languages of each common word and letter."""
    latin = language_data("languages")["latin"]
    words = {name: latin_stop_words(name).union(latin[name]["letters"]) for name in latin if name != "english"}
    words["english"] = frozenset(language_data("words")["stop_words"].split())
    known: dict[str, list[str]] = {}
    for name, its in words.items():
        for word in its:
            known.setdefault(word, []).append(name)
    return {word: tuple(names) for word, names in known.items()}


@lru_cache(maxsize=32)
def latin_stop_words(language: str) -> frozenset[str]:
    """The stop words of a language in Latin letters, folded, with and without accents."""
    typed = language_data("languages")["latin"][language]["words"].split()
    return frozenset([*map(fold, typed), *(map(bare, typed) if language in ALGORITHMS else ())])


def latin_stem(language: str, word: str) -> str:
    """The stem of a word in small letters as that language has it, without accents; empty for a stop word. Of
    Vietnamese the syllable with its tone."""
    if word in latin_stop_words(language):
        return ""
    if language not in ALGORITHMS:
        return word
    before = ""
    while language == "turkish" and before != word:
        before, word = word, _DOTLESS.sub("\\1\u0131", word)
    return bare(stemmer(language)(word))


_DOTLESS = re.compile("([a\u0131ou][^a\u0131ouei\u00f6\u00fc]*)i")
"""Behind a vowel of the back of the mouth a Turkish ending has a dotless i (vowel harmony), which folding made plain:
the stemmer looks for it."""
