"""Decide whether a message asserts a statement, and whom the statement is about.

Questions, conditions, wishes and hearsay assert nothing. "I don't eat meat" doesn't assert that
someone eats meat. "My sister moved" asserts nothing about the speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from core.dates.periods_in_text import month_number
from core.facts.clauses import choose_languages, count_taken_back, has_marker
from core.facts.patterns import claim_pattern
from core.facts.wording import (
    FIGURE,
    AnalyzedText,
    evidence_pattern,
    evidence_words,
    extract_own_words,
    names_month,
    split_sentences,
)
from core.text.normalize import fold, words_of
from core.text.terms import ME, entity_key, names_in, relation_words, word_terms
from core.types import Message

QUESTION_SHARE = 0.6
"""A question that contains at least this share of a statement's words is the question whether the
statement is true."""
_QUESTION_ENDS = ("?", "？", "吗", "か")
# The word lists of closeness.toml for denials, and for statements that may repeat a denial.
_DENIALS = ("untrue", "rejection")
_STATED_DENIALS = (*_DENIALS, "denial", "avoidance", "past")
_SPEAKER_NAMES = frozenset({ME, "the writer", "i", "user", "the user"})
_RELATIONS = "|".join(relation_words())
# The relation at the start of "'s sister lives in Rome" or "my sister lives in Rome", but not in
# "my sister is Ana", which is about the speaker.
_OWN_RELATION = re.compile(
    rf"\W*(?:s\s+)?(?:my |our |their )?(?P<relation>{_RELATIONS})\b(?! (?:is|are|name)\b)",
    re.IGNORECASE,
)
_RELATIONS_POSSESSION = re.compile(rf"\b(?:my|our) ({_RELATIONS})['’]s\b", re.IGNORECASE)
"""Matches a possession of a relation: the "my sister's" of "my sister's birthday"."""


class Statement:
    """A statement that the model wants to store, split into names, numbers and other words."""

    def __init__(
        self, content: str, names: Iterable[str], *, is_about_speaker: bool = False
    ) -> None:
        self.is_about_speaker = is_about_speaker
        # The statement without words for the person, such as "the user".
        self.content = " ".join(evidence_pattern("user").sub(" ", content).split())
        self.text = AnalyzedText(self.content)
        names = list(names)
        generic_words = {"", *evidence_words("generic")}

        # A message must contain all names. Names with digits count as numbers instead.
        candidates = [*names, *_names_after_first_word(self.content)]
        proper_names = [name for name in candidates if not FIGURE.search(name)]
        self.names = tuple(
            dict.fromkeys(name for name in proper_names if entity_key(name) not in generic_words)
        )

        # A message must contain all numbers. Months count as numbers, so "May" is found in "3.5.".
        plain = self.text.plain
        months = [word for word in words_of(plain) if names_month(word, plain)]
        figures = FIGURE.findall(fold(" ".join([self.content, *names])))
        figures += [str(month_number(month)) for month in months]
        self.figures = tuple(dict.fromkeys(figures))

        # A message must contain most of the other words.
        other_terms = set(generic_words)
        for name in (*proper_names, *months):
            other_terms.update(word_terms(name))
        words = [
            term
            for term in word_terms(self.content)
            if term not in other_terms and not term.isdecimal()
        ]
        self.words = tuple(dict.fromkeys(words))

    def parts_in(self, text: AnalyzedText) -> set[str]:
        """Return the names, numbers and words of the statement that also occur in a text."""
        names = {name for name in self.names if text.has_name(name)}
        figures = {figure for figure in self.figures if text.has_figure(figure)}
        words = {word for word in self.words if text.has_word(word)}
        return names | figures | words


def _names_after_first_word(text: str) -> list[str]:
    """Return the names in a text, without a single word at its beginning.

    The first word of a sentence has a capital letter even if it isn't a name.
    """
    names = list(names_in(text))
    if names and text.startswith(names[0]) and " " not in names[0]:
        return names[1:]
    return names


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    # How many words of the clause the statement contains.
    shared_terms: int
    # Whether the clause is a question.
    is_question: bool
    # The clause with its neighbours, because these may deny it.
    surroundings: str
    # Whether a later sentence takes the clause back: "Just kidding".
    is_taken_back: bool = False


def is_asserted(statement: Statement, text: str) -> bool:
    """Return whether a text asserts a statement.

    Only the clauses that share the most words with the statement are examined, and one of them must
    assert it. A later sentence must not take that clause back.
    """
    clauses: list[_Clause] = []
    sentences = split_sentences(text)
    taken_back_count = count_taken_back(sentences)
    for number, sentence in enumerate(sentences):
        for clause in _split_clauses(sentence, statement):
            clauses.append(replace(clause, is_taken_back=number < taken_back_count))
    if not clauses:
        return True
    most_shared = max(clause.shared_terms for clause in clauses)
    best = [clause for clause in clauses if clause.shared_terms == most_shared]
    return any(
        not clause.is_question
        and not clause.is_taken_back
        and _clause_asserts(clause.text, statement)
        and not _turns_round(clause.surroundings, statement.content)
        for clause in best
    )


def _turns_round(text: str, content: str) -> bool:
    """Return whether a text denies the text after or before it: "… is false", "I forgot to …"."""
    languages = choose_languages(text)
    if not any(has_marker(text, name, languages) for name in _DENIALS):
        return False
    languages = choose_languages(content)
    return not any(has_marker(content, name, languages) for name in _STATED_DENIALS)


def _split_clauses(sentence: str, statement: Statement) -> list[_Clause]:
    """Split a sentence into clauses, each compared with the statement.

    In a question, only the last clause is the question. "Can you note that …?" is a request, not a
    question.
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
        surroundings = ", ".join(parts[max(0, number - 2) : number + 1])
        if number <= 2:
            surroundings = sentence.removesuffix(without_no) + surroundings
        clauses.append(_Clause(part, shared_terms, asks, surroundings))
    return clauses


