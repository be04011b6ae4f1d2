"""Search the stored messages, and find messages for the model before a turn.

A search parses the query (`core/search/query.py`), loads candidates from the text indexes
(`core/store/search/text_search.py`), ranks them (`core/search/ranking.py`) and builds the results
(`core/search/results.py`). All this happens in one database transaction. If an index is damaged,
the search repairs it first, so it takes longer but still returns results.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from core.dates.periods_in_text import find_periods
from core.errors import Sentence, StoreError
from core.memory.provider import MemoryProvider
from core.ports import Clock
from core.search import results
from core.search.fusion import (
    NEAR_REMARK_WEIGHT,
    NEAR_WEIGHT,
    RankedList,
    RankedMatches,
    WeightedMatches,
    fuse_matches,
)
from core.search.query import (
    extract_filters,
    is_question,
    plan_any_word,
    plan_excluded,
    plan_typed,
    remove_filters,
    strip_operators,
)
from core.search.results import (
    MAX_MATCHES_SHOWN,
    MAX_MESSAGES,
    Notes,
    page_slice,
    shorten_to_budget,
)
from core.store.engine import LOG_SPACE_WAIT_S, Connection, Database
from core.store.facts.facts import find_aliases
from core.store.media.files import find_files
from core.store.query import (
    DEFAULT_ROLES,
    MessageMatch,
    ModelHelp,
    ResultLimits,
    SearchPlan,
    SearchQuery,
    SearchResults,
    ShownMessage,
    TextKind,
)
from core.store.search import chunks, text_search
from core.store.search.excerpts import SessionExcerpts
from core.store.search.text_search import (
    TextLimits,
    TextSearch,
    TooMuchTextError,
    is_stale,
)
from core.text.normalize import shorten
from core.text.terms import highlight_patterns, query_terms
from core.text.terms import is_question as ends_with_question
from core.types import BillingScope, ToolContext

MIN_MATCHES = 20
"""A search reads at least this many matches, because several matches may belong to the same
session."""
TEND_MESSAGES = 128
"""One step of maintenance indexes this many messages, which blocks other writers for about
10 ms."""
REPAIRS = 2
"""A search tries to repair the indexes at most twice.

If a table of an index is missing, a single repair isn't enough, because SQLite first repairs only
its cached copy.
"""
STEPS_BEFORE_SEARCH = 10
"""If many messages aren't indexed yet, a search runs at most this many indexing steps first. It
then ignores the messages that still aren't indexed."""
INLINE_SEARCH_S = 0.010
"""A search for a turn may block the event loop for this long."""
INLINE_SEARCH_CHARS = 50_000
"""A search for a turn may read this much text on the event loop."""
INLINE_MESSAGE_CHARS = 4_000
"""If a message is longer than this and its terms aren't cached, a search for a turn computes the
terms in a thread, because the computation can't be interrupted. It takes about 2 ms per 1,000
characters of accented words that were never seen before, and less for other texts."""
QUICK_SEARCH_S = 0.006
"""A search for a turn runs on the event loop if recent searches took less than this on average."""
AVERAGED_SEARCHES = 8
"""The average covers about this many searches."""


class HistorySearch(Protocol):
    """A search in the message history: `Recall`, or `ExpandedRecall` with a model's help."""

    async def recall(self, query: SearchQuery) -> SearchResults:
        """Return the results of a query. No typed text raises an exception."""


class Retriever(Protocol):
    """Finds messages by something other than their words, for example by meaning."""

    async def retrieve(self, query: SearchQuery) -> Sequence[MessageMatch]:
        """Return messages that the query's scopes and filters allow, best first.

        If the search fails, return an empty sequence. Never raise an exception.
        """


