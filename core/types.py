"""Small frozen values that every layer passes on and none of them changes.

Times are aware UTC datetimes. Ids of ours are integers (rows of state.db); ids of a platform are strings.
Nothing here knows a vendor, a database or a file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

Json = Mapping[str, Any]
"""One decoded JSON object; content blocks of the Messages API are such objects."""

Role = Literal["user", "assistant", "tool"]
MessageKind = Literal["chat", "quote", "summary", "command", "notice", "undone"]
"""chat: the model sees it, recall finds it. quote: the model sees it, recall does not (what recall and memory
tools returned). summary: what a session that was compressed leaves to the one that goes on, for the model only.
command: a slash command and its answer, kept, for nobody's eyes. notice: said to the person only. undone: hidden from
all until it is brought back."""
InboundKind = Literal["message", "edit", "delete", "action"]
Origin = Literal["typed", "pasted", "forwarded", "via_bot", "member", "tool", "service", "file", "imported", "job"]
"""Who said a text decides what becomes of it. Of messages typed, forwarded, via_bot (by a bot that the person called),
imported, tool (the task of a delegated session) and job (what a reminder or a scheduled question delivered, the
assistant's) are stored; which part of a typed one was pasted is read off its text (`core.guard.fence`); member is what
others in a room typed."""
CallKind = Literal["chat", "title", "summary", "compression", "expansion", "rerank", "facts", "delegation", "curator"]
"""What a model is asked for."""
Window = tuple[tuple[int, int, int], ...]
"""What the model's context holds, left out of recall: session id, first and last message id (inclusive), each."""
MEMORY = "<memory-context>"
"""How the block begins that memory adds to a message as sent; a text in which others wrote it is neutralised."""
EndReason = Literal["new", "compression", "idle", "daily", "branch", "resumed", "rights", "cron", "import", "length"]
"""length: what earlier versions call compression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a conversation takes place."""

    platform: str
    chat_id: str
    thread_id: str | None = None

    @property
    def key(self) -> str:
        """``"telegram:42"`` or, in a thread or topic, ``"telegram:42/7"``."""
        return f"{self.platform}:{self.chat_id}" + (f"/{self.thread_id}" if self.thread_id else "")

    @classmethod
    def parse(cls, key: str) -> Address:
        """The reverse of `key`. Raises ValueError."""
        platform, _, rest = key.partition(":")
        chat_id, _, thread_id = rest.partition("/")
        if not platform or not chat_id:
            raise ValueError(f"not an address: {key!r}; write platform:chat or platform:chat/thread")
        return cls(platform=platform, chat_id=chat_id, thread_id=thread_id or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One identity on one platform, by numeric id: names can be changed by anybody."""

    platform: str
    user_id: str

    @property
    def key(self) -> str:
        return f"{self.platform}:{self.user_id}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Scope:
    """Who may ever see what is said: one account, or one room. A room that has ceased to be the owner's own goes on in
    another generation: ``room:telegram:-5#2``."""

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

    def speaker(self, user_id: str) -> Account:
        """Who speaks here under this id, also by a schedule; in a direct chat it is whose the chat is."""
        _, _, rest = self.key.partition(":")
        platform, _, own_id = rest.partition(":")
        return Account(platform=platform, user_id=user_id if self.is_room else own_id)


Scopes = frozenset[Scope]
LOCAL = Scope.account("terminal", "local")
"""Whoever sits at the terminal, who is the owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """`is_nobody`: an anonymous admin, channel, webhook or bot; matches no person and no list."""

    id: str
    name: str
    is_nobody: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`name` without the slash, in lower case; `arguments` as typed after it, stripped."""

    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """`reference`: the platform's own id or address."""

    kind: str
    name: str
    mime: str | None = None
    size_bytes: int | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """What a message answers, the part of it that was picked out, or, of a forward, whose words it passes on (then
    `text` is empty). `name` is empty where the platform does not say; `is_ours`: the assistant's. `message_id`: of the
    row that it repeats; one with an empty text was forgotten."""

    kind: Literal["reply", "part", "forward"]
    text: str = ""
    name: str = ""
    user_id: str = ""
    at: datetime | None = None
    is_ours: bool = False
    message_id: int | None = None


@dataclass(frozen=True, slots=True)
class ErasureEpoch:
    """As of when words were read that work goes on with, in these `scopes` (`rows.scope_parameter`): a write that is
    given this is refused once something in them was erased since. See `core/store/epoch.py`."""

    scopes: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One platform event. The adapter decides the scope, since it alone knows the kind of chat.  kind edit: `text` is
    the new text of `message_id`; delete: it is empty; action (a pressed button): the id of a row in `actions`, and
    `message_id` is the press's own. `is_addressed`: in a room, whether the bot was mentioned, replied to or commanded.
    `is_interaction`: its reply expires (Discord). `group_id`: of an album. `link_base`: a link to a message when its id
    is appended. `origin` forwarded or via_bot: the words of others, which command and confirm nothing. `quoted`: as the
    platform tells it. `heading`: the line above the answer. `epoch`: of a text that was read from the store (a job's);
    not stored."""

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
    quoted: Quoted | None = None
    attachments: tuple[Attachment, ...] = ()
    is_interaction: bool = False
    origin: Origin = "typed"
    link_base: str | None = None
    group_id: str | None = None
    heading: str = ""
    epoch: ErasureEpoch | None = None

    @property
    def account(self) -> Account:
        """Who is talking."""
        return Account(platform=self.address.platform, user_id=self.sender.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """The router stores `command` in `actions` and fills in the row's `id`."""

    label: str
    command: Command
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str
    content: bytes
    mime: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`text` is Markdown. `confirm`: what runs when the person's next message is a yes, its arguments are ids, never
    words (`gateway/commands/registry.py`). `kept`: stored in place of a `text` that holds a secret. `has_erased`:
    something was erased for it, so it is kept although its turn had read that; it has no word of it."""

    text: str
    buttons: tuple[Button, ...] = ()
    files: tuple[File, ...] = ()
    is_private: bool = False
    confirm: Command | None = None
    kept: str | None = None
    has_erased: bool = False
    asks: Inbound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens. `input`: neither read from nor written to cache; `cache_write_hour`: the part of `cache_write` kept an
    hour."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_hour: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: count + getattr(other, name) for name, count in asdict(self).items()})

    @property
    def sent(self) -> int:
        """All input tokens, cached or not."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation at one address. `opens_at`: the parent's first message that the model still sees, besides the
    first exchange of the lineage, from `head_from` until `head_until`, both inclusive. `sight`: what
    could be seen since the prompt was written. `is_incognito`: it lives in memory only. `is_delegated`: the model talks
    to itself there, on behalf of its parent, whose lineage is another. `link_base`: see `Inbound`."""

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
    head_from: int | None = None
    head_until: int | None = None
    external_id: str | None = None
    last_at: datetime | None = None
    ended_at: datetime | None = None
    end_reason: EndReason | None = None
    messages: int = 0
    is_incognito: bool = False
    is_delegated: bool = False

    @property
    def is_remembered(self) -> bool:
        """Whether anything of it may be kept beside its messages: not of a scheduled or incognito one."""
        return self.address.platform != "cron" and not self.is_incognito


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One row. `blocks`: content blocks, None when they are one text block equal to `text`. `sent`: blocks of a user
    turn as sent. `tools`: tool calls in searchable form. `origin`: see `Inbound`."""

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
    quoted: Quoted | None = None
    tool_name: str | None = None
    tools: str | None = None
    usage: Usage | None = None

    @property
    def memory(self) -> tuple[Json, ...]:
        """The blocks of `sent` that memory added."""
        return tuple(block for block in self.sent or () if is_memory(block))


def is_memory(block: Json) -> bool:
    """Whether a block of a sent form is what memory added, and not the time line, a frame or the text."""
    return str(block.get("text", "")).startswith(MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """A tool sees `scopes` as of `epoch`, writes to `scope`, and leaves `window` out of recall."""

    session: Session
    scope: Scope
    scopes: frozenset[Scope]
    sender: Sender
    now: datetime
    message_id: int | None = None
    window: Window = ()
    epoch: ErasureEpoch | None = None

    @property
    def account(self) -> Account:
        """Who is talking."""
        return Account(platform=self.session.address.platform, user_id=self.sender.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`schema`: JSON schema of the arguments. `run` returns what the model reads, or raises ToolError or Refused.
    `is_quote`: the result repeats stored text and is not indexed. `is_reading`: writes and tells nothing, so it serves
    incognito. `is_outside`: a service may keep what it is asked, so it does not serve schedules. `patience_s`: its own,
    longer time limit."""

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
    """Who pays for a model call: a session, whose scope pays, or a scope; in a room also who asks there."""

    session_id: int | None = None
    scope: Scope | None = None
    user_id: str = ""


NOBODY = Payer()  # such a call is not logged


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One model call: text blocks, ``{"role", "content": [blocks]}`` and tool definitions, with ``cache_control`` marks
    placed. `kind` and `payer` are for the usage log. `turn`: the key of what it is made for; one that `is_trial` is not
    tried again."""

    system: tuple[Json, ...]
    messages: tuple[Json, ...]
    tools: tuple[Json, ...] = ()
    model: str = ""
    max_tokens: int = 8192
    kind: CallKind = "chat"
    payer: Payer = NOBODY
    turn: str = ""
    is_trial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """`blocks` exactly as answered, `text` joined, `stop_reason` as the Messages API names it."""

    blocks: tuple[Json, ...]
    text: str
    stop_reason: str
    model: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One argument of a command. `prefix`: what stands before its value in a typed line (``from:``); without a colon at
    its end (``--summary``) it is a switch, given when the value is "true". `has_suggestions`: while it is typed, it is
    asked what it may be."""

    name: str
    description: str
    is_required: bool = False
    choices: tuple[str, ...] = ()
    prefix: str = ""
    has_suggestions: bool = False

    @property
    def is_switch(self) -> bool:
        return bool(self.prefix) and not self.prefix.endswith(":")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """How a command is announced. Option values are joined by `joiner` to the line a person would type: switches, then
    those with a prefix, then the rest. `is_private`: for the caller's eyes only. `menu`: the entry of a message menu
    that calls it with the message's text, which is then `Inbound.reply_to`. `changes`: a pattern of the arguments with
    which it changes something; None: it never does."""

    name: str
    description: str
    options: tuple[Option, ...] = ()
    joiner: str = " "
    is_private: bool = False
    menu: str = ""
    changes: str | None = None
