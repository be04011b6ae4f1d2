"""Recall with the help of a cheap model, where it is asked for: more searches for one question, summaries of what they
find.

Fills the role `Recall` over another one, which does all the finding. Without a model, or where it fails, the answer is
that one's, and the note says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from core.ports import Clock, Model, Recall, Transcripts
from core.search import filters, remarks
from core.search.expansion import Expansion
from core.search.fusion import fused
from core.search.query import parse
from core.search.rendering import within
from core.search.summaries import Summaries
from core.store.search_types import Findings, Found, Query

DEPTH = 10
"""So many sessions of each search are fused; then the next so many, for pages further on."""
PAGES = 10
MATCHES = 5
QUESTION_SHARE = 0.5
QUESTION_WEIGHT = 1.5
"""The question as typed counts half as much as all searches together that a model made of it, and more than one. With
searches written by hand for 72 LoCoMo questions (dev), that finds 16 more of 36 that had nothing right among the first
five sessions (equal weight 17, thrice the weight 13), and loses none of the 36 others (equal weight one)."""
NOT_EXPANDED = "The question could not be expanded; it was searched as it stands."
NO_MODEL = (
    "Expanding a question needs a model: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own. It was "
    "searched as it stands."
)


class Research:
    """`model` None: there is none; `name` is that of the cheap one. `zone` is the IANA name of the zone in which typed
    dates are meant."""

    def __init__(
        self, recall: Recall, transcripts: Transcripts, model: Model | None, name: str, clock: Clock, zone: str = "UTC"
    ) -> None:
        self._recall = recall
        self._clock = clock
        self._zone = ZoneInfo(zone)
        self._expansion = None if model is None else Expansion(model, name, clock, self._zone)
        self._summaries = Summaries(transcripts, model, name, self._zone)

    async def recall(self, query: Query) -> Findings:
        """The findings of a query; expanded and summarised only where it says so. Filters in its text hold for every
        search that is made of it."""
        if not (query.is_expanded or query.is_summarized):
            return await self._recall.recall(query)
        started = time.perf_counter()
        asked = filters.read(query, self._clock.now(), self._zone)
        # The filters are taken out: what is left must not be read as filters once more.
        is_prose = not parse(asked.query.text).without  # of prose nothing is left out
        plain = replace(asked.query, is_prose=is_prose, is_expanded=False, is_summarized=False)
        if query.is_expanded and plain.text.strip() and plain.around is None:
            findings = await self._expanded(plain)
        else:
            findings = await self._recall.recall(plain)
        if query.is_summarized:
            findings = await self._summaries.added(findings, plain)
        took_ms = round((time.perf_counter() - started) * 1000, 3)
        note = remarks.joined([*asked.notes, findings.note])
        return replace(findings, query=query.text, note=note, took_ms=took_ms)

    async def tend(self) -> bool:
        """See `core.ports.Recall`."""
        return await self._recall.tend()

    async def _expanded(self, query: Query) -> Findings:
        """What the question and the searches made of it find, as one list."""
        searches = None if self._expansion is None else await self._expansion.searches(query.text, query.payer)
        if not searches:
            findings = await self._recall.recall(query)
            note = NO_MODEL if self._expansion is None else NOT_EXPANDED if searches is None else None
            return replace(findings, note=remarks.joined([findings.note, note]))
        findings = _merged(await self._helpings((query.text, *searches), query), query)
        if query.budget_chars is not None:
            findings = within(findings, query.budget_chars)
        listed = ", ".join(f"“{search}”" for search in searches)
        return replace(findings, note=remarks.joined([findings.note, f"I also searched for {listed}."]))

    async def _helpings(self, texts: Sequence[str], query: Query) -> list[list[Findings]]:
        """What each of the texts finds, ten sessions at a time, until the page that is asked for can be filled. No
        further helping changes the order of one before it, so that pages fit together."""
        wide = replace(query, limit=DEPTH, budget_chars=None)
        helpings: list[list[Findings]] = []
        known: set[int] = set()
        for page in range(1, PAGES + 1):
            part = replace(wide, page=page, messages=wide.messages if page == 1 else 0)
            helpings.append([await self._recall.recall(replace(part, text=text)) for text in texts])
            known |= _lineages(helpings[-1]).keys()
            if len(known) > _part(query)[1] or not any(one.has_more for one in helpings[-1]):
                break
        return helpings


def _merged(helpings: Sequence[Sequence[Findings]], query: Query) -> Findings:
    """Sessions (a lineage is one) and messages of all results, the first of each helping being the question's, by
    reciprocal rank; each session as the result that has it highest shows it, with the best matches of all."""
    question = helpings[0][0]
    messages = fused([(weight, [hit.message_id for hit in one.messages]) for weight, one in _weighted(helpings[0])])
    hits = {hit.message_id: hit for one in reversed(helpings[0]) for hit in one.messages}
    lineages: dict[int, Found] = {}
    for results in helpings:
        lowest = min((found.score for found in lineages.values()), default=math.inf)
        for root, score in _lineages(results).items():
            if root not in lineages:
                lineages[root] = replace(_shown(results, root), score=min(score, lowest))
    start, stop = _part(query)
    return Findings(
        query=query.text,
        shape=question.shape,
        sessions=tuple(lineages.values())[start:stop],
        messages=tuple(replace(hits[id_], rank=score) for id_, score in messages.items())[: max(0, query.messages)],
        note=_note(question, len(lineages), start, query.page),
        has_more=len(lineages) > stop and query.page < PAGES,
    )


def _part(query: Query) -> tuple[int, int]:
    """Which of the sessions, best first, are shown: none behind the last page."""
    limit = max(1, min(query.limit, DEPTH))
    start = limit * max(0, min(query.page - 1, PAGES))
    return start, start + limit if query.page <= PAGES else start


def _lineages(results: Sequence[Findings]) -> dict[int, float]:
    return fused([(weight, [_root(found) for found in one.sessions]) for weight, one in _weighted(results)])


def _weighted(results: Sequence[Findings]) -> list[tuple[float, Findings]]:
    weights = [max(QUESTION_WEIGHT, QUESTION_SHARE * (len(results) - 1)), *(1.0 for _ in results[1:])]
    return list(zip(weights, results, strict=True))


def _note(question: Findings, total: int, start: int, page: int) -> str | None:
    """What was said of a question that found nothing is not said of what the other searches found."""
    if total and start >= total:
        return f"There is nothing more on page {page}."
    return question.note if question.sessions or not total else None


def _shown(results: Sequence[Findings], root: int) -> Found:
    ranked = sorted(
        ((rank, found) for one in results for rank, found in enumerate(one.sessions) if _root(found) == root),
        key=lambda pair: pair[0],
    )
    matches = {hit.message_id: hit for _, found in reversed(ranked) for hit in found.matches}
    best = ranked[0][1]
    ordered = dict.fromkeys([*(hit.message_id for hit in best.matches), *(h for _, f in ranked for h in _ids(f))])
    return replace(best, matches=tuple(matches[id_] for id_ in ordered)[:MATCHES])


def _ids(found: Found) -> list[int]:
    return [hit.message_id for hit in found.matches]


def _root(found: Found) -> int:
    return found.session.root_id or found.session.id
