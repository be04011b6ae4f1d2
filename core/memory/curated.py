"""The built-in memory of curated notes: their blocks in the frozen system prompt, and the tool that changes them.

A note that looks like an order is left out of the prompt and named, never obeyed.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.memory.guard import suspicion
from core.memory.notebook import Notebook
from core.memory.provider import MemoryProvider
from core.tools.memory_note import memory_note
from core.types import Tool, ToolContext

_TITLES = {"memory": "MEMORY (your notes)", "user": "USER (who you are talking to)"}


class Curated(MemoryProvider):
    """Notes of a `Notebook`, frozen as they are when a session starts."""

    name = "notes"

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    async def system_prompt_block(self, context: ToolContext) -> str:
        blocks = []
        for target, title in _TITLES.items():
            entries = await self._notebook.entries(context.scopes, target)
            fullness = await self._notebook.heading(context.scopes, target)
            lines = [f"## {title}: {fullness}"]
            for entry in entries:
                reason = suspicion(entry)
                lines.append(f"- {entry}" if reason is None else f"- (a note was left out: it contains {reason})")
            if not entries:
                lines.append("(nothing noted yet)")
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        return ()

    def tools(self) -> Sequence[Tool]:
        return (memory_note(self._notebook),)
