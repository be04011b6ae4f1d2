"""Decides whether a message asserts a statement, and about whom.

A message asserts nothing by a question, a condition, a wish or hearsay. "I don't eat meat" doesn't
assert that someone eats meat, and "My sister moved" says nothing about the speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from core.dates.mentions import month_number
from core.facts.patterns import claim_pattern
from core.facts.wording import (
    FIGURE,
    AnalyzedText,
    evidence_pattern,
    evidence_words,
    extract_own_words,
    split_sentences,
)
from core.text.normalize import fold, plain_with_offsets, words_of
from core.text.terms import ME, entity_key, names_in, relation_words, word_terms
from core.types import Message

QUESTION_SHARE = 0.6
"""A question of whose terms the statement has this share asks for it and doesn't assert it."""
_QUESTION_ENDS = ("?", "？", "吗", "か")
_SPEAKER_NAMES = frozenset({ME, "the writer", "i", "user", "the user"})
_RELATIONS = "|".join(relation_words())
_OWN_RELATION = re.compile(
    rf"\W*(?:s\s+)?(?:my |our |their )?(?P<relation>{_RELATIONS})\b(?! (?:is|are|name)\b)",
    re.IGNORECASE,
)
_RELATIONS_POSSESSION = re.compile(rf"\b(?:my|our) ({_RELATIONS})['’]s\b", re.IGNORECASE)


class Statement:
    """A statement that a model wants to keep, in the parts that someone must have said."""

    def __init__(
        self, content: str, names: Iterable[str], *, is_about_speaker: bool = False
    ) -> None:
        self.is_about_speaker = is_about_speaker
        # Without the words for the person, such as "the user".
        self.content = " ".join(evidence_pattern("user").sub(" ", content).split())
        self.text = AnalyzedText(self.content)
        names = list(names)
        generic_words = {"", *evidence_words("generic")}
        candidates = [*names, *_names_after_first_word(self.content)]
        proper_names = [name for name in candidates if not FIGURE.search(name)]
        months = [
            word for word in words_of(plain_with_offsets(self.content)[0]) if month_number(word)
        ]
        figures = FIGURE.findall(fold(" ".join([self.content, *names])))
        figures += [str(month_number(month)) for month in months]
        name_terms = {term for name in (*proper_names, *months) for term in word_terms(name)}
        words = [
            term
            for term in word_terms(self.content)
            if term not in name_terms and term not in generic_words and not term.isdecimal()
        ]
        # Someone must have said all of these.
        self.names = tuple(
            dict.fromkeys(name for name in proper_names if entity_key(name) not in generic_words)
        )
        self.figures = tuple(dict.fromkeys(figures))
        # Someone must have said most of these.
        self.words = tuple(dict.fromkeys(words))

    def parts_in(self, text: AnalyzedText) -> set[str]:
        """The names, figures and words of the statement that a text has."""
        names = {name for name in self.names if text.has_name(name)}
        figures = {figure for figure in self.figures if text.has_figure(figure)}
        words = {word for word in self.words if text.has_word(word)}
        return names | figures | words


def _names_after_first_word(text: str) -> list[str]:
    """The names in a text. Its first word isn't one only because of its capital."""
    names = list(names_in(text))
    if names and text.startswith(names[0]) and " " not in names[0]:
        return names[1:]
    return names


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    # How many of its terms the statement has.
    shared_terms: int
    # The clause asks for the statement.
    is_question: bool


def is_asserted(statement: Statement, text: str) -> bool:
    """Whether the clause with most of the statement asserts it.

    Of several such clauses one is enough.
    """
    clauses: list[_Clause] = []
    for sentence in split_sentences(text):
        clauses += _split_clauses(sentence, statement)
    if not clauses:
        return True
    most_shared = max(clause.shared_terms for clause in clauses)
    best = [clause for clause in clauses if clause.shared_terms == most_shared]
    return any(
        not clause.is_question and _clause_asserts(clause.text, statement) for clause in best
    )


def _split_clauses(sentence: str, statement: Statement) -> list[_Clause]:
    """The clauses of a sentence. Only the last clause of a question asks.

    "Can you note that ...?" is a request and no question.
    """
    without_no = evidence_pattern("leading_no").sub("", sentence)
    parts = [
        part for part in evidence_pattern("clause_separator").split(without_no) if part.strip()
    ]
    is_question = sentence.rstrip().endswith(_QUESTION_ENDS)
    if is_question and evidence_pattern("request").search(sentence):
        is_question = False
    clauses = []
    for number, part in enumerate(parts, 1):
        terms = frozenset(word_terms(part))
        shared_terms = sum(statement.text.mentions(term) for term in terms)
        asks = is_question and number == len(parts) and shared_terms >= QUESTION_SHARE * len(terms)
        clauses.append(_Clause(part, shared_terms, asks))
    return clauses