def _clause_asserts(clause: str, statement: Statement) -> bool:
    """Return whether a clause asserts a statement.

    A condition ("if I move") asserts nothing. The clause and the statement must both be negated or
    both not be, and they must be about the same person. If the clause is unreal ("I would live"),
    hearsay or about the past, the same must be true of the statement.
    """
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
    """Return whether two texts are both negated, or both not negated.

    Also return True if this is hard to tell. One of the texts may have two negations, or only one
    of them may have a word like "avoid".
    """
    denials, avoidances = _find_denials(clause)
    content_denials, content_avoidances = _find_denials(content)
    if max(denials, content_denials) > 1 or avoidances != content_avoidances:
        return True
    return bool(denials) == bool(content_denials)


def _find_denials(text: str) -> tuple[int, set[str]]:
    """Return the number of negations in a text, and its words like "avoid", cut to five letters."""
    text = evidence_pattern("do_not_forget").sub(" ", text)
    text = evidence_pattern("leading_no").sub("", text)
    avoidances = evidence_pattern("avoidance").findall(text)
    denials = evidence_pattern("denial").findall(text)
    return len(denials), {word.casefold()[:5] for word in avoidances}


def _is_about_speaker(clause: str, statement: Statement) -> bool:
    """Return whether a clause is about its speaker, or about a person whom the statement names.

    "My sister moved to Porto" supports only statements about a sister, not about the speaker.
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
    """Return whether a clause is an order ("write a letter") that doesn't mention the speaker."""
    order = evidence_pattern("order").match(clause)
    if order is None:
        return False
    return claim_pattern("first_person").search(clause[order.end() :]) is None


def resolve_subject(about: str, content: str, message: Message) -> str | None:
    """Return the subject of a statement in a message, as attributes name it.

    The subject is ``me`` for the sender, a name's key, or a relation such as ``my sister``. Return
    None if the subject is unclear. `about` is the subject that the model reported.
    """
    key = entity_key(about)
    if about.casefold() in _SPEAKER_NAMES or not key:
        return resolve_owner(content)
    speaker_key = entity_key(message.sender.name) if message.sender else ""
    if key not in (speaker_key, speaker_key.split(" ")[0]):
        return key
    # `about` is the sender's own name. It means a namesake only if the message contains the name.
    names_other = AnalyzedText(
        extract_own_words(message.text, sender_name=message.sender_name)
    ).has_name(about)
    return key if names_other else ME


def resolve_owner(content: str) -> str | None:
    """Return the real subject of a statement about "the user".

    The subject is ``me``, or a relation such as ``my sister`` for "the user's sister …". Return
    None if the statement is about another person.
    """
    without_user = evidence_pattern("user").sub(" ", content, count=1)
    relation = _OWN_RELATION.match(without_user)
    if relation is not None:
        return entity_key(f"my {relation['relation']}")
    if evidence_pattern("unspaced_relation").match(without_user):
        return None
    if evidence_pattern("other_subject").match(without_user):
        return None
    return ME
