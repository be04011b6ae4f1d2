"""Keeps the notes short and consistent.

The curator works after a turn, if the notes are nearly full or a note was contradicted. It drafts
changes: it merges notes that say the same thing, and removes notes that a later note or fact
contradicts.

The helper model writes the merged notes. Without a helper model, a rule merges notes that repeat
each other. In both cases, rules check that a merged note neither loses nor adds a statement. A
draft is applied only after a person confirms it. Pinned notes never change.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import structlog
from pydantic import BaseModel, Field

from core.errors import ModelError, word_clause
from core.facts.claims import extract_claims
from core.facts.evidence import Evidence
from core.facts.reading.operations import parse_items
from core.facts.wording import evidence_pattern
from core.guard.guard import clean_text, find_suspicion
from core.models.wrappers import ask_model
from core.notes.notebook import FILES, Notebook
from core.ports import Clock, Model
from core.store.facts.facts import Facts
from core.store.notes import Notes, NoteVersion, Operation, PendingNote
from core.text.normalize import language_data
from core.text.terms import word_terms
from core.types import BillingScope, Message, ToolContext

MAX_TOKENS = 2_000
MAX_GROUPS = 20
# After a question to the helper model, the same scope isn't reviewed again for this long.
PAUSE_BETWEEN_QUESTIONS = timedelta(hours=1)
PAUSE_AFTER_REJECTION = timedelta(days=1)
# Two notes that contradict each other share at least this part of the shorter one's words.
MIN_SHARED_TERMS = 0.5
# The reasons why a note is dropped: keys of `core/errors.toml`.
CONTRADICTION = "waits_notes_contradict"
OUTDATED = "waits_note_outdated"
_FIRST_PERSON_VERBS = {"is": "am", "has": "have"}
# The blanks after a sentence, or a new line. A full stop after a digit, as in "the 3. May", doesn't
# end a sentence.
_SENTENCE_END = re.compile(r"(?<=[.!?;。！？])(?<!\d\.)\s+|\n+")
_log = structlog.get_logger("curator")


class _Group(BaseModel):
    """An item in the helper model's answer: notes that say the same or contradict each other."""

    # The numbers of the notes, starting with 1.
    notes: Annotated[list[int], Field(min_length=2, max_length=20)]
    why: Literal["same", "contradiction"] = "same"
    # The merged note.
    text: str = ""


@dataclass(slots=True)
class _Draft:
    """Changes that the curator suggests. They are applied together after a person confirms them."""

    operations: list[Operation] = field(default_factory=list)
    # Notes whose content won't be in any note after the changes.
    lost_entries: list[str] = field(default_factory=list)
    # The reasons for the changes, as clauses.
    reasons: list[str] = field(default_factory=list)

    @property
    def changed_entries(self) -> set[str]:
        return {operation.old_text for operation in self.operations}

    @property
    def reason(self) -> str:
        """All reasons and the notes that will be lost, as a text for the person who decides."""
        reasons = "; ".join(dict.fromkeys(self.reasons))
        if not self.lost_entries:
            return word_clause("waits_draft", reasons=reasons)
        notes = " ".join(f"“{entry}”" for entry in self.lost_entries)
        return word_clause("waits_draft_loses", reasons=reasons, notes=notes)

    def drop(self, entry: str, reason: str, replacement: str = "") -> None:
        """Add a change that removes a note, or replaces it if there is a `replacement`."""
        self.lost_entries.append(entry)
        self.reasons.append(word_clause(reason))
        action: Literal["replace", "remove"] = "replace" if replacement else "remove"
        self.operations.append(Operation(action=action, content=replacement, old_text=entry))

    def merge(self, entries: Sequence[str], text: str) -> None:
        """Add changes that turn several notes into one note with this text.

        If one of the notes already has this text, that note stays and the others are removed.
        Otherwise the last one gets the text.
        """
        kept_entry = text if text in entries else entries[-1]
        for entry in entries:
            if entry != kept_entry:
                self.operations.append(Operation(action="remove", old_text=entry))
        if kept_entry != text:
            self.operations.append(Operation(action="replace", content=text, old_text=kept_entry))


