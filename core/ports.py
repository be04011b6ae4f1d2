"""The roles that can be filled by more than one class, each the size of a hand.

Floors above the core are reached through these only; `gateway/app.py` decides which class fills which role.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from core.types import (
    Address,
    Answer,
    CommandSpec,
    Completion,
    EndReason,
    Inbound,
    Json,
    Message,
    Request,
    Scope,
    Session,
)

if TYPE_CHECKING:
    from core.store.outbox import OutboxItem


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
    """The way back to where a message came from. One painter task behind it owns the platform calls."""

    def begin(self, receipt: DeliveryRecord) -> None:
        """Says that work on an answer has begun: typing is shown. Called once, before `show` and `finish`."""

    def show(self, text: str) -> None:
        """The answer so far (Markdown). Instant; frames may be dropped, never corrupted."""

    async def finish(self, answer: Answer) -> None:
        """Paints the last word and returns when the platform has it; raises DeliveryError otherwise."""

    async def abandon(self) -> None:
        """Nothing more will come (the message was taken together with a later one): stops typing, cleans up."""


class Sink(Protocol):
    """What an adapter gives its events to: the router."""

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        """Checks access and writes the event down; committed when it returns. Returns the entry to `serve`, or None
        when there is nothing to do (a duplicate, or nothing that is served here)."""

    async def serve(self, entry_id: int) -> None:
        """Waits for the entry's turn in its lane, answers it through the reply it was admitted with, returns when
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


class MessageApi(Protocol):
    """Where a painter paints: one chat of one platform. Raises DeliveryError."""

    limit_chars: int
    """Longest text of one platform message, measured by `measure`."""
    pace_s: float
    """Shortest time between two edits."""

    def measure(self, markdown: str) -> int:
        """The length of one part once it is rendered, as the platform counts it."""

    async def typing(self) -> None:
        """Shows that an answer is being worked on; fades by itself after a few seconds."""

    async def post(self, markdown: str, answer: Answer | None, nonce: str) -> str:
        """Makes a message, returns its id. `answer` is given with the last part: its buttons and files go along."""

    async def edit(self, message_id: str, markdown: str, answer: Answer | None) -> None:
        """Replaces the text of a message. Equal text is not an error."""

    async def remove(self, message_id: str) -> None:
        """Deletes a message that is no longer needed (a frame was longer than the last word)."""


class Model(Protocol):
    """Something that completes a conversation."""

    name: str

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """`on_text` gets the text so far of this call, `on_wait` a sentence when it has to be tried again.
        Raises ModelError."""


class Conversations(Protocol):
    """Sessions and their messages."""

    async def current(self, address: Address) -> Session | None:
        """The open session of an address."""

    async def ensure(self, session: Session) -> Session:
        """The open session of the address of `session`; that one, created, when there is none."""

    async def create(self, session: Session, ending: EndReason = "new") -> Session:
        """Opens a session; returns it with its id. The open session of the address, if any, is ended before, for the
        reason `ending`."""

    async def end(self, session_id: int, reason: EndReason, at: datetime) -> None:
        """Ends a session."""

    async def reopen(self, session_id: int, at: datetime) -> Session:
        """Continues an ended session at its own address, with its stored prompt; the one open there ends."""

    async def find(self, session_id: int, scopes: frozenset[Scope]) -> Session | None:
        """A session by id; None when it does not exist or is not of these scopes, which is the same answer."""

    async def retitle(self, session_id: int, title: str) -> None:
        """Gives a session its title."""

    async def append(
        self, messages: Sequence[Message], closing: Sequence[int] = (), outbox_item: OutboxItem | None = None
    ) -> list[Message]:
        """Appends in one transaction; closes inbox entries and fills the outbox parcel in the same one. A message whose
        (address, external id) is known already is returned as it stands."""

    async def history(self, session: Session, scopes: frozenset[Scope]) -> list[Message]:
        """Everything the model may see, oldest first: kinds chat and quote, from `opens_at` of the parent on."""

    async def keep_sent(self, sent: Sequence[tuple[int, tuple[Json, ...]]]) -> None:
        """Stores the block lists of user turns as they are about to be sent: (message id, blocks)."""

    async def keep_prompt(self, session_id: int, prompt: str, sight: frozenset[Scope] = frozenset()) -> Session:
        """Stores the system prompt of a session that has none yet, and the scopes it was written from; returns the
        session as it stands."""

    async def amend(self, address: Address, external_id: str, text: str | None) -> bool:
        """Replaces the text of a message edited on the platform, or erases it (None). False: not known."""
