"""Keeps the facts in order while nobody is there: merges what says the same, doubts what is stale, contradicted or
nearly the same. In small portions; every change is logged with its reason and can be undone.

Deletes nothing, and closes nothing that a person has written or pinned. What was undone is not done again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Hashable, Iterator, Sequence
from contextlib import aclosing
from datetime import timedelta

import structlog

from config.settings import CuratorOptions
from core.errors import Refused
from core.ports import Clock
from core.store.fact_search import FactSearch
from core.store.facts import Fact, Facts
from core.text.names import entity_key
from core.text.normalize import fold, plain, words_of
from core.text.terms import terms_of
from core.types import Scope

ALIKE = 0.8
"""Jaccard similarity of terms from which on two facts are shown as nearly the same."""
TERMS_LEAST = 4
"""Shorter facts are alike by accident."""
COMPARED = 500
"""The latest facts of a scope."""
STALE_MOST = 1_000
_FILLING = frozenset("a an the now nowadays currently really very also too just actually please btw".split())  # noqa: SIM905


class Curator:
    def __init__(self, facts: Facts, search: FactSearch, clock: Clock, options: CuratorOptions) -> None:
        self._facts = facts
        self._search = search
        self._clock = clock
        self._options = options
        self._again = timedelta(seconds=options.again_s)
        self._scope: Scope | None = None
        self._is_under_way = False
        self._seen = -1
        self._done_at = clock.now() - self._again
        self._log = structlog.get_logger("curator")

    async def tend(self) -> int:
        """One portion, where it is quiet and something has changed since the last one; returns how many changes it
        made. A round over all scopes that was cut short goes on where it was."""
        now = self._clock.now()
        if not await self.is_quiet():
            return 0
        if not self._is_under_way:
            if await self._search.last_change() == self._seen and now - self._done_at < self._again:
                return 0
            self._is_under_way, self._scope = True, None
        return await self._portion()

    async def is_quiet(self) -> bool:
        said_at = await self._search.last_said_at()
        return said_at is None or self._clock.now() - said_at >= timedelta(seconds=self._options.idle_s)

    async def _portion(self) -> int:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._options.max_s
        count = 0
        while (scope := await self._search.next_scope(self._scope)) is not None:
            async with aclosing(self._steps(scope)) as steps:
                async for is_changed in steps:
                    count += is_changed
                    if count >= self._options.max_changes or loop.time() >= ends_at:
                        self._log.info("facts were put in order, and there is more to do", changes=count)
                        return count
            self._scope = scope
        self._is_under_way = False
        self._seen, self._done_at = await self._search.last_change(), self._clock.now()
        if count:
            self._log.info("facts were put in order", changes=count)
        return count

    async def _steps(self, scope: Scope) -> AsyncGenerator[bool, None]:
        """The idempotent steps of one scope; each yields whether it has changed something."""
        scopes = frozenset((scope,))
        past = await self._search.doubts(scope)
        undone = {fact_id for fact_id, action, _ in past if action == "undo"}
        flagged = {fact_id: at for fact_id, action, at in past if action == "flag"}
        facts = await self._facts.page(scopes, 0, COMPARED)
        same = await asyncio.to_thread(_same, facts)
        for group in [*await self._search.duplicates(scopes), *same]:
            yield await self._merge(group, scopes, undone)
        doubts = [
            (fact, self._staleness(fact)) for fact in await self._search.stale(scopes, self._clock.now(), STALE_MOST)
        ]
        for group in await self._search.conflicts(scopes):
            doubts += [(fact, f"says otherwise than f{group[0].id}") for fact in group[1:]]
        alike = await asyncio.to_thread(lambda: list(_alike(facts)))
        doubts += [(later, f"says nearly the same as f{earlier.id}") for earlier, later in alike]
        for fact, reason in doubts:
            # Once for each time it was said.
            if fact.is_pinned or (fact.id in flagged and flagged[fact.id] >= fact.said_at):
                continue
            flagged[fact.id] = self._clock.now()
            yield await self._facts.flag(fact.id, scopes, reason) is not None

    async def _merge(self, group: Sequence[Fact], scopes: frozenset[Scope], undone: set[int]) -> bool:
        keep, others = _kept(group)
        drop = [fact.id for fact in others if fact.id not in undone]
        if not drop:
            return False
        before = await self._search.last_change()
        try:
            await self._facts.merge(keep.id, drop, scopes, f"says the same as f{keep.id}")
        except Refused as refusal:
            self._log.info("facts could not be merged", reason=str(refusal))
        return await self._search.last_change() > before

    def _staleness(self, fact: Fact) -> str:
        if fact.valid_to is not None and fact.valid_to <= self._clock.now():
            return "the time is over until which it was said to hold"
        if fact.kind == "working":
            return "it mattered for some days, and was not said again"
        if fact.kind == "episode":
            return "it happened over a year ago"
        return "it was called wrong"


def _same(facts: Sequence[Fact]) -> list[list[Fact]]:
    """Groups of open facts of one person that say the same."""
    groups: defaultdict[Hashable, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.is_open:
            groups[(*_place(fact), fact.valid_from, _key(fact.content))].append(fact)
    return [group for group in groups.values() if len(group) > 1]


def _alike(facts: Sequence[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Pairs that say nearly the same, the earlier one first."""
    groups: defaultdict[Hashable, list[tuple[Fact, frozenset[str]]]] = defaultdict(list)
    for fact in facts:
        terms = frozenset(terms_of(fact.content))
        if fact.is_open and len(terms) >= TERMS_LEAST:
            names = frozenset(map(entity_key, fact.entities))
            numbers = frozenset(term for term in terms if term.isdecimal())
            groups[(*_place(fact), names, numbers)].append((fact, terms))
    for group in groups.values():
        for place, (fact, terms) in enumerate(group):
            for other, others in group[place + 1 :]:
                if len(terms & others) >= ALIKE * len(terms | others) and _key(fact.content) != _key(other.content):
                    yield fact, other


def _kept(group: Sequence[Fact]) -> tuple[Fact, list[Fact]]:
    """The one to keep, and those it may replace: none that a person wrote or pinned, or that began at another time."""
    keep = max(group, key=lambda one: (one.origin == "person", one.is_pinned, bool(one.valid_from), one.trust, one.id))
    drop = [
        fact
        for fact in group
        if fact.id != keep.id
        and fact.origin != "person"
        and not fact.is_pinned
        and fact.valid_from in (None, keep.valid_from)
        and (fact.scope, fact.account) == (keep.scope, keep.account)
    ]
    return keep, drop


def _place(fact: Fact) -> tuple[Hashable, ...]:
    return fact.scope, fact.account, fact.kind, fact.attribute, fact.value


def _key(content: str) -> tuple[str, ...]:
    return tuple(word for word in words_of(plain(fold(content))[0]) if word not in _FILLING)
