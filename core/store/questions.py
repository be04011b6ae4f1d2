"""Answers a question as it stands, without operators: the best chunks, then their messages ranked one by one.

The recipe measured in the README ("Recall"): candidates from `chunks.py`, order from `ranking.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from core.ranking import rank, weights
from core.store import chunks
from core.store.match import Match
from core.terms import asks_when, moment_terms, query_terms
from core.types import Query
from core.utterance import Utterance

COMMON_SHARE = 0.25
MANY_CHUNKS = 2_000


def ask(connection: sqlite3.Connection, query: Query) -> tuple[dict[int, float], list[Match]]:
    """Scores of the best lineages, best first, and their messages, best first. Empty where the text has no terms but
    stopwords, or no message a person may see has any of them."""
    terms = query_terms(query.text)
    if not terms:
        return {}, []
    scopes, frequencies, count = chunks.frequencies(connection, terms, query)
    lineages = chunks.candidates(connection, telling(frequencies, count), scopes, query)
    until = chunks.until(connection)
    for found in _fresh_stretches((one for group in lineages.values() for one in group), until):
        count += 1
        for term in frequencies:
            frequencies[term] += term in found
    moments = moment_terms() if asks_when(query.text) else frozenset[str]()
    scores, scored = rank(weights(frequencies, count), lineages, moments)
    roots = {one.message_id: root for root, group in lineages.items() for one in group}
    return scores, [Match(one.message_id, one.session_id, roots[one.message_id], score) for score, one in scored]


def telling(frequencies: Mapping[str, int], count: int) -> list[str]:
    """The terms by which chunks are chosen. In a large store, one that stands in a quarter of them and more tells
    little apart, but is what costs: all of them would be ranked (halves the time at 200,000 messages; in a small store
    it costs up to a point at hit@5, so there all terms choose). They always count when messages are ranked."""
    if count < MANY_CHUNKS:
        return list(frequencies)
    rare = [term for term, number in frequencies.items() if number < COMMON_SHARE * count]
    return rare if any(frequencies[term] for term in rare) else list(frequencies)


def _fresh_stretches(utterances: Iterable[Utterance], until: int) -> Iterable[set[str]]:
    """The terms of what is in no chunk yet, one set for each session: the index has not counted them."""
    fresh: dict[int, set[str]] = {}
    for one in utterances:
        if one.message_id > until:
            fresh.setdefault(one.session_id, set()).update(one.terms, one.name, one.day)
    return fresh.values()
