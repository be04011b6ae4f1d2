"""Orders messages and sessions by BM25F over messages and their neighbours, and joins rankings by reciprocal rank.
Pure.

Robertson, Zaragoza, Taylor: "Simple BM25 extension to multiple weighted fields" (2004). Each weight says what is lost
on LoCoMo (hit@1 / message recall@10, of 78.2 / 80.3) without it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from statistics import fmean
from typing import NamedTuple, TypeVar

from core.store.query import DAY_IN_CHUNK, CandidateMessage, MessageMatch
from core.text.variants import KIN_LETTERS, are_kin

K = TypeVar("K", bound=Hashable)

DAMPING = 2
"""How little first places count more than later ones: the constant of Cormack, Clarke and Buettcher, "Reciprocal rank
fusion" (2009). Theirs is 60, for long lists; of ten sessions the first is the one that matters."""


def fused(rankings: Sequence[tuple[float, Sequence[K]]], damping: int = DAMPING) -> dict[K, float]:
    """The sum of weight / (damping + rank) for each thing, best first; of equals the one ranked earlier comes first."""
    scores: dict[K, float] = {}
    for weight, things in rankings:
        for rank, thing in enumerate(dict.fromkeys(things), 1):
            scores[thing] = scores.get(thing, 0.0) + weight / (damping + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


K1, B = 1.0, 0.75
K1_STRETCH = 1.2
SOFTNESS = 0.85
"""Power of the weight of a word: the rarest of a question is seldom the one that counts most. +0.7 / +0.5."""
OFFSETS = ((0, 1.0), (1, 0.45), (2, 0.3), (-1, 0.3), (-2, 0.15))
"""How much a message lends to the one at this distance behind it. Neighbours: +1.2 / +8.2; more to those that follow,
because an answer follows what it answers: +0.4 / +0.5."""
KIN = 0.3
"""A word that shares its beginning with one asked for (adopted, adoption) counts as so much of it:
+0.8 / +0.4."""
NEAR = 0.5
"""For words that stand together in the question and in the message, in any order, up to NEAR_TERMS apart: +0.4 / +0."""
NEAR_TERMS = 2
NAMED = 1.5
"""The name of somebody who speaks tells whose conversation is meant, however often it is said: +0.4 / +0.8."""
SPEAKER = 0.9
"""For what was said by somebody whom the question names: people are asked about what they said. +0 / +2.3."""
DAY_WEIGHT = 0.4
"""The day counts for each message too, not only for the stretch: +0.4 / +0.6."""
COVERAGE = 0.5
"""Power of the share of the query (by weight) that a message covers: +0.4 / +0.8."""
ASKED = 1.3
"""A question lends so much more to what follows: that is its answer. -0.1 / +0.3."""
QUESTION_PENALTY = 0.2
"""A question is rarely the answer, though it shares its words: +0 / +1.1."""
MOMENT_BONUS = 0.25
"""Where a moment is asked for, messages that name one: +0 / +0.6."""
BEST_SHARE = 0.5
DECAY = 0.5
"""A session: half of its best messages, each next one counting half, and half of its best stretch. The
messages: +2.2 / +0.5; the stretch: +0.7 / -0.1."""
SESSION_SHARE = 0.4
"""How much of its session's score a message gets: +0 / +1.7."""
BEST = 12


class _Asked(NamedTuple):
    """The weight of each term, what each word counts for, pairs of neighbours, and the speakers' names asked for."""

    idf: dict[str, float]
    worth: dict[str, tuple[tuple[str, float], ...]]
    pairs: dict[tuple[str, str], tuple[int, float]]
    """In both orders: the number of the pair, and its weight."""
    names: frozenset[str]


class _Overlap(NamedTuple):
    counts: dict[str, float]
    near: float


def weights(frequencies: Mapping[str, int], count: int) -> dict[str, float]:
    """The idf of each term, softened and never negative: `frequencies` in how many of `count` stretches it stands."""
    return {
        term: math.log(1 + (max(count, number) - number + 0.5) / (number + 0.5)) ** SOFTNESS
        for term, number in frequencies.items()
    }


def rank(
    idf: Mapping[str, float], lineages: Mapping[int, Sequence[CandidateMessage]], moments: frozenset[str] = frozenset()
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Scores of the lineages and all wanted messages, best first; `idf` in the order of the question, `moments` only
    where one is asked for."""
    everything = [message for candidates in lineages.values() for message in candidates]
    if not everything or not idf:
        return {}, []
    asked = _asked(idf, everything)
    mean_terms = max(1.0, fmean(len(one.terms) for one in everything))
    overlaps = {root: [_overlap(one, asked) for one in candidates] for root, candidates in lineages.items()}
    chunks = {root: _chunks(candidates, overlaps[root], asked.idf) for root, candidates in lineages.items()}
    mean_chunk = max(1.0, fmean(length for group in chunks.values() for _, length in group))
    scores: dict[int, float] = {}
    messages: list[MessageMatch] = []
    for root, candidates in lineages.items():
        raw = _message_scores(candidates, overlaps[root], asked, mean_terms)
        if any(raw):
            best = BEST_SHARE * _best_messages(raw)
            scores[root] = best + (1 - BEST_SHARE) * _best_chunk(chunks[root], mean_chunk, asked.idf)
            share = SESSION_SHARE * scores[root]
            messages += [
                MessageMatch(one.message_id, one.session_id, root, _adjusted(score, one, asked, moments) + share)
                for score, one in zip(raw, candidates, strict=True)
                if score > 0
            ]
    ordered = dict(sorted(scores.items(), key=lambda pair: -pair[1]))
    return ordered, sorted(messages, key=lambda match: (-match.score, match.message_id))


def _best_messages(scores: Iterable[float]) -> float:
    return sum(score * DECAY**place for place, score in enumerate(sorted(scores, reverse=True)[:BEST]))


def _best_chunk(chunks: Sequence[tuple[dict[str, float], int]], mean_length: float, idf: Mapping[str, float]) -> float:
    return max(_bm25(counts, length / mean_length, idf, K1_STRETCH) for counts, length in chunks)


def _worth(terms: Iterable[str], words: Iterable[str]) -> dict[str, tuple[tuple[str, float], ...]]:
    """For each of the words that counts for any of the terms: which, and how much of it."""
    found: dict[str, tuple[tuple[str, float], ...]] = {term: ((term, 1.0),) for term in terms}
    by_beginning: dict[str, list[str]] = {}
    for term in found:
        if len(term) >= KIN_LETTERS and term.isalpha():
            by_beginning.setdefault(term[:KIN_LETTERS], []).append(term)
    near = [(word, by_beginning[word[:KIN_LETTERS]]) for word in words if word[:KIN_LETTERS] in by_beginning]
    for word, alike in near:
        if word not in found and (shares := tuple((term, KIN) for term in alike if are_kin(word, term))):
            found[word] = shares
    return found


def _asked(idf: Mapping[str, float], everything: Sequence[CandidateMessage]) -> _Asked:
    names = frozenset(term for name in {one.name for one in everything} for term in name if term in idf)
    weighed = {term: weight * NAMED if term in names else weight for term, weight in idf.items()}
    whole = sum(idf[one] + idf[other] for one, other in pairwise(idf)) or 1.0
    pairs: dict[tuple[str, str], tuple[int, float]] = {}
    for number, (one, other) in enumerate(pairwise(idf)):
        pairs[one, other] = pairs[other, one] = number, (idf[one] + idf[other]) / whole
    worth = _worth(idf, set[str]().union(*(one.terms for one in everything)))
    return _Asked(weighed, worth, pairs, names)


def _overlap(one: CandidateMessage, asked: _Asked) -> _Overlap:
    counts: dict[str, float] = {}
    near: dict[int, float] = {}
    worth, pairs = asked.worth, asked.pairs
    places: list[tuple[int, str]] = []
    for place, word in enumerate(one.terms):
        if word not in worth:
            continue
        for term, share in worth[word]:
            counts[term] = counts.get(term, 0.0) + share
            if share == 1.0:
                for before, other in places:
                    if place - before <= NEAR_TERMS and (pair := pairs.get((other, term))):
                        near[pair[0]] = pair[1]
                places = [*places[1 - NEAR_TERMS :], (place, term)]
    _count(counts, one.name, asked.idf, 1)
    return _Overlap(counts, math.fsum(near.values()))


def _chunks(
    candidates: Sequence[CandidateMessage], overlaps: Sequence[_Overlap], idf: Mapping[str, float]
) -> list[tuple[dict[str, float], int]]:
    """For each stretch how often each asked term stands in it, and its length in terms."""
    found: list[tuple[dict[str, float], int]] = []
    for _, group in groupby(
        zip(candidates, overlaps, strict=True), key=lambda pair: (pair[0].session_id, pair[0].chunk)
    ):
        counts: dict[str, float] = {}
        length = 0
        days = set()
        for one, its in group:
            length += len(one.terms) + len(one.name)
            days.add(one.day)
            for term, count in its.counts.items():
                counts[term] = counts.get(term, 0.0) + count
        for day in days:
            length += DAY_IN_CHUNK * len(day)
            _count(counts, day, idf, DAY_IN_CHUNK)
        found.append((counts, length))
    return found


def _message_scores(
    candidates: Sequence[CandidateMessage], overlaps: Sequence[_Overlap], asked: _Asked, mean_terms: float
) -> list[float]:
    idf = asked.idf
    total = sum(idf.values()) or 1.0
    window = mean_terms * sum(weight for _, weight in OFFSETS)
    counts: list[dict[str, float]] = [{} for _ in candidates]
    lengths = [0.0] * len(candidates)
    for index, one in enumerate(candidates):
        bag = overlaps[index].counts
        if not idf.keys().isdisjoint(one.day):
            bag = dict(bag)
            _count(bag, one.day, idf, DAY_WEIGHT)
        for offset, weight in OFFSETS:
            place = index + offset
            if 0 <= place < len(candidates) and _is_near(one, candidates[place]):
                lengths[place] += weight * len(one.terms)
                lent = weight * ASKED if one.is_question and offset > 0 else weight
                found = counts[place]
                for term, count in bag.items():
                    found[term] = found.get(term, 0.0) + lent * count
    return [
        _bm25(found, length / window, idf, K1) * (_covered(found, idf) / total) ** COVERAGE * (1 + NEAR * its.near)
        if found and one.is_wanted
        else 0.0
        for one, found, length, its in zip(candidates, counts, lengths, overlaps, strict=True)
    ]


def _covered(counts: Mapping[str, float], idf: Mapping[str, float]) -> float:
    return sum([idf[term] * count if count < 1.0 else idf[term] for term, count in counts.items()])


def _is_near(one: CandidateMessage, other: CandidateMessage) -> bool:
    return one.session_id == other.session_id and -1 <= one.chunk - other.chunk <= 1


def _count(counts: dict[str, float], terms: Iterable[str], idf: Mapping[str, float], weight: float) -> None:
    for term in terms:
        if term in idf:
            counts[term] = counts.get(term, 0.0) + weight


def _bm25(counts: Mapping[str, float], relative_length: float, idf: Mapping[str, float], k1: float) -> float:
    norm = k1 * (1 - B + B * relative_length)
    return sum([idf[term] * count * (k1 + 1) / (count + norm) for term, count in counts.items()])


def _adjusted(score: float, one: CandidateMessage, asked: _Asked, moments: frozenset[str]) -> float:
    if one.is_question:
        score *= 1 - QUESTION_PENALTY
    if moments and not moments.isdisjoint(one.terms):
        score *= 1 + MOMENT_BONUS
    if not asked.names.isdisjoint(one.name):
        score *= 1 + SPEAKER
    return score
