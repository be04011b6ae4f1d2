"""The built-in long-term memory: facts that people have stated, each with since when it holds and how sure it is.

Learns after a turn from the people's own messages, recalls before the next. What is over stays, as what was so before.
By its tools the model asks what is known, says which facts were right or wrong, and changes them (`facts`), and keeps a
fact that the person has stated (`remember_this`).
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from core.errors import ToolError
from core.facts.claims import FACT_CHARS, TRUST, fact_of, sign
from core.facts.evidence import EvidenceSearch
from core.facts.extraction import FactReader, ToldFact
from core.guard.guard import parsed, suspicion, tool_of
from core.memory.provider import MemoryProvider
from core.review.pending import foreign
from core.store.facts import Candidates, Fact, FactKind, Facts, Grain, OtherName
from core.store.notes import FACT, Author, Operation
from core.text.terms import ME, entity_key, hints_of, keys_in, query_terms, terms_of
from core.types import Account, Message, Scope, Session, Tool, ToolContext

_SCHEDULED = "Nobody has said anything here that could be kept: this was scheduled. Go on without it."
_GONE = "The message that says so has just been changed or deleted. Do not keep it."
_OWN_TOOLS = ("facts", "remember_this", "memory", "reminder")  # they tell only what the person has typed or confirmed
LINES = 6
"""How many facts a turn is given at most."""
MOST = 30
QUESTION_CHARS = 2_000


class Question:
    """`is_own`: about who asks, `asker` (None: nobody in particular, as at the command line)."""

    def __init__(self, text: str, scopes: frozenset[Scope], now: datetime, asker: Account | None = None) -> None:
        asked = text[:QUESTION_CHARS]
        self.terms, self.keys = tuple(query_terms(asked)), keys_in(asked)
        self.is_own = sign("first_person").search(asked) is not None
        self.is_past = sign("past").search(asked) is not None
        self.text, self.scopes, self.now, self.asker = asked, scopes, now, asker

    def named(self, other: OtherName | None) -> Question:
        """The same question by another name."""
        asked = copy(self)
        if other is not None:
            asked.terms, asked.keys = other.replaced(self.terms), (*self.keys, other.name, f"my {other.name}")
        return asked

    def wants(self, fact: Fact) -> bool:
        """Whether a fact is worth telling: it is current, its value is named, or the question is about the past."""
        return fact.is_open or self.is_past or not set(self.terms).isdisjoint(terms_of(fact.value))

    def aims_at(self, fact: Fact) -> bool:
        """Whether the fact is about who asks, or somebody whom the question names."""
        subject, _, what = (fact.attribute or "").partition("|")
        if what and subject in self.keys:
            return True
        if not self.is_own:
            return False
        is_me = subject == ME if what else sign("first_person").search(fact.content) is not None
        if fact.scope.is_room:
            is_by_asker = fact.account is not None and fact.account == self.asker
            is_me = is_by_asker and (is_me or (bool(what) and ":" in subject))
        return is_me


CLOSED = 0.3
"""What is over counts so much."""
OTHERWISE = 0.8
"""What is found by another name counts so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRanking:
    """Weights of bm25, shared words, shared names, `Question.aims_at` and, where there is one, the similarity of
    holographic vectors; `half_life_days` by kind, for kinds that age (a pinned fact does not)."""

    text: float = 0.5
    jaccard: float = 0.15
    names: float = 0.15
    aim: float = 0.2
    hrr: float = 0.0
    half_life_days: Mapping[FactKind, float] = field(default_factory=dict)

    def best(
        self, found: Sequence[tuple[OtherName | None, Candidates]], question: Question
    ) -> list[tuple[Fact, float]]:
        """What `Facts.candidates` gives, best first: each by the name that it fits best."""
        scored: dict[int, tuple[Fact, float]] = {}
        for other, candidates in found:
            for fact, score in self.ranked(_held(candidates), question.named(other)):
                weighed = score if other is None else OTHERWISE * score
                if fact.id not in scored or weighed > scored[fact.id][1]:
                    scored[fact.id] = fact, weighed
        return sorted(scored.values(), key=lambda item: (-item[1], -item[0].id))

    def ranked(self, found: Candidates, question: Question) -> list[tuple[Fact, float]]:
        """Candidates, best first, with scores from 0 to 1."""
        best = max((text for _, text, _ in found), default=0.0) or 1.0
        most = max((names for _, _, names in found), default=0) or 1
        near: Mapping[int, float] = {}
        if self.hrr:
            # With numpy, which is loaded only where the vectors count.
            from core.facts.hrr import nearness

            near = nearness(question.terms, question.keys, [fact for fact, _, _ in found])
        scored = []
        for fact, text, names in found:
            fit = self.fit(fact, text / best, names / most, question) + self.hrr * near.get(fact.id, 0.0)
            scored.append((fact, fit * fact.trust * self.freshness(fact, question.now)))
        return sorted(scored, key=lambda item: (-item[1], -item[0].id))

    def fit(self, fact: Fact, text: float, names: float, question: Question) -> float:
        """How well a fact fits the question, where `text` and `names` are 1 for the best of all."""
        asked, held = set(question.terms), set(terms_of(fact.content))
        # Jaccard similarity of terms; the fact's include the words its attribute is asked by.
        shared = len(asked & (held | set(hints_of(fact.attribute)))) / len(asked | held) if asked else 0.0
        fit = self.text * text + self.names * names
        return fit + self.jaccard * shared + self.aim * question.aims_at(fact)

    def freshness(self, fact: Fact, now: datetime) -> float:
        """From 1 to 0: halves with each half-life since it was last said; times `CLOSED` for what is over."""
        life_days = None if fact.is_pinned else self.half_life_days.get(fact.kind)
        age_days = max(0.0, (now - fact.said_at) / timedelta(days=1))
        fresh = 1.0 if life_days is None else 0.5 ** (age_days / life_days)
        is_over = not fact.is_open or (fact.valid_to is not None and fact.valid_to <= now)
        return fresh * (CLOSED if is_over else 1.0)


