"""Turns text into the terms that ranking counts, and finds the names in a text.

Terms are the stems of words that aren't stop words, pairs of characters in scripts without spaces,
and symbols. English words are stemmed with Porter's algorithm (Program 14, 1980), after irregular
forms are replaced with their base forms ("went" with "go"). This replacement improves hit@1 on
LoCoMo by about one point. `languages` stems other languages, and `runs` splits text in scripts
without spaces. Raise `normalize.TERMS_VERSION` if a change of this module changes terms.
"""

from __future__ import annotations

import calendar
import re
import sys
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date
from functools import lru_cache
from threading import Lock
from typing import Literal, NamedTuple, get_args

from core.text import normalize
from core.text.languages import (
    DETECTION_WORDS,
    detect_languages,
    latin_stem,
    non_english_words,
    script_stem,
)
from core.text.normalize import (
    MAX_INDEXED_CHARS,
    clean_query,
    comparison_form,
    fold,
    is_unspaced,
    language_data,
    plain_with_offsets,
    signed_terms,
    split_unspaced,
    stemmer,
    symbol_token,
    to_normal_form,
    without_marks,
    words_of,
)
from core.text.runs import (
    asks_when_unspaced,
    drop_covered_characters,
    question_run_terms,
    run_terms,
)

MAX_SCANNED_CHARS = 2_000
"""Functions that check a whole text look at most at this many of its characters."""
SHORT_TEXT_CHARS = 500
SHORT_TEXTS_CACHED = 1_000
"""The terms of this many short messages are cached. The cache usually takes 1 MB."""
CACHED_LONG_CHARS = 1_500_000
"""The terms of longer messages with this total number of characters are cached. The cache usually
takes 3 MB.

Both caches together take up to 30 MB if all messages are Chinese and as long as possible.
"""
_ASCII_WORDS = bytes(
    code if chr(code).isascii() and chr(code).isalnum() else 32 for code in range(256)
).lower()
"""A translation table that turns ASCII text into lower-case words with spaces between them.

It takes a sixth of the time of a regular expression, which matters because ranking reads much text.
"""
_ACCENTED_LATIN = re.compile("[\u00df-\u024f\u1e00-\u1eff]")
_SENTENCE_START = re.compile(r"(?:^|[.:?!\u2026]\s|\n)\W{0,9}+\w")
"""The first letter of a sentence, with the signs before it.

In a question, a capital letter there doesn't indicate a name.
"""
_ASKS_WHEN = re.compile(r"\b(?:when|how long|what (?:date|day|month|year|time))\b", re.IGNORECASE)

Forms = tuple[str, ...]
"""The terms of one word: its stem in the language of the text, then its other possible stems."""


# --- English words ---


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """Return English words that are too common to distinguish messages."""
    return frozenset(language_data("words")["stop_words"].split())


@lru_cache(maxsize=1)
def irregular_forms() -> Mapping[str, str]:
    """Return the base form of each irregular English form, such as "go" for "went"."""
    bases: dict[str, str] = {}
    for family in language_data("words")["irregular_forms"]:
        base, *forms = family.split()
        bases.update(dict.fromkeys(forms, base))
    return bases


@lru_cache(maxsize=1)
def _irregular_stems() -> Mapping[str, str]:
    """Return the stem of each irregular form."""
    return {form: stem(base) for form, base in irregular_forms().items()}


def stem(word: str) -> str:
    """Return the English stem of a word in lower case: "ferri" for "ferries".

    Short words, numbers and words of other alphabets are returned unchanged.
    """
    word = irregular_forms().get(word, word)
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    return stemmer("porter")(word)


# 6,000 words take 2 MB, and a busy gateway has seen that many after some minutes.
@lru_cache(maxsize=6_000)
def _term(word: str) -> str:
    """Return the term of a word in lower case, or "" for a stop word."""
    if word in stop_words():
        return ""
    if word.isascii():
        return stem(word)
    # Without its accents, a Latin word is ASCII and gets an English stem.
    plain = without_marks(fold(word))
    return stem(plain) if plain.isascii() else script_stem(word)


# --- Terms of texts ---


