"""The built-in memory of curated notes: their blocks in the frozen system prompt, and the tool that changes them.

What others change while a session goes on is told with the next message, once, and never touches its prompt.
What nobody can see in a note is left out of the prompt.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

from core.errors import Refused
from core.facts.heard import EvidenceSearch
from core.guard.guard import cleaned, suspicion
from core.memory.provider import MemoryProvider, is_remembered
from core.notes.notebook import FILES, Notebook
from core.notes.tool import memory_note
from core.store.notes import NoteChange
from core.types import Tool, ToolContext

_TITLES = {"memory": "MEMORY (your notes)", "user": "USER (who you are talking to)"}
LINE_CHARS = 500
"""A longer note is cut where it is only shown as news: the next prompt has all of it."""

NUDGE = (
    "Nothing was noted in the last {} exchanges. If something came up that will matter in a month (who somebody is, "
    "what they prefer, what was decided), save it with the memory tool now; if not, go on."
)


class NotesProvider(MemoryProvider):
    """Notes of a `Notebook`, frozen as they are when a session starts; `evidence` knows what was said. `nudge_after`:
    after so many exchanges without a note the model is reminded that it can note things; 0 for never."""

    name = "notes"
    is_searching = False

    def __init__(self, notebook: Notebook, evidence: EvidenceSearch, nudge_after: int = 0) -> None:
        self._notebook = notebook
        self._evidence = evidence
        self._nudge_after = nudge_after

    async def is_available(self) -> bool:
        """Always."""
        return True

    async def initialize(self, folder: Path) -> None:
        """The notes are there already."""

    async def on_start(self) -> None:
        # What the guard knows is made ready, which takes a second, before anybody waits for it.
        await asyncio.to_thread(suspicion, NUDGE)

    async def system_prompt_block(self, context: ToolContext) -> str:
        # While another program keeps the files, what was edited by hand is logged later, and the notes are shown.
        with contextlib.suppress(Refused):
            await self._notebook.notice(context.scopes)
        await self._notebook.review.remind(context.scopes)
        blocks = []
        for target, title in _TITLES.items():
            entries = await self._notebook.entries(context.scopes, target)
            fullness = await self._notebook.heading(context.scopes, target)
            lines = [f"## {title}: {fullness}"]
            lines += [_line(entry) for entry in entries]
            if not entries:
                lines.append("(nothing noted yet)")
            blocks.append("\n".join(lines))
        return "\n\n".join([*blocks, *(f"({trouble})" for trouble in await self._notebook.troubles(context.scopes))])

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        changes = await self._notebook.news(context.scopes, context.session)
        lines, gone, prompt = [], set(), context.session.system_prompt
        for change in changes:
            gone.add(change.before)
            # What was noted before the prompt was written stands in it, unless it went meanwhile and came back.
            is_held = change.after is not None and change.after not in gone and _stands(change.after, prompt)
            if not is_held:
                lines.append(f"n{change.id} {_news(change)}")
        return [*lines, *await self._nudge(context)]

    async def _nudge(self, context: ToolContext) -> Sequence[str]:
        if not self._nudge_after or not is_remembered(context.session):
            return ()
        begun, latest = await self._notebook.idle(context.scopes, context.session)
        # The one that begins now is no exchange yet.
        times = (begun - 1) // self._nudge_after
        if times < 1:
            return ()
        return (f"nudge{latest}-{times} {NUDGE.format(begun - 1)}",)

    async def tools(self) -> Sequence[Tool]:
        return (memory_note(self._notebook, self._evidence),)


def _line(entry: str) -> str:
    """One entry as it stands in the prompt: what follows its first line stands further in, so that none passes for a
    heading of ours."""
    return "- " + cleaned(entry).replace("\n", "\n  ")


def _stands(entry: str, prompt: str) -> bool:
    """Whether it stands in the prompt whole, and not only as the beginning of another."""
    return re.search(rf"^{re.escape(_line(entry))}$(?!\n  )", prompt, re.MULTILINE) is not None


def _news(change: NoteChange) -> str:
    """A sentence for the model on what somebody else has changed."""
    before = f"“{_short(change.before)}”" if change.before else ""
    if change.after is None:
        return f"{FILES[change.target]} no longer says: {before}."
    return f"{FILES[change.target]} now says: “{_short(change.after)}”{f', no longer: {before}' if before else ''}."


def _short(text: str) -> str:
    text = cleaned(text)
    return text if len(text) <= LINE_CHARS else f"{text[:LINE_CHARS].rsplit(' ', 1)[0]} …"
