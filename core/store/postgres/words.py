"""Write the words of messages and the terms of chunks as `tsvector`, and queries as `tsquery`.

Python analyses the texts for both engines in the same way, and the server only compares the
resulting terms. Each term starts with the id of its scope (see `scoped_term`), so a search reads
only entries of its own scopes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from core.store.query import Clause, Phrase, SearchPlan
from core.store.rows import scoped_term
from core.text.normalize import WORD_PATTERN, comparison_form, indexed_words

MAX_TERM_CHARS = 200
"""Longer terms are cut. PostgreSQL allows 2 KB."""
MAX_VECTOR_BYTES = 900_000
"""The size limit of a vector in bytes. Further terms are dropped. PostgreSQL allows 1 MB."""
MAX_POSITION = 16_383
FIELD_GAP = 16
"""The distance between the words of the text and those of tool calls, so no phrase spans both."""
MESSAGE_COUNTS = (2, 4)
"""A word that occurs at least this often in a message is also indexed with a mark."""
CHUNK_COUNTS = (2, 3, 4, 6, 8)
"""The same for the terms of a chunk.

With only 2 and 4, hit@1 on LoCoMo was 0.3 points lower than with the exact counts of SQLite.
Without 8, the recall of messages on BEAM, whose messages are long, differed by 0.6 points. With
these, all figures are within 0.4 points.
"""
TOOLS_MARK = "+0"
"""The mark after a word that occurs only in tool calls."""


class Vector(NamedTuple):
    """The indexed terms of a message or a chunk, as PostgreSQL stores them."""

    # The text that is cast to `tsvector`.
    literal: str
    # The number of terms.
    length: int


# --- Indexed text ---


def words_of(text: str | None) -> list[str]:
    """Return the words of a text in their indexed form: in lower case, without accents."""
    return [
        word[:MAX_TERM_CHARS] for word in WORD_PATTERN.findall(comparison_form(indexed_words(text)))
    ]


def message_vector(scope_id: int, text: str, tools: str | None) -> Vector:
    """Return the words of a message with their positions, as a vector."""
    words = words_of(text)
    tool_words = words_of(tools)
    positions: dict[str, list[int]] = {}
    first_tool_position = len(words) + FIELD_GAP
    for position, word in chain(enumerate(words, 1), enumerate(tool_words, first_tool_position)):
        positions.setdefault(word, []).append(min(position, MAX_POSITION))
    counts = Counter(words)
    marks = {
        word: _marks_of(counts[word], MESSAGE_COUNTS) if counts[word] else [TOOLS_MARK]
        for word in positions
    }
    return Vector(_write_vector(scope_id, positions, marks), len(words) + len(tool_words))


def term_vector(scope_id: int, terms: Sequence[str]) -> Vector:
    """Return the terms of a chunk as a vector without positions. A term may occur several times."""
    counts = Counter(term[:MAX_TERM_CHARS] for term in terms)
    marks = {term: _marks_of(count, CHUNK_COUNTS) for term, count in counts.items()}
    return Vector(_write_vector(scope_id, dict.fromkeys(counts, ()), marks), len(terms))


def mark_of(count: int) -> str:
    """Return the mark after a term that occurs at least `count` times."""
    return f"+{count}"


def _marks_of(count: int, marked_counts: Sequence[int]) -> list[str]:
    """Return the marks for a term that occurs `count` times. Each is appended to the term."""
    return [mark_of(marked) for marked in marked_counts if marked <= count]


def _write_vector(
    scope_id: int, positions: Mapping[str, Sequence[int]], marks: Mapping[str, Sequence[str]]
) -> str:
    """Write a vector such as ``'7xferry':1,4 '7xferry+2'``."""
    parts: list[str] = []
    size_bytes = 0
    for term, places in positions.items():
        scoped = scoped_term(scope_id, term)
        term_bytes = len(scoped.encode()) + 4
        size_bytes += term_bytes * (1 + len(marks[term])) + 2 * len(places)
        if size_bytes > MAX_VECTOR_BYTES:
            break
        quoted = quote_term(scoped)
        parts.append(f"{quoted}:{','.join(map(str, places))}" if places else quoted)
        parts += [quote_term(scoped + mark) for mark in marks[term]]
    return " ".join(parts)


def quote_term(term: str) -> str:
    """Quote a term for use in a `tsvector` or `tsquery`."""
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


# --- Queries ---


def scoped_query(plan: SearchPlan, scope_ids: Iterable[int]) -> str:
    """Return a plan as a `tsquery` for the messages of these scopes, or "" if it has no words."""
    queries = []
    for scope_id in scope_ids:
        for clauses in plan.alternatives:
            query = _write_alternative(scope_id, clauses)
            if query:
                queries.append(f"({query})")
    return " | ".join(queries)


def _write_alternative(scope_id: int, clauses: Sequence[Clause]) -> str:
    """Return the query for the clauses of one alternative, or "" if a phrase has no words."""
    required: list[str] = []
    excluded: list[str] = []
    for clause in clauses:
        phrases = [_write_phrase(scope_id, phrase) for phrase in clause.phrases]
        if not clause.is_excluded:
            required += phrases
        elif phrases and all(phrases):
            excluded.append(f"!({' & '.join(phrases)})")
    if not required or not all(required):
        return ""
    return " & ".join([*required, *excluded])


def _write_phrase(scope_id: int, phrase: Phrase) -> str:
    """Return the query for any spelling of a phrase, e.g. ``('7xice' <-> '7xcream':*)``."""
    texts = []
    for text in phrase.texts:
        words = [quote_term(scoped_term(scope_id, word)) for word in query_words(text)]
        if words:
            texts.append(f"({' <-> '.join(words)}{':*' if phrase.is_prefix else ''})")
    return f"({' | '.join(texts)})" if texts else ""


def query_words(text: str) -> list[str]:
    """Return the words of a query's text, split as the index splits texts."""
    return [word[:MAX_TERM_CHARS] for word in WORD_PATTERN.findall(comparison_form(text))]


class PhraseQuery(NamedTuple):
    """The query for one phrase of a plan, in the messages of some scopes."""

    # A `tsquery`.
    query: str
    # The terms of a one-word phrase, one per scope. Only single words are indexed with marks.
    words: tuple[str, ...] = ()

    def with_mark(self, mark: str) -> str:
        """Return the `tsquery` for messages that contain the word with this mark."""
        return " | ".join(quote_term(word + mark) for word in self.words)


def phrase_queries(clauses: Iterable[Clause], scope_ids: Sequence[int]) -> Counter[PhraseQuery]:
    """Return a query for each spelling of the clauses' phrases, and how many phrases share it."""
    queries: Counter[PhraseQuery] = Counter()
    for clause in clauses:
        if clause.is_excluded:
            continue
        for phrase in clause.phrases:
            for text in phrase.texts:
                spelling = phrase._replace(texts=(text,))
                scope_queries = [_write_phrase(scope_id, spelling) for scope_id in scope_ids]
                query = " | ".join(filter(None, scope_queries))
                if query:
                    words = () if phrase.is_prefix else _scoped_word(text, scope_ids)
                    queries[PhraseQuery(query, words)] += 1
    return queries


def _scoped_word(text: str, scope_ids: Sequence[int]) -> tuple[str, ...]:
    """Return the term of a text in each scope, or an empty tuple if the text has several words."""
    words = query_words(text)
    if len(words) != 1:
        return ()
    return tuple(scoped_term(scope_id, words[0]) for scope_id in scope_ids)


def split_scope(term: str) -> int:
    """Return the id of the scope in a term's prefix."""
    return int(term.partition("x")[0])