def terms_of(text: str) -> list[str]:
    """Return the terms of a text in order, with repetitions. Stop words have no term.

    Other possible stems of words, and the terms of words with a sign (``C++``), come at the end.
    """
    if text.isascii():
        words = text.encode().translate(_ASCII_WORDS).decode().split()
        if non_english_words().isdisjoint(words[:DETECTION_WORDS]):
            return [*filter(None, map(_term, words)), *signed_terms(text)]
        return _spaced_terms(words, text)
    spaced_text, runs = split_unspaced(text)
    return [
        *_spaced_terms(words_of(spaced_text.casefold()), spaced_text),
        *_unspaced_terms(runs, run_terms),
    ]


def word_terms(text: str) -> list[str]:
    """Return the terms of single words or names, without detecting their language."""
    spaced_text, runs = split_unspaced(text)
    words = words_of(spaced_text.casefold())
    terms = [*filter(None, map(_term, words)), *signed_terms(spaced_text)]
    return terms + _unspaced_terms(runs, run_terms)


@lru_cache(maxsize=10_000)
def name_terms(name: str) -> tuple[str, ...]:
    """Return the terms of a person's name."""
    return tuple(word_terms(name))


@lru_cache(maxsize=10_000)
def date_terms(day: date) -> tuple[str, ...]:
    """Return the search terms of a day, written as in a question: ``Monday 8 May 2023``.

    These terms improve hit@1 by two points.
    """
    return tuple(word_terms(f"{day:%A} {day.day} {day:%B} {day.year}"))


class MessageTerms(NamedTuple):
    """What ranking uses of a message: its terms, and whether it's a question."""

    terms: tuple[str, ...]
    # The terms of the sender's name.
    name_terms: tuple[str, ...]
    # The terms of the day on which the message was sent.
    day_terms: tuple[str, ...]
    is_question: bool


def message_terms(text: str, name: str, day_number: int) -> MessageTerms:
    """Return the terms of a message from a cache. `day_number` is the ordinal of its day."""
    find_terms = _short_message_terms if len(text) <= SHORT_TEXT_CHARS else _long_message_terms
    return find_terms(text, name, day_number)


def has_cached_terms(text: str, name: str, day_number: int) -> bool:
    """Return whether the cache of `message_terms` has the terms of a long text."""
    return (text, name, day_number) in _long_message_terms


def _message_terms(text: str, name: str, day_number: int) -> MessageTerms:
    """Compute the terms of a message.

    Interning equal terms saves 90 % of the memory. The terms of ASCII texts come from the cache of
    `_term`, so they are shared without being interned, and the table of interned strings doesn't
    grow.
    """
    terms = terms_of(text[:MAX_INDEXED_CHARS])
    return MessageTerms(
        # A loop in C would stop all other threads until the last term of a long text.
        terms=tuple(terms if text.isascii() else [sys.intern(term) for term in terms]),
        name_terms=name_terms(name),
        day_terms=date_terms(date.fromordinal(day_number)),
        is_question=is_question(text),
    )


class _LongTextCache:
    """A thread-safe cache of `_message_terms` for long texts.

    The cache contains the most recently used texts, up to `CACHED_LONG_CHARS` characters.
    """

    def __init__(self) -> None:
        self._terms: OrderedDict[tuple[str, str, int], MessageTerms] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def __contains__(self, key: tuple[str, str, int]) -> bool:
        with self._lock:
            return key in self._terms

    def __call__(self, text: str, name: str, day_number: int) -> MessageTerms:
        """Return the terms of a message, from the cache if possible."""
        key = text, name, day_number
        with self._lock:
            terms = self._terms.get(key)
            if terms is not None:
                self._terms.move_to_end(key)
                return terms
        terms = _message_terms(text, name, day_number)
        with self._lock:
            if key not in self._terms:
                self._chars += len(text)
            self._terms[key] = terms
            while self._chars > CACHED_LONG_CHARS:
                (oldest_text, _, _), _ = self._terms.popitem(last=False)
                self._chars -= len(oldest_text)
        return terms


_short_message_terms = lru_cache(maxsize=SHORT_TEXTS_CACHED)(_message_terms)
_long_message_terms = _LongTextCache()


@lru_cache(maxsize=1)
def _day_and_month_terms() -> frozenset[str]:
    return frozenset(word_terms(" ".join([*calendar.day_name, *calendar.month_name])))


