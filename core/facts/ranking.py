"""Puts candidates in order: how well they fit the question, times how sure they are, times how fresh.

The weights are those of the evaluation in `tests/bench/knowing.py`, where holographic vectors (`hrr.py`) added nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from core.facts.claims import is_first_person, sign
from core.store.facts import Fact, FactKind, Facts, Grain
from core.text.names import ME, hints_of, keys_in
from core.text.terms import query_terms, terms_of
from core.types import Account, Scope

QUESTION_CHARS = 2_000


class Question:
    """`is_own`: about who asks, `asker` (None: nobody in particular, as at the command line)."""

    def __init__(self, text: str, scopes: frozenset[Scope], now: datetime, asker: Account | None = None) -> None:
        asked = text[:QUESTION_CHARS]
        self.terms, self.keys = tuple(query_terms(asked)), keys_in(asked)
        self.is_own = is_first_person(asked)
        self.is_past = sign("past").search(asked) is not None
        self.scopes, self.now, self.asker = scopes, now, asker

    def wants(self, fact: Fact) -> bool:
        """Whether a fact is worth telling: it is current, its value is named, or the question is about the past."""
        return fact.is_open or self.is_past or not set(self.terms).isdisjoint(terms_of(fact.value))

    def aims_at(self, fact: Fact) -> bool:
        """Whether the fact is about who asks, or somebody whom the question names."""
        subject, _, what = (fact.attribute or "").partition("|")
        is_named = bool(what) and subject in self.keys
        is_me = subject == ME if what else is_first_person(fact.content)
        if fact.scope.is_room:
            is_by_asker = fact.account is not None and fact.account == self.asker
            is_me = is_by_asker and (is_me or (bool(what) and ":" in subject))
        return is_named or (self.is_own and is_me)


CLOSED = 0.3
"""What is over counts so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRanking:
    """Weights of bm25, shared words, shared names and `Question.aims_at`; `half_life_days` by kind, for kinds that age
    (a pinned fact does not)."""

    text: float = 0.5
    jaccard: float = 0.15
    names: float = 0.15
    aim: float = 0.2
    half_life_days: Mapping[FactKind, float] = field(default_factory=dict)

    def ranked(self, found: Sequence[tuple[Fact, float, int]], question: Question) -> list[tuple[Fact, float]]:
        """`Facts.candidates`, best first, with scores from 0 to 1."""
        best = max((text for _, text, _ in found), default=0.0) or 1.0
        most = max((names for _, _, names in found), default=0) or 1
        scored = [
            (
                fact,
                self.fit(fact, text / best, names / most, question) * fact.trust * self.freshness(fact, question.now),
            )
            for fact, text, names in found
        ]
        return sorted(scored, key=lambda item: (-item[1], -item[0].id))

    def fit(self, fact: Fact, text: float, names: float, question: Question) -> float:
        """How well a fact fits the question, where `text` and `names` are 1 for the best of all."""
        asked, held = set(question.terms), set(terms_of(fact.content))
        # Jaccard similarity of terms; the fact's include the words its attribute is asked by.
        shared = len(asked & (held | set(hints_of(fact.attribute)))) / len(asked | held) if asked else 0.0
        fit = self.text * text + self.names * names
        return fit + self.jaccard * shared + self.aim * question.aims_at(fact)

    def freshness(self, fact: Fact, now: datetime) -> float:
        """From 1 to 0: halves with each half-life since it was last said; times `CLOSED` for what is over."""
        life_days = None if fact.is_pinned else self.half_life_days.get(fact.kind)
        age_days = max(0.0, (now - fact.said_at) / timedelta(days=1))
        fresh = 1.0 if life_days is None else 0.5 ** (age_days / life_days)
        is_over = not fact.is_open or (fact.valid_to is not None and fact.valid_to <= now)
        return fresh * (CLOSED if is_over else 1.0)


WORKING_LIFE = timedelta(days=14)
EPISODE_LIFE = timedelta(days=365)
WORTH = 0.35
"""A fact that scores less than this part of the best is left out."""


class KnownFacts:
    """Ranked search; `zone`: an IANA name, for dates."""

    def __init__(self, facts: Facts, blend: FactRanking, zone: str) -> None:
        self._facts = facts
        self._blend = blend
        self.zone = ZoneInfo(zone)

    async def search(self, question: Question, limit: int = 10) -> list[Fact]:
        """Best first; none where no word and no name of the question is known."""
        found = await self._facts.candidates(question.terms, question.keys, question.scopes)
        ranked = self._blend.ranked(_held(found), question)
        best = ranked[0][1] if ranked else 0.0
        worth = [fact for fact, score in ranked if score >= WORTH * best]
        current = {fact.attribute for fact in worth if fact.attribute and fact.is_open}
        return [fact for fact in worth if fact.attribute not in current or question.wants(fact)][:limit]

    async def doubts(self, facts: Sequence[Fact], scopes: frozenset[Scope], now: datetime) -> dict[int, str]:
        """Why some of these facts may not be so any more, by id; a person's judgement since it was last said settles
        it."""
        judged_at = await self._facts.judged_at([fact.id for fact in facts], scopes)
        found = {}
        for latest, *others in await self._facts.conflicts(scopes):
            found.update({fact.id: f"says otherwise than f{latest.id}" for fact in others})
        found.update({fact.id: reason for fact in facts if (reason := _staleness(fact, now))})
        unsettled = (one for one in facts if one.id not in judged_at or judged_at[one.id] < one.said_at)
        return {one.id: found[one.id] for one in unsettled if one.id in found and one.is_open and not one.is_pinned}

    def line_of(self, fact: Fact) -> str:
        content = fact.content.rstrip(" .")
        who = f"{fact.speaker}: " if fact.scope.is_room and fact.speaker else ""
        return f"{who}{content} ({'; '.join((*self.span(fact), f'said on {self.day(fact.said_at)}'))})"

    def span(self, fact: Fact) -> tuple[str, ...]:
        """``since May 2026``, ``until May 2026, no longer so``."""
        since = () if fact.valid_from is None else (f"since {self.day(fact.valid_from, fact.grain)}",)
        if fact.is_open:
            return since
        until = f"until {self.day(fact.valid_to, 'month')}, no longer so" if fact.valid_to else ""
        return (*since, until or "said again in other words")

    def day(self, at: datetime, grain: Grain = "day") -> str:
        """``3 May 2026``, ``May 2026`` or ``2026``."""
        local = at.astimezone(self.zone)
        if grain == "year":
            return f"{local:%Y}"
        return f"{local:%B %Y}" if grain == "month" else f"{local.day} {local:%B %Y}"


def _staleness(fact: Fact, now: datetime) -> str:
    if fact.valid_to is not None and fact.valid_to <= now:
        return "the time is over until which it was said to hold"
    if fact.kind == "working" and fact.said_at < now - WORKING_LIFE:
        return "it mattered for some days, and was not said again"
    return "it happened over a year ago" if fact.kind == "episode" and fact.said_at < now - EPISODE_LIFE else ""


def _held(found: Sequence[tuple[Fact, float, int]]) -> list[tuple[Fact, float, int]]:
    """Without open facts that a later one of the same attribute contradicts in another scope of the same person."""
    own = {fact.id: fact for fact, _, _ in found if fact.attribute and fact.is_open and not fact.scope.is_room}
    latest = {fact.attribute: fact.value for fact in sorted(own.values(), key=lambda fact: fact.said_at)}
    return [item for item in found if item[0].id not in own or item[0].value == latest[item[0].attribute]]
