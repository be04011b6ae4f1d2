"""The roles that several classes fill; `gateway/app.py` decides which class fills which role."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from core.types import Address, Answer, CommandSpec, Completion, Inbound, Request


class Clock(Protocol):
    """The time, injected, so that tests need not wait for it."""

    def now(self) -> datetime:
        """The present as aware UTC."""


class DeliveryRecord(Protocol):
    """What a reply tells the outbox about the messages it has made, so that a restart edits and does not post again."""

    @property
    def key(self) -> str:
        """Unique for this delivery for ever; a platform with idempotent sends may use it."""

    @property
    def posted(self) -> Sequence[str]:
        """Ids of the platform messages made so far, by this process or one before it, in order."""

    async def record(self, message_id: str) -> None:
        """One more platform message exists. Durable when it returns; while the store is out of order it is kept in
        mind and written later, because the message exists all the same."""


class Reply(Protocol):
    """The way back to where a message came from. One task behind it makes the platform calls."""

    def begin(self, record: DeliveryRecord) -> None:
        """Says that work on an answer has begun: typing is shown. Called once, before `show` and `finish`."""

    def show(self, text: str) -> None:
        """The answer so far (Markdown). Instant; frames may be dropped, never corrupted."""

    async def finish(self, answer: Answer) -> None:
        """Sends the final answer and returns when the platform has it; raises DeliveryError otherwise."""

    async def abandon(self) -> None:
        """Nothing more will come (the message was taken together with a later one): stops typing, cleans up."""


class Sink(Protocol):
    """What an adapter gives its events to: the router."""

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        """Checks access and writes the event down; committed when it returns. Returns the entry to `serve`, or None
        when there is nothing to do (a duplicate, or nothing that is served here)."""

    async def serve(self, entry_id: int) -> None:
        """Waits for the entry's turn in its queue, answers it through the reply it was admitted with, returns when
        the answer has left. Never raises but for cancellation."""

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """A room has a new id (a Telegram group became a supergroup): it keeps its scope."""


class Adapter(Protocol):
    """One platform. Life cycle: open, listen until cancelled (again and again, supervised), close."""

    platform: str
    hint: str
    """What the system prompt says about this platform: formatting, length, buttons."""

    @property
    def problem(self) -> str:
        """Why nothing can come in at present, as a clause; empty while the platform is proven to be there."""

    async def open(self) -> None:
        """Connects what is needed to send; raises ConfigError when the token is refused."""

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        """Takes events in until cancelled. Sending must go on working afterwards, until `close`."""

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        """A way to send to an address without an event beside it (reminders, answers after a restart)."""

    async def close(self) -> None:
        """Ends all connections."""


class Model(Protocol):
    """Something that completes a conversation."""

    name: str

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """`on_text` gets the text so far of this call, `on_wait` a sentence when it has to be tried again.
        Raises ModelError."""
