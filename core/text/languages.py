"""Defines the stems and stop words of languages other than English.

snowballstemmer computes the stems, except for Arabic. All text in the script of Arabic, Russian,
Greek or Hindi is stemmed as that language: Persian as Arabic, Ukrainian as Russian. Questions are
stemmed in the same way as messages, so they still find such messages.

The language of text in Latin letters is detected by its common words. Cavnar and Trenkle detect
languages by n-grams, but short messages contain few of them. Each word of such a text gets a stem
in its language and an English stem. So an English question finds a word in a German message, and a
name has the same stem in both.

`data/languages.toml` contains the words. Raise `normalize.TERMS_VERSION` if a change of this module
changes terms.
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
"""The language of a text is detected by this many words at its beginning."""
MAX_LANGUAGES = 2
"""If more languages are equally likely, the first two are used."""
_SAME_IN_DEVANAGARI = str.maketrans({"\u0901": "\u0902", "\u093c": None})
"""In Devanagari, two nasal signs sound the same, and the dot below is often left out."""
_BACK_VOWEL_THEN_I = re.compile("([a\u0131ou][^a\u0131ouei\u00f6\u00fc]*)i")
"""Matches a plain i whose previous vowel is a back vowel: a, o, u or the dotless i.

In Turkish endings, such an i is dotless (vowel harmony). Folding turns the dotless i into a plain
one, but the stemmer expects the dotless i.
"""


# --- Scripts of their own ---


def script_form(word: str) -> str:
    """Fold a word and convert it to lower case, before it is stemmed."""
    return to_normal_form("NFKC", fold(word).casefold()).translate(_SAME_IN_DEVANAGARI)


@lru_cache(maxsize=1)
def script_stop_words() -> frozenset[str]:
    """Return the stop words of the languages with their own script, in their `script_form`."""
    words: set[str] = set()
    for script in language_data("languages")["scripts"].values():
        words.update(map(script_form, script["words"].split()))
    return frozenset(words)


def script_stem(word: str) -> str:
    """Return the stem of a word that isn't in Latin letters, or "" for a stop word."""
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
    """Return a pattern for a letter of any script. The groups are named after languages."""
    groups = []
    for name, script in language_data("languages")["scripts"].items():
        groups.append(f"(?P<{name}>[{script['letters']}])")
    return re.compile("|".join(groups))


def _stem_arabic(word: str) -> str:
    """Return a word without its article and endings, with at least two letters.

    This is light10 of Larkey, Ballesteros and Connell, "Light stemming for Arabic information
    retrieval" (2007). Snowball's stemmer isn't used, because it returns different stems for a word
    with and without the article.
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
    """Return the most likely languages of a text in Latin letters, or () for English.

    `words` are the words of the text in lower case, and `letters` its letters with accents. The
    result is also () if English is as likely, if there is only one word, or if a single letter is
    the only evidence. Such a letter may be part of a name.
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
    """Return the stop words of other languages in Latin letters that aren't English words."""
    latin = language_data("languages")["latin"]
    words: set[str] = set()
    for name in latin:
        if name != "english":
            words |= latin_stop_words(name)
    english = language_data("words")["stop_words"].split()
    return frozenset(words.difference(latin["english"].split(), english))


@lru_cache(maxsize=1)
def _languages_by_sign() -> Mapping[str, tuple[str, ...]]:
    """Return the languages that each stop word and each letter with an accent indicates."""
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
    """Return the folded stop words of a language in Latin letters, with and without accents.

    For a language without a stemmer, only the forms with accents are returned, because accents
    distinguish its words.
    """
    words = language_data("languages")["latin"][language]["words"].split()
    forms = set(map(fold, words))
    if language in STEMMER_NAMES:
        forms.update(map(comparison_form, words))
    return frozenset(forms)


def latin_stem(language: str, word: str) -> str:
    """Return the stem of a lower-case word in a language, or "" for a stop word.

    The stem has no accents. Vietnamese words aren't stemmed and keep their accents, which are
    tones.
    """
    if word in latin_stop_words(language):
        return ""
    if language not in STEMMER_NAMES:
        return word
    if language == "turkish":
        word = _restore_dotless_i(word)
    return comparison_form(stemmer(language)(word))


def _restore_dotless_i(word: str) -> str:
    """Return a Turkish word with a dotless i for each i that follows a back vowel."""
    # Each replaced i is a back vowel itself, so the next i may have to be replaced too.
    before = ""
    while before != word:
        before = word
        word = _BACK_VOWEL_THEN_I.sub("\\1\u0131", word)
    return word
