"""Keeps notes in shape: drafts how to say shorter what several of them say, and what goes because a later note or fact
says otherwise. Looks when the notes are nearly full or contradict something, after a turn and never before one.

The helper model words a draft, as data; without one equals are merged by rule. What a draft would lose, or add, is
worked out here whoever has worded it. Nothing changes before a person's yes, and never what is pinned.
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
from core.facts.claims import claims
from core.facts.evidence import Evidence, pattern
from core.facts.extraction import read_items
from core.guard.guard import cleaned, suspicion
from core.models.wrappers import ask
from core.notes.notebook import FILES, Notebook
from core.ports import Clock, Model
from core.store.facts import Facts
from core.store.notes import Notes, NoteVersion, Operation, PendingNote
from core.text.normalize import language_data
from core.text.terms import word_terms
from core.types import Message, Payer, ToolContext

MAX_TOKENS = 2_000
MOST_GROUPS = 20
RESTED = timedelta(hours=1)
"""Between two questions to the helper about one scope."""
AFTER_A_NO = timedelta(days=1)
ALIKE = 0.5
"""Two notes of which the helper says that they contradict each other have so much of their words in common."""
_VERBS = {"is": "am", "has": "have"}
_SENTENCE = re.compile(r"(?<=[.!?;。！？])(?<!\d\.)\s+|\n+")
_log = structlog.get_logger("curator")


class _Group(BaseModel):
    """Notes, by their numbers, that the helper would make one, or that contradict each other."""

    notes: Annotated[list[int], Field(min_length=2, max_length=20)]
    why: Literal["same", "contradiction"] = "same"
    text: str = ""


@dataclass(slots=True)
class _Draft:
    """`gone`: whole notes that nothing else says any more; `why`: clauses."""

    operations: list[Operation] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    @property
    def touched(self) -> set[str]:
        return {one.old_text for one in self.operations}

    @property
    def reason(self) -> str:
        listed = " ".join(f"“{entry}”" for entry in self.gone)
        left_out = f"no longer noted then: {listed}" if listed else "nothing is lost"
        return f"{', '.join(dict.fromkeys(self.why))}; {left_out}"

    def drop(self, entry: str, why: str, instead: str = "") -> None:
        self.gone.append(entry)
        self.why.append(why)
        action: Literal["replace", "remove"] = "replace" if instead else "remove"
        self.operations.append(Operation(action=action, content=instead, old_text=entry))

    def merge(self, entries: Sequence[str], text: str) -> None:
        """Makes one of them; `text` may be one of them."""
        kept = text if text in entries else entries[-1]
        self.operations += [Operation(action="remove", old_text=one) for one in entries if one != kept]
        if kept != text:
            self.operations.append(Operation(action="replace", content=text, old_text=kept))


@dataclass
class Curator:
    """Looks by `model`, under its `name`."""

    notebook: Notebook
    notes: Notes
    facts: Facts
    clock: Clock
    zone: ZoneInfo
    model: Model | None = None
    name: str = ""

    async def look(self, context: ToolContext) -> None:
        """Offers a draft where there is something to draft and nothing waits yet."""
        now = self.clock.now()
        mark, until = await self.notes.unreviewed(context.scopes, now), now
        if mark is None or any(note.is_draft for note in await self.notebook.review.waiting(context.scopes)):
            return
        for target in FILES:
            versions = await self.notebook.versions(context.scopes, target)
            draft = await self._overtaken(versions, context)
            if self.notebook.is_nearly_full(target, entries := [one.after for one in versions]):
                until = now if self.model is None else now + RESTED
                draft.why.append(f"{FILES[target]} is {self.notebook.heading(target, entries)}")
                await self._merge(draft, [one.after for one in versions if not one.is_pinned], context)
            if draft.operations:
                offered = PendingNote(
                    scope=context.scope, target=target, operations=tuple(draft.operations), reason=draft.reason,
                    at=now, is_draft=True,
                )  # fmt: skip
                await self.notebook.review.offer(offered, context.epoch)
                break
        await self.notes.reviewed(context.scope, until, mark)

    async def _overtaken(self, versions: Sequence[NoteVersion], context: ToolContext) -> _Draft:
        """What a later note, or a fact that was said later, contradicts: the older one goes."""
        draft, now = _Draft(), self.clock.now()
        claimed = await asyncio.to_thread(lambda: [(one, self._claim(one.after, now)) for one in versions])
        latest: dict[str, tuple[NoteVersion, str]] = {}
        for version, (attribute, value) in ((one, claim) for one, claim in claimed if claim is not None):
            older = latest.get(attribute)
            if older is not None and _differ(older[1], value) and not older[0].is_pinned:
                draft.drop(older[0].after, "two notes contradict each other")
            latest[attribute] = version, value
        noted = {one.after for one in versions}
        for attribute, fact in (await self.facts.of_attributes(latest, context.scopes)).items():
            version, value = latest[attribute]
            if fact.said_at > version.at and _differ(value, fact.value) and not version.is_pinned:
                draft.drop(version.after, "a fact has overtaken a note", "" if fact.content in noted else fact.content)
        return draft

    def _claim(self, entry: str, now: datetime) -> tuple[str, str] | None:
        """Attribute and value that a note states: as it stands, or as the person would say it."""
        found = (one for text in (entry, _first_person(entry)) for one in claims(text, now, self.zone))
        return next(((one.attribute, one.value) for one in found if one.attribute), None)

    async def _merge(self, draft: _Draft, entries: Sequence[str], context: ToolContext) -> None:
        """`entries`: those that may change, the latest last."""
        left = [one for one in entries if one not in draft.touched]
        # Contradictions first, so that nothing is merged into what goes.
        for group in sorted(await self._groups(left, context), key=lambda group: group.why):
            numbers = sorted({number for number in group.notes if 1 <= number <= len(left)})
            chosen = [left[number - 1] for number in numbers if left[number - 1] not in draft.touched]
            text = cleaned(group.text).strip()
            if group.why == "contradiction":
                for one in [one for one in chosen[:-1] if _are_alike(one, chosen[-1])]:
                    draft.drop(one, "two notes contradict each other")
            elif len(chosen) > 1 and await asyncio.to_thread(_is_as_much, chosen, text):
                draft.merge(chosen, text)

    async def _groups(self, entries: Sequence[str], context: ToolContext) -> Sequence[_Group]:
        """By the helper; by rule where there is none, or nothing in its answer can be read."""
        found, is_whole = read_items(await self._answer(entries, context), _Group)
        return (found if found or is_whole else await asyncio.to_thread(_equals, entries))[:MOST_GROUPS]

    async def _answer(self, entries: Sequence[str], context: ToolContext) -> str:
        if self.model is None or len(entries) < 2:
            return ""
        order = language_data("prompts", "core.notes")["curator"]
        payer = Payer(session_id=context.session.id, scope=context.scope, user_id=context.sender.id)
        told = [json.dumps({"note": number, "text": one}, ensure_ascii=False) for number, one in enumerate(entries, 1)]
        asked = ask(self.model, self.name, "curator", order, ["\n".join(told)], max_tokens=MAX_TOKENS, payer=payer)
        try:
            return (await asked).text
        except ModelError as error:
            _log.info("the helper was not asked", why=error.logged)
            return ""


def lost(before: Iterable[str], after: Sequence[str]) -> list[str]:
    """The sentences of notes that others do not say: each word of one, but for its inflection, has to stand in one of
    them, and nothing may be denied or turned round."""
    at = datetime.fromtimestamp(0, UTC)
    said = Evidence([Message(role="user", text=one, session_id=0, created_at=at) for one in after])
    held = [_terms(one) for one in after]
    parts = [part for note in before for part in _SENTENCE.split(note) if part.strip()]
    return [one for one in parts if not (any(_terms(one) <= terms for terms in held) and said.bears_out(one))]


def _is_as_much(chosen: Sequence[str], text: str) -> bool:
    """Whether a text says what the notes say, shorter, and nothing else."""
    is_fit = bool(text) and "§" not in text and len(text) < len("".join(chosen)) and suspicion(text) is None
    return is_fit and not lost(chosen, [text]) and _terms(text) <= frozenset().union(*map(_terms, chosen))


def _equals(entries: Sequence[str]) -> list[_Group]:
    """Pairs of which one says what the other says, in the same order of words."""
    found = []
    for (one, first), (two, second) in combinations(enumerate(entries, 1), 2):
        short, long = sorted((first, second), key=lambda entry: len(word_terms(entry)))
        if f" {' '.join(word_terms(short))} " in f" {' '.join(word_terms(long))} ":
            found.append(_Group(notes=[one, two], text=long))
    return found


def _are_alike(one: str, other: str) -> bool:
    first, second = _terms(one), _terms(other)
    return len(first & second) >= ALIKE * min(len(first), len(second))


def _terms(text: str) -> frozenset[str]:
    return frozenset(word_terms(pattern("user").sub(" ", text)))


def _differ(one: str, other: str) -> bool:
    """Whether neither says the same as the other and more."""
    first, second = set(one.split()), set(other.split())
    return not (first <= second or second <= first)


def _first_person(entry: str) -> str:
    """ "The user lives in Porto" as the rules read it: "I live in Porto"."""
    told = pattern("user").match(entry)
    rest = entry[told.end() :].strip() if told else entry
    if told and told[0].endswith(("'s", "’s")):
        return f"my {rest}"
    verb, _, more = rest.partition(" ")
    plain = _VERBS.get(verb.casefold(), verb.removesuffix("s")).casefold()
    return f"I {plain} {more}"
