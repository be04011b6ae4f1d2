"""Decides whether a text repeats another text, by comparing their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import filterfalse, islice, pairwise

from core.text.normalize import is_unspaced, words_of
from core.text.terms import terms_of, word_terms

SEQUENCE_WORDS = 4
SEQUENCE_CHARACTERS = 8
MAX_SEARCHED_SEQUENCES = 64
"""A text with more sequences is compared with all sequences of a foreign text."""
CHECKED_LETTERS = 200
"""So many letters show whether the words of a text have spaces between them."""
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
    """Return whether a text repeats one of the foreign texts. See `RepetitionFinder`."""
    return RepetitionFinder(foreign_texts).is_repetition(text)


class RepetitionFinder:
    """Finds texts that repeat foreign texts. It reads each foreign text at most once."""

    def __init__(self, foreign_texts: Iterable[str] = ()) -> None:
        self._foreign = [_Wording(text) for text in foreign_texts]

    def add(self, foreign_texts: Iterable[str]) -> None:
        """Compare later texts with these ones, too."""
        self._foreign += [_Wording(text) for text in foreign_texts]

    def is_repetition(self, text: str) -> bool:
        """Return whether a text repeats one of the foreign texts.

        It does if it shares half of its sequences of words with a foreign text, or most of its
        words in their order. A text of three or four words must equal a whole foreign sentence.
        """
        if not self._foreign:
            return False
        wording = _Wording(text)
        return any(_is_repetition(wording, foreign) for foreign in self._foreign)


class _Wording:
    """A text as words and sequences of words, which are read when they are needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def folded(self) -> str:
        """The text without upper case. It contains each of the words."""
        return self._text.casefold()

    @cached_property
    def words(self) -> Sequence[str]:
        return words_of(self.folded)

    @cached_property
    def is_unspaced(self) -> bool:
        """Whether most letters at the beginning belong to scripts without spaces."""
        first_letters = islice(filterfalse(str.isspace, self._text), CHECKED_LETTERS)
        kinds = [is_unspaced(letter) for letter in first_letters]
        return 2 * sum(kinds) > len(kinds)

    @cached_property
    def line(self) -> str:
        """The words with a space before and after each, or all letters without spaces."""
        if self.is_unspaced:
            return "".join(self._text.split())
        return f" {' '.join(self.words)} "

    @cached_property
    def sequences(self) -> frozenset[str]:
        """All sequences of four words or, in scripts without spaces, of eight characters."""
        return frozenset(self.iterate_sequences())

    def iterate_sequences(self) -> Iterator[str]:
        """Yield each part of `line` that is a sequence, also those that are equal to others."""
        line = self.line
        if self.is_unspaced:
            for start in range(len(line) - SEQUENCE_CHARACTERS + 1):
                yield line[start : start + SEQUENCE_CHARACTERS]
            return
        spaces = [match.start() for match in re.finditer(" ", line)]
        for start, end in zip(spaces, spaces[SEQUENCE_WORDS:], strict=False):
            yield line[start : end + 1]


def _is_repetition(wording: _Wording, foreign: _Wording) -> bool:
    shares_sequences = 2 * _count_shared_sequences(wording, foreign) >= len(wording.sequences)
    if wording.sequences and shares_sequences:
        return True
    return _is_whole_sentence(wording, foreign) or _is_retyped(wording, foreign)


def _count_shared_sequences(wording: _Wording, foreign: _Wording) -> int:
    """Return how many sequences of a text occur in a foreign text, or 0 if less than half do."""
    sequences = wording.sequences
    is_too_short = 2 * len(foreign.folded) < len(sequences)
    if wording.is_unspaced != foreign.is_unspaced or is_too_short:
        return 0
    if len(sequences) > MAX_SEARCHED_SEQUENCES:
        return len(sequences.intersection(foreign.iterate_sequences()))
    if not wording.is_unspaced:
        # Searching for words takes a thousandth of the time that reading those of a long text does.
        words = set(wording.words)
        missing = {word for word in words if word not in foreign.folded}
        sequences = frozenset(item for item in sequences if missing.isdisjoint(item.split()))
        if 2 * len(sequences) < len(wording.sequences):
            return 0
    return sum(item in foreign.line for item in sequences)


def _is_whole_sentence(wording: _Wording, foreign: _Wording) -> bool:
    words = wording.words
    if not 2 < len(words) < MIN_REPEATED_WORDS:
        return False
    if any(word not in foreign.folded for word in words):
        return False
    return any(words == words_of(part) for part in _SENTENCE_END.split(foreign.folded))


def _is_retyped(wording: _Wording, foreign: _Wording) -> bool:
    """Return whether a foreign text contains most of the words in the same order.

    Only sequences of at least two words count.
    """
    words = wording.words
    if not MIN_REPEATED_WORDS <= len(words) <= MAX_COMPARED_WORDS:
        return False
    min_shared = MIN_REPEATED_SHARE * len(set(words))
    if sum(word in foreign.folded for word in set(words)) < min_shared:
        return False
    if len(set(words).intersection(foreign.words)) < min_shared:
        return False
    blocks = SequenceMatcher(None, words, foreign.words, autojunk=False).get_matching_blocks()
    shared = sum(block.size for block in blocks if block.size >= MIN_SHARED_RUN)
    return shared >= MIN_REPEATED_SHARE * len(words)