def is_date_term(term: str) -> bool:
    """Return whether `date_terms` can contain this term."""
    return term.isdecimal() or term in _day_and_month_terms()


@lru_cache(maxsize=1)
def moment_terms() -> frozenset[str]:
    """Return terms that are typical of messages that say when something happened."""
    latin_terms = word_terms(language_data("words")["moment_words"])
    return frozenset(latin_terms).union(language_data("cjk")["moments"].split())


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a query, at most `MAX_QUERY_TERMS`.

    In scripts without spaces, question words are left out unless nothing else remains. Single
    characters come last.
    """
    # A capital at the beginning of a sentence must not make a stop word look like a name.
    query = _SENTENCE_START.sub(lambda match: match[0].lower(), clean_query(text))
    if query.isascii():
        return list(dict.fromkeys(terms_of(query)))[: normalize.MAX_QUERY_TERMS]
    spaced_text, runs = split_unspaced(query)
    terms = _spaced_terms(words_of(spaced_text.casefold()), spaced_text)
    terms += _unspaced_terms(runs, question_run_terms)
    if not terms:
        terms = _unspaced_terms(runs, run_terms)
    terms.sort(key=lambda term: len(term) == 1)
    return list(dict.fromkeys(terms))[: normalize.MAX_QUERY_TERMS]


def alternate_terms(text: str) -> dict[str, str]:
    """Map each alternate term of a query to its main term.

    A query with only English words has no alternates. In another language, the main term of a word
    is its stem in that language, and its English stem is an alternate. If the query isn't a
    question, its first word may be a name that `query_terms` mistakes for a stop word: ``Hans`` in
    ``Hans phone number`` is Swedish for "his". Such a word has no main term, so its term is an
    alternate of "".
    """
    spaced_text, _ = split_unspaced(clean_query(text))
    forms = _forms_of_words(words_of(spaced_text.casefold()), spaced_text) or []
    alternates: dict[str, str] = {}
    for main, *others in forms:
        alternates.update(dict.fromkeys(others, main))
    if forms:
        first = forms[0][0]
        if not is_question(text) and first not in query_terms(text):
            alternates[first] = ""
    return alternates


def content_words(words: Sequence[str]) -> list[str]:
    """Return the words that aren't stop words of their language. Words must be in lower case."""
    if non_english_words().isdisjoint(words):
        return [word for word in words if _term(word)]
    languages = detect_languages(words)
    if not languages:
        return [word for word in words if _term(word)]
    return [word for word in words if _forms_in_languages(word, languages)]


def highlight_patterns(terms: list[str]) -> list[str]:
    """Return the patterns to highlight in a message that contains these terms.

    ``ferr*`` matches words that begin with the stem. Irregular forms, such as "went" for "go", are
    separate patterns.
    """
    patterns = [form for form, base in _irregular_stems().items() if base in terms]
    for term in drop_covered_characters(terms):
        # The stem of "ferry" is "ferri".
        part = term[:-1] if term.isascii() and term.endswith("i") else term
        is_prefix = len(part) > 3 and part.isalpha() and not is_unspaced(part)
        patterns.append(f"{part}*" if is_prefix else part)
    return patterns


# --- Languages other than English ---


def _spaced_terms(words: list[str], text: str) -> list[str]:
    """Return the terms of a folded text without runs. `words` are its words in lower case."""
    forms = _forms_of_words(words, text)
    if forms is None:
        return [*filter(None, map(_term, words)), *signed_terms(text)]
    terms = [main for main, *_ in forms]
    for _, *others in forms:
        terms += others
    return terms + signed_terms(text)


def _unspaced_terms(
    parts: list[tuple[str, str]], terms_of_run: Callable[[str], Sequence[str]]
) -> list[str]:
    """Return the terms of runs and symbols. `parts` comes from `split_unspaced`."""
    terms: list[str] = []
    for run, symbol in parts:
        if run:
            terms += terms_of_run(run)
        else:
            terms.append(symbol_token(symbol))
    return terms


def _languages_of(words: list[str], text: str) -> tuple[str, ...]:
    """Return the likely languages of a text in Latin letters, or () for English."""
    letters: set[str] = set()
    if not text.isascii():
        letters.update(_ACCENTED_LATIN.findall(text.casefold()))
    if not letters and non_english_words().isdisjoint(words):
        return ()
    return detect_languages(words, letters)


