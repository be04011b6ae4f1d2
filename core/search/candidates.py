"""Which messages may answer a question: misspelt words corrected, other spellings added, the best chunks ranked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from core.search.ranking import rank, weights
from core.store.query import MessageMatch, SearchQuery
from core.store.sqlite.text_index import LINEAGES_READ, RANKED_CHUNKS, TextIndex
from core.text.normalize import clean, is_unspaced, spaced_words_of
from core.text.terms import asks_when, moment_terms, query_terms, terms_of
from core.text.variants import SHORTEST_PART, meant, other_ways

COMMON_SHARE = 0.25
OTHER = 0.6
"""How much a word counts that is another way to write what was typed: as one word, or a number in groups."""
OTHERS_ASKED = 6
SINGLE = 0.6
"""How much a Han character counts that stands in a pair too, or beside other words: together with its pairs a word of
two would count for three. +0.5 / +0 at hit@1 / hit@5 of tests/corpus; other ways to write it: +1.3 / +0.9."""
FARTHEST = 100
"""Pages beyond so many lineages are not asked for."""

Correction = dict[str, tuple[tuple[str, ...], float]]
"""What is taken for a word: each with its terms and how much it counts, the best first."""


class RankedMatches(NamedTuple):
    """Scores of lineages and messages, best first; `corrected` is word typed -> word taken."""

    scores: Mapping[int, float]
    matches: list[MessageMatch]
    text: str
    corrected: Mapping[str, str]


def any_words(index: TextIndex, query: SearchQuery) -> RankedMatches:
    typed = clean(query.text)
    terms = query_terms(query.text)
    others = [way for way in other_ways(typed) if not set(way) <= set(terms)]
    frequencies = index.frequencies(dict.fromkeys([*terms, *chain.from_iterable(others)]))
    said = [way for way in others if all(frequencies[term] or term in index.latest_terms for term in way)][
        :OTHERS_ASKED
    ]
    unsaid = {
        term: word
        for word in spaced_words_of(typed)
        for term in terms_of(word)
        if frequencies.get(term) == 0 and term not in index.latest_terms and not _is_within(term, said)
    }
    corrections = _corrections(index, unsaid)
    shares = _shares(terms, corrections, said)
    frequencies |= index.frequencies([term for term in shares if term not in frequencies])
    scores, matches = _ranked(index, query, {term: frequencies[term] for term in shares}, shares)
    return RankedMatches(
        scores=scores,
        matches=matches,
        text=" ".join(dict.fromkeys([*shares, query.text])) if corrections or said else query.text,
        corrected={unsaid[term]: "”, “".join(taken) for term, taken in corrections.items()},
    )


def leading_terms(frequencies: Mapping[str, int], count: int) -> tuple[list[str], list[str]]:
    """The terms by which chunks are chosen: one of the leading has to be there, the lending count where they are.

    What costs is to rank each chunk that has any of the leading, so the rarest lead, until together they stand in
    `RANKED_CHUNKS`: in a small store all of them. A term of a quarter of all chunks and more tells little apart and
    does not lend either. All of them count when messages are ranked. (After "MaxScore", Turtle and Flood, "Query
    evaluation: strategies and optimizations", 1995, but without its proof: a chunk that has common terms only is lost.)
    """
    leading: list[str] = []
    lending: list[str] = []
    total = 0
    for term, number in sorted(frequencies.items(), key=lambda pair: pair[1]):
        total += number
        if total <= RANKED_CHUNKS or total == number:
            leading.append(term)
        elif number < COMMON_SHARE * count:
            lending.append(term)
    return leading, lending


def _ranked(
    index: TextIndex, query: SearchQuery, frequencies: Mapping[str, int], shares: Mapping[str, float]
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Scores of the lineages and their messages, best first, in as many parts as the page needs; `shares` is how much
    each term counts."""
    leading, lending = leading_terms(frequencies, index.chunks)
    moments = moment_terms() if asks_when(query.text) else frozenset[str]()
    idf = {term: weight * shares[term] for term, weight in weights(frequencies, index.chunks).items()}
    scores: dict[int, float] = {}
    matches: list[MessageMatch] = []
    for part in range(1 + max(0, min(query.page * query.limit, FARTHEST)) // LINEAGES_READ):
        lineages = index.candidates({term: frequencies[term] for term in leading}, lending, part)
        found, ranked = rank(idf, lineages, moments)
        matches += [match for match in ranked if match.root_id not in scores]
        scores |= {root: score for root, score in found.items() if root not in scores}
    return scores, matches


def _is_within(term: str, said: Sequence[tuple[str, ...]]) -> bool:
    """Whether it was said in parts, or as a part of one word, whose last e its stem may not have."""
    return any(term == "".join(way) or (len(way) == 1 and term.removesuffix("e") in way[0]) for way in said)


def _shares(
    terms: Sequence[str], corrections: Mapping[str, Correction], others: Sequence[tuple[str, ...]]
) -> dict[str, float]:
    shares: dict[str, float] = {}
    for term in terms:
        shares.setdefault(term, SINGLE if len(term) == 1 and is_unspaced(term) and len(terms) > 1 else 1.0)
        for taken, share in corrections.get(term, {}).values():
            for one in taken:
                shares.setdefault(one, share)
    for way in others:
        # A telephone number in one counts for all of its groups, as any word for its parts.
        replaced = sum(_is_within(term, [way]) for term in terms if len(term) > 1 or term.isdecimal())
        for term in way:
            shares.setdefault(term, OTHER * (max(1, replaced) if len(way) == 1 else 1))
    return shares


WORDS_TRIED = 3
SCOPES_TRIED = 8
SHORTEST, LONGEST = 4, 24
"""Letters of the shortest word said that another is taken for, and of the longest that is looked at; one letter in
three tells too little."""
TAKEN = 3
"""So many of the likely ones are asked for: the other words of the question decide between them."""
UNLIKELY = 0.2
"""As a share of the most likely; less is not asked for."""


def _corrections(index: TextIndex, unsaid: Mapping[str, str]) -> dict[str, Correction]:
    """For each term that was never said (with its word as typed) what is taken for it, where something is near:
    "Lisbno" is Lisbon, "icecream" ice cream."""
    mended = [term for term, word in unsaid.items() if word.isalpha() and SHORTEST <= len(word) + 1 <= LONGEST]
    found = {term: _one_slip_away(index, unsaid[term].casefold()) for term in mended[:WORDS_TRIED]}
    return {term: taken for term, taken in found.items() if taken}


def _one_slip_away(index: TextIndex, word: str) -> Correction:
    """Of all that is one slip of the finger away, some hundred terms looked up at once (3 to 5 ms), what was said."""
    parts = [f"{word[:place]} {word[place:]}" for place in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1)]
    likely: dict[tuple[str, ...], tuple[float, str]] = {}
    for text, likelihood in [*meant(word).items(), *((two, 1.0) for two in parts if len(terms_of(two)) == 2)]:
        terms = tuple(terms_of(text)) if len(text) >= SHORTEST else ()
        if terms and likelihood > likely.get(terms, (0.0, ""))[0]:
            likely[terms] = likelihood, text
    known = index.frequencies(set(chain.from_iterable(likely)), SCOPES_TRIED)
    weighed = {
        terms: likelihood * math.log1p(min(known[term] + index.latest_terms[term] for term in terms))
        for terms, (likelihood, _) in likely.items()
    }
    best = sorted(weighed.items(), key=lambda pair: (-pair[1], pair[0]))[:TAKEN]
    if not best:
        return {}
    trust, most = math.sqrt(likely[best[0][0]][0]), best[0][1]
    return {likely[terms][1]: (terms, trust * weight / most) for terms, weight in best if weight > UNLIKELY * most}
