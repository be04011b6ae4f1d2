"""Answers what is not found as typed, and every plain question: any of the words, best first, with the misspelt mended.

Candidates and their order come from `questions.py`; here a time that is mentioned lends weight, and what is found is
judged.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from core.folding import words_of
from core.period import Period
from core.query import clean
from core.ranking import weights
from core.remarks import JUDGED_CHUNKS, WEAK_BELOW
from core.search import Query
from core.store import chunks
from core.store.match import Match
from core.store.questions import ask
from core.store.rows import timestamp
from core.store.spelling import nearest
from core.terms import query_terms, terms_of

PERIOD_BONUS = 0.2
"""A session whose best message is of the time that the question mentions, and each message of it."""
LOOKED_AT = 5
"""In so many of the best messages a mended word is looked up as it was written."""


class Inquiry(NamedTuple):
    """Scores of lineages and messages, both best first; `text` is what was asked for in the end; `respelled` says what
    was taken for which word; `is_weak`: the best session matches too little to be trusted."""

    scores: Mapping[int, float]
    matches: list[Match]
    text: str
    respelled: Mapping[str, str]
    is_weak: bool


def inquire(connection: sqlite3.Connection, query: Query, mentioned: Period | None = None) -> Inquiry:
    """The best sessions and messages for any of the words. `mentioned` is the time that the text speaks of."""
    counted = chunks.frequencies(connection, query_terms(query.text), query)
    known = nearest(connection, query, *counted)
    asked = replace(query, text=" ".join([*known.values(), query.text]))
    # Besides the mended words, a very long text may be cut elsewhere now and end in the half of another.
    if more := [term for term in query_terms(asked.text) if term not in counted.frequencies]:
        counted.frequencies.update(chunks.frequencies(connection, more, query).frequencies)
    scores, matches = ask(connection, asked, counted)
    if mentioned is not None and matches:
        scores, matches = _favoured(connection, scores, matches, mentioned)
    said = {term: number for term, number in counted.frequencies.items() if term not in known}
    total = sum(weights(said, counted.chunks).values())
    best = next(iter(scores.values()), 0.0)
    return Inquiry(
        scores=scores,
        matches=matches,
        text=asked.text,
        respelled=_as_written(connection, query.text, known, matches) if known else {},
        is_weak=bool(scores) and counted.chunks >= JUDGED_CHUNKS and best < WEAK_BELOW * total,
    )


def _favoured(
    connection: sqlite3.Connection, scores: Mapping[int, float], matches: list[Match], mentioned: Period
) -> tuple[dict[int, float], list[Match]]:
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
    connection: sqlite3.Connection, text: str, known: Mapping[str, str], matches: list[Match]
) -> dict[str, str]:
    """The misspelt words as typed, and those taken for them as somebody wrote them in the best messages."""
    typed = {term: word for word in words_of(clean(text)) for term in terms_of(word)}
    rows = connection.execute(
        "SELECT messages.text FROM json_each(:ids) CROSS JOIN messages ON messages.id = json_each.value",
        {"ids": json.dumps([match.message_id for match in matches[:LOOKED_AT]])},
    )
    wanted = set(known.values())
    written: dict[str, str] = {}
    for row in rows:
        for word in words_of(clean(row[0])):
            for term in wanted.intersection(terms_of(word)):
                written.setdefault(term, word)
    return {typed.get(term, term): written.get(taken, taken) for term, taken in known.items()}