def _clause_asserts(clause: str, statement: Statement) -> bool:
    """Whether a clause means the same: no condition, and the same denials, mood and person."""
    if evidence_pattern("condition").match(clause):
        return False
    if not _agree_in_denial(clause, statement.content):
        return False
    assertion = evidence_pattern("wish_to_say").sub(" ", clause)
    for mood, mood_in_statement in (
        ("unreal", "statement_unreal"),
        ("hearsay", "hearsay"),
        ("past", "statement_past"),
    ):
        if not evidence_pattern(mood).search(assertion):
            continue
        if not evidence_pattern(mood_in_statement).search(statement.content):
            return False
    return not statement.is_about_speaker or _is_about_speaker(clause, statement)


def _agree_in_denial(clause: str, content: str) -> bool:
    """Whether two texts deny the same or nothing.

    Two denials in one of them, or words like "avoid" in only one of them, may turn the meaning
    round, so these count as agreement.
    """
    denials, avoidances = _find_denials(clause)
    content_denials, content_avoidances = _find_denials(content)
    if max(denials, content_denials) > 1 or avoidances != content_avoidances:
        return True
    return bool(denials) == bool(content_denials)


def _find_denials(text: str) -> tuple[int, set[str]]:
    """The number of denials, and the words like "avoid" by their first five letters."""
    text = evidence_pattern("do_not_forget").sub(" ", text)
    text = evidence_pattern("leading_no").sub("", text)
    avoidances = evidence_pattern("avoidance").findall(text)
    denials = evidence_pattern("denial").findall(text)
    return len(denials), {word.casefold()[:5] for word in avoidances}


def _is_about_speaker(clause: str, statement: Statement) -> bool:
    """Whether a clause is about its speaker, or about someone else whom the statement names.

    "My sister moved to Porto" says nothing of the speaker, unless the statement has the sister too.
    """
    if _is_order(clause) or evidence_pattern("about_assistant").match(clause):
        return False
    owners = evidence_pattern("possessive_name").findall(clause)
    if not all(map(statement.text.has_name, owners)):
        return False
    for relation in _RELATIONS_POSSESSION.findall(clause):
        if not all(map(statement.text.has_word, word_terms(relation))):
            return False

    other = evidence_pattern("other_subject").match(clause)
    if other is None:
        return True
    other_words = word_terms(other["relation"] or other["name"] or other["unspaced"] or "")
    if other_words and all(map(statement.text.has_word, other_words)):
        return True
    return other["name"] is None and resolve_owner(statement.content) != ME


def _is_order(clause: str) -> bool:
    """Whether a clause orders something ("write a letter") and doesn't go on about the speaker."""
    order = evidence_pattern("order").match(clause)
    if order is None:
        return False
    return claim_pattern("first_person").search(clause[order.end() :]) is None


def resolve_subject(about: str, content: str, message: Message) -> str | None:
    """Return whom a statement from a message is about, as the subject of an attribute.

    That is ``me``, the key of a name, or a relation such as ``my sister``; None if it is unclear.
    """
    key = entity_key(about)
    if about.casefold() in _SPEAKER_NAMES or not key:
        return resolve_owner(content)
    speaker_key = entity_key(message.sender.name) if message.sender else ""
    if key not in (speaker_key, speaker_key.split(" ")[0]):
        return key
    # The speaker's name: someone else with this name is meant only if the message names them.
    names_other = AnalyzedText(extract_own_words(message.text)).has_name(about)
    return key if names_other else ME


def resolve_owner(content: str) -> str | None:
    """Return whom a statement about the person is really about.

    That is ``me``, or ``my sister`` for "the user's sister ..."; None for someone else of theirs.
    """
    rest = evidence_pattern("user").sub(" ", content, count=1)
    relation = _OWN_RELATION.match(rest)
    if relation is not None:
        return entity_key(f"my {relation['relation']}")
    if evidence_pattern("unspaced_relation").match(rest):
        return None
    if evidence_pattern("other_subject").match(rest):
        return None
    return ME
