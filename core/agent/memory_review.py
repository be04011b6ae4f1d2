"""Asks the helper model which changes of memory follow from a person's latest messages.

Every few messages, but at most once a day for each person, one call proposes notes, ends of facts,
and corrections of skills. Each proposal cites the message that it follows from, and passes the same
checks as a change by the model in a turn. The person approves or rejects each proposal.

The review runs in the background, so no turn waits for it. Each review is recorded before its call,
so a review that a crash interrupts isn't repeated.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field

from core.errors import ModelError, StaleReadError, word_clause
from core.facts.closeness import Support
from core.facts.evidence import Evidence
from core.facts.reading.operations import parse_items
from core.facts.wording import extract_own_words
from core.guard.foreign_texts import list_foreign_texts
from core.guard.guard import find_suspicion
from core.models.wrappers import ask_model
from core.notes.notebook import FILES, Notebook
from core.ports import Clock, Model
from core.review.transcript import mark_repeats
from core.skills.format import Skill
from core.skills.library import Skills
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact
from core.store.notes import FACT, SKILL, Operation, PendingNote
from core.store.ownership.people import People
from core.store.reviews import DueReview, MemoryReviews, ReviewMaterial
from core.store.rows import parse_account
from core.store.sessions import Conversations
from core.text.normalize import language_data, shorten
from core.types import BillingScope, Message, Scope

PAUSE = timedelta(days=1)
"""A person's memory is reviewed at most this often."""
CHECK_INTERVAL = timedelta(minutes=1)
"""How often the store is asked whose memory is due."""
LOOKBACK = timedelta(days=30)
"""Older messages aren't read."""
MAX_MESSAGES = 40
MAX_MESSAGE_CHARS = 500
MAX_FACTS = 40
MAX_SKILLS = 3
"""At most this many of the person's recently used skills are shown to the model."""
MAX_SKILL_CHARS = 6_000
MAX_FOREIGN = 200
MAX_PROPOSALS = 4
MAX_ANSWER_TOKENS = 1_500
_log = structlog.get_logger("review")

OnProposals = Callable[[Sequence[PendingNote], int], Awaitable[None]]
"""Tells a person about the proposals of a review. The number is the id of the last reviewed
message."""


class _Proposal(BaseModel):
    """A change that the helper model proposes."""

    model_config = ConfigDict(extra="ignore", strict=True)

    what: Literal["note", "end", "skill"]
    # The number of the message that the proposal follows from.
    message: int
    # The note, the sentence that says that a fact is over, or the new lines of a skill.
    content: str = Field(min_length=3, max_length=2_000)
    target: Literal["memory", "user"] = "memory"
    fact: int = 0
    skill: str = ""
    # The lines of a skill that are replaced.
    old_text: str = ""


@dataclass(frozen=True, slots=True)
class _Memory:
    """A person's notes, facts and skills when a review begins."""

    entries: Mapping[str, Sequence[str]]
    facts: Mapping[int, Fact]
    # The skills that may be corrected, each with its text, by name.
    skills: Mapping[str, tuple[Skill, str]]