def _forms_of_words(words: list[str], text: str) -> list[Forms] | None:
    """Return the terms of each word except stop words, or None if the text is in English.

    A stop word with a capital letter may be a name, which has a term.
    """
    languages = _languages_of(words, text)
    if not languages:
        return None
    text_words = words_of(text)
    distinct = set(text_words)
    forms: dict[str, Forms] = {}
    for word in distinct:
        word_forms = _forms_in_languages(word.casefold(), languages)
        if not word_forms:
            word_forms = _forms_of_name(word, distinct, text)
        forms[word] = word_forms
    return [forms[word] for word in text_words if forms[word]]


@lru_cache(maxsize=20_000)
def _forms_in_languages(word: str, languages: tuple[str, ...]) -> Forms:
    """Return the stems of a word in each language and in English, or () for a stop word.

    A word that is a stop word only in English still has stems: in Romanian, ``an`` is a year.
    """
    english = _term(word)
    # `comparison_form` drops accents, so "schönen" gets stems. A word in Cyrillic doesn't.
    if not word.isalpha() or not comparison_form(word).isascii():
        return (english,) if english else ()
    stems = [latin_stem(language, word) for language in languages]
    is_single_letter_stop_word = len(word) == 1 and not english
    if not all(stems) or is_single_letter_stop_word:
        return ()
    if english:
        stems.append(english)
    return tuple(dict.fromkeys(stems))


def _forms_of_name(word: str, words: Set[str], text: str) -> Forms:
    """Return the term of a stop word that may be a name, or () if the word isn't a name.

    For example, "Ben" is a name, but "ben" is Dutch for "am". A name has a capital letter. If the
    text also contains the word in lower case, the capital must be in the middle of a sentence.
    """
    lower = word.lower()
    is_capitalized = lower != word and word[1:].islower()
    if not is_capitalized or lower in language_data("languages")["polite"]:
        return ()
    # The lookbehind matches the word after another word, a comma or a semicolon: "and Ben".
    if lower in words and not re.search(rf"{word}(?<=[\w,;]\s{word})\b", text):
        return ()
    term = _term(lower)
    return (term,) if term else ()


# --- Kinds of texts ---


def is_question(text: str) -> bool:
    """Return whether a text ends with a Latin, full-width or Arabic question mark."""
    return text.rstrip()[-1:] in ("?", "\uff1f", "\u061f")


def asks_when(text: str) -> bool:
    """Return whether a text asks for the time or the duration of something.

    Only the first `MAX_SCANNED_CHARS` characters are checked.
    """
    folded_text = fold(text[:MAX_SCANNED_CHARS])
    if _ASKS_WHEN.search(folded_text):
        return True
    return not text.isascii() and asks_when_unspaced(folded_text)


def is_about_self(text: str) -> bool:
    """Return whether the author of a text refers to themselves: ``my dentist``, ``habe ich``.

    In languages that leave out the word for "I", such texts may be missed. Only the first
    `MAX_SCANNED_CHARS` characters are checked.
    """
    first_person = language_data("words")["first_person"]
    spaced_text, runs = split_unspaced(text[:MAX_SCANNED_CHARS])
    words = words_of(spaced_text.casefold())
    distinct = set(words)
    for language in (*(_languages_of(words, spaced_text) or ("english",)), "scripts"):
        if not distinct.isdisjoint(first_person.get(language, "").split()):
            return True
    return any(re.search(first_person["unspaced"], run) for run, _ in runs)


MAX_SMALLTALK_CHARS = 80
# A letter that is written three times or more: "sooo".
_REPEATED_LETTER = re.compile(r"(.)\1{2,}")
_ASCII_GAPS = re.compile(r"[^a-z0-9']+")


