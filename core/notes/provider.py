"""The built-in memory of curated notes: their blocks in the frozen system prompt, and the tool that changes them.

What others change while a session goes on is told with the next message, once, and never touches its prompt.
What nobody can see in a note is left out of the prompt.
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
from core.guard.guard import Arguments, cleaned, suspicion, tool_of
from core.memory.provider import MemoryProvider
from core.notes.curator import Curator
from core.notes.notebook import FILES, Notebook
from core.review.pending import quoted, reason_to_wait
from core.store.notes import Author, NoteChange, Operation
from core.text.normalize import language_data, shortened
from core.types import Message, Scope, Session, Tool, ToolContext

_TITLES = {"memory": "MEMORY (your notes)", "user": "USER (who you are talking to)"}
LINE_CHARS = 500
"""A longer note is cut where it is only shown as news: the next prompt has all of it."""


class _Edit(BaseModel):
    action: Literal["add", "replace", "remove"]
    content: str = ""
    old_text: str = ""


class _Arguments(Arguments):
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
        self._talks: dict[Scope, ToolContext] = {}
        """The last turn of each scope that is remembered."""
        self._due: dict[Scope, ToolContext] = {}

    async def initialize(self, folder: Path) -> None:
        # Loading the guard's patterns takes a second: not while somebody waits.
        await asyncio.to_thread(suspicion, language_data("prompts", "core.notes")["memory"])

    async def system_prompt_block(self, context: ToolContext) -> str:
        # While another program keeps the files, what was edited by hand is logged later, and the notes are shown.
        with contextlib.suppress(Refused):
            await self.notebook.notice(context.scopes)
        await self.notebook.review.remind(context.scopes)
        blocks = []
        for target, title in _TITLES.items():
            entries = await self.notebook.entries(context.scopes, target)
            shown = "\n".join(map(_line, entries)) or "(nothing noted yet)"
            blocks.append(f"## {title}: {self.notebook.heading(target, entries)}\n{shown}")
        return "\n\n".join([*blocks, *(f"({trouble})" for trouble in await self.notebook.troubles(context.scopes))])

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        lines, gone, prompt = [], set(), context.session.system_prompt
        if context.session.is_remembered:
            self._talks[context.scope] = context
        for change in await self.notebook.news(context.scopes, context.session):
            if change.target not in FILES:
                continue
            gone.add(change.before)
            # What was noted before the prompt was written stands in it, unless it went meanwhile and came back: whole,
            # not only as the beginning of another entry.
            entry = rf"^{re.escape(_line(change.after or ''))}$(?!\n  )"
            if change.after is None or change.after in gone or not re.search(entry, prompt, re.MULTILINE):
                lines.append(f"n{change.id} {_news(change)}")
        return lines

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        if (context := self._talks.pop(session.scope, None)) is not None:
            self._due[session.scope] = context

    async def catch_up(self) -> None:
        """The curator looks at what was talked about."""
        while self._due and self.curator is not None:
            await self.curator.look(self._due.popitem()[1])

    async def tools(self) -> Sequence[Tool]:
        return (tool_of("memory", _Arguments, self._answer, "core.notes", is_quote=True),)

    async def _answer(self, asked: _Arguments, context: ToolContext) -> str:
        if bool(asked.operations) == (asked.action is not None):
            raise ToolError("Say what to do: either an action, or several operations.")
        if asked.action == "list":
            entries = await self.notebook.entries(context.scopes, asked.target)
            listed = [self.notebook.heading(asked.target, entries), *(f"- {entry}" for entry in entries)]
            return "\n".join([*listed, *await self.notebook.troubles(context.scopes)])
        wanted = [Operation(**one.model_dump()) for one in asked.operations]
        if asked.action is not None:
            wanted = [Operation(action=asked.action, content=asked.content, old_text=asked.old_text)]
        return await self._apply(asked.target, wanted, context)

    async def _apply(self, target: str, operations: Sequence[Operation], context: ToolContext) -> str:
        """In the scope of the conversation; what nobody has typed waits for a yes."""
        if not context.session.is_remembered:
            raise ToolError("Nothing is noted in this conversation; look things up only.")
        author = Author(account=context.account, message_id=context.message_id, epoch=context.epoch)
        if context.scope.is_room and context.scopes == {context.scope}:
            for one in operations:
                if one.action == "add":
                    continue
                change = (await self.notebook.find(context.scopes, one.old_text, [target]))[2]
                if change is None or change.account != context.account:
                    raise ToolError("In a room only who had something noted, or the owner with /memory, changes it.")
            if any(one.content for one in operations):
                operations = quoted(context.sender.name, context.account, operations)
                author = replace(author, origin="member", reason="in a room the owner decides what stands in its notes")
                return await self.notebook.apply(context.scope, context.scopes, target, operations, author)
        reason = reason_to_wait(operations) or await self._unsaid(target, operations, context)
        author = replace(author, origin="typed") if reason is None else replace(author, reason=reason)
        return await self.notebook.apply(context.scope, context.scopes, target, operations, author)

    async def _unsaid(self, target: str, operations: Sequence[Operation], context: ToolContext) -> str | None:
        """Why people have not typed the new contents, as a clause. Notes that are replaced count as said."""
        parts = [part for one in operations if (part := one.old_text.strip())]
        entries = await self.notebook.entries(context.scopes, target)
        replaced = [entry for entry in entries if any(part in entry for part in parts)]
        contents = [one.content for one in operations if one.content.strip()]
        return await self.evidence.unsaid(contents, context, beside=replaced)


def _line(entry: str) -> str:
    # Later lines are indented, so that none passes for a heading of ours.
    return "- " + cleaned(entry).replace("\n", "\n  ")


def _news(change: NoteChange) -> str:
    before, after = (f"“{shortened(cleaned(text or ''), LINE_CHARS)}”" for text in (change.before, change.after))
    if change.after is None:
        return f"{FILES[change.target]} no longer says: {before}."
    return f"{FILES[change.target]} now says: {after}{f', no longer: {before}' if change.before else ''}."