@dataclass
class MemoryReviewer:
    """Reviews the messages that people typed recently, and proposes changes of their memory."""

    reviews: MemoryReviews
    people: People
    conversations: Conversations
    notebook: Notebook
    facts: Facts
    skills: Skills
    clock: Clock
    # A person's memory is due after this many typed messages.
    turns: int
    # The helper model and its name.
    model: Model
    name: str
    on_proposals: OnProposals

    def __post_init__(self) -> None:
        self._next_check_at = self.clock.now()

    async def tend(self) -> bool:
        """Review the memory of one person whose review is due.

        Returns True if the reviews of others may be due, too.
        """
        now = self.clock.now()
        if now < self._next_check_at:
            return False
        due = await self.reviews.list_due(self.turns, now - LOOKBACK, now - PAUSE)
        for review in due:
            try:
                has_begun = await self._review(review, now)
            except StaleReadError:
                _log.info("a review read what was erased meanwhile")
                has_begun = True
            if has_begun:
                return True
        self._next_check_at = now + CHECK_INTERVAL
        return False

    async def _review(self, due: DueReview, now: datetime) -> bool:
        """Ask the helper model about one person, and store its proposals.

        Returns False if the person's review is no longer due. Raises StaleReadError if data that
        the model read was erased meanwhile.
        """
        scopes = await self.people.load_visible_scopes(due.scope)
        own_scopes = frozenset(scope for scope in scopes if not scope.is_group) | {due.scope}
        material = await self.reviews.begin(
            due,
            own_scopes,
            now,
            since=now - LOOKBACK,
            before=now - PAUSE,
            limit=MAX_MESSAGES,
        )
        if material is None or not material.messages:
            return False
        messages = await self._mark_foreign(material, own_scopes)
        memory = await self._load_memory(own_scopes, now - PAUSE)
        answer = await self._ask(due, messages, memory)
        proposals, _ = parse_items(answer, _Proposal)
        notes = await asyncio.to_thread(
            self._check_proposals, due.scope, proposals, messages, memory
        )
        pending_notes = await self.reviews.propose(notes, own_scopes, material.epoch)
        if pending_notes:
            await self.on_proposals(pending_notes, due.message_id)
        return True

    async def _mark_foreign(
        self, material: ReviewMaterial, scopes: frozenset[Scope]
    ) -> Sequence[Message]:
        """Return the messages. If a message repeats foreign text, set its origin to "pasted"."""
        latest = await self.conversations.list_latest_from_outside(scopes, MAX_FOREIGN)
        last_id = material.messages[-1].id
        session = await self.conversations.find_by_message(last_id, scopes)
        if session is None:
            return []

        def mark() -> list[Message]:
            # The id 0 belongs to no session, so the foreign texts of all sessions count.
            foreign_texts = list_foreign_texts(latest, replace(session, id=0))
            return mark_repeats(material.messages, foreign_texts)

        # Comparing long texts takes long, so it runs in a thread.
        return await asyncio.to_thread(mark)

    async def _load_memory(self, scopes: frozenset[Scope], since: datetime) -> _Memory:
        """Load the notes, the latest facts that can be ended, and the skills used after `since`."""
        entries = {target: await self.notebook.entries(scopes, target) for target in FILES}
        page = await self.facts.list_page(scopes, MAX_FACTS)
        skills: dict[str, tuple[Skill, str]] = {}
        for skill in (await self.skills.list_skills(scopes))[0]:
            is_recent = skill.used_at is not None and skill.used_at >= since
            is_fixed = not skill.is_own or skill.is_disabled or skill.is_pinned
            if is_recent and not is_fixed and len(skills) < MAX_SKILLS:
                skills[skill.name] = skill, await self.skills.read_text(skill)
        facts = {fact.id: fact for fact in page if fact.is_open and not fact.is_pinned}
        return _Memory(entries, facts, skills)

    async def _ask(self, due: DueReview, messages: Sequence[Message], memory: _Memory) -> str:
        """Return the helper model's answer, or "" if it can't be reached."""
        account = parse_account(due.scope.key.partition(":")[2])
        try:
            completion = await ask_model(
                self.model,
                self.name,
                "review",
                language_data("prompts", "core.agent")["review"],
                [_render_memory(memory), await asyncio.to_thread(_render_messages, messages)],
                max_tokens=MAX_ANSWER_TOKENS,
                billing=BillingScope(scope=due.scope, user_id=account.user_id if account else ""),
            )
        except ModelError as error:
            _log.info("memory was not reviewed", why=error.log_message)
            return ""
        return completion.text

    def _check_proposals(
        self,
        scope: Scope,
        proposals: Sequence[_Proposal],
        messages: Sequence[Message],
        memory: _Memory,
    ) -> list[PendingNote]:
        """Return the proposals that the cited message supports, as pending changes."""
        account = parse_account(scope.key.partition(":")[2])
        notes: dict[tuple[str, Operation], PendingNote] = {}
        for proposal in proposals:
            if not 1 <= proposal.message <= len(messages) or find_suspicion(proposal.content):
                continue
            message = messages[proposal.message - 1]
            change = _plan_change(proposal, Evidence([message]), memory)
            if change is None or len(notes) == MAX_PROPOSALS:
                continue
            target, operation = change
            own_words = extract_own_words(message.text, sender_name=message.sender_name)
            notes[change] = PendingNote(
                account=account,
                message_id=message.id,
                scope=scope,
                target=target,
                operations=(operation,),
                reason=word_clause("waits_person_wrote", text=shorten(own_words, 80)),
                at=self.clock.now(),
            )
        return list(notes.values())


def _plan_change(
    proposal: _Proposal, evidence: Evidence, memory: _Memory
) -> tuple[str, Operation] | None:
    """Return the target and the operation of a proposal.

    Returns None if the cited message doesn't support the proposal, if the proposed note already
    exists, or if the fact or text to change doesn't exist.
    """
    if evidence.judge_note(proposal.content).support is Support.REFUSED:
        return None
    if proposal.what == "note":
        if proposal.content in memory.entries[proposal.target]:
            return None
        return proposal.target, Operation(action="add", content=proposal.content)
    if proposal.what == "end":
        fact = memory.facts.get(proposal.fact)
        if fact is None:
            return None
        return FACT, Operation(action="remove", old_text=fact.content, path=f"f{fact.id}")
    _, text = memory.skills.get(proposal.skill, (None, ""))
    if text.count(proposal.old_text) != 1 or not proposal.old_text.strip():
        return None
    operation = Operation(
        action="patch",
        content=proposal.content,
        old_text=proposal.old_text,
        path=proposal.skill,
    )
    return SKILL, operation


def _render_memory(memory: _Memory) -> str:
    """Return the notes, facts and skills as JSON, one on each line."""
    lines: list[dict[str, object]] = []
    for target, entries in memory.entries.items():
        lines += [{"note": entry, "target": target} for entry in entries]
    lines += [{"fact": fact.id, "content": fact.content} for fact in memory.facts.values()]
    for name, (_, text) in memory.skills.items():
        lines.append({"skill": name, "text": text[:MAX_SKILL_CHARS]})
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) or "{}"


def _render_messages(messages: Sequence[Message]) -> str:
    """Return the typed messages as JSON, one on each line."""
    lines = []
    for number, message in enumerate(messages, 1):
        text = shorten(
            extract_own_words(message.text, sender_name=message.sender_name), MAX_MESSAGE_CHARS
        )
        fields = {"message": number, "on": f"{message.created_at:%Y-%m-%d}", "text": text}
        lines.append(json.dumps(fields, ensure_ascii=False))
    return "\n".join(lines)