class Recall:
    """Searches the messages in state.db.

    `zone` is the IANA time zone for dates in a query. Matches of `retriever` are fused with the
    matches found by words.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        zone: str = "UTC",
        retriever: Retriever | None = None,
    ) -> None:
        self.retriever = retriever
        self._database = database
        self._clock = clock
        self._zone = ZoneInfo(zone)
        # The id of the newest message when the indexes were last merged completely.
        self._merged_until = -1
        # Moving average of the time that a search takes.
        self._search_s = 0.0

    async def recall(self, query: SearchQuery, lists: Sequence[RankedList] = ()) -> SearchResults:
        """Return the results of a query. No typed text raises an exception.

        The query decides the shape of the results. With `around`, the shape is "scroll". With
        words, it is "discovery". Without words, it is "discovery" if the filters ask for messages,
        "read" if they name a session, and otherwise "browse".

        The messages of `lists` are fused with the matches. Messages that the query's scopes and
        filters exclude are left out.
        """
        started_s = time.perf_counter()
        zone = query.zone or self._zone
        extraction = extract_filters(query, self._clock.now(), zone)
        today = self._clock.now().astimezone(zone).date()
        answer = await self._answer(_prepare(extraction.query, today), lists)

        notes = [*extraction.notes, *answer.notes]
        if (
            not (answer.sessions or answer.files)
            and answer.shape in ("discovery", "browse")
            and query.kind is not TextKind.TURN
        ):
            notes += await self._describe_attempts(extraction.query, answer)
        if query.limits.budget_chars is not None:
            answer = shorten_to_budget(answer, query.limits.budget_chars)
        return replace(
            answer,
            query=query.text,
            notes=results.join_notes(tuple(notes)),
            took_ms=round((time.perf_counter() - started_s) * 1000, 3),
        )

    async def _answer(self, query: SearchQuery, lists: Sequence[RankedList] = ()) -> SearchResults:
        """Answer a query: search for its words, list the latest messages, or show sessions.

        If the query has `around`, show the messages around that message.
        """
        if query.around is None:
            if query.text.strip():
                return await self._search_words(query, lists)
            if _needs_latest_messages(query):
                return await self._database.read(partial(_list_latest, query=query))
        return await self._database.read_inline(
            lambda connection: results.load_without_search(
                SessionExcerpts(connection, query), query
            )
        )

    async def _describe_attempts(self, query: SearchQuery, answer: SearchResults) -> Notes:
        """Write notes that say what was tried in a search without results.

        Returns no notes if another note explains the result, or if the query is empty.
        """
        plain_query = remove_filters(query)
        has_filters = plain_query != query
        if answer.notes in ((results.NO_WORDS_NOTE,), (results.DAMAGED_INDEX_NOTE,)):
            return ()
        if not query.text.strip() and not has_filters:
            return ()
        if query.limits.page > 1:
            return (Sentence("recall_empty_page", {"page": query.limits.page}),)

        has_more_without_filters = False
        if has_filters:
            limits = replace(plain_query.limits, sessions=1)
            # Setting `is_incognito` skips the retriever, which would always find something similar.
            # The note is only about words.
            by_words = replace(plain_query, limits=limits, is_incognito=True)
            has_more_without_filters = bool((await self._answer(by_words)).sessions)
        return results.describe_attempts(
            plan_any_word(strip_operators(query.text)).highlights,
            is_typed=bool(plan_typed(query.text).alternatives) and not is_question(query.text),
            is_limited=has_filters,
            is_wider=has_more_without_filters,
        )

    async def _search_words(self, query: SearchQuery, lists: Sequence[RankedList]) -> SearchResults:
        """Search the indexes, and return the results.

        If the indexes are stale, damaged or behind, repair them and search again.
        """
        lists = [*lists, *await self._retrieve(query)]
        with contextlib.suppress(StoreError):
            answer = await self._search_indexes(query, lists, needs_fresh_index=True)
            if answer is not None:
                return answer
        for _ in range(REPAIRS):
            with contextlib.suppress(StoreError):
                await self._repair_indexes()
            with contextlib.suppress(StoreError):
                answer = await self._search_indexes(query, lists, needs_fresh_index=False)
                if answer is not None:
                    return answer
        return SearchResults(
            query=query.text, shape="discovery", sessions=(), notes=(results.DAMAGED_INDEX_NOTE,)
        )

    async def _retrieve(self, query: SearchQuery) -> Sequence[RankedList]:
        """Return the retriever's matches as a ranked list.

        Returns no list if there is no retriever, or if the query is incognito. Also return no list
        for keywords and operators, because the person means them literally.
        """
        if self.retriever is None or query.is_incognito:
            return ()
        if query.kind is not TextKind.TURN and not is_question(query.text):
            return ()
        is_remark = query.kind is TextKind.TURN and not ends_with_question(query.text)
        weight = NEAR_REMARK_WEIGHT if is_remark else NEAR_WEIGHT
        matches = await self.retriever.retrieve(query)
        return [RankedList(weight, [match.message_id for match in matches])]

    async def _search_indexes(
        self, query: SearchQuery, lists: Sequence[RankedList], *, needs_fresh_index: bool
    ) -> SearchResults | None:
        """Run `_search` in a read transaction, and update the average duration of a search.

        If searches are fast on average, a search for a turn runs on the event loop, because waking
        a reader thread would take as long as the search itself.
        """

        def timed_search(
            connection: Connection, limits: TextLimits | None = None
        ) -> SearchResults | None:
            started_s = time.perf_counter()
            try:
                search = _IndexSearch(connection, query, lists, limits)
                answer = _search(search, connection, query, needs_fresh_index=needs_fresh_index)
                if answer is None:
                    return None
                return _add_files(answer, connection, query)
            finally:
                duration_s = time.perf_counter() - started_s
                # An exponential moving average.
                self._search_s += (duration_s - self._search_s) / AVERAGED_SEARCHES

        if query.kind is TextKind.TURN and self._search_s < QUICK_SEARCH_S:
            limits = TextLimits(INLINE_SEARCH_CHARS, INLINE_MESSAGE_CHARS, INLINE_SEARCH_S)
            with contextlib.suppress(TooMuchTextError):
                return await self._database.read_inline(
                    partial(timed_search, limits=limits), INLINE_SEARCH_S
                )
        return await self._database.read(timed_search)

    async def _repair_indexes(self) -> None:
        """Rebuild stale or damaged indexes, or index new messages if the chunks are behind."""
        state = await self._database.read(
            partial(_read_index_state, max_lag=text_search.TAIL_MESSAGES)
        )
        needs_rebuild = state.is_stale
        if not state.is_stale and not state.is_behind:
            needs_rebuild = await self._database.write(chunks.flag_if_damaged)
        if needs_rebuild:
            while await self._database.write(chunks.rebuild_step):
                pass
        for _ in range(STEPS_BEFORE_SEARCH):
            if not await self._run_step(chunks.index_pending):
                break

    async def tend(self) -> bool:
        """Run one small step of maintenance: rebuild, index new messages, or merge segments.

        Returns True if another step can follow at once.
        """
        state = await self._database.read(_read_index_state)
        if not await self._database.wait_for_log_space(0):
            return False
        if state.is_stale or state.is_behind:
            step = chunks.rebuild_step if state.is_stale else chunks.index_pending
            await self._run_step(lambda connection: step(connection, TEND_MESSAGES))
            return True
        if state.latest_message_id == self._merged_until:
            return False
        if await self._run_step(chunks.merge_step):
            return True
        self._merged_until = state.latest_message_id
        return False

    async def verify(self) -> list[str]:
        """Check the indexes, and return one sentence per problem."""
        return await self._database.write(chunks.find_index_damage)

    async def rebuild(self) -> int:
        """Rebuild all indexes in small steps, between which other writers can run.

        Returns the number of indexed messages.
        """
        await self._database.write(chunks.flag_for_rebuild)
        total = 0
        while step := await self._database.write(chunks.rebuild_step):
            total += step
            await self._database.wait_for_log_space(LOG_SPACE_WAIT_S)
        return total

    async def _run_step(self, step: Callable[[Any], int]) -> int:
        """Run one step of maintenance and return its result.

        If an index is damaged, flag the indexes for a rebuild and return 1. Raises StoreError for
        any other failure, and if a rebuild itself fails, so that callers don't repeat the rebuild
        forever.
        """
        try:
            return await self._database.write(step)
        except StoreError:
            was_stale = await self._database.read(is_stale)
            is_damaged = await self._database.write(chunks.flag_if_damaged)
            if was_stale or not is_damaged:
                raise
            return 1


class _IndexState(NamedTuple):
    # The index doesn't fit the messages and must be rebuilt.
    is_stale: bool
    # Too many messages aren't part of a chunk yet, or a changed chunk isn't indexed.
    is_behind: bool
    latest_message_id: int


def _read_index_state(
    connection: Connection, max_lag: int = text_search.LAG_MESSAGES
) -> _IndexState:
    return _IndexState(
        is_stale(connection),
        text_search.is_behind(connection, max_lag),
        text_search.latest_message_id(connection),
    )


def _search(
    search: _IndexSearch,
    connection: Connection,
    query: SearchQuery,
    *,
    needs_fresh_index: bool,
) -> SearchResults | None:
    """Search for the text as typed. If no message matches, search for any of its words.

    For a question or a turn, search only for any of its words, because people seldom repeat a
    sentence word for word. Returns None if the indexes are stale. With `needs_fresh_index`, also
    return None if too many messages aren't part of a chunk yet.
    """
    if is_stale(connection):
        return None
    notes: Notes = ()
    plan = SearchPlan()
    if query.kind is not TextKind.TURN and not is_question(query.text):
        plan = plan_typed(query.text)
        answer = search.find_as_typed(plan)
        if answer is not None:
            return answer
        note = results.SOME_WORDS_NOTE if plan.alternatives else results.NOT_AS_TYPED_NOTE
        notes = (note,)
    if needs_fresh_index and text_search.is_behind(connection, text_search.TAIL_MESSAGES):
        return None
    if query.kind is TextKind.TURN:
        return search.find_for_turn()
    search.read_periods()
    return search.find_any_word(notes, plan)


def _prepare(query: SearchQuery, today: date) -> SearchQuery:
    """Return a query with the asker's day, and with its periods if it will need them.

    Keywords are usually found as typed. Only ranking by single words needs the periods, and the
    words for them take 60 ms to load.
    """
    query = replace(query, today=today)
    if query.kind is TextKind.TURN or is_question(query.text):
        return _with_periods(query)
    return query


def _with_periods(query: SearchQuery) -> SearchQuery:
    """Return the query with the periods that it names, unless they are known."""
    if query.today is None:
        return query
    return replace(query, today=None, periods=find_periods(query.text, query.today))


class _IndexSearch:
    """A search within one transaction."""

    def __init__(
        self,
        connection: Connection,
        query: SearchQuery,
        lists: Sequence[RankedList],
        limits: TextLimits | None,
    ) -> None:
        self._connection = connection
        self._query = query
        self._limits = limits
        self._lists = lists
        self._highlights = tuple(
            chain.from_iterable(ranked_list.highlights for ranked_list in lists)
        )
        self._index = TextSearch(connection, query, limits)
        self._excerpts = SessionExcerpts(connection, query)

    def read_periods(self) -> None:
        """Find the periods that the query names, unless they are known."""
        query = _with_periods(self._query)
        if query is not self._query:
            self._query = query
            self._index = TextSearch(self._connection, query, self._limits)

    def find_as_typed(self, plan: SearchPlan) -> SearchResults | None:
        """Return the results for `plan`, or None if no message matches it.

        The matches are merged with the ranked lists of the other retrievers.
        """
        matches = _take_enough(self._index.find_messages(plan), self._query)
        if not matches:
            return None
        ranking = self._fuse(RankedMatches({}, matches, self._query.text, {}))
        return results.build_discovery(
            self._excerpts,
            self._query,
            ranking.matches,
            plan.highlights + self._highlights,
            scores=ranking.scores,
        )

    def find_for_turn(self) -> SearchResults:
        """Return the results for any of the words, without highlights and notes."""
        ranking = self._fuse(self._rank_by_words())
        return results.build_discovery(
            self._excerpts, self._query, ranking.matches, (), scores=ranking.scores
        )

    def find_any_word(self, notes: Notes, typed: SearchPlan) -> SearchResults:
        """Return the results for any of the query's words, best first.

        `notes` say why the search for the text as typed wasn't enough. If no chunk contains any of
        the words, search the index of single messages, unless `typed`, the plan of the typed text,
        already did.
        """
        ranking = self._rank_by_words()
        plan = plan_any_word(ranking.text)
        highlights = plan.highlights + self._highlights
        if ranking.matches:
            highlights += tuple(highlight_patterns(query_terms(ranking.text)))
        elif plan.alternatives != typed.alternatives:
            matches = _take_enough(self._index.find_messages(plan), self._query)
            ranking = ranking._replace(matches=matches)

        if ranking.matches:
            corrections = results.describe_corrections(ranking.corrections)
            notes = results.join_notes(notes, corrections)
        else:
            notes = ()
        ranking = self._without_excluded(self._fuse(ranking))
        if not ranking.matches and not plan.alternatives:
            notes = (results.NO_WORDS_NOTE,)
        return results.build_discovery(
            self._excerpts, self._query, ranking.matches, highlights, notes, ranking.scores
        )

    def _without_excluded(self, ranking: RankedMatches) -> RankedMatches:
        """Return the matches that don't contain an excluded word."""
        plan = plan_excluded(self._query.text)
        if not plan.alternatives:
            return ranking
        excluded_ids = {match.message_id for match in self._index.find_messages(plan)}
        matches = [match for match in ranking.matches if match.message_id not in excluded_ids]
        kept_roots = {match.root_id for match in matches}
        scores = {root: score for root, score in ranking.scores.items() if root in kept_roots}
        return ranking._replace(matches=matches, scores=scores)

    def _rank_by_words(self) -> RankedMatches:
        """Rank the messages of the best chunks by the words and name aliases of the query."""
        # Imported here because numpy takes a while to load.
        from core.search.ranking import rank_matches

        words = strip_operators(self._query.text)
        aliases = find_aliases(self._connection, words, self._query.scopes, self._query.asker)
        names = [alias.name for alias in aliases]
        return rank_matches(self._index, replace(self._query, text=words), names)

    def _fuse(self, ranking: RankedMatches) -> RankedMatches:
        """Fuse the matches with the other lists, limited to messages that the query may see."""
        if not self._lists:
            return ranking
        return fuse_matches(
            ranking,
            [
                WeightedMatches(
                    ranked_list.weight, self._index.filter_visible(ranked_list.message_ids)
                )
                for ranked_list in self._lists
            ],
        )


