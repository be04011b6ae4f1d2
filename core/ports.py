"""Defines protocols with several implementations.

`gateway/assembly/` chooses the implementations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from core.menus.command_specs import CommandSpec
from core.types import (
    Account,
    Address,
    Answer,
    Attachment,
    Completion,
    Inbound,
    Origin,
    Request,
    Scope,
    Sender,
)

TextCallback = Callable[[str], None]
"""A function that receives the text to show while an answer is being written."""

EditJudge = Callable[[Origin, str, str], Origin]
"""A function that returns the new origin of an edited message, given its origin, its old text and
its new text."""


class Clock(Protocol):
    """Returns the current time. Tests use their own clock."""

    def now(self) -> datetime:
        """Return the current time as an aware datetime in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostPost:
    """A call to post a message whose response was lost, so the message may exist.

    The process was killed, or the connection broke, before the message's id was known.
    """

    # How many messages of the reply with a known id precede this one.
    position: int
    # The newest message of the chat before the call, as far as the adapter knows, as text that only
    # the adapter reads. Empty if unknown.
    after_id: str = ""
    # The first message with a known id that the reply has posted after the call. Empty if there is
    # none.
    before_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMessage:
    """A direct message that was written to the bot during setup."""

    sender: Sender
    text: str
    address: Address
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMessage:
    """A message of a chat as the platform stores it. It isn't necessarily in Mneme's store."""

    at: datetime
    # The sender's name. Empty if it's unknown.
    name: str
    text: str
    # Written by the assistant.
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryNotices:
    """Texts that a reply adds itself, in the language of its chat."""

    # The notice above a message that may have been delivered twice.
    may_be_duplicate: str
    # The notice that is sent if an answer has no visible text.
    no_text: str


class DeliveryRecord(Protocol):
    """The platform messages that make up one reply.

    With the record, a restarted process can edit these messages instead of posting them again. To
    post a message, call `intend`, then the platform, then `record`. If the platform certainly
    didn't create a message, call `retract` instead of `record`.
    """

    @property
    def key(self) -> str:
        """A unique key. Platforms can use it to make sending idempotent."""

    @property
    def notices(self) -> DeliveryNotices:
        """The texts that the reply may add itself."""

    @property
    def message_ids(self) -> Sequence[str]:
        """The ids of the messages so far, in order, including those of earlier processes."""

    @property
    def lost_posts(self) -> Sequence[LostPost]:
        """The calls that may have created further messages, in order.

        A call stays in this list until its message is found or is known not to exist. Until then,
        the reply stays marked.
        """

    async def intend(self, after_id: str = "", *, count: int = 1) -> None:
        """Store that a message, or an album of `count` messages, is about to be posted.

        `after_id` is the newest message of the chat. If the response is lost, the message is
        searched for after this one. The entry is durable when this method returns. Raises
        DeliveryError if it can't be stored now. In that case, the message must not be posted.
        """

    async def retract(self) -> None:
        """Store that the intended messages weren't posted."""

    async def record(self, *message_ids: str, is_last: bool = False) -> None:
        """Store the ids of the intended messages, which were posted.

        The ids are as durable as the entry of `intend`. With `is_last`, no further message follows,
        and the ids become durable together with the end of the delivery.
        """

    async def record_found(
        self, lost_post: LostPost, message_id: str, *, is_certain: bool = True
    ) -> None:
        """Store the id of the message that a lost post created.

        If this isn't certain, the answer uses this message, but the post stays in `lost_posts`.
        """

    async def record_absent(self, lost_post: LostPost) -> None:
        """Record that a post whose response was lost didn't create a message."""

    def drop(self, message_ids: Collection[str]) -> None:
        """Remove messages that were deleted. Durable together with the end of the delivery."""

    async def load_known_ids(self) -> Collection[str]:
        """Return the ids of the messages that other replies posted on this platform.

        Raises StoreError if they can't be read.
        """


class Reply(Protocol):
    """Answers one inbound event on its platform. All platform calls are made by a single task."""

    def begin(self, record: DeliveryRecord) -> None:
        """Show the typing indicator. Called once, before `show` and `finish`."""

    def show(self, text: str) -> None:
        """Show the answer so far, which is Markdown. Some updates may be skipped."""

    async def finish(self, answer: Answer) -> None:
        """Deliver the final answer. Raises DeliveryError if the platform doesn't accept it."""

    async def abandon(self, *, is_withdrawn: bool = False) -> None:
        """Stop the typing indicator, because no answer follows.

        If the answer `is_withdrawn`, what was shown of it is deleted.
        """


class InboundSink(Protocol):
    """Receives the events of an adapter. `gateway.admission.Admission` implements it."""

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        """Check the sender's access and store the event.

        Returns the id of the inbox entry, to be passed to `serve`. Returns None if the event is a
        duplicate or if Mneme doesn't answer its sender.
        """

    def serve(self, entry_id: int) -> Awaitable[None]:
        """Queue the entry, and return an awaitable that completes when the entry is answered.

        The entry is answered even if the awaitable is cancelled or never awaited. The awaitable
        raises no error except CancelledError.
        """

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """Store the new id of a group, for example when a Telegram group becomes a supergroup.

        The group keeps its scope.
        """


