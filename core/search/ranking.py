"""Ranks messages and conversations by the words of a query.

The candidates of the best chunks are scored with BM25F over each message and its neighbours:
S. Robertson, H. Zaragoza, M. Taylor, "Simple BM25 extension to multiple weighted fields" (2004).
docs/recall.md lists what each constant is worth on seven sets of questions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from core.search.term_weights import RELATED_WEIGHT, choose_chunks, weigh_terms
from core.store.query import DAY_TERM_COUNT, CandidateMessage, MessageMatch, SearchQuery
from core.store.sqlite.text_index import LINEAGES_READ, TextIndex
from core.text.normalize import is_unspaced
from core.text.terms import asks_when, is_date_term, moment_terms
from core.text.variants import RELATED_PREFIX_LETTERS, are_related

MAX_LINEAGES = 100
"""Pages beyond this many lineages are not ranked."""

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


class RankedMatches(NamedTuple):
    """Messages and lineages in order, best first."""

    # The score of each lineage, by its id.
    scores: Mapping[int, float]
    matches: list[MessageMatch]
    # The query with the terms that were added to it.
    text: str
    # Typed words that occur nowhere, with the words that were searched instead.
    corrections: Mapping[str, str]


def rank_matches(index: TextIndex, query: SearchQuery, names: Sequence[str] = ()) -> RankedMatches:
    """Rank the messages that have any word of the query.

    `names` are aliases of people and things that the query names. Only as many lineages are read
    as the requested page needs.
    """
    terms = weigh_terms(index, query.text, names)
    choices = choose_chunks(terms, query, index.chunk_count)
    idf = {
        term: weight * terms.weights[term]
        for term, weight in compute_idf(terms.frequencies, index.chunk_count).items()
    }
    moments = moment_terms() if asks_when(query.text) else frozenset[str]()

    scores: dict[int, float] = {}
    matches: list[MessageMatch] = []
    last_lineage = max(0, min(query.limits.page * query.limits.sessions, MAX_LINEAGES))
    for part in range(1 + last_lineage // LINEAGES_READ):
        lineages = index.load_candidates(choices, part)
        part_scores, part_matches = rank(idf, lineages, moments, query.periods)
        matches += [match for match in part_matches if match.root_id not in scores]
        for root_id, score in part_scores.items():
            scores.setdefault(root_id, score)
    return RankedMatches(scores, matches, terms.text, terms.corrections)


# How BM25 counts: saturation of a term's count, and influence of a text's length.
K1 = 1.0
B = 0.75
IDF_POWER = 0.85
"""Softens the weight of rare terms: the rarest is seldom the one that matters most."""
NEIGHBOUR_WEIGHTS = ((0, 1.0), (1, 0.45), (2, 0.3), (-1, 0.3), (-2, 0.15))
"""Pairs of a distance and a share: a message lends this share of its words that far ahead.

