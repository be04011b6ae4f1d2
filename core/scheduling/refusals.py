"""Recognise messages that cancel a reminder: "scratch that", "I won't need it anymore".

The words are in `data/refusals.toml`; see `core.scheduling.vocabularies`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from core.scheduling.phrases import split_clauses
from core.scheduling.vocabularies import Roles, Vocabulary, load_vocabularies

MAX_REFUSAL_CHARS = 120
"""A longer message never cancels a reminder."""


class _Clause(Enum):
    """The role of a clause in a message, such as cancelling a reminder."""

    CANCELS = "cancels"
    # "Don't cancel it".
    KEEPS = "keeps"
    # "Oh well".
    LOOSE = "loose"
    # The clause has other words.
    OTHER = "other"


def is_cancellation(text: str) -> bool:
    """Return whether a message cancels a reminder and has no other content."""
    return find_reason(text) == ""


def find_reason(text: str) -> str | None:
    """Return the rest of a message that cancels a reminder: "I'm off" in "forget it, I'm off".

    The first or the last clause must cancel it. Returns None if neither does.
    """
    if len(text) > MAX_REFUSAL_CHARS:
        return None
    reason: str | None = None
    clauses = _split_all(text)
    for vocabulary in load_vocabularies("refusals"):
        kinds = [_read_clause(clause, vocabulary) for clause in clauses]
        telling = [kind for kind in kinds if kind is not _Clause.LOOSE]
        if _Clause.KEEPS in telling:
            return None
        if telling and _Clause.CANCELS in (telling[0], telling[-1]):
            pairs = zip(clauses, kinds, strict=True)
            others = ", ".join(clause for clause, kind in pairs if kind is _Clause.OTHER)
            reason = others if reason is None else min(reason, others, key=len)
    return reason


def list_cancelled_names(text: str) -> Iterator[str]:
    """Yield the possible names of cancelled reminders.

    In "I don't need the dentist anymore", one of them is "the dentist".
    """
    if len(text) > MAX_REFUSAL_CHARS:
        return
    for vocabulary in load_vocabularies("refusals"):
        roles, name = vocabulary.split(text)
        if name and _cancels(roles):
            yield name


def _split_all(text: str) -> list[str]:
    """Return the clauses of a message."""
    clauses: list[str] = []
    remaining_text = text
    while remaining_text:
        clause, remaining_text = split_clauses(remaining_text)
        clauses.append(clause)
    return clauses


def _read_clause(clause: str, vocabulary: Vocabulary) -> _Clause:
    readings = vocabulary.read_roles(clause)
    if not readings:
        return _Clause.OTHER
    if "keep" in vocabulary.split(clause)[0] or any(map(_keeps, readings)):
        return _Clause.KEEPS
    return _Clause.CANCELS if any(map(_cancels, readings)) else _Clause.LOOSE


def _cancels(roles: Roles) -> bool:
    if "keep" in roles or _keeps(roles):
        return False
    denies_need = "no_need" in roles or {"negation", "need"} <= roles
    return denies_need or "give_up" in roles or {"verb", "verb_end"} <= roles


def _keeps(roles: Roles) -> bool:
    """Return whether the words refuse to give up a reminder, or say that it is needed."""
    return "give_up" in roles and bool(roles & {"negation", "no_need"})
