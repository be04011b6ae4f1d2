"""Offers the curated notes as memory: their blocks in the system prompt, and the tool `memory`.

The system prompt of a session never changes. If a note is changed elsewhere during a session, the
next message to the model reports the change, once. Notes are shown without invisible characters.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from core.errors import Refused, ToolError, word_clause
from core.facts.evidence import EvidenceSearch
from core.guard.guard import clean_text, find_suspicion
from core.guard.tool_definitions import ToolArguments, build_tool, parse_arguments
from core.memory.provider import MemoryProvider
from core.notes.approval import NoteApproval
from core.notes.curator import Curator
from core.notes.edits import find_entry
from core.notes.notebook import FILES, Notebook
from core.notes.verdicts import Verifier
from core.store.notes import NoteChange, Operation
from core.text.normalize import language_data, shorten
from core.types import (
    Effect,
    Json,
    Message,
    Scope,
    Session,
    SessionPrompt,
    Subject,
    Tool,
    ToolContext,
)

_TITLES = {"memory": "MEMORY (your notes)", "user": "USER (who you are talking to)"}
# Longer notes are cut in a report of a change. The prompt of the next session contains the whole
# note.
LINE_CHARS = 500


class _Edit(BaseModel):
    action: Literal["add", "replace", "remove"]
    content: str = ""
    old_text: str = ""


class _Arguments(ToolArguments):
    target: Literal["memory", "user"] | None = None
    action: Literal["add", "replace", "remove", "list"] | None = None
    content: str = ""
    old_text: str = ""
    operations: list[_Edit] = Field(default=[])


_EFFECTS = {
    "list": Effect.READ,
    "add": Effect.ADD,
    "replace": Effect.CHANGE,
    "remove": Effect.REMOVE,
}


@dataclass(eq=False)
class NotesProvider(MemoryProvider):
    name = "notes"
    is_searching = False

    notebook: Notebook
    evidence: EvidenceSearch
    curator: Curator | None = None
    verifier: Verifier | None = None

    def __post_init__(self) -> None:
        has_verifier = self.verifier is not None
        self._approval = NoteApproval(self.notebook, self.evidence, has_verifier)
        # The context of the turn that is running in each scope, without the prompt.
        self._running: dict[Scope, ToolContext] = {}
        # The contexts of finished turns, for the curator.
        self._finished: dict[Scope, ToolContext] = {}

    async def initialize(self, folder: Path) -> None:
        """Load the patterns for suspicious texts, which takes a second, before a turn starts."""
        await asyncio.to_thread(find_suspicion, language_data("prompts", "core.notes")["memory"])

    async def system_prompt_block(self, context: ToolContext) -> str:
        """Return the notes of each file, how full it is, and which files can't be read.

        Notes that a person called wrong are left out.
        """
        # If another program has locked the files, edits by hand are shown now and logged later.
        with contextlib.suppress(Refused):
            await self.notebook.log_hand_edits(context.scopes)
        await self.notebook.review.announce_pending(context.scopes)
        verdicts = await self.notebook.load_verdicts(context.scopes)
        blocks = []
        for target, title in _TITLES.items():
            entries = await self.notebook.entries(context.scopes, target)
            trusted = [each for each in entries if verdicts.get((target, each)) != "wrong"]
            text = "\n".join(map(_format_entry, trusted)) or "(nothing noted yet)"
            blocks.append(f"## {title}: {self.notebook.heading(target, entries)}\n{text}")
        for problem in await self.notebook.list_problems(context.scopes):
            blocks.append(f"({problem})")
        return "\n\n".join(blocks)

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Return a line for each change from outside that the session's prompt doesn't show."""
        if context.session.is_remembered:
            self._running[context.scope] = _without_prompt(context)
        lines = []
        removed_entries = set()
        for change in await self.notebook.list_news(context.scopes, context.session):
            if change.target not in FILES:
                continue
            removed_entries.add(change.before)
            # The prompt may be newer than the start of the session, and already show the note. A
            # note that was removed and then added again is reported anyway.
            is_shown = (
                change.after is not None
                and change.after not in removed_entries
                and _has_entry(context.session.prompt.text, change.after)
            )
            if not is_shown:
                lines.append(f"n{change.id} {_describe_news(change)}")
        return lines

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        """Mark the current turn as finished, so that `catch_up` reviews the notes after it."""
        context = self._running.pop(session.scope, None)
        if context is not None and self.curator is not None:
            self._finished[session.scope] = context

    async def catch_up(self) -> None:
        """Let the helper model judge the proposed notes, then run the curator."""
        if self.verifier is not None:
            await self.verifier.judge_proposals(self._running)
        await self.review_finished_turns()

    async def review_finished_turns(self) -> None:
        """Run the curator for the turns that ended in this process."""
        while self._finished and self.curator is not None:
            _, context = self._finished.popitem()
            await self.curator.review_notes(context)

    async def tools(self) -> Sequence[Tool]:
        tool = build_tool(
            "memory",
            _Arguments,
            self._run_tool,
            "core.notes",
            _EFFECTS,
            is_quote=True,
            can_hold=True,
            find_subjects=self._find_subjects,
        )
        return (tool,)

    async def _run_tool(self, arguments: _Arguments, context: ToolContext) -> str:
        """List or change the notes of one file, and return a report for the model.

        A change that needs confirmation is stored and not made yet. Raises ToolError if the
        arguments contradict each other or notes may not be changed here.
        """
        if bool(arguments.operations) == (arguments.action is not None):
            raise ToolError("Say what to do: either an action, or several operations.")
        target = await self._choose_target(arguments, context)
        if arguments.action == "list":
            return await self._list_entries(target, context)
        if arguments.action is not None:
            operations: Sequence[Operation] = [
                Operation(
                    action=arguments.action,
                    content=arguments.content,
                    old_text=arguments.old_text,
                )
            ]
        else:
            operations = [Operation(**edit.model_dump()) for edit in arguments.operations]
        if not context.session.is_remembered:
            raise ToolError("Nothing is noted in this conversation; look things up only.")
        operations, author = await self._approval.decide(target, operations, context)
        report = await self.notebook.apply(
            context.scope, context.scopes, target, operations, author
        )
        if self.verifier is not None and author.is_proposed:
            self.verifier.has_proposals = True
        return str(report)

    async def _choose_target(self, arguments: _Arguments, context: ToolContext) -> str:
        """Return the target of a call.

        If the call names no target, the target is the file with the old text, or "memory" if there
        is no old text.
        """
        if arguments.target is not None:
            return arguments.target
        old_texts = [arguments.old_text, *(edit.old_text for edit in arguments.operations)]
        for target in _TITLES:
            entries = await self.notebook.entries(context.scopes, target)
            for old_text in filter(str.strip, old_texts):
                if _find_entry(old_text, entries) is not None:
                    return target
        return "memory"

    async def _find_subjects(self, arguments: Json, context: ToolContext) -> Sequence[Subject]:
        """Return the notes that a call replaces or removes."""
        call = parse_arguments(_Arguments, arguments)
        target = await self._choose_target(call, context)
        versions = await self.notebook.versions(context.scopes, target)
        pinned_entries = {version.after for version in versions if version.is_pinned}
        entries = await self.notebook.entries(context.scopes, target)
        old_texts = [call.old_text, *(edit.old_text for edit in call.operations)]
        subjects = []
        for old_text in filter(str.strip, old_texts):
            entry = _find_entry(old_text, entries)
            if entry is not None:
                is_pinned = entry in pinned_entries
                others = [other for other in entries if other != entry]
                subjects.append(
                    Subject(
                        label=word_clause("label_note"),
                        text=entry,
                        is_pinned=is_pinned,
                        kind="memory",
                        others=others,
                    )
                )
        return subjects

    async def _list_entries(self, target: str, context: ToolContext) -> str:
        entries = await self.notebook.entries(context.scopes, target)
        lines = [self.notebook.heading(target, entries), *(f"- {entry}" for entry in entries)]
        problems = await self.notebook.list_problems(context.scopes)
        return "\n".join([*lines, *map(str, problems)])


