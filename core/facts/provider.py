"""The built-in long-term memory: facts that people have stated, each with since when it holds and how sure it is.

Learns after a turn from the people's own messages, recalls before the next. What is over stays, as what was so before.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

from core.facts.evidence import EvidenceSearch
from core.facts.extraction import FactReader
from core.facts.ranking import KnownFacts, Question
from core.facts.tools import fact_tool, remember_this
from core.memory.provider import MemoryProvider
from core.review.review import Review
from core.store.fact_search import FactSearch
from core.store.facts import Fact, Facts
from core.types import Account, Message, Session, Tool, ToolContext

LINES = 6
"""How many facts a turn is given at most."""


class FactsProvider(MemoryProvider):
    name = "facts"

    def __init__(
        self,
        facts: Facts,
        search: FactSearch,
        knowledge: KnownFacts,
        reader: FactReader,
        evidence: EvidenceSearch,
        review: Review,
    ) -> None:
        self._facts = facts
        self._search = search
        self._knowledge = knowledge
        self._reader = reader
        self._evidence = evidence
        self._review = review

    async def is_available(self) -> bool:
        return True

    async def initialize(self, folder: Path) -> None:
        pass

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        account = Account(platform=context.session.address.platform, user_id=context.sender.id)
        found = await self._knowledge.search(Question.of(text, context.scopes, context.now, account), LINES)
        return [f"{_token(fact)} {self._knowledge.line_of(fact)}" for fact in found if not _is_in_sight(fact, context)]

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        await self._reader.read(session)

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        # What was overheard, or came too late for its turn.
        await self._reader.read(session)

    async def on_start(self) -> None:
        await self._reader.catch_up()

    async def tools(self) -> Sequence[Tool]:
        return (
            fact_tool(self._facts, self._search, self._knowledge),
            remember_this(self._facts, self._evidence, self._review),
        )


def _token(fact: Fact) -> str:
    """Names a line, so that it is given once; changes where a person has reworded the fact."""
    words = f"-{zlib.crc32(fact.content.encode()) & 0xFFFF:04x}" if fact.origin == "person" else ""
    return f"f{fact.id}{words}"


def _is_in_sight(fact: Fact, context: ToolContext) -> bool:
    """Whether the model reads the message that the fact is taken from."""
    if context.window is None or fact.message_id is None:
        return False
    return any(first <= fact.message_id <= last for _, first, last in context.window.spans)
