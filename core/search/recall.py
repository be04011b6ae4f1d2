"""Search over everything that was said: discovery, scroll, read and browse, each in one hop to the database thread.

Fills the role `Recall`. What is asked is decided in `filters.py` and `query.py`, found in `matches.py` and
`inquiry.py`, shown by `passages.py`; here the shapes are chosen and put together. A damaged index costs time, never an
answer.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from zoneinfo import ZoneInfo

from core.dates import periods
from core.errors import StoreError
from core.ports import Clock
from core.search import filters, rendering
from core.search.highlight import Highlighter, snippet
from core.search.query import any_of, asked_for, is_plain_question, is_word_list, parse
from core.search.relaxed import completed, inquire
from core.search.rendering import within
from core.store import passages
from core.store.passages import SESSION_COLUMNS
from core.store.query import FoundSession, Hit, MessageMatch, SearchPlan, SearchQuery, SearchResults
from core.store.rows import moment
from core.store.sqlite import chunk_index, index_maintenance, message_search
from core.store.sqlite.database import Database
from core.text.terms import marks_of, query_terms
from core.types import Session

SESSIONS_MAX = 10
PAGES_MAX = 10
MESSAGES_MAX = 1_000
MATCHES_SHOWN = 5
LOOK_AT = 20
"""So many matches are looked at even when enough sessions are known: a session may have more than one."""
TEND_MESSAGES = 128
"""In one step beside others, who wait for it: about 10 ms."""
STEPS_BEFORE_SEARCH = 10
"""A search that meets a damaged index, or one far behind, does so much of the work before it answers without."""


class Recall:
    """Recall over state.db. `clock` is asked for nothing but the present moment; `zone` is the IANA name of the zone in
    which typed dates are meant."""

    def __init__(self, database: Database, clock: Clock, zone: str = "UTC") -> None:
        self._database = database
        self._clock = clock
        self._zone = ZoneInfo(zone)
        self._merged_until = -1

    async def recall(self, query: SearchQuery) -> SearchResults:
        """The findings of a query, never raising for anything that a person can type. Filters are taken out of the text
        first. Shapes: `around` -> scroll; `session` without text -> read; text, or whose words only -> discovery;
        nothing -> browse."""
        started = time.perf_counter()
        asked = filters.read(query, self._clock.now(), self._zone)
        findings = await self._found(asked.query)
        notes = [*asked.notes, findings.note]
        if not findings.sessions and findings.shape in ("discovery", "browse"):
            notes.append(await self._tried(asked.query, findings))
        if query.budget_chars is not None:
            findings = within(findings, query.budget_chars)
        took_ms = round((time.perf_counter() - started) * 1000, 3)
        return replace(findings, query=query.text, note=rendering.joined(notes), took_ms=took_ms)

    async def _found(self, query: SearchQuery) -> SearchResults:
        if query.around is not None:
            return await self._database.glance(lambda connection: _scroll(connection, query))
        if query.text.strip():
            return await self._discover(query)
        is_narrowed = query.platforms or query.title or query.after is not None or query.before is not None
        is_by = query.is_own or query.sender or query.roles != filters.DEFAULT_ROLES
        if is_by or (query.session is not None and is_narrowed):
            return await self._database.read(lambda connection: _latest(connection, query))
        if query.session is not None:
            return await self._database.glance(lambda connection: _read(connection, query))
        return await self._database.glance(lambda connection: _browse(connection, query))

    async def _tried(self, query: SearchQuery, findings: SearchResults) -> str | None:
        """What was tried in vain, in a sentence; None where there is nothing to say about it."""
        limits = filters.limits(query, self._zone)
        if findings.note in (rendering.WORDLESS, rendering.DAMAGED) or not (query.text.strip() or limits):
            return None
        wider = await self._found(replace(filters.unlimited(query), limit=1)) if limits else findings
        plan = parse(query.text)
        words = () if plan.without else any_of(asked_for(query.text)).terms
        is_typed = not is_plain_question(query.text) and plan.is_typed
        return rendering.nothing(words, limits, is_typed=is_typed, is_wider=bool(wider.sessions))

    async def tend(self) -> bool:
        """One small step of upkeep: rebuilds what is flagged stale, else takes what was said into chunks, else merges;
        True while there is more to do."""
        stale, behind, latest = await self._database.read(
            lambda connection: (
                index_maintenance.is_stale(connection),
                chunk_index.is_behind(connection),
                _last_id(connection),
            )
        )
        if stale or behind:
            step = index_maintenance.rebuild if stale else chunk_index.advance
            await self._worked(lambda connection: step(connection, TEND_MESSAGES))
            return True
        if latest == self._merged_until:
            return False
        if await self._worked(index_maintenance.merge):
            return True
        self._merged_until = latest
        return False

    async def verify(self) -> list[str]:
        """What is wrong with the indexes, as sentences; empty when they agree with the messages."""
        return await self._database.write(index_maintenance.wrong)

    async def rebuild(self) -> int:
        """Builds all indexes anew, step by step beside other writers; returns how many messages went in."""
        await self._database.write(index_maintenance.flag)
        total = 0
        while step := await self._database.write(index_maintenance.rebuild):
            total += step
        return total

    async def _discover(self, query: SearchQuery) -> SearchResults:
        findings = await self._asked(query, may_wait=True)
        if findings is None:
            with contextlib.suppress(StoreError):
                await self._mend()
                await self._catch_up()
            findings = await self._asked(query, may_wait=False)
        if findings is None:
            findings = await self._database.read(lambda connection: _scanned(connection, query))
        return findings

    async def _asked(self, query: SearchQuery, may_wait: bool) -> SearchResults | None:
        """What the indexes say; None when they are stale or damaged, or, if it `may_wait`, far behind. Where more than
        an index is broken, the scan that follows says so."""
        mentioned = periods.mentioned(query.text, self._clock.now(), self._zone)
        try:
            return await self._database.read(lambda connection: _discovery(connection, query, mentioned, may_wait))
        except StoreError:
            return None

    async def _mend(self) -> None:
        """Rebuilds as much as a person waits for; `tend` does the rest."""
        if not await self._database.read(index_maintenance.is_stale):
            if await self._database.read(_is_far_behind) or not await self._database.write(index_maintenance.wrong):
                return
            await self._database.write(index_maintenance.flag)
        for _ in range(STEPS_BEFORE_SEARCH):
            if not await self._database.write(index_maintenance.rebuild):
                return

    async def _catch_up(self) -> None:
        """Takes into chunks what nobody tended since it was said (after an import), as far as a person waits."""
        for _ in range(STEPS_BEFORE_SEARCH):
            if not await self._worked(chunk_index.advance):
                return

    async def _worked(self, work: Callable[[sqlite3.Connection], int]) -> int:
        """One step of work on the indexes. Where it fails because one is damaged, that is flagged instead. A rebuild
        that fails begins anew at the next call; raised is it all the same, so that nobody tries for ever."""
        try:
            return await self._database.write(work)
        except StoreError:
            was_stale = await self._database.read(index_maintenance.is_stale)
            if not await self._database.write(index_maintenance.wrong):
                raise
            await self._database.write(index_maintenance.flag)
            if was_stale:
                raise
            return 1


def _discovery(
    connection: sqlite3.Connection, query: SearchQuery, mentioned: periods.Period | None, may_wait: bool
) -> SearchResults | None:
    """Sessions with matches: a plain question goes to the chunks; all else is searched as typed, and where that finds
    nothing, or a list of words too little, as any of its words. None when the indexes cannot be asked."""
    if index_maintenance.is_stale(connection):
        return None
    plan = parse(query.text)
    is_question = is_plain_question(query.text)
    if plan.without and not query.is_prose:
        return _latest(connection, query, plan)
    gathered = [] if is_question else _gathered(message_search.find(connection, plan, query), query)
    is_short = len({match.root_id for match in gathered}) <= _page(query).stop and is_word_list(query.text)
    if gathered and not is_short:
        return _shown(connection, gathered, plan, query, None)
    if may_wait and _is_far_behind(connection):
        return None
    note = None if is_question else rendering.LOOSE if plan.is_typed else rendering.UNTYPED
    loose = replace(query, text=asked_for(query.text))
    inquiry = inquire(connection, loose, mentioned)
    if gathered:
        typed, inquiry = gathered, completed(gathered, inquiry)
        note = rendering.PARTLY if len(inquiry.matches) > len(typed) else None
    plan = any_of(inquiry.text)
    gathered = inquiry.matches
    if gathered:
        plan = replace(plan, terms=(*plan.terms, *marks_of(query_terms(inquiry.text))))
    else:
        gathered = _gathered(message_search.find(connection, plan, loose), loose)
    if not plan.alternatives:
        return _shown(connection, [], plan, query, rendering.WORDLESS)
    notes = (
        [note, rendering.respelled(inquiry.respelled), rendering.WEAK if inquiry.is_weak else None] if gathered else []
    )
    return _shown(connection, gathered, plan, query, rendering.joined(notes), inquiry.scores)


def _scanned(connection: sqlite3.Connection, query: SearchQuery) -> SearchResults:
    """Discovery without the indexes, which alone know what to leave out."""
    is_less = parse(query.text).without and not query.is_prose
    plan = SearchPlan() if is_less else any_of(asked_for(query.text))
    gathered = _gathered(message_search.scan(connection, plan.terms, query), query) if plan.terms else []
    return _shown(connection, gathered, plan, query, rendering.DAMAGED)


def _gathered(found: Iterator[MessageMatch], query: SearchQuery) -> list[MessageMatch]:
    """The best matches, as many as it takes to fill the sessions and the flat list that are asked for."""
    wanted = max(LOOK_AT, _clamped(query.messages, MESSAGES_MAX))
    limit = _page(query).stop + 1
    gathered: list[MessageMatch] = []
    lineages: set[int] = set()
    for match in found:
        gathered.append(match)
        lineages.add(match.root_id)
        if len(gathered) >= wanted and len(lineages) >= limit:
            break
    return gathered


def _shown(
    connection: sqlite3.Connection,
    gathered: list[MessageMatch],
    plan: SearchPlan,
    query: SearchQuery,
    note: str | None,
    scores: Mapping[int, float] | None = None,
) -> SearchResults:
    """What was gathered, with texts: the best sessions and, when asked for, the flat list of messages. `scores` order
    the lineages where they are not ordered by their best message."""
    scores = scores or {}
    lineages: dict[int, list[MessageMatch]] = {root: [] for root in scores}
    for match in gathered:
        lineages.setdefault(match.root_id, []).append(match)
    ordered = [group[:MATCHES_SHOWN] for group in lineages.values() if group]
    best = ordered[_page(query)]
    flat = gathered[: _clamped(query.messages, MESSAGES_MAX)]
    wanted = [*flat, *(match for group in best for match in group)]
    hits, known = _hits(connection, wanted, {group[0].session_id for group in best}, Highlighter(plan.terms), query)
    found = []
    for group in best:
        top = group[0]
        if top.session_id in known:
            found.append(
                passages.surroundings(
                    connection,
                    known[top.session_id],
                    top.message_id,
                    query,
                    matches=tuple(hits[match.message_id] for match in group),
                    score=scores.get(top.root_id, top.score),
                )
            )
    return SearchResults(
        query=query.text,
        shape="discovery",
        sessions=tuple(found),
        messages=tuple(hits[match.message_id] for match in flat),
        note=rendering.joined([note, _ending(len(ordered) > _page(query).stop, query)]),
        has_more=len(ordered) > _page(query).stop and query.page < PAGES_MAX,
    )


def _hits(
    connection: sqlite3.Connection, wanted: list[MessageMatch], shown: set[int], marker: Highlighter, query: SearchQuery
) -> tuple[dict[int, Hit], dict[int, Session]]:
    """What was found, with its text, and those of its sessions that are `shown`; both by id."""
    scores = {match.message_id: match.score for match in wanted}
    hits: dict[int, Hit] = {}
    sessions: dict[int, Session] = {}
    for row in passages.matching(connection, list(scores), query) if scores else ():
        session_id = row[0]
        if session_id in shown and session_id not in sessions:
            sessions[session_id] = passages.session_of(row)
        message_id, role, created_at, external_id, text, tools, platform_id, link_base = row[SESSION_COLUMNS:]
        hits[message_id] = Hit(
            message_id=message_id,
            session_id=session_id,
            role=role,
            snippet=_snippet(text, tools, marker),
            rank=scores[message_id],
            created_at=moment(created_at),
            external_id=external_id,
            link=passages.link(link_base, platform_id),
        )
    return hits, sessions


def _snippet(text: str, tools: str | None, marker: Highlighter) -> str:
    """From the text, or from the tool call where only that matches."""
    if tools and (not text or not marker.spans(text)):
        return snippet(tools, marker)
    return snippet(text, marker)


def _latest(connection: sqlite3.Connection, query: SearchQuery, plan: SearchPlan | None = None) -> SearchResults:
    """The newest messages that the filters let through, and the plan does not leave out, where there are no words to
    search for."""
    most = max(MATCHES_SHOWN, _clamped(query.messages, MESSAGES_MAX))
    gathered = _gathered(message_search.latest(connection, query, most, plan), query)
    return _shown(
        connection, gathered, SearchPlan(), query, rendering.WITHOUT if plan is not None and gathered else None
    )


def _scroll(connection: sqlite3.Connection, query: SearchQuery) -> SearchResults:
    """The window around one message. Its session may be named by any session of the lineage, or not at all."""
    anchor = query.around or 0
    session = passages.session_of_message(connection, anchor, query)
    found: tuple[FoundSession, ...] = ()
    if session is not None and _is_named(connection, session, query):
        found = (passages.surroundings(connection, session, anchor, query, bookend=0),)
    return SearchResults(query=query.text, shape="scroll", sessions=found)


def _read(connection: sqlite3.Connection, query: SearchQuery) -> SearchResults:
    known = passages.sessions(connection, _named(query), query)
    found = tuple(passages.reading(connection, session, query) for session in known.values())
    return SearchResults(query=query.text, shape="read", sessions=found)


def _browse(connection: sqlite3.Connection, query: SearchQuery) -> SearchResults:
    found, has_more = passages.recent(connection, query, _page(query, passages.BROWSE_MAX))
    return SearchResults(
        query=query.text,
        shape="browse",
        sessions=tuple(found),
        note=_ending(has_more, query),
        has_more=has_more and query.page < PAGES_MAX,
    )


def _is_named(connection: sqlite3.Connection, session: Session, query: SearchQuery) -> bool:
    """Whether the query names a session of this one's lineage, or none."""
    if query.session is None or query.session == session.id:
        return True
    named = passages.sessions(connection, _named(query), query).get(query.session)
    return named is not None and (named.root_id or named.id) == (session.root_id or session.id)


def _named(query: SearchQuery) -> list[int]:
    return [] if query.session is None else [message_search.bounded(query.session)]


def _page(query: SearchQuery, most: int = SESSIONS_MAX) -> slice:
    """Which of the sessions, best first, are shown: none behind the last page."""
    limit = max(1, _clamped(query.limit, most))
    start = limit * _clamped(query.page - 1, PAGES_MAX)
    return slice(start, start + limit if query.page <= PAGES_MAX else start)


def _ending(has_more: bool, query: SearchQuery) -> str | None:
    return rendering.LAST_PAGE if has_more and query.page == PAGES_MAX else None


def _is_far_behind(connection: sqlite3.Connection) -> bool:
    return chunk_index.is_behind(connection, chunk_index.TAIL_MESSAGES)


def _last_id(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0])


def _clamped(number: int, most: int) -> int:
    return max(0, min(number, most))
