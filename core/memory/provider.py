"""The interface of everything that remembers beyond the conversation.

`name` and `prefetch` must be written; every other hook does nothing until it is needed.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from config.files import Secret as Secret
from core.errors import ToolError
from core.guard.guard import parsed as parsed
from core.store.notes import NoteChange
from core.store.sync import Forgotten as Forgotten
from core.types import Json, Message, Session, Tool, ToolContext

T = TypeVar("T")
Mode = Literal["hybrid", "context", "tools"]
"""context: it is asked before a turn. tools: the model has its tools. hybrid: both."""


class MemoryProvider(ABC):
    """Hooks are awaited within a time limit; what they raise is logged and never reaches the turn.

    An external one is made as ``Provider(options)``, without `options` as ``Provider()``; its hooks, which may be plain
    functions, run in a thread with an event loop of its own. `sync_turn`, `on_memory_write`, `on_session_end`,
    `on_session_switch`, `on_delegation` and `on_forget` reach it through the outbox, in the order of its chat, with
    retries until the hook returns: at least once, and exactly once where the service takes the `key` of a turn. Refused
    is final; any other error is tried again. In cron sessions only `prefetch` and `system_prompt_block` are called:
    nothing is given to it to keep, and it has no tools.
    """

    mode: Mode = "hybrid"
    """Set from the settings before `initialize`."""
    options: ClassVar[type[Any] | None] = None
    """A frozen dataclass of str, int, float, bool and `Secret`; `mneme memory setup NAME` asks for those without
    a default; the metadata of a field may have a ``help``."""
    is_searching: bool = True
    """Whether `prefetch` searches for the text, so that small talk can be skipped."""
    is_reflecting: bool = True
    """Whether `queue_prefetch`, where there is one, is called."""
    every_turns: int = 1
    """So many turns are told by one `sync_turn`; fewer as their session ends, and at a start of the process."""

    @property
    @abstractmethod
    def name(self) -> str:
        """In settings and reports; a class attribute will do. Small letters, digits, ``_``."""

    async def is_available(self) -> bool:
        """Whether it has what it needs (options, a library), without asking a service."""
        return True

    async def initialize(self, folder: Path) -> None:
        """Called before all other hooks but `tools` and `probe`, again when it has failed. `folder`: for its files."""

    async def probe(self) -> str:
        """Asks what is at the other end: its version, its kind and what it can do, as a clause for the owner."""
        return ""

    @abstractmethod
    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """What is worth knowing before answering `text`: one line a memory, best first.

        A line starts with a token that names the memory for ever, such as ``m123``, and a space: a memory whose token
        the session's prefix already holds is not sent again. Only what belongs to `context.scopes` may be returned.
        """

    async def queue_prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """After the turn about `text`, while nobody waits: lines as of `prefetch` for the next one."""
        return ()

    async def system_prompt_block(self, context: ToolContext) -> str:
        """For the frozen system prompt of a new session."""
        return ""

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        """`messages`: the rows of a finished turn, or of `every_turns`, that are not erased, the person's first, the
        answer last, of `session.scope`. `key` names session and turn for ever: what comes twice has it twice."""

    async def tools(self) -> Sequence[Tool]:
        """For the model; the same ones in the same order at every start. Asked once, before `initialize`."""
        return ()

    async def call_tool(self, name: str, arguments: Json, context: ToolContext) -> str:
        """Raises ToolError with a sentence the model can act on."""
        for tool in await awaited(self.tools()):
            if tool.name == name:
                return await awaited(tool.run(arguments, context))
        raise ToolError(f"There is no tool {name}.")

    async def catch_up(self) -> None:
        """Does what waits; called every few seconds. Of built-in ones only: others have the outbox."""

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        """`messages`: its own rows that are not erased, oldest first."""

    async def on_session_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        """The conversation goes on in session `new_id`. `reason`: new, compression (of `parent_id`, which was too
        long), idle, daily (of `parent_id`, which rested), branch (of `parent_id`), resume (of `parent_id`, or of
        itself), rights (less may be seen than before)."""

    async def on_pre_compress(self, session: Session, messages: Sequence[Message]) -> str:
        """The session goes on in a child without its earlier turns: what of `messages` must survive, for the summary
        that the child begins with."""
        return ""

    async def on_delegation(self, session: Session, task: str, result: str) -> None:
        """The model has handed `task` to `session`, a child of the conversation, and what came of it."""

    async def on_memory_write(self, change: NoteChange) -> None:
        """`change.action`: add, replace, remove, consolidate, edited (by hand) or undo; for these three, see which of
        `before` and `after` is None. `change.id` names the change for ever."""

    async def on_forget(self, forgotten: Forgotten) -> None:
        """Something was erased, or deleted or edited on its platform: every copy is to go. What was edited comes again
        by `sync_turn`, under another key. Without this hook the provider keeps its copies, and the person is told."""

    async def goes_along(self, forgotten: Forgotten) -> Sequence[int]:
        """Asked before `on_forget`: the other messages of which there is one copy with these. They come again by
        `sync_turn` when it is done, turn by turn."""
        return ()

    async def shutdown(self) -> None:
        """Closes what is open."""


async def awaited(answer: Awaitable[T]) -> T:
    """What a hook answers, whether it is async or a plain function."""
    return await answer if inspect.isawaitable(answer) else answer