@dataclass
class Curator:
    """Drafts changes that keep the notes short, and asks a person to confirm them."""

    notebook: Notebook
    notes: Notes
    facts: Facts
    clock: Clock
    zone: ZoneInfo
    # The helper model and its name. None if no helper model is configured.
    model: Model | None = None
    name: str = ""

    async def review_notes(self, context: ToolContext) -> None:
        """Draft changes for the first file that needs any, and ask a person to confirm the draft.

        Nothing happens if no note has changed since the last review, during a pause, or if an
        earlier draft is still waiting for confirmation.
        """
        now = self.clock.now()
        mark = await self.notes.find_unreviewed_mark(context.scopes, now)
        if mark is None:
            return
        pending = await self.notebook.review.list_pending(context.scopes)
        if any(note.is_draft for note in pending):
            return
        next_review_at = now
        for target in FILES:
            versions = await self.notebook.versions(context.scopes, target)
            draft = await self._draft_corrections(versions, context)
            entries = [version.after for version in versions]
            if self.notebook.is_nearly_full(target, entries):
                if self.model is not None:
                    next_review_at = now + PAUSE_BETWEEN_QUESTIONS
                draft.reasons.append(self._describe_size(target, entries))
                changeable = [version.after for version in versions if not version.is_pinned]
                await self._draft_merges(draft, changeable, context)
            if draft.operations:
                await self._store_draft(draft, target, now, context)
                break
        await self.notes.mark_reviewed(context.scope, next_review_at, mark)

    async def _store_draft(
        self, draft: _Draft, target: str, now: datetime, context: ToolContext
    ) -> None:
        note = PendingNote(
            scope=context.scope,
            target=target,
            operations=tuple(draft.operations),
            reason=draft.reason,
            at=now,
            is_draft=True,
        )
        await self.notebook.review.add_pending(note, context.epoch)

    def _describe_size(self, target: str, entries: Sequence[str]) -> str:
        """Return a clause that says how full a file with these notes is."""
        size, limit = self.notebook.measure(target, entries)
        percent = round(100 * size / limit)
        return word_clause(
            "waits_file_full", file=FILES[target], percent=percent, chars=size, limit=limit
        )

    async def _draft_corrections(
        self, versions: Sequence[NoteVersion], context: ToolContext
    ) -> _Draft:
        """Return a draft that removes notes which a later note or fact contradicts.

        A note that a fact contradicts is replaced with the fact, unless another note already states
        the fact. Pinned notes stay. `versions` are sorted, latest last.
        """
        draft = _Draft()
        now = self.clock.now()
        claims = await asyncio.to_thread(
            lambda: [self._find_claim(version.after, now) for version in versions]
        )
        latest: dict[str, tuple[NoteVersion, str]] = {}
        for version, claim in zip(versions, claims, strict=True):
            if claim is None:
                continue
            attribute, value = claim
            if attribute in latest:
                older, older_value = latest[attribute]
                if _have_different_values(older_value, value) and not older.is_pinned:
                    draft.drop(older.after, CONTRADICTION)
            latest[attribute] = version, value

        entries = {version.after for version in versions}
        facts = await self.facts.find_by_attributes(latest, context.scopes)
        for attribute, fact in facts.items():
            version, value = latest[attribute]
            is_outdated = fact.last_said_at > version.at and _have_different_values(
                value, fact.value
            )
            if is_outdated and not version.is_pinned:
                replacement = "" if fact.content in entries else fact.content
                draft.drop(version.after, OUTDATED, replacement)
        return draft

    def _find_claim(self, entry: str, now: datetime) -> tuple[str, str] | None:
        """Return the attribute and the value that a note states, such as the home and "Porto".

        The note is parsed unchanged first, and then as a sentence in the first person. Returns None
        if the note doesn't state an attribute.
        """
        for text in (entry, _to_first_person(entry)):
            for claim in extract_claims(text, now, self.zone):
                if claim.attribute:
                    return claim.attribute, claim.value
        return None

    async def _draft_merges(
        self, draft: _Draft, entries: Sequence[str], context: ToolContext
    ) -> None:
        """Add merges and removals to the draft, based on groups from the helper model or a rule.

        In a group of contradicting notes, only the last one stays. A group of notes that say the
        same becomes one note. All `entries` may be changed. They are sorted, latest last.
        """
        remaining = [entry for entry in entries if entry not in draft.changed_entries]
        groups = await self._load_groups(remaining, context)
        # "contradiction" sorts before "same": a note that is removed must not be merged first.
        for group in sorted(groups, key=lambda group: group.why):
            indexes = sorted(
                {number - 1 for number in group.notes if 1 <= number <= len(remaining)}
            )
            members = [remaining[index] for index in indexes]
            members = [entry for entry in members if entry not in draft.changed_entries]
            if group.why == "contradiction":
                for entry in members[:-1]:
                    if _share_terms(entry, members[-1]):
                        draft.drop(entry, CONTRADICTION)
                continue
            text = clean_text(group.text).strip()
            if len(members) > 1 and await asyncio.to_thread(_is_faithful_merge, members, text):
                draft.merge(members, text)

    async def _load_groups(self, entries: Sequence[str], context: ToolContext) -> Sequence[_Group]:
        """Return the groups of notes that the helper model finds.

        If no helper model is configured or its answer can't be parsed, a rule groups notes that
        repeat each other. At most `MAX_GROUPS` groups are returned.
        """
        groups, is_whole = parse_items(await self._ask_helper(entries, context), _Group)
        if not groups and not is_whole:
            groups = await asyncio.to_thread(_group_repetitions, entries)
        return groups[:MAX_GROUPS]

    async def _ask_helper(self, entries: Sequence[str], context: ToolContext) -> str:
        """Ask the helper model to group the notes, and return its answer as text.

        Returns an empty string if there are fewer than two notes, no helper model is configured, or
        the model fails.
        """
        if self.model is None or len(entries) < 2:
            return ""
        lines = [
            json.dumps({"note": number, "text": entry}, ensure_ascii=False)
            for number, entry in enumerate(entries, 1)
        ]
        try:
            completion = await ask_model(
                self.model,
                self.name,
                "curator",
                language_data("prompts", "core.notes")["curator"],
                ["\n".join(lines)],
                max_tokens=MAX_TOKENS,
                billing=BillingScope(
                    session_id=context.session.id, scope=context.scope, user_id=context.sender.id
                ),
            )
        except ModelError as error:
            _log.info("the helper was not asked", why=error.log_message)
            return ""
        return completion.text


