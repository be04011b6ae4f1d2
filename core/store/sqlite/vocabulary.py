"""For a word that was never said, the nearest that were: "Lisbno" finds Lisbon, "icecream" ice cream, and the first
seven signs of a commit the whole.

Looks into the vocabulary of the chunk index, whose terms carry the number of their scope: no word of another scope can
come up. First all that is one slip of the finger away is looked up, some hundred terms at once (3 to 5 ms); where none
of it was said, a stretch of the vocabulary is compared. Only a word without any match costs that.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise

from core.store.query import SearchQuery, TermCounts
from core.store.rows import scope_parameter, visible
from core.store.sqlite import chunk_index
from core.store.sqlite.text_index import SHOWN, day_of, scoped
from core.text.normalize import words_of
from core.text.spelling import meant, slips
from core.text.terms import clean, name_terms, query_terms, stop_words, terms_of

Mended = dict[tuple[str, ...], float]
"""What is taken for a word, as terms that belong together, and how much each counts; the best first."""

WORDS_TRIED = 3
SCOPES_TRIED = 8
SHORTEST, LONG, LONGEST = 4, 7, 24
"""Letters of the shortest word said that another is taken for, of the shortest typed with two slips, and of the longest
that is looked at; one letter in three tells too little."""
TAKEN = 3
"""So many of the likely ones are asked for: the other words of the question decide between them."""
UNLIKELY = 0.2
"""As a share of the most likely; less is not asked for."""
FAR = 0.6
"""How much a word counts that is not one slip of the finger away."""
SHORTEST_PART = 3
SHORTEST_BEGINNING = 6
"""Signs of an identifier or a number of which the rest is left out."""
FEW_CHUNKS = 600
"""In a larger store only words with the same two first letters are compared, or with the first and the third: all with
the first are thousands."""
ROWS = 4_000


def nearest(
    connection: sqlite3.Connection, query: SearchQuery, counted: TermCounts, fresh: Mapping[str, int]
) -> dict[str, Mended]:
    """For each term that stands nowhere in the scopes what is taken for it, where something is near. `counted`: the
    terms of the query as `chunks.frequencies` counts them; `fresh`: see there."""
    typed = {term: word for word in _typed(query) for term in terms_of(word)}
    unknown = [
        term
        for term, number in counted.frequencies.items()
        if not number and term in typed and SHORTEST <= len(typed[term]) + 1 <= LONGEST
        and (term.isalpha() or len(term) >= SHORTEST_BEGINNING)
    ]  # fmt: skip
    found: dict[str, Mended] = {}
    for term in [term for term in unknown if term not in fresh][:WORDS_TRIED]:
        scopes = counted.scopes[:SCOPES_TRIED]
        if not term.isalpha():
            taken = _longer(connection, term, scopes, fresh)
        elif not (taken := _slipped(connection, typed[term], scopes, fresh)) and len(term) >= SHORTEST:
            near = chain(fresh.items(), _beginning(connection, term, scopes, counted.chunks <= FEW_CHUNKS))
            taken = _like(term, near)
        if taken:
            found[term] = taken
    return found


def fresh(connection: sqlite3.Connection, query: SearchQuery) -> dict[str, int]:
    """The terms of what is in no chunk yet, of who said it and when, and how often each was said."""
    rows = connection.execute(
        f"""
        SELECT messages.text, messages.sender_name, messages.created_at
        FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
        WHERE messages.id > :until AND {SHOWN} AND {visible("sessions.scope_id")}
        ORDER BY messages.id DESC LIMIT {chunk_index.TAIL_MESSAGES}
        """,
        {"until": chunk_index.until(connection), "scopes": scope_parameter(query.scopes)},
    )
    return Counter(
        term
        for text, name, created_at in rows
        for term in (*terms_of(text), *name_terms(name or ""), *day_of(created_at))
    )


def together(query: SearchQuery) -> list[tuple[str, ...]]:
    """Neighbouring words written as one, as terms: "ice cream" was perhaps said as icecream."""
    joined = [
        one + other
        for one, other in pairwise(_typed(query))
        if one.isalpha() and other.isalpha() and min(len(one), len(other)) >= SHORTEST_PART
        and stop_words().isdisjoint((one, other))
    ]  # fmt: skip
    return [(term,) for word in joined[:LONGEST] for term in terms_of(word)]


def _typed(query: SearchQuery) -> list[str]:
    return [word.casefold() for word in words_of(clean(query.text))]


def _slipped(connection: sqlite3.Connection, word: str, scopes: Sequence[int], fresh: Mapping[str, int]) -> Mended:
    """What was said and is one slip of the finger away, or is the word in two."""
    if not (word.isascii() and word.isalpha()):
        return {}
    likely: dict[tuple[str, ...], float] = {}
    for text, likelihood in meant(word).items():
        terms = tuple(terms_of(text)) if len(text) >= SHORTEST else ()
        if terms and likelihood > likely.get(terms, 0.0):
            likely[terms] = likelihood
    for place in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1):
        parts = tuple(terms_of(f"{word[:place]} {word[place:]}"))
        if len(parts) == 2:
            likely[parts] = 1.0
    known = _known(connection, {term for terms in likely for term in terms}, scopes, fresh)
    weighed = {
        terms: likelihood * math.log1p(min(known.get(term, 0) for term in terms))
        for terms, likelihood in likely.items()
    }
    best = sorted(weighed.items(), key=lambda pair: (-pair[1], pair[0]))[:TAKEN]
    trust = math.sqrt(likely[best[0][0]])
    return {terms: trust * weight / best[0][1] for terms, weight in best if weight > UNLIKELY * best[0][1]}


def _longer(connection: sqlite3.Connection, term: str, scopes: Sequence[int], fresh: Mapping[str, int]) -> Mended:
    """What begins with an identifier or a number that was not typed to its end."""
    found = [known for known in fresh if known.startswith(term)]
    found += [known for known, _ in _between(connection, scopes, term, TAKEN)]
    return {(known,): 1.0 for known in found[:TAKEN]}


def _like(term: str, candidates: Iterator[tuple[str, int]]) -> Mended:
    """The nearest of the candidates, where one is near."""
    most = 2 if len(term) >= LONG else 1
    near = [
        (distance, -number, candidate)
        for candidate, number in candidates
        if candidate[0] == term[0] and (distance := slips(term, candidate, most)) <= most
    ]
    # What is found has to be a term as it stands, or asking for it would ask for another.
    return {(best,): FAR} if near and query_terms(best := min(near)[2]) == [best] else {}


def _known(
    connection: sqlite3.Connection, terms: set[str], scopes: Sequence[int], fresh: Mapping[str, int]
) -> Counter[str]:
    """In how many chunks of the scopes each of the terms stands, and how often in what is in no chunk yet."""
    found = Counter({term: fresh[term] for term in terms & fresh.keys()})
    known = {scoped(scope, term): term for scope in scopes for term in terms}
    rows = connection.execute(
        "SELECT chunk_vocabulary.term, chunk_vocabulary.doc FROM json_each(:terms) "
        "CROSS JOIN chunk_vocabulary ON chunk_vocabulary.term = json_each.value",
        {"terms": json.dumps(sorted(known))},
    )
    for term, number in rows:
        found[known[term]] += number
    return found


def _beginning(
    connection: sqlite3.Connection, term: str, scopes: Sequence[int], is_small: bool
) -> Iterator[tuple[str, int]]:
    """Terms of the scopes that begin alike, and in how many chunks each stands."""
    starts = [term[0]] if is_small else list(dict.fromkeys([term[:2], term[0] + term[2]]))
    for start in starts:
        yield from _between(connection, scopes, start, ROWS)


def _between(connection: sqlite3.Connection, scopes: Sequence[int], start: str, rows: int) -> Iterator[tuple[str, int]]:
    """Of each scope so many terms that begin with `start`, and in how many chunks each stands."""
    for scope in scopes:
        beginning, low = len(scoped(scope, "")), scoped(scope, start)
        found = connection.execute(
            "SELECT term, doc FROM chunk_vocabulary WHERE term >= :low AND term < :high LIMIT :rows",
            {"low": low, "high": low[:-1] + chr(ord(low[-1]) + 1), "rows": rows},
        )
        yield from ((row[0][beginning:], row[1]) for row in found)
