"""Rank messages and lineages by the words of a query.

The messages of the best chunks are cut into passages. Each passage, together with its neighbours,
is scored with BM25F: S. Robertson, H. Zaragoza, M. Taylor, "Simple BM25 extension to multiple
weighted fields" (2004). docs/recall.md lists the effect of each constant on seven sets of
questions.

Arrays have one row per passage. Two-dimensional arrays have one column per query term.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.search.fusion import RankedMatches
from core.search.term_weights import RELATED_WEIGHT, choose_chunks, weigh_terms
from core.store.query import DAY_TERM_COUNT, CandidateMessage, MessageMatch, SearchQuery
from core.store.search.text_search import LINEAGES_READ, TextSearch
from core.text.normalize import is_unspaced
from core.text.terms import asks_when, is_date_term, moment_terms
from core.text.variants import RELATED_PREFIX_LETTERS, are_related

MAX_LINEAGES = 100
"""Only this many lineages are ranked. Later pages are empty."""

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def rank_matches(index: TextSearch, query: SearchQuery, names: Sequence[str] = ()) -> RankedMatches:
    """Rank the messages that contain any word of the query.

    `names` are aliases of people and things in the query. Candidates are loaded in parts, until
    there are enough for the requested page.
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


# The parameters of BM25: the saturation of term counts, and the influence of the text's length.
K1 = 1.0
B = 0.75
IDF_POWER = 0.85
"""The exponent of a term's inverse document frequency. It is below 1 and lowers the weight of rare
terms, because the rarest term is seldom the most important one."""
NEIGHBOUR_WEIGHTS = ((0, 1.0), (1, 0.45), (2, 0.3), (-1, 0.3), (-2, 0.15))
"""Pairs of an offset and a weight. The words of a passage also count, with this weight, for the
passage that comes `offset` passages later. Later passages get a higher weight, because an answer
follows its question."""
ADJACENT_BONUS = 0.5
"""The bonus for words that are adjacent in the query and close together in a passage, in either
order."""
ADJACENT_TERMS = 2
"""Words are close together if their positions differ by at most this many terms."""
NAME_WEIGHT = 1.5
"""The weight of a term is multiplied by this if it is a speaker's name, because the name shows
which conversation is meant."""
SPEAKER_BONUS = 0.9
"""The bonus for messages of a speaker whom the query names, and for messages of the asker if the
query is about the asker.

A question that names people is often about their own messages.
"""
DAY_WEIGHT = 0.2
"""The weight of the terms of a message's day.

It is low, but a message can be found by its day alone ("What about Wednesday?").
"""
PERIOD_BONUS = 1.0
"""The bonus for messages and stretches in a period that the query names.

It adds 0.4 / 0.9 points to hit@1 / hit@5 on chats. On phone notes, which people ask for by month,
it adds 11 / 5 points.
"""
PERIOD_HALF_LIFE_DAYS = 4
"""The bonus is halved at this distance from the period, plus an eighth of the period's length.

Days near the period get a part of the bonus, because people misremember dates. The day after the
period counts as part of it, because people often report about a day on the next day. This adds 0.3
/ 0.5 points to hit@1 / hit@5 on chats of real people.
"""
COVERAGE_POWER = 0.4
"""The exponent of a passage's coverage, which is the share of the query's weight in the passage."""
QUESTION_PENALTY = 0.2
"""The penalty for questions, because questions share words with the query but seldom answer it."""
REPEATED_SHARE = 0.5
"""Two questions are the same if they share more than this part of each other's terms.

If another speaker answers such a question, the answer counts as if it contained all words of the
question.
"""
REPEATED_WEIGHT = 0.5
"""The score of a message that asks the same question as the query is multiplied by this."""
MOMENT_BONUS = 0.25
"""The bonus for messages that name a time, if the query asks when something happened."""
BEST_MESSAGE_SHARE = 0.5
"""The share of a lineage's score that comes from its best message. The rest comes from its best
stretch. A sum over all messages would rank a long, repetitive conversation above a note that says
something once."""
LINEAGE_WEIGHT = 0.6
"""This share of a lineage's score is added to the score of each of its messages."""
PASSAGE_TERMS = 40
"""Messages are cut into passages of about this many terms, so that a long answer scores as high as
its best passage."""


