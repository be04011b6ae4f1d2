"""Decides which terms a query is searched and ranked by, and how much each of them counts.

Besides the query's own words, the terms are other spellings of them ("ice cream" for "icecream"),
aliases of people and things that the query names, English names of months, and corrections of
words that occur nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import TypeAlias

from core.dates.mentions import months_in
from core.store.query import SearchQuery
from core.store.sqlite.text_index import RANKED_CHUNKS, ChunkChoice, TextIndex
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
"""A term that occurs in this share of all chunks is too common to choose chunks by."""
MAX_LENDING_CHUNKS = 9_000
"""The terms that choose chunks occur in at most this many chunks together.

The other terms only rank messages.
"""
VARIANT_WEIGHT = 0.6
"""Weight of another way to write the query: as one word, or a number in groups."""
MAX_VARIANTS = 6
SINGLE_CHARACTER_WEIGHT = 0.6
"""Weight of a single Han character next to other terms.

A character is also part of pairs, so a word of two characters would otherwise count for three.
Worth +0.5 / +0 at hit@1 / hit@5 of tests/corpus; other ways to write it: +1.3 / +0.9.
"""
RELATED_WEIGHT = 0.3
"""Weight of a word with the same beginning as a query word (adopted, adoption).

Also the weight of a word's English stem if the word is taken for another language. Only this stem
finds the word in messages whose language can't be recognized.
"""

MAX_CORRECTED_WORDS = 3
MAX_CORRECTED_SCOPES = 8
MIN_CORRECTION_LETTERS = 4
"""A correction has at least this many letters. Shorter words resemble too many others."""
MAX_CORRECTED_LETTERS = 24
MAX_CORRECTIONS = 3
"""A word gets at most this many corrections; the other words of the query decide between them."""
MIN_CORRECTION_LIKELIHOOD = 0.2
"""A correction is dropped if its likelihood is below this share of the likeliest one's."""

