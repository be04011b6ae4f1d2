"""Something that a sentence says to be so, before it is a fact; and how it becomes the fact of whoever has said it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Literal
from zoneinfo import ZoneInfo

from core.dates.periods import read
from core.store.facts import Fact, FactKind, FactOrigin, Grain
from core.text.normalize import language_data
from core.types import Account, Message, Scope


@cache
def sign(name: str) -> re.Pattern[str]:
    """A regular expression of `data/patterns.toml`, without regard to case."""
    signs = language_data("patterns", "core.facts")["signs"]
    return re.compile("".join(signs[name]), re.IGNORECASE | re.DOTALL)


def is_first_person(text: str) -> bool:
    """Whether somebody speaks of themselves."""
    return sign("first_person").search(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`content`: the sentence, in the person's own words where rules have read it. `attribute` begins with ``me|``
    where it is about who speaks. The rest as in `core.store.facts.Fact`."""

    content: str
    kind: FactKind
    attribute: str | None = None
    value: str = ""
    entities: tuple[str, ...] = ()
    valid_from: datetime | None = None
    grain: Grain = "day"
    is_asked: bool = False

    def laid_over(self, fact: Fact) -> Fact:
        """The fact with what this says instead: of which attribute, its value, and since when where it says so."""
        since = (self.valid_from, self.grain) if self.valid_from else (fact.valid_from, fact.grain)
        attribute = placed(self.attribute, fact.scope, fact.account)
        return replace(fact, attribute=attribute, value=self.value, valid_from=since[0], grain=since[1])


SingleAttribute = Literal[
    "home", "work", "profession", "birthday", "name", "age", "phone", "email", "partner", "diet", "deadline"
]
"""What a model may say of somebody that has one value only."""
TRUST: dict[FactOrigin, float] = {"person": 0.95, "rule": 0.7, "model": 0.6}
ASKED = 0.9
"""How far a fact is trusted that a person asks to be remembered."""
FACT_CHARS = 400


def placed(attribute: str | None, scope: Scope, account: Account | None) -> str | None:
    """An attribute as it is kept: in a room "me" and "my" are an account's, since there are several."""
    if attribute and scope.is_room and account and sign("whose").match(attribute):
        return f"{account.key}|{attribute.removeprefix('me|')}"
    return attribute


def fact_of(claim: Claim, origin: FactOrigin, scope: Scope, platform: str, source: Message) -> Fact:
    """A claim as the fact of who said `source`."""
    account = None if source.sender is None else Account(platform=platform, user_id=source.sender.id)
    return Fact(
        scope=scope,
        content=claim.content[:FACT_CHARS],
        kind=claim.kind,
        origin=origin,
        created_at=source.created_at,
        trust=ASKED if claim.is_asked else TRUST[origin],
        attribute=placed(claim.attribute, scope, account),
        value=claim.value,
        entities=claim.entities,
        valid_from=claim.valid_from,
        grain=claim.grain,
        message_id=source.id or None,
        account=account,
        speaker=source.sender.name if source.sender else "",
    )


def since_of(text: str | None, now: datetime, zone: ZoneInfo) -> tuple[datetime | None, Grain]:
    """Since when something holds, from ``2026-05-03``, ``2026-05``, ``2026``; None for what is no time, or to come."""
    period = read(text, now, zone) if text else None
    if not text or period is None or period[0] > now:
        return None, "day"
    grains: tuple[Grain, ...] = ("year", "month", "day")
    return period[0].astimezone(UTC), grains[text.count("-")]
