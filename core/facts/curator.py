"""Looks through the facts while nobody is there, and doubts what is stale, contradicted or nearly the same. In small
portions; every doubt is logged with its reason, once for each time a fact was said. Changes no fact.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from datetime import timedelta

import structlog

from config.settings import CuratorOptions
from core.ports import Clock
from core.store.fact_search import FactSearch
from core.store.facts import Fact, Facts
from core.text.names import entity_key
from core.text.terms import terms_of
from core.types import Scope

WORKING_LIFE = timedelta(days=14)
EPISODE_LIFE = timedelta(days=365)
DOUBTFUL = 0.25
"""Less trust than this is worth a look."""
ALIKE = 0.8
"""Jaccard similarity of terms from which on two facts are shown as nearly the same."""
TERMS_LEAST = 4
"""Shorter facts are alike by accident."""
COMPARED = 500
"""So many of the latest facts of a scope are compared with each other."""
LOOKED_AT = 5_000
"""Of the facts of a scope."""


class Curator:
    def __init__(self, facts: Facts, search: FactSearch, clock: Clock, options: CuratorOptions) -> None:
        self._facts = facts
        self._search = search
        self._clock = clock
        self._options = options
        self._again = timedelta(seconds=options.again_s)
        self._scope: Scope | None = None
        """The last that was looked through, where a round was cut short."""
        self._seen = -1
        self._done_at = clock.now() - self._again
        self._log = structlog.get_logger("curator")

    async def tend(self) -> int:
        """One portion, where it is quiet and something has changed since the last one; returns how many doubts it
        logged. A round over all scopes that was cut short goes on where it was."""
        if not await self.is_quiet():
            return 0
        is_unchanged = self._scope is None and await self._search.last_change() == self._seen
        if is_unchanged and self._clock.now() - self._done_at < self._again:
            return 0
        count = await self._portion()
        if count:
            self._log.info("facts were looked through", doubts=count)
        return count

    async def is_quiet(self) -> bool:
        said_at = await self._search.last_said_at()
        return said_at is None or self._clock.now() - said_at >= timedelta(seconds=self._options.idle_s)

    async def _portion(self) -> int:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._options.max_s
        count = 0
        while (scope := await self._search.next_scope(self._scope)) is not None:
            for fact, reason in await self._doubts(scope):
                if count >= self._options.max_changes or loop.time() >= ends_at:
                    return count
                count += await self._facts.flag(fact.id, frozenset((scope,)), reason) is not None
            self._scope = scope
        self._scope = None
        self._seen, self._done_at = await self._search.last_change(), self._clock.now()
        return count

    async def _doubts(self, scope: Scope) -> list[tuple[Fact, str]]:
        """Each fact once, with its reason; without those that were doubted since they were last said."""
        scopes = frozenset((scope,))
        known = await self._facts.page(scopes, 0, LOOKED_AT)
        facts = [fact for fact in known if fact.is_open and not fact.is_pinned]
        doubts = {fact: reason for fact in facts if (reason := self._staleness(fact))}
        for latest, *others in await self._search.conflicts(scopes):
            doubts |= {fact: f"says otherwise than f{latest.id}" for fact in others if not fact.is_pinned}
        alike = await asyncio.to_thread(lambda: list(_alike(facts[:COMPARED])))
        doubts |= {fact: f"says nearly the same as f{later.id}" for later, fact in alike}
        flagged_at = await self._search.flagged_at(scope)
        return [
            (fact, reason)
            for fact, reason in doubts.items()
            if fact.id not in flagged_at or flagged_at[fact.id] < fact.said_at
        ]

    def _staleness(self, fact: Fact) -> str:
        now = self._clock.now()
        if fact.valid_to is not None and fact.valid_to <= now:
            return "the time is over until which it was said to hold"
        if fact.kind == "working" and fact.said_at < now - WORKING_LIFE:
            return "it mattered for some days, and was not said again"
        if fact.kind == "episode" and fact.said_at < now - EPISODE_LIFE:
            return "it happened over a year ago"
        return "it was called wrong" if fact.trust < DOUBTFUL else ""


def _alike(facts: Sequence[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Pairs that say nearly the same of the same names and numbers, the one said later first."""
    groups: defaultdict[Hashable, list[tuple[Fact, frozenset[str]]]] = defaultdict(list)
    for fact in facts:
        terms = frozenset(terms_of(fact.content))
        if len(terms) >= TERMS_LEAST:
            names = frozenset(map(entity_key, fact.entities))
            numbers = frozenset(term for term in terms if term.isdecimal())
            groups[fact.account, fact.kind, fact.attribute, fact.value, names, numbers].append((fact, terms))
    for group in groups.values():
        for place, (fact, terms) in enumerate(group):
            for other, others in group[place + 1 :]:
                if len(terms & others) >= ALIKE * len(terms | others):
                    yield fact, other
