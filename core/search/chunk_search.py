"""Answers a question as it stands, without operators: the best chunks, then their messages ranked one by one.

The recipe measured in the README ("Recall"): candidates from `chunks.py`, order from `ranking.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from core.search.counted import Counted
from core.search.ranking import rank, weights
from core.search.utterance import Utterance
from core.store.match import Match
from core.store.search_types import Query
from core.store.sqlite import chunk_index
from core.text.terms import asks_when, moment_terms

COMMON_SHARE = 0.25


def ask(
    connection: sqlite3.Connection, query: Query, counted: Counted, shares: Mapping[str, float], helping: int = 0
) -> tuple[dict[int, float], list[Match]]:
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
    return scores, [Match(one.message_id, one.session_id, roots[one.message_id], score) for score, one in scored]


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


def _fresh_stretches(utterances: Iterable[Utterance], until: int) -> Iterable[set[str]]:
    """The terms of what is in no chunk yet, one set for each session: the index has not counted them."""
    fresh: dict[int, set[str]] = {}
    for one in utterances:
        if one.message_id > until:
            fresh.setdefault(one.session_id, set()).update(one.terms, one.name, one.day)
    return fresh.values()
