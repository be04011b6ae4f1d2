"""The built-in memory of curated notes: their blocks in the system prompt, and the tool `memory`.

The system prompt of a session never changes. If others change notes during a session, the model is
told once, with the next message. Invisible characters in notes are left out of the prompt.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from core.errors import Refused, ToolError
from core.facts.evidence import EvidenceSearch
from core.guard.guard import ToolArguments, build_tool, clean_text, find_suspicion
from core.memory.provider import MemoryProvider
from core.notes.curator import Curator
from core.notes.notebook import FILES, Notebook
from core.review.pending import quote_operations, reason_to_wait
from core.store.notes import Author, NoteChange, Operation
from core.text.normalize import language_data, shorten
from core.types import Message, Scope, Session, Tool, ToolContext

_TITLES = {"memory": "MEMORY (your notes)", "user": "USER (who you are talking to)"}
# Longer notes are cut in the news. The prompt of the next session has the whole note.
LINE_CHARS = 500


class _Edit(BaseModel):
    action: Literal["add", "replace", "remove"]
    content: str = ""
    old_text: str = ""


class _Arguments(ToolArguments):
    target: Literal["memory", "user"]
    action: Literal["add", "replace", "remove", "list"] | None = None
    content: str = ""
    old_text: str = ""
    operations: list[_Edit] = Field(default=[])


@dataclass(eq=False)
class NotesProvider(MemoryProvider):
    name = "notes"
    is_searching = False

    notebook: Notebook
    evidence: EvidenceSearch
    curator: Curator | None = None

    def __post_init__(self) -> None:
        # The context of the turn that is running in each scope.
        self._running: dict[Scope, ToolContext] = {}
        # The contexts of finished turns, for the curator.
        self._finished: dict[Scope, ToolContext] = {}

    async def initialize(self, folder: Path) -> None:
        # Loading the patterns takes a second, so this call loads them before anyone waits.
        await asyncio.to_thread(find_suspicion, language_data("prompts", "core.notes")["memory"])

    async def system_prompt_block(self, context: ToolContext) -> str:
        """Return the notes with how full each file is, and then the problems with files."""
        # If another program holds the lock, edits by hand are shown now and logged later.
        with contextlib.suppress(Refused):
            await self.notebook.log_hand_edits(context.scopes)
        await self.notebook.review.announce_pending(context.scopes)
        blocks = []
        for target, title in _TITLES.items():
            entries = await self.notebook.entries(context.scopes, target)
            text = "\n".join(map(_format_entry, entries)) or "(nothing noted yet)"
            blocks.append(f"## {title}: {self.notebook.heading(target, entries)}\n{text}")
        for problem in await self.notebook.list_problems(context.scopes):
            blocks.append(f"({problem})")
        return "\n\n".join(blocks)

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Return the changes by others that the prompt of the session doesn't show."""
        if context.session.is_remembered:
            self._running[context.scope] = context
        lines = []
        removed_entries = set()
        for change in await self.notebook.list_news(context.scopes, context.session):
            if change.target not in FILES:
                continue
            removed_entries.add(change.before)
            # The prompt may be newer than the start of the session, and already show the note. But
            # a note that was removed after that and added again counts as news.
            is_shown = (
                change.after is not None
                and change.after not in removed_entries
                and _has_entry(context.session.prompt.text, change.after)
            )
            if not is_shown:
                lines.append(f"n{change.id} {_describe_news(change)}")
        return lines

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        if (context := self._running.pop(session.scope, None)) is not None:
            self._finished[session.scope] = context

    async def catch_up(self) -> None:
        """Let the curator review the notes of finished turns."""
        while self._finished and self.curator is not None:
            _, context = self._finished.popitem()
            await self.curator.review_notes(context)

    async def tools(self) -> Sequence[Tool]:
        return (build_tool("memory", _Arguments, self._run_tool, "core.notes", is_quote=True),)

    async def _run_tool(self, arguments: _Arguments, context: ToolContext) -> str:
        """List the notes or change them, as the model asks."""
        if bool(arguments.operations) == (arguments.action is not None):
            raise ToolError("Say what to do: either an action, or several operations.")
        if arguments.action == "list":
            return await self._list_entries(arguments.target, context)
        if arguments.action is not None:
            operations = [
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
        if context.scope.is_group and context.scopes == {context.scope}:
            return await self._apply_in_group(arguments.target, operations, context)
        return await self._apply(arguments.target, operations, context)

    async def _list_entries(self, target: str, context: ToolContext) -> str:
        entries = await self.notebook.entries(context.scopes, target)
        lines = [self.notebook.heading(target, entries), *(f"- {entry}" for entry in entries)]
        return "\n".join([*lines, *await self.notebook.list_problems(context.scopes)])

    async def _apply_in_group(
        self, target: str, operations: Sequence[Operation], context: ToolContext
    ) -> str:
        """Apply operations of a group member.

        Members may change only notes that they added. New text waits for the owner's yes, and is
        noted as a quotation with the name of the member.
        """
        for operation in operations:
            if operation.action == "add":
                continue
            _, _, change = await self.notebook.find_note(
                context.scopes, operation.old_text, [target]
            )
            if change is None or change.account != context.account:
                raise ToolError(
                    "In a room only who had something noted, or the owner with /memory, changes it."
                )
        if not any(operation.content for operation in operations):
            return await self._apply(target, operations, context)
        quotations = quote_operations(context.sender.name, context.account, operations)
        author = replace(
            _author_of(context),
            origin="member",
            reason="in a group, the owner decides about its notes",
        )
        return await self.notebook.apply(context.scope, context.scopes, target, quotations, author)

    async def _apply(
        self, target: str, operations: Sequence[Operation], context: ToolContext
    ) -> str:
        """Apply operations if the person typed their content. Otherwise they wait for a yes."""
        reason = reason_to_wait(operations)
        if not reason:
            reason = await self._explain_untyped(target, operations, context)
        author = _author_of(context)
        if reason is None:
            author = replace(author, origin="typed")
        else:
            author = replace(author, reason=reason)
        return await self.notebook.apply(context.scope, context.scopes, target, operations, author)

    async def _explain_untyped(
        self, target: str, operations: Sequence[Operation], context: ToolContext
    ) -> str | None:
        """Return why the new content isn't what the person typed, as a clause, or None if it is.

        The words of notes that are replaced count as typed.
        """
        old_texts = [text for operation in operations if (text := operation.old_text.strip())]
        entries = await self.notebook.entries(context.scopes, target)
        replaced_entries = [entry for entry in entries if any(text in entry for text in old_texts)]
        contents = [operation.content for operation in operations if operation.content.strip()]
        return await self.evidence.explain_missing(
            contents, context, accepted_notes=replaced_entries
        )


def _author_of(context: ToolContext) -> Author:
    return Author(account=context.account, message_id=context.message_id, epoch=context.epoch)


def _format_entry(entry: str) -> str:
    """Return a note as an item of a list.

    Its later lines are indented, so that none of them looks like a heading of ours.
    """
    return "- " + clean_text(entry).replace("\n", "\n  ")


def _has_entry(prompt: str, entry: str) -> bool:
    """Return whether a prompt shows this whole note, and not a longer one that starts with it."""
    pattern = rf"^{re.escape(_format_entry(entry))}$(?!\n  )"
    return re.search(pattern, prompt, re.MULTILINE) is not None


def _describe_news(change: NoteChange) -> str:
    file = FILES[change.target]
    if change.after is None:
        return f"{file} no longer says: {_quote(change.before)}."
    if change.before:
        return f"{file} now says: {_quote(change.after)}, no longer: {_quote(change.before)}."
    return f"{file} now says: {_quote(change.after)}."


def _quote(text: str | None) -> str:
    return f"“{shorten(clean_text(text or ''), LINE_CHARS)}”"
