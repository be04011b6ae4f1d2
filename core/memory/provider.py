"""The one interface of everything that remembers beyond the conversation: what it may do, and when it is asked.

`name`, `is_available`, `initialize` and `prefetch` must be written; every other hook does nothing until it is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from core.errors import ToolError
from core.store.notes import NoteChange
from core.types import Json, Message, Scope, Session, Tool, ToolContext

Mode = Literal["hybrid", "context", "tools"]
"""hybrid: it is asked before a turn, and the model has its tools. context: only the former. tools: only the latter."""


@dataclass(frozen=True, slots=True)
class Secret:
    """An option from the environment, kept out of every repr. In mneme.toml stands the name of its variable only."""

    value: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What is to be erased, by ids, because the words are gone. `messages` are ids of rows as `sync_turn` gave them,
    all of one session of `scope`; `notes` are ids of changes as `on_memory_write` gave them. A copy that was made of
    several goes when one of them does."""

    scope: Scope
    messages: tuple[int, ...] = ()
    notes: tuple[int, ...] = ()


class MemoryProvider(ABC):
    """A memory. Its hooks are awaited with a time box; what they raise is logged and never reaches the turn.

    One of the user's choice, with `options`, is made as ``Provider(options)``, without as ``Provider()``. Its hooks run
    on an event loop of its own, so that one that blocks holds up nothing but itself. What it is to keep or to erase
    (`sync_turn`, `on_memory_write`, `on_session_end`, `on_session_switch`, `on_forget`) reaches it through the outbox,
    in the order of its session, again and again with growing patience until the hook returns: at least once, and
    exactly once where the service takes the `key` of a turn. A hook that raises Refused says no for good and is not
    tried again; any other error is tried again. Of cron sessions it is only asked (`prefetch`, `system_prompt_block`):
    nothing of them is given to it to keep, and its tools do not exist there.
    """

    mode: Mode = "hybrid"
    sync_every_turns: int = 1
    """So many turns are given to `sync_turn` together. Both are set from the settings before `initialize`."""
    options: ClassVar[type[Any] | None] = None
    """A frozen dataclass of str, int, float, bool and `Secret`; `mneme memory setup NAME` asks for its fields, whose
    metadata may have a ``help``."""
    is_searching: bool = True
    """Whether `prefetch` looks up what the text is about, so that it need not be asked about "ok, thanks"."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in settings and reports; a plain class attribute will do. Small letters, digits, ``_``."""

    @abstractmethod
    async def is_available(self) -> bool:
        """Whether it has what it needs to work (options, a library), told without asking a service."""

    @abstractmethod
    async def initialize(self, folder: Path) -> None:
        """Called before all other hooks but `tools`, and again when it has failed. `folder`: its own, made, for what
        it keeps."""

    @abstractmethod
    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """What is worth knowing before answering `text`: one line a memory, best first.

        A line starts with a token that names the memory for ever, such as ``m123``, and a space: a memory whose token
        the session's prefix already holds is not sent again. Only what belongs to `context.scopes` may be returned.
        """

    async def queue_prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """The turn about `text` is over: what is worth knowing for the next one, found while nobody waits; lines as of
        `prefetch`, which go along with the next turn."""
        return ()

    async def system_prompt_block(self, context: ToolContext) -> str:
        """Text for the frozen system prompt of a new session; empty for none."""
        return ""

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        """Turns are over and stored; `messages` are their rows that are not erased, the person's first, the answer
        last. They belong to `session.scope`. `key` names session and turn for ever: what comes twice has it twice."""

    async def tools(self) -> Sequence[Tool]:
        """Tools of this memory for the model; the same ones in the same order at every start. Asked once, at the start,
        before `initialize`."""
        return ()

    async def call_tool(self, name: str, arguments: Json, context: ToolContext) -> str:
        """Runs one of `tools`. Raises ToolError with a sentence the model can act on."""
        for tool in await self.tools():
            if tool.name == name:
                return await tool.run(arguments, context)
        raise ToolError(f"There is no tool {name}.")

    async def on_start(self) -> None:
        """The process has begun: what one before it did not come to do is made up for; nobody waits. Only for what is
        built in; a service has `initialize` and the outbox."""

    async def on_turn_start(self, context: ToolContext) -> None:
        """A turn begins; the person's message is stored as `context.message_id`."""

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        """The session is over; `messages` are its own rows that are not erased, oldest first."""

    async def on_session_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        """The conversation goes on in session `new_id`. `reason`: new, length (`parent_id` was too long), resume (of
        `parent_id`, or of itself), rights (less may be seen than before)."""

    async def on_pre_compress(self, session: Session, messages: Sequence[Message]) -> str:
        """The session is too long and goes on in a child without its earlier turns: what of `messages` must survive,
        for the prompt of the child; empty for nothing."""
        return ""

    async def on_memory_write(self, change: NoteChange) -> None:
        """A curated note was added, replaced or removed: `change.action`, `before` and `after`; also edited (by hand)
        and undo, told by which of the two is None. `change.id` names the change for ever."""

    async def on_forget(self, forgotten: Forgotten) -> None:
        """A person had something erased, or deleted or edited a message on its platform: every copy of it is to go.
        What was edited is told anew by `sync_turn`, under another key. A memory that does not write this hook keeps its
        copies; whoever has something erased is told so."""

    async def shutdown(self) -> None:
        """The process ends: closes what is open."""


def implements(provider: MemoryProvider, hook: str) -> bool:
    """Whether the provider has written this hook itself."""
    return getattr(type(provider), hook) is not getattr(MemoryProvider, hook)


def is_remembered(session: Session) -> bool:
    """Whether providers may keep anything of the session: not of what was scheduled, nor of what is incognito."""
    return session.address.platform != "cron" and not session.is_incognito
