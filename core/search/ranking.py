"""Which messages may answer a question, best first: misspelt words corrected, other spellings added, candidates of the
best chunks ordered by BM25F over messages and their neighbours; and rankings joined by reciprocal rank.

Robertson, Zaragoza, Taylor: "Simple BM25 extension to multiple weighted fields" (2004). Each weight says what is lost
on LoCoMo (hit@1 / message recall@10, of 78.2 / 80.3) without it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain, groupby, pairwise
from statistics import fmean
from typing import NamedTuple, TypeVar

from core.store.query import DAY_IN_CHUNK, CandidateMessage, MessageMatch, SearchQuery
from core.store.sqlite.text_index import LINEAGES_READ, RANKED_CHUNKS, TextIndex
from core.text.normalize import clean, is_unspaced, spaced_words_of
from core.text.terms import asks_when, moment_terms, query_terms, terms_of
from core.text.variants import KIN_LETTERS, SHORTEST_PART, are_kin, meant, other_ways

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
    frequencies, unknown, said = _counted(index, typed, terms)
    words = {term: word for word in spaced_words_of(typed) for term in terms_of(word)}
    unsaid = {term: word for term, word in words.items() if term in unknown and not _is_within(term, said)}
    corrections = _corrections(index, unsaid)
    shares = _shares(terms, corrections, said)
    frequencies |= index.frequencies(shares.keys() - frequencies.keys())
    scores, matches = _ranked(index, query, {term: frequencies[term] for term in shares}, shares)
    return RankedMatches(
        scores=scores,
        matches=matches,
        text=" ".join(dict.fromkeys([*shares, query.text])) if corrections or said else query.text,
        corrected={unsaid[term]: "”, “".join(taken) for term, taken in corrections.items()},
    )


def _counted(
    index: TextIndex, typed: str, terms: Sequence[str]
) -> tuple[dict[str, int], set[str], list[tuple[str, ...]]]:
    """How often terms stand in chunks, those that were never said, and the other ways to write the text that were."""
    others = [way for way in other_ways(typed) if not set(way) <= set(terms)]
    frequencies = index.frequencies(dict.fromkeys([*terms, *chain.from_iterable(others)]))
    unknown = {term for term, count in frequencies.items() if not count and term not in index.latest_terms}
    return frequencies, unknown, [way for way in others if unknown.isdisjoint(way)][:OTHERS_ASKED]


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
            scores[root] = _session_score(raw, chunks[root], mean_chunk, asked.idf)
            share = SESSION_SHARE * scores[root]
            messages += [
                MessageMatch(one.message_id, one.session_id, root, _adjusted(score, one, asked, moments) + share)
                for score, one in zip(raw, candidates, strict=True)
                if score > 0
            ]
    ordered = dict(sorted(scores.items(), key=lambda pair: -pair[1]))
    return ordered, sorted(messages, key=lambda match: (-match.score, match.message_id))


def _session_score(
    scores: Sequence[float],
    chunks: Sequence[tuple[dict[str, float], int]],
    mean_length: float,
    idf: Mapping[str, float],
) -> float:
    messages = sum(score * DECAY**place for place, score in enumerate(sorted(scores, reverse=True)[:BEST]))
    stretch = max(_bm25(counts, length / mean_length, idf, K1_STRETCH) for counts, length in chunks)
    return BEST_SHARE * messages + (1 - BEST_SHARE) * stretch


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