WORTH = 0.35
"""A fact that scores less than this part of the best is left out."""


@dataclass
class KnownFacts:
    """Ranked search; `zone`: for dates."""

    facts: Facts
    blend: FactRanking
    zone: ZoneInfo

    async def search(self, question: Question, limit: int = 10) -> list[Fact]:
        """Best first; none where no word and no name of the question is known."""
        found = await self.facts.candidates(
            question.terms, question.keys, question.scopes, question.text, question.asker
        )
        ranked = self.blend.best(found, question)
        best = ranked[0][1] if ranked else 0.0
        worth = [fact for fact, score in ranked if score >= WORTH * best]
        current = {fact.attribute for fact in worth if fact.attribute and fact.is_open}
        return [fact for fact in worth if fact.attribute not in current or question.wants(fact)][:limit]

    def line_of(self, fact: Fact) -> str:
        content = fact.content.rstrip(" .")
        who = f"{fact.speaker}: " if fact.scope.is_room and fact.speaker else ""
        return f"{who}{content} ({'; '.join((*self.span(fact), f'said on {self.day(fact.said_at)}'))})"

    def span(self, fact: Fact) -> tuple[str, ...]:
        """``since May 2026``, ``until May 2026, no longer so``."""
        since = () if fact.valid_from is None else (f"since {self.day(fact.valid_from, fact.grain)}",)
        if fact.is_open:
            return since
        until = f"until {self.day(fact.valid_to, 'month')}, no longer so" if fact.valid_to else ""
        return (*since, until or "said again in other words")

    def day(self, at: datetime, grain: Grain = "day") -> str:
        """``3 May 2026``, ``May 2026`` or ``2026``."""
        local = at.astimezone(self.zone)
        if grain == "year":
            return f"{local:%Y}"
        return f"{local:%B %Y}" if grain == "month" else f"{local.day} {local:%B %Y}"


def _held(found: Candidates) -> Candidates:
    """Without open facts that a later one of the same attribute contradicts in another scope of the same person."""
    own = {fact.id: fact for fact, _, _ in found if fact.attribute and fact.is_open and not fact.scope.is_room}
    latest = {fact.attribute: fact.value for fact in sorted(own.values(), key=lambda fact: fact.said_at)}
    return [item for item in found if item[0].id not in own or item[0].value == latest[item[0].attribute]]


