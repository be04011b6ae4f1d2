"""Extracts facts from the messages of people, with a model or by rules. Each message is read once.

Each fact that the model reports is looked up in the typed messages. A fact that no message supports
is dropped or, if the model quotes a message, needs approval. If the model's answer is incomplete,
the model is asked a second time, and the rules read the messages that are still missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, NamedTuple, TypeVar
from weakref import WeakValueDictionary
from zoneinfo import ZoneInfo

import structlog
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from core.errors import LimitReached, ModelError, Refused
from core.facts.assertions import resolve_subject
from core.facts.claims import (
    MAX_FACT_CHARS,
    Claim,
    SingleAttribute,
    comparable_value,
    extract_claims,
    fact_from_claim,
    is_alias,
    mentions_change,
    parse_since,
)
from core.facts.evidence import Evidence
from core.facts.wording import extract_own_words
from core.guard.guard import ToolArguments, find_suspicion
from core.guard.origin_and_fence import typed_part, typed_text
from core.models.wrappers import ask_model
from core.ports import Clock, Model
from core.review.pending import Review
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact, FactKind, FactOrigin
from core.store.notes import FACT, Author, Operation
from core.text.normalize import language_data
from core.text.terms import ME, attribute_key, names_in, terms_of
from core.types import Account, BillingScope, ErasureEpoch, Message, Session

MAX_ANSWER_TOKENS = 2_000
MAX_REPORTED_FACTS = 24
MAX_KNOWN = 200
"""So many facts of a scope are compared with a message about a change."""
MAX_ANSWERS = 2
"""The model is asked at most this often about the same messages."""
MIN_MESSAGE_TERMS = 2
"""A message with fewer different terms states nothing, so it isn't sent to the model."""
MAX_INLINE_CHARS = 1_000
"""The rules read texts of up to this length on the event loop, and longer ones in a thread.

The rules take 0.1 ms for a sentence and at most 4 ms for a text of this length, which is less than
the cost of a thread. The first call takes another 60 ms to compile the patterns.
"""
MODEL_PAUSE = timedelta(minutes=2)
"""How long an unreachable model isn't asked again."""
_REFUSED_STATUSES = (400, 413, 422)
"""HTTP statuses with which a service rejects the messages. Sending them again wouldn't help."""
_OBJECT = re.compile(r"\{[^{}]*\}")
"""A JSON object without nested objects."""
_log = structlog.get_logger("facts")
T = TypeVar("T", bound=BaseModel)


class Support(NamedTuple):
    """A message that supports a reported fact."""

    message: Message
    # Whether the message also supports the date since which the fact is true.
    is_dated: bool


