"""The roles that several classes fill; `gateway/app.py` decides which class fills which role."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from core.types import Address, Answer, CommandSpec, Completion, Inbound, Request

Tell = Callable[[str], None]
"""Takes what is shown while an answer is made."""


class Clock(Protocol):
    """The time, injected for tests."""

    def now(self) -> datetime:
        """Aware UTC."""


class DeliveryRecord(Protocol):
    """Which messages a reply has made, so that a restart edits instead of posting again. The order: `intend`, the call
    of the platform, then `record`, or `retract` where it is sure that no message was made."""

    @property
    def key(self) -> str:
        """Unique for ever; a platform with idempotent sends may use it."""

    @property
    def posted(self) -> Sequence[str]:
        """Ids of the platform messages made so far, also by earlier processes, in order."""

    @property
    def is_uncertain(self) -> bool:
        """Whether an earlier try ended between the call of the platform and its answer: it may have been seen."""

    async def intend(self) -> None:
        """Durable when it returns; while the store is out of order it is written later."""

    async def retract(self) -> None:
        """The intended message was not made."""

    async def record(self, message_id: str, *, is_last: bool = False) -> None:
        """The intended message, or one that needed no intention, has this id. As durable as `intend`; one that
        `is_last`, after which nothing is done any more, becomes durable with the end of the delivery."""


class Reply(Protocol):
    """The way back to where a message came from. One task behind it makes the platform calls."""

    def begin(self, record: DeliveryRecord) -> None:
        """Shows typing. Called once, before `show` and `finish`."""

    def show(self, text: str) -> None:
        """The answer so far (Markdown); frames may be dropped."""

    async def finish(self, answer: Answer) -> None:
        """Returns when the platform has the final answer. Raises DeliveryError."""

    async def abandon(self) -> None:
        """Nothing more will come: stops typing."""


class Sink(Protocol):
    """What an adapter gives its events to: the router."""

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        """Checks access and stores the event. Returns the entry to `serve`; None for a duplicate, or what is not
        served."""

    def serve(self, entry_id: int) -> Awaitable[None]:
        """Has the entry answered once its turn in the queue comes, also where what is returned is not awaited, or is
        cancelled; it raises nothing else."""

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """A room has a new id (a Telegram group became a supergroup); it keeps its scope."""


@runtime_checkable
class Suggester(Protocol):
    """What a sink may be too."""

    async def suggest(self, inbound: Inbound, typed: str) -> Mapping[str, str]:
        """What the option that is being typed, of a command of `inbound`, may become, best first, and how that is
        shown; nothing for who is not served."""


class Adapter(Protocol):
    """One platform: opened, listened to until cancelled (again and again), closed."""

    platform: str
    contact: str
    """What somebody looks for who wants to write here; empty where nobody has to look."""
    hint: str
    """What the system prompt says about this platform: formatting, length, buttons."""

    @property
    def problem(self) -> str:
        """Why nothing can come in, as a clause; empty while the platform is proven to be there."""

    async def open(self) -> None:
        """Connects. Raises ConfigError when the token is refused."""

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        """Until cancelled. Sending must work on until `close`."""

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        """A way to send without an event beside it (reminders, answers after a restart)."""

    async def close(self) -> None:
        """Ends all connections."""


class Model(Protocol):
    """Something that completes a conversation."""

    async def complete(self, request: Request, on_text: Tell, on_wait: Tell) -> Completion:
        """`on_text` gets the text so far; one that does not begin with the last one has been started over. `on_wait`
        gets a sentence when it is tried again. Raises ModelError."""
