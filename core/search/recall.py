"""Search over everything that was said, each in one hop to the database thread, the upkeep of its indexes, the memory
provider over it (before a turn, what earlier conversations hold on the subject), and the tool `session_search`.

Route, candidates, ranking and results each have a module. A damaged index costs time, never an answer.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from core.dates.mentions import mentioned
from core.errors import StoreError, ToolError
from core.guard.guard import Arguments, tool_of
from core.memory.provider import MemoryProvider
from core.ports import Clock
from core.search import results
from core.search.query import any_of, asked_for, is_question, parse, read_filters, said_by, unlimited, within_time
from core.search.ranking import NEAR_WEIGHT, RankedList, RankedMatches, any_words, fused_with
from core.search.results import MATCHES_SHOWN, MESSAGES_MAX, page_of, within
from core.store.facts import other_names
from core.store.query import DEFAULT_ROLES, FoundSession, MessageMatch, SearchQuery, SearchResults
from core.store.rows import Connection
from core.store.sqlite import indexing, text_index
from core.store.sqlite.database import ROOM_WAIT_S, Database
from core.store.sqlite.passages import Passages
from core.store.sqlite.text_index import TextIndex
from core.text.normalize import shortened
from core.text.terms import marks_of, query_terms
from core.types import Payer, Role, Scope, Tool, ToolContext

LOOK_AT = 20
"""So many matches are looked at even when enough sessions are known: a session may have more than one."""
TEND_MESSAGES = 128
"""In one step beside others, who wait for it: about 10 ms."""
REPAIRS = 2
"""Of an index that lost a table SQLite repairs what it still holds in memory first."""
STEPS_BEFORE_SEARCH = 10
"""A search that meets chunks far behind takes in so much before it answers without the rest."""


class HistorySearch(Protocol):
    """Whoever answers queries over history: `Recall`, and `ExpandedRecall` with the help of a model."""

    async def recall(self, query: SearchQuery) -> SearchResults:
        """Never raises for anything that a person can type."""


class Retriever(Protocol):
    """A second ranked list beside that of the words, such as by meaning."""

    async def retrieve(self, query: SearchQuery) -> Sequence[MessageMatch]:
        """Messages that the query may see and wants, best first; nothing where it cannot tell. Never raises."""


SEARCH_S, QUICK_S, SEARCHES = 0.010, 0.006, 8
"""A search for a turn may hold the event loop for 10 ms, where the last eight or so took less than 6 on average."""


class Recall:
    """Recall over state.db; `clock` gives the present moment, `zone` is the IANA zone of typed dates. What the
    `retriever` finds for a question is fused with what its words find."""

    def __init__(self, database: Database, clock: Clock, zone: str = "UTC", retriever: Retriever | None = None) -> None:
        self.retriever = retriever
        self._database = database
        self._clock = clock
        self._zone = ZoneInfo(zone)
        self._merged_until = -1
        self._search_s = 0.0

    async def recall(self, query: SearchQuery, lists: Sequence[RankedList] = ()) -> SearchResults:
        """Never raises for what a person can type. `around` -> scroll, `session` alone -> read, nothing -> browse. Of
        the `lists` counts what the query may see and wants."""
        started = time.perf_counter()
        asked = read_filters(query, self._clock.now(), self._zone)
        today = self._clock.now().astimezone(self._zone).date()
        found = await self._routed(replace(asked.query, periods=mentioned(asked.query.text, today)), lists)
        notes = [*asked.notes, found.note]
        if not found.sessions and found.shape in ("discovery", "browse") and not query.is_turn:
            notes.append(await self._tried(asked.query, found))
        if query.budget_chars is not None:
            found = within(found, query.budget_chars)
        took_ms = round((time.perf_counter() - started) * 1000, 3)
        return replace(found, query=query.text, note=results.joined(notes), took_ms=took_ms)

    async def _routed(self, query: SearchQuery, lists: Sequence[RankedList] = ()) -> SearchResults:
        if query.around is None:
            if query.text.strip():
                return await self._discover(query, lists)
            is_narrowed = query.platforms or query.title or query.after is not None or query.before is not None
            is_by = query.is_own or query.sender or query.roles != DEFAULT_ROLES
            if is_by or (query.session is not None and is_narrowed):
                return await self._database.read(lambda connection: _latest(connection, query))
        return await self._database.glance(lambda connection: results.leafed(Passages(connection, query), query))

    async def _tried(self, query: SearchQuery, found: SearchResults) -> str | None:
        """What was tried in vain, in a sentence; None where there is nothing to say about it."""
        everywhere = unlimited(query)
        is_limited = everywhere != query
        if found.note in (results.WORDLESS, results.DAMAGED) or not (query.text.strip() or is_limited):
            return None
        if query.page > 1:
            return results.PAGE_EMPTY.format(page=query.page)
        # By words alone, as it says: something is always near in meaning.
        wider = await self._routed(replace(everywhere, limit=1, is_incognito=True)) if is_limited else found
        is_typed = bool(parse(query.text).alternatives) and not is_question(query.text)
        words = any_of(asked_for(query.text)).terms
        return results.nothing(words, is_typed=is_typed, is_limited=is_limited, is_wider=bool(wider.sessions))

    async def _discover(self, query: SearchQuery, lists: Sequence[RankedList]) -> SearchResults:
        """By the indexes; where they are stale, damaged or far behind, again after they were brought up to date."""
        lists = [*lists, *await self._retrieved(query)]
        for may_wait in (True, *[False] * REPAIRS):
            with contextlib.suppress(StoreError):
                if not may_wait:
                    await self._repair()
            with contextlib.suppress(StoreError):
                if found := await self._searched(query, may_wait, lists):
                    return found
        return SearchResults(query=query.text, shape="discovery", sessions=(), note=results.DAMAGED)

    async def _retrieved(self, query: SearchQuery) -> Sequence[RankedList]:
        """Of the retriever, where the whole of the text is meant, and not each of its words."""
        if self.retriever is None or query.is_incognito or not (query.is_turn or is_question(query.text)):
            return ()
        return [RankedList(NEAR_WEIGHT, [match.message_id for match in await self.retriever.retrieve(query)])]

    async def _searched(self, query: SearchQuery, may_wait: bool, lists: Sequence[RankedList]) -> SearchResults | None:
        """`_search`, for a turn at a glance while the last ones were quick: to wake a reader costs as much."""

        def timed(connection: Connection) -> SearchResults | None:
            began_s = time.perf_counter()
            try:
                return _search(connection, query, may_wait, lists)
            finally:
                self._search_s += (time.perf_counter() - began_s - self._search_s) / SEARCHES

        if query.is_turn and self._search_s < QUICK_S:
            return await self._database.glance(timed, SEARCH_S)
        return await self._database.read(timed)

    async def _repair(self) -> None:
        is_stale, is_behind, _ = await self._database.read(partial(_due, lag=text_index.TAIL_MESSAGES))
        if is_stale or (not is_behind and await self._database.write(indexing.flag_wrong)):
            while await self._database.write(indexing.rebuild):
                pass
        for _ in range(STEPS_BEFORE_SEARCH):
            if not await self._worked(indexing.advance):
                break

    async def tend(self) -> bool:
        """One small step of upkeep (rebuild, take in new messages, merge); True while there is more to do."""
        is_stale, is_behind, latest = await self._database.read(_due)
        if not await self._database.has_room(0):
            return False
        if is_stale or is_behind:
            step = indexing.rebuild if is_stale else indexing.advance
            await self._worked(lambda connection: step(connection, TEND_MESSAGES))
            return True
        if latest == self._merged_until:
            return False
        if await self._worked(indexing.merge):
            return True
        self._merged_until = latest
        return False

    async def verify(self) -> list[str]:
        """What is wrong with the indexes, as sentences; empty when they agree with the messages."""
        return await self._database.write(indexing.wrong)

    async def rebuild(self) -> int:
        """Builds all indexes anew beside other writers; returns the messages indexed."""
        await self._database.write(indexing.flag)
        total = 0
        while step := await self._database.write(indexing.rebuild):
            total += step
            await self._database.has_room(ROOM_WAIT_S)
        return total

    async def _worked(self, work: Callable[[Any], int]) -> int:
        """One step of work; a damaged index is flagged instead. A rebuild that fails is flagged and raised, so that it
        ends."""
        try:
            return await self._database.write(work)
        except StoreError:
            was_stale = await self._database.read(text_index.is_stale)
            if not await self._database.write(indexing.flag_wrong) or was_stale:
                raise
            return 1


def _due(connection: Connection, lag: int = indexing.LAG_MESSAGES) -> tuple[bool, bool, int]:
    """Whether the indexes are stale, whether the chunks are behind, and the message that was said last."""
    return text_index.is_stale(connection), indexing.is_behind(connection, lag), indexing.latest(connection)


def _search(
    connection: Connection, query: SearchQuery, may_wait: bool, lists: Sequence[RankedList]
) -> SearchResults | None:
    """As typed, or else any of the words, fused with the `lists`; None when the indexes cannot be asked or, if the
    query `may_wait`, are far behind."""
    if text_index.is_stale(connection):
        return None
    index, passages = TextIndex(connection, query), Passages(connection, query)
    also = tuple(chain.from_iterable(one.marks for one in lists))
    note = None
    # As typed; but what somebody says is seldom said again word for word.
    if not (query.is_turn or is_question(query.text)):
        plan = parse(query.text)
        if typed := _enough(index.find(plan), query):
            found = _fused(RankedMatches({}, typed, query.text, {}), index, lists)
            return results.discovery(passages, query, found.matches, plan.terms + also, scores=found.scores)
        note = results.LOOSE if plan.alternatives else results.UNTYPED
    if may_wait and indexing.is_behind(connection, text_index.TAIL_MESSAGES):
        return None
    # Any of the words: the candidates of the chunks, ranked; where these have none, and somebody searches, any message
    # with one of the words.
    asked = asked_for(query.text)
    names = [other.name for other in other_names(connection, asked, query.scopes, query.asker)]
    found = any_words(index, replace(query, text=asked), names)
    if query.is_turn:
        found = _fused(found, index, lists)
        return results.discovery(passages, query, found.matches, (), scores=found.scores)
    plan = any_of(found.text)
    marks = plan.terms + also
    if found.matches:
        marks += tuple(marks_of(query_terms(found.text)))
    else:
        found = found._replace(matches=_enough(index.find(plan), query))
    note = results.joined([note, results.respelled(found.corrected)]) if found.matches else None
    found = _fused(found, index, lists)
    note = results.WORDLESS if not (found.matches or plan.alternatives) else note
    return results.discovery(passages, query, found.matches, marks, note, found.scores)


def _fused(found: RankedMatches, index: TextIndex, lists: Sequence[RankedList]) -> RankedMatches:
    """With what the query may see and wants of the lists."""
    return fused_with(found, [(one.weight, index.among(one.ids)) for one in lists]) if lists else found


def _latest(connection: Connection, query: SearchQuery) -> SearchResults:
    """The newest messages that pass the filters, where there are no words to search for."""
    most = max(MATCHES_SHOWN, min(query.messages, MESSAGES_MAX))
    found = _enough(TextIndex(connection, query).latest(most), query)
    return results.discovery(Passages(connection, query), query, found, ())


def _enough(found: Iterator[MessageMatch], query: SearchQuery) -> list[MessageMatch]:
    wanted = max(LOOK_AT, min(query.messages, MESSAGES_MAX))
    sessions = page_of(query).stop + 1
    matches: list[MessageMatch] = []
    lineages: set[int] = set()
    for match in found:
        matches.append(match)
        lineages.add(match.root_id)
        if len(matches) >= wanted and len(lineages) >= sessions:
            break
    return matches


PASSAGES = 4
"""How many remembered messages a turn is given at most."""
PASSAGE_CHARS = 280
_TURN: Mapping[str, Any] = {"limit": PASSAGES, "window": 0, "is_prose": True, "is_turn": True}


class HistoryProvider(MemoryProvider):
    """Gives lines ``m<message id> <date>, <session title>: <who> (<origin>): <text>``; `zone` is for dates."""

    name = "history"

    def __init__(self, recall: HistorySearch, zone: str) -> None:
        self._recall = recall
        self._zone = ZoneInfo(zone)

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        query = SearchQuery(text=text[:2000], scopes=context.scopes, asker=context.account, **_TURN)
        findings = await self._recall.recall(
            replace(query, hidden=context.window, is_incognito=context.session.is_incognito)
        )
        return [line for found in findings.sessions if (line := self._line(found))]

    def _line(self, found: FoundSession) -> str:
        anchor = next((item for item in found.window if item.is_anchor), None)
        if anchor is None:
            return ""
        text = shortened(anchor.text, PASSAGE_CHARS)
        who = "you" if anchor.role == "assistant" else anchor.sender or "the person"
        if anchor.role == "user" and anchor.origin != "typed":
            who = f"{who} ({anchor.origin.replace('_', ' ')})"
        title = f", “{found.session.title}”" if found.session.title else ""
        local = anchor.at.astimezone(self._zone)
        return f"m{anchor.message_id} {local.day} {local:%B %Y}{title}: {who}: {text}"


BUDGET_CHARS = 6_000
BUDGET_RANGE = (500, 50_000)
BROWSE_SESSIONS = 10
PATIENCE_S = 120.0  # longer than the model calls of `expansion` together, so that no result is lost


# What they mean is told to the model by `data/prompts.toml`; a docstring would be told too.
class _Arguments(Arguments):
    query: str = ""
    role_filter: list[Role] | None = None
    before: str | None = None
    after: str | None = None
    title: str | None = None
    sender: str | None = None
    platform: list[str] | None = None
    limit: int = 3
    page: int = 1
    expand: bool = False
    rerank: bool = False
    summarize: bool = False
    session_id: int | None = None
    around_message_id: int | None = None
    window: int = 5
    budget_chars: int = BUDGET_CHARS


def session_search(recall: HistorySearch, zone: str = "UTC") -> Tool:
    """Answers with the JSON of ``recall --json``, its texts cut to `budget_chars`; dates are those of `zone` (IANA
    name)."""
    place = ZoneInfo(zone)

    async def run(asked: _Arguments, context: ToolContext) -> str:
        query = _query(asked, context, place)
        try:
            findings = await recall.recall(query)
        except StoreError as error:
            raise ToolError(f"The history cannot be searched just now: {error}") from error
        result = results.to_json(findings)
        for found, shown in zip(findings.sessions, result["sessions"], strict=True):
            _mark_own(found, shown, context)
        if not findings.sessions:
            result["note"] = results.no_results(findings)
        return json.dumps(result, ensure_ascii=False)

    marks = {"is_quote": True, "is_reading": True, "patience_s": PATIENCE_S}
    return tool_of("session_search", _Arguments, run, "core.search", **marks)


def _query(asked: _Arguments, context: ToolContext, zone: ZoneInfo) -> SearchQuery:
    is_browsing = not asked.query.strip() and asked.session_id is None and asked.around_message_id is None
    limit = BROWSE_SESSIONS if is_browsing and "limit" not in asked.model_fields_set else asked.limit
    query = SearchQuery(
        scopes=context.scopes,
        asker=context.account,
        text=asked.query,
        roles=tuple(asked.role_filter or DEFAULT_ROLES),
        platforms=tuple(name.strip().casefold() for name in asked.platform or ()),
        title=asked.title,
        limit=limit,
        page=asked.page,
        is_expanded=asked.expand,
        is_reranked=asked.rerank,
        is_summarized=asked.summarize,
        session=asked.session_id,
        around=asked.around_message_id,
        window=asked.window,
        budget_chars=max(BUDGET_RANGE[0], min(asked.budget_chars, BUDGET_RANGE[1])),
        hidden=context.window,
        payer=Payer(session_id=context.session.id, scope=context.scope, user_id=context.sender.id),
        is_incognito=context.session.is_incognito,
    )
    if asked.sender and asked.sender.strip():
        query = said_by(query, asked.sender)
    for key, value in (("before", asked.before), ("after", asked.after)):
        if value and value.strip():
            timed = within_time(query, key, value, context.now, zone)
            if timed is None:
                raise ToolError(f"{key}: {value[:40]!r} is no time I can read; write 2026-05-01, 2026-05 or last week.")
            query = timed
    return query


def _mark_own(found: FoundSession, shown: dict[str, Any], context: ToolContext) -> None:
    """Marks with `is_asker` what the asker said, here or in a private conversation of their own."""
    own = {Scope.account(context.session.address.platform, context.sender.id)}
    if not context.scope.is_room:
        own.update(scope for scope in context.scopes if not scope.is_room)
    platform = found.session.address.platform
    for name in ("bookend_start", "window", "bookend_end"):
        for item, entry in zip(getattr(found, name), shown[name], strict=True):
            said_by = Scope.account(platform, item.sender_id) if item.sender_id else found.session.scope
            if item.role == "user" and item.origin != "imported" and said_by in own:
                entry["is_asker"] = True
