"""Let a model find facts in messages, given the facts that are already known.

The model answers with operations: `add` a fact, `replace` or `end` a known one, or `same` if a
message repeats a known one. Each operation is checked against the messages. An operation that no
message supports is dropped, unless the model quotes a message. Then it needs approval.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from zoneinfo import ZoneInfo

import structlog
from pydantic import BaseModel, ValidationError

from core.errors import LimitReached, ModelError, word_clause
from core.facts.claims import Claim
from core.facts.evidence import Evidence
from core.facts.reading.reports import Candidate, ReportedOperation, Support
from core.facts.wording import extract_own_words
from core.guard.origin_and_fence import typed_text
from core.models.wrappers import ask_model
from core.ports import Model
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact, fold_content
from core.text.normalize import language_data
from core.text.terms import entity_key, entity_keys_in, query_terms
from core.types import BillingScope, Message, Session

MAX_ANSWER_TOKENS = 2_000
MAX_OPERATIONS = 24
MAX_KNOWN_FACTS = 40
"""The model gets at most this many known facts."""
MAX_MATCHING = 30
"""At most this many known facts are chosen by their words or names. The others are the latest."""
MAX_LISTED = 200
CONTEXT_MESSAGES = 2
"""A correction may get its words from this many messages before it."""
_REFUSED_STATUSES = (400, 413, 422)
"""HTTP statuses with which a service rejects the messages. Sending them again wouldn't help."""
_OBJECT = re.compile(r"\{[^{}]*\}")
"""A JSON object without nested objects."""
_log = structlog.get_logger("facts")
T = TypeVar("T", bound=BaseModel)


class _EvidenceInContext(Evidence):
    """The evidence in one message that continues an earlier text of the same person.

    The earlier text is treated as a question that the message answers. Its names, figures and words
    are evidence, but the message must add something and must not deny the statement.
    """

    def __init__(self, message: Message, context: str) -> None:
        super().__init__([message])
        self._context = context

    def _question_before(self, index: int) -> str:
        return self._context


@dataclass(frozen=True, slots=True)
class OperationReader:
    """Asks a model for the facts in messages, and checks its answer."""

    model: Model
    model_name: str
    zone: ZoneInfo

    async def read(
        self, messages: Sequence[Message], known_facts: Sequence[Fact]
    ) -> tuple[list[Candidate], list[Message]]:
        """Return the claims that the model finds, and the messages that its answer doesn't cover.

        The model is asked once. If its answer is incomplete, messages without an operation aren't
        covered. If the service rejects the messages, or if a spending limit is reached, no message
        is covered. Raises ModelError if the model can't be reached.
        """
        operations, is_complete = await self._ask(messages, known_facts)
        candidates = self._check(operations, messages, {fact.id: fact for fact in known_facts})
        if is_complete:
            return candidates, []
        _log.info("a part of an answer cannot be read", read=len(operations))
        answered_numbers = {operation.message for operation in operations}
        missing = [
            message for number, message in enumerate(messages, 1) if number not in answered_numbers
        ]
        return candidates, missing

    async def _ask(
        self, messages: Sequence[Message], known_facts: Sequence[Fact]
    ) -> tuple[list[ReportedOperation], bool]:
        """Return the model's operations, and whether its answer was complete."""
        lines = [self._render_message(number, row) for number, row in enumerate(messages, 1)]
        texts = ["\n".join(lines)]
        if known_facts:
            texts.insert(0, "\n".join(map(self._render_fact, known_facts)))
        sender = messages[-1].sender
        billing = BillingScope(
            session_id=messages[0].session_id, user_id=sender.id if sender else ""
        )
        try:
            completion = await ask_model(
                self.model,
                self.model_name,
                "facts",
                language_data("prompts", "core.facts")["order"],
                texts,
                max_tokens=MAX_ANSWER_TOKENS,
                billing=billing,
            )
        except ModelError as error:
            if error.status not in _REFUSED_STATUSES and not isinstance(error, LimitReached):
                raise
            return [], False
        return parse_items(completion.text, ReportedOperation)

    def _render_message(self, number: int, message: Message) -> str:
        """Return a message as the JSON object that the model gets."""
        at = message.created_at.astimezone(self.zone)
        fields = {
            "message": number,
            "from": message.sender.name if message.sender else "the person",
            "on": f"{at:%A} {at:%Y-%m-%d}",
            "text": extract_own_words(message.text, sender_name=message.sender_name),
        }
        return json.dumps(fields, ensure_ascii=False)

    def _render_fact(self, fact: Fact) -> str:
        """Return a known fact as the JSON object that the model gets."""
        subject, _, attribute = (fact.attribute or "").partition("|")
        fields: dict[str, object] = {"fact": fact.id, "content": fact.content}
        if fact.scope.is_group and fact.speaker:
            fields["from"] = fact.speaker
        if attribute:
            fields |= {"about": subject, "attribute": attribute, "value": fact.value}
        fields["on"] = f"{fact.last_said_at.astimezone(self.zone):%Y-%m-%d}"
        return json.dumps(fields, ensure_ascii=False)

    def _check(
        self,
        operations: Sequence[ReportedOperation],
        messages: Sequence[Message],
        facts_by_id: Mapping[int, Fact],
    ) -> list[Candidate]:
        """Return a candidate for each operation that a message supports or the model quotes."""
        evidence = Evidence(messages)
        candidates = []
        for operation in operations[:MAX_OPERATIONS]:
            candidate = None
            if 1 <= operation.message <= len(messages):
                message = messages[operation.message - 1]
                fact = facts_by_id.get(operation.fact or 0)
                if fact is not None and not _may_change(operation, fact, message):
                    fact = None
                candidate = self._check_one(operation, fact, message, evidence)
            if candidate is None:
                _log.info("a fact that nobody has said was dropped")
            else:
                candidates.append(candidate)
        return candidates

    def _check_one(
        self,
        operation: ReportedOperation,
        fact: Fact | None,
        message: Message,
        evidence: Evidence,
    ) -> Candidate | None:
        """Return the candidate for an operation, or None if it must be dropped.

        `fact` is the known fact that the operation changes. Without `fact`, the operation can only
        add a fact.
        """
        support = operation.find_support(evidence, message)
        if support is None:
            context = fact.content if fact else _earlier_words(evidence.messages, message)
            support = operation.find_support(_EvidenceInContext(message, context), message)
        if support is None and not operation.quotes(message):
            return None
        if operation.op == "same":
            return None if fact is None else _repeat(fact, message)
        claim = operation.to_claim(
            message, self.zone, is_dated=support is not None and support.is_dated
        )
        if operation.begins_later(message, self.zone):
            fact = None
        if fact is not None:
            claim = _inherit(claim, fact, is_end=operation.op == "end")
        return Candidate(
            source=message,
            claim=claim,
            origin="model",
            replaces=fact,
            approval_reason=_find_doubt(operation, support, fact, evidence),
        )


