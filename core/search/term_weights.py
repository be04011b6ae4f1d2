"""Choose the terms that a query is searched and ranked by, and their weights.

The terms are the query's own words and other spellings of them ("ice cream" for "icecream").
Aliases of people and things in the query, English names of months, and corrections of words that no
message contains are terms, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import NamedTuple, TypeAlias

from core.dates.periods_in_text import months_in
from core.store.query import SearchQuery
from core.store.search.text_search import RANKED_CHUNKS, ChunkChoice, TextSearch
from core.text.normalize import clean_query, is_unspaced, split_by_script, words_of
from core.text.terms import (
    alternate_terms,
    date_terms,
    is_date_term,
    name_terms,
    query_terms,
    word_terms,
)
from core.text.variants import MIN_PART_LETTERS, spelling_corrections, spelling_variants

COMMON_SHARE = 0.25
"""A term that occurs in at least this share of all chunks is too common to select chunks."""
COMMON_DAY_SHARE = 0.5
"""A date that occurs in a larger share of all chunks doesn't improve the rank of a chunk."""
MAX_LENDING_CHUNKS = 9_000
"""The terms that select chunks occur in at most this many chunks in total.

All further terms only rank the messages of the selected chunks.
"""
VARIANT_WEIGHT = 0.6
"""The weight of another spelling of the query, such as two words joined or digits regrouped."""
MAX_VARIANTS = 6
SINGLE_CHARACTER_WEIGHT = 0.6
"""The weight of a single Han character if the query has other terms.

Characters are also searched in pairs, so a word of two characters would otherwise have the weight
of three terms. On tests/corpus, this weight adds 0.5 / 0 points to hit@1 / hit@5, and other
spellings add 1.3 / 0.9 points.
"""
RELATED_WEIGHT = 0.3
"""The weight of a word with the same beginning as a query word (adopted, adoption).

A word in another language gets this weight for its English stem. Only the English stem finds the
word in messages whose language can't be recognized.
"""

MAX_CORRECTED_WORDS = 3
MAX_CORRECTED_SCOPES = 8
MIN_CORRECTION_LETTERS = 4
"""A correction has at least this many letters. Shorter words resemble too many others."""
MAX_CORRECTED_LETTERS = 24
MAX_CORRECTIONS = 3
"""A word has at most this many corrections. The right one usually wins, because messages with the
query's other words rank first."""
MIN_CORRECTION_LIKELIHOOD = 0.2
"""A correction is dropped if its score is below this share of the best correction's score."""

Variant: TypeAlias = tuple[str, ...]
"""The terms of another spelling of the query, or of a part of it."""