# A fact that a model reports. These are also the arguments of the tool `remember_this`. This is a
# comment because a docstring would become part of the tool's schema.
class ReportedFact(ToolArguments):
    content: Annotated[str, AfterValidator(lambda text: " ".join(text.split()))] = Field(
        min_length=3, max_length=MAX_FACT_CHARS
    )
    kind: FactKind = "identity"
    about: str = Field(default=ME, max_length=80)
    attribute: SingleAttribute | None = None
    value: str | None = Field(default=None, max_length=120)
    since: str | None = Field(default=None, pattern=r"^([0-9]{4}(-[0-9]{2}){0,2})?$")
    names: list[str] = Field(default=[], max_length=10)

    @property
    def is_about_speaker(self) -> bool:
        return self.about.casefold() == ME

    @property
    def required_names(self) -> list[str]:
        """The names and the value of the fact, which a message must contain.

        Of the reported names, only those with a capital letter, a digit or a non-ASCII letter
        count.
        """
        names = [name for name in self.names if not name.isascii() or re.search(r"[A-Z0-9]", name)]
        names.append(self.value or "")
        if not self.is_about_speaker:
            names += names_in(self.about)
        return names

    def find_support(self, evidence: Evidence, message: Message | None = None) -> Support | None:
        """Return the message that supports the fact, or None if there is none.

        A message that also supports the date is preferred. With `message`, only this message is
        considered.
        """
        if self.since:
            message_with_date = self._find_message(
                evidence, [*self.required_names, self.since], message
            )
            if message_with_date is not None:
                return Support(message_with_date, is_dated=True)
        message_without_date = self._find_message(evidence, self.required_names, message)
        return (
            None if message_without_date is None else Support(message_without_date, is_dated=False)
        )

    def _find_message(
        self, evidence: Evidence, names: Sequence[str], message: Message | None
    ) -> Message | None:
        return evidence.find_support(
            self.content, names, is_about_speaker=self.is_about_speaker, message=message
        )

    def to_claim(self, message: Message, zone: ZoneInfo, *, is_dated: bool) -> Claim:
        """Return the fact as a claim of the message's sender.

        The claim has the reported date only with `is_dated`, and only if the date isn't later than
        the message.
        """
        valid_from, grain = parse_since(self.since if is_dated else None, message.created_at, zone)
        if valid_from is not None and valid_from > message.created_at:
            valid_from, grain = None, "day"
        subject = resolve_subject(self.about, self.content, message)
        value = comparable_value(self.attribute, self.value or "")
        attribute = None
        if subject and self.attribute and value:
            attribute = attribute_key(subject, self.attribute)
        names = list(self.names or names_in(self.content))
        if not self.is_about_speaker:
            names.append(self.about)
        return Claim(
            content=self.content,
            kind=self.kind,
            attribute=attribute,
            value=value if attribute else "",
            entities=tuple(dict.fromkeys(names)),
            valid_from=valid_from,
            grain=grain,
        )


