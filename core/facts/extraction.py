"""Extract facts from people's messages, with a model or by rules.

Each message is read once. A model also gets the facts that are already stored, and returns
operations on them (see `core/facts/reading/operations.py`). If a part of its answer is unreadable,
the rules read the messages of that part.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from weakref import WeakValueDictionary
from zoneinfo import ZoneInfo

import structlog

from core.errors import ModelError, Refused
from core.facts.claims import (
    count_taken_back,
    extract_claims,
    fact_from_claim,
    is_alias,
    mentions_change,
)
from core.facts.reading.operations import OperationReader, is_by_sender, load_known_facts
from core.facts.reading.reports import Candidate
from core.facts.wording import extract_own_words, split_sentences
from core.guard.guard import find_suspicion
from core.guard.origin_and_fence import typed_part, typed_text
from core.ports import Clock, Model
from core.review.pending import Review
from core.store.facts.contradictions import Lesson
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact
from core.store.notes import FACT, Author, Operation
from core.text.terms import terms_of
from core.types import Account, Address, ErasureEpoch, Message, Session

MAX_KNOWN = 200
"""A message about a change is compared with at most this many facts of its scope."""
MIN_MESSAGE_TERMS = 2
"""A message with fewer different terms can't state a fact, so it isn't sent to the model."""
MAX_INLINE_CHARS = 1_000
"""The rules read texts of up to this length on the event loop, and longer ones in a thread.

