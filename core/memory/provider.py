"""The one interface of everything that remembers beyond the conversation: what a memory may do, and when it is asked.

Only `name` and `prefetch` must be written; every other hook does nothing until it is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from core.types import Message, Session, Tool, ToolContext


class MemoryProvider(ABC):
    """A memory. Its hooks are awaited with a time box; what they raise is logged and never reaches the turn."""

    name: str

    async def system_prompt_block(self, context: ToolContext) -> str:
        """Text for the frozen system prompt of a new session; empty for none."""
        return ""

    @abstractmethod
    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """What is worth knowing before answering `text`: one line a memory, best first.

        A line starts with a token that names the memory for ever, such as ``m123``, and a space: a memory whose token
        the session's prefix already holds is not sent again.
        """

    async def sync_turn(self, session: Session, messages: Sequence[Message]) -> None:
        """The turn is over and stored; `messages` are its rows, the person's first, the answer last."""

    def tools(self) -> Sequence[Tool]:
        """Tools of this memory for the model."""
        return ()
