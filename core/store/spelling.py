"""For a word that was never said, the nearest one that was: "Lisbno" finds Lisbon.

Looks into the vocabulary of the chunk index, whose terms carry the number of their scope: no word of another scope can
come up. Each look is a short stretch of that vocabulary (1 to 5 ms), and only a word without any match costs one.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from core.likeness import slips
from core.search import Query
from core.store import chunks
from core.store.chunk_terms import SHOWN, scoped
from core.store.sight import scope_parameter, visible
from core.terms import query_terms, terms_of

WORDS_TRIED = 2
SCOPES_TRIED = 8
SHORTEST, LONG = 4, 7
"""Letters of the shortest word with one slip, and of the shortest with two; one letter in three tells too little."""
FEW_CHUNKS = 600
"""In a larger store only words with the same two first letters are compared, or with the first and the third: all with
the first are thousands."""
ROWS = 4_000


def nearest(
    connection: sqlite3.Connection, query: Query, scopes: Sequence[int], frequencies: Mapping[str, int], count: int
) -> dict[str, str]:
    """For each term that stands nowhere in the scopes the nearest that does, where one is near. `frequencies`, of the
    terms, and `count` are what `chunks.frequencies` gives."""
    unknown = [term for term, number in frequencies.items() if not number and term.isalpha() and len(term) >= SHORTEST]
    fresh = _fresh(connection, query) if unknown else {}
    found: dict[str, str] = {}
    for term in [term for term in unknown if term not in fresh][:WORDS_TRIED]:
        most = 2 if len(term) >= LONG else 1
        candidates = [
            (distance, -number, candidate)
            for candidate, number in chain(
                fresh.items(), _beginning(connection, term, scopes[:SCOPES_TRIED], count <= FEW_CHUNKS)
            )
            if candidate[0] == term[0] and (distance := slips(term, candidate, most)) <= most
        ]
        # What is found has to be a term as it stands, or asking for it would ask for another.
        if candidates and query_terms(best := min(candidates)[2]) == [best]:
            found[term] = best
    return found


def _fresh(connection: sqlite3.Connection, query: Query) -> dict[str, int]:
    """The terms of what is in no chunk yet, and how often each was said."""
    rows = connection.execute(
        f"""
        SELECT messages.text FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
        WHERE messages.id > :until AND {SHOWN} AND {visible("sessions.scope_id")}
        ORDER BY messages.id DESC LIMIT {chunks.TAIL_MESSAGES}
        """,
        {"until": chunks.until(connection), "scopes": scope_parameter(query.scopes)},
    )
    return Counter(term for row in rows for term in terms_of(row[0]))


def _beginning(
    connection: sqlite3.Connection, term: str, scopes: Sequence[int], is_small: bool
) -> Iterator[tuple[str, int]]:
    """Terms of the scopes that begin alike, and in how many chunks each stands."""
    starts = [term[0]] if is_small else list(dict.fromkeys([term[:2], term[0] + term[2]]))
    for scope in scopes:
        beginning = len(scoped(scope, ""))
        for start in starts:
            low = scoped(scope, start)
            rows = connection.execute(
                "SELECT term, doc FROM chunk_vocabulary WHERE term >= :low AND term < :high LIMIT :rows",
                {"low": low, "high": low[:-1] + chr(ord(low[-1]) + 1), "rows": ROWS},
            )
            yield from ((row[0][beginning:], row[1]) for row in rows)