Later messages get more, because an answer comes after its question.
"""
ADJACENT_BONUS = 0.5
"""Bonus for words that are adjacent in the query and close together in a message, in any order."""
ADJACENT_TERMS = 2
"""Words are close together if they are at most this many terms apart."""
NAME_WEIGHT = 1.5
"""Factor for a term that is a speaker's name, because it tells whose conversation is meant."""
SPEAKER_BONUS = 0.9
"""Bonus for messages of a speaker whom the query names, or of the asker if it's about them.

A question that names people is often about what they said.
"""
DAY_WEIGHT = 0.2
"""Weight of the terms of a message's day.

They count a little, so that a message can be found by its day alone ("What about Wednesday?").
"""
PERIOD_BONUS = 1.0
"""Bonus for messages and stretches in a period that the query names.

It adds 0.4 / 0.9 points to hit@1 / hit@5 on chats, and 11 / 5 points on phone notes, which people
ask for by month.
"""
PERIOD_HALF_LIFE_DAYS = 4
"""At this distance from the period (plus an eighth of its length) the bonus is halved.

People misremember dates. The day after the period counts as part of it, because people often tell
about a day on the next one. This adds 0.3 / 0.5 points to hit@1 / hit@5 on chats of real people.
"""
COVERAGE_POWER = 0.4
"""Exponent of the share of the query, by weight, that a message covers."""
QUESTION_PENALTY = 0.2
"""Penalty for questions, because they share words with the query but seldom answer it."""
REPEATED_SHARE = 0.5
"""A question with more than this share of its terms in common with the query is the same question.

If someone else answers it, the answer counts as if it had all words of the question.
"""
REPEATED_WEIGHT = 0.5
"""Factor for a message that asks the same question as the query."""
MOMENT_BONUS = 0.25
"""Bonus for messages that name a moment, if the query asks when something happened."""
BEST_MESSAGE_SHARE = 0.5
"""This share of a lineage's score is from its best message, the rest from its best stretch.

A sum over all messages would rank a long, repetitive talk before a note that says it once.
"""
LINEAGE_WEIGHT = 0.6
"""How much of its lineage's score a message gets on top of its own."""
PASSAGE_TERMS = 40
"""Messages are ranked by passages of about this many terms.

A long answer then scores as high as its best passage.
"""


def compute_idf(frequencies: Mapping[str, int], chunk_count: int) -> dict[str, float]:
    """The inverse document frequency of each term, softened and never negative.

    `frequencies` says in how many of the chunks each term occurs.
    """
    idf: dict[str, float] = {}
    for term, frequency in frequencies.items():
        others = max(chunk_count, frequency) - frequency
        idf[term] = math.log(1 + (others + 0.5) / (frequency + 0.5)) ** IDF_POWER
    return idf


@dataclass(frozen=True, slots=True)
class PassageTable:
    """The passages of all candidate messages, in their order.

    Every column has one entry for each passage.
    """

    # The terms of the passage.
    terms: Sequence[Sequence[str]]
    length: FloatArray
    # The session and the chunk that the message belongs to.
    session: IntArray
    chunk: IntArray
    # Number of the stretch: consecutive passages of the same session and chunk.
    stretch: IntArray
    # Terms of the sender's name and of the day.
    name_terms: Sequence[tuple[str, ...]]
    day_terms: Sequence[tuple[str, ...]]
    # Ordinal of the day.
    day: IntArray
    is_question: BoolArray
    is_candidate: BoolArray
    is_askers_own: BoolArray
    # The first passage of each message.
    message_starts: IntArray
    # The first message of each lineage.
    lineage_starts: IntArray
    # The first passage of each stretch.
    stretch_starts: IntArray


def build_passages(lineages: Mapping[int, Sequence[CandidateMessage]]) -> PassageTable:
    """Cut the messages of all lineages into passages."""
    messages = list(chain.from_iterable(lineages.values()))
    passages = [_split_passages(message.terms) for message in messages]
    terms = list(chain.from_iterable(passages))
    rows = list(chain.from_iterable(map(repeat, messages, map(len, passages))))
    session = np.array([message.session_id for message in rows])
    chunk = np.array([message.chunk for message in rows])
    is_new_stretch = (session[1:] != session[:-1]) | (chunk[1:] != chunk[:-1])
    stretch = np.cumsum(np.concatenate(([False], is_new_stretch)))
    return PassageTable(
        terms=terms,
        length=np.array(list(map(len, terms)), float),
        session=session,
        chunk=chunk,
        stretch=stretch,
        name_terms=[message.name_terms for message in rows],
        day_terms=[message.day_terms for message in rows],
        day=np.array([message.day_number for message in rows]),
        is_question=np.array([message.is_question for message in rows], bool),
        is_candidate=np.array([message.is_candidate for message in rows], bool),
        is_askers_own=np.array([message.is_askers_own for message in rows], bool),
        message_starts=_group_starts(passages),
        lineage_starts=_group_starts(lineages.values()),
        stretch_starts=np.searchsorted(stretch, np.arange(stretch[-1] + 1)),
    )