def _find_doubt(
    operation: ReportedOperation, support: Support | None, fact: Fact | None, evidence: Evidence
) -> str:
    """Return the reason why an operation needs approval, as a clause, or ""."""
    if support is None:
        return evidence.describe_missing(operation.content, operation.required_names)
    if fact is not None and fact.is_pinned:
        return word_clause("waits_fact_pinned", number=fact.id)
    return ""


def _may_change(operation: ReportedOperation, fact: Fact, message: Message) -> bool:
    """Return whether a message may change a known fact.

    It must have the same speaker and be about the same subject.
    """
    if not is_by_sender(fact, message):
        return False
    subject = (fact.attribute or "").partition("|")[0]
    # In a group, a member's statement about themselves has their account as its subject.
    if not subject or ":" in subject or operation.op == "same":
        return True
    reported_key = entity_key(operation.about)
    names = {entity_key(name) for name in (subject, fact.value, *fact.entities)}
    return reported_key in names or reported_key == entity_key(subject)


def _earlier_words(messages: Sequence[Message], message: Message) -> str:
    """Return the texts of the sender's last messages before this one."""
    earlier = []
    for other in messages:
        if other is message:
            break
        if other.sender == message.sender:
            earlier.append(extract_own_words(other.text, sender_name=other.sender_name))
    return "\n".join(earlier[-CONTEXT_MESSAGES:])


def _repeat(fact: Fact, message: Message) -> Candidate:
    """Return a candidate for a known fact that a message repeats, in the words of the fact."""
    claim = Claim(
        content=fact.content,
        kind=fact.kind,
        attribute=fact.attribute,
        value=fact.value,
        entities=fact.entities,
    )
    return Candidate(source=message, claim=claim, origin="model")


def _inherit(claim: Claim, fact: Fact, *, is_end: bool) -> Claim:
    """Return the claim with the attribute of the fact that it replaces or ends.

    If the claim says that something is over, its sentence becomes the attribute's value.
    """
    if fact.attribute is None or (claim.attribute is not None and not is_end):
        return claim
    return replace(claim, attribute=fact.attribute, value=fold_content(claim.content))


def is_by_sender(fact: Fact, message: Message) -> bool:
    """Return whether the sender of a message is the person who stated a fact."""
    if message.sender is None or fact.account is None:
        return True
    return fact.account.user_id == message.sender.id


async def load_known_facts(
    facts: Facts, session: Session, messages: Sequence[Message]
) -> list[Fact]:
    """Load open facts that the messages may be about: first those that match, then the latest.

    In a group, load only facts of the people who wrote the messages.
    """
    scopes = frozenset((session.scope,))
    text = "\n".join(typed_text(message) for message in messages)
    terms, keys = tuple(query_terms(text)), entity_keys_in(text)
    ((_, matches),) = await facts.find_candidates(terms, keys, scopes)
    matches = sorted(matches, key=lambda item: (-item.name_count, -item.text_score))
    best = [match.fact for match in matches][:MAX_MATCHING]
    latest = await facts.list_page(scopes, MAX_LISTED)
    known_facts: dict[int, Fact] = {}
    for fact in (*best, *latest):
        is_of_writer = any(is_by_sender(fact, message) for message in messages)
        if fact.is_open and (is_of_writer or not session.scope.is_group):
            known_facts.setdefault(fact.id, fact)
    return sorted(list(known_facts.values())[:MAX_KNOWN_FACTS], key=lambda fact: fact.id)


def parse_items(answer: str, kind: type[T]) -> tuple[list[T], bool]:
    """Parse the JSON objects in a model's list.

    Returns them, and whether the list is complete. It is incomplete if an object is invalid, if the
    list was cut off, or if it contains other text.
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
