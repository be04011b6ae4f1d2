"""Answers what is not found as typed, and every plain question: any of the words, best first, with the misspelt mended.

Candidates and their order come from `questions.py`; here a time that is mentioned lends weight, and what is found is
judged.

Answers a question as it stands, without operators: the best chunks, then their messages ranked one by one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from core.dates.periods import Period
from core.search.ranking import RankedMessage, rank, weights
from core.search.rendering import JUDGED_CHUNKS, WEAK_BELOW
from core.store.query import MessageMatch, SearchQuery, TermCounts
from core.store.rows import timestamp
from core.store.sqlite import chunk_index
from core.store.sqlite.vocabulary import Mended, fresh, nearest, together
from core.text.normalize import is_unspaced, pieces, words_of
from core.text.terms import asks_when, clean, moment_terms, query_terms, terms_of
from core.text.variants import other_ways, other_writings

COMMON_SHARE = 0.25


def ask(
    connection: sqlite3.Connection,
    query: SearchQuery,
    counted: TermCounts,
    shares: Mapping[str, float],
    helping: int = 0,
) -> tuple[dict[int, float], list[MessageMatch]]:
    """Scores of the best lineages, best first, and their messages, best first. Empty where there is nothing to ask, or
    no message a person may see has any of it. `shares`: the terms to ask for, in the order of the question, and how
    much each counts; `counted`: how often they are said; `helping`: see `chunks.candidates`."""
    terms = list(shares)
    if not terms:
        return {}, []
    scopes, known, count = counted
    frequencies = {term: known[term] for term in terms}
    leading, lending = telling(frequencies, count)
    lineages = chunk_index.candidates(
        connection, {term: known[term] for term in leading}, lending, scopes, query, helping
    )
    until = chunk_index.until(connection)
    for found in _fresh_stretches((one for group in lineages.values() for one in group), until):
        count += 1
        for term in frequencies:
            frequencies[term] += term in found
    moments = moment_terms() if asks_when(query.text) else frozenset[str]()
    idf = {term: weight * shares[term] for term, weight in weights(frequencies, count).items()}
    scores, scored = rank(idf, lineages, moments)
    roots = {one.message_id: root for root, group in lineages.items() for one in group}
    return scores, [MessageMatch(one.message_id, one.session_id, roots[one.message_id], score) for score, one in scored]


def telling(frequencies: Mapping[str, int], count: int) -> tuple[list[str], list[str]]:
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
        if total <= chunk_index.RANKED_CHUNKS or total == number:
            leading.append(term)
        elif number < COMMON_SHARE * count:
            lending.append(term)
    return leading, lending


def _fresh_stretches(utterances: Iterable[RankedMessage], until: int) -> Iterable[set[str]]:
    """The terms of what is in no chunk yet, one set for each session: the index has not counted them."""
    fresh: dict[int, set[str]] = {}
    for one in utterances:
        if one.message_id > until:
            fresh.setdefault(one.session_id, set()).update(one.terms, one.name, one.day)
    return fresh.values()


PERIOD_BONUS = 0.2
"""A session whose best message is of the time that the question mentions, and each message of it."""
OTHER = 0.6
"""How much a word counts that is another way to write what was typed: as one word, or a number in groups."""
OTHERS_ASKED = 6
SINGLE = 0.6
"""How much a Han character counts that stands in a pair too, or beside other words: together with its pairs a word of
two would count for three. +0.5 / +0 at hit@1 / hit@5 of tests/corpus; other ways to write it: +1.3 / +0.9."""
LOOKED_AT = 5
"""In so many of the best messages a mended word is looked up as it was written."""


class Inquiry(NamedTuple):
    """Scores of lineages and messages, both best first; `text` is what was asked for in the end; `respelled` says what
    was taken for which word; `is_weak`: the best session matches too little to be trusted."""

    scores: Mapping[int, float]
    matches: list[MessageMatch]
    text: str
    respelled: Mapping[str, str]
    is_weak: bool


def inquire(connection: sqlite3.Connection, query: SearchQuery, mentioned: Period | None = None) -> Inquiry:
    """The best sessions and messages for any of the words. `mentioned` is the time that the text speaks of."""
    terms = query_terms(query.text)
    typed = clean(query.text)
    ways = dict.fromkeys([*together(query), *other_ways(typed), *other_writings(typed)])
    others = [way for way in ways if not set(way) <= set(terms)]
    counted = chunk_index.frequencies(connection, list(dict.fromkeys([*terms, *chain.from_iterable(others)])), query)
    latest = fresh(connection, query) if 0 in counted.frequencies.values() else {}
    said = [way for way in others if all(counted.frequencies[term] or term in latest for term in way)][:OTHERS_ASKED]
    unsaid = {term: counted.frequencies[term] for term in terms if not _is_within(term, said)}
    mended = nearest(connection, query, counted._replace(frequencies=unsaid), latest)
    shares = _shares(terms, mended, said)
    if more := [term for term in shares if term not in counted.frequencies]:
        counted.frequencies.update(chunk_index.frequencies(connection, more, query).frequencies)
    scores: dict[int, float] = {}
    matches: list[MessageMatch] = []
    for helping in range(chunk_index.helpings(query)):
        more_scores, found = ask(connection, query, counted, shares, helping)
        if mentioned is not None and found:
            more_scores, found = _favoured(connection, more_scores, found, mentioned)
        matches += [match for match in found if match.root_id not in scores]
        scores |= {root: score for root, score in more_scores.items() if root not in scores}
    weighed = weights({term: counted.frequencies[term] for term in shares}, counted.chunks)
    # What was never said as typed, but was perhaps in another way, tells nothing against what has that one.
    judged = [term for term in terms if term not in mended and (not said or counted.frequencies[term])]
    total = sum(shares[term] * weighed[term] for term in judged)
    total += sum(weighed[term] for taken in mended.values() for term in next(iter(taken)))
    best = next(iter(scores.values()), 0.0)
    return Inquiry(
        scores=scores,
        matches=matches,
        text=" ".join(dict.fromkeys([*shares, query.text])) if mended or said else query.text,
        respelled=_as_written(connection, query.text, mended, matches) if mended else {},
        is_weak=bool(scores) and counted.chunks >= JUDGED_CHUNKS and best < WEAK_BELOW * total,
    )


def _is_within(term: str, said: Sequence[tuple[str, ...]]) -> bool:
    """Whether it was said in another way: in parts, or as a part of one word, whose last e its stem may not have."""
    return any(term == "".join(way) or (len(way) == 1 and term.removesuffix("e") in way[0]) for way in said)


def completed(typed: Sequence[MessageMatch], inquiry: Inquiry) -> Inquiry:
    """What was found as typed first, then what else the inquiry found. On LoCoMo's questions cut down to three words:
    hit@5 79.9 -> 81.1, message recall@10 60.5 -> 63.1, hit@1 the same."""
    found = {match.message_id: match for match in inquiry.matches}
    raised = 1 + max((match.score for match in inquiry.matches), default=0.0)
    first = [match._replace(score=raised + max(0.0, match.score)) for match in typed]
    known = {match.message_id for match in typed}
    lifted = 1 + max(inquiry.scores.values(), default=0.0)
    roots = dict.fromkeys(match.root_id for match in typed)
    scores = {root: lifted + len(roots) - place for place, root in enumerate(roots)}
    return inquiry._replace(
        matches=[*first, *(match for message_id, match in found.items() if message_id not in known)],
        scores={**scores, **{root: score for root, score in inquiry.scores.items() if root not in scores}},
        is_weak=False,
    )


def _shares(terms: Sequence[str], mended: Mapping[str, Mended], others: Sequence[tuple[str, ...]]) -> dict[str, float]:
    """What is asked for in the end, in the order typed, and how much each term counts."""
    shares: dict[str, float] = {}
    for term in terms:
        shares.setdefault(term, SINGLE if len(term) == 1 and is_unspaced(term) and len(terms) > 1 else 1.0)
        for taken, share in mended.get(term, {}).items():
            for one in taken:
                shares.setdefault(one, share)
    for way in others:
        # A telephone number in one counts for all of its groups, as any word for its parts.
        replaced = sum(_is_within(term, [way]) for term in terms if len(term) > 1 or term.isdecimal())
        for term in way:
            shares.setdefault(term, OTHER * (max(1, replaced) if len(way) == 1 else 1))
    return shares


def _favoured(
    connection: sqlite3.Connection, scores: Mapping[int, float], matches: list[MessageMatch], mentioned: Period
) -> tuple[dict[int, float], list[MessageMatch]]:
    """The same with more weight for what is of the time mentioned. A filter would hide the answer from all who
    misremember the month."""
    start, end = mentioned
    rows = connection.execute(
        """
        SELECT messages.id FROM json_each(:ids) CROSS JOIN messages ON messages.id = json_each.value
        WHERE messages.created_at >= :start AND (:end IS NULL OR messages.created_at < :end)
        """,
        {
            "ids": json.dumps([match.message_id for match in matches]),
            "start": timestamp(start),
            "end": None if end is None else timestamp(end),
        },
    )
    inside = {row[0] for row in rows}
    best: dict[int, int] = {}
    for match in matches:
        best.setdefault(match.root_id, match.message_id)
    lifted = {root: score * (1 + PERIOD_BONUS * (best.get(root) in inside)) for root, score in scores.items()}
    raised = [
        match._replace(score=match.score * (1 + PERIOD_BONUS)) if match.message_id in inside else match
        for match in matches
    ]
    ordered = dict(sorted(lifted.items(), key=lambda pair: -pair[1]))
    return ordered, sorted(raised, key=lambda match: (-match.score, match.message_id))


def _as_written(
    connection: sqlite3.Connection, text: str, mended: Mapping[str, Mended], matches: list[MessageMatch]
) -> dict[str, str]:
    """The misspelt words as typed, and those taken for them as somebody wrote them in the best messages; of several
    that which stands there first."""
    typed = {term: word for word in _spaced(text) for term in terms_of(word)}
    rows = connection.execute(
        "SELECT messages.text FROM json_each(:ids) CROSS JOIN messages ON messages.id = json_each.value",
        {"ids": json.dumps([match.message_id for match in matches[:LOOKED_AT]])},
    )
    wanted = {term for known in mended.values() for taken in known for term in taken}
    written: dict[str, str] = {}
    for row in rows:
        for word in _spaced(row[0]):
            for term in wanted.intersection(terms_of(word)):
                written.setdefault(term, word)
    chosen = {
        term: min(
            known, key=lambda taken: min((list(written).index(one) for one in taken if one in written), default=99)
        )
        for term, known in mended.items()
    }
    return {typed.get(term, term): " ".join(written.get(one, one) for one in taken) for term, taken in chosen.items()}


def _spaced(text: str) -> list[str]:
    """Its words, without what stands beside them in a script without spaces."""
    return [word for kind, part in pieces(clean(text)) if kind == "words" for word in words_of(part)]
