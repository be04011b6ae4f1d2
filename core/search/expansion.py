"""Improve recall with a cheap language model.

The model can add searches to a question (expansion), sort the best messages (reranking) and
summarize the sessions that were found. A deep search expands and reranks in one call. If a step
fails, the results come without it, and a note gives the reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import structlog
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from core.errors import ModelError, Sentence, StoreError, to_sentence
from core.guard.origin_and_fence import fence, neutralise, scrub
from core.models.wrappers import TOO_LONG_STATUS, ask_model
from core.ports import Clock, Model
from core.search.fusion import RankedList
from core.search.query import extract_filters
from core.search.recall import Recall
from core.search.results import (
    ELLIPSIS,
    MATCH_END,
    MATCH_START,
    MAX_SESSIONS,
    Notes,
    join_notes,
    shorten_to_budget,
)
from core.store.query import FoundSession, Hit, SearchQuery, SearchResults, TextKind
from core.store.sessions import Conversations
from core.text.normalize import language_data
from core.text.terms import highlight_patterns, query_terms
from core.types import UNBILLED, BillingScope, Completion, Message, Window

NO_MODEL = Sentence("recall_needs_model")
NO_WISH = "They look for nothing in particular: tell what it was about."
"""The instruction to the model if it summarises a session without a question."""
QUESTION_CHARS = 2_000
"""Only this many characters of a question are sent to the model."""
MAX_SEARCHES = 5
EXPANSION_TOKENS = 400
LISTED_MESSAGES = 100
"""Each search that the model suggests contributes up to this many messages."""
QUESTION_SHARE = 0.5
"""The question as typed weighs half as much as all of the model's searches together.

Measured with searches written by hand for 72 LoCoMo questions (dev). For 36 questions, no right
answer is among the first five sessions without the model. With this share, 16 of the 36 get one (17
with equal weights, 13 with three times the weight). None of the other 36 questions loses its answer
(one does with equal weights).
"""
MIN_QUESTION_WEIGHT = 1.5
"""The question weighs at least this many times as much as a single search by the model."""
NOT_EXPANDED = Sentence("recall_not_expanded")
_Search = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
_SEARCHES = TypeAdapter(Annotated[list[_Search], Field(max_length=20)])

MAX_RERANKED = 20
"""The model sorts at most this many of the best messages."""
RERANK_TOKENS = 200
RERANK_WEIGHT = 1_000.0
"""The weight of the model's order, which is so high that no other list changes the order."""
NOT_RERANKED = Sentence("recall_not_reranked")
NO_ANSWER_NAMED = Sentence("recall_no_answer")
_NUMBERS = TypeAdapter(Annotated[list[int], Field(max_length=10 * MAX_RERANKED)])

DEEP_TOKENS = 500
NOT_DEEP = Sentence("recall_not_deep")
DEEP_CACHE_TIME = timedelta(minutes=10)
"""The model isn't asked again about the same deep search within this time."""

MAX_REMEMBERED_QUERIES = 16
"""The model's lists for this many queries are cached, so that further pages of a query use the same
lists."""
MAX_CONCURRENT_SUMMARIES = 3
"""The maximum number of summaries that are written at once. It limits the model calls and the
transcripts in memory."""
TRANSCRIPT_CHARS = 100_000
"""A longer transcript is cut to this length before it is summarized."""
MIN_SUMMARY_CHARS = 400
MAX_SUMMARY_CHARS = 2_000
SUMMARY_TOKENS = 2_000
EARLIER_OMITTED = "[… earlier messages left out]\n"
LATER_OMITTED = "\n[… later messages left out]"
_log = structlog.get_logger("expansion")


def _add_reason(note: Sentence, reason: Sentence) -> Sentence:
    """Return a note followed by the sentence that gives its reason."""
    return Sentence("recall_with_reason", {"note": note, "reason": reason})


class _DeepAnswer(BaseModel):
    """The model's reply to a deep search: numbers of matching messages, and more searches."""

    model_config = ConfigDict(strict=True)

    order: Annotated[list[int], Field(max_length=10 * MAX_RERANKED)]
    searches: Annotated[list[_Search], Field(max_length=20)]


@dataclass
class _ModelLists:
    """The ranked lists that the model added to a query, with notes about them."""

    # When the model was asked.
    at: datetime
    lists: list[RankedList] = field(default_factory=list)
    # Notes for the person about the model's help, or about why it failed.
    notes: Notes = ()


