"""What is known, as it is asked for and told: facts in order of how well they answer, each in one line with its dates.

Reads only. A fact that is over says until when it was so; of what accounts of one person contradict, the latest holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from core.facts.question import Question
from core.facts.ranking import Blend
from core.facts.search_role import Lookup
from core.records import Fact, Grain

WORTH = 0.35
"""A fact that scores less than this part of the best is left out."""


class Knowledge:
    """Asks `lookup`, puts in order with `blend`; `zone` (an IANA name) is for dates."""

    def __init__(self, lookup: Lookup, blend: Blend, zone: str) -> None:
        self._lookup = lookup
        self._blend = blend
        self.zone = ZoneInfo(zone)

    async def search(self, question: Question, limit: int = 10) -> list[Fact]:
        """The facts that answer a question best, best first; none where no word and no name of it is known."""
        found = await self._lookup.candidates(question.terms, question.keys, question.scopes)
        ranked = self._blend.ranked(_held(found), question)
        best = ranked[0][1] if ranked else 0.0
        worth = [fact for fact, score in ranked if score >= WORTH * best]
        current = {fact.attribute for fact in worth if fact.attribute and fact.is_open}
        return [fact for fact in worth if fact.attribute not in current or question.wants(fact)][:limit]

    def told(self, fact: Fact) -> str:
        """A fact in one line, with who said it where several do, and when."""
        content = fact.content.rstrip(" .")
        who = f"{fact.speaker}: " if fact.scope.is_room and fact.speaker else ""
        return f"{who}{content} ({'; '.join((*self.span(fact), f'said on {self.day(_said_at(fact))}'))})"

    def span(self, fact: Fact) -> tuple[str, ...]:
        """``since May 2026``, ``until May 2026, no longer so``, as far as it is known."""
        details = []
        if fact.valid_from is not None:
            details.append(f"since {self.day(fact.valid_from, fact.grain)}")
        if fact.valid_to is not None and not fact.is_open:
            details.append(f"until {self.day(fact.valid_to, 'month')}, no longer so")
        elif not fact.is_open:
            details.append("no longer so")
        return tuple(details)

    def day(self, at: datetime, grain: Grain = "day") -> str:
        """A date in words, as exactly as it is known: ``3 May 2026``, ``May 2026``, ``2026``."""
        local = at.astimezone(self.zone)
        if grain == "year":
            return f"{local:%Y}"
        return f"{local:%B %Y}" if grain == "month" else f"{local.day} {local:%B %Y}"


def _held(found: Sequence[tuple[Fact, float, int]]) -> list[tuple[Fact, float, int]]:
    """Without open facts that a later one of the same attribute contradicts in another scope of the same person."""
    latest: dict[str, Fact] = {}
    for fact, _, _ in found:
        if fact.attribute and fact.is_open and not fact.scope.is_room:
            other = latest.get(fact.attribute)
            if other is None or _said_at(fact) > _said_at(other):
                latest[fact.attribute] = fact
    return [item for item in found if (other := latest.get(item[0].attribute or "")) is None or _agrees(item[0], other)]


def _agrees(fact: Fact, latest: Fact) -> bool:
    return fact.scope.is_room or not fact.is_open or fact.value == latest.value


def _said_at(fact: Fact) -> datetime:
    return fact.last_at or fact.created_at
