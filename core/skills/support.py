"""Decides whether each instruction of a skill comes from the person.

The conversation in which a skill is written may also contain a web page or a recalled line, so each
instruction is checked. It must repeat words that the person typed, or name a tool call with
arguments that the person typed. Words that every procedure uses, such as "first" and "steps", are
listed in `data/instructions.toml` and ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from core.errors import Refused
from core.facts.alignment import TypedText
from core.facts.closeness import Support, judge
from core.facts.evidence import Evidence
from core.facts.wording import evidence_pattern, split_sentences
from core.review.repetition import shares_words
from core.skills.format import SKILL_FILE, parse_skill, split_front_matter
from core.text.normalize import language_data
from core.text.terms import word_terms
from core.types import Message, Sender

MAX_INSTRUCTIONS = 60
"""A skill with more instructions isn't compared. It waits if the conversation contains any foreign
text."""
MIN_TYPED_SHARE = 0.6
"""The arguments of a call come from the person if they typed at least this share of the words."""
MAX_CLAUSES = 3
"""An instruction may combine at most this many consecutive clauses."""
MIN_CLAUSE_SHARE = 0.6
"""An instruction keeps at least this share of the words of each clause that it repeats."""
_CLAUSE_END = re.compile(r"[.!?;:,。！？；：，、\n]+(?:\s+|$)|\n+|[。！？；：，、]")
# The mark at the beginning of an item, a quotation or a heading.
_MARK = re.compile(r"\s*(?:(?:[-*+>]|\d{1,3}[.)]|\[[ xX]?\])\s+)*")
_HEADING = re.compile(r"\s*#{1,6}\s+")
_DECORATION = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")


@dataclass(frozen=True, slots=True)
class SkillSupport:
    """The texts that a person typed in a conversation, and the tool calls that they caused."""

    typed: Sequence[TypedText]
    # The words of each tool call.
    calls: Sequence[frozenset[str]]

    @classmethod
    def collect(cls, evidence: Evidence, rows: Sequence[Message], sender: Sender) -> SkillSupport:
        """Collect the typed texts and the tool calls of a conversation.

        `rows` contain the calls.
        """
        typed = evidence.list_typed(sender)
        all_typed = "\n".join(text.text for text in typed)
        return cls(typed, list(_list_calls(rows, all_typed)))

    def supports(self, text: str, old_text: str = "") -> bool:
        """Return whether the person typed or caused each instruction that `text` adds."""
        old_lines = set(_list_lines(old_text))
        lines = [line for line in _list_lines(text) if line not in old_lines]
        instructions = [part for line in lines for part in _split_line(line)]
        if not instructions or len(instructions) > MAX_INSTRUCTIONS:
            return False
        return all(
            self._supports_instruction(instruction, instructions) for instruction in instructions
        )

    def _supports_instruction(self, instruction: str, instructions: Sequence[str]) -> bool:
        """Return whether one of the instructions of a skill was typed, or is a typed call."""
        is_repeated = any(_repeats(instruction, text.text) for text in self.typed)
        if is_repeated and self._is_close(instruction, instructions):
            return True
        if evidence_pattern("denial").search(instruction):
            return False
        terms = {*word_terms(instruction.replace("_", " "))} - _common_terms()
        return any(terms <= call for call in self.calls)

    def _is_close(self, instruction: str, instructions: Sequence[str]) -> bool:
        """Return whether an instruction follows from the typed words.

        It may leave out a comment ("Sort my mail like this: bills go to Ana") if another
        instruction of the skill contains the comment.
        """
        judgement = judge(instruction, self.typed)
        if judgement.reasons != {"comment"}:
            return judgement.support is Support.CLOSE
        return any(
            judge(f"{comment.rstrip('.')}: {instruction}", self.typed).support is Support.CLOSE
            for comment in instructions
            if comment != instruction
        )


def _repeats(instruction: str, typed: str) -> bool:
    """Return whether an instruction repeats up to three consecutive clauses of a typed text.

    The instruction must contain most words of each clause and no others, and as many negations.
    """
    terms = {*word_terms(instruction)}
    negation_count = _count_negations(instruction)
    clauses = [clause for clause in _CLAUSE_END.split(typed) if word_terms(clause)]
    for first in range(len(clauses)):
        for last in range(first, min(first + MAX_CLAUSES, len(clauses))):
            used = clauses[first : last + 1]
            has_same_negations = negation_count == _count_negations(" ".join(used))
            if has_same_negations and _covers_clauses(terms, used):
                return True
    return False


def _covers_clauses(terms: set[str], clauses: Sequence[str]) -> bool:
    """Return whether all terms occur in the clauses, and the terms include most words of each
    clause."""
    parts = [{*word_terms(clause)} for clause in clauses]
    return terms <= set().union(*parts) and all(
        len(part & terms) >= MIN_CLAUSE_SHARE * len(part) for part in parts
    )


def _count_negations(text: str) -> int:
    return len(evidence_pattern("denial").findall(text))


def adds_only(text: str, old_text: str) -> bool:
    """Return whether a text keeps all lines of the text that it replaces."""
    lines = set(_list_lines(text))
    return all(line in lines for line in _list_lines(old_text))


def _list_lines(text: str) -> list[str]:
    """Return the lines that contain instructions: the description of a skill and its body.

    Headings of common words, such as "## Steps", are left out.
    """
    front, body = split_front_matter(text)
    lines = body.splitlines()
    if front:
        try:
            lines.insert(0, parse_skill(text, SKILL_FILE).description)
        except Refused:
            lines = text.splitlines()
    return [
        line.strip()
        for line in lines
        if line.strip() and not (_HEADING.match(line) and _is_common(line))
    ]


def _split_line(line: str) -> list[str]:
    """Return the instructions in a line, without marks and without words such as "use when"."""
    plain = _HEADING.sub("", line) if _HEADING.match(line) else _MARK.sub("", line, count=1)
    plain = _DECORATION.sub("", plain)
    parts = []
    for sentence in split_sentences(plain):
        part = _opening().sub("", sentence.strip(), count=1).strip()
        if word_terms(part):
            parts.append(part)
    return parts


def _list_calls(rows: Sequence[Message], typed: str) -> Iterator[frozenset[str]]:
    """Yield the words of each tool call with arguments that the person typed."""
    for row in rows:
        for block in row.blocks or () if row.role == "assistant" else ():
            if block.get("type") != "tool_use":
                continue
            values = [str(value) for value in (block.get("input") or {}).values()]
            texts = [value for value in values if word_terms(value)]
            if all(shares_words(text, typed, MIN_TYPED_SHARE) for text in texts):
                name = str(block.get("name", "")).replace("_", " ")
                yield frozenset(word_terms(" ".join([name, *texts])))


def _is_common(line: str) -> bool:
    return {*word_terms(line)} <= _common_terms()


@cache
def _common_terms() -> frozenset[str]:
    words: str = language_data("instructions", "core.skills")["common"]
    return frozenset(word_terms(words))


@cache
def _opening() -> re.Pattern[str]:
    openings: Sequence[str] = language_data("instructions", "core.skills")["openings"]
    return re.compile(rf"(?:{'|'.join(map(re.escape, openings))})[\s,:]+", re.IGNORECASE)