@dataclass(eq=False)
class ExpandedRecall:
    """A `HistorySearch` that uses a model to expand and rerank queries and to summarize sessions.

    Without a model, a note in the results explains how to set one up.
    """

    # The timeout of each expansion or reranking.
    model_timeout_s = 10.0
    # The timeout for all summaries of a query together.
    summaries_timeout_s = 90.0

    plain_recall: Recall
    conversations: Conversations
    model: Model | None
    # The name of the cheap model.
    model_name: str
    clock: Clock
    zone: ZoneInfo
    is_always_expanded: bool = False
    is_always_reranked: bool = False

    def __post_init__(self) -> None:
        self._summary_slots = asyncio.Semaphore(MAX_CONCURRENT_SUMMARIES)
        self._remembered: dict[SearchQuery, _ModelLists] = {}

    async def recall(self, query: SearchQuery) -> SearchResults:
        """Answer a query, with the model's help if the query or the settings ask for it.

        Filters in the query's text also apply to the searches that the model suggests.
        """
        model_help = replace(
            query.help,
            is_expanded=query.help.is_expanded or self.is_always_expanded,
            is_reranked=query.help.is_reranked or self.is_always_reranked,
        )
        if not model_help.is_needed:
            return await self.plain_recall.recall(query)

        started_s = time.perf_counter()
        extraction = extract_filters(query, self.clock.now(), query.zone or self.zone)
        plain = replace(
            extraction.query,
            # The remaining text must not be read as filters again.
            kind=TextKind.TURN if query.kind is TextKind.TURN else TextKind.PLAIN,
            limits=replace(extraction.query.limits, budget_chars=None),
            help=model_help,
        )
        help_lists = await self._ask_for_lists(plain)
        answer = await self.plain_recall.recall(plain, help_lists.lists)

        budget_chars = query.limits.budget_chars
        if query.help.is_summarized and answer.sessions:
            answer = await self._add_summaries(answer, plain, budget_chars)
        if budget_chars is not None:
            # Even after long summaries, the messages get at least a sixth of the budget.
            summary_chars = sum(len(session.summary or "") for session in answer.sessions)
            remaining_chars = max(budget_chars // 6, budget_chars - summary_chars)
            answer = shorten_to_budget(answer, remaining_chars)
        return replace(
            answer,
            query=query.text,
            notes=join_notes(extraction.notes, answer.notes, help_lists.notes),
            took_ms=round((time.perf_counter() - started_s) * 1000, 3),
        )

    def invalidate(self) -> None:
        """Delete the cached lists of earlier queries. Call this after an erasure."""
        self._remembered.clear()

    async def _ask_for_lists(self, query: SearchQuery) -> _ModelLists:
        """Return the ranked lists that the model adds to the query.

        The result has no lists if the query asks for neither expansion nor reranking, or if it has
        no words. The model may reply differently each time, so later pages use the cached lists of
        the first page.
        """
        has_words = bool(query.text.strip()) and query.around is None
        now = self.clock.now()
        if not has_words or not (query.help.is_expanded or query.help.is_reranked):
            return _ModelLists(now)
        is_deep = query.help.is_expanded and query.help.is_reranked
        # The cached lists of a deep search don't depend on who pays for it.
        model_help = replace(query.help, billing=UNBILLED) if is_deep else query.help
        first_page = replace(
            query, limits=replace(query.limits, page=1), hidden=(), help=model_help
        )
        help_lists = self._remembered.pop(first_page, None)
        is_reusable = query.limits.page > 1
        if is_deep and help_lists is not None and help_lists.lists:
            is_reusable = is_reusable or now - help_lists.at < DEEP_CACHE_TIME
        if help_lists is None or not is_reusable:
            help_lists = await self._ask_for_new_lists(query)
        if not query.is_incognito:
            self._remembered[first_page] = help_lists
        while len(self._remembered) > MAX_REMEMBERED_QUERIES:
            oldest = next(iter(self._remembered))
            del self._remembered[oldest]
        return help_lists

    async def _ask_for_new_lists(self, query: SearchQuery) -> _ModelLists:
        """Ask the model to expand or rerank a query, or both in one call."""
        new = _ModelLists(self.clock.now())
        if query.help.is_expanded and query.help.is_reranked:
            new.notes = await self._search_deeply(query, new.lists)
        elif query.help.is_expanded:
            new.notes = await self._expand(query, new.lists)
        else:
            new.notes = await self._rerank(query, new.lists)
        return new

    async def _search_deeply(self, query: SearchQuery, lists: list[RankedList]) -> Notes:
        """Ask the model once to sort the best messages and to add searches.

        Returns notes that list the searches, or that explain why the model didn't help.
        """
        limits = replace(query.limits, sessions=1, page=1, messages=MAX_RERANKED)
        results = await self.plain_recall.recall(replace(query, limits=limits))
        hits = results.messages
        texts = (fence(self._render_hits(hits) or "(nothing)"), self._render_question(query.text))
        try:
            async with asyncio.timeout(self.model_timeout_s):
                completion = await self._complete("deep", texts, DEEP_TOKENS, query.help.billing)
            text = completion.text
            answer = _DeepAnswer.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
        except ModelError as error:
            return (_add_reason(NOT_DEEP, to_sentence(error)),)
        except (TimeoutError, ValidationError):
            return (NOT_DEEP,)
        notes = await self._add_searches(query, _list_different(answer.searches, query.text), lists)
        lists.append(RankedList(RERANK_WEIGHT, _select_hits(hits, answer.order)))
        return notes

    async def _expand(self, query: SearchQuery, lists: list[RankedList]) -> Notes:
        """Ask the model for searches, and append the messages of each search as a list.

        Returns notes that list the searches, or that explain why there are none. Returns no notes
        if the model suggests no search.
        """
        try:
            async with asyncio.timeout(self.model_timeout_s):
                searches = await self._ask_for_searches(query.text, query.help.billing)
        except (ModelError, TimeoutError, ValidationError) as error:
            reason = Sentence("recall_no_searches")
            if isinstance(error, ModelError):
                reason = to_sentence(error)
            return (_add_reason(NOT_EXPANDED, reason),)
        return await self._add_searches(query, searches, lists)

    async def _add_searches(
        self, query: SearchQuery, searches: Sequence[str], lists: list[RankedList]
    ) -> Notes:
        """Run searches, and append the messages of each search as a list.

        Returns a note that names the searches. Returns no notes if `searches` is empty.
        """
        if not searches:
            return ()
        weight = 1 / max(MIN_QUESTION_WEIGHT, QUESTION_SHARE * len(searches))
        limits = replace(query.limits, sessions=1, page=1, messages=LISTED_MESSAGES)
        for text in searches:
            # An incognito search skips the embedding service. Otherwise, each of these searches
            # would call the service again.
            search = replace(query, text=text, limits=limits, is_incognito=True)
            results = await self.plain_recall.recall(search)
            ids = [hit.message_id for hit in results.messages]
            lists.append(RankedList(weight, ids, highlight_patterns(query_terms(text))))
        search_list = ", ".join(f"“{search}”" for search in searches)
        return (Sentence("recall_also_searched", {"searches": search_list}),)

    async def _rerank(self, query: SearchQuery, lists: list[RankedList]) -> Notes:
        """Ask the model to sort the best messages, and append its order to `lists`.

        Returns notes if the model fails, or if none of the messages is an answer.
        """
        limits = replace(query.limits, sessions=1, page=1, messages=MAX_RERANKED)
        results = await self.plain_recall.recall(replace(query, limits=limits), lists)
        if len(results.messages) < 2:
            return ()
        try:
            async with asyncio.timeout(self.model_timeout_s):
                ordered_ids = await self._ask_for_order(query, results.messages)
        except ModelError as error:
            return (_add_reason(NOT_RERANKED, to_sentence(error)),)
        except (TimeoutError, ValidationError):
            return (NOT_RERANKED,)
        lists.append(RankedList(RERANK_WEIGHT, ordered_ids))
        return () if ordered_ids else (NO_ANSWER_NAMED,)

    async def _ask_for_order(self, query: SearchQuery, hits: Sequence[Hit]) -> list[int]:
        """Return the ids of the messages that answer the query according to the model, best first.

        Raises ModelError if the model fails, and ValidationError if its reply isn't a list of
        numbers.
        """
        texts = (fence(self._render_hits(hits)), f"The question: {_single_line(query.text)}")
        completion = await self._complete("rerank", texts, RERANK_TOKENS, query.help.billing)
        numbers = _NUMBERS.validate_json(_cut_out_list(completion.text), strict=True)
        return _select_hits(hits, numbers)

    def _render_hits(self, hits: Sequence[Hit]) -> str:
        """Return a numbered line for each message, with its author and date."""
        lines = []
        for number, hit in enumerate(hits, 1):
            author = "Assistant"
            if hit.role != "assistant":
                author = " ".join((hit.sender or "Person").split())
            at = hit.at.astimezone(self.zone)
            text = hit.snippet.replace(MATCH_START, "").replace(MATCH_END, "")
            lines.append(f"{number}. ({at:%A} {at.day} {at:%B %Y}) {author}: {text}")
        return "\n".join(lines)

    def _render_question(self, question: str) -> str:
        today = self.clock.now().astimezone(self.zone)
        return (
            f"Today is {today:%A} {today.day} {today:%B %Y}. The question:\n\n"
            f"{_single_line(question)}"
        )

    async def _ask_for_searches(self, question: str, billing: BillingScope) -> list[str]:
        """Ask the model for up to `MAX_SEARCHES` searches that differ from the question.

        Raises ModelError if the model fails, and ValidationError if its reply isn't a list of short
        texts.
        """
        text = self._render_question(question)
        completion = await self._complete("expansion", (text,), EXPANSION_TOKENS, billing)
        answers = _SEARCHES.validate_json(_cut_out_list(completion.text), strict=True)
        return _list_different(answers, question)

    async def _complete(
        self,
        kind: Literal["expansion", "rerank", "deep", "summary"],
        texts: Sequence[str],
        max_tokens: int,
        billing: BillingScope,
    ) -> Completion:
        """Call the model with the prompt for `kind`, and return its completion.

        Raises ModelError if the call fails or if no model is set up.
        """
        if self.model is None:
            raise ModelError(NO_MODEL.key)
        prompt = language_data("prompts", "core.search")[kind]
        completion = await ask_model(
            self.model,
            self.model_name,
            kind,
            prompt,
            texts,
            max_tokens=max_tokens,
            billing=billing,
        )
        _log.info(
            "the model helped with a search",
            kind=kind,
            tokens=completion.usage.total_input + completion.usage.output,
        )
        return completion

    async def _add_summaries(
        self, results: SearchResults, query: SearchQuery, budget_chars: int | None
    ) -> SearchResults:
        """Return the results with a summary of each of the first `MAX_SESSIONS` sessions.

        The summaries get two thirds of the budget. If a summary can't be created, a note in the
        results gives the reason.
        """
        length_chars = MAX_SUMMARY_CHARS
        if budget_chars is not None:
            share_chars = budget_chars * 2 // 3 // len(results.sessions)
            length_chars = max(MIN_SUMMARY_CHARS, min(share_chars, MAX_SUMMARY_CHARS))
        summaries: dict[int, str] = {}
        problems: list[Sentence] = []

        async def add_summary(session: FoundSession) -> None:
            try:
                summaries[session.session.id] = await self._summarize(session, query, length_chars)
            except (ModelError, StoreError) as error:
                is_too_long = isinstance(error, ModelError) and error.status == TOO_LONG_STATUS
                problems.append(
                    Sentence("conversation_too_long") if is_too_long else to_sentence(error)
                )

        try:
            async with asyncio.timeout(self.summaries_timeout_s), asyncio.TaskGroup() as group:
                for session in results.sessions[:MAX_SESSIONS]:
                    group.create_task(add_summary(session))
        except TimeoutError:
            seconds = f"{self.summaries_timeout_s:g}"
            problems.append(Sentence("model_took_longer", {"seconds": seconds}))

        sessions = tuple(
            replace(session, summary=summaries.get(session.session.id))
            for session in results.sessions
        )
        results = replace(results, sessions=sessions)
        if not problems:
            return results
        failure = _describe_missing_summaries(problems, len(sessions), len(summaries))
        return replace(results, notes=join_notes(results.notes, (failure,)))

    async def _summarize(self, result: FoundSession, query: SearchQuery, length_chars: int) -> str:
        """Return a summary of what a session says about the query.

        Raises ModelError if the model fails or returns no summary, and StoreError if the messages
        can't be read.
        """
        async with self._summary_slots:
            transcript = await self._render_transcript(result, query)
            question = _single_line(query.text)
            wish = f"What they look for: {question}" if question else NO_WISH
            order = f"Summarise the conversation above, in at most {length_chars:,} characters."
            texts = (fence(transcript), f"{wish}\n\n{order}")
            completion = await self._complete("summary", texts, SUMMARY_TOKENS, query.help.billing)
        summary = scrub(completion.text).strip()
        if not summary or completion.stop_reason == "refusal":
            raise ModelError("The model returned no summary.")
        # Models can't count characters, so a quarter more is accepted.
        beginning = summary[: length_chars * 5 // 4]
        if beginning == summary and completion.stop_reason != "max_tokens":
            return summary
        whole_words = beginning.rpartition(" ")[0]
        return f"{whole_words or beginning} {ELLIPSIS}"

    async def _render_transcript(self, result: FoundSession, query: SearchQuery) -> str:
        """Render the messages of the session and of all sessions that contain one of its matches.

        Messages that the model already sees are left out. A long transcript is cut around the first
        match.
        """
        match_ids = {hit.message_id for hit in result.matches}
        match_ids |= {message.message_id for message in result.window if message.is_anchor}
        session_ids = dict.fromkeys(
            [result.session.id, *(hit.session_id for hit in result.matches)]
        )
        messages: list[Message] = []
        for session_id in session_ids:
            messages += await self.conversations.load_transcript(session_id, query.scopes)
        messages = [message for message in messages if _is_shown(message, query.hidden)]
        messages.sort(key=lambda message: message.id)

        lines = [self._render_message(message) for message in messages]
        match_lines = [number for number, message in enumerate(messages) if message.id in match_ids]
        title = ""
        if result.session.title:
            title = f"Title: {' '.join(result.session.title.split())}\n\n"
        return title + cut_around_match(lines, match_lines, TRANSCRIPT_CHARS - len(title))

    def _render_message(self, message: Message) -> str:
        author = "Assistant"
        if message.role != "assistant":
            author = " ".join(message.sender.name.split()) if message.sender else "Person"
        at = message.created_at.astimezone(self.zone)
        return f"({at:%A} {at.day} {at:%B %Y}, {at:%H:%M}) {author}: {message.text}"


def _select_hits(hits: Sequence[Hit], numbers: Sequence[int]) -> list[int]:
    """Return the ids of the messages with these numbers, which start at 1."""
    return [
        hits[number - 1].message_id for number in dict.fromkeys(numbers) if 0 < number <= len(hits)
    ]


def _describe_missing_summaries(
    problems: Sequence[Sentence], session_count: int, summary_count: int
) -> Sentence:
    """Write a note that says how many summaries are missing, and why."""
    note = Sentence("recall_not_summarized")
    if summary_count:
        values = {"missing": session_count - summary_count, "count": session_count}
        note = Sentence("recall_some_not_summarized", values)
    for problem in join_notes(tuple(problems)):
        note = _add_reason(note, problem)
    return note


def _list_different(searches: Sequence[str], question: str) -> list[str]:
    """Return up to `MAX_SEARCHES` searches that differ from the question and from each other."""
    folded_question = " ".join(question.split()).casefold()
    lines = dict.fromkeys(" ".join(search.split()) for search in searches)
    return [line for line in lines if line.casefold() != folded_question][:MAX_SEARCHES]


def _is_shown(message: Message, hidden: Window) -> bool:
    """Return whether people see a message that isn't in the model's context yet."""
    if message.kind != "chat" or message.role == "tool":
        return False
    return not any(
        session_id == message.session_id and first <= message.id <= last
        for session_id, first, last in hidden
    )


def _single_line(question: str) -> str:
    """Return the beginning of a question on one line, safe for use in a prompt."""
    return neutralise(" ".join(question[:QUESTION_CHARS].split()))


def _cut_out_list(text: str) -> str:
    """Return the JSON list in a model's reply, without text or a code fence around it."""
    return text[text.find("[") : text.rfind("]") + 1]


def cut_around_match(lines: Sequence[str], match_lines: Sequence[int], limit_chars: int) -> str:
    """Join lines. Cut a long text to about `limit_chars` characters around the first match.

    `match_lines` are the indexes of the lines with a match. A quarter of the excerpt comes before
    the match. An ellipsis line marks each omitted part.
    """
    text = "\n".join(lines)
    if len(text) <= limit_chars:
        return text
    first_match = match_lines[0] if match_lines else 0
    position = sum(len(line) + 1 for line in lines[:first_match])
    start = max(0, min(position - limit_chars // 4, len(text) - limit_chars))
    end = start + limit_chars
    excerpt = text[start:end]
    if start > 0:
        excerpt = EARLIER_OMITTED + excerpt
    if end < len(text):
        excerpt += LATER_OMITTED
    return excerpt