The rules take 0.1 ms for a sentence and at most 4 ms for a text of this length, which is less than
the cost of a thread. The first call takes another 60 ms to compile the patterns.
"""
MODEL_PAUSE = timedelta(minutes=2)
"""After the model couldn't be reached, Mneme doesn't ask it again for this long."""
Closing = Literal["correction", "plain", "reading"]
"""Why a statement closed a fact: it corrected the fact, it gave a new value without any word of
change, or a helper model decided to close the fact."""
NotifyClosing = Callable[[Fact, Fact, Closing], Awaitable[None]]
"""Tells a person that the second fact closed the first one."""
_log = structlog.get_logger("facts")


@dataclass
class FactReader:
    """Extracts facts from messages with a model, or by rules if there is no model."""

    facts: Facts
    # Stores the facts that need approval.
    review: Review
    clock: Clock
    zone: ZoneInfo
    model: Model | None = None
    model_name: str = ""
    notify_closing: NotifyClosing | None = None
    # Returns False if another gateway works on an address.
    is_ours: Callable[[Address], bool] = lambda _: True

    def __post_init__(self) -> None:
        self._model_paused_until = self.clock.now()
        # The locks by session id, so that only one task at a time reads a session.
        self._locks = WeakValueDictionary[int, asyncio.Lock]()
        # Whether the patterns are compiled for texts in ASCII (True) and for others (False).
        self._compiled_rules: set[bool] = set()
        self._compilation = asyncio.Lock()

    async def catch_up(self) -> None:
        """Read all sessions that are due, unless the model couldn't be reached a moment ago."""
        if self.clock.now() < self._model_paused_until:
            return
        # Only a few sessions are in memory at a time, because each one contains its prompt.
        after_id = 0
        while sessions := await self.facts.list_due_sessions(after_id):
            for session in sessions:
                if not self.is_ours(session.address):
                    continue
                if not await self.read_session(session):
                    self._model_paused_until = self.clock.now() + MODEL_PAUSE
                    return
            after_id = sessions[-1].id

    async def read_session(self, session: Session) -> bool:
        """Extract and store the facts in all unread messages of a session.

        Returns False if the model can't be reached. The messages then stay unread.
        """
        if not session.is_remembered:
            return True
        async with self._locks.setdefault(session.id, asyncio.Lock()):
            epoch, messages = await self.facts.load_unread(session)
            while messages:
                try:
                    candidates = await self._read_batch(session, messages)
                except ModelError as error:
                    _log.info("no facts were read", why=error.log_message)
                    return False
                lessons = await self._accept(session, candidates, epoch)
                read_messages = messages
                began_at = self.clock.now()
                messages = await self.facts.learn_from_messages(read_messages, lessons)
                if lessons and self.notify_closing and not session.scope.is_group:
                    await self._report_closings(session, read_messages, began_at)
        return True

    async def _report_closings(
        self, session: Session, messages: Sequence[Message], began_at: datetime
    ) -> None:
        """Report the facts that messages have closed.

        If a message says that something ended and a rule closed the fact, the fact isn't reported.
        """
        scopes = frozenset((session.scope,))
        sources = {message.id: message for message in messages}
        changes = await self.facts.list_changed(sorted(sources), began_at, scopes)
        closed_ids = [fact_id for fact_id, action in changes if action == "close"]
        if not closed_ids or self.notify_closing is None:
            return
        # Imported here because few messages close a fact.
        from core.facts.changes import read_changes

        for fact in await self.facts.find_by_ids(closed_ids, scopes):
            successors = await self.facts.find_by_ids([fact.closed_by or 0], scopes)
            source = sources.get(successors[0].message_id or 0) if successors else None
            if source is None:
                continue
            kinds = read_changes(typed_text(source)).kinds
            if "correction" in kinds:
                await self.notify_closing(fact, successors[0], "correction")
            elif kinds.isdisjoint(("change", "start", "temporary", "past")):
                await self.notify_closing(fact, successors[0], "plain")
            elif successors[0].origin == "model":
                await self.notify_closing(fact, successors[0], "reading")

    async def _read_batch(self, session: Session, messages: Sequence[Message]) -> list[Candidate]:
        """Return the claims in these unread messages, found by the model or by rules."""
        if self.model is not None:
            known_facts = await load_known_facts(self.facts, session, messages)
            return await self.find_candidates(messages, known_facts)
        candidates = await self.find_candidates(messages)
        return candidates + await self._find_successors(session, messages, candidates)

    async def _accept(
        self, session: Session, candidates: Sequence[Candidate], epoch: ErasureEpoch | None
    ) -> list[Lesson]:
        """Return the claims to store as facts.

        Suspicious claims are dropped. Claims that need approval are stored until the person
        confirms them. In groups they are dropped, because the owner would have to judge other
        people's statements.
        """
        platform = session.address.platform
        lessons = []
        for candidate in candidates:
            source = candidate.source
            suspicion = find_suspicion(candidate.claim.content)
            if suspicion is not None:
                _log.info("a fact was not kept", reason=suspicion, message=source.id)
            elif not candidate.approval_reason:
                fact = fact_from_claim(
                    candidate.claim, candidate.origin, session.scope, platform, source
                )
                replaced_id = candidate.replaces.id if candidate.replaces else 0
                lessons.append(Lesson(fact, source.text, replaced_id))
            elif not session.scope.is_group:
                await self._put_aside(session, candidate, epoch)
        return lessons

    async def _put_aside(
        self, session: Session, candidate: Candidate, epoch: ErasureEpoch | None
    ) -> None:
        """Store a claim that waits for the person's approval."""
        source = candidate.source
        if source.sender is None:
            return
        account = Account(platform=session.address.platform, user_id=source.sender.id)
        author = Author(account=account, message_id=source.id, epoch=epoch)
        operation = Operation(action="add", content=candidate.claim.content)
        replaced = candidate.replaces
        if replaced is not None:
            operation = Operation(
                action="replace",
                content=candidate.claim.content,
                old_text=replaced.content,
                path=f"f{replaced.id}",
            )
        with contextlib.suppress(Refused):
            await self.review.put_aside(
                session.scope, FACT, [operation], author, candidate.approval_reason
            )

    async def find_candidates(
        self, messages: Sequence[Message], known_facts: Sequence[Fact] = ()
    ) -> list[Candidate]:
        """Return the claims in typed messages. Raises ModelError if the model can't be reached.

        The model also gets the facts `known_facts`, which it may replace or end.
        """
        typed_messages = [message for message in messages if typed_text(message)]
        if self.model is None:
            return await self._read_by_rules(typed_messages)
        typed_messages = [
            message
            for message in typed_messages
            if len(set(terms_of(extract_own_words(message.text, sender_name=message.sender_name))))
            >= MIN_MESSAGE_TERMS
        ]
        if not typed_messages:
            return []
        reader = OperationReader(self.model, self.model_name, self.zone)
        candidates, missing = await reader.read(typed_messages, known_facts)
        if missing:
            return candidates + await self._read_by_rules(missing)
        # Only the rules find aliases such as "my sister is Ana". Aliases come first, because the
        # model may report a fact with the same words.
        by_rules = await self._read_by_rules(typed_messages)
        return [candidate for candidate in by_rules if is_alias(candidate.claim)] + candidates

    async def _find_successors(
        self, session: Session, messages: Sequence[Message], candidates: Sequence[Candidate]
    ) -> list[Candidate]:
        """Return the claims in messages that end or correct known facts.

        A message with a new value for an attribute is skipped, because storing that value ends the
        old one anyway.
        """
        changes = _list_changes(messages, candidates)
        if not changes:
            return []
        # Imported here because few messages are about changes.
        from core.facts.endings_and_corrections import MAX_MESSAGES_BACK, find_successor

        page = await self.facts.list_page(frozenset((session.scope,)), MAX_KNOWN)
        facts = [fact for fact in page if fact.is_open]
        successors = []
        for message in changes:
            own_facts = [fact for fact in facts if is_by_sender(fact, message)]
            earlier = await self.facts.list_earlier_ids(message, MAX_MESSAGES_BACK)
            successor = find_successor(message, own_facts, earlier, self.zone)
            if successor is not None:
                claim, fact = successor
                candidate = Candidate(source=message, claim=claim, origin="rule", replaces=fact)
                successors.append(candidate)
        return successors

    async def _read_by_rules(self, messages: Sequence[Message]) -> list[Candidate]:
        """Return the claims that the rules find in messages.

        If the messages are long, or the patterns aren't compiled yet, the rules run in a thread.
        """
        length_chars = sum(len(message.text) for message in messages)
        is_ascii = all(message.text.isascii() for message in messages)
        if is_ascii not in self._compiled_rules:
            # Several threads at the same time would each compile the patterns.
            async with self._compilation:
                candidates = await asyncio.to_thread(self._apply_rules, messages)
            if messages:
                self._compiled_rules |= {True, is_ascii}
            return candidates
        if length_chars <= MAX_INLINE_CHARS:
            return self._apply_rules(messages)
        return await asyncio.to_thread(self._apply_rules, messages)

    def _apply_rules(self, messages: Sequence[Message]) -> list[Candidate]:
        """Return the claims that the rules find in the typed part of each message."""
        candidates: list[Candidate] = []
        for message in messages:
            claims = extract_claims(
                typed_part(message.text, sender_name=message.sender_name),
                message.created_at,
                self.zone,
            )
            candidates += [
                Candidate(source=message, claim=claim, origin="rule") for claim in claims
            ]
        return candidates


def _list_changes(messages: Sequence[Message], candidates: Sequence[Candidate]) -> list[Message]:
    """Return the messages that may be about a change but don't give an attribute a value.

    A message that takes itself back is skipped.
    """
    valued_ids = {item.source.id for item in candidates if item.claim.attribute}
    changes: list[Message] = []
    for message in messages:
        text = typed_text(message)
        is_change = message.id not in valued_ids and mentions_change(text)
        if is_change and not count_taken_back(split_sentences(text)):
            changes.append(message)
    return changes
