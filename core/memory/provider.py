"""The interface of all memories: the built-in notes, history and facts, services, and plugins.

A provider must define `name` and `prefetch`. The other hooks have defaults, and most of these do
nothing.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from config.files import Secret as Secret
from config.masking import mask_secrets
from core.errors import Sentence, ToolError
from core.guard.tool_definitions import parse_arguments as parse_arguments
from core.store.notes import NoteChange
from core.store.sync import HOOKS, Hook
from core.store.sync import Forgotten as Forgotten
from core.text.normalize import to_single_line
from core.types import Json, Message, Session, Tool, ToolContext

T = TypeVar("T")
# context: prefetched before each turn. tools: used through its tools only. hybrid: both.
Mode = Literal["hybrid", "context", "tools"]


class MemoryProvider(ABC):
    """A memory that Mneme searches before a turn and updates after it.

    Each hook has a timeout. An error in a hook is logged and never reaches the turn.

    External providers are services and plugins. Mneme creates them with ``Provider(options)``, or
    with ``Provider()`` if `options` is None. Their hooks run in a separate thread with an event
    loop and may be plain functions.

    These hooks of an external provider are called through the outbox: `sync_turn`,
    `on_memory_write`, `on_session_end`, `on_session_switch`, `on_delegation` and `on_forget`. The
    calls for a chat keep their order, and each call is repeated until the hook returns. So a turn
    arrives at least once. It's stored exactly once if the service ignores a `key` that it already
    has. `Refused` ends the retries; after any other error the call is repeated.

    In scheduled (cron) sessions Mneme calls only `prefetch` and `system_prompt_block`. It sends
    nothing to be stored and offers no tools of the provider.
    """

    # Mneme sets the mode from the settings before it calls `initialize`.
    mode: Mode = "hybrid"
    # A frozen dataclass with fields of type str, int, float, bool or `Secret`. `mneme memory setup
    # NAME` asks for the fields without a default. Field metadata may contain a ``help`` text.
    options: ClassVar[type[Any] | None] = None
    # Whether the result of `prefetch` depends on the text. If so, Mneme skips it for small talk.
    is_searching: bool = True
    # Whether Mneme calls `queue_prefetch`, if the provider implements it.
    is_reflecting: bool = True
    # How many turns one `sync_turn` contains. A call may contain fewer when a session ends and when
    # Mneme starts.
    every_turns: int = 1

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in settings and reports, in lowercase letters, digits and ``_``.

        A provider may define the name as a class attribute.
        """

    async def is_available(self) -> bool:
        """Return whether the requirements of the provider are met, such as options and libraries.

        This hook shouldn't call a service.
        """
        return True

    async def initialize(self, folder: Path) -> None:
        """Prepare the provider, which may store files in `folder`.

        Called once, before all hooks except `is_available`, `tools` and `probe`. If `initialize`
        fails, it's called again before the next hook.
        """

    async def probe(self) -> str | Sentence:
        """Contact the service and return its version, kind and abilities as one clause.

        The owner sees this clause in reports. A `Sentence` is shown in the owner's language.
        """
        return ""

    @abstractmethod
    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Return memories that help to answer `text`, one line each, best first.

        A line starts with a token that identifies the memory, such as ``m123``, and a space. While
        an earlier request of the session contains the token, Mneme doesn't send the memory again.
        Returns only memories that belong to `context.scopes`.
        """

    async def queue_prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Return lines for the next turn, in the format of `prefetch`.

        Called in the background after a turn. `text` is what the person typed in it.
        """
        return ()

    async def system_prompt_block(self, context: ToolContext) -> str:
        """Return a text for the system prompt of a new session. The prompt doesn't change later."""
        return ""

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        """Store a finished turn, or up to `every_turns` turns.

        `messages` begin with a person's message and end with the answer. All of them belong to
        `session.scope`. Erased messages are left out. `key` identifies the session and its turns. A
        repeated call has the same `key`. A turn that is sent again after an erasure has a new one.
        """

    async def tools(self) -> Sequence[Tool]:
        """Return the tools for the model. They must be the same, in the same order, at every start.

        Called once, before `initialize`.
        """
        return ()

    async def call_tool(self, name: str, arguments: Json, context: ToolContext) -> str:
        """Run one of `tools` and return its result.

        Raises ToolError with a sentence that the model can act on.
        """
        for tool in await await_result(self.tools()):
            if tool.name == name:
                return await await_result(tool.run(arguments, context))
        raise ToolError(f"There is no tool {name}.")

    async def catch_up(self) -> None:
        """Do pending background work.

        Called every few seconds, for built-in providers only. External providers get their work
        through the outbox.
        """

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        """Handle the end of a session.

        `messages` are all messages of the session that weren't erased, oldest first.
        """

    async def on_session_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        """Handle that a conversation continues in another session, `new_id`.

        `reason` is one of:

        - new: the person started a new session
        - compression: the session `parent_id` became too long
        - idle, daily: the session `parent_id` was inactive
        - tools: the model's tools have changed since the session `parent_id` began
        - branch: the new session is a branch of `parent_id`
        - resume: the person resumed `parent_id`, or the session `new_id` itself
        - rights: the conversation may now see less than before
        """

    async def on_pre_compress(self, session: Session, messages: Sequence[Message]) -> str:
        """Return the parts of `messages` that the summary of a compression must include.

        A compression starts a child session without the earlier turns. The returned text becomes
        part of the summary at the beginning of the child session.
        """
        return ""

    async def on_delegation(self, session: Session, task: str, result: str) -> None:
        """Handle the `result` of a `task` that the model delegated.

        `session` is the session of the task, a child of the conversation's session.
        """

    async def on_memory_write(self, change: NoteChange) -> None:
        """Handle a change of a note. A repeated call for the same change has the same `change.id`.

        `change.action` is add, replace, remove, consolidate (by the curator), edited (by hand) or
        undo. `change.before` is None if the note is new. `change.after` is None if the note was
        removed.
        """

    async def on_forget(self, forgotten: Forgotten) -> None:
        """Delete every copy of the messages and notes that were erased.

        Messages that were deleted or edited on their platform count as erased. An edited message
        arrives again through `sync_turn` with another key. If a provider doesn't implement this
        hook, Mneme tells the person that the provider's copies remain.
        """

    async def goes_along(self, forgotten: Forgotten) -> Sequence[int]:
        """Return the ids of other messages that `on_forget` will delete with the forgotten ones.

        A provider that stores several messages as one item can only delete them together. This hook
        is called before `on_forget`. Afterwards, Mneme sends the other messages again through
        `sync_turn`, turn by turn.
        """
        return ()

    async def shutdown(self) -> None:
        """Close open resources."""


async def await_result(answer: Awaitable[T]) -> T:
    """Return the result of a hook, and await it first if necessary.

    Despite its type, a hook of a plugin may be a plain function.
    """
    return await answer if inspect.isawaitable(answer) else answer


def describe_error(error: BaseException, limit_chars: int) -> str:
    """Return the type and the message of an error on one line, with secrets masked."""
    message = to_single_line(mask_secrets(str(error)))[:limit_chars]
    return f"{type(error).__name__} {message}".strip()


def implements(provider: MemoryProvider, hook: str) -> bool:
    """Return whether the provider overrides this hook."""
    return getattr(type(provider), hook) is not getattr(MemoryProvider, hook)


def implemented_hooks(provider: MemoryProvider) -> frozenset[str]:
    """Return the names of all hooks that the provider overrides."""
    names = (name for name in vars(MemoryProvider) if not name.startswith("_"))
    return frozenset(name for name in names if implements(provider, name))


def sync_hooks_of(provider: MemoryProvider) -> frozenset[Hook]:
    """Return the hooks that the provider implements and that are called through the outbox."""
    return frozenset(hook for hook in HOOKS if implements(provider, hook))