def _find_entry(old_text: str, entries: Sequence[str]) -> str | None:
    """Return the note to which a change of `old_text` would apply, or None if there isn't one."""
    try:
        return find_entry(old_text, entries)
    except Refused:
        return None


def _without_prompt(context: ToolContext) -> ToolContext:
    """Return the context without the prompt of its session.

    The result is small, because one context per person may be kept in memory.
    """
    session = replace(context.session, prompt=SessionPrompt())
    return replace(context, session=session, window=(), budget=None)


def _format_entry(entry: str) -> str:
    """Return a note as an item of a list.

    The second and later lines are indented, so that a line such as "## USER" doesn't look like a
    heading of the prompt.
    """
    return "- " + clean_text(entry).replace("\n", "\n  ")


def list_prompt_notes(prompt: str) -> list[str]:
    """Return the notes that a system prompt shows, each on one line."""
    notes: list[str] = []
    for title in _TITLES.values():
        _, _, rest = prompt.partition(f"\n## {title}: ")
        block, _, _ = rest.partition("\n\n")
        # The first piece is the end of the heading.
        items = re.split(r"\n- ", block)[1:]
        notes += [" ".join(item.split()) for item in items]
    return notes


def list_known_notes(prompt: str, contexts: Iterable[str]) -> list[str]:
    """Return the notes that a request contains, for answers without a model.

    These are the notes of its prompt, with the changes that `NotesProvider.prefetch` has reported
    since. `contexts` are the fenced texts with the reports, oldest first.
    """
    notes = list_prompt_notes(prompt)
    for report in _NEWS.finditer("\n".join(contexts)):
        outdated = report["before"] or report["removed"]
        notes = [note for note in notes if _quote(note) != f"“{outdated}”"]
        if report["after"] is not None and report["after"] not in notes:
            notes.append(report["after"])
    return notes


def _has_entry(prompt: str, entry: str) -> bool:
    """Return whether a prompt shows exactly this note.

    A longer note that starts with it doesn't count.
    """
    # An indented line after the match would be the next line of a longer note.
    pattern = rf"^{re.escape(_format_entry(entry))}$(?!\n  )"
    return re.search(pattern, prompt, re.MULTILINE) is not None


# A line of `_describe_news` in the fenced text.
_NEWS = re.compile(
    r"^- n\d+ (?:"
    r"(?:MEMORY|USER)\.md now says: “(?P<after>.*?)”(?:, no longer: “(?P<before>.*)”)?\."
    r"|(?:[A-Z]+\.md no longer says|The person says that this note is wrong): “(?P<removed>.*)”\."
    r")$",
    re.MULTILINE,
)


def _describe_news(change: NoteChange) -> str:
    """Return a sentence for the model about the previous and the new text of a note."""
    file = FILES[change.target]
    if change.action == "wrong":
        return f"The person says that this note is wrong: {_quote(change.after)}."
    if change.action == "right":
        return f"The person says that this note is right: {_quote(change.after)}."
    if change.after is None:
        return f"{file} no longer says: {_quote(change.before)}."
    if change.before:
        return f"{file} now says: {_quote(change.after)}, no longer: {_quote(change.before)}."
    return f"{file} now says: {_quote(change.after)}."


def _quote(text: str | None) -> str:
    return f"“{shorten(clean_text(text or ''), LINE_CHARS)}”"
