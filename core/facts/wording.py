"""Compares the wording of two texts: names, words in any form, and numbers in figures or words.

The patterns and word lists are in `data/evidence.toml`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache, partial

from core.dates.mentions import month_number
from core.facts.patterns import claim_pattern
from core.guard.origin_and_fence import typed_part
from core.text.normalize import fold, is_unspaced, language_data, plain_with_offsets, words_of
from core.text.terms import entity_key, hint_words, stop_words, word_terms

ENGLISH_SHARE = 0.3
"""A text with this share of English stop words is English."""
ENGLISH_SHARE_WITH_ACCENTS = 0.5
"""The same for a text with accented words: other languages have words like "me" and "a" too."""
MIN_LONG_FIGURE_DIGITS = 4
"""A figure of this length may be grouped in another way: 00351 912 and 003 51912."""

FIGURE = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"(?<=[.!?;。！？])\s*(?=\D)|\n+")
_SENTENCE_START = re.compile(r"(?:\A|(?<=[.!?;。！？\n]))\s*(?=\S)")
_QUOTATION = re.compile(r"[“”\"«„「][^“”\"»」\n]{20,}[“”\"»」]")
"""Text in quotation marks that is longer than a name."""
_HAN_NUMBER = re.compile(r"[〇一二三四五六七八九十]{1,40}")
_AFTERNOON_HOUR = re.compile(r"\b(1[3-9]|2[0-3])[:.h]?\d?")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")
_QUOTING_LINE_STARTS = (">", "[att")
_data = partial(language_data, "evidence", "core.facts")


@cache
def evidence_pattern(name: str) -> re.Pattern[str]:
    """A pattern of `data/evidence.toml`."""
    return re.compile(_data()["patterns"][name].replace("\n", ""), re.IGNORECASE)


@cache
def evidence_words(name: str) -> frozenset[str]:
    """A word list of `data/evidence.toml`."""
    return frozenset(_data()["words"][name])


class AnalyzedText:
    """A text with everything that comparisons need."""

    def __init__(self, text: str) -> None:
        self.text = text
        # Folded, without accents.
        self.plain = plain_with_offsets(fold(text))[0]
        self.words = frozenset(words_of(self.plain))
        self.terms = frozenset(word_terms(text))
        self.numbers = numbers_in(self.plain)
        # All digits without anything in between.
        self.digits = "".join(FIGURE.findall(self.plain))
        # Attributes, such as "home", that the text has words for.
        self.attributes = _attributes_of(self.terms)

    def has_name(self, name: str) -> bool:
        """Whether the text has all words of a name, each perhaps in another case."""
        key = entity_key(name)
        if key and is_unspaced(key):
            return key.replace(" ", "") in self.plain.replace(" ", "")
        is_same = have_same_stem if name.islower() else are_forms_of_name
        for name_word in key.split():
            if name_word in self.words:
                continue
            if not any(is_same(name_word, word) for word in self.words):
                return False
        return True

    def has_word(self, term: str) -> bool:
        """Whether the text has a word in some form, or the number that the word stands for."""
        if term in self.terms or any(have_same_stem(term, own) for own in self.terms):
            return True
        return _number_words().get(term, -1) in self.numbers

    def mentions(self, term: str) -> bool:
        """Whether the text has a word, or another word for the same attribute."""
        return self.has_word(term) or not self.attributes.isdisjoint(_attributes_of([term]))

    def has_figure(self, figure: str) -> bool:
        """Whether the text has a number: in figures, in words, or in a long number grouped
        differently."""
        if int(figure) in self.numbers:
            return True
        return len(figure) >= MIN_LONG_FIGURE_DIGITS and figure in self.digits


def split_sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text)


def extract_own_words(text: str) -> str:
    """Return what the sender says themselves.

    Quotations, lines that quote others, and everything that is handed over to be worked on ("look
    at this: ...") are left out.
    """
    lines = _QUOTATION.sub(" ", typed_part(text)).splitlines()
    own_lines = [line for line in lines if not line.lstrip().startswith(_QUOTING_LINE_STARTS)]
    own_text = "\n".join(own_lines).strip()
    for sentence_start in _SENTENCE_START.finditer(own_text):
        if claim_pattern("handed_over").match(own_text, sentence_start.end()):
            return own_text[: sentence_start.end()].rstrip()
    return own_text


def numbers_in(plain: str) -> frozenset[int]:
    """All numbers of a plain text: in figures, in words, of months, and in Han figures.

    A word that may be a number or a month counts as one. Hours after noon also count as those of
    the clock face.
    """
    numbers = {int(figure) for figure in re.findall(r"\d{1,40}", plain)}
    for word in _WORD.findall(plain):
        number = _number_words().get(word) or month_number(word)
        if number:
            numbers.add(number)
    numbers |= {int(hour) % 12 for hour in _AFTERNOON_HOUR.findall(plain)}
    for word, minutes in _data()["parts_of_an_hour"].items():
        if word in plain:
            numbers.add(minutes)
    numbers |= {_parse_han_number(text) for text in _HAN_NUMBER.findall(plain)}
    return frozenset(numbers)


def _parse_han_number(text: str) -> int:
    """``二十三`` is 23, ``二〇二六`` is 2026."""
    digits = [int(unicodedata.numeric(character)) for character in text]
    if 10 not in digits:
        return int("".join(map(str, digits)))
    ten = digits.index(10)
    tens = digits[ten - 1] if ten else 1
    ones = sum(digits[ten + 1 : ten + 2])
    return 10 * tens + ones


def are_forms_of_name(one: str, other: str) -> bool:
    """Whether two words may be one name in two cases: Anna and Annas, Москва and Москве."""
    if one.isascii() and other.isascii():
        short, long = sorted((one, other), key=len)
        return len(short) > 2 and long in (short + "s", short + "es")
    return have_same_stem(one, other, min_stem=2, max_ending=2)


def have_same_stem(one: str, other: str, min_stem: int = 3, max_ending: int = 3) -> bool:
    """Whether two words differ only in their endings, of at most `max_ending` letters."""
    stem_length = max(min_stem + 1, len(one) - max_ending, len(other) - max_ending)
    return one[:stem_length] == other[:stem_length]


def is_english(text: str) -> bool:
    """Whether enough of the words are English stop words."""
    words = words_of(plain_with_offsets(text)[0])
    has_accents = any(not word.isascii() and word.islower() for word in words_of(text))
    min_share = ENGLISH_SHARE_WITH_ACCENTS if has_accents else ENGLISH_SHARE
    known_words = stop_words()
    return sum(word in known_words for word in words) >= min_share * len(words)


def _attributes_of(terms: Iterable[str]) -> frozenset[str]:
    """The attributes that any of the terms is a word for."""
    own_terms = set(terms)
    return frozenset(
        attribute
        for attribute, hints in _terms_by_attribute().items()
        if not hints.isdisjoint(own_terms)
    )


@cache
def _terms_by_attribute() -> Mapping[str, frozenset[str]]:
    return {attribute: frozenset(word_terms(words)) for attribute, words in hint_words().items()}


@cache
def _number_words() -> Mapping[str, int]:
    """The numbers of words: line n of the list has the words for n."""
    numbers: dict[str, int] = {}
    for number, line in enumerate(_data()["words"]["counted"], 1):
        for word in line.split():
            numbers[plain_with_offsets(word)[0]] = number
    return numbers
