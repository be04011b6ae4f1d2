"""Finds out whether a person typed the wish for a change, and whether they named the thing.

The words of a wish are data (`data/wishes.toml`), in ten languages that are matched together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from core.text.normalize import is_unspaced, language_data, words_of
from core.text.terms import word_terms
from core.types import Effect, Subject

# The tables of wishes.toml that show the wish for an effect.
_WISH_TABLES = {
    Effect.CHANGE: ("change", "remove", "weaken"),
    Effect.WEAKEN: ("weaken", "remove"),
    Effect.REMOVE: ("remove",),
    Effect.PLAN: ("plan",),
}
# A word with at most this many letters must be a whole typed word.
SHORT_WORD = 3
_NUMBER = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")


def has_wish(typed: str, effect: Effect) -> bool:
    """Return True if a typed text contains a sentence that asks for the effect."""
    return bool(find_wishes(typed, effect))


def find_wishes(typed: str, effect: Effect) -> str:
    """Return the sentences of a typed text that ask for the effect, or "".

    A question isn't a wish ("Is my inbox clear?"), unless it asks the assistant to do something
    ("Can you clear it?"). A word of a wish that is denied doesn't count ("Don't delete it").
    """
    tables = _WISH_TABLES.get(effect, ())
    wishes = []
    for sentence in _SENTENCE_END.split(typed):
        is_question = sentence.rstrip().endswith(("?", "\uff1f"))
        if is_question and not has_word(sentence, "request"):
            continue
        wished = _leave_out_denied(sentence, tables)
        if any(has_word(wished, table) for table in tables):
            wishes.append(sentence)
    return "\n".join(wishes)


def _leave_out_denied(sentence: str, tables: Sequence[str]) -> str:
    """Return a sentence without the words of these tables that are denied ("never delete")."""
    folded = _fold(sentence)
    for table in tables:
        folded = _denied_pattern(table).sub(" ", folded)
    return folded


def has_word(typed: str, table: str) -> bool:
    """Return True if a text contains a word of a table of wishes.toml, in any language."""
    return _pattern(table).search(_fold(typed)) is not None


def is_plain_yes(text: str) -> bool:
    """Return True if a text says "yes" in any language, perhaps with polite words, and no more."""
    if "?" in text or "\uff1f" in text:
        return False
    tables = language_data("wishes", "core.review")
    yes = {_fold(word) for words in tables["yes"].values() for word in words}
    polite = {_fold(word) for words in tables["polite"].values() for word in words}
    words = words_of(_fold(text))
    while words and words[-1] in polite and " ".join(words) not in yes:
        words = words[:-1]
    return " ".join(words) in yes or "".join(words) in yes


def names_subject(typed: str, subject: Subject) -> bool:
    """Return True if a typed text names a thing: by its number, by a word of its text, or as all.

    If the text contains numbers, but not the thing's, its words must agree instead.
    """
    if subject.number and subject.number in _NUMBER.findall(typed):
        return True
    if has_word(typed, "all") and has_word(typed, "things"):
        return True
    typed_terms = set(word_terms(typed)) - _wish_terms()
    subject_terms = set(word_terms(subject.text)) - _wish_terms()
    return not typed_terms.isdisjoint(subject_terms)


def _fold(text: str) -> str:
    return text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


@cache
def _pattern(table: str) -> re.Pattern[str]:
    """Return a pattern of all words of a table.

    Korean words aren't at the beginning of a word only, because particles are attached to them.
    """
    alternatives: list[str] = []
    for language, words in language_data("wishes", "core.review")[table].items():
        for word in words:
            escaped = re.escape(_fold(word))
            is_inside = is_unspaced(word) or language in ("zh", "ja", "ko")
            if not is_inside:
                end = r"\b" if len(word) <= SHORT_WORD else ""
                escaped = rf"\b{escaped}{end}"
            alternatives.append(escaped)
    return re.compile("|".join(alternatives))


@cache
def _denied_pattern(table: str) -> re.Pattern[str]:
    """Return a pattern of a denial right before or after a word of a table."""
    denials = language_data("wishes", "core.review")["denial"]
    before = "|".join(re.escape(_fold(word)) for word in denials["before"])
    after = "|".join(re.escape(_fold(word)) for word in denials["after"])
    words = _pattern(table).pattern
    return re.compile(rf"(?:\b(?:{before})\s+|(?:{before}))(?:{words})|(?:{words})(?:{after})")


@cache
def _wish_terms() -> frozenset[str]:
    """Return the terms of the wish words, which don't name a thing."""
    tables = language_data("wishes", "core.review")
    words: list[str] = []
    for table in ("remove", "weaken", "change", "plan", "all", "things"):
        for language_words in tables[table].values():
            words += language_words
    return frozenset(term for word in words for term in word_terms(word))


def shares_words(text: str, other: str, min_share: float) -> bool:
    """Return True if at least this share of a text's terms occurs in another text."""
    terms = set(word_terms(text))
    return bool(terms) and len(terms & set(word_terms(other))) >= min_share * len(terms)


def repeats(text: str, foreign_texts: Sequence[str]) -> bool:
    """Return True if a text repeats one of the foreign texts: half of its word sequences, or all.

    Short texts must be equal to a whole foreign text.
    """
    sequences = _word_sequences(text)
    words = words_of(text.casefold())
    for foreign in foreign_texts:
        if len(words) > 2 and words == words_of(foreign.casefold()):
            return True
        if sequences and 2 * len(sequences & _word_sequences(foreign)) >= len(sequences):
            return True
    return False


SEQUENCE_WORDS = 4
SEQUENCE_CHARACTERS = 8


def _word_sequences(text: str) -> frozenset[tuple[str, ...]]:
    """Return all sequences of four words, or of eight characters in scripts without spaces."""
    items: Sequence[str] = words_of(text.casefold())
    length = SEQUENCE_WORDS
    letters = [letter for letter in text if not letter.isspace()]
    if sum(is_unspaced(letter) for letter in letters[:200]) * 2 > len(letters[:200]):
        items = letters
        length = SEQUENCE_CHARACTERS
    return frozenset(
        tuple(items[start : start + length]) for start in range(len(items) - length + 1)
    )