def compute_idf(frequencies: Mapping[str, int], chunk_count: int) -> dict[str, float]:
    """Return the inverse document frequency of each term, raised to `IDF_POWER`.

    `frequencies` says how many chunks contain each term. No result is negative.
    """
    idf: dict[str, float] = {}
    for term, frequency in frequencies.items():
        others = max(chunk_count, frequency) - frequency
        idf[term] = math.log(1 + (others + 0.5) / (frequency + 0.5)) ** IDF_POWER
    return idf


@dataclass(frozen=True, slots=True)
class PassageTable:
    """The passages of all candidate messages, in the order of the messages.

    The fields from `terms` to `is_askers_own` have one entry per passage.
    """

    # The terms of the passage.
    terms: Sequence[Sequence[str]]
    length: FloatArray
    # The session of the message, and the number of its chunk within the session.
    session: IntArray
    chunk: IntArray
    # The number of the stretch: a run of consecutive passages of the same session and chunk.
    stretch: IntArray
    # The terms of the sender's name and of the day.
    name_terms: Sequence[tuple[str, ...]]
    day_terms: Sequence[tuple[str, ...]]
    # The ordinal of the day.
    day: IntArray
    is_question: BoolArray
    is_candidate: BoolArray
    is_askers_own: BoolArray
    # The index of the first passage of each message.
    message_starts: IntArray
    # The index of the first message of each lineage.
    lineage_starts: IntArray
    # The index of the first passage of each stretch.
    stretch_starts: IntArray


