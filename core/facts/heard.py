"""Finds who in a conversation has said what the model wants to keep, and where: nothing else is a fact."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from core.errors import ToolError
from core.facts.claims import Claim, fact_of
from core.facts.evidence import Evidence, subject_of
from core.store.fact_search import FactBacklog
from core.store.facts import Fact
from core.store.sessions import Conversations
from core.text.attributes import ME, attribute_of
from core.types import Message, ToolContext


class Unsaid(ToolError):
    """Nobody has typed what the model wants to keep; the message says what of it, as a clause."""


class EvidenceSearch:
    """Reads what the model reads, through `conversations`; `backlog` knows where a message was said. `zone` (an IANA
    name) is for dates."""

    def __init__(self, conversations: Conversations, backlog: FactBacklog, zone: str) -> None:
        self._conversations = conversations
        self._backlog = backlog
        self.zone = ZoneInfo(zone)

    async def unsaid(self, contents: Sequence[str], context: ToolContext, beside: Sequence[str] = ()) -> str | None:
        """Why `contents` are not borne out by what people have typed, or by notes that they replace (`beside`), as a
        clause; None where all of them are."""
        rows = [
            *await self._conversations.history(context.session, context.scopes),
            *(Message(role="user", text=entry, session_id=0, created_at=context.now) for entry in beside),
        ]

        def weigh() -> str | None:
            evidence = Evidence(rows)
            return next((evidence.missing(one) for one in contents if not evidence.bears_out(one)), None)

        return await asyncio.to_thread(weigh)

    async def fact(
        self, claim: Claim, about: str, names: Sequence[str], since: str, context: ToolContext
    ) -> tuple[Fact, str]:
        """The claim, which is told of `about` (``me`` or a name), as the fact of who has said so, with the text of the
        message that says so. `names` must have been said; where `since` was not, the fact is without. Raises Unsaid
        where nobody has, ToolError where the message is gone."""
        evidence = Evidence(await self._conversations.history(context.session, context.scopes))
        said = functools.partial(evidence.support, claim.content, is_own_affair=about == ME)
        source = await asyncio.to_thread(said, [*names, since]) if since else None
        if source is None:
            source = await asyncio.to_thread(said, names)
            claim = replace(claim, valid_from=None, grain="day")
        if source is None:
            raise Unsaid(evidence.missing(claim.content, names))
        subject = subject_of(about, claim.content, source)
        _, has_attribute, what = (claim.attribute or "").partition("|")
        attribute = attribute_of(subject, what) if subject and has_attribute else None
        claim = replace(claim, attribute=attribute, value=claim.value if attribute else "")
        scope, platform = context.scope, context.session.address.platform
        if source.session_id != context.session.id:
            # A conversation that goes on here: what was said elsewhere belongs there.
            found = await self._backlog.source(source.id)
            if found is None:
                raise ToolError("The message that says so was deleted. Do not keep it.")
            scope, platform = found
        return fact_of(claim, "model", scope, platform, source), source.text
