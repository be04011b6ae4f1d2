"""Lists people's facts, decisions and standing wishes, for summaries written without a model.

A later decision replaces an earlier one, even in an earlier summary: "we changed our mind: SQLite
instead" removes "we decided to use PostgreSQL". Standing wishes such as "always answer me briefly"
are kept. The expressions of ten languages are in `data/decisions.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from zoneinfo import ZoneInfo

from core.facts.changes import languages_of
from core.facts.claims import MAX_CLAUSE_CHARS, extract_claims
from core.facts.patterns import compile_expressions
from core.facts.wording import AnalyzedText, split_sentences
from core.text.normalize import fold, language_data, plain_with_offsets, words_of
from core.text.terms import content_words

SINGLE_ATTRIBUTES = ("home", "work", "profession", "birthday", "name", "age", "phone", "email")
"""A person has one value for each of these attributes, so the latest statement replaces the
others."""
QUESTION_MARKS = ("?", "？")
MIN_SUBJECT_CHARS = 4
# The day at the end of a line: " (3 May 2026)".
_DAY = re.compile(r" \(\d{1,2} \w+ \d{4}\)$")


class StatementKind(Enum):
    """The kind of a statement, which decides how later statements affect it.

    For example, a later decision replaces an earlier decision.
    """

    WISH = "wish"
    TURN = "turn"
    DECISION = "decision"
    OTHER = "other"


def find_statements(text: str, at: datetime, zone: ZoneInfo) -> list[str]:
    """Return the facts, decisions and standing wishes in a message that a person typed."""
    claims = [claim.content for claim in extract_claims(text, at, zone)]
    statements = list(claims)
    for sentence in split_sentences(text):
        statement = " ".join(sentence.split()).rstrip(" .。!")
        is_short = 0 < len(statement) <= MAX_CLAUSE_CHARS
        if not is_short or statement.endswith(QUESTION_MARKS):
            continue
        if any(claim in statement or statement in claim for claim in claims):
            continue
        if classify(statement) is not StatementKind.OTHER:
            statements.append(statement)
    return statements


@cache
def classify(statement: str) -> StatementKind:
    """Return the kind of a statement in any of the ten languages."""
    if _has(statement, "always") and _has(statement, "manner"):
        return StatementKind.WISH
    if _has(statement, "turn"):
        return StatementKind.TURN
    return StatementKind.DECISION if _has(statement, "decision") else StatementKind.OTHER


def drop_replaced(lines: Sequence[str], zone: ZoneInfo) -> list[str]:
    """Return the lines without the statements that later lines replace.

    The oldest line is first.
    """
    # The statements are compared by their attributes, which don't depend on the day.
    now = datetime.now(zone)
    current_lines: list[str] = []
    for line in lines:
        statement = _statement_of(line)
        if classify(statement) is StatementKind.TURN:
            _remove_replaced_decision(current_lines, statement)
        attributes = _single_attributes(statement, now, zone)
        if attributes:
            current_lines = [
                other
                for other in current_lines
                if attributes.isdisjoint(_single_attributes(_statement_of(other), now, zone))
            ]
        current_lines.append(line)
    return current_lines


def is_wish(line: str) -> bool:
    """Return whether the statement in a line is a standing wish."""
    return classify(_statement_of(line)) is StatementKind.WISH


def _remove_replaced_decision(lines: list[str], turn: str) -> None:
    """Remove the decision that a change of mind replaces.

    That is the last decision that shares a word with the change of mind. If no decision does, it is
    the last decision.
    """
    decisions = [
        line
        for line in lines
        if classify(_statement_of(line)) in (StatementKind.DECISION, StatementKind.TURN)
    ]
    if not decisions:
        return
    text = AnalyzedText(turn)
    for line in reversed(decisions):
        words = content_words([word.casefold() for word in words_of(_statement_of(line))])
        if any(len(word) >= MIN_SUBJECT_CHARS and text.has_name(word) for word in words):
            lines.remove(line)
            return
    lines.remove(decisions[-1])


def _single_attributes(statement: str, now: datetime, zone: ZoneInfo) -> frozenset[str]:
    """Return the single-valued attributes that a statement sets, such as "me|home"."""
    attributes = {claim.attribute or "" for claim in extract_claims(statement, now, zone)}
    return frozenset(
        attribute for attribute in attributes if attribute.partition("|")[2] in SINGLE_ATTRIBUTES
    )


def _statement_of(line: str) -> str:
    return _DAY.sub("", line.removeprefix("- "))


def _has(statement: str, kind: str) -> bool:
    plain = plain_with_offsets(fold(statement))[0].casefold()
    return any(_pattern(language, kind).search(plain) for language in languages_of(statement))


@cache
def _pattern(language: str, kind: str) -> re.Pattern[str]:
    return compile_expressions(language_data("decisions", "core.agent")[language][kind], language)
