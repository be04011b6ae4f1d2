"""Stems and stop words of languages other than English.

The stems are those of snowballstemmer, except for Arabic. Text in a script that one language has
nearly to itself (Arabic, Cyrillic, Greek, Devanagari and others) is always stemmed as that
language: Persian as Arabic, Ukrainian as Russian. Questions are stemmed in the same way as
messages, so a question still finds such a message.

The language of text in Latin letters is detected by its common words. This follows the idea of
Cavnar and Trenkle, but with words, because short messages have few n-grams. Such text gets the
stems of its language in addition to the English stems, which every message has. So an English
question finds a word in a German message, and a name has the same stem in both.

`data/languages.toml` contains the words. `normalize.TERMS_VERSION` also applies to this module.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from core.text.normalize import (
    STEMMER_NAMES,
    comparison_form,
    fold,
    language_data,
    stemmer,
    to_normal_form,
)

DETECTION_WORDS = 100
"""The language of a text is detected by at most this many of its words."""
MAX_LANGUAGES = 2
"""If more languages are equally likely, the first two are used."""
_SAME_IN_DEVANAGARI = str.maketrans({"\u0901": "\u0902", "\u093c": None})
"""The two nasal signs sound the same, and the dot below is often left out."""
_BACK_VOWEL_THEN_I = re.compile("([a\u0131ou][^a\u0131ouei\u00f6\u00fc]*)i")
"""In Turkish, an ending after a back vowel has a dotless i (vowel harmony).

Folding makes it a plain i, but the stemmer expects the dotless one.
"""


# --- Scripts of their own ---


def script_form(word: str) -> str:
    """The form of a word from which its stem is made: folded and in lower case."""
    return to_normal_form("NFKC", fold(word).casefold()).translate(_SAME_IN_DEVANAGARI)


@lru_cache(maxsize=1)
def script_stop_words() -> frozenset[str]:
    """Stop words of the languages with a script of their own, as `script_form` returns them."""
    words: set[str] = set()
    for script in language_data("languages")["scripts"].values():
        words.update(map(script_form, script["words"].split()))
    return frozenset(words)


def script_stem(word: str) -> str:
    """The stem of a word that isn't in Latin letters, or "" for a stop word."""
    form = script_form(word)
    if form in script_stop_words():
        return ""
    match = _script_letters().match(form)
    language = match.lastgroup if match else None
    if language == "arabic":
        return _stem_arabic(form)
    return stemmer(language)(form) if language in STEMMER_NAMES else form


@lru_cache(maxsize=1)
def _script_letters() -> re.Pattern[str]:
    """A pattern for a letter of one of the scripts, in a group with the name of its language."""
    groups = []
    for name, script in language_data("languages")["scripts"].items():
        groups.append(f"(?P<{name}>[{script['letters']}])")
    return re.compile("|".join(groups))


def _stem_arabic(word: str) -> str:
    """Remove the article and endings of a word. At least two letters stay.

    This is light10 of Larkey, Ballesteros and Connell, "Light stemming for Arabic information
    retrieval" (2007). Snowball's stemmer gives a different stem for a word with the article.
    """
    if len(word) > 3:
        word = word.removeprefix("و")
    arabic = language_data("languages")["scripts"]["arabic"]
    for article in arabic["articles"]:
        if word.startswith(article) and len(word) >= len(article) + 2:
            word = word.removeprefix(article)
            break
    for ending in arabic["endings"]:
        if word.endswith(ending) and len(word) >= len(ending) + 2:
            word = word.removesuffix(ending)
    return word


# --- Latin letters ---


def detect_languages(words: Sequence[str], letters: Iterable[str] = ()) -> tuple[str, ...]:
    """The likeliest languages of a text in Latin letters, whose `words` are in lower case.

    `letters` are the letters with accents. Returns () if English is as likely, if there is only one
    word, or if a single letter is the only evidence, because it may be part of a name.
    """
    letters = list(letters)
    checked_words = words[:DETECTION_WORDS]
    known_letters = [letter for letter in letters if letter in _languages_by_sign()]
    has_foreign_word = not non_english_words().isdisjoint(checked_words)
    if len(words) < 2 or not (has_foreign_word or len(known_letters) > 1):
        return ()
    counts: Counter[str] = Counter()
    for sign in chain(checked_words, letters):
        counts.update(_languages_by_sign().get(sign, ()))
    highest = max(counts.values())
    if counts["english"] == highest:
        return ()
    return tuple(name for name in counts if counts[name] == highest)[:MAX_LANGUAGES]


@lru_cache(maxsize=1)
def non_english_words() -> frozenset[str]:
    """Stop words of other languages in Latin letters that English text doesn't have."""
    latin = language_data("languages")["latin"]
    words: set[str] = set()
    for name in latin:
        if name != "english":
            words |= latin_stop_words(name)
    english = language_data("words")["stop_words"].split()
    return frozenset(words.difference(latin["english"].split(), english))


@lru_cache(maxsize=1)
def _languages_by_sign() -> Mapping[str, tuple[str, ...]]:
    """The languages by sign. A sign is a stop word or a letter with an accent."""
    latin = language_data("languages")["latin"]
    languages: dict[str, list[str]] = {}
    for name in latin:
        if name == "english":
            continue
        for sign in latin_stop_words(name).union(latin[name]["letters"]):
            languages.setdefault(sign, []).append(name)
    for word in frozenset(language_data("words")["stop_words"].split()):
        languages.setdefault(word, []).append("english")
    return {sign: tuple(names) for sign, names in languages.items()}


@lru_cache(maxsize=32)
def latin_stop_words(language: str) -> frozenset[str]:
    """The stop words of a language in Latin letters, folded, with and without accents.

    In languages without a stemmer, all words keep their accents, which distinguish them.
    """
    words = language_data("languages")["latin"][language]["words"].split()
    forms = set(map(fold, words))
    if language in STEMMER_NAMES:
        forms.update(map(comparison_form, words))
    return frozenset(forms)


def latin_stem(language: str, word: str) -> str:
    """The stem of a lower-case word in a language, without accents, or "" for a stop word.

    Vietnamese has no stems, so its syllables keep their accents, which are tones.
    """
    if word in latin_stop_words(language):
        return ""
    if language not in STEMMER_NAMES:
        return word
    if language == "turkish":
        word = _restore_dotless_i(word)
    return comparison_form(stemmer(language)(word))


def _restore_dotless_i(word: str) -> str:
    """Replace each i that must be dotless, from the first to the last."""
    before = ""
    while before != word:
        before = word
        word = _BACK_VOWEL_THEN_I.sub("\\1\u0131", word)
    return word