def _split_passages(terms: Sequence[str]) -> list[Sequence[str]]:
    """Split the terms of a long message into parts of about the same length."""
    count = max(1, round(len(terms) / PASSAGE_TERMS))
    cuts = [len(terms) * number // count for number in range(count + 1)]
    return [terms[start:end] for start, end in pairwise(cuts)]


def _group_starts(groups: Iterable[Sized]) -> IntArray:
    """The index of each group's first item if all groups are joined."""
    ends = np.cumsum(list(map(len, groups)))
    return np.concatenate(([0], ends[:-1]))


def rank(
    idf: Mapping[str, float],
    lineages: Mapping[int, Sequence[CandidateMessage]],
    moments: frozenset[str] = frozenset(),
    periods: Sequence[tuple[int, int]] = (),
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Score the lineages and all candidate messages, best first.

    `idf` has the terms in the order of the query. `moments` are terms that name a moment, if the
    query asks for one. `periods` are the first and last days (as ordinals) of
    periods that the query names.
    """
    if not lineages or not idf:
        return {}, []
    passages = build_passages(lineages)
    speakers = {name for name in set(passages.name_terms) if not idf.keys().isdisjoint(name)}
    weights = _weigh_speaker_names(idf, speakers)
    related_words = _find_related(idf, passages.terms)
    tokens = _find_tokens(passages, idf, related_words)
    text_counts = _count_terms(tokens, idf, related_words)
    day_counts = _count_label_terms(passages.day_terms, idf)
    counts = text_counts + _count_label_terms(passages.name_terms, idf)
    is_repeated = passages.is_question & _is_same_question(text_counts, passages.terms)

    is_answered = is_repeated & _is_followed_by_other_speaker(passages.name_terms)
    with_neighbours, relative_lengths = _add_neighbours(
        counts + DAY_WEIGHT * day_counts, passages, is_answered
    )
    scores = _bm25(with_neighbours, relative_lengths, weights)
    scores = scores * _coverage(with_neighbours, weights) ** COVERAGE_POWER
    scores *= 1 + ADJACENT_BONUS * _adjacent_pairs(tokens, idf, len(passages.terms))
    scores *= passages.is_candidate
    scores[is_repeated] *= REPEATED_WEIGHT
    scores[passages.is_askers_own] *= 1 + SPEAKER_BONUS
    stretch_scores = _score_stretches(counts, day_counts, passages, weights)
    if periods:
        boost = _period_boost(with_neighbours, idf, passages.day, periods)
        scores *= boost
        stretch_scores = stretch_scores * np.maximum.reduceat(boost, passages.stretch_starts)

    message_scores = np.where(passages.is_question, scores * (1 - QUESTION_PENALTY), scores)
    if moments:
        names_moment = [not moments.isdisjoint(terms) for terms in passages.terms]
        message_scores[names_moment] *= 1 + MOMENT_BONUS
    message_scores[[name in speakers for name in passages.name_terms]] *= 1 + SPEAKER_BONUS
    return _order(lineages, passages, scores, message_scores, stretch_scores)


def _weigh_speaker_names(
    idf: Mapping[str, float], speakers: Collection[Sequence[str]]
) -> FloatArray:
    """The weight of each query term; the names of speakers count more."""
    speaker_terms = set(chain.from_iterable(speakers))
    return np.array(
        [weight * NAME_WEIGHT if term in speaker_terms else weight for term, weight in idf.items()]
    )


def _find_related(
    query_terms: Collection[str], texts: Iterable[Sequence[str]]
) -> dict[str, list[str]]:
    """Words of the texts that are related to query terms, each with those query terms.

    Words that are query terms themselves are left out.
    """
    terms_by_prefix: dict[str, list[str]] = {}
    for term in query_terms:
        if len(term) >= RELATED_PREFIX_LETTERS and term.isalpha() and not is_unspaced(term):
            terms_by_prefix.setdefault(term[:RELATED_PREFIX_LETTERS], []).append(term)
    if not terms_by_prefix:
        return {}

    related_words: dict[str, list[str]] = {}
    for word in dict.fromkeys(chain.from_iterable(texts)):
        terms = terms_by_prefix.get(word[:RELATED_PREFIX_LETTERS])
        if terms is None or word in query_terms:
            continue
        related_terms = [term for term in terms if are_related(word, term)]
        if related_terms:
            related_words[word] = related_terms
    return related_words


@dataclass(frozen=True, slots=True)
class _Tokens:
    """All occurrences of query terms and words related to them, in the order of the texts."""

    # The number of the passage that contains the occurrence.
    passage: IntArray
    # Its position if the terms of all passages are joined.
    position: IntArray
    # The number of the word: query terms come first, then related words.
    word: IntArray
    # How often each word (column) occurs in each passage (row).
    counts: IntArray


def _find_tokens(
    passages: PassageTable, idf: Mapping[str, float], related_words: Mapping[str, Sequence[str]]
) -> _Tokens:
    """Find every query term and related word in the passages."""
    numbers = {word: number for number, word in enumerate([*idf, *related_words])}
    # -1 stands for every other word.
    words = chain.from_iterable(passages.terms)
    word_numbers = np.fromiter(map(numbers.get, words, repeat(-1)), int)
    position = np.flatnonzero(word_numbers >= 0)
    word = word_numbers[position]
    passage_count = len(passages.terms)
    passage = np.repeat(np.arange(passage_count), list(map(len, passages.terms)))[position]
    cells = np.bincount(passage * len(numbers) + word, minlength=passage_count * len(numbers))
    return _Tokens(passage, position, word, cells.reshape(passage_count, len(numbers)))


def _count_terms(
    tokens: _Tokens, idf: Mapping[str, float], related_words: Mapping[str, Sequence[str]]
) -> FloatArray:
    """How often each query term occurs in each passage; related words count partly."""
    columns = {term: column for column, term in enumerate(idf)}
    counts = tokens.counts[:, : len(idf)].astype(float)
    for word_number, terms in enumerate(related_words.values(), len(idf)):
        for term in terms:
            counts[:, columns[term]] += RELATED_WEIGHT * tokens.counts[:, word_number]
    return counts


def _count_label_terms(labels: Sequence[tuple[str, ...]], terms: Iterable[str]) -> FloatArray:
    """How often each query term occurs in the name or day of each passage.

    Many passages share a label, so each distinct label is counted only once.
    """
    rows = {label: row for row, label in enumerate(dict.fromkeys(labels))}
    columns = {term: column for column, term in enumerate(terms)}
    counts = np.zeros((len(rows), len(columns)))
    for label, row in rows.items():
        for term in columns.keys() & label:
            counts[row, columns[term]] = label.count(term)
    return counts[[rows[label] for label in labels]]


def _is_same_question(text_counts: FloatArray, texts: Sequence[Sequence[str]]) -> BoolArray:
    """Which passages share most of their terms with the query, and have most of its terms."""
    shared_terms = (text_counts >= 1).sum(axis=1)
    is_same: BoolArray = shared_terms > REPEATED_SHARE * text_counts.shape[1]
    for row in np.flatnonzero(is_same).tolist():
        is_same[row] = shared_terms[row] > REPEATED_SHARE * len(set(texts[row]))
    return is_same


def _is_followed_by_other_speaker(names: Sequence[tuple[str, ...]]) -> BoolArray:
    """Which passages are followed by another speaker. People don't answer their own questions.

    A passage without a name always counts.
    """
    next_names = (*names[1:], ())
    return np.array(
        [not name or name != next_name for name, next_name in zip(names, next_names, strict=True)]
    )


def _add_neighbours(
    counts: FloatArray, passages: PassageTable, is_answered: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Add to each passage's counts a share of its neighbours' counts.

    Neighbours are passages of the same session in the same or an adjacent chunk. A question that
    is answered lends all of its counts to the passage after it.

    Returns the counts, and the length of each passage with its neighbours relative to the mean.
    """
    total_counts = np.zeros_like(counts)
    total_lengths = np.zeros_like(passages.length)
    for offset, weight in NEIGHBOUR_WEIGHTS:
        # Each row of `taker` is `offset` passages after its row of `lender`.
        lender = slice(max(0, -offset), len(counts) - max(0, offset))
        taker = slice(max(0, offset), len(counts) - max(0, -offset))
        is_same_session = passages.session[lender] == passages.session[taker]
        chunk_distance = np.abs(passages.chunk[lender] - passages.chunk[taker])
        shares = weight * (is_same_session & (chunk_distance <= 1))
        total_lengths[taker] += shares * passages.length[lender]
        if offset == 1:
            shares[is_answered[lender] & (shares > 0)] = 1.0
        total_counts[taker] += shares[:, np.newaxis] * counts[lender]
    mean_length = max(1.0, passages.length.mean())
    total_lengths /= mean_length * sum(weight for _, weight in NEIGHBOUR_WEIGHTS)
    return total_counts, total_lengths


def _bm25(counts: FloatArray, relative_lengths: FloatArray, weights: FloatArray) -> FloatArray:
    """BM25 of each row of term counts; lengths are relative to the mean."""
    norms = K1 * (1 - B + B * relative_lengths)[:, np.newaxis]
    scores: FloatArray = (weights * counts * (K1 + 1) / (counts + norms)).sum(axis=1)
    return scores


def _coverage(counts: FloatArray, weights: FloatArray) -> FloatArray:
    """The share of the query, by weight, that each passage covers."""
    covered_weight: FloatArray = (weights * np.minimum(counts, 1.0)).sum(axis=1)
    return covered_weight / (weights.sum() or 1.0)


def _adjacent_pairs(tokens: _Tokens, idf: Mapping[str, float], passage_count: int) -> FloatArray:
    """For each passage, the share of the query's adjacent pairs, by weight, that it contains.

    The two words of a pair may be at most `ADJACENT_TERMS` apart in the passage.
    """
    term_count = len(idf)
    has_pair = np.zeros((passage_count, term_count))
    for step in range(1, ADJACENT_TERMS + 1):
        first, second = tokens.word[:-step], tokens.word[step:]
        passage = tokens.passage[step:]
        distance = tokens.position[step:] - tokens.position[:-step]
        is_close = (passage == tokens.passage[:-step]) & (distance <= ADJACENT_TERMS)
        are_neighbours = np.abs(first - second) == 1
        are_query_terms = np.maximum(first, second) < term_count
        is_pair = is_close & are_neighbours & are_query_terms
        has_pair[passage[is_pair], np.minimum(first, second)[is_pair]] = 1
    term_weights = np.array(list(idf.values()))
    pair_weights = term_weights[:-1] + term_weights[1:]
    shares: FloatArray = (has_pair[:, :-1] * pair_weights).sum(axis=1)
    return shares / (pair_weights.sum() or 1.0)


def _period_boost(
    counts: FloatArray,
    idf: Mapping[str, float],
    days: IntArray,
    periods: Sequence[tuple[int, int]],
) -> FloatArray:
    """The factor for passages in or near a period that the query names, from 1 to 2.

    A passage gets it only if it has a word of the query that isn't a date. The counts already
    include dates.
    """
    is_word = [not is_date_term(term) for term in idf]
    has_words = (counts[:, is_word] > 0).any(axis=1)
    boost: FloatArray = 1 + PERIOD_BONUS * _period_nearness(days, periods) * has_words
    return boost


def _period_nearness(days: IntArray, periods: Sequence[tuple[int, int]]) -> FloatArray:
    """How near each day is to the nearest period: 1 within it, then falling towards 0."""
    first, last = np.array(periods).T
    unique_days, rows = np.unique(days, return_inverse=True)
    before = first - unique_days[:, np.newaxis]
    after = unique_days[:, np.newaxis] - last - 1
    distance = np.maximum(np.maximum(before, after), 0)
    half_life = PERIOD_HALF_LIFE_DAYS + (last - first) / 8
    nearness: FloatArray = (0.5 ** (distance / half_life)).max(axis=1)
    return nearness[rows]


def _score_stretches(
    counts: FloatArray, day_counts: FloatArray, passages: PassageTable, weights: FloatArray
) -> FloatArray:
    """BM25 of each stretch as one document, to which the terms of each of its days are added once.

    Lengths are relative to the median, because a few very long stretches raise the mean so much
    that length would hardly count.
    """
    lengths = passages.length + list(map(len, passages.name_terms))
    stretch_counts = np.add.reduceat(counts, passages.stretch_starts)
    stretch_lengths = np.add.reduceat(lengths, passages.stretch_starts)
    # For each day of each stretch, the last passage of that day.
    day_rows: dict[tuple[int, tuple[str, ...]], int] = {}
    for row, stretch in enumerate(passages.stretch.tolist()):
        day_rows[stretch, passages.day_terms[row]] = row
    rows = list(day_rows.values())
    stretches = passages.stretch[rows]
    np.add.at(stretch_counts, stretches, DAY_TERM_COUNT * day_counts[rows])
    day_lengths = [DAY_TERM_COUNT * len(day_terms) for _, day_terms in day_rows]
    np.add.at(stretch_lengths, stretches, day_lengths)
    return _bm25(stretch_counts, stretch_lengths / max(1.0, np.median(stretch_lengths)), weights)


def _order(
    lineages: Mapping[int, Sequence[CandidateMessage]],
    passages: PassageTable,
    scores: FloatArray,
    message_scores: FloatArray,
    stretch_scores: FloatArray,
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Order the lineages and their messages, best first.

    A message counts by its best passage, a lineage by its best message and its best stretch.
    Messages with the same score are ordered by id.
    """
    best_passages = np.maximum.reduceat(scores, passages.message_starts)
    totals = np.maximum.reduceat(message_scores, passages.message_starts)
    best_messages = np.maximum.reduceat(best_passages, passages.lineage_starts)
    passage_stretch_scores = stretch_scores[passages.stretch]
    message_stretches = np.maximum.reduceat(passage_stretch_scores, passages.message_starts)
    best_stretches = np.maximum.reduceat(message_stretches, passages.lineage_starts)
    mean_scores = BEST_MESSAGE_SHARE * best_messages + (1 - BEST_MESSAGE_SHARE) * best_stretches
    lineage_scores = np.where(best_messages > 0, mean_scores, 0)
    lineage_of_message = np.repeat(np.arange(len(lineages)), list(map(len, lineages.values())))
    totals += LINEAGE_WEIGHT * lineage_scores[lineage_of_message]

    messages = list(chain.from_iterable(lineages.values()))
    root_ids = list(lineages)
    message_ids = np.array([message.message_id for message in messages])
    matches = []
    for row in np.lexsort((message_ids, -totals)).tolist():
        if best_passages[row] > 0:
            message = messages[row]
            root_id = root_ids[lineage_of_message[row]]
            matches.append(
                MessageMatch(message.message_id, message.session_id, root_id, float(totals[row]))
            )
    score_order = sorted(
        zip(root_ids, lineage_scores.tolist(), strict=True), key=lambda item: -item[1]
    )
    return {root_id: score for root_id, score in score_order if score}, matches
