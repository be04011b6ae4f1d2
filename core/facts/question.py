"""A question as facts are asked: its terms, what in it may be a name, who asks, and whether it is about themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from core.facts.attributes import ME, is_first_person
from core.records import Fact
from core.text.names import keys_in
from core.text.terms import query_terms, terms_of
from core.types import Account, Scope

QUESTION_CHARS = 2_000
_PAST = re.compile(
    r"\b(?:before|previous|previously|formerly|former|earlier|used to|was|were|did|past|old|once|until|antes|"
    r"antigamente|früher|vorher|avant|autrefois)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Make one with `Question.of`. `asker` None: nobody in particular, as at the command line."""

    terms: tuple[str, ...]
    keys: tuple[str, ...]
    is_own: bool
    is_past: bool
    scopes: frozenset[Scope]
    now: datetime
    asker: Account | None = None

    @classmethod
    def of(cls, text: str, scopes: frozenset[Scope], now: datetime, asker: Account | None = None) -> Question:
        """Reads what was typed."""
        asked = text[:QUESTION_CHARS]
        return cls(
            terms=tuple(query_terms(asked)),
            keys=keys_in(asked),
            is_own=is_first_person(asked),
            is_past=_PAST.search(asked) is not None,
            scopes=scopes,
            now=now,
            asker=asker,
        )

    def wants(self, fact: Fact) -> bool:
        """Whether a fact is worth telling beside a newer one that replaces it: it is the newer one, it is named, or the
        question is about what was."""
        return fact.is_open or self.is_past or not set(self.terms).isdisjoint(terms_of(fact.value))

    def aims_at(self, fact: Fact) -> bool:
        """Whether the fact is about who the question is about: whoever asks, or somebody whom it names."""
        subject, _, what = (fact.attribute or "").partition("|")
        is_named = bool(what) and subject in self.keys
        is_me = subject == ME if what else is_first_person(fact.content)
        if fact.scope.is_room:
            is_me = (
                (is_me or (bool(what) and ":" in subject)) and fact.account is not None and fact.account == self.asker
            )
        return is_named or (self.is_own and is_me)
