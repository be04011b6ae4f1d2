"""Which messages may answer a question, best first: misspelt words corrected, other spellings added, candidates of the
best chunks ordered by BM25F over messages and their neighbours; and rankings joined by reciprocal rank.

Robertson, Zaragoza, Taylor: "Simple BM25 extension to multiple weighted fields" (2004). What each weight
is worth on each of seven sets stands in docs/recall.md.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Sized
from datetime import date
from itertools import chain, pairwise, repeat
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from core.dates.mentions import named_months
from core.store.query import DAY_IN_CHUNK, CandidateMessage, MessageMatch, SearchQuery
from core.store.sqlite.text_index import LINEAGES_READ, RANKED_CHUNKS, TextIndex
from core.text.normalize import clean, is_unspaced, pieces, words_of
from core.text.terms import (
    asks_when,
    date_terms,
    moment_terms,
    name_terms,
    names_day,
    other_forms,
    query_terms,
    word_terms,
)
from core.text.variants import KIN_LETTERS, SHORTEST_PART, are_kin, meant, other_ways

COMMON_SHARE = 0.25
OTHER = 0.6
"""How much a word counts that is another way to write what was typed: as one word, or a number in groups."""
OTHERS_ASKED = 6
SINGLE = 0.6
"""How much a Han character counts that stands in a pair too, or beside other words: together with its pairs a word of
two would count for three. +0.5 / +0 at hit@1 / hit@5 of tests/corpus; other ways to write it: +1.3 / +0.9."""
LENDING_CHUNKS = 9_000
"""The terms that choose chunks stand together in so many at most; the others of a question only rank messages."""
FARTHEST = 100
"""Pages beyond so many lineages are not asked for."""

Array: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Correction = dict[str, tuple[tuple[str, ...], float]]
"""What is taken for a word: each with its terms and how much it counts, the best first."""


class RankedMatches(NamedTuple):
    """Scores of lineages and messages, best first; `corrected` is word typed -> word taken."""

    scores: Mapping[int, float]
    matches: list[MessageMatch]
    text: str
    corrected: Mapping[str, str]


def any_words(index: TextIndex, query: SearchQuery, names: Sequence[str] = ()) -> RankedMatches:
    """`names`: what something that is asked for is called too."""
    typed = clean(query.text)
    terms = query_terms(query.text)
    frequencies, unknown, said = _counted(index, [*other_ways(typed), *map(name_terms, names)], terms)
    spaced = [word for kind, part in pieces(typed) if kind == "words" for word in words_of(part)]
    forms = {form for form, term in other_forms(query.text).items() if term not in unknown}
    unknown -= forms
    words = {term: word for word in spaced for term in word_terms(word)}
    unsaid = {term: word for term, word in words.items() if term in unknown and not _is_within(term, said)}
    corrections = _corrections(index, unsaid)
    shares = _shares(terms, corrections, said) | _month_terms(query.text, terms) | dict.fromkeys(forms, KIN)
    frequencies |= index.frequencies(shares.keys() - frequencies.keys())
    scores, matches = _ranked(index, query, {term: frequencies[term] for term in shares}, shares)
    return RankedMatches(
        scores=scores,
        matches=matches,
        text=" ".join(dict.fromkeys([*shares, query.text])) if corrections or said else query.text,
        corrected={unsaid[term]: "”, “".join(taken) for term, taken in corrections.items()},
    )


def _month_terms(text: str, terms: Sequence[str]) -> dict[str, float]:
    """Of the months that are named in another language: the index has each day in English words."""
    named = (date_terms(date(1, month, 1))[2] for month in named_months(text))
    return {term: 1.0 for term in named if term not in terms}


def _counted(
    index: TextIndex, ways: Sequence[tuple[str, ...]], terms: Sequence[str]
) -> tuple[dict[str, int], set[str], list[tuple[str, ...]]]:
    """How often terms stand in chunks, those that were never said, and the other ways to say the text that were."""
    others = [way for way in ways if not set(way) <= set(terms)]
    frequencies = index.frequencies(dict.fromkeys([*terms, *chain.from_iterable(others)]))
    unknown = {term for term, count in frequencies.items() if not count and term not in index.latest_terms}
    return frequencies, unknown, [way for way in others if unknown.isdisjoint(way)][:OTHERS_ASKED]


def leading_terms(frequencies: Mapping[str, int], count: int) -> tuple[list[str], list[str]]:
    """The terms by which chunks are chosen: one of the leading has to be there, the lending count where they are.

    What costs is to rank each chunk that has any of the leading, so the rarest lead, until together they stand in
    `RANKED_CHUNKS`: in a small store all of them. A term of a quarter of all chunks and more tells little apart and
    does not lend either, nor what is beyond `LENDING_CHUNKS`. All of them count when messages are ranked. (After
    "MaxScore", Turtle and Flood, "Query evaluation: strategies and optimizations", 1995, but without its proof: a chunk
    that has common terms only is lost.)
    """
    leading: list[str] = []
    lending: list[str] = []
    total = 0
    for term, number in sorted(frequencies.items(), key=lambda pair: pair[1]):
        total += number
        if total <= RANKED_CHUNKS or total == number:
            leading.append(term)
        elif number < COMMON_SHARE * count and total <= LENDING_CHUNKS:
            lending.append(term)
    return leading, lending


def _ranked(
    index: TextIndex, query: SearchQuery, frequencies: Mapping[str, int], shares: Mapping[str, float]
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Scores of the lineages and their messages, best first, in as many parts as the page needs; `shares` is how much
    each term counts."""
    # A time that is named is misremembered, or none: it chooses only where the other words have not enough.
    days = [term for term in frequencies if query.periods and names_day(term)]
    words = {term: number for term, number in frequencies.items() if term not in days}
    leading, lending = leading_terms(words, index.chunks)
    choices = [
        ({term: words[term] for term in leading}, [*lending, *days]),
        ({term: frequencies[term] for term in days}, []),
    ]
    moments = moment_terms() if asks_when(query.text) else frozenset[str]()
    idf = {term: weight * shares[term] for term, weight in weights(frequencies, index.chunks).items()}
    scores: dict[int, float] = {}
    matches: list[MessageMatch] = []
    for part in range(1 + max(0, min(query.page * query.limit, FARTHEST)) // LINEAGES_READ):
        lineages = index.candidates(choices, part)
        found, ranked = rank(idf, lineages, moments, query.periods)
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
    for text, likelihood in [*meant(word).items(), *((two, 1.0) for two in parts if len(word_terms(two)) == 2)]:
        terms = tuple(word_terms(text)) if len(text) >= SHORTEST else ()
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


class RankedList(NamedTuple):
    """What was found another way than by the words of a question: message ids, best first, and how much they count
    beside these, which count 1. `marks`: what to mark in a text for its sake."""

    weight: float
    ids: Sequence[int]
    marks: Sequence[str] = ()


NEAR_WEIGHT = 1 / 3
"""What is near in meaning: 3 to 1 gives chats of real people 0 / +0.5 at hit@1 / hit@5 with multilingual-e5-small;
equal weights lose."""


def fused_with(found: RankedMatches, others: Sequence[tuple[float, Sequence[MessageMatch]]]) -> RankedMatches:
    """Messages and their lineages by the ranks of all lists."""
    if not any(also for _, also in others):
        return found
    roots = fused([(1.0, [*found.scores] or [one.root_id for one in found.matches]), *_of_each(others, "root_id")])
    messages = fused(_of_each([(1.0, found.matches), *others], "message_id"))
    known = {match.message_id: match for _, matches in [*others, (1.0, found.matches)] for match in matches}
    return found._replace(scores=roots, matches=[known[id_]._replace(score=score) for id_, score in messages.items()])


def _of_each(lists: Iterable[tuple[float, Sequence[MessageMatch]]], name: str) -> list[tuple[float, list[int]]]:
    return [(weight, [getattr(match, name) for match in matches]) for weight, matches in lists]


K1, B = 1.0, 0.75
SOFTNESS = 0.85
"""Power of the weight of a word: the rarest of a question is seldom the one that counts most."""
OFFSETS = ((0, 1.0), (1, 0.45), (2, 0.3), (-1, 0.3), (-2, 0.15))
"""How much a message lends to the one at this distance behind it: more to those that follow, because an answer follows
what it answers."""
KIN = 0.3
"""A word that shares its beginning with one asked for (adopted, adoption) counts as so much of it; and so does its
English stem, besides that of another language: it alone finds a word where the language of a message is not told."""
NEAR = 0.5
"""For words that stand together in the question and in the message, in any order, up to NEAR_TERMS apart."""
NEAR_TERMS = 2
NAMED = 1.5
"""The name of somebody who speaks tells whose conversation is meant, however often it is said."""
SPEAKER = 0.9
"""For what was said by somebody whom the question names, or by who asks about themselves: people are asked about what
they said."""
DAY_WEIGHT = 0.2
"""The day counts a little for each message too, so that one is found by its day alone ("What about Wednesday?")."""
PERIOD = 1.0
"""How much more a message counts, and a stretch, that is of the time which the question names: +0.4 / +0.9 at hit@1 /
hit@5 on chats; on phone notes, which are asked for by month, +11 / +5."""
CLOSE_DAYS = 4
"""Away from that time it is halved with so many days and each eighth of its length, because people misremember; the
day after it counts as one of it, because people tell of a day on the next: +0.3 / +0.5 on chats of real people."""
COVERAGE = 0.4
"""Power of the share of the query (by weight) that a message covers."""
QUESTION_PENALTY = 0.2
"""A question is rarely the answer, though it shares its words."""
REPEATED = 0.5
"""A question that has more than so much in common with the one that is asked was asked before: what follows has all its
words, unless the same person said it, and it counts half itself."""
MOMENT_BONUS = 0.25
"""Where a moment is asked for, messages that name one."""
BEST_SHARE = 0.5
"""A session: half its best message, half its best stretch. A sum over messages would put what a long talk repeats
before a note that says it once."""
SESSION_SHARE = 0.6
"""How much of its session's score a message gets."""
PASSAGE_TERMS = 40
"""Messages are ranked by passages of about so many terms, so that a long answer is as good as the part that answers."""


def weights(frequencies: Mapping[str, int], count: int) -> dict[str, float]:
    """The idf of each term, softened and never negative: `frequencies` in how many of `count` stretches it stands."""
    return {
        term: math.log(1 + (max(count, number) - number + 0.5) / (number + 0.5)) ** SOFTNESS
        for term, number in frequencies.items()
    }


def rank(
    idf: Mapping[str, float],
    lineages: Mapping[int, Sequence[CandidateMessage]],
    moments: frozenset[str] = frozenset(),
    periods: Sequence[tuple[int, int]] = (),
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Scores of the lineages and all wanted messages, best first; `idf` in the order of the question, `moments` only
    where one is asked for. Arrays have a row for each passage of the messages, in their order, and a column for each
    term."""
    if not lineages or not idf:
        return {}, []
    messages = list(chain.from_iterable(lineages.values()))
    cut = [_passages(message.terms) for message in messages]
    texts = list(chain.from_iterable(cut))
    rows = chain.from_iterable(map(repeat, messages, map(len, cut)))
    _, sessions, chunks, _, names, days, are_questions, are_wanted, day_numbers, are_own = zip(*rows, strict=True)
    called = {name for name in set(names) if not idf.keys().isdisjoint(name)}
    named = set(chain.from_iterable(called))
    asked = np.array([weight * NAMED if term in named else weight for term, weight in idf.items()])
    # Which messages stand together, and in which of the stretches.
    places = np.array((sessions, chunks))
    stretches = np.cumsum(np.concatenate(([False], (places[:, 1:] != places[:, :-1]).any(axis=0))))
    lengths = np.array(list(map(len, texts)), float)
    is_question = np.array(are_questions)

    own, near = _overlaps(idf, texts)
    counts = own + _counts(names, idf)
    of_days = _counts(days, idf)
    scored = _stretch_scores(counts, of_days, lengths + list(map(len, names)), stretches, days, asked)
    is_repeated = is_question & _is_repeated(own, texts)
    lent, windows = _with_neighbours(counts + DAY_WEIGHT * of_days, lengths, places, is_repeated & _may_answer(names))
    windows /= max(1.0, lengths.mean()) * sum(weight for _, weight in OFFSETS)
    covered = (asked * np.minimum(lent, 1.0)).sum(axis=1) / (asked.sum() or 1.0)
    raw = _bm25(lent, windows, asked) * covered**COVERAGE * (1 + NEAR * near) * are_wanted
    raw[is_repeated] *= REPEATED
    raw[list(are_own)] *= 1 + SPEAKER
    if periods:
        # What has only the day of the question has it in its words already.
        has_words = (lent[:, [not names_day(term) for term in idf]] > 0).any(axis=1)
        lift = 1 + PERIOD * _nearness(day_numbers, periods) * has_words
        raw *= lift
        begins = np.searchsorted(stretches, np.arange(stretches[-1] + 1))
        scored = scored * np.maximum.reduceat(lift, begins)
    final = np.where(is_question, raw * (1 - QUESTION_PENALTY), raw)
    if moments:
        final[[not moments.isdisjoint(text) for text in texts]] *= 1 + MOMENT_BONUS
    final[[name in called for name in names]] *= 1 + SPEAKER
    return _best(lineages, _begins(cut), raw, final, scored[stretches])


def _best(
    lineages: Mapping[int, Sequence[CandidateMessage]], begins: Places, raw: Array, final: Array, scored: Array
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Of each message its best passage, of each lineage its best message and its best stretch."""
    raw, final, scored = (np.maximum.reduceat(each, begins) for each in (raw, final, scored))
    of_lineages = _begins(lineages.values())
    best, stretch = np.maximum.reduceat(raw, of_lineages), np.maximum.reduceat(scored, of_lineages)
    found = np.where(best > 0, BEST_SHARE * best + (1 - BEST_SHARE) * stretch, 0)
    lineage = np.repeat(np.arange(len(found)), list(map(len, lineages.values())))
    final += SESSION_SHARE * found[lineage]
    rows = [(message, root) for root, messages in lineages.items() for message in messages]
    ids = [message.message_id for message, _ in rows]
    ranked = [place for place in np.lexsort((np.array(ids), -final)).tolist() if raw[place] > 0]
    matches = [
        MessageMatch(ids[place], rows[place][0].session_id, rows[place][1], float(final[place])) for place in ranked
    ]
    scores = sorted(zip(lineages, found.tolist(), strict=True), key=lambda pair: -pair[1])
    return {root: score for root, score in scores if score}, matches


def _passages(terms: Sequence[str]) -> list[Sequence[str]]:
    """The terms of a long message in parts of about the same length."""
    count = max(1, round(len(terms) / PASSAGE_TERMS))
    cuts = [len(terms) * number // count for number in range(count + 1)]
    return [terms[start:end] for start, end in pairwise(cuts)]


def _begins(groups: Iterable[Sized]) -> Places:
    """Where each of the groups begins in a row of all."""
    ends = np.cumsum(list(map(len, groups)))
    return np.concatenate(([0], ends[:-1]))


def _nearness(days: Sequence[int], periods: Sequence[tuple[int, int]]) -> Array:
    """Of each day to the nearest period, 0 to 1."""
    first, last = np.array(periods).T
    numbers, places = np.unique(days, return_inverse=True)
    away = np.maximum(np.maximum(first - numbers[:, np.newaxis], numbers[:, np.newaxis] - last - 1), 0)
    near: Array = (0.5 ** (away / (CLOSE_DAYS + (last - first) / 8))).max(axis=1)[places]
    return near


def _overlaps(idf: Mapping[str, float], texts: Sequence[Sequence[str]]) -> tuple[Array, Array]:
    """How often each term stands in each text, its kin by their share; and the weight of the pairs of neighbours in the
    question that stand together in a text too."""
    kin = _kin(idf, texts)
    columns = {word: column for column, word in enumerate([*idf, *kin])}
    width = len(idf) + len(kin)
    all_words = np.fromiter(map(columns.get, chain.from_iterable(texts), repeat(-1)), int)
    places = np.flatnonzero(all_words >= 0)
    words, rows = all_words[places], np.repeat(np.arange(len(texts)), list(map(len, texts)))[places]
    found = np.bincount(rows * width + words, minlength=len(texts) * width).reshape(len(texts), width)
    counts = found[:, : len(idf)].astype(float)
    for column, terms in enumerate(kin.values(), len(idf)):
        for term in terms:
            counts[:, columns[term]] += KIN * found[:, column]
    together = np.zeros_like(counts)
    for step in range(1, NEAR_TERMS + 1):
        one, other = words[:-step], words[step:]
        is_near = (rows[step:] == rows[:-step]) & (places[step:] - places[:-step] <= NEAR_TERMS)
        is_pair = is_near & (np.abs(one - other) == 1) & (np.maximum(one, other) < len(idf))
        together[rows[step:][is_pair], np.minimum(one, other)[is_pair]] = 1
    alone = np.array(list(idf.values()))
    pairs = alone[:-1] + alone[1:]
    return counts, (together[:, :-1] * pairs).sum(axis=1) / (pairs.sum() or 1.0)


def _kin(terms: Collection[str], texts: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """For each word of the texts that is no term, but shares its beginning with some: which."""
    by_beginning: dict[str, list[str]] = {}
    for term in terms:
        if len(term) >= KIN_LETTERS and term.isalpha() and not is_unspaced(term):
            by_beginning.setdefault(term[:KIN_LETTERS], []).append(term)
    words = dict.fromkeys(chain.from_iterable(texts)) if by_beginning else ()
    near = [(word, by_beginning[word[:KIN_LETTERS]]) for word in words if word[:KIN_LETTERS] in by_beginning]
    found = {word: [term for term in alike if are_kin(word, term)] for word, alike in near if word not in terms}
    return {word: alike for word, alike in found.items() if alike}


def _counts(labels: Sequence[tuple[str, ...]], terms: Iterable[str]) -> Array:
    """How often each term stands in each of the names or days, few of which are different."""
    rows = {label: row for row, label in enumerate(dict.fromkeys(labels))}
    columns = {term: column for column, term in enumerate(terms)}
    counts = np.zeros((len(rows), len(columns)))
    for label, row in rows.items():
        for term in columns.keys() & label:
            counts[row, columns[term]] = label.count(term)
    return counts[[rows[label] for label in labels]]


def _stretch_scores(
    counts: Array, of_days: Array, lengths: Array, stretches: Places, days: Sequence[tuple[str, ...]], asked: Array
) -> Array:
    """The score of each stretch as one document with its different days."""
    begins = np.searchsorted(stretches, np.arange(stretches[-1] + 1))
    counts, lengths = np.add.reduceat(counts, begins), np.add.reduceat(lengths, begins)
    different = {pair: place for place, pair in enumerate(zip(stretches.tolist(), days, strict=True))}
    chosen = list(different.values())
    np.add.at(counts, stretches[chosen], DAY_IN_CHUNK * of_days[chosen])
    np.add.at(lengths, stretches[chosen], [DAY_IN_CHUNK * len(day) for _, day in different])
    # What matches is longer than most, so the mean would make little of length, the less the more is read.
    return _bm25(counts, lengths / max(1.0, np.median(lengths)), asked)


def _is_repeated(counts: Array, texts: Sequence[Sequence[str]]) -> Flags:
    """Which texts have more than `REPEATED` of their terms, and of those asked for, in common with the question."""
    common = (counts >= 1).sum(axis=1)
    is_repeated: Flags = common > REPEATED * counts.shape[1]
    for row in np.flatnonzero(is_repeated).tolist():
        is_repeated[row] = common[row] > REPEATED * len(set(texts[row]))
    return is_repeated


def _may_answer(names: Sequence[tuple[str, ...]]) -> Flags:
    """After which messages somebody else speaks: nobody answers their own question."""
    return np.array([not one or one != other for one, other in zip(names, (*names[1:], ()), strict=True)])


def _with_neighbours(bags: Array, lengths: Array, places: Places, is_answered: Flags) -> tuple[Array, Array]:
    """The counts of each message with what those around it lend, and the length of all that."""
    counts, windows = np.zeros_like(bags), np.zeros_like(lengths)
    for offset, weight in OFFSETS:
        lender = slice(max(0, -offset), len(bags) - max(0, offset))
        taker = slice(max(0, offset), len(bags) - max(0, -offset))
        apart, steps = np.abs(places[:, lender] - places[:, taker])
        shares = weight * ((apart == 0) & (steps <= 1))
        windows[taker] += shares * lengths[lender]
        if offset == 1:
            shares[is_answered[lender] & (shares > 0)] = 1.0
        counts[taker] += shares[:, np.newaxis] * bags[lender]
    return counts, windows


def _bm25(counts: Array, relative_lengths: Array, asked: Array) -> Array:
    norms = K1 * (1 - B + B * relative_lengths)[:, np.newaxis]
    scores: Array = (asked * counts * (K1 + 1) / (counts + norms)).sum(axis=1)
    return scores
