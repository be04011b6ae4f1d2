"""Keeps the notes short and consistent.

After a turn, if the notes are nearly full or a note was contradicted, the curator drafts changes:
it merges notes that say the same thing, and drops notes that a later note or fact contradicts.

The helper model writes the merged notes. Without it, notes that repeat each other are merged by a
rule. In both cases, rules check that a merged note neither loses nor adds anything. Nothing changes
before a person says yes, and pinned notes never change.
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

from core.errors import ModelError
from core.facts.claims import extract_claims
from core.facts.evidence import Evidence
from core.facts.extraction import parse_items
from core.facts.wording import evidence_pattern
from core.guard.guard import clean_text, find_suspicion
from core.models.metering import ask_model
from core.notes.notebook import FILES, Notebook
from core.ports import Clock, Model
from core.store.facts import Facts
from core.store.notes import Notes, NoteVersion, Operation, PendingNote
from core.text.normalize import language_data
from core.text.terms import word_terms
from core.types import BillingScope, Message, ToolContext

MAX_TOKENS = 2_000
MAX_GROUPS = 20
# After a question to the helper model, the same scope isn't reviewed again for this long.
PAUSE_BETWEEN_QUESTIONS = timedelta(hours=1)
PAUSE_AFTER_REJECTION = timedelta(days=1)
# Two notes that contradict each other share at least this part of the words of the shorter one.
MIN_SHARED_TERMS = 0.5
CONTRADICTION = "two notes contradict each other"
OUTDATED = "a fact has overtaken a note"
_FIRST_PERSON_VERBS = {"is": "am", "has": "have"}
_SENTENCE_END = re.compile(r"(?<=[.!?;。！？])(?<!\d\.)\s+|\n+")
_log = structlog.get_logger("curator")


class _Group(BaseModel):
    """Notes that should be merged, or that contradict each other."""

    # The numbers of the notes, starting with 1.
    notes: Annotated[list[int], Field(min_length=2, max_length=20)]
    why: Literal["same", "contradiction"] = "same"
    # The merged note.
    text: str = ""


@dataclass(slots=True)
class _Draft:
    """Changes that the curator suggests. They are applied together after a yes."""

    operations: list[Operation] = field(default_factory=list)
    # Notes whose content will be in no other note after the changes.
    lost_entries: list[str] = field(default_factory=list)
    # The reasons for the changes, as clauses.
    reasons: list[str] = field(default_factory=list)

    @property
    def changed_entries(self) -> set[str]:
        return {operation.old_text for operation in self.operations}

    @property
    def reason(self) -> str:
        """All reasons and all losses, for the person who decides."""
        loss = "nothing is lost"
        if self.lost_entries:
            entries = " ".join(f"“{entry}”" for entry in self.lost_entries)
            loss = f"no longer noted then: {entries}"
        return f"{', '.join(dict.fromkeys(self.reasons))}; {loss}"

    def drop(self, entry: str, reason: str, replacement: str = "") -> None:
        """Remove a note, or replace it."""
        self.lost_entries.append(entry)
        self.reasons.append(reason)
        action: Literal["replace", "remove"] = "replace" if replacement else "remove"
        self.operations.append(Operation(action=action, content=replacement, old_text=entry))

    def merge(self, entries: Sequence[str], text: str) -> None:
        """Merge notes into one with this text, which may be the text of one of them."""
        kept_entry = text if text in entries else entries[-1]
        for entry in entries:
            if entry != kept_entry:
                self.operations.append(Operation(action="remove", old_text=entry))
        if kept_entry != text:
            self.operations.append(Operation(action="replace", content=text, old_text=kept_entry))


@dataclass
class Curator:
    """Drafts changes of the notes, with the helper model `model` if there is one."""

    notebook: Notebook
    notes: Notes
    facts: Facts
    clock: Clock
    zone: ZoneInfo
    model: Model | None = None
    # The name of the helper model.
    name: str = ""

    async def review_notes(self, context: ToolContext) -> None:
        """Draft changes for the first file that needs any, unless a draft is still pending."""
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
                draft.reasons.append(f"{FILES[target]} is {self.notebook.heading(target, entries)}")
                changeable = [version.after for version in versions if not version.is_pinned]
                await self._draft_merges(draft, changeable, context)
            if draft.operations:
                note = PendingNote(
                    scope=context.scope,
                    target=target,
                    operations=tuple(draft.operations),
                    reason=draft.reason,
                    at=now,
                    is_draft=True,
                )
                await self.notebook.review.add_pending(note, context.epoch)
                break
        await self.notes.mark_reviewed(context.scope, next_review_at, mark)

    async def _draft_corrections(
        self, versions: Sequence[NoteVersion], context: ToolContext
    ) -> _Draft:
        """Drop notes that a later note or a later fact contradicts. Pinned notes stay.

        `versions` are sorted, latest last.
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
                if _differ(older_value, value) and not older.is_pinned:
                    draft.drop(older.after, CONTRADICTION)
            latest[attribute] = version, value

        entries = {version.after for version in versions}
        facts = await self.facts.find_by_attributes(latest, context.scopes)
        for attribute, fact in facts.items():
            version, value = latest[attribute]
            is_outdated = fact.last_said_at > version.at and _differ(value, fact.value)
            if is_outdated and not version.is_pinned:
                replacement = "" if fact.content in entries else fact.content
                draft.drop(version.after, OUTDATED, replacement)
        return draft

    def _find_claim(self, entry: str, now: datetime) -> tuple[str, str] | None:
        """Return the attribute and the value that a note states, such as a home and "Porto".

        The note is read as it is, and as the person would say it.
        """
        for text in (entry, _to_first_person(entry)):
            for claim in extract_claims(text, now, self.zone):
                if claim.attribute:
                    return claim.attribute, claim.value
        return None

    async def _draft_merges(
        self, draft: _Draft, entries: Sequence[str], context: ToolContext
    ) -> None:
        """Add to the draft: drop contradicted notes and merge notes that say the same thing.

        All of `entries` may be changed. They are sorted, latest last.
        """
        remaining = [entry for entry in entries if entry not in draft.changed_entries]
        groups = await self._load_groups(remaining, context)
        # Contradictions come first, so that no note is merged into one that is dropped.
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
        """Return the helper model's groups. If its answer can't be read, return groups found by a
        rule."""
        groups, is_whole = parse_items(await self._ask_helper(entries, context), _Group)
        if not groups and not is_whole:
            groups = await asyncio.to_thread(_group_repetitions, entries)
        return groups[:MAX_GROUPS]

    async def _ask_helper(self, entries: Sequence[str], context: ToolContext) -> str:
        """Ask the helper model to group the notes. Returns its answer, or an empty string."""
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
    """Return the sentences of the notes `before` that the notes `after` don't say.

    The notes say a sentence if one of them has all its words, apart from inflection, and they don't
    negate or reverse it.
    """
    at = datetime.fromtimestamp(0, UTC)
    messages = [Message(role="user", text=entry, session_id=0, created_at=at) for entry in after]
    evidence = Evidence(messages)
    terms_after = [_terms(entry) for entry in after]
    missing = []
    for entry in before:
        for sentence in _SENTENCE_END.split(entry):
            if not sentence.strip():
                continue
            terms = _terms(sentence)
            has_words = any(terms <= other for other in terms_after)
            if not has_words or not evidence.is_supported(sentence):
                missing.append(sentence)
    return missing


