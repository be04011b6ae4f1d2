"""Recall with the help of a cheap model: more searches for one question, what was found put in order, and summaries.
Where it fails, a note says why beside the plain result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import structlog
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from core.errors import ModelError, StoreError
from core.guard.fence import fence, neutralise, scrub
from core.models.wrappers import TOO_LONG, ask
from core.ports import Clock, Model
from core.search.query import read_filters
from core.search.ranking import RankedList
from core.search.recall import Recall
from core.search.results import CLOSE, CUT, OPEN, SESSIONS_MAX, joined, within
from core.store.query import FoundSession, Hit, SearchQuery, SearchResults
from core.store.sessions import Conversations
from core.text.normalize import language_data
from core.text.terms import marks_of, query_terms
from core.types import Completion, Message, Payer, Window

NO_MODEL = "Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own: this needs a model."
NO_WISH = "They look for nothing in particular: tell what it was about."
QUESTION_CHARS = 2_000
SEARCHES = 5
EXPANSION_TOKENS = 400
LISTED = 100
"""So many messages that a search finds are fused with what others find."""
QUESTION_SHARE = 0.5
QUESTION_WEIGHT = 1.5
"""The question as typed counts half as much as all searches together that a model made of it, and more than one. With
searches written by hand for 72 LoCoMo questions (dev), that finds 16 more of 36 that had nothing right among the first
five sessions (equal weight 17, thrice the weight 13), and loses none of the 36 others (equal weight one)."""
NOT_EXPANDED = "The question could not be expanded; it was searched as it stands."
_Search = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
_SEARCHES = TypeAdapter(Annotated[list[_Search], Field(max_length=20)])

RERANKED = 20
"""So many of the messages found are put in order."""
RERANK_TOKENS = 200
RERANK_WEIGHT = 1_000.0
"""No other list changes the order of what the model has put in order."""
NOT_RERANKED = "What was found could not be put in order by the model."
NONE_NAMED = "The model names none of what was found as an answer; it stands in the order of the search."
_NUMBERS = TypeAdapter(Annotated[list[int], Field(max_length=10 * RERANKED)])

HELPED = 16
"""Of so many searches it is known what the model said, for their further pages."""
CALLS_AT_ONCE = 3
TRANSCRIPT_CHARS = 100_000
SUMMARY_CHARS = (400, 2_000)
"""The shortest and the longest that is asked for; between them, what two thirds of the caller's budget allow."""
SUMMARY_TOKENS = 2_000
EARLIER, LATER = "[… earlier messages left out]\n", "\n[… later messages left out]"
_Helped = tuple[list[RankedList], list[str | None]]
_log = structlog.get_logger("expansion")


