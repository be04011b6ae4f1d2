"""Small frozen values that every layer passes on and none of them changes.

Times are aware UTC datetimes. Ids of ours are integers (rows of state.db); ids of a platform are strings.
Nothing here knows a vendor, a database or a file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RawUpdate:
    """An update exactly as the platform sent it, kept until it was normalised."""

    platform: str
    update_id: int
    raw: str


Json = Mapping[str, Any]
"""One decoded JSON object; content blocks of the Messages API are such objects."""

Role = Literal["user", "assistant", "tool"]
MessageKind = Literal["chat", "quote", "command", "notice"]
"""chat: the model sees it, recall finds it. quote: the model sees it, recall does not (what recall and memory
tools returned). command: a slash command and its answer, kept, for nobody's eyes. notice: said to the person only."""
InboundKind = Literal["message", "edit", "delete", "action"]
Origin = Literal["typed", "pasted", "forwarded", "via_bot", "member", "tool", "service", "file", "imported"]
"""Who said a text decides what becomes of it. Of messages typed, forwarded, via_bot (by a bot that the person called)
and imported are stored; which part of a typed one was pasted is read off its text (`core.guard.provenance`); member is
what others in a room typed."""
CallKind = Literal["chat", "title", "summary", "expansion", "facts"]
"""What a model is asked for."""
EndReason = Literal["new", "length", "resumed", "rights", "cron", "import"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a conversation takes place; a queue and the open session belong to it."""

    platform: str
    chat_id: str
    thread_id: str | None = None

    @property
    def key(self) -> str:
        """``"telegram:42"`` or, inside a thread or topic, ``"telegram:42/7"``."""
        return f"{self.platform}:{self.chat_id}" + (f"/{self.thread_id}" if self.thread_id else "")

    @classmethod
    def parse(cls, key: str) -> Address:
        """The reverse of `key`; raises ValueError when there is no platform or no chat."""
        platform, _, rest = key.partition(":")
        chat_id, _, thread_id = rest.partition("/")
        if not platform or not chat_id:
            raise ValueError(f"not an address: {key!r}; write platform:chat or platform:chat/thread")
        return cls(platform=platform, chat_id=chat_id, thread_id=thread_id or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One identity on one platform. Numeric ids, never names: names can be changed by anybody."""

    platform: str
    user_id: str

    @property
    def key(self) -> str:
        return f"{self.platform}:{self.user_id}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Scope:
    """Who may ever see what is said: one account's private scope, or one room's."""

    key: str

    @classmethod
    def account(cls, platform: str, user_id: str) -> Scope:
        return cls(key=f"account:{platform}:{user_id}")

    @classmethod
    def room(cls, platform: str, chat_id: str) -> Scope:
        return cls(key=f"room:{platform}:{chat_id}")

    @property
    def is_room(self) -> bool:
        return self.key.startswith("room:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who spoke. `is_nobody`: an anonymous admin, a channel, a webhook or a bot; never matched to a person or list."""

    id: str
    name: str
    is_nobody: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A slash command: `name` without the slash, in lower case; `arguments` as typed after it, stripped."""

    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Something that came with a message; `reference` is the platform's own id or address of it."""

    kind: str
    name: str
    mime: str | None = None
    size_bytes: int | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One platform event, normalised. `scope` is decided by the adapter, which alone knows what kind of chat it is.

    kind edit: `text` is the new text of `message_id`; delete: `text` is empty; action: a pressed button, `text` is the
    id of a row in `actions`, `message_id` the press's own id. `is_addressed`: in a room, whether the bot was
    mentioned, replied to or commanded; always true in a direct chat. `is_interaction`: only the reply that came with it
    can answer it (a Discord interaction); after a restart it is marked expired and never answered in public.
    `link_base`: what with a message id behind it is a link to that message, where the platform has such links.
    `origin`: forwarded and via_bot are somebody else's words, which command and confirm nothing.
    """

    kind: InboundKind
    address: Address
    scope: Scope
    sender: Sender
    text: str
    message_id: str
    sent_at: datetime
    is_direct: bool
    is_addressed: bool = True
    command: Command | None = None
    reply_to: str | None = None
    attachments: tuple[Attachment, ...] = ()
    is_interaction: bool = False
    origin: Origin = "typed"
    link_base: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button under an answer. The router keeps `command` as a row in `actions` and fills in the row's `id`."""

    label: str
    command: Command
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file to send: `content` are its bytes."""

    name: str
    content: bytes
    mime: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command or the agent gives to `Reply.finish`; `text` is Markdown. `confirm`: what runs when the person's
    next message there is a yes (see `gateway/commands/confirmations.py`); its arguments name things by ids, never by
    words. `dictated`: what runs with the words of that message behind its arguments. `kept`: what is written down in
    place of a `text` that holds a secret."""

    text: str
    buttons: tuple[Button, ...] = ()
    files: tuple[File, ...] = ()
    is_private: bool = False
    confirm: Command | None = None
    dictated: Command | None = None
    kept: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call, or the sum of several. `input` is what was neither read from nor written to cache;
    `cache_write_hour` is that part of `cache_write` which is kept for an hour, at another price."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_hour: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            cache_write_hour=self.cache_write_hour + other.cache_write_hour,
        )

    @property
    def sent(self) -> int:
        """All input tokens of the request, cached or not."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation at one address. `opens_at`: the first message id of the parent that the model still sees.
    `link_base`: see `Inbound`.
    `sight`: what could be seen here when the prompt was written. `is_incognito`: it lives in memory only, and nothing
    of it is told to any memory."""

    id: int = 0
    address: Address
    scope: Scope
    started_at: datetime
    link_base: str | None = None
    system_prompt: str = ""
    sight: frozenset[Scope] = frozenset()
    model: str = ""
    title: str | None = None
    parent_id: int | None = None
    root_id: int | None = None
    opens_at: int | None = None
    external_id: str | None = None
    last_at: datetime | None = None
    ended_at: datetime | None = None
    end_reason: EndReason | None = None
    messages: int = 0
    is_incognito: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One row of the conversation. `blocks`: the exact content blocks, None when they would be one text block equal
    to `text`. `sent`: the block list of a user turn as it went to the model, None when equal to the plain message.
    `tools`: names and arguments of tool calls in searchable form (None for recall and memory tools). `origin`: of what
    a person said; see `Inbound`."""

    role: Role
    text: str
    session_id: int
    created_at: datetime
    id: int = 0
    kind: MessageKind = "chat"
    blocks: tuple[Json, ...] | None = None
    sent: tuple[Json, ...] | None = None
    external_id: str | None = None
    sender: Sender | None = None
    origin: Origin = "typed"
    tool_name: str | None = None
    tools: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What the model's context holds now, so that recall leaves it out. `spans`: session id, first and last message id,
    both of them inside."""

    spans: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Whose tool call it is: the tool sees `scopes`, writes to `scope`, and leaves `window` out of recall."""

    session: Session
    scope: Scope
    scopes: frozenset[Scope]
    sender: Sender
    now: datetime
    message_id: int | None = None
    window: Window | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool the model may call. `schema` is the JSON schema of the arguments; `run` returns what the model reads and
    raises ToolError with a sentence it can act on. `is_quote`: the result repeats history or memory, so recall must
    not index it. `is_reading`: it writes nothing down and tells nobody outside, so that it serves incognito as well.
    `is_outside`: it is a service's, which may keep what it is asked, so that it does not serve what is scheduled.
    `patience_s`: it keeps a limit of its own, and is waited for so long even where others are not."""

    name: str
    description: str
    schema: Json
    run: Callable[[Json, ToolContext], Awaitable[str]]
    is_quote: bool = False
    is_reading: bool = False
    is_outside: bool = False
    patience_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """On whose account a model call goes: the session it is made for, which has a scope; without one, the scope."""

    session_id: int | None = None
    scope: Scope | None = None


NOBODY = Payer()
"""Such a call is not logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One model call. `messages` are ``{"role", "content": [blocks]}`` with ``cache_control`` marks already placed;
    `system` likewise is a list of text blocks. `tools` are name, description, input_schema objects. `kind` and `payer`
    are for the usage log."""

    system: tuple[Json, ...]
    messages: tuple[Json, ...]
    tools: tuple[Json, ...] = ()
    model: str = ""
    max_tokens: int = 8192
    kind: CallKind = "chat"
    payer: Payer = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What one model call gave: the exact `blocks`, their text joined, why it ended, what it cost.
    `stop_reason` is the API's word: end_turn, max_tokens, stop_sequence, tool_use, pause_turn, refusal,
    model_context_window_exceeded."""

    blocks: tuple[Json, ...]
    text: str
    stop_reason: str
    usage: Usage
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One argument of a command, for platforms that describe arguments. `prefix`: what stands before its value in the
    line a person would type (``from:``); one without a colon at its end (``--summary``) is a switch, which stands
    there alone when the value is "true"."""

    name: str
    description: str
    is_required: bool = False
    choices: tuple[str, ...] = ()
    prefix: str = ""

    @property
    def is_switch(self) -> bool:
        """Whether it has no value but is there or not."""
        return bool(self.prefix) and not self.prefix.endswith(":")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """How a command is announced. Where a platform gives options one by one, their values are joined by `joiner`, in
    order (switches first, then what has a prefix), to the same argument line a person would type. `is_private`: the
    answer is for the caller's eyes only. `menu`: where messages have a menu, the entry there that calls it with what
    the message says, which is then `Inbound.reply_to`."""

    name: str
    description: str
    options: tuple[Option, ...] = ()
    joiner: str = " "
    is_private: bool = False
    menu: str = ""