def is_smalltalk(text: str) -> bool:
    """Return whether a text is empty or only small talk such as "ok", "thanks!" or "👍".

    `data/smalltalk.toml` contains the words. Words that may also be a name or a question aren't in
    the file, because an unnecessary search costs less than a missing one.
    """
    if len(text) > MAX_SMALLTALK_CHARS:
        return False
    normal = to_normal_form("NFKC", text).casefold().replace("’", "'")
    if normal.isascii():
        letters = _ASCII_GAPS.sub(" ", normal)
    else:
        letters = "".join(sign if _is_word_sign(sign) else " " for sign in normal)
    # A "word" without a letter or digit is left out, such as the variation selector of an emoji.
    words = [word.strip("'") for word in letters.split() if any(map(str.isalnum, word))]
    known_words, phrases, fillers = _smalltalk()
    for word in phrases.sub("", " ".join(words)).split():
        is_known = word in known_words or _REPEATED_LETTER.sub(r"\1", word) in known_words
        if not is_known and not fillers.fullmatch(word):
            return False
    return True


def _is_word_sign(sign: str) -> bool:
    """Return whether a character is a letter, mark, number or apostrophe."""
    return unicodedata.category(sign)[0] in "LMN" or sign == "'"


@lru_cache(maxsize=1)
def _smalltalk() -> tuple[frozenset[str], re.Pattern[str], re.Pattern[str]]:
    """Return the words of small talk, a pattern for its phrases, and a pattern for its fillers.

    A filler is laughter ("hahaha"), or a word that consists of short pieces in a script without
    spaces.
    """
    data = language_data("smalltalk")
    words = frozenset(data["words"].casefold().split())
    phrases = re.compile(rf"(?<!\S)(?:{_any_of(data['phrases'])})(?!\S)")
    # With the possessive quantifier (++), a long row of pieces with another ending fails at once.
    pieces = rf"(?:{_any_of(data['pieces'].casefold().split())})++"
    return words, phrases, re.compile(rf"{data['laughter']}|{pieces}")


def _any_of(texts: Iterable[str]) -> str:
    """Return a pattern for any of the texts, in which longer texts come first."""
    return "|".join(sorted(map(re.escape, texts), key=len, reverse=True))


ShortMessage = Literal["time", "about_me", "abilities", "mood", "thanks", "greeting"]
"""The kinds of short everyday messages. If a message has several, the first of these counts."""


def find_short_message(text: str) -> ShortMessage | None:
    """Return the kind of a message that has only phrases and fillers of `short_messages.toml`.

    "Hi Mneme, what can you do?" consists of a greeting, a filler and a question.
    """
    words = [] if len(text) > MAX_SMALLTALK_CHARS else _list_plain_words(text)
    phrases = _short_phrases()
    kinds: set[str] = set()
    while words:
        ends = range(len(words), 0, -1)
        end = next((end for end in ends if " ".join(words[:end]) in phrases), 0)
        if not end:
            return None
        kinds.add(phrases[" ".join(words[:end])])
        words = words[end:]
    return next((kind for kind in get_args(ShortMessage) if kind in kinds), None)


def _list_plain_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents and punctuation."""
    plain, _ = normalize.plain_with_offsets(text.replace("’", "'"))
    return re.sub(r"[^\w']+|_", " ", plain).split()


@lru_cache(maxsize=1)
def _short_phrases() -> Mapping[str, str]:
    """Return the kind of each phrase. A phrase that is also a filler isn't a filler."""
    data = language_data("short_messages")
    kinds: dict[str, str] = {}
    for kind in (*get_args(ShortMessage), "fillers"):
        for phrase in re.split(r"[,\n]", data[kind]["phrases"]):
            kinds.setdefault(" ".join(_list_plain_words(phrase)), kind)
    kinds.pop("", None)
    return kinds


# --- Names ---

MAX_NAME_WORDS = 4
"""A name in a question has at most this many words."""
MAX_KEY_WORDS = 60
"""Only this many words at the beginning of a question are searched for names."""
MAX_NAMES = 8
"""At most this many names are taken from a statement."""
MAX_NAME_CHARS = 80
_WORD = re.compile(r"[^\W\d_][\w’'-]*")
_POSSESSIVE = re.compile(r"[’']s$|[’']$")


@lru_cache(maxsize=1)
def _ordinary_words() -> frozenset[str]:
    """Return words that aren't names even if capitalized, such as days and months."""
    days = {name.lower() for name in (*calendar.day_name, *calendar.month_name) if name}
    return stop_words() | days | frozenset(language_data("words")["sentence_beginnings"].split())