class _MessageFact(ReportedFact):
    """A fact that a model has found in one of several numbered messages."""

    model_config = ConfigDict(extra="ignore", strict=True)

    # The number of the message, beginning with 1.
    message: int
    # The words of the message that state the fact.
    quote: str | None = None

    def quotes(self, message: Message) -> bool:
        """Whether the quote occurs in the message, apart from its case and white space."""
        quote = " ".join((self.quote or "").casefold().split())
        own_words = " ".join(extract_own_words(message.text).casefold().split())
        return bool(quote) and quote in own_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A claim from a message, before it is stored as a fact."""

    source: Message
    claim: Claim
    # Whether a model or a rule found the claim.
    origin: FactOrigin
    # The reason why the claim needs approval, as a clause. Empty if it needs none.
    approval_reason: str = ""


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

    def __post_init__(self) -> None:
        self._model_paused_until = self.clock.now()
        # The locks by session id, so that only one task at a time reads a session.
        self._locks = WeakValueDictionary[int, asyncio.Lock]()
        self._are_rules_compiled = False

    async def catch_up(self) -> None:
        """Read all sessions that are due, unless the model was unreachable a short time ago."""
        if self.clock.now() < self._model_paused_until:
            return
        for session in await self.facts.list_due_sessions():
            if not await self.read_session(session):
                self._model_paused_until = self.clock.now() + MODEL_PAUSE
                return

    async def read_session(self, session: Session) -> bool:
        """Extract and store the facts of all unread messages of a session.

        Returns False if the model can't be reached, so that the messages remain unread.
        """
        if not session.is_remembered:
            return True
        async with self._locks.setdefault(session.id, asyncio.Lock()):
            epoch, messages = await self.facts.load_unread(session)
            while messages:
                try:
                    candidates = await self.find_candidates(messages)
                    if self.model is None:
                        candidates += await self._find_successors(session, messages, candidates)
                except ModelError as error:
                    _log.info("no facts were read", why=error.log_message)
                    return False
                facts = await self._accept(session, candidates, epoch)
                messages = await self.facts.learn_from_messages(messages, facts)
        return True

    async def _accept(
        self, session: Session, candidates: Sequence[Candidate], epoch: ErasureEpoch | None
    ) -> list[tuple[Fact, str]]:
        """Return the facts to store, each with the text of its message.

        Suspicious claims are dropped. Claims that need approval are stored for review. In groups,
        such claims are dropped, because the owner would have to judge other people's statements.
        """
        platform = session.address.platform
        facts = []
        for candidate in candidates:
            source = candidate.source
            suspicion = find_suspicion(candidate.claim.content)
            if suspicion is not None:
                _log.info("a fact was not kept", reason=suspicion, message=source.id)
            elif not candidate.approval_reason:
                fact = fact_from_claim(
                    candidate.claim, candidate.origin, session.scope, platform, source
                )
                facts.append((fact, source.text))
            elif source.sender is not None and not session.scope.is_group:
                account = Account(platform=platform, user_id=source.sender.id)
                author = Author(account=account, message_id=source.id, epoch=epoch)
                operations = [Operation(action="add", content=candidate.claim.content)]
                with contextlib.suppress(Refused):
                    await self.review.put_aside(
                        session.scope, FACT, operations, author, candidate.approval_reason
                    )
        return facts

    async def find_candidates(self, messages: Sequence[Message]) -> list[Candidate]:
        """Return the claims in typed messages. Raises ModelError if the model can't be reached."""
        typed_messages = [message for message in messages if typed_text(message)]
        if self.model is None:
            return await self._read_by_rules(typed_messages)
        typed_messages = [
            message
            for message in typed_messages
            if len(set(terms_of(extract_own_words(message.text)))) >= MIN_MESSAGE_TERMS
        ]
        if not typed_messages:
            return []
        reports, is_complete = await self._ask_model(self.model, typed_messages)
        candidates = self._check_reports(reports, typed_messages)
        if not is_complete:
            answered_numbers = {report.message for report in reports}
            missing = [
                message
                for number, message in enumerate(typed_messages, 1)
                if number not in answered_numbers
            ]
            return candidates + await self._read_by_rules(missing)
        # The model isn't asked for aliases such as "my sister is Ana". Aliases come first, because
        # the model may report a fact with the same words.
        by_rules = await self._read_by_rules(typed_messages)
        return [candidate for candidate in by_rules if is_alias(candidate.claim)] + candidates

    async def _find_successors(
        self, session: Session, messages: Sequence[Message], candidates: Sequence[Candidate]
    ) -> list[Candidate]:
        """Return what messages say about the end, or the correction, of known facts.

        A message in which the rules find a value of an attribute isn't read again: the new value
        ends the old one anyway.
        """
        changes = _list_changes(messages, candidates)
        if not changes:
            return []
        # Imported here because few messages are about changes.
        from core.facts.successors import find_successor

        page = await self.facts.list_page(frozenset((session.scope,)), 0, MAX_KNOWN)
        facts = [fact for fact in page if fact.is_open]
        ids = {message.id for message in messages} | {fact.message_id or 0 for fact in facts}
        successors = []
        for message in changes:
            own_facts = [fact for fact in facts if _is_by_sender(fact, message)]
            earlier = sorted((id_ for id_ in ids if id_ < message.id), reverse=True)
            claim = find_successor(message, own_facts, earlier, self.zone)
            if claim is not None:
                successors.append(Candidate(source=message, claim=claim, origin="rule"))
        return successors

    async def _read_by_rules(self, messages: Sequence[Message]) -> list[Candidate]:
        """Return the claims that the rules find in messages.

        The rules run in a thread if the messages are long or if the patterns aren't compiled yet.
        """
        length_chars = sum(len(message.text) for message in messages)
        if self._are_rules_compiled and length_chars <= MAX_INLINE_CHARS:
            return self._apply_rules(messages)
        candidates = await asyncio.to_thread(self._apply_rules, messages)
        self._are_rules_compiled = self._are_rules_compiled or bool(messages)
        return candidates

    def _apply_rules(self, messages: Sequence[Message]) -> list[Candidate]:
        candidates: list[Candidate] = []
        for message in messages:
            claims = extract_claims(typed_part(message.text), message.created_at, self.zone)
            candidates += [
                Candidate(source=message, claim=claim, origin="rule") for claim in claims
            ]
        return candidates

    async def _ask_model(
        self, model: Model, messages: Sequence[Message]
    ) -> tuple[list[_MessageFact], bool]:
        """Return the facts that the model reports, and whether its last answer was complete.

        After an incomplete answer, the model is asked a second time, and the reports of both
        answers are returned. If the service rejects the messages or a spending limit is reached,
        the reports so far are returned. Raises ModelError if the model can't be reached.
        """
        lines = [self._render_message(number, row) for number, row in enumerate(messages, 1)]
        sender = messages[-1].sender
        billing = BillingScope(
            session_id=messages[0].session_id, user_id=sender.id if sender else ""
        )
        prompt = language_data("prompts", "core.facts")["order"]
        reports: list[_MessageFact] = []
        is_complete = False
        try:
            for _ in range(MAX_ANSWERS):
                completion = await ask_model(
                    model,
                    self.model_name,
                    "facts",
                    prompt,
                    ("\n".join(lines),),
                    max_tokens=MAX_ANSWER_TOKENS,
                    billing=billing,
                )
                items, is_complete = parse_items(completion.text, _MessageFact)
                reports += [item for item in items if item not in reports]
                if is_complete:
                    break
                _log.info("a part of an answer cannot be read", read=len(items))
        except ModelError as error:
            if error.status not in _REFUSED_STATUSES and not isinstance(error, LimitReached):
                raise
        return reports, is_complete

    def _render_message(self, number: int, message: Message) -> str:
        """Return a message as the JSON object that is sent to the model."""
        at = message.created_at.astimezone(self.zone)
        fields = {
            "message": number,
            "from": message.sender.name if message.sender else "the person",
            "on": f"{at:%A} {at:%Y-%m-%d}",
            "text": extract_own_words(message.text),
        }
        return json.dumps(fields, ensure_ascii=False)

    def _check_reports(
        self, reports: Sequence[_MessageFact], messages: Sequence[Message]
    ) -> list[Candidate]:
        """Return the reported facts that people typed, as candidates.

        If the message doesn't support the report, but contains the report's quote, the candidate
        needs approval. Other reports without support are dropped.
        """
        evidence = Evidence(messages)
        candidates = []
        for report in reports[:MAX_REPORTED_FACTS]:
            if not 1 <= report.message <= len(messages):
                _log.info("a fact that nobody has said was dropped")
                continue
            message = messages[report.message - 1]
            support = report.find_support(evidence, message)
            if support is None and not report.quotes(message):
                _log.info("a fact that nobody has said was dropped")
                continue
            is_dated = support is not None and support.is_dated
            claim = report.to_claim(message, self.zone, is_dated=is_dated)
            reason = ""
            if support is None:
                reason = evidence.describe_missing(report.content, report.required_names)
            candidates.append(
                Candidate(source=message, claim=claim, origin="model", approval_reason=reason)
            )
        return candidates


