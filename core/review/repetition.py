"""Decides whether a text repeats another text, by comparing their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from core.text.normalize import is_unspaced, words_of
from core.text.terms import terms_of, word_terms

SEQUENCE_WORDS = 4
SEQUENCE_CHARACTERS = 8
MIN_SHARED_RUN = 2
"""Shared words count as repeated if at least this many of them follow each other."""
MIN_REPEATED_WORDS = 5
"""A shorter text counts as a repetition only if it equals a whole sentence."""
MIN_REPEATED_SHARE = 0.7
MIN_QUESTION_SHARE = 0.6
"""A question counts as repeated if a sentence has this share of its terms."""
MAX_COMPARED_WORDS = 60
"""Longer texts are only compared by their sequences of words."""
# A word in Latin or Cyrillic letters, a figure, or a run of Katakana.
_NAME_OR_FIGURE = re.compile(r"[A-Za-z\u00c0-\u024f\u0400-\u04ff]+|\d+|[\u30a1-\u30fc]{2,}")
_SENTENCE_END = re.compile(r"[.!?;:\n\u3002\uff01\uff1f]+")


def shares_words(text: str, other: str, min_share: float) -> bool:
    """Return whether at least this share of a text's terms occurs in another text."""
    terms = set(word_terms(text))
    return bool(terms) and len(terms & set(word_terms(other))) >= min_share * len(terms)


def list_sentence_terms(texts: Sequence[str]) -> list[frozenset[str]]:
    """Return the terms of each sentence of some texts, without words such as "the"."""
    sentences: list[frozenset[str]] = []
    for text in texts:
        sentences += _read_sentence_terms(text)
    return sentences


@lru_cache(maxsize=300)
def _read_sentence_terms(text: str) -> tuple[frozenset[str], ...]:
    parts = _SENTENCE_END.split(text)
    return tuple(frozenset(terms_of(part)) for part in parts if part.strip())


def join_neighbors(sentences: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Return the terms of each pair of neighboring sentences, or of a single sentence."""
    return [first | second for first, second in pairwise(sentences)] or list(sentences)


def has_terms_of(
    terms: frozenset[str],
    sentences: Sequence[frozenset[str]],
    min_share: float = MIN_QUESTION_SHARE,
) -> bool:
    """Return whether this share of a question's terms is in a single sentence of the given ones.

    See `list_sentence_terms`. A question with fewer than two terms names nothing.
    """
    min_count = max(2, min_share * len(terms))
    return any(len(terms & sentence) >= min_count for sentence in sentences)


def borrows_name(
    question: str, terms: frozenset[str], foreign_texts: Sequence[str], typed: str
) -> bool:
    """Return whether a question has a name or figure of a foreign text that nobody typed.

    So a question that says a foreign text in other words, or in another language, is found, too.
    `terms` are the terms of the question that name something. In Chinese and Korean, only figures
    and names in Latin letters are found.
    """
    words = [word for word in _NAME_OR_FIGURE.findall(question) if not word[0].islower()]
    named = {term for word in words for term in word_terms(word)} & terms
    named.difference_update(word_terms(typed))
    return any(not named.isdisjoint(word_terms(text)) for text in foreign_texts) if named else False


def repeats(text: str, foreign_texts: Sequence[str]) -> bool:
    """Return whether a text repeats one of the foreign texts.

    It does if it shares half of its sequences of words with a foreign text, or most of its words in
    their order. A text of three or four words must equal a whole foreign sentence.
    """
    sequences = _word_sequences(text)
    words = words_of(text.casefold())
    for foreign in foreign_texts:
        if _is_whole_sentence(words, foreign) or _is_retyped(words, foreign):
            return True
        if sequences and 2 * len(sequences & _word_sequences(foreign)) >= len(sequences):
            return True
    return False


def _is_whole_sentence(words: Sequence[str], foreign: str) -> bool:
    if not 2 < len(words) < MIN_REPEATED_WORDS:
        return False
    return any(words == words_of(part) for part in _SENTENCE_END.split(foreign.casefold()))


def _is_retyped(words: Sequence[str], foreign: str) -> bool:
    """Return whether a foreign text contains most of the words in the same order.

    Only sequences of at least two words count.
    """
    if not MIN_REPEATED_WORDS <= len(words) <= MAX_COMPARED_WORDS:
        return False
    foreign_words = words_of(foreign.casefold())
    if len(set(words).intersection(foreign_words)) < MIN_REPEATED_SHARE * len(set(words)):
        return False
    blocks = SequenceMatcher(None, words, foreign_words, autojunk=False).get_matching_blocks()
    shared = sum(block.size for block in blocks if block.size >= MIN_SHARED_RUN)
    return shared >= MIN_REPEATED_SHARE * len(words)


def _word_sequences(text: str) -> frozenset[tuple[str, ...]]:
    """Return all sequences of four words or, in scripts without spaces, of eight characters."""
    items: Sequence[str] = words_of(text.casefold())
    length = SEQUENCE_WORDS
    letters = [letter for letter in text if not letter.isspace()]
    if sum(is_unspaced(letter) for letter in letters[:200]) * 2 > len(letters[:200]):
        items = letters
        length = SEQUENCE_CHARACTERS
    return frozenset(
        tuple(items[start : start + length]) for start in range(len(items) - length + 1)
    )
