"""Orders messages and sessions by how well they answer a question: BM25F over messages and their neighbours. Pure.

Robertson, Zaragoza, Taylor: "Simple BM25 extension to multiple weighted fields" (2004); the fields of a message are its
text, the speaker's name, its day, and the messages around it. What each part is worth on LoCoMo (hit@1 / message
recall@10) is said where its weight stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from core.utterance import Utterance

K1, B = 1.0, 0.75
OFFSETS = ((0, 1.0), (1, 0.45), (2, 0.3), (-1, 0.3), (-2, 0.15))
"""How much a message lends to the one at this distance behind it. Neighbours: +8 / +14.6; more to those that follow,
because an answer follows what it answers: +0 / +1.4."""
DAY_WEIGHT = 0.4
"""The day counts for each message too, not only for the stretch: +1.3 / +0.9."""
DAY_IN_BLOCK = 2
COVERAGE = 0.5
"""Power of the share of the query (by weight) that a message covers: +0.3 / +0."""
QUESTION_PENALTY = 0.2
"""A question is rarely the answer, though it shares its words: +0 / +0.8."""
MOMENT_BONUS = 0.15
"""Where a moment is asked for, messages that name one: +0 / +0.5."""
BEST_SHARE = 0.4
DECAY = 0.5
"""A session: 0.4 of its best messages, each next one counting half, and 0.6 of its best stretch."""
SESSION_SHARE = 0.4
"""How much of its session's score a message gets: +0 / +0.6."""
BEST = 12


class _Scored(NamedTuple):
    """A message with its score; the higher, the better."""

    score: float
    utterance: Utterance


Ranked = tuple[dict[int, float], list[_Scored]]
"""Scores of lineages, best first, and all wanted messages, best first."""


def weights(frequencies: Mapping[str, int], count: int) -> dict[str, float]:
    """The weight of each term (idf): `frequencies` in how many of `count` stretches it stands. Never negative."""
    return {
        term: math.log(1 + (max(count, number) - number + 0.5) / (number + 0.5)) for term, number in frequencies.items()
    }


def rank(
    idf: Mapping[str, float], lineages: Mapping[int, Sequence[Utterance]], moments: frozenset[str] = frozenset()
) -> Ranked:
    """Ranks candidates: utterances by lineage, in order. `moments` is empty unless a moment is asked for."""
    everything = [utterance for utterances in lineages.values() for utterance in utterances]
    if not everything or not idf:
        return {}, []
    mean_terms = max(1.0, sum(len(utterance.terms) for utterance in everything) / len(everything))
    blocks = {root: _blocks(utterances, idf) for root, utterances in lineages.items()}
    lengths = [length for found in blocks.values() for _, length in found]
    mean_block = max(1.0, sum(lengths) / len(lengths))
    scores: dict[int, float] = {}
    messages: list[tuple[int, _Scored]] = []
    for root, utterances in lineages.items():
        raw = _message_scores(utterances, idf, mean_terms)
        wanted = [(score, one) for score, one in zip(raw, utterances, strict=True) if one.is_wanted]
        best = sorted((score for score, _ in wanted), reverse=True)[:BEST]
        if not best or best[0] <= 0:
            continue
        stretch = max(_bm25(counts, length / mean_block, idf, 1.2) for counts, length in blocks[root])
        scores[root] = BEST_SHARE * sum(score * DECAY**place for place, score in enumerate(best))
        scores[root] += (1 - BEST_SHARE) * stretch
        messages += [(root, _Scored(_adjusted(score, one, moments), one)) for score, one in wanted if score > 0]
    ordered = dict(sorted(scores.items(), key=lambda pair: -pair[1]))
    summed = [_Scored(scored.score + SESSION_SHARE * scores[root], scored.utterance) for root, scored in messages]
    return ordered, sorted(summed, key=lambda scored: (-scored.score, scored.utterance.message_id))


def _blocks(utterances: Sequence[Utterance], idf: Mapping[str, float]) -> list[tuple[dict[str, float], int]]:
    """For each stretch how often each asked term stands in it, and its length in terms."""
    found: list[tuple[dict[str, float], int]] = []
    for _, group in groupby(utterances, key=lambda one: (one.session_id, one.block)):
        counts: dict[str, float] = {}
        length = 0
        days = set()
        for one in group:
            length += len(one.terms) + len(one.name)
            days.add(one.day)
            _count(counts, one.terms, idf, 1)
            _count(counts, one.name, idf, 1)
        for day in days:
            length += DAY_IN_BLOCK * len(day)
            _count(counts, day, idf, DAY_IN_BLOCK)
        found.append((counts, length))
    return found


def _message_scores(utterances: Sequence[Utterance], idf: Mapping[str, float], mean_terms: float) -> list[float]:
    """BM25F of each message with its neighbours, times the power of the covered share."""
    total = sum(idf.values()) or 1.0
    window = mean_terms * sum(weight for _, weight in OFFSETS)
    counts: list[dict[str, float]] = [{} for _ in utterances]
    lengths = [0.0] * len(utterances)
    for index, one in enumerate(utterances):
        bag = _bag(one, idf)
        for offset, weight in OFFSETS:
            other = index + offset
            if 0 <= other < len(utterances) and (offset == 0 or _is_near(one, utterances[other])):
                lengths[other] += weight * len(one.terms)
                for term, count in bag.items():
                    counts[other][term] = counts[other].get(term, 0.0) + weight * count
    return [
        _bm25(found, length / window, idf, K1)
        * (sum(idf[term] * min(1.0, count) for term, count in found.items()) / total) ** COVERAGE
        for found, length in zip(counts, lengths, strict=True)
    ]


def _is_near(one: Utterance, other: Utterance) -> bool:
    return one.session_id == other.session_id and abs(one.block - other.block) <= 1


def _bag(one: Utterance, idf: Mapping[str, float]) -> dict[str, float]:
    counts: dict[str, float] = {}
    _count(counts, one.terms, idf, 1)
    _count(counts, one.name, idf, 1)
    _count(counts, one.day, idf, DAY_WEIGHT)
    return counts


def _count(counts: dict[str, float], terms: Iterable[str], idf: Mapping[str, float], weight: float) -> None:
    for term in terms:
        if term in idf:
            counts[term] = counts.get(term, 0.0) + weight


def _bm25(counts: Mapping[str, float], relative_length: float, idf: Mapping[str, float], k1: float) -> float:
    norm = k1 * (1 - B + B * relative_length)
    return sum(idf[term] * count * (k1 + 1) / (count + norm) for term, count in counts.items() if count)


def _adjusted(score: float, one: Utterance, moments: frozenset[str]) -> float:
    if one.is_question:
        score *= 1 - QUESTION_PENALTY
    if moments and not moments.isdisjoint(one.terms):
        score *= 1 + MOMENT_BONUS
    return score


def is_question(text: str) -> bool:
    """Whether a text ends by asking."""
    return text.rstrip()[-1:] in ("?", "\uff1f", "\u061f")
