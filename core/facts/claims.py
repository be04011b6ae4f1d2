"""What a sentence states, before it is a fact, and how it becomes one; what a person asks to be remembered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Literal
from zoneinfo import ZoneInfo

from core.dates.periods import read as read_period
from core.errors import Refused
from core.review.pending import ANYWAY, insisting, typed
from core.store.facts import Fact, FactKind, FactOrigin, Facts, Grain
from core.store.notes import Author, PendingNote
from core.text.names import names_in
from core.text.normalize import language_data
from core.types import Account, ErasureEpoch, Message, Scope, Sender


@cache
def sign(name: str) -> re.Pattern[str]:
    """A pattern of `data/patterns.toml`."""
    signs = language_data("patterns", "core.facts")["signs"]
    return re.compile("".join(signs[name]), re.IGNORECASE | re.DOTALL)


def is_first_person(text: str) -> bool:
    return sign("first_person").search(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`content`: the sentence. `attribute` begins with ``me|`` where it is about who speaks. The rest as in
    `core.store.facts.Fact`."""

    content: str
    kind: FactKind
    attribute: str | None = None
    value: str = ""
    entities: tuple[str, ...] = ()
    valid_from: datetime | None = None
    grain: Grain = "day"
    is_asked: bool = False

    def laid_over(self, fact: Fact) -> Fact:
        """The fact with attribute, value and, where given, time of this claim."""
        since = (self.valid_from, self.grain) if self.valid_from else (fact.valid_from, fact.grain)
        attribute = placed(self.attribute, fact.scope, fact.account)
        return replace(fact, attribute=attribute, value=self.value, valid_from=since[0], grain=since[1])


SingleAttribute = Literal[
    "home", "work", "profession", "birthday", "name", "age", "phone", "email", "partner", "diet", "deadline"
]
"""What has one value only, for the model."""
TRUST: dict[FactOrigin, float] = {"person": 0.95, "rule": 0.7, "model": 0.6}
ASKED = 0.9
"""Trust in what a person asks to be remembered."""
FACT_CHARS = 400


def placed(attribute: str | None, scope: Scope, account: Account | None) -> str | None:
    """As it is kept: in a room "me" and "my" are an account's."""
    if attribute and scope.is_room and account and sign("whose").match(attribute):
        return f"{account.key}|{attribute.removeprefix('me|')}"
    return attribute


def fact_of(claim: Claim, origin: FactOrigin, scope: Scope, platform: str, source: Message) -> Fact:
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
    """From ``2026-05-03``, ``2026-05`` or ``2026``; None for what is no time, or to come."""
    period = read_period(text, now, zone) if text else None
    if not text or period is None or period[0] > now:
        return None, "day"
    grains: tuple[Grain, ...] = ("year", "month", "day")
    return period[0].astimezone(UTC), grains[text.count("-")]


class Dictation:
    """What a person asks to be remembered; `zone`: an IANA name."""

    def __init__(self, facts: Facts, zone: str) -> None:
        self._facts = facts
        self._zone = ZoneInfo(zone)

    async def take(self, said: Message, scope: Scope, platform: str, epoch: ErasureEpoch | None = None) -> list[Fact]:
        """Keeps what `said` states, or all of it, as facts of its sender in `scope`. Raises Refused with what to do."""
        text = self._checked(said.text)
        whole = " ".join(text.split())
        found = self._claims(text, said.created_at) or [
            Claim(content=whole, kind="identity", entities=names_in(whole), is_asked=True)
        ]
        facts = [fact_of(claim, "person", scope, platform, said) for claim in found]
        return [await self._facts.learn(fact, epoch=epoch) for fact in facts]

    async def correct(self, fact: Fact, text: str, scopes: frozenset[Scope], by: Author, at: datetime) -> Fact | None:
        """Replaces what a fact says by `text`; None when the fact is gone. Raises Refused with what to do."""
        text = self._checked(text)
        read = self._claims(text, at)
        if len(read) != 1:
            return await self._facts.correct(fact.id, scopes, text, by)
        reading = read[0].laid_over if read[0].attribute else lambda fact: fact
        return await self._facts.correct(fact.id, scopes, read[0].content, by, reading)

    def _claims(self, text: str, at: datetime) -> Sequence[Claim]:
        # The rules take a while to load.
        from core.facts.rules import claims

        return claims(text, at, self._zone, is_dictated=True)

    async def approve(self, note: PendingNote, epoch: ErasureEpoch | None = None) -> str:
        """Keeps what the model wanted to remember and a person has approved."""
        account = note.account or Account(platform="terminal", user_id="local")
        said = Message(
            role="user",
            text=f"{ANYWAY} {note.operations[0].content}",
            session_id=0,
            created_at=note.at,
            sender=Sender(id=account.user_id, name=""),
        )
        kept = await self.take(said, note.scope, account.platform, epoch)
        return " ".join(f"Fact {fact.id} is kept: “{fact.content}”." for fact in kept)

    @staticmethod
    def _checked(text: str) -> str:
        lines = (line for line in text.splitlines() if not line.startswith("[attached "))
        text, is_insisting = insisting("\n".join(lines).strip())
        if not text:
            raise Refused("Say what to remember: `/remember Ana's birthday is on 3 May`.")
        if len(text) > FACT_CHARS:
            raise Refused(
                f"That is too long for a fact: {len(text):,} characters, and {FACT_CHARS} are the most. Say in a "
                "sentence or two what to remember of it."
            )
        return typed(text, FACT_CHARS, is_insisting=is_insisting)[0]