@dataclass(frozen=True, slots=True)
class Correction:
    """The replacement of a word that no message contains: "Lisbon" for "Lisbno"."""

    text: str
    terms: tuple[str, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class TermWeights:
    """The terms of a query with their weights, in the order of the query."""

    # The weight of each term. A word as typed usually has the weight 1.
    weights: Mapping[str, float]
    # The number of chunks that contain each term.
    frequencies: Mapping[str, int]
    # The text of the query and all terms that were added to it. All of them are highlighted.
    text: str
    # Maps each typed word that no message contains to its corrections, such as ``Lisbon”,
    # “Lisboa``.
    corrections: Mapping[str, str]


def weigh_terms(index: TextSearch, text: str, names: Sequence[str]) -> TermWeights:
    """Weigh the terms of a query and of its variants, aliases and corrections.

    `names` are aliases of people and things that the query names.
    """
    query_text = clean_query(text)
    terms = query_terms(text)
    # Only variants whose terms all occur in a message are searched.
    variants = [*spelling_variants(query_text), *map(name_terms, names)]
    variants = [variant for variant in variants if not set(variant) <= set(terms)]
    frequencies = index.chunk_frequencies(dict.fromkeys([*terms, *chain.from_iterable(variants)]))
    unknown = _find_unknown_terms(index, frequencies)
    variants = [variant for variant in variants if unknown.isdisjoint(variant)][:MAX_VARIANTS]
    # Other stems of the query's words, such as English ones.
    alternates = {form for form, term in alternate_terms(text).items() if term not in unknown}
    unknown -= alternates

    unknown_words = _find_unknown_words(query_text, unknown, variants)
    corrections = _correct_words(index, unknown_words)
    weights = _weigh_words(terms, corrections, variants)
    weights |= dict.fromkeys(_find_month_terms(text, terms), 1.0)
    weights |= dict.fromkeys(alternates, RELATED_WEIGHT)
    # Terms that were added above haven't been counted yet.
    frequencies |= index.chunk_frequencies(weights.keys() - frequencies.keys())
    full_text = text
    if corrections or variants:
        full_text = " ".join(dict.fromkeys([*weights, text]))
    return TermWeights(
        weights=weights,
        frequencies={term: frequencies[term] for term in weights},
        text=full_text,
        corrections={
            unknown_words[term]: "”, “".join(correction.text for correction in word_corrections)
            for term, word_corrections in corrections.items()
        },
    )


def _find_unknown_terms(index: TextSearch, frequencies: Mapping[str, int]) -> set[str]:
    """Return the terms that no message contains, neither inside nor outside a chunk."""
    return {
        term for term, count in frequencies.items() if not count and not index.is_in_unchunked(term)
    }


def choose_chunks(terms: TermWeights, query: SearchQuery, chunk_count: int) -> list[ChunkChoice]:
    """Choose chunks twice: first by the words of the query, then by its dates.

    All chunks of the first choice rank above those of the second. In the first choice, dates only
    improve the rank of a chunk, because people misremember dates. They are lent twice, so they
    weigh as much as the leading words. On phone notes, this improves hit@3 / recall@10 by 0.5 / 1.2
    points. A date in most chunks is left out, because it says nothing about a chunk.
    """
    frequencies = terms.frequencies
    day_terms = [term for term in frequencies if query.periods and is_date_term(term)]
    words = {term: count for term, count in frequencies.items() if term not in day_terms}
    leading, lending = choose_chunk_terms(words, chunk_count)
    lent_days = [term for term in day_terms if frequencies[term] <= COMMON_DAY_SHARE * chunk_count]
    return [
        ChunkChoice({term: words[term] for term in leading}, [*lending, *lent_days, *lent_days]),
        ChunkChoice({term: frequencies[term] for term in day_terms}, []),
    ]


def choose_chunk_terms(
    frequencies: Mapping[str, int], chunk_count: int
) -> tuple[list[str], list[str]]:
    """Return the leading and the lending terms of a query. Other terms don't select chunks.

    A chunk is selected if it contains a leading term. Lending terms only improve the rank of
    selected chunks.

    Ranking the selected chunks takes most of the time of a search. So only the rarest terms are
    leading, up to `RANKED_CHUNKS` chunks in total. In a small database, all terms are leading. The
    next rarest terms are lending, up to `MAX_LENDING_CHUNKS` and `COMMON_SHARE`. This is a variant
    of MaxScore (H. Turtle, J. Flood, "Query evaluation: strategies and optimizations", 1995).
    Unlike MaxScore, it may miss a chunk with only common terms.
    """
    leading: list[str] = []
    lending: list[str] = []
    total = 0
    for term, count in sorted(frequencies.items(), key=lambda item: item[1]):
        total += count
        is_first = total == count
        if is_first or total <= RANKED_CHUNKS:
            leading.append(term)
        elif count < COMMON_SHARE * chunk_count and total <= MAX_LENDING_CHUNKS:
            lending.append(term)
    return leading, lending


def _find_unknown_words(
    query_text: str, unknown: Collection[str], variants: Sequence[Variant]
) -> dict[str, str]:
    """Return the unknown terms that no variant covers, each with the word as typed."""
    words: dict[str, str] = {}
    for kind, part in split_by_script(query_text):
        if kind != "words":
            continue
        for word in words_of(part):
            words |= dict.fromkeys(word_terms(word), word)
    return {
        term: word
        for term, word in words.items()
        if term in unknown and not any(_covers(variant, term) for variant in variants)
    }


def _covers(variant: Variant, term: str) -> bool:
    """Return whether the words of a variant form the term, or its only word contains the term.

    For example, "ice" and "cream" form "icecream". The variant may lack the term's final "e",
    because stemming removes it.
    """
    if term == "".join(variant):
        return True
    return len(variant) == 1 and term.removesuffix("e") in variant[0]


def _find_month_terms(text: str, terms: Collection[str]) -> list[str]:
    """Return the English terms of the months that the query names in other languages.

    The index contains the date of each day in English, so other names must be translated. Terms of
    the query itself are left out.
    """
    # The third term of a date is the name of its month.
    month_terms = [date_terms(date(1, month, 1))[2] for month in months_in(text)]
    return [term for term in month_terms if term not in terms]


def _weigh_words(
    terms: Sequence[str],
    corrections: Mapping[str, Sequence[Correction]],
    variants: Sequence[Variant],
) -> dict[str, float]:
    """Return the weights of the query's own terms, their corrections and the variants.

    If a term occurs several times, its first weight is kept.
    """
    weights: dict[str, float] = {}
    for term in terms:
        is_single_character = len(term) == 1 and is_unspaced(term) and len(terms) > 1
        weights.setdefault(term, SINGLE_CHARACTER_WEIGHT if is_single_character else 1.0)
        for correction in corrections.get(term, ()):
            for corrected_term in correction.terms:
                weights.setdefault(corrected_term, correction.weight)

    for variant in variants:
        covered_terms = 1
        if len(variant) == 1:
            # A variant of one word may replace several terms: a telephone number without spaces
            # has the weight of all of its groups.
            words = [term for term in terms if len(term) > 1 or term.isdecimal()]
            covered_terms = max(1, sum(_covers(variant, term) for term in words))
        for term in variant:
            weights.setdefault(term, VARIANT_WEIGHT * covered_terms)
    return weights


def _correct_words(
    index: TextSearch, unknown_words: Mapping[str, str]
) -> dict[str, list[Correction]]:
    """Return corrections for the first `MAX_CORRECTED_WORDS` unknown words, by their terms."""
    corrections: dict[str, list[Correction]] = {}
    correctable = [
        term
        for term, word in unknown_words.items()
        if word.isalpha() and MIN_CORRECTION_LETTERS <= len(word) + 1 <= MAX_CORRECTED_LETTERS
    ]
    for term in correctable[:MAX_CORRECTED_WORDS]:
        word_corrections = _correct_word(index, unknown_words[term].casefold())
        if word_corrections:
            corrections[term] = word_corrections
    return corrections


def _correct_word(index: TextSearch, word: str) -> list[Correction]:
    """Return the best corrections of a word, at most `MAX_CORRECTIONS`.

    A correction is a known word that differs by one typing error. It is better if the error is more
    probable, and if the word occurs in more chunks. A few hundred words are looked up in one
    statement, which takes 3 to 5 ms.
    """
    intended_texts = _list_intended_texts(word)
    frequencies = index.chunk_frequencies(
        set(chain.from_iterable(intended_texts)), MAX_CORRECTED_SCOPES
    )
    scores: dict[tuple[str, ...], float] = {}
    for terms, intended_text in intended_texts.items():
        # A text with several terms is as frequent as its rarest term.
        counts = [frequencies[term] + index.unchunked_term_counts[term] for term in terms]
        scores[terms] = intended_text.probability * math.log1p(min(counts))
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:MAX_CORRECTIONS]
    if not best:
        return []

    # The best correction weighs less than 1 if its typing error is improbable.
    best_terms, best_score = best[0]
    best_weight = math.sqrt(intended_texts[best_terms].probability)
    return [
        Correction(intended_texts[terms].text, terms, best_weight * score / best_score)
        for terms, score in best
        if score > MIN_CORRECTION_LIKELIHOOD * best_score
    ]


class _IntendedText(NamedTuple):
    """A text that the person may have meant when they typed a misspelt word."""

    # The probability of the typing error.
    probability: float
    text: str


def _list_intended_texts(word: str) -> dict[tuple[str, ...], _IntendedText]:
    """Return the texts that a person may have meant by a misspelt word, by their terms.

    A missing space between two words counts as a typing error, too.
    """
    texts = list(spelling_corrections(word).items())
    for position in range(MIN_PART_LETTERS, len(word) - MIN_PART_LETTERS + 1):
        two_words = f"{word[:position]} {word[position:]}"
        if len(word_terms(two_words)) == 2:
            texts.append((two_words, 1.0))

    # Of several texts with the same terms, the most probable one is returned.
    intended_texts: dict[tuple[str, ...], _IntendedText] = {}
    for text, probability in texts:
        if len(text) < MIN_CORRECTION_LETTERS:
            continue
        terms = tuple(word_terms(text))
        known_probability = intended_texts[terms].probability if terms in intended_texts else 0.0
        if terms and probability > known_probability:
            intended_texts[terms] = _IntendedText(probability, text)
    return intended_texts