def entity_key(name: str) -> str:
    """Return a form of a name that is the same for different spellings.

    The form is in lower case, without accents, signs and a possessive s: "joana" for "Joana's".
    """
    words = words_of(plain_with_offsets(name)[0])
    if len(words) > 1 and words[-1] == "s":
        words = words[:-1]
    return " ".join(words)


def names_in(text: str) -> tuple[str, ...]:
    """Return the distinct names in a statement, at most `MAX_NAMES`.

    A name is a sequence of capitalized words that aren't ordinary words, such as "New York". A
    possessive s is removed. Only the first `MAX_SCANNED_CHARS` characters are checked.
    """
    # The words of each name. The last list is the name that is being read, and may be empty.
    names: list[list[str]] = [[]]
    end = -1
    for match in _WORD.finditer(fold(text)[:MAX_SCANNED_CHARS]):
        word = _POSSESSIVE.sub("", match[0])
        is_part_of_name = _is_name_word(word)
        follows_word = match.string[end : match.start()] == " "
        if not is_part_of_name or not follows_word:
            names.append([])
        if is_part_of_name:
            names[-1].append(word)
        is_possessive = word != match[0]
        if is_possessive:
            names.append([])
        end = match.end()
    distinct = dict.fromkeys(" ".join(words)[:MAX_NAME_CHARS] for words in names if words)
    return tuple(distinct)[:MAX_NAMES]


def _is_name_word(word: str) -> bool:
    """Return whether a word is capitalized and isn't an ordinary word."""
    if len(word) < 2 or not word[0].isupper():
        return False
    return word.casefold().replace("’", "'") not in _ordinary_words()


def entity_keys_in(text: str) -> tuple[str, ...]:
    """Return all parts of a question that may be the `entity_key` of a name, longest first.

    These are the sequences of up to `MAX_NAME_WORDS` words, except single stop words. Only the
    beginning of a long question is checked.
    """
    words = words_of(plain_with_offsets(text[:MAX_SCANNED_CHARS])[0])[:MAX_KEY_WORDS]
    keys: dict[str, None] = {}
    for size in range(MAX_NAME_WORDS, 0, -1):
        for start in range(len(words) - size + 1):
            is_stop_word = size == 1 and words[start] in stop_words()
            if not is_stop_word:
                keys[" ".join(words[start : start + size])] = None
    return tuple(keys)


# --- Attributes of people ---

ME = "me"
"""The subject of the speaker's own attributes."""


def attribute_key(subject: str, name: str, detail: str = "") -> str:
    """Return the key of an attribute, such as ``me|home``, ``ana|birthday`` or ``me|sister|ana``.

    The key has the form ``subject|name`` or ``subject|name|detail``. An empty subject means the
    speaker. `data/attributes.toml` contains the names.
    """
    return "|".join(part for part in (subject or ME, name, detail) if part).casefold()


def hint_words() -> dict[str, str]:
    """Return words that occur in questions about an attribute but not in answers, by attribute."""
    hints: dict[str, str] = language_data("attributes")["hints"]
    return hints


@lru_cache(maxsize=1000)
def hint_terms(attribute: str | None) -> tuple[str, ...]:
    """Return the terms of the `hint_words` for an attribute key, or () if it has none."""
    parts = (attribute or "").split("|")
    if len(parts) < 2:
        return ()
    return tuple(dict.fromkeys(terms_of(hint_words().get(parts[1], ""))))


def relation_words() -> tuple[str, ...]:
    """Return the English words for relatives, other people and pets: ``sister``, ``doctor``."""
    relations = language_data("attributes")["kin"]
    return tuple(relations["one"] + relations["several"])


@lru_cache(maxsize=1)
def english_relation_words() -> Mapping[str, str]:
    """Return the English word for each relation word of any language.

    The keys are in plain form: in lower case, without accents.
    """
    english_words: dict[str, str] = {}
    for words_by_english in language_data("attributes")["kin_abroad"].values():
        for english, words in words_by_english.items():
            for word in words.split():
                english_words[word] = english
    english_words.update((word, word) for word in relation_words())
    return {plain_with_offsets(word)[0]: english for word, english in english_words.items()}


def is_plural_relation(relation: str) -> bool:
    """Return whether a person can have several people of a relation, such as friends."""
    return relation in language_data("attributes")["kin"]["several"]
