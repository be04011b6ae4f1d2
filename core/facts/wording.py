"""Compare the names, words and numbers of two texts.

Words may have different endings, and numbers may be written in digits or in words.
`data/evidence.toml` has the patterns and word lists.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache, partial

from core.dates.periods_in_text import month_number
from core.facts.patterns import claim_pattern
from core.guard.origin_and_fence import typed_part
from core.text.normalize import fold, is_unspaced, language_data, plain_with_offsets, words_of
from core.text.pastes import QUOTATION
from core.text.terms import entity_key, hint_words, stop_words, word_terms

ENGLISH_SHARE = 0.3
"""A text is English if at least this share of its words are English stop words."""
ENGLISH_SHARE_WITH_ACCENTS = 0.5
"""The minimum share for a text with accented words, because words like "me" and "a" also occur in
other languages."""
MIN_LONG_FIGURE_DIGITS = 4
"""A number of at least this length is found even if its digits are grouped differently, such as
"00351 912" and "003 51912"."""

FIGURE = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"(?<=[.!?;。！？])\s*(?=\D)|\n+")
"""The gap after a punctuation mark (except before a digit, as in "3.5"), or line breaks."""
_SENTENCE_START = re.compile(r"(?:\A|(?<=[.!?;。！？\n]))\s*(?=\S)")
_MIN_QUOTED_CHARS = 20
"""Shorter quoted text may be a name."""
_HAN_NUMBER = re.compile(r"[〇一二三四五六七八九十]{1,40}")
"""A number in Chinese or Japanese characters, such as ``二十三``."""
_AFTERNOON_HOUR = re.compile(r"\b(1[3-9]|2[0-3])[:.h]?\d?")
"""An hour from 13 to 23: ``15``, ``15:30``, ``15h``."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")
"""A word, perhaps with a hyphen: ``three``, ``twenty-one``."""
_QUOTING_LINE_STARTS = (">", "[att")
"""A line that begins with one of these is a quotation or a note about an attachment."""
_data = partial(language_data, "evidence", "core.facts")


@cache
def evidence_pattern(name: str) -> re.Pattern[str]:
    """Compile a pattern of `data/evidence.toml`."""
    return re.compile(_data()["patterns"][name].replace("\n", ""), re.IGNORECASE)


@cache
def evidence_words(name: str) -> frozenset[str]:
    """Return a word list of `data/evidence.toml`."""
    return frozenset(_data()["words"][name])


class AnalyzedText:
    """A text, prepared for comparing its words and numbers with those of other texts."""

    def __init__(self, text: str) -> None:
        self.text = text
        # The text in lower case and without accents.
        self.plain = plain_with_offsets(fold(text))[0]
        self.words = frozenset(words_of(self.plain))
        self.terms = frozenset(word_terms(text))
        self.numbers = numbers_in(self.plain)
        # All digits of the text, joined.
        self.digits = "".join(FIGURE.findall(self.plain))
        # The attributes that words of the text belong to, e.g. "home" for "live".
        self.attributes = _attributes_of(self.terms)

    def has_name(self, name: str) -> bool:
        """Return whether the text contains all words of a name.

        They may have endings ("Anna's").
        """
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
        """Return whether the text contains a form of a word, or the number that the word means."""
        if term in self.terms or any(have_same_stem(term, text_term) for text_term in self.terms):
            return True
        return _number_words().get(term, -1) in self.numbers

    def mentions(self, term: str) -> bool:
        """Return whether the text contains a word, or another word for the same attribute.

        For example, a text with "moved" mentions "live", because both words belong to the attribute
        "home".
        """
        return self.has_word(term) or not self.attributes.isdisjoint(_attributes_of([term]))

    def has_figure(self, figure: str) -> bool:
        """Return whether the text contains the number `figure`, in digits or in words.

        The digits of a long number may be grouped differently.
        """
        if int(figure) in self.numbers:
            return True
        return len(figure) >= MIN_LONG_FIGURE_DIGITS and figure in self.digits


def split_sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text)


def extract_own_words(text: str, *, with_doubtful: bool = False, sender_name: str = "") -> str:
    """Return the part of a message that is in the sender's own words.

    Quotations, quoted lines, and pasted text ("translate this: …") are removed. Lines that may be
    pasted are kept only `with_doubtful`.
    """
    part = typed_part(text, with_doubtful=with_doubtful, sender_name=sender_name)
    lines = QUOTATION.sub(_drop_long_quotation, part).splitlines()
    own_lines = [line for line in lines if not line.lstrip().startswith(_QUOTING_LINE_STARTS)]
    own_text = "\n".join(own_lines).strip()
    for sentence_start in _SENTENCE_START.finditer(own_text):
        if claim_pattern("handed_over").match(own_text, sentence_start.end()):
            return own_text[: sentence_start.end()].rstrip()
    return own_text


