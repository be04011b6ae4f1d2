"""What a person asks to be remembered, word for word: read by the rules, and kept whole where they see nothing in it.

One body for /remember, Discord's context menu and the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from core.errors import Refused
from core.facts.claims import FACT_CHARS, Claim, fact_of, placed
from core.review.review import ANYWAY, insisting, typed
from core.store.facts import Fact, Facts
from core.store.notes import Author, PendingNote
from core.text.names import names_in
from core.types import Account, Message, Scope, Sender


class Dictation:
    """Writes to `facts`; `zone` (an IANA name) says which day it was."""

    def __init__(self, facts: Facts, zone: str) -> None:
        self._facts = facts
        self._zone = ZoneInfo(zone)

    async def take(self, said: Message, scope: Scope, platform: str) -> list[Fact]:
        """Keeps what `said` states as facts of its sender in `scope`, as they stand then. Raises Refused with what to
        do."""
        if not said.text.strip():
            raise Refused("Say what to remember: `/remember Ana's birthday is on 3 May`.")
        text = self._checked(said.text)
        whole = " ".join(text.split())
        found = self._claims(text, said.created_at) or [
            Claim(content=whole, kind="identity", entities=names_in(whole), is_asked=True)
        ]
        return [await self._facts.learn(fact_of(claim, "person", scope, platform, said)) for claim in found]

    async def correct(self, fact: Fact, text: str, scopes: frozenset[Scope], by: Author, at: datetime) -> Fact | None:
        """Puts `text`, said at a moment, in place of what a fact said; the fact as it stands then, None when it is
        gone. Raises Refused with what to do."""
        text = self._checked(text)
        read = self._claims(text, at)
        claim = _meant(read, fact)
        content = read[0].content if len(read) == 1 else text
        return await self._facts.correct(fact.id, scopes, content, by, claim.laid_over if claim else lambda fact: fact)

    def _claims(self, text: str, at: datetime) -> Sequence[Claim]:
        # The rules take a while to load, for which a command that dictates nothing should not wait.
        from core.facts.rules import claims

        return claims(text, at, self._zone, is_dictated=True)

    async def approve(self, note: PendingNote) -> str:
        """Keeps what a model wanted to remember and a person has said yes to, as a fact of theirs."""
        account = note.account or Account(platform="terminal", user_id="local")
        said = Message(
            role="user",
            text=f"{ANYWAY} {note.operations[0].content}",
            session_id=0,
            created_at=note.at,
            sender=Sender(id=account.user_id, name=""),
        )
        kept = await self.take(said, note.scope, account.platform)
        return " ".join(f"Fact {fact.id} is kept: “{fact.content}”." for fact in kept)

    @staticmethod
    def _checked(text: str) -> str:
        """The text as it is kept. Raises Refused where it is too long, or asks to be meant."""
        text, is_insisting = insisting(text.strip())
        if len(text) > FACT_CHARS:
            raise Refused(
                f"That is too long for a fact: {len(text):,} characters, and {FACT_CHARS} are the most. Say in a "
                "sentence or two what to remember of it."
            )
        return typed(text, FACT_CHARS, is_insisting=is_insisting)[0]


def _meant(read: Sequence[Claim], fact: Fact) -> Claim | None:
    """What of a text takes the place of a fact: what it says of the same thing, or the like of the same person, or the
    only thing it says."""
    old = (fact.attribute or "").split("|")
    placed_at = [(placed(claim.attribute, fact.scope, fact.account) or "").split("|") for claim in read]
    for parts in (len(old), 2):
        for claim, new in zip(read, placed_at, strict=True):
            if claim.attribute and new[:parts] == old[:parts]:
                return claim
    return read[0] if len(read) == 1 and read[0].attribute else None
