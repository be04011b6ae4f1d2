"""The built-in long-term memory: facts that people have stated, each with since when it holds and how sure it is.

Learns after a turn from the people's own messages, recalls before the next. What is over stays, as what was so before.
By its tools the model asks what is known and says which facts were right or wrong (`facts`), and keeps a fact that the
person has stated (`remember_this`).
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from core.errors import ToolError
from core.facts.claims import fact_of
from core.facts.evidence import EvidenceSearch
from core.facts.extraction import FactReader, ToldFact
from core.facts.ranking import KnownFacts, Question
from core.guard.guard import suspicion
from core.memory.provider import MemoryProvider, is_remembered
from core.models.content_blocks import parsed
from core.review.pending import Review
from core.store.facts import Fact, Facts
from core.store.notes import FACT, Author, Operation
from core.text.names import entity_key
from core.text.normalize import language_data
from core.types import Json, Message, Session, Tool, ToolContext

LINES = 6
"""How many facts a turn is given at most."""
MOST = 30


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    mode: Literal["search", "probe", "related", "reason", "contradict", "feedback"] = Field(
        default="search", description="What to do."
    )
    query: str = Field(default="", max_length=2000, description="search: the question.")
    names: list[str] = Field(default=[], max_length=8, description="probe, related, reason: whom or what it is about.")
    fact_id: int = Field(default=0, description="feedback: which fact.")
    is_right: bool | None = Field(default=None, description="feedback: whether it was right.")
    limit: int = Field(default=10, ge=1, le=MOST, description="How many facts.")


class FactsProvider(MemoryProvider):
    name = "facts"

    def __init__(
        self, facts: Facts, knowledge: KnownFacts, reader: FactReader, evidence: EvidenceSearch, review: Review
    ) -> None:
        self._facts = facts
        self._knowledge = knowledge
        self._reader = reader
        self._evidence = evidence
        self._review = review

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        found = await self._knowledge.search(_question(text, context), LINES)
        return [f"{_token(fact)} {self._knowledge.line_of(fact)}" for fact in found if not _is_in_sight(fact, context)]

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        await self._reader.read(session)

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        # What was overheard, or came too late for its turn.
        await self._reader.read(session)

    async def on_start(self) -> None:
        await self._reader.catch_up()

    async def tools(self) -> Sequence[Tool]:
        described = language_data("prompts", "core.facts")
        kinds = (("facts", _Arguments, self._answer), ("remember_this", ToldFact, self._keep))
        return [
            Tool(name=name, description=described[name], schema=arguments.model_json_schema(), run=run, is_quote=True)
            for name, arguments, run in kinds
        ]

    async def _answer(self, arguments: Json, context: ToolContext) -> str:
        """JSON: facts, or names, or groups."""
        asked = parsed(_Arguments, arguments)
        if asked.mode == "search" and not asked.query.strip():
            raise ToolError("query: say what to look for.")
        if asked.mode == "search":
            found = await self._knowledge.search(_question(asked.query, context), asked.limit)
            result: dict[str, object] = {"facts": list(map(self._shown, found))}
        else:
            answers = {"feedback": self._feedback, "contradict": self._contradictions}
            result = await answers.get(asked.mode, self._about)(asked, context)
        return json.dumps(result, ensure_ascii=False)

    async def _about(self, asked: _Arguments, context: ToolContext) -> dict[str, object]:
        keys = [key for name in (asked.names or [asked.query]) if (key := entity_key(name))]
        if not keys:
            raise ToolError("names: say whom or what it is about.")
        if asked.mode == "related":
            near = await self._facts.related(keys, context.scopes, asked.limit)
            return {"names": [{"name": name, "facts": count} for name, count in near]}
        keys = keys if asked.mode == "reason" else keys[:1]
        return {"facts": list(map(self._shown, await self._facts.of_entities(keys, context.scopes, asked.limit)))}

    async def _contradictions(self, asked: _Arguments, context: ToolContext) -> dict[str, object]:
        """Open facts that contradict each other; with a query also how what it asks for has changed."""
        groups: list[Sequence[Fact]] = list(await self._facts.conflicts(context.scopes, asked.limit))
        if asked.query.strip():
            found = await self._knowledge.search(_question(asked.query, context), 3)
            for attribute in dict.fromkeys(fact.attribute for fact in found if fact.attribute):
                changed = await self._facts.replaced(attribute, context.scopes, asked.limit)
                if len(changed) > 1:
                    groups.insert(0, changed)
        return {"groups": [list(map(self._shown, group)) for group in groups]}

    async def _feedback(self, asked: _Arguments, context: ToolContext) -> dict[str, object]:
        if asked.is_right is None:
            raise ToolError("is_right: say true or false.")
        by = Author(account=context.account, message_id=context.message_id)
        known = await self._facts.find(asked.fact_id, context.scopes)
        if known is not None and known.scope.is_room and known.account != by.account:
            raise ToolError("fact_id: in a room only who said it judges a fact; the owner does with `/memory wrong`.")
        fact = await self._facts.feedback(asked.fact_id, context.scopes, asked.is_right, by)
        if fact is None:
            raise ToolError(f"fact_id: there is no fact {asked.fact_id}.")
        return {"fact_id": fact.id, "trust": round(fact.trust, 2)}

    def _shown(self, fact: Fact) -> dict[str, object]:
        shown: dict[str, object] = {
            "fact_id": fact.id,
            "content": fact.content,
            "is_current": fact.is_open,
            "when": ", ".join(self._knowledge.span(fact)),
            "said_on": self._knowledge.day(fact.said_at),
            "trust": round(fact.trust, 2),
        }
        return shown | ({"who": fact.speaker} if fact.scope.is_room and fact.speaker else {})

    async def _keep(self, arguments: Json, context: ToolContext) -> str:
        """Learns it, or lets it wait for a yes where nobody has typed it."""
        told = parsed(ToldFact, arguments)
        if not is_remembered(context.session):
            raise ToolError("Nobody has said anything here that could be kept: this was scheduled. Go on without it.")
        if (reason := suspicion(told.content)) is not None:
            return await self._put_aside(told.content, f"it contains {reason}", context)
        evidence = await self._evidence.evidence(context)
        found = await asyncio.to_thread(told.source, evidence)
        if found is None:
            return await self._put_aside(told.content, evidence.missing(told.content, told.must_be_said), context)
        source, is_dated = found
        claim = told.claim(source, self._evidence.zone, is_dated=is_dated)
        fact = fact_of(claim, "model", *await self._evidence.place(source, context), source)
        fact = await self._facts.learn(fact, source.text, context.epoch)
        if not fact.id:
            raise ToolError("The message that says so has just been changed or deleted. Do not keep it.")
        return f"Fact {fact.id} is kept: “{fact.content}”."

    async def _put_aside(self, content: str, reason: str, context: ToolContext) -> str:
        author = Author(account=context.account, message_id=context.message_id, epoch=context.epoch)
        operations = [Operation(action="add", content=content)]
        return await self._review.put_aside(context.scope, FACT, operations, author, reason)


def _question(text: str, context: ToolContext) -> Question:
    return Question(text, context.scopes, context.now, context.account)


def _token(fact: Fact) -> str:
    """Names a line, so that it is given once; changes where a person has reworded the fact."""
    words = f"-{zlib.crc32(fact.content.encode()) & 0xFFFF:04x}" if fact.origin == "person" else ""
    return f"f{fact.id}{words}"


def _is_in_sight(fact: Fact, context: ToolContext) -> bool:
    """Whether the model reads the message that the fact is taken from."""
    if context.window is None or fact.message_id is None:
        return False
    return any(first <= fact.message_id <= last for _, first, last in context.window.spans)