def _drop_long_quotation(quotation: re.Match[str]) -> str:
    return quotation[0] if len(quotation[0].strip("`'")) < _MIN_QUOTED_CHARS + 2 else " "


def numbers_in(plain: str) -> frozenset[int]:
    """Return all numbers in a text without accents: digits, number words, months and Han numbers.

    Number words of all languages are included, regardless of the text's language. An afternoon hour
    also counts as an hour of the twelve-hour clock: "15:00" contains 15 and 3.
    """
    numbers = {int(figure) for figure in re.findall(r"\d{1,40}", plain)}
    for word in _WORD.findall(plain):
        number = _number_words().get(word)
        if not number and names_month(word, plain):
            number = month_number(word)
        if number:
            numbers.add(number)
    numbers |= {int(hour) % 12 for hour in _AFTERNOON_HOUR.findall(plain)}
    for word, minutes in _data()["parts_of_an_hour"].items():
        if word in plain:
            numbers.add(minutes)
    numbers |= {_parse_han_number(text) for text in _HAN_NUMBER.findall(plain)}
    return frozenset(numbers)


def names_month(word: str, plain: str) -> bool:
    """Return whether a word in a text without accents is a month.

    "May" and "march" are months only next to a number, or in phrases such as "in May". Otherwise,
    they are verbs.
    """
    if month_number(word) is None:
        return False
    is_verb = word in evidence_words("month_verbs")
    return not is_verb or evidence_pattern("month_place").search(plain) is not None


def _parse_han_number(text: str) -> int:
    """Parse a number from 1 to 99, or a row of digits: ``二十三`` is 23, ``二〇二六`` is 2026."""
    digits = [int(unicodedata.numeric(character)) for character in text]
    if 10 not in digits:
        return int("".join(map(str, digits)))
    # The digit before 十 (ten) counts the tens, and the digit after it the ones. Both are optional.
    ten_index = digits.index(10)
    tens = digits[ten_index - 1] if ten_index else 1
    ones = sum(digits[ten_index + 1 : ten_index + 2])
    return 10 * tens + ones


def are_forms_of_name(name: str, other: str) -> bool:
    """Return whether two words may be forms of one name: Anna and Annas, Москва and Москве."""
    if name.isascii() and other.isascii():
        short, long = sorted((name, other), key=len)
        return len(short) > 2 and long in (short + "s", short + "es")
    return have_same_stem(name, other, min_stem=2, max_ending=2)


def have_same_stem(word: str, other: str, min_stem: int = 3, max_ending: int = 3) -> bool:
    """Return whether two words differ only in their last letters.

    The words must share at least `min_stem` + 1 letters at the beginning, and may differ in at most
    `max_ending` letters at the end.
    """
    stem_length = max(min_stem + 1, len(word) - max_ending, len(other) - max_ending)
    return word[:stem_length] == other[:stem_length]


def is_english(text: str) -> bool:
    """Return whether a text is probably English, because it has many English stop words."""
    words = words_of(plain_with_offsets(text)[0])
    has_accents = any(not word.isascii() and word.islower() for word in words_of(text))
    min_share = ENGLISH_SHARE_WITH_ACCENTS if has_accents else ENGLISH_SHARE
    stop_word_list = stop_words()
    stop_word_count = len([word for word in words if word in stop_word_list])
    return stop_word_count >= min_share * len(words)


def _attributes_of(terms: Iterable[str]) -> frozenset[str]:
    """Return the attributes to which any of the terms belongs."""
    term_set = set(terms)
    return frozenset(
        attribute
        for attribute, hints in _terms_by_attribute().items()
        if not hints.isdisjoint(term_set)
    )


@cache
def _terms_by_attribute() -> Mapping[str, frozenset[str]]:
    return {attribute: frozenset(word_terms(words)) for attribute, words in hint_words().items()}


@cache
def _number_words() -> Mapping[str, int]:
    """Return the number for each number word.

    Line n of the word list contains the words for n in several languages.
    """
    numbers: dict[str, int] = {}
    for number, line in enumerate(_data()["words"]["counted"], 1):
        for word in line.split():
            numbers[plain_with_offsets(word)[0]] = number
    return numbers
