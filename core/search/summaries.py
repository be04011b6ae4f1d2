"""Recall with summaries by a cheap model. Where it fails, a note says why beside the plain result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

import structlog

from core.dates.when import wall_time
from core.errors import ModelError, StoreError
from core.guard.fence import fence, neutralise, scrub
from core.models.fallback import TOO_LONG
from core.ports import Clock, Model
from core.search import filters
from core.search.recall import Recall
from core.search.results import CUT, SESSIONS_MAX, joined, within
from core.store.query import FoundSession, SearchQuery, SearchResults
from core.store.sessions import Transcripts
from core.text.normalize import language_data
from core.types import Message, Request

NO_MODEL = "Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own: this needs a model."
QUESTION_CHARS = 2_000
CALLS_AT_ONCE = 3
SUMMARIES_S = 90.0
TRANSCRIPT_CHARS = 100_000
SUMMARY_CHARS = (400, 2_000)
"""The shortest and the longest that is asked for; between them, what two thirds of the caller's budget allow."""
SUMMARY_TOKENS = 2_000
EARLIER, LATER = "[… earlier messages left out]\n", "\n[… later messages left out]"


class SummarizedRecall:
    """Recall whose results may be summarised; `name` is the cheap model, None for `model`: there is none."""

    summaries_s = SUMMARIES_S

    def __init__(
        self, recall: Recall, transcripts: Transcripts, model: Model | None, name: str, clock: Clock, zone: str = "UTC"
    ) -> None:
        self._recall = recall
        self._transcripts = transcripts
        self._model = model
        self._name = name
        self._clock = clock
        self._zone = ZoneInfo(zone)
        self._calls = asyncio.Semaphore(CALLS_AT_ONCE)
        self._log = structlog.get_logger("summaries")

    async def recall(self, query: SearchQuery) -> SearchResults:
        """Summarises only where the query says so."""
        if not query.is_summarized:
            return await self._recall.recall(query)
        started = time.perf_counter()
        asked = filters.read(query, self._clock.now(), self._zone)
        # The filters are taken out: what is left must not be read as filters once more.
        plain = replace(asked.query, is_prose=True, is_summarized=False, budget_chars=None)
        found = await self._recall.recall(plain)
        if found.sessions:
            found = await self._summarized(found, plain, query.budget_chars)
        if query.budget_chars is not None:
            spent_chars = sum(len(one.summary or "") for one in found.sessions)
            found = within(found, max(query.budget_chars // 6, query.budget_chars - spent_chars))
        took_ms = round((time.perf_counter() - started) * 1000, 3)
        return replace(found, query=query.text, note=joined([*asked.notes, found.note]), took_ms=took_ms)

    async def _summarized(self, results: SearchResults, query: SearchQuery, budget_chars: int | None) -> SearchResults:
        """The results with summaries, made three at once; a note says why one is missing."""
        made: dict[int, str] = {}
        problems: list[str] = []
        shortest, length_chars = SUMMARY_CHARS
        if budget_chars is not None:
            length_chars = max(shortest, min(budget_chars * 2 // 3 // len(results.sessions), length_chars))

        async def make(found: FoundSession) -> None:
            try:
                made[found.session.id] = await self._summary(found, query, length_chars)
            except (ModelError, StoreError) as error:
                is_too_long = isinstance(error, ModelError) and error.status == TOO_LONG
                problems.append("It is too long for the model." if is_too_long else str(error))

        try:
            async with asyncio.timeout(self.summaries_s), asyncio.TaskGroup() as group:
                for found in results.sessions[:SESSIONS_MAX]:
                    group.create_task(make(found))
        except TimeoutError:
            problems.append(f"The model took longer than {self.summaries_s:g} s.")
        sessions = tuple(replace(found, summary=made.get(found.session.id)) for found in results.sessions)
        if problems:
            missing, all_ = len(sessions) - len(made), len(sessions)
            whole = f"{missing} of {all_} conversations have no summary" if made else "No summary could be made"
            note = joined([results.note, f"{whole}: {joined(problems)}"])
            results = replace(results, note=note)
        return replace(results, sessions=sessions)

    async def _summary(self, found: FoundSession, query: SearchQuery, length_chars: int) -> str:
        """Raises ModelError, StoreError."""
        if self._model is None:
            raise ModelError(NO_MODEL)
        async with self._calls:
            # Not before its turn: at most three conversations are in memory.
            text = self._transcript(found, await self._messages(found, query))
            parts = (fence(text), _wish(query.text, length_chars))
            request = Request(
                system=({"type": "text", "text": language_data("prompts", "core.search")["summary"]},),
                messages=({"role": "user", "content": [{"type": "text", "text": part} for part in parts]},),
                model=self._name,
                max_tokens=SUMMARY_TOKENS,
                kind="summary",
                payer=query.payer,
            )
            completion = await self._model.complete(request, lambda _: None, lambda _: None)
        self._log.info("the model has helped", tokens=completion.usage.sent + completion.usage.output)
        summary = scrub(completion.text).strip()
        if not summary or completion.stop_reason == "refusal":
            raise ModelError("The model gave no summary.")
        # Models cannot count characters: a quarter more is let pass.
        kept = summary[: length_chars * 5 // 4]
        is_cut = kept != summary or completion.stop_reason == "max_tokens"
        return f"{kept.rpartition(' ')[0] or kept} {CUT}" if is_cut else summary

    async def _messages(self, found: FoundSession, query: SearchQuery) -> list[Message]:
        """What people may see of the session and of its lineage's matches, outside the model's window."""
        spans = query.hidden.spans if query.hidden else ()
        ids = dict.fromkeys([found.session.id, *(hit.session_id for hit in found.matches)])
        rows = [row for id_ in ids for row in await self._transcripts.transcript(id_, query.scopes)]
        return sorted(
            (
                row
                for row in rows
                if row.kind == "chat"
                and row.role != "tool"
                and not any(id_ == row.session_id and first <= row.id <= last for id_, first, last in spans)
            ),
            key=lambda row: row.id,
        )

    def _transcript(self, found: FoundSession, messages: Sequence[Message]) -> str:
        matched = {hit.message_id for hit in found.matches}
        matched |= {item.message_id for item in found.window if item.is_anchor}
        lines = []
        for row in messages:
            who = " ".join(row.sender.name.split()) if row.sender else "Person"
            at = row.created_at.astimezone(self._zone)
            head = f"({wall_time(at)}) {'Assistant' if row.role == 'assistant' else who}: "
            lines.append(head + row.text)
        places = [number for number, row in enumerate(messages) if row.id in matched]
        title = f"Title: {' '.join(found.session.title.split())}\n\n" if found.session.title else ""
        return title + part_around(lines, places, TRANSCRIPT_CHARS - len(title))


def part_around(lines: Sequence[str], matched: Sequence[int], limit_chars: int) -> str:
    """The lines, or about `limit_chars` of them, a quarter of it before the first of the `matched`; marks show cuts."""
    whole = "\n".join(lines)
    if len(whole) <= limit_chars:
        return whole
    place = sum(len(line) + 1 for line in lines[: matched[0] if matched else 0])
    start = max(0, min(place - limit_chars // 4, len(whole) - limit_chars))
    end = start + limit_chars
    return (EARLIER if start > 0 else "") + whole[start:end] + (LATER if end < len(whole) else "")


def _wish(asked: str, length_chars: int) -> str:
    asked = neutralise(" ".join(asked[:QUESTION_CHARS].split()))
    wish = f"What they look for: {asked}" if asked else "They look for nothing in particular: tell what it was about."
    return f"{wish}\n\nSummarise the conversation above, in at most {length_chars:,} characters."