def _list_changes(messages: Sequence[Message], candidates: Sequence[Candidate]) -> list[Message]:
    """Return the messages that may be about a change and give no value of an attribute."""
    valued_ids = {item.source.id for item in candidates if item.claim.attribute}
    return [
        message
        for message in messages
        if message.id not in valued_ids and mentions_change(typed_text(message))
    ]


def _is_by_sender(fact: Fact, message: Message) -> bool:
    """Whether the sender of a message stated a fact."""
    if message.sender is None or fact.account is None:
        return True
    return fact.account.user_id == message.sender.id


def parse_items(answer: str, kind: type[T]) -> tuple[list[T], bool]:
    """Parse the JSON objects of a list in a model's answer, and check that the list is complete.

    Returns the valid objects. The second result is False if an object was invalid, if the list was
    cut off, or if there is other text in the list.
    """
    start = answer.find("[")
    end = answer.rfind("]")
    items = []
    for text in _OBJECT.findall(answer, max(start, 0)):
        with contextlib.suppress(ValidationError):
            items.append(kind.model_validate_json(text))
    # The list with "#" in place of each object: "[#,#,#]" if it is complete with three objects.
    outline = "".join(_OBJECT.sub("#", answer[start : end + 1]).split())
    return items, outline == f"[{','.join('#' * len(items))}]"
