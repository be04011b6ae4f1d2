"""Puts candidates in order: how well they fit the question, times how sure they are, times how fresh.

The weights are those of the evaluation in `tests/bench/knowing.py`. Similarity of holographic vectors (`hrr.py`) added
nothing there to text and names, so its weight is 0 and no vector is made. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from core.facts.attributes import hints_of
from core.facts.question import Question
from core.records import Fact, FactKind
from core.text.terms import terms_of

Similarity = Callable[[Sequence[Fact]], Sequence[float]]
"""Gives each fact a number from 0 to 1 for one question."""

DAY_S = 86_400
CLOSED = 0.3
"""What is over counts so much: it is an answer only where nothing else is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """Weights of the parts of a score: bm25, words in common, names in common, whether it is about whom the question is
    about, likeness of vectors; `half_life_days` by kind, for kinds that age (a pinned fact does not)."""

    text: float = 0.5
    jaccard: float = 0.15
    names: float = 0.15
    aim: float = 0.2
    hrr: float = 0.0
    half_life_days: Mapping[FactKind, float] = field(default_factory=dict)

    def ranked(
        self,
        found: Sequence[tuple[Fact, float, int]],
        question: Question,
        similarity: Similarity | None = None,
    ) -> list[tuple[Fact, float]]:
        """Candidates as `Lookup.candidates` gives them, best first, with scores from 0 to 1. `similarity` is asked only
        where it has a weight."""
        best = max((text for _, text, _ in found), default=0.0) or 1.0
        most = max((names for _, _, names in found), default=0) or 1
        alike = similarity([fact for fact, _, _ in found]) if similarity and self.hrr else [0.0] * len(found)
        scored = []
        for (fact, text, names), near in zip(found, alike, strict=True):
            fit = self.text * text / best + self.names * names / most + self.hrr * near
            fit += self.jaccard * shared(question.terms, fact) + self.aim * question.aims_at(fact)
            scored.append((fact, fit * fact.trust * self.freshness(fact, question.now)))
        return sorted(scored, key=lambda item: (-item[1], -item[0].id))

    def freshness(self, fact: Fact, now: datetime) -> float:
        """From 1 down to 0: halves with each half-life since it was last said; `CLOSED` for what is over."""
        life_days = None if fact.is_pinned else self.half_life_days.get(fact.kind)
        age_days = max(0.0, (now - (fact.last_at or fact.created_at)).total_seconds() / DAY_S)
        fresh = 1.0 if life_days is None else 0.5 ** (age_days / life_days)
        is_over = not fact.is_open or (fact.valid_to is not None and fact.valid_to <= now)
        return fresh * (CLOSED if is_over else 1.0)


def shared(terms: Sequence[str], fact: Fact) -> float:
    """Jaccard similarity of the question's terms and the fact's, among these the words its attribute is asked by."""
    asked = set(terms)
    held = set(terms_of(fact.content))
    both = asked & (held | set(hints_of(fact.attribute)))
    return len(both) / len(asked | held) if asked else 0.0