Variant: TypeAlias = tuple[str, ...]
"""The terms of another way to write the query, or a part of it."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A replacement for a word that occurs nowhere: "Lisbon" for "Lisbno"."""

    text: str
    terms: tuple[str, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class TermWeights:
    """The terms of a query, in its order."""

    # How much each term counts; a word as typed counts 1.
    weights: Mapping[str, float]
    # In how many chunks each term occurs.
    frequencies: Mapping[str, int]
    # The query with the terms that were added, to find what to highlight.
    text: str
    # Typed words that occur nowhere, with their corrections separated by ``”, “``.
    corrections: Mapping[str, str]


def weigh_terms(index: TextIndex, text: str, names: Sequence[str]) -> TermWeights:
    """Find the terms of a query and of its variants, and weigh them.

    `names` are aliases of people and things that the query names.
    """
    query_text = clean_query(text)
    terms = query_terms(text)
    variants = [*spelling_variants(query_text), *map(name_terms, names)]
    variants = [variant for variant in variants if not set(variant) <= set(terms)]
    frequencies = index.chunk_frequencies(dict.fromkeys([*terms, *chain.from_iterable(variants)]))
    unknown = {
        term
        for term, count in frequencies.items()
        if not count and term not in index.unchunked_term_counts
    }
    variants = [variant for variant in variants if unknown.isdisjoint(variant)][:MAX_VARIANTS]
    alternates = {form for form, term in alternate_terms(text).items() if term not in unknown}
    unknown -= alternates

    unknown_words = _find_unknown_words(query_text, unknown, variants)
    corrections = _correct_words(index, unknown_words)
    weights = _weigh_words(terms, corrections, variants)
    weights |= dict.fromkeys(_find_month_terms(text, terms), 1.0)
    weights |= dict.fromkeys(alternates, RELATED_WEIGHT)
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


def choose_chunks(terms: TermWeights, query: SearchQuery, chunk_count: int) -> list[ChunkChoice]:
    """Return the choice of chunks by words, and a choice by days if the words find too little.

    In the first choice, days of a period that the query names only raise the rank of chunks,
    because people misremember them.
    """
    frequencies = terms.frequencies
    day_terms = [term for term in frequencies if query.periods and is_date_term(term)]
    words = {term: count for term, count in frequencies.items() if term not in day_terms}
    leading, lending = choose_chunk_terms(words, chunk_count)
    return [
        ChunkChoice({term: words[term] for term in leading}, [*lending, *day_terms]),
        ChunkChoice({term: frequencies[term] for term in day_terms}, []),
    ]


def choose_chunk_terms(
    frequencies: Mapping[str, int], chunk_count: int
) -> tuple[list[str], list[str]]:
    """Split a query's terms into leading and lending ones; the rest don't choose chunks.

    A chosen chunk has at least one leading term. Lending terms raise the rank of chunks that have
    a leading one.

    A search ranks each chunk that has a leading term, and that takes most of its time. So the
    rarest terms lead until they occur in `RANKED_CHUNKS` chunks together; in a small store all
    terms lead. Very common terms don't lend either, nor do terms beyond `MAX_LENDING_CHUNKS`. The
    idea is "MaxScore": H. Turtle, J. Flood, "Query evaluation: strategies and optimizations"
    (1995). Unlike MaxScore this may lose a chunk that has only common terms.
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
    """Terms that occur nowhere, not even in a variant, each with its word as typed."""
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
    """Whether the words of a variant form the term, or its only word contains the term.

    A final "e" of the term may be missing, because stems lose it.
    """
    if term == "".join(variant):
        return True
    return len(variant) == 1 and term.removesuffix("e") in variant[0]


def _find_month_terms(text: str, terms: Collection[str]) -> list[str]:
    """English terms of the months that the query names, unless they are among its terms.

    The index has each day in English words, so months of other languages must be translated.
    """
    month_terms = [date_terms(date(1, month, 1))[2] for month in months_in(text)]
    return [term for term in month_terms if term not in terms]


def _weigh_words(
    terms: Sequence[str],
    corrections: Mapping[str, Sequence[Correction]],
    variants: Sequence[Variant],
) -> dict[str, float]:
    """Weigh the query's own terms, their corrections and the variants.

    A term keeps the weight that it gets first.
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
            # One word may stand for several: a telephone number without blanks counts for all of
            # its groups.
            words = [term for term in terms if len(term) > 1 or term.isdecimal()]
            covered_terms = max(1, sum(_covers(variant, term) for term in words))
        for term in variant:
            weights.setdefault(term, VARIANT_WEIGHT * covered_terms)
    return weights


def _correct_words(
    index: TextIndex, unknown_words: Mapping[str, str]
) -> dict[str, list[Correction]]:
    """Return corrections of the first few misspelt words, by the term of each word."""
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


def _correct_word(index: TextIndex, word: str) -> list[Correction]:
    """The likeliest words that are one slip of the finger away and occur somewhere, best first.

    A few hundred words are looked up in one query, which takes 3 to 5 ms. A correction is likelier
    if the slip is more probable and if the word occurs more often.
    """
    slips = _list_slips(word)
    frequencies = index.chunk_frequencies(set(chain.from_iterable(slips)), MAX_CORRECTED_SCOPES)
    scores: dict[tuple[str, ...], float] = {}
    for terms, (probability, _) in slips.items():
        counts = [frequencies[term] + index.unchunked_term_counts[term] for term in terms]
        scores[terms] = probability * math.log1p(min(counts))
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:MAX_CORRECTIONS]
    if not best:
        return []

    best_terms, best_score = best[0]
    trust = math.sqrt(slips[best_terms][0])
    return [
        Correction(slips[terms][1], terms, trust * score / best_score)
        for terms, score in best
        if score > MIN_CORRECTION_LIKELIHOOD * best_score
    ]


def _list_slips(word: str) -> dict[tuple[str, ...], tuple[float, str]]:
    """Texts that may have been meant: by their terms, the slip's probability and the text.

    A word may also be two words with the blank between them missing.
    """
    texts = list(spelling_corrections(word).items())
    for position in range(MIN_PART_LETTERS, len(word) - MIN_PART_LETTERS + 1):
        two_words = f"{word[:position]} {word[position:]}"
        if len(word_terms(two_words)) == 2:
            texts.append((two_words, 1.0))

    slips: dict[tuple[str, ...], tuple[float, str]] = {}
    for text, probability in texts:
        if len(text) < MIN_CORRECTION_LETTERS:
            continue
        terms = tuple(word_terms(text))
        if terms and probability > slips.get(terms, (0.0, ""))[0]:
            slips[terms] = probability, text
    return slips