@runtime_checkable
class Autocompleter(Protocol):
    """Completes the options of commands. An `InboundSink` may also implement this protocol."""

    async def autocomplete(
        self, inbound: Inbound, typed: str, source: str = ""
    ) -> Mapping[str, str]:
        """Suggest values for the option that is being typed in the command of `inbound`.

        `source` is the `suggests` of the option. If it's empty, the first option of the command is
        used. Returns the labels of the values, by value, best first. The result is empty if Mneme
        doesn't answer the sender.
        """


@runtime_checkable
class AutocompletingGroup(Protocol):
    """A command group that can complete the values of options while a person types them."""

    @property
    def suggests(self) -> Sequence[str]:
        """Return the sources that this group can suggest values for. See `Option.suggests`."""

    async def autocomplete(
        self, source: str, typed: str, scope: Scope, account: Account | None
    ) -> Mapping[str, str]:
        """Return the labels of values that match `typed`, by value, best first.

        `source` is one of `suggests`. Labels have times in the zone of `account`, who types.
        """


@runtime_checkable
class UnstoredAnswerer(Protocol):
    """Answers commands without storing them. An `InboundSink` may also implement this protocol."""

    async def answer_unstored(self, inbound: Inbound, reply: Reply) -> bool:
        """Answer a read-only command while earlier events of its address can't be stored.

        Returns False if the event isn't such a command. Raises StoreError if the store can't be
        read.
        """


@runtime_checkable
class MissedReporter(Protocol):
    """Reports messages that weren't read. An `InboundSink` may also implement this protocol."""

    async def report_missed(self, address: Address) -> None:
        """Tell the owner that some messages at this address were skipped after an outage.

        There were too many of them, or they were too old.
        """


class Adapter(Protocol):
    """A connection to one platform.

    Call `open` first, then `listen`, which may be called several times, and `close` at the end.
    """

    platform: str
    contact: str
    """The bot's name and link, for people who look for the bot. Empty in the terminal."""
    hint: str
    """A part of the system prompt, about formatting, length and buttons on this platform."""

    @property
    def problem(self) -> str:
        """A clause that says why messages can't arrive. It's empty while the connection works."""

    @property
    def accepted_at(self) -> float:
        """When the platform last let the bot receive events, in seconds of `time.monotonic`.

        0 if it didn't yet.
        """

    async def open(self) -> None:
        """Connect to the platform.

        Raises AccessRefused if the platform refuses the token, and ConfigError if the settings must
        be changed.
        """

    async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
        """Receive events until cancelled. Sending remains possible until `close`."""

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        """Create a reply that answers no inbound event, for reminders and after a restart."""

    async def close(self) -> None:
        """Close all connections."""


@runtime_checkable
class SharedAdapter(Protocol):
    """A platform on which one gateway receives events and others answer them.

    An `Adapter` may also implement this protocol.
    """

    async def join(self) -> None:
        """Connect to the platform to send messages only. `open` may be called later."""

    def reply_to_event(self, inbound: Inbound) -> Reply:
        """Create the reply to an event that another gateway has received."""


@runtime_checkable
class FileSource(Protocol):
    """Fetches the files that people send. An `Adapter` may also implement this protocol."""

    async def fetch_file(
        self, attachment: Attachment, address: Address, message_id: str, limit_bytes: int
    ) -> bytes:
        """Return the bytes of a file of a message.

        Raises FileError if the file can't be fetched or has more than `limit_bytes`.
        """


@runtime_checkable
class AdminSource(Protocol):
    """Knows who manages a group or server. An `Adapter` may also implement this protocol."""

    async def is_admin(self, inbound: Inbound) -> bool:
        """Return whether the sender of an event in a group manages the group or server.

        Raises DeliveryError if the platform can't be reached.
        """


@runtime_checkable
class RoleSource(Protocol):
    """Knows the names of a server's roles. An `Adapter` may also implement this protocol."""

    async def load_role_names(self, server_id: str) -> Mapping[str, str]:
        """Return the names of a server's roles, by id.

        Raises DeliveryError if the platform can't be reached.
        """


@runtime_checkable
class PlaceSource(Protocol):
    """Knows the names of groups. An `Adapter` may also implement this protocol."""

    async def load_place_name(self, address: Address) -> str:
        """Return the name of a group or channel, with that of its topic or thread.

        Raises DeliveryError if the platform can't be reached, or doesn't name the group.
        """


@runtime_checkable
class HearingSource(Protocol):
    """Knows which messages a platform passes on. An `Adapter` may also implement this protocol."""

    async def hears_all(self, address: Address) -> bool:
        """Return whether the platform passes on the messages of a group that aren't for the bot.

        Raises DeliveryError if the platform can't be reached.
        """


@runtime_checkable
class ChannelSource(Protocol):
    """Reads earlier messages of a channel. An `Adapter` may also implement this protocol."""

    @property
    def can_read_channels(self) -> bool:
        """Whether the bot gets messages that aren't addressed to it."""

    async def read_channel(
        self, address: Address, since: datetime | None, limit: int
    ) -> Sequence[PastMessage]:
        """Return the last `limit` messages of a channel or thread since a time, oldest first.

        Raises DeliveryError if the platform can't be reached, or doesn't show the channel to the
        bot.
        """


class Model(Protocol):
    """A language model that completes conversations."""

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model, and return its answer. Raises ModelError if the model doesn't answer.

        `on_text` receives the whole text so far. If that text doesn't begin with the previous text,
        the model has started over. `on_wait` is called before each retry, with a sentence that says
        why the request is repeated.
        """