def find_lost_sentences(before: Iterable[str], after: Sequence[str]) -> list[str]:
    """Return the sentences in the notes `before` that the notes `after` no longer state.

    A note states a sentence if it has all its words, in any inflection. A note doesn't state a
    sentence if it negates it, asks it, makes it a condition, or reports it as past or as another
    person's words.
    """
    at = datetime.fromtimestamp(0, UTC)
    messages = [Message(role="user", text=entry, session_id=0, created_at=at) for entry in after]
    evidence = Evidence(messages)
    terms_after = [_extract_terms(entry) for entry in after]
    lost_sentences = []
    for entry in before:
        for sentence in _SENTENCE_END.split(entry):
            if not sentence.strip():
                continue
            terms = _extract_terms(sentence)
            has_words = any(terms <= note_terms for note_terms in terms_after)
            if not has_words or not evidence.is_supported(sentence):
                lost_sentences.append(sentence)
    return lost_sentences


def _is_faithful_merge(entries: Sequence[str], text: str) -> bool:
    """Return whether a text can replace the notes.

    The text must state exactly what the notes state, be shorter, and not look suspicious.
    """
    is_shorter = 0 < len(text) < len("".join(entries))
    if not is_shorter or "§" in text or find_suspicion(text) is not None:
        return False
    if find_lost_sentences(entries, [text]):
        return False
    known_terms = frozenset().union(*map(_extract_terms, entries))
    return _extract_terms(text) <= known_terms


def _group_repetitions(entries: Sequence[str]) -> list[_Group]:
    """Return a group for each pair of notes in which the longer one contains the shorter one.

    The words of the shorter note must occur in a row in the longer one, in any inflection.
    """
    groups = []
    for (number, entry), (other_number, other) in combinations(enumerate(entries, 1), 2):
        short, long = sorted((entry, other), key=lambda text: len(word_terms(text)))
        # The blanks around the terms prevent a match within a word.
        if f" {' '.join(word_terms(short))} " in f" {' '.join(word_terms(long))} ":
            groups.append(_Group(notes=[number, other_number], text=long))
    return groups


def _share_terms(entry: str, other: str) -> bool:
    """Return whether two notes share at least half of the shorter one's terms."""
    terms, other_terms = _extract_terms(entry), _extract_terms(other)
    shorter = min(len(terms), len(other_terms))
    return len(terms & other_terms) >= MIN_SHARED_TERMS * shorter


def _extract_terms(text: str) -> frozenset[str]:
    """Return the terms of a note without words for the person, such as "the user"."""
    return frozenset(word_terms(evidence_pattern("user").sub(" ", text)))


def _have_different_values(value: str, other: str) -> bool:
    """Return whether neither value contains all words of the other."""
    words, other_words = set(value.split()), set(other.split())
    return not (words <= other_words or other_words <= words)


def _to_first_person(entry: str) -> str:
    """Turn "The user lives in Porto" into "I live in Porto", so that `extract_claims` can read it.

    "The user's name is Ana" becomes "my name is Ana". A note without such a subject is treated as
    if it began with its verb: "Lives in Porto".
    """
    predicate = entry
    if subject := evidence_pattern("user").match(entry):
        predicate = entry[subject.end() :].strip()
        if subject[0].endswith(("'s", "’s")):
            return f"my {predicate}"
    verb, _, remainder = predicate.partition(" ")
    base_form = _FIRST_PERSON_VERBS.get(verb.casefold(), verb.removesuffix("s"))
    return f"I {base_form.casefold()} {remainder}"