def _is_faithful_merge(entries: Sequence[str], text: str) -> bool:
    """Return whether a text says exactly what the notes say, in fewer characters, and is safe."""
    is_shorter = 0 < len(text) < len("".join(entries))
    if not is_shorter or "§" in text or find_suspicion(text) is not None:
        return False
    if find_lost_sentences(entries, [text]):
        return False
    known_terms = frozenset().union(*map(_terms, entries))
    return _terms(text) <= known_terms


def _group_repetitions(entries: Sequence[str]) -> list[_Group]:
    """Return pairs of notes in which the longer note contains all words of the shorter one, in the
    same order and without gaps."""
    groups = []
    for (number, entry), (other_number, other) in combinations(enumerate(entries, 1), 2):
        short, long = sorted((entry, other), key=lambda text: len(word_terms(text)))
        if f" {' '.join(word_terms(short))} " in f" {' '.join(word_terms(long))} ":
            groups.append(_Group(notes=[number, other_number], text=long))
    return groups


def _share_terms(entry: str, other: str) -> bool:
    terms, other_terms = _terms(entry), _terms(other)
    shorter = min(len(terms), len(other_terms))
    return len(terms & other_terms) >= MIN_SHARED_TERMS * shorter


def _terms(text: str) -> frozenset[str]:
    """Return the terms of a note, without words for the person, such as "the user"."""
    return frozenset(word_terms(evidence_pattern("user").sub(" ", text)))


def _differ(value: str, other: str) -> bool:
    """Return whether neither value contains all words of the other."""
    words, other_words = set(value.split()), set(other.split())
    return not (words <= other_words or other_words <= words)


def _to_first_person(entry: str) -> str:
    """Turn "The user lives in Porto" into "I live in Porto", which the rules for facts can read."""
    rest = entry
    if subject := evidence_pattern("user").match(entry):
        rest = entry[subject.end() :].strip()
        if subject[0].endswith(("'s", "’s")):
            return f"my {rest}"
    verb, _, remainder = rest.partition(" ")
    base_form = _FIRST_PERSON_VERBS.get(verb.casefold(), verb.removesuffix("s"))
    return f"I {base_form.casefold()} {remainder}"