@dataclass(eq=False)
class ExpandedRecall:
    """`plain` recall whose queries may be expanded, reranked and summarised; `name` is the cheap model, None for
    `model`: there is none."""

    model_s = 10.0
    summaries_s = 90.0

    plain: Recall
    conversations: Conversations
    model: Model | None
    name: str
    clock: Clock
    zone: ZoneInfo
    is_always_expanded: bool = False
    is_always_reranked: bool = False

    def __post_init__(self) -> None:
        self._calls = asyncio.Semaphore(CALLS_AT_ONCE)
        self._helped: dict[SearchQuery, _Helped] = {}

    async def recall(self, query: SearchQuery) -> SearchResults:
        """Helps only where the query says so; filters in its text hold for every search made of it."""
        is_expanded = query.is_expanded or self.is_always_expanded
        is_reranked = query.is_reranked or self.is_always_reranked
        if not (is_expanded or is_reranked or query.is_summarized):
            return await self.plain.recall(query)
        started = time.perf_counter()
        asked = read_filters(query, self.clock.now(), self.zone)
        # The filters are taken out: what is left must not be read as filters once more.
        plain = replace(asked.query, is_prose=True, budget_chars=None, is_expanded=is_expanded, is_reranked=is_reranked)
        is_helped = (is_expanded or is_reranked) and bool(plain.text.strip()) and plain.around is None
        lists, notes = await self._help(plain) if is_helped else ([], [])
        found = await self.plain.recall(plain, lists)
        if query.is_summarized and found.sessions:
            found = await self._summarized(found, plain, query.budget_chars)
        if query.budget_chars is not None:
            spent_chars = sum(len(one.summary or "") for one in found.sessions)
            found = within(found, max(query.budget_chars // 6, query.budget_chars - spent_chars))
        took_ms = round((time.perf_counter() - started) * 1000, 3)
        return replace(found, query=query.text, note=joined([*asked.notes, found.note, *notes]), took_ms=took_ms)

    def invalidate(self) -> None:
        """Drops what is known for further pages; call it when something was erased."""
        self._helped.clear()

    async def _help(self, query: SearchQuery) -> _Helped:
        """What the model adds, and notes on it. Asked again it may say something else: a further page goes on in the
        order of the first, as long as that is known."""
        first = replace(query, page=1, hidden=())
        known = self._helped.pop(first, None)
        if known is None or query.page <= 1:
            lists: list[RankedList] = []
            helps = [self._expand] * query.is_expanded + [self._rerank] * query.is_reranked
            known = lists, [await help_(query, lists) for help_ in helps]
        if not query.is_incognito:
            self._helped[first] = known
        while len(self._helped) > HELPED:
            del self._helped[next(iter(self._helped))]
        return known

    async def _expand(self, query: SearchQuery, lists: list[RankedList]) -> str | None:
        """Adds what is found for each search that the model makes of the question; a note on it."""
        try:
            async with asyncio.timeout(self.model_s):
                searches = await self._searches(query.text, query.payer)
        except (ModelError, TimeoutError, ValidationError) as error:
            why = str(error) if isinstance(error, ModelError) else "The model gave no searches."
            return f"{NOT_EXPANDED} {why}"
        weight = 1 / max(QUESTION_WEIGHT, QUESTION_SHARE * len(searches))
        for text in searches:
            # By words alone: a service would be asked for each of them.
            each = replace(query, text=text, limit=1, page=1, messages=LISTED, is_incognito=True)
            ids = [hit.message_id for hit in (await self.plain.recall(each)).messages]
            lists.append(RankedList(weight, ids, marks_of(query_terms(text))))
        listed = ", ".join(f"“{search}”" for search in searches)
        return f"I also searched for {listed}." if searches else None

    async def _rerank(self, query: SearchQuery, lists: list[RankedList]) -> str | None:
        """Adds the order in which the model puts the first messages of all lists; a note where it does not."""
        found = await self.plain.recall(replace(query, limit=1, page=1, messages=RERANKED), lists)
        if len(found.messages) < 2:
            return None
        try:
            async with asyncio.timeout(self.model_s):
                ordered = await self._ordered(query, found.messages)
        except (ModelError, TimeoutError, ValidationError) as error:
            return f"{NOT_RERANKED} {error}" if isinstance(error, ModelError) else NOT_RERANKED
        lists.append(RankedList(RERANK_WEIGHT, ordered))
        return None if ordered else NONE_NAMED

    async def _ordered(self, query: SearchQuery, hits: Sequence[Hit]) -> list[int]:
        """The ids of those that the model names, best first. Raises ModelError, ValidationError."""
        lines = []
        for number, hit in enumerate(hits, 1):
            who = "Assistant" if hit.role == "assistant" else " ".join((hit.sender or "Person").split())
            at = hit.at.astimezone(self.zone)
            said = hit.snippet.replace(OPEN, "").replace(CLOSE, "")
            lines.append(f"{number}. ({at:%A} {at.day} {at:%B %Y}) {who}: {said}")
        asked = neutralise(" ".join(query.text[:QUESTION_CHARS].split()))
        texts = (fence("\n".join(lines)), f"The question: {asked}")
        completion = await self._complete("rerank", texts, RERANK_TOKENS, query.payer)
        read = _NUMBERS.validate_json(_list_in(completion.text), strict=True)
        return [hits[number - 1].message_id for number in dict.fromkeys(read) if 0 < number <= len(hits)]

    async def _searches(self, question: str, payer: Payer) -> list[str]:
        """At most five searches besides the question; raises ModelError, ValidationError."""
        question = " ".join(question.split())
        today = self.clock.now().astimezone(self.zone)
        asked = neutralise(question[:QUESTION_CHARS])
        text = f"Today is {today:%A} {today.day} {today:%B %Y}. The question:\n\n{asked}"
        completion = await self._complete("expansion", (text,), EXPANSION_TOKENS, payer)
        read = _SEARCHES.validate_json(_list_in(completion.text), strict=True)
        read_once = dict.fromkeys(" ".join(search.split()) for search in read)
        return [search for search in read_once if search.casefold() != question.casefold()][:SEARCHES]

    async def _complete(
        self, kind: Literal["expansion", "rerank", "summary"], texts: Sequence[str], max_tokens: int, payer: Payer
    ) -> Completion:
        """One call about these texts."""
        if self.model is None:
            raise ModelError(NO_MODEL)
        order = language_data("prompts", "core.search")[kind]
        completion = await ask(self.model, self.name, kind, order, texts, max_tokens=max_tokens, payer=payer)
        _log.info("the model has helped", kind=kind, tokens=completion.usage.sent + completion.usage.output)
        return completion

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
            results = _noted(results, f"{whole}: {joined(problems)}")
        return replace(results, sessions=sessions)

    async def _summary(self, found: FoundSession, query: SearchQuery, length_chars: int) -> str:
        """Raises ModelError, StoreError."""
        async with self._calls:
            # Not before its turn: at most three conversations are in memory.
            text = await self._transcript(found, query)
            asked = neutralise(" ".join(query.text[:QUESTION_CHARS].split()))
            wish = f"What they look for: {asked}" if asked else NO_WISH
            order = f"Summarise the conversation above, in at most {length_chars:,} characters."
            texts = (fence(text), f"{wish}\n\n{order}")
            completion = await self._complete("summary", texts, SUMMARY_TOKENS, query.payer)
        summary = scrub(completion.text).strip()
        if not summary or completion.stop_reason == "refusal":
            raise ModelError("The model gave no summary.")
        # Models cannot count characters: a quarter more is let pass.
        kept = summary[: length_chars * 5 // 4]
        is_cut = kept != summary or completion.stop_reason == "max_tokens"
        return f"{kept.rpartition(' ')[0] or kept} {CUT}" if is_cut else summary

    async def _transcript(self, found: FoundSession, query: SearchQuery) -> str:
        """What people may see of the session and of its lineage's matches, outside the model's window."""
        matched = {hit.message_id for hit in found.matches}
        matched |= {item.message_id for item in found.window if item.is_anchor}
        ids = dict.fromkeys([found.session.id, *(hit.session_id for hit in found.matches)])
        rows = [row for id_ in ids for row in await self.conversations.transcript(id_, query.scopes)]
        lines, places = list[str](), list[int]()
        for row in sorted(rows, key=lambda row: row.id):
            if not _is_shown(row, query.hidden):
                continue
            if row.id in matched:
                places.append(len(lines))
            who = " ".join(row.sender.name.split()) if row.sender else "Person"
            at = row.created_at.astimezone(self.zone)
            head = f"({at:%A} {at.day} {at:%B %Y}, {at:%H:%M}) {'Assistant' if row.role == 'assistant' else who}: "
            lines.append(head + row.text)
        title = f"Title: {' '.join(found.session.title.split())}\n\n" if found.session.title else ""
        return title + part_around(lines, places, TRANSCRIPT_CHARS - len(title))


def _is_shown(row: Message, hidden: Window) -> bool:
    is_hidden = any(id_ == row.session_id and first <= row.id <= last for id_, first, last in hidden)
    return row.kind == "chat" and row.role != "tool" and not is_hidden


def _noted(found: SearchResults, note: str | None) -> SearchResults:
    return replace(found, note=joined([found.note, note]))


def _list_in(text: str) -> str:
    """The list in an answer, also where a model has put it into a code block."""
    return text[text.find("[") : text.rfind("]") + 1]


def part_around(lines: Sequence[str], matched: Sequence[int], limit_chars: int) -> str:
    """The lines, or about `limit_chars` of them, a quarter of it before the first of the `matched`; marks show cuts."""
    whole = "\n".join(lines)
    if len(whole) <= limit_chars:
        return whole
    place = sum(len(line) + 1 for line in lines[: matched[0] if matched else 0])
    start = max(0, min(place - limit_chars // 4, len(whole) - limit_chars))
    end = start + limit_chars
    return (EARLIER if start > 0 else "") + whole[start:end] + (LATER if end < len(whole) else "")
