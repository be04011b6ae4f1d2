"""Offer facts that people have stated, with their periods and trust, as long-term memory.

After a turn, facts are extracted from the messages that people typed. Before the next turn, the
model gets the facts that fit the new message. A fact that is no longer true is kept as a former
fact. The model has the tools `facts` (search, judge, change) and `remember_this` (store).
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

from core.errors import ToolError, word_clause
from core.facts.claims import MAX_FACT_CHARS, TRUST_BY_ORIGIN, fact_from_claim, mentions_change
from core.facts.closeness import Support as Closeness
from core.facts.evidence import EvidenceSearch
from core.facts.extraction import FactReader
from core.facts.patterns import claim_pattern
from core.facts.reading.reports import ReportedFact, Support
from core.guard.foreign_texts import OWN_TOOLS
from core.guard.guard import find_suspicion
from core.guard.origin_and_fence import typed_text
from core.guard.tool_definitions import build_tool, parse_arguments
from core.memory.provider import MemoryProvider
from core.review.pending import find_foreign_source
from core.store.facts.facts import Alias, Candidates, Facts
from core.store.facts.rows import Fact, FactKind, Precision
from core.store.notes import FACT, Author, Operation
from core.text.normalize import quote_at_end
from core.text.terms import ME, entity_key, entity_keys_in, hint_terms, query_terms, terms_of
from core.types import Account, Effect, Json, Message, Scope, Session, Subject, Tool, ToolContext

_SCHEDULED = (
    "This run was started by a schedule, so no one has stated a fact. Continue without storing it."
)
_GONE = "The message that states this was just changed or deleted. Do not store the fact."
MAX_PREFETCHED = 6
"""At most this many facts are added to a turn."""
MAX_LISTED = 30
MAX_COMPARED_FACTS = 500
"""A wish must match a fact better than it matches this many other facts."""
QUESTION_CHARS = 2_000
FORMER_WEIGHT = 0.3
"""The score of a former fact is multiplied by this."""
ALIAS_WEIGHT = 0.8
"""The score of a fact that was found by an alias is multiplied by this."""
MIN_SCORE_SHARE = 0.35
"""A fact is left out if its score is less than this share of the best score."""


class Question:
    """A text for which facts are searched.

    `asker` is the account that asks, or None at the command line.
    """

    def __init__(
        self, text: str, scopes: frozenset[Scope], now: datetime, asker: Account | None = None
    ) -> None:
        self.text = text[:QUESTION_CHARS]
        self.scopes = scopes
        self.now = now
        self.asker = asker
        self.terms = tuple(query_terms(self.text))
        # The comparison forms of the names in the text.
        self.keys = entity_keys_in(self.text)
        self.is_about_asker = claim_pattern("first_person").search(self.text) is not None
        self.is_about_past = claim_pattern("past").search(self.text) is not None

    def with_alias(self, alias: Alias) -> Question:
        """Return a copy of the question that searches for the name behind an alias.

        For example, if Ana is the person's sister, "what does my sister like" also searches for
        "Ana".
        """
        question = copy(self)
        question.terms = alias.substitute_terms(self.terms)
        question.keys = (*self.keys, alias.name, f"my {alias.name}")
        return question

    def wants(self, fact: Fact) -> bool:
        """Return whether a fact helps to answer the question.

        A current fact always helps. A former fact helps if the question is about the past, or
        contains a word of the fact's value.
        """
        if fact.is_open or self.is_about_past:
            return True
        return not set(self.terms).isdisjoint(terms_of(fact.value))

    def is_about(self, fact: Fact) -> bool:
        """Return whether the fact is about the asker, or about a person whom the question names."""
        # An attribute such as "ana|home" begins with its subject.
        subject, _, attribute = (fact.attribute or "").partition("|")
        if attribute and subject in self.keys:
            return True
        if not self.is_about_asker:
            return False
        if attribute:
            is_about_speaker = subject == ME
        else:
            is_about_speaker = claim_pattern("first_person").search(fact.content) is not None
        if not fact.scope.is_group:
            return is_about_speaker
        # In a group, the subject of a fact about its speaker is an account: "telegram:42|home".
        if fact.account is None or fact.account != self.asker:
            return False
        return is_about_speaker or (bool(attribute) and ":" in subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRanking:
    """Ranks facts by how well they fit a question. The fields are the weights of the signals."""

    # BM25 of the content.
    text: float = 0.5
    # Share of the terms that fact and question have in common.
    jaccard: float = 0.15
    # Number of names in common.
    names: float = 0.15
    # Whether fact and question are about the same person.
    subject: float = 0.2
    # Similarity of holographic vectors (see `core/facts/hrr.py`).
    hrr: float = 0.0
    # The number of days after which the score of a fact is halved, for each kind that ages.
    half_life_days: Mapping[FactKind, float] = field(default_factory=dict)

    def rank_by_aliases(
        self, candidates_by_alias: Sequence[tuple[Alias | None, Candidates]], question: Question
    ) -> list[tuple[Fact, float]]:
        """Return the candidates of all aliases with their scores, best first.

        A fact that several aliases found gets its best score. `candidates_by_alias` is the result
        of `Facts.find_candidates`. The candidates without an alias match the question itself.
        """
        best: dict[int, tuple[Fact, float]] = {}
        for alias, candidates in candidates_by_alias:
            alias_question = question if alias is None else question.with_alias(alias)
            weight = 1.0 if alias is None else ALIAS_WEIGHT
            for fact, score in self.rank(_drop_contradicted(candidates), alias_question):
                weighted_score = weight * score
                if fact.id not in best or weighted_score > best[fact.id][1]:
                    best[fact.id] = fact, weighted_score
        return sorted(best.values(), key=lambda item: (-item[1], -item[0].id))

    def rank(self, candidates: Candidates, question: Question) -> list[tuple[Fact, float]]:
        """Return candidates with scores from 0 to 1, best first."""
        best_text = max((candidate.text_score for candidate in candidates), default=0.0) or 1.0
        best_names = max((candidate.name_count for candidate in candidates), default=0) or 1
        similarities: Mapping[int, float] = {}
        if self.hrr:
            # Imported only if it is needed, because it loads numpy.
            from core.facts.hrr import compute_similarities

            facts = [candidate.fact for candidate in candidates]
            similarities = compute_similarities(question.terms, question.keys, facts)
        scores = []
        for fact, text, names in candidates:
            fit = self.score_fit(fact, text / best_text, names / best_names, question)
            fit += self.hrr * similarities.get(fact.id, 0.0)
            score = fit * fact.trust * self.freshness(fact, question.now)
            scores.append((fact, score))
        return sorted(scores, key=lambda item: (-item[1], -item[0].id))

    def score_fit(self, fact: Fact, text: float, names: float, question: Question) -> float:
        """Return how well a fact fits the question: the weighted sum of all signals except `hrr`.

        `text` is the BM25 score as a share of the best candidate's score. `names` is the number of
        shared names, divided by that of the best candidate.
        """
        question_terms = set(question.terms)
        fact_terms = set(terms_of(fact.content))
        jaccard = 0.0
        if question_terms:
            # Words that ask for the attribute also count as common: "live" for a fact with the
            # attribute "home".
            common = question_terms & (fact_terms | set(hint_terms(fact.attribute)))
            jaccard = len(common) / len(question_terms | fact_terms)
        fit = self.text * text + self.names * names + self.jaccard * jaccard
        if question.is_about(fact):
            fit += self.subject
        return fit

    def freshness(self, fact: Fact, now: datetime) -> float:
        """Return a factor from 0 to 1 that lowers the score of old facts and of former facts.

        The age of a fact is the time since it was last stated. Pinned facts don't age.
        """
        freshness = 1.0
        half_life_days = None if fact.is_pinned else self.half_life_days.get(fact.kind)
        if half_life_days is not None:
            age_days = max(0.0, (now - fact.last_said_at) / timedelta(days=1))
            freshness = 0.5 ** (age_days / half_life_days)
        is_over = not fact.is_open or (fact.valid_to is not None and fact.valid_to <= now)
        return freshness * FORMER_WEIGHT if is_over else freshness


def _drop_contradicted(candidates: Candidates) -> Candidates:
    """Drop facts that the same person has later contradicted in another private scope.

    If several current facts are about the same attribute, only those with the latest value remain.
    Facts from groups are never dropped.
    """
    latest: dict[str, Fact] = {}
    for candidate in candidates:
        fact = candidate.fact
        if not _can_be_contradicted(fact) or fact.attribute is None:
            continue
        other = latest.get(fact.attribute)
        if other is None or fact.last_said_at >= other.last_said_at:
            latest[fact.attribute] = fact
    return [
        candidate
        for candidate in candidates
        if not _can_be_contradicted(candidate.fact)
        or candidate.fact.value == latest[candidate.fact.attribute or ""].value
    ]


def _can_be_contradicted(fact: Fact) -> bool:
    return bool(fact.attribute) and fact.is_open and not fact.scope.is_group


@dataclass
class FactSearch:
    """Searches facts, and describes them in sentences."""

    facts: Facts
    ranking: FactRanking
    # The time zone of dates in the texts.
    zone: ZoneInfo

    async def search(self, question: Question, limit: int = 10) -> list[Fact]:
        """Return facts that share a word or a name with the question, best first.

        If an attribute has a current fact, its former facts are left out, unless the question asks
        for them (see `Question.wants`). Before each former fact comes the fact that closed it.
        """
        candidates = await self.facts.find_candidates(
            question.terms, question.keys, question.scopes, question.text, question.asker
        )
        ranking = self.ranking.rank_by_aliases(candidates, question)
        best_score = ranking[0][1] if ranking else 0.0
        facts = [fact for fact, score in ranking if score >= MIN_SCORE_SHARE * best_score]
        current = {fact.attribute for fact in facts if fact.attribute and fact.is_open}
        useful_facts = [
            fact for fact in facts if fact.attribute not in current or question.wants(fact)
        ]
        return (await self._add_successors(useful_facts, question.scopes))[:limit]

    async def _add_successors(self, facts: Sequence[Fact], scopes: frozenset[Scope]) -> list[Fact]:
        """Insert, before each former fact, the current fact that finally replaced it."""
        facts_by_id = {fact.id: fact for fact in facts}
        newest = list(facts)
        while newest:
            closing_ids = {fact.closed_by for fact in newest if fact.closed_by}
            missing_ids = sorted(closing_ids - facts_by_id.keys())
            newest = await self.facts.find_by_ids(missing_ids, scopes) if missing_ids else []
            facts_by_id |= {fact.id: fact for fact in newest}
        ordered: dict[int, Fact] = {}
        for fact in facts:
            if not fact.is_open:
                chain = [fact]
                successor = facts_by_id.get(fact.closed_by or 0)
                while successor is not None and successor not in chain:
                    chain.append(successor)
                    successor = facts_by_id.get(successor.closed_by or 0)
                ordered.setdefault(chain[-1].id, chain[-1])
            ordered.setdefault(fact.id, fact)
        return list(ordered.values())

    def render_line(self, fact: Fact) -> str:
        """Return a fact with its period and the day it was last stated, as a line of text.

        In a group, the line begins with the speaker: ``Ana: I live in Porto (said on 3 May 2026)``.
        """
        speaker = f"{fact.speaker}: " if fact.scope.is_group and fact.speaker else ""
        content = fact.content.rstrip(" .")
        times = [*self.describe_span(fact), f"said on {self.format_day(fact.last_said_at)}"]
        return f"{speaker}{content} ({'; '.join(times)})"

    def describe_span(self, fact: Fact) -> tuple[str, ...]:
        """Describe when a fact became true and when it ended. Unknown times are left out.

        For example, the result is (``since May 2026``, ``until May 2027, no longer so``).
        """
        parts = []
        if fact.valid_from is not None:
            parts.append(f"since {self.format_day(fact.valid_from, fact.precision)}")
        if not fact.is_open:
            parts.append(self.describe_end(fact))
        return tuple(parts)

    def describe_end(self, fact: Fact) -> str:
        """Describe why a former fact is closed, e.g. ``until May 2027, no longer so``."""
        if fact.valid_to is None:
            return "said again in other words"
        return f"until {self.format_day(fact.valid_to, 'month')}, no longer so"

    def format_day(self, at: datetime, precision: Precision = "day") -> str:
        """Return a date in the given precision: ``3 May 2026``, ``May 2026`` or ``2026``."""
        local = at.astimezone(self.zone)
        if precision == "year":
            return f"{local:%Y}"
        if precision == "month":
            return f"{local:%B %Y}"
        return f"{local.day} {local:%B %Y}"


# The arguments of the tool `facts`. `data/prompts.toml` describes them to the model. This is a
# comment because a docstring would become part of the tool's schema.
class _Arguments(ReportedFact):
    mode: Literal[
        "search",
        "probe",
        "related",
        "reason",
        "contradict",
        "list",
        "add",
        "update",
        "remove",
        "feedback",
    ] = "search"
    query: str = Field(default="", max_length=2000)
    content: str = Field(default="", max_length=MAX_FACT_CHARS)
    fact_id: int = 0
    is_right: bool | None = None
    limit: int = Field(default=10, ge=1, le=MAX_LISTED)
    offset: int = Field(default=0, ge=0)

    def to_reported_fact(self) -> ReportedFact:
        """Return the fact that the arguments describe. Raises ToolError if they are invalid."""
        values = self.model_dump(include=set(ReportedFact.model_fields))
        return parse_arguments(ReportedFact, values)


_EFFECTS = {
    **dict.fromkeys(("search", "probe", "related", "reason", "contradict", "list"), Effect.READ),
    "add": Effect.ADD,
    "update": Effect.CHANGE,
    "remove": Effect.REMOVE,
    # Feedback raises or lowers the trust in a fact.
    "feedback": Effect.WEAKEN,
}


@dataclass(eq=False)
class FactsProvider(MemoryProvider):
    """The memory provider that offers the facts in state.db to the model."""

    facts: Facts
    fact_search: FactSearch
    reader: FactReader
    evidence: EvidenceSearch

    name = "facts"

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Return a line for each fact that fits the text.

        Facts from messages that the model already sees are left out. Each line has a key, so that a
        conversation recognises facts that it already has.
        """
        question = Question(text, context.scopes, context.now, context.account)
        lines = []
        for fact in await self.fact_search.search(question, MAX_PREFETCHED):
            is_in_window = any(
                first <= (fact.message_id or -1) <= last for _, first, last in context.window
            )
            if not is_in_window:
                lines.append(f"{_line_key(fact)} {self.fact_search.render_line(fact)}")
        return lines

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        # Model calls cost money, so a model reads several messages at once, later in `catch_up`.
        # Messages in which the rules find nothing are marked as read in `catch_up`, too.
        if self.reader.model is not None:
            return
        candidates = await self.reader.find_candidates(messages)
        if candidates or any(mentions_change(typed_text(message)) for message in messages):
            await self.reader.read_session(session)

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        await self.reader.read_session(session)

    async def catch_up(self) -> None:
        await self.reader.catch_up()

    async def tools(self) -> Sequence[Tool]:
        """Return the tools `facts` and `remember_this`."""
        facts = build_tool(
            "facts",
            _Arguments,
            self._run,
            "core.facts",
            _EFFECTS,
            action_argument="mode",
            is_quote=True,
            can_hold=True,
            find_subjects=self._find_subjects,
        )
        remember = build_tool(
            "remember_this",
            ReportedFact,
            self._store,
            "core.facts",
            Effect.ADD,
            is_quote=True,
            can_hold=True,
        )
        return [facts, remember]

    async def _run(self, arguments: _Arguments, context: ToolContext) -> str:
        """Run the tool `facts` in the requested mode.

        Returns JSON, or a sentence after a change. Raises ToolError if an argument is wrong.
        """
        result: dict[str, object]
        match arguments.mode:
            case "search":
                if not arguments.query.strip():
                    raise ToolError("query: write what to search for.")
                question = Question(arguments.query, context.scopes, context.now, context.account)
                facts = await self.fact_search.search(question, arguments.limit)
                from core.facts.endings_and_corrections import list_replaced

                describe = self.fact_search.describe_end
                replaced = await list_replaced(self.facts, facts, context.scopes, describe)
                result = {"facts": list(map(self._to_json, facts)), **replaced}
            case "contradict":
                groups = await self.facts.list_conflicts(context.scopes, arguments.limit)
                result = {"groups": [list(map(self._to_json, group)) for group in groups]}
            case "list":
                facts = await self.facts.list_page(
                    context.scopes, arguments.limit, arguments.offset
                )
                result = {"facts": list(map(self._to_json, facts))}
            case "add":
                return await self._store(arguments.to_reported_fact(), context)
            case "update" | "remove":
                return await self._change(arguments, context)
            case "feedback":
                return await self._judge(arguments, context)
            case _:
                result = await self._find_by_names(arguments, context)
        return json.dumps(result, ensure_ascii=False)

    async def _find_subjects(self, arguments: Json, context: ToolContext) -> Sequence[Subject]:
        """Return the fact that a tool call changes or judges, in a list."""
        parsed = parse_arguments(_Arguments, arguments)
        fact = await self.facts.find(parsed.fact_id, context.scopes)
        if parsed.mode not in ("update", "remove", "feedback") or fact is None:
            return []
        facts = await self.facts.list_page(context.scopes, MAX_COMPARED_FACTS)
        return [
            Subject(
                label=word_clause("label_fact", number=fact.id),
                text=fact.content,
                number=str(fact.id),
                is_pinned=fact.is_pinned,
                kind="memory",
                others=[other.content for other in facts if other.is_open and other.id != fact.id],
            )
        ]

    async def _find_by_names(
        self, arguments: _Arguments, context: ToolContext
    ) -> dict[str, object]:
        """Return the facts about the first name or, in the mode "reason", about all names.

        In the mode "related", return the names that share facts with these names. Raises ToolError
        if the arguments contain no name.
        """
        names = arguments.names or [arguments.query]
        keys = [key for key in map(entity_key, names) if key]
        if not keys:
            raise ToolError("names: name at least one person or thing.")
        if arguments.mode == "related":
            related_names = await self.facts.list_related_names(
                keys, context.scopes, arguments.limit
            )
            return {"names": [{"name": name, "facts": count} for name, count in related_names]}
        if arguments.mode != "reason":
            keys = keys[:1]
        facts = await self.facts.find_by_entities(keys, context.scopes, arguments.limit)
        return {"facts": list(map(self._to_json, facts))}

    async def _judge(self, arguments: _Arguments, context: ToolContext) -> str:
        """Raise or lower the trust in a fact, or ask the person first.

        Returns the fact's id and new trust as JSON, or a sentence if the person is asked. Raises
        ToolError if an argument is missing, or if the person may not judge the fact.
        """
        if arguments.is_right is None:
            raise ToolError("is_right: must be true or false.")
        by = _author(context)
        fact = await self._load_own_fact(arguments.fact_id, context)
        if context.hold_reason:
            change = Operation(
                action="trust" if arguments.is_right else "doubt",
                old_text=fact.content,
                path=f"f{fact.id}",
            )
            return await self.reader.review.put_aside(
                fact.scope, FACT, [change], by, context.hold_reason
            )
        judged_fact = await self.facts.record_feedback(
            fact.id, context.scopes, arguments.is_right, by
        )
        fact = judged_fact or fact
        return json.dumps({"fact_id": fact.id, "trust": round(fact.trust, 2)})

    async def _load_own_fact(self, fact_id: int, context: ToolContext) -> Fact:
        """Load a fact, or raise ToolError if it doesn't exist or the person may not change it."""
        fact = await self.facts.find(fact_id, context.scopes)
        if fact is None:
            raise ToolError(f"fact_id: there is no fact {fact_id}.")
        if fact.scope.is_group and fact.account != context.account:
            raise ToolError(
                "fact_id: in a group, only the person who stated a fact can change it. "
                "The owner can with `/memory wrong`."
            )
        return fact

    async def _change(self, arguments: _Arguments, context: ToolContext) -> str:
        """Update or remove a fact, and return a sentence about the result.

        An update needs approval if a person worded or pinned the fact, or if no message of the
        person supports the new text. The gate decides whether a removal needs approval
        (`context.hold_reason`). Raises ToolError if the fact may not be changed here.
        """
        if not context.session.is_remembered:
            raise ToolError(_SCHEDULED)
        report = arguments.to_reported_fact() if arguments.mode == "update" else None
        fact = await self._load_own_fact(arguments.fact_id, context)
        if not fact.is_open:
            raise ToolError(f"fact_id: fact {fact.id} is already a former fact.")

        if fact.origin == "person" or fact.is_pinned:
            reason: str | None = word_clause("waits_persons_fact")
        elif context.hold_reason:
            reason = context.hold_reason
        elif report is not None:
            support, reason = await self._find_support(report, context)
            if support is not None and _is_of_other_person(support, fact, context):
                reason = word_clause("waits_others_words")
            elif support is not None:
                return await self._update(fact, report, support, context)
        else:
            reason = None
        if reason is not None:
            return await self._ask_for_approval(fact, report, reason, context)

        await self.facts.remove(fact.id, context.scopes, _author(context))
        return (
            f"Fact {fact.id} is now a former fact: {quote_at_end(fact.content)} "
            f"The person can undo this with `/memory undo f{fact.id}`."
        )

    async def _ask_for_approval(
        self, fact: Fact, report: ReportedFact | None, reason: str, context: ToolContext
    ) -> str:
        """Store a change that waits for approval, and return a sentence that says so.

        With a report, the change replaces the fact's text. Without one, it removes the fact.
        """
        path = f"f{fact.id}"
        change = Operation(action="remove", old_text=fact.content, path=path)
        if report is not None:
            change = replace(change, action="replace", content=report.content)
        return await self.reader.review.put_aside(
            fact.scope, FACT, [change], _author(context), reason
        )

    async def _update(
        self, fact: Fact, report: ReportedFact, support: Support, context: ToolContext
    ) -> str:
        """Replace a fact's text and details with those of a report that a message supports.

        Returns a sentence about the change. Raises ToolError if the message was changed or deleted
        meanwhile.
        """
        message = support.message
        claim = report.to_claim(message, self.fact_search.zone, is_dated=support.is_dated)
        by = Author(account=context.account, message_id=message.id, epoch=context.epoch)

        def apply_report(reworded: Fact) -> Fact:
            """Copy the details of the report, such as its date, to the fact with the new text."""
            new_fact = replace(
                reworded,
                origin="model",
                trust=TRUST_BY_ORIGIN["model"],
                entities=claim.entities,
                last_at=message.created_at,
            )
            return claim.apply_to(new_fact)

        new_fact = await self.facts.correct(
            fact.id, context.scopes, report.content, by, apply_report, message.text
        )
        if new_fact is None:
            raise ToolError(_GONE)
        return f"Fact {fact.id} now says: {quote_at_end(new_fact.content)}"

    async def _store(self, report: ReportedFact, context: ToolContext) -> str:
        """Store a fact if a message supports it, or else ask for approval.

        Returns a sentence about the result. Raises ToolError if the message was changed or deleted
        meanwhile.
        """
        if not context.session.is_remembered:
            raise ToolError(_SCHEDULED)
        support, reason = await self._find_support(report, context)
        if support is None:
            operations = [Operation(action="add", content=report.content)]
            return await self.reader.review.put_aside(
                context.scope, FACT, operations, _author(context), reason
            )
        message = support.message
        claim = report.to_claim(message, self.fact_search.zone, is_dated=support.is_dated)
        scope, platform = await self.evidence.locate_source(message, context)
        fact = fact_from_claim(claim, "model", scope, platform, message)
        fact = await self.facts.learn(fact, message.text, context.epoch, _author(context))
        if not fact.id:
            raise ToolError(_GONE)
        return f"Fact {fact.id} is stored: {quote_at_end(fact.content)}"

    async def _find_support(
        self, report: ReportedFact, context: ToolContext
    ) -> tuple[Support | None, str]:
        """Return the message that supports a report, and "".

        If the report needs approval, return None and the reason as a clause. The report must be
        close to the typed text. If the conversation contains only typed text, it is enough that the
        report follows from it.
        """
        evidence = await self.evidence.load_evidence(context)
        suspicion = find_suspicion(report.content)
        if suspicion is not None:
            return None, word_clause("waits_suspicious", suspicion=suspicion)
        support = await asyncio.to_thread(report.find_support, evidence)
        if support is None:
            return None, evidence.describe_missing(report.content, report.required_names)
        judgement = await asyncio.to_thread(
            evidence.judge_note, report.content, support.message.sender
        )
        if judgement.support is Closeness.CLOSE:
            return support, ""
        source = find_foreign_source(evidence.messages, context, tuple(OWN_TOOLS))
        if judgement.support is Closeness.UNCLEAR and source is None:
            # All text in the conversation is typed, so no other person can have suggested the fact.
            return support, ""
        return None, word_clause("waits_said_otherwise")

    def _to_json(self, fact: Fact) -> dict[str, object]:
        """Return the fields of a fact that the model sees."""
        fields: dict[str, object] = {
            "fact_id": fact.id,
            "content": fact.content,
            "is_current": fact.is_open,
            "when": ", ".join(self.fact_search.describe_span(fact)),
            "said_on": self.fact_search.format_day(fact.last_said_at),
            "said_at": fact.last_said_at.isoformat(),
            "message_id": fact.message_id,
            "trust": round(fact.trust, 2),
        }
        if not fact.is_open:
            fields |= {"ended": self.fact_search.describe_end(fact), "replaced_by": fact.closed_by}
        if fact.scope.is_group and fact.speaker:
            fields["who"] = fact.speaker
        return fields


def _author(context: ToolContext) -> Author:
    return Author(account=context.account, message_id=context.message_id, epoch=context.epoch)


def _is_of_other_person(support: Support, fact: Fact, context: ToolContext) -> bool:
    return fact.scope.is_group and support.message.sender != context.sender


def _line_key(fact: Fact) -> str:
    """Return a key for a fact's line, so that a conversation gets each line only once.

    If a person rewords the fact, the key changes, and the model gets the new line.
    """
    if fact.origin != "person":
        return f"f{fact.id}"
    checksum = zlib.crc32(fact.content.encode()) & 0xFFFF
    return f"f{fact.id}-{checksum:04x}"
