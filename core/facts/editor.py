"""Store, correct and remove facts at the request of a person."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from core.errors import Refused, Report, Sentence
from core.facts.claims import MAX_FACT_CHARS, Claim, extract_claims, fact_from_claim
from core.review.pending import ANYWAY, clean_typed_text, split_anyway
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact
from core.store.notes import Author, Operation, PendingNote
from core.text.terms import names_in
from core.types import Account, ErasureEpoch, Message, Scope, Sender


@dataclass
class FactEditor:
    """Stores, corrects and removes facts at a person's request."""

    facts: Facts
    # The time zone of dates in the text.
    zone: ZoneInfo

    async def remember(
        self, message: Message, scope: Scope, platform: str, epoch: ErasureEpoch | None = None
    ) -> list[Fact]:
        """Store the statements in a message as facts of its sender.

        If no statement is recognised, the whole text becomes one fact. Raises Refused with advice
        if the text is empty, too long or suspicious.
        """
        text = self._check(message.text)
        claims = await self._extract(text, message.created_at)
        if not claims:
            content = " ".join(text.split())
            names = names_in(content)
            claims = [Claim(content=content, kind="identity", entities=names, is_requested=True)]
        facts = []
        for claim in claims:
            fact = fact_from_claim(claim, "person", scope, platform, message)
            facts.append(await self.facts.learn(fact, epoch=epoch))
        return facts

    async def correct(
        self, fact: Fact, text: str, scopes: frozenset[Scope], by: Author, at: datetime
    ) -> Fact | None:
        """Replace the text of a fact.

        If the new text is a single statement, the fact also gets its attribute and value. Return
        None if the fact no longer exists. Raises Refused with advice if the text is empty, too long
        or suspicious.
        """
        text = self._check(text)
        claims = await self._extract(text, at)
        if len(claims) != 1:
            return await self.facts.correct(fact.id, scopes, text, by)
        (claim,) = claims
        return await self.facts.correct(fact.id, scopes, claim.content, by, claim.apply_to)

    async def approve(self, note: PendingNote, epoch: ErasureEpoch | None = None) -> Report:
        """Apply a change that the model proposed and a person approved.

        Returns a sentence about the result. Raises Refused if the fact has changed since the
        proposal.
        """
        operation = note.operations[0]
        if operation.action != "add":
            return Report((await self._approve_change(note, operation, epoch),))
        account = note.account or Account(platform="terminal", user_id="local")
        message = Message(
            role="user",
            text=f"{ANYWAY} {operation.content}",
            session_id=0,
            created_at=note.at,
            sender=Sender(id=account.user_id, name=""),
        )
        facts = await self.remember(message, note.scope, account.platform, epoch)
        return Report(tuple(_say("fact_stored", fact.id, fact.content) for fact in facts))

    async def _approve_change(
        self, note: PendingNote, operation: Operation, epoch: ErasureEpoch | None
    ) -> Sentence:
        """Replace or remove a fact, and return a sentence about the result.

        Raises Refused if the text of the fact has changed since the proposal.
        """
        by = Author(account=note.account, message_id=note.message_id, epoch=epoch)
        fact_id = int(operation.path.removeprefix("f"))
        scopes = frozenset((note.scope,))
        fact = await self.facts.find(fact_id, scopes)
        if fact is None or not fact.is_open or fact.content != operation.old_text:
            raise Refused("fact_has_changed", id=fact_id)
        if operation.action in ("trust", "doubt"):
            is_right = operation.action == "trust"
            await self.facts.record_feedback(fact_id, scopes, is_right, by)
            key = "fact_trusted_more" if is_right else "fact_trusted_less"
            return Sentence(key, {"id": fact_id})
        if operation.action == "remove":
            await self.facts.remove(fact_id, scopes, by)
            return _say("fact_ended", fact_id, fact.content)
        text = f"{ANYWAY} {operation.content}"
        new_fact = await self.correct(fact, text, scopes, by, note.at) or fact
        return _say("fact_changed", fact_id, new_fact.content)

    async def _extract(self, text: str, at: datetime) -> list[Claim]:
        """Return the statements in a text.

        The first text of a language compiles its patterns, which takes long, so this runs in a
        thread.
        """
        return await asyncio.to_thread(extract_claims, text, at, self.zone, is_request=True)

    @staticmethod
    def _check(text: str) -> str:
        """Return a text without notes about attachments.

        Raises Refused with advice if the text is empty, too long or suspicious.
        """
        lines = [line for line in text.splitlines() if not line.startswith("[attached ")]
        text, has_anyway = split_anyway("\n".join(lines).strip())
        if not text:
            raise Refused("what_to_remember")
        if len(text) > MAX_FACT_CHARS:
            raise Refused("fact_too_long", chars=len(text), limit=MAX_FACT_CHARS)
        return clean_typed_text(text, MAX_FACT_CHARS, has_anyway=has_anyway)[0]


def _say(key: str, fact_id: int, text: str) -> Sentence:
    """Return a sentence about a fact that quotes its text without the full stop."""
    return Sentence(key, {"id": fact_id, "text": text.removesuffix(".")})
