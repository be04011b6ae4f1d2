"""Define the facts that models report, and check how a message supports them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from core.facts.assertions import resolve_subject
from core.facts.claims import (
    MAX_FACT_CHARS,
    Claim,
    SingleAttribute,
    comparable_value,
    parse_since,
)
from core.facts.evidence import Evidence
from core.facts.wording import extract_own_words
from core.guard.tool_definitions import ToolArguments
from core.store.facts.rows import Fact, FactKind, FactOrigin
from core.text.terms import ME, attribute_key, names_in
from core.types import Message


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
        """The names and the value of the fact. A message must contain all of them.

        A reported name counts only if it has a capital letter, a digit or a non-ASCII letter.
        """
        names = [name for name in self.names if not name.isascii() or re.search(r"[A-Z0-9]", name)]
        names.append(self.value or "")
        if not self.is_about_speaker:
            names += names_in(self.about)
        return names

    def find_support(self, evidence: Evidence, message: Message | None = None) -> Support | None:
        """Return the message that supports the fact, or None.

        Prefer a message that also supports the date. With `message`, consider only this message.
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

    def begins_later(self, message: Message, zone: ZoneInfo) -> bool:
        """Return whether the reported date is later than the message."""
        valid_from, _ = parse_since(self.since, message.created_at, zone)
        return valid_from is not None and valid_from > message.created_at

    def to_claim(self, message: Message, zone: ZoneInfo, *, is_dated: bool) -> Claim:
        """Return the fact as a claim of the message's sender.

        The claim gets the reported date only if `is_dated` is set. A claim about a time after the
        message gets neither date nor attribute, so it doesn't end a fact that still holds.
        """
        valid_from, precision = parse_since(
            self.since if is_dated else None, message.created_at, zone
        )
        is_future = self.begins_later(message, zone)
        if is_future:
            valid_from, precision = None, "day"
        subject = resolve_subject(self.about, self.content, message)
        value = comparable_value(self.attribute, self.value or "")
        attribute = None
        if subject and self.attribute and value and not is_future:
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
            precision=precision,
        )


class ReportedOperation(ReportedFact):
    """A model's report about a fact in one of several numbered messages.

    `content` is the new fact. For `end`, it is the sentence that says that something is over.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    op: Literal["add", "replace", "end", "same"] = "add"
    # The number of the known fact that is replaced, ended or repeated. None with `add`.
    fact: int | None = None
    # The number of the message, beginning with 1.
    message: int
    # The words of the message that state the fact.
    quote: str | None = None

    @model_validator(mode="after")
    def _check_fact(self) -> Self:
        if self.op != "add" and self.fact is None:
            raise ValueError("fact: an operation on a held fact needs its number")
        return self

    def quotes(self, message: Message) -> bool:
        """Return whether the message contains the quote, ignoring case and white space."""
        quote = " ".join((self.quote or "").casefold().split())
        own_words = " ".join(
            extract_own_words(message.text, sender_name=message.sender_name).casefold().split()
        )
        return bool(quote) and quote in own_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A claim to store as a fact, with its message and the fact that it replaces."""

    source: Message
    claim: Claim
    # Whether a model or a rule found the claim.
    origin: FactOrigin
    # The known fact that the claim replaces or ends.
    replaces: Fact | None = None
    # The reason why the claim needs approval, as a clause. Empty if it needs none.
    approval_reason: str = ""