class _Arguments(ToldFact):
    mode: Literal[
        "search", "probe", "related", "reason", "contradict", "list", "add", "update", "remove", "feedback"
    ] = "search"
    query: str = Field(default="", max_length=2000)
    content: str = Field(default="", max_length=FACT_CHARS)
    fact_id: int = 0
    is_right: bool | None = None
    limit: int = Field(default=10, ge=1, le=MOST)
    offset: int = Field(default=0, ge=0)

    def told(self) -> ToldFact:
        """What to keep. Raises ToolError where that is not said."""
        return parsed(ToldFact, self.model_dump(include=set(ToldFact.model_fields)))


@dataclass(eq=False)
class FactsProvider(MemoryProvider):
    facts: Facts
    knowledge: KnownFacts
    reader: FactReader
    evidence: EvidenceSearch

    name = "facts"

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        found = await self.knowledge.search(Question(text, context.scopes, context.now, context.account), LINES)
        return [
            f"{_token(fact)} {self.knowledge.line_of(fact)}"
            for fact in found
            # The model reads the messages of the window themselves.
            if not any(first <= (fact.message_id or -1) <= last for _, first, last in context.window)
        ]

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        # A model, whose every call costs, reads several messages together; what no rule finds now waits for `catch_up`.
        if self.reader.model is None and await self.reader.candidates(messages):
            await self.reader.read(session)

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        await self.reader.read(session)

    async def catch_up(self) -> None:
        await self.reader.catch_up()

    async def tools(self) -> Sequence[Tool]:
        kept = tool_of("remember_this", ToldFact, self._keep, "core.facts", is_quote=True)
        return [tool_of("facts", _Arguments, self._answer, "core.facts", is_quote=True), kept]

    async def _answer(self, asked: _Arguments, context: ToolContext) -> str:
        """JSON: facts, or names, or groups."""
        result: dict[str, object]
        match asked.mode:
            case "search":
                if not asked.query.strip():
                    raise ToolError("query: say what to look for.")
                question = Question(asked.query, context.scopes, context.now, context.account)
                found = await self.knowledge.search(question, asked.limit)
                result = {"facts": list(map(self._shown, found))}
            case "contradict":
                groups = await self.facts.conflicts(context.scopes, asked.limit)
                result = {"groups": [list(map(self._shown, group)) for group in groups]}
            case "list":
                found = await self.facts.page(context.scopes, asked.offset, asked.limit)
                result = {"facts": list(map(self._shown, found))}
            case "add":
                return await self._keep(asked.told(), context)
            case "update" | "remove":
                return await self._change(asked, context)
            case "feedback":
                result = await self._feedback(asked, context)
            case _:
                result = await self._about(asked, context)
        return json.dumps(result, ensure_ascii=False)

    async def _about(self, asked: _Arguments, context: ToolContext) -> dict[str, object]:
        keys = [key for name in (asked.names or [asked.query]) if (key := entity_key(name))]
        if not keys:
            raise ToolError("names: say whom or what it is about.")
        if asked.mode == "related":
            near = await self.facts.related(keys, context.scopes, asked.limit)
            return {"names": [{"name": name, "facts": count} for name, count in near]}
        keys = keys if asked.mode == "reason" else keys[:1]
        return {"facts": list(map(self._shown, await self.facts.of_entities(keys, context.scopes, asked.limit)))}

    async def _feedback(self, asked: _Arguments, context: ToolContext) -> dict[str, object]:
        if asked.is_right is None:
            raise ToolError("is_right: say true or false.")
        by = Author(account=context.account, message_id=context.message_id)
        fact = await self._own(asked.fact_id, context)
        fact = await self.facts.feedback(fact.id, context.scopes, asked.is_right, by) or fact
        return {"fact_id": fact.id, "trust": round(fact.trust, 2)}

    async def _own(self, fact_id: int, context: ToolContext) -> Fact:
        """The fact, where it is for who speaks to judge and change it."""
        fact = await self.facts.find(fact_id, context.scopes)
        if fact is None:
            raise ToolError(f"fact_id: there is no fact {fact_id}.")
        if fact.scope.is_room and fact.account != context.account:
            raise ToolError("fact_id: in a room only who said it judges a fact; the owner does with `/memory wrong`.")
        return fact

    async def _change(self, asked: _Arguments, context: ToolContext) -> str:
        """Updates or removes a fact; what a person has worded or pinned, and what nobody has typed, waits for a yes."""
        if not context.session.is_remembered:
            raise ToolError(_SCHEDULED)
        told = asked.told() if asked.mode == "update" else None
        fact = await self._own(asked.fact_id, context)
        if not fact.is_open:
            raise ToolError(f"fact_id: fact {fact.id} is over already.")
        by, reason = Author(account=context.account, message_id=context.message_id, epoch=context.epoch), None
        if fact.origin == "person" or fact.is_pinned:
            reason = "the person has worded or pinned that fact"
        elif told is not None:
            found, reason = await self._source(told, context)
            if found is not None and fact.scope.is_room and found[0].sender != context.sender:
                reason = "somebody else has typed that"
            elif found is not None:
                return await self._update(fact, told, found, context)
        else:
            rows = await self.evidence.conversations.history(context.session, context.scopes)
            reason = foreign(rows, context.sender, _OWN_TOOLS)
        if reason is not None:
            change = Operation(action="remove", old_text=fact.content, path=f"f{fact.id}")
            change = change if told is None else replace(change, action="replace", content=told.content)
            return await self.reader.review.put_aside(fact.scope, FACT, [change], by, reason)
        await self.facts.remove(fact.id, context.scopes, by)
        return f"Fact {fact.id} is over: “{fact.content}”. The person takes that back with `/memory undo f{fact.id}`."

    async def _update(self, fact: Fact, told: ToldFact, found: tuple[Message, bool], context: ToolContext) -> str:
        source, is_dated = found
        claim = told.claim(source, self.knowledge.zone, is_dated=is_dated)
        by = Author(account=context.account, message_id=source.id, epoch=context.epoch)

        def reading(worded: Fact) -> Fact:
            read = replace(worded, origin="model", trust=TRUST["model"], entities=claim.entities)
            return claim.laid_over(replace(read, last_at=source.created_at))

        updated = await self.facts.correct(fact.id, context.scopes, told.content, by, reading, source.text)
        if updated is None:
            raise ToolError(_GONE)
        return f"Fact {fact.id} now says: “{updated.content}”."

    def _shown(self, fact: Fact) -> dict[str, object]:
        shown: dict[str, object] = {
            "fact_id": fact.id,
            "content": fact.content,
            "is_current": fact.is_open,
            "when": ", ".join(self.knowledge.span(fact)),
            "said_on": self.knowledge.day(fact.said_at),
            "trust": round(fact.trust, 2),
        }
        return shown | ({"who": fact.speaker} if fact.scope.is_room and fact.speaker else {})

    async def _source(self, told: ToldFact, context: ToolContext) -> tuple[tuple[Message, bool] | None, str]:
        """The message that bears out what is to be kept, and whether it says since when; or why it waits for a yes."""
        evidence, wrong = await self.evidence.evidence(context), suspicion(told.content)
        found = await asyncio.to_thread(told.source, evidence) if wrong is None else None
        if found is not None:
            return found, ""
        return None, f"it contains {wrong}" if wrong else evidence.missing(told.content, told.must_be_said)

    async def _keep(self, told: ToldFact, context: ToolContext) -> str:
        """Learns it, or lets it wait for a yes where nobody has typed it."""
        if not context.session.is_remembered:
            raise ToolError(_SCHEDULED)
        found, reason = await self._source(told, context)
        if found is None:
            author = Author(account=context.account, message_id=context.message_id, epoch=context.epoch)
            operations = [Operation(action="add", content=told.content)]
            return await self.reader.review.put_aside(context.scope, FACT, operations, author, reason)
        source, is_dated = found
        claim = told.claim(source, self.knowledge.zone, is_dated=is_dated)
        fact = fact_of(claim, "model", *await self.evidence.place(source, context), source)
        fact = await self.facts.learn(fact, source.text, context.epoch)
        if not fact.id:
            raise ToolError(_GONE)
        return f"Fact {fact.id} is kept: “{fact.content}”."


def _token(fact: Fact) -> str:
    """Names a line, so that it is given once; changes where a person has reworded the fact."""
    words = f"-{zlib.crc32(fact.content.encode()) & 0xFFFF:04x}" if fact.origin == "person" else ""
    return f"f{fact.id}{words}"
