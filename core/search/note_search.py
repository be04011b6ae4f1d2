"""Searches the notes of a person or group, for `/recall` and `mneme recall`.

The notes of the query's scopes are searched, as in the prompts. The model already sees them, so its
tool `session_search` leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from core.notes.notebook import FILES, Notebook
from core.search.query import plan_excluded, plan_typed, split_filters, strip_operators
from core.search.results import DAMAGED_INDEX_NOTE, Highlighter
from core.store.query import NoteHit, SearchPlan, SearchQuery, SearchResults
from core.text.terms import query_terms, terms_of

MAX_NOTES = 3
MIN_TERM_SHARE = 0.5
"""If no note has all words of a query, notes with at least this share of them are found."""
_EXACT_SIGNS = ('"', "*", " OR ")
"""A query with one of these is searched as typed, without inflected forms."""


async def add_notes(
    results: SearchResults, notebook: Notebook, query: SearchQuery
) -> SearchResults:
    """Add the notes that match a query to the results of its search for messages.

    Filters such as ``in:3`` choose messages, so a query with filters finds no notes. The same goes
    for the next pages of a query. Notes that a person called wrong are left out.
    """
    words, _ = split_filters(query.text)
    has_filters = words.split() != query.text.split()
    if results.shape != "discovery" or has_filters or query.limits.page > 1:
        return results
    hits = await _find_notes(notebook, query, words)
    if not hits:
        return results
    sentences = results.notes
    if not results.sessions and not results.files:
        # The search didn't fail, so nothing needs to be explained.
        sentences = tuple(note for note in sentences if note == DAMAGED_INDEX_NOTE)
    return replace(results, note_hits=hits, notes=sentences)


async def _find_notes(notebook: Notebook, query: SearchQuery, words: str) -> tuple[NoteHit, ...]:
    hits: list[NoteHit] = []
    for target, file in FILES.items():
        entries = await notebook.entries(query.scopes, target)
        hits += [NoteHit(entry, file) for entry in entries]
    found = set(rank_notes(words, [hit.text for hit in hits]))
    hits = [hit for hit in hits if hit.text in found]
    if not hits:
        return ()
    verdicts = await notebook.load_verdicts(query.scopes)
    wrong = {entry for (_, entry), verdict in verdicts.items() if verdict == "wrong"}
    order = rank_notes(words, [hit.text for hit in hits if hit.text not in wrong])
    by_text = {hit.text: hit for hit in hits}
    return tuple(by_text[text] for text in order[:MAX_NOTES])


def rank_notes(text: str, notes: Sequence[str]) -> list[str]:
    """Return the notes that match a typed query, best first.

    A query with a phrase, a prefix or ``OR`` is searched as typed. Otherwise, words match in any
    form. If a note has all words, notes with only some of them are left out.
    """
    excluded = Highlighter(plan_excluded(text).highlights)
    allowed = [note for note in notes if not excluded.find_spans(note)]
    if any(sign in text for sign in _EXACT_SIGNS):
        plan = plan_typed(text)
        return [note for note in allowed if _meets_plan(note, plan)]
    terms = set(query_terms(strip_operators(text)))
    if not terms:
        return []
    counts = {note: len(terms.intersection(terms_of(note))) for note in allowed}
    most = max(counts.values(), default=0)
    least = len(terms) if most == len(terms) else max(1, MIN_TERM_SHARE * len(terms))
    return sorted(
        (note for note in counts if counts[note] >= least), key=lambda note: -counts[note]
    )


def _meets_plan(note: str, plan: SearchPlan) -> bool:
    return any(
        all(_has_all(note, clause.highlights) != clause.is_excluded for clause in clauses)
        for clauses in plan.alternatives
    )


def _has_all(note: str, highlights: Iterable[str]) -> bool:
    return all(Highlighter([highlight]).find_spans(note) for highlight in highlights)