def _needs_latest_messages(query: SearchQuery) -> bool:
    """Return whether a query without words asks for messages instead of sessions.

    A filter by speaker, role or file asks for messages. A filter by session does so only together
    with a filter by platform, title or time.
    """
    filters = query.filters
    if filters.file_kind or filters.file_name:
        return True
    if filters.is_askers_own or filters.sender or filters.roles != DEFAULT_ROLES:
        return True
    if filters.session_id is None:
        return False
    has_time = filters.after is not None or filters.before is not None
    return bool(filters.platforms or filters.title or has_time)


def _list_latest(connection: Connection, query: SearchQuery) -> SearchResults:
    """Return the newest messages that pass the filters of a query without words."""
    limit_per_session = max(MAX_MATCHES_SHOWN, min(query.limits.messages, MAX_MESSAGES))
    latest = TextSearch(connection, query).latest_messages(limit_per_session)
    matches = _take_enough(latest, query)
    answer = results.build_discovery(SessionExcerpts(connection, query), query, matches, ())
    return _add_files(answer, connection, query)


def _add_files(answer: SearchResults, connection: Connection, query: SearchQuery) -> SearchResults:
    """Add matching files to the results, except in a search for a turn."""
    if query.kind is TextKind.TURN or not text_search.has_files(connection):
        return answer
    return replace(answer, files=find_files(connection, query))