def build_passages(lineages: Mapping[int, Sequence[CandidateMessage]]) -> PassageTable:
    """Cut the messages of all lineages into passages, and return their table."""
    messages = list(chain.from_iterable(lineages.values()))
    passages = [_split_passages(message.terms) for message in messages]
    terms = list(chain.from_iterable(passages))
    # The candidate message of each passage.
    rows = list(chain.from_iterable(map(repeat, messages, map(len, passages))))
    session = np.array([message.session_id for message in rows])
    chunk = np.array([message.chunk for message in rows])
    # A passage begins a stretch if its session or chunk differs from the passage before it. Summing
    # up these marks numbers the stretches: [0, 0, 1, 0, 1] gives [0, 0, 1, 1, 2].
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
    """Split a message's terms into passages of about equal length.

    100 terms result in two passages of 50 terms. A short message is one passage.
    """
    count = max(1, round(len(terms) / PASSAGE_TERMS))
    cuts = [len(terms) * number // count for number in range(count + 1)]
    return [terms[start:end] for start, end in pairwise(cuts)]


def _group_starts(groups: Iterable[Sized]) -> IntArray:
    """Return the index of each group's first item after all groups are concatenated.

    Groups of 2, 3 and 1 items result in [0, 2, 5].
    """
    ends = np.cumsum(list(map(len, groups)))
    return np.concatenate(([0], ends[:-1]))


def rank(
    idf: Mapping[str, float],
    lineages: Mapping[int, Sequence[CandidateMessage]],
    moments: frozenset[str] = frozenset(),
    periods: Sequence[tuple[int, int]] = (),
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Score lineages and their messages.

    Returns the scores of the lineages by root id, and the messages. Both are sorted, best first,
    and leave out scores of 0.

    `idf` has the weights of the terms in the order of the query. `moments` are terms that name a
    time, if the query asks when something happened. `periods` are the periods in the query, as
    ordinals of their first and last days.
    """
    if not lineages or not idf:
        return {}, []
    passages = build_passages(lineages)
    # The speakers whose names the query mentions.
    speakers = {name for name in set(passages.name_terms) if not idf.keys().isdisjoint(name)}
    weights = _weigh_speaker_names(idf, speakers)

    # Count the query's terms in each passage.
    related_words = _find_related(idf, passages.terms)
    tokens = _find_tokens(passages, idf, related_words)
    text_counts = _count_terms(tokens, idf, related_words)
    day_counts = _count_label_terms(passages.day_terms, idf)
    counts = text_counts + _count_label_terms(passages.name_terms, idf)

    # Find the passages that ask the same question as the query, and the answered ones among them.
    is_repeated = passages.is_question & _is_same_question(text_counts, passages.terms)
    is_answered = is_repeated & _is_followed_by_other_speaker(passages.name_terms)

    # Score each passage together with its neighbours.
    with_neighbours, relative_lengths = _add_neighbours(
        counts + DAY_WEIGHT * day_counts, passages, is_answered
    )
    scores = _bm25(with_neighbours, relative_lengths, weights)
    scores = scores * _coverage(with_neighbours, weights) ** COVERAGE_POWER
    scores *= 1 + ADJACENT_BONUS * _adjacent_pairs(tokens, idf, len(passages.terms))
    # Passages that only help to find their neighbours get the score 0.
    scores *= passages.is_candidate
    scores[is_repeated] *= REPEATED_WEIGHT
    scores[passages.is_askers_own] *= 1 + SPEAKER_BONUS
    stretch_scores = _score_stretches(counts, day_counts, passages, weights)
    if periods:
        boost = _period_boost(with_neighbours, idf, passages.day, periods)
        scores *= boost
        stretch_scores = stretch_scores * np.maximum.reduceat(boost, passages.stretch_starts)

    message_scores = _score_messages(scores, passages, moments, speakers)
    return _order(lineages, passages, scores, message_scores, stretch_scores)


def _score_messages(
    scores: FloatArray,
    passages: PassageTable,
    moments: frozenset[str],
    speakers: Collection[tuple[str, ...]],
) -> FloatArray:
    """Return the scores of passages, adjusted for ranking single messages.

    Questions get a lower score. Passages get a higher score if they name a time of the query, or if
    the query names their speaker.
    """
    message_scores = np.where(passages.is_question, scores * (1 - QUESTION_PENALTY), scores)
    if moments:
        names_moment = [not moments.isdisjoint(terms) for terms in passages.terms]
        message_scores[names_moment] *= 1 + MOMENT_BONUS
    message_scores[[name in speakers for name in passages.name_terms]] *= 1 + SPEAKER_BONUS
    return message_scores


def _weigh_speaker_names(
    idf: Mapping[str, float], speakers: Collection[Sequence[str]]
) -> FloatArray:
    """Return the weights of the query terms, with a higher weight for speakers' names."""
    speaker_terms = set(chain.from_iterable(speakers))
    return np.array(
        [weight * NAME_WEIGHT if term in speaker_terms else weight for term, weight in idf.items()]
    )


def _find_related(
    query_terms: Collection[str], texts: Iterable[Sequence[str]]
) -> dict[str, list[str]]:
    """Map words in the texts to the query terms with the same beginning.

    For example, "adoption" is related to "adopted". Words that are query terms themselves are left
    out.
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
    """All occurrences of query terms and related words, in the order of the texts.

    `passage`, `position` and `word` have one entry per occurrence.
    """

    # The index of the passage that contains the occurrence.
    passage: IntArray
    # The position of the occurrence in the concatenated terms of all passages.
    position: IntArray
    # The number of the word. Query terms have the lowest numbers, and related words follow.
    word: IntArray
    # The number of occurrences of each word (column) in each passage (row).
    counts: IntArray


def _find_tokens(
    passages: PassageTable, idf: Mapping[str, float], related_words: Mapping[str, Sequence[str]]
) -> _Tokens:
    """Find all occurrences of query terms and related words in the passages."""
    numbers = {word: number for number, word in enumerate([*idf, *related_words])}
    # The number of each word in all passages, or -1 for other words.
    words = chain.from_iterable(passages.terms)
    word_numbers = np.fromiter(map(numbers.get, words, repeat(-1)), int)
    position = np.flatnonzero(word_numbers >= 0)
    word = word_numbers[position]
    passage_count = len(passages.terms)
    passage = np.repeat(np.arange(passage_count), list(map(len, passages.terms)))[position]
    # Each pair of a passage and a word is one cell of a flat matrix.
    cells = np.bincount(passage * len(numbers) + word, minlength=passage_count * len(numbers))
    return _Tokens(passage, position, word, cells.reshape(passage_count, len(numbers)))


def _count_terms(
    tokens: _Tokens, idf: Mapping[str, float], related_words: Mapping[str, Sequence[str]]
) -> FloatArray:
    """Count each query term in each passage.

    A related word counts as `RELATED_WEIGHT` occurrences of its terms.
    """
    columns = {term: column for column, term in enumerate(idf)}
    counts = tokens.counts[:, : len(idf)].astype(float)
    for word_number, terms in enumerate(related_words.values(), len(idf)):
        for term in terms:
            counts[:, columns[term]] += RELATED_WEIGHT * tokens.counts[:, word_number]
    return counts


def _count_label_terms(labels: Sequence[tuple[str, ...]], terms: Iterable[str]) -> FloatArray:
    """Count each query term in the label of each passage.

    `labels` are the terms of the speaker's name, or of the day. Many passages share a label, so
    each distinct label is counted once.
    """
    rows = {label: row for row, label in enumerate(dict.fromkeys(labels))}
    columns = {term: column for column, term in enumerate(terms)}
    counts = np.zeros((len(rows), len(columns)))
    for label, row in rows.items():
        for term in columns.keys() & label:
            counts[row, columns[term]] = label.count(term)
    return counts[[rows[label] for label in labels]]


def _is_same_question(text_counts: FloatArray, texts: Sequence[Sequence[str]]) -> BoolArray:
    """Return which passages ask the same question as the query.

    Such a passage contains most terms of the query, and the query contains most of the passage's.
    """
    shared_terms = (text_counts >= 1).sum(axis=1)
    is_same: BoolArray = shared_terms > REPEATED_SHARE * text_counts.shape[1]
    for row in np.flatnonzero(is_same).tolist():
        is_same[row] = shared_terms[row] > REPEATED_SHARE * len(set(texts[row]))
    return is_same


def _is_followed_by_other_speaker(names: Sequence[tuple[str, ...]]) -> BoolArray:
    """Return which passages are followed by a passage of another speaker.

    People don't answer their own questions, so only another speaker's passage can be an answer. A
    passage without a speaker's name counts as followed by another speaker.
    """
    next_names = (*names[1:], ())
    return np.array(
        [not name or name != next_name for name, next_name in zip(names, next_names, strict=True)]
    )


def _add_neighbours(
    counts: FloatArray, passages: PassageTable, is_answered: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Add a share of the neighbours' term counts to the counts of each passage.

    The shares are `NEIGHBOUR_WEIGHTS`. Neighbours are passages of the same session, in the same or
    an adjacent chunk. All counts of an answered question (`is_answered`) are added to the next
    passage, which is its answer.

    Returns the counts, and the length of each passage with its neighbours divided by the mean
    length.
    """
    total_counts = np.zeros_like(counts)
    total_lengths = np.zeros_like(passages.length)
    for offset, weight in NEIGHBOUR_WEIGHTS:
        # The rows of `target` are `offset` passages after those of `source`. With 5 passages and
        # offset 1, rows 0 to 3 are added to rows 1 to 4.
        source = slice(max(0, -offset), len(counts) - max(0, offset))
        target = slice(max(0, offset), len(counts) - max(0, -offset))
        is_same_session = passages.session[source] == passages.session[target]
        chunk_distance = np.abs(passages.chunk[source] - passages.chunk[target])
        shares = weight * (is_same_session & (chunk_distance <= 1))
        total_lengths[target] += shares * passages.length[source]
        if offset == 1:
            shares[is_answered[source] & (shares > 0)] = 1.0
        total_counts[target] += shares[:, np.newaxis] * counts[source]
    mean_length = max(1.0, passages.length.mean())
    total_lengths /= mean_length * sum(weight for _, weight in NEIGHBOUR_WEIGHTS)
    return total_counts, total_lengths


def _bm25(counts: FloatArray, relative_lengths: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the BM25 score of each row of term counts.

    `relative_lengths` contains the length of each row divided by the mean length.
    """
    norms = K1 * (1 - B + B * relative_lengths)[:, np.newaxis]
    scores: FloatArray = (weights * counts * (K1 + 1) / (counts + norms)).sum(axis=1)
    return scores


def _coverage(counts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return, for each passage, the share of the query's total weight that its terms have."""
    covered_weight: FloatArray = (weights * np.minimum(counts, 1.0)).sum(axis=1)
    return covered_weight / (weights.sum() or 1.0)


def _adjacent_pairs(tokens: _Tokens, idf: Mapping[str, float], passage_count: int) -> FloatArray:
    """Return, for each passage, the share of the query's pairs of adjacent terms that it contains.

    A pair counts by the weight of its terms. In a passage, the two words may be in either order and
    up to `ADJACENT_TERMS` apart.
    """
    term_count = len(idf)
    # Column n is the pair of the query's terms n and n + 1. The last column isn't used.
    has_pair = np.zeros((passage_count, term_count))
    for step in range(1, ADJACENT_TERMS + 1):
        # Compare each token with the token that comes `step` tokens later.
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
    """Return a factor for each passage: 2 within a period of the query, down to 1 far away from it.

    Only passages that contain a query word other than a date get more than 1. The counts include
    the dates of messages, so without this rule, dates alone would match every passage of the
    period.
    """
    is_word = [not is_date_term(term) for term in idf]
    has_words = (counts[:, is_word] > 0).any(axis=1)
    boost: FloatArray = 1 + PERIOD_BONUS * _period_nearness(days, periods) * has_words
    return boost


def _period_nearness(days: IntArray, periods: Sequence[tuple[int, int]]) -> FloatArray:
    """Return how near each day is to a period, from 1 (within) down to 0 (far away)."""
    # Rows are distinct days, and columns are periods.
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
    """Return the BM25 score of each stretch, a run of consecutive messages, as one document.

    Each day of a stretch adds its terms `DAY_TERM_COUNT` times, however many passages the stretch
    has. Lengths are divided by the median and not by the mean. Otherwise, a few very long stretches
    would raise the mean so much that lengths would hardly matter.
    """
    lengths = passages.length + list(map(len, passages.name_terms))
    stretch_counts = np.add.reduceat(counts, passages.stretch_starts)
    stretch_lengths = np.add.reduceat(lengths, passages.stretch_starts)
    # The index of the last passage of each day in each stretch.
    day_rows: dict[tuple[int, tuple[str, ...]], int] = {}
    for row, stretch in enumerate(passages.stretch.tolist()):
        day_rows[stretch, passages.day_terms[row]] = row
    rows = list(day_rows.values())
    stretches = passages.stretch[rows]
    # `np.add.at` also adds up the days of the same stretch, unlike `+=` with an index array.
    np.add.at(stretch_counts, stretches, DAY_TERM_COUNT * day_counts[rows])
    day_lengths = [DAY_TERM_COUNT * len(day_terms) for _, day_terms in day_rows]
    np.add.at(stretch_lengths, stretches, day_lengths)
    return _bm25(stretch_counts, stretch_lengths / max(1.0, _median(stretch_lengths)), weights)


def _median(numbers: FloatArray) -> float:
    """Return the median of some numbers.

    Unlike `np.median`, this doesn't load `numpy.ma` while a person waits for an answer.
    """
    ordered = np.sort(numbers)
    middle = len(ordered) // 2
    return float(ordered[middle] + ordered[-middle - 1]) / 2


def _order(
    lineages: Mapping[int, Sequence[CandidateMessage]],
    passages: PassageTable,
    scores: FloatArray,
    message_scores: FloatArray,
    stretch_scores: FloatArray,
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Return the scores of the lineages by root id, and the messages, both best first.

    A message's score is the score of its best passage, plus a share of its lineage's score. A
    lineage's score combines its best message and its best stretch. Messages with equal scores are
    ordered by id. Messages whose `scores` are 0 are left out.
    """
    # `reduceat` takes the maximum over each message's passages, or over each lineage's messages.
    best_passages = np.maximum.reduceat(scores, passages.message_starts)
    totals = np.maximum.reduceat(message_scores, passages.message_starts)
    best_messages = np.maximum.reduceat(best_passages, passages.lineage_starts)
    passage_stretch_scores = stretch_scores[passages.stretch]
    message_stretches = np.maximum.reduceat(passage_stretch_scores, passages.message_starts)
    best_stretches = np.maximum.reduceat(message_stretches, passages.lineage_starts)
    # A lineage whose messages all have the score 0 isn't found by its stretches alone.
    mean_scores = BEST_MESSAGE_SHARE * best_messages + (1 - BEST_MESSAGE_SHARE) * best_stretches
    lineage_scores = np.where(best_messages > 0, mean_scores, 0)
    lineage_of_message = np.repeat(np.arange(len(lineages)), list(map(len, lineages.values())))
    totals += LINEAGE_WEIGHT * lineage_scores[lineage_of_message]

    messages = list(chain.from_iterable(lineages.values()))
    root_ids = list(lineages)
    message_ids = np.array([message.message_id for message in messages])
    matches = []
    # `lexsort` sorts by its last key first: by score, descending, and then by id.
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
