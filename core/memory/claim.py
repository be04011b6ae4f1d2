"""Something that a sentence says to be so, before it is a fact; and how it becomes the fact of whoever has said it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.records import Fact, FactKind, FactOrigin, Grain
from core.types import Account, Message, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`content`: the sentence, in the person's own words where rules have read it. `attribute` begins with ``me|``
    where it is about who speaks. The rest as in `core.records.Fact`."""

    content: str
    kind: FactKind
    attribute: str | None = None
    value: str = ""
    entities: tuple[str, ...] = ()
    valid_from: datetime | None = None
    grain: Grain = "day"
    is_asked: bool = False


TRUST: dict[FactOrigin, float] = {"person": 0.95, "rule": 0.7, "model": 0.6}
ASKED = 0.9
"""How far a fact is trusted that a person asks to be remembered."""
FACT_CHARS = 400


def fact_of(claim: Claim, origin: FactOrigin, scope: Scope, platform: str, source: Message) -> Fact:
    """A claim as the fact of who said `source`. In a room "me" is an account, since there are several."""
    account = None if source.sender is None else Account(platform=platform, user_id=source.sender.id)
    attribute = claim.attribute
    if attribute and scope.is_room and account and attribute.startswith(("me|", "my ")):
        attribute = f"{account.key}|{attribute.removeprefix('me|')}"
    return Fact(
        scope=scope,
        content=claim.content[:FACT_CHARS],
        kind=claim.kind,
        origin=origin,
        created_at=source.created_at,
        trust=ASKED if claim.is_asked else TRUST[origin],
        attribute=attribute,
        value=claim.value,
        entities=claim.entities,
        valid_from=claim.valid_from,
        grain=claim.grain,
        message_id=source.id or None,
        account=account,
        speaker=source.sender.name if source.sender else "",
    )