def _take_enough(candidates: Iterator[MessageMatch], query: SearchQuery) -> list[MessageMatch]:
    """Read as many matches as the results need.

    The results need enough matches for the flat list of messages and for the requested page, and
    one more lineage that shows whether there is a next page.
    """
    min_matches = max(MIN_MATCHES, min(query.limits.messages, MAX_MESSAGES))
    min_lineages = page_slice(query).stop + 1
    matches: list[MessageMatch] = []
    lineages: set[int] = set()
    for match in candidates:
        matches.append(match)
        lineages.add(match.root_id)
        if len(matches) >= min_matches and len(lineages) >= min_lineages:
            break
    return matches


MAX_PASSAGES = 4
"""At most this many messages from earlier conversations are added to a turn."""
PASSAGE_CHARS = 280
QUERY_CHARS = 2_000


class HistoryProvider(MemoryProvider):
    """The memory provider that recalls messages of earlier conversations before a turn.

    Each message is one line: ``m<message id> <date>: <who> (<origin>): <text>``. `zone` is the IANA
    time zone for dates. With `deep_recall`, each question is searched once more with a model's help
    after its answer, and the next turn gets the results.
    """

    name = "history"

    def __init__(
        self, recall: HistorySearch, zone: str, deep_recall: HistorySearch | None = None
    ) -> None:
        self._recall = recall
        self._zone = ZoneInfo(zone)
        self._deep_recall = deep_recall
        self.is_reflecting = deep_recall is not None

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Return one line for each of the messages that match the text best."""
        return await self._find_lines(self._recall, self._build_query(text, context))

    async def queue_prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Search for the question that `text` ends with, with a model's help, for the next turn."""
        if self._deep_recall is None or not ends_with_question(text):
            return ()
        billing = BillingScope(
            session_id=context.session.id, scope=context.scope, user_id=context.sender.id
        )
        model_help = ModelHelp(is_expanded=True, is_reranked=True, billing=billing)
        query = replace(self._build_query(text, context), help=model_help)
        return await self._find_lines(self._deep_recall, query)

    def _build_query(self, text: str, context: ToolContext) -> SearchQuery:
        """Build a search for the messages of other conversations that fit a new message."""
        return SearchQuery(
            text=text[:QUERY_CHARS],
            kind=TextKind.TURN,
            scopes=context.scopes,
            asker=context.account,
            limits=ResultLimits(sessions=MAX_PASSAGES, window=0),
            hidden=context.window,
            is_incognito=context.session.is_incognito,
        )

    async def _find_lines(self, recall: HistorySearch, query: SearchQuery) -> list[str]:
        answer = await recall.recall(query)
        lines = []
        for session in answer.sessions:
            for message in session.window:
                if message.is_anchor:
                    lines.append(self._render_line(message))
        return lines

    def _render_line(self, message: ShownMessage) -> str:
        """Render a message as a line.

        The line names the origin of a text that the sender didn't type. It doesn't contain the
        title of the conversation, because a title may consist of other people's words.
        """
        author = "you" if message.role == "assistant" else message.sender or "the person"
        if message.role == "user" and message.origin != "typed":
            author = f"{author} ({message.origin.replace('_', ' ')})"
        at = message.at.astimezone(self._zone)
        text = shorten(message.text, PASSAGE_CHARS)
        return f"m{message.message_id} {at.day} {at:%B %Y}: {author}: {text}"


def load_word_lists() -> None:
    """Load numpy and the word lists, so that the first question doesn't wait for them."""
    import core.search.ranking  # noqa: F401

    question = "When does the ferry leave?"
    find_periods(question, datetime.now(UTC).date())
    query_terms(question)
