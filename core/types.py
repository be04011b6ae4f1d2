"""Defines the data classes of all layers. All except `TurnBudget` are immutable.

Times are aware UTC datetimes. Ids of rows in state.db are integers, and ids of a platform are
strings. This module depends on no platform, model or database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from itertools import groupby
from typing import Any, Literal

Json = Mapping[str, Any]
"""A decoded JSON object, such as a content block of the Messages API."""

Role = Literal["user", "assistant", "tool"]

MessageKind = Literal[
    # Sent to the model and found by recall.
    "chat",
    # Sent to the model, but not found by recall: a result of recall or of a memory tool.
    "quote",
    # Sent to the model, but not found by recall: replaces the earlier part of a session.
    "summary",
    # A slash command and its answer: neither sent to the model nor found by recall.
    "command",
    # Shown to the person only.
    "notice",
    # Undone by /undo: hidden everywhere until it's restored.
    "undone",
]

# A person added the bot to a group.
InboundKind = Literal["message", "edit", "delete", "action", "reaction", "arrival"]

Origin = Literal[
    # Written by the sender, but parts may be pasted; see `core.guard.origin_and_fence`.
    "typed",
    "pasted",
    "forwarded",
    # Said by the sender in a voice note, and transcribed.
    "spoken",
    # Written by a bot that the sender called.
    "via_bot",
    # Typed by another member of a group.
    "member",
    # A tool's result. On a stored message: the task of a delegated session.
    "tool",
    # Returned by an external memory service.
    "service",
    "file",
    "imported",
    # Delivered by a reminder or a scheduled question, in the assistant's name.
    "job",
]
"""Where a text comes from. The origin decides, for example, whether "yes" confirms a question.

Stored messages have only these origins: typed, spoken, forwarded, via_bot, imported, tool and job.
"""

CallKind = Literal[
    "chat",
    "title",
    "summary",
    "compression",
    "expansion",
    "rerank",
    "deep",
    "facts",
    "delegation",
    "curator",
    "evidence",
    "review",
    "search",
    "page",
]
"""The purpose of a model call."""

# A span is (session id, first message id, last message id), both ends inclusive.
Window = tuple[tuple[int, int, int], ...]
"""The spans of messages in the model's context, which recall leaves out."""

MEMORY_TAG = "<memory-context>"
"""Opens a block that memory adds to a sent message. It's neutralized in all other text."""

EndReason = Literal[
    "new",
    "compression",
    "idle",
    "daily",
    "branch",
    "resumed",
    "rights",
    "cron",
    "import",
    "tools",  # The tools of the model have changed since the session started.
    "length",  # Earlier versions wrote this for "compression".
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The place of a conversation: a chat, or a thread or topic in it."""

    platform: str
    chat_id: str
    thread_id: str | None = None

    @property
    def key(self) -> str:
        """The address as text: ``"telegram:42"``, or ``"telegram:42/7"`` in a thread or topic."""
        key = f"{self.platform}:{self.chat_id}"
        return f"{key}/{self.thread_id}" if self.thread_id else key

    @classmethod
    def parse(cls, key: str) -> Address:
        """Return the address with this `key`. Raises ValueError if the key is invalid."""
        platform, _, chat_and_thread = key.partition(":")
        chat_id, _, thread_id = chat_and_thread.partition("/")
        if not platform or not chat_id:
            raise ValueError(
                f"not an address: {key!r}; write platform:chat or platform:chat/thread"
            )
        return cls(platform=platform, chat_id=chat_id, thread_id=thread_id or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user on one platform. The platform's id identifies the user, because names can change."""

    platform: str
    user_id: str

    @property
    def key(self) -> str:
        """The account as text: ``"telegram:42"``."""
        return f"{self.platform}:{self.user_id}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Scope:
    """The account or group that owns a row and may see it.

    When a group stops being the owner's own, it gets a new scope with the next generation number:
    ``room:telegram:-5#2``.
    """

    key: str

    @classmethod
    def account(cls, platform: str, user_id: str) -> Scope:
        """Return the scope of a direct chat: ``account:telegram:42``."""
        return cls(key=f"account:{platform}:{user_id}")

    @classmethod
    def group(cls, platform: str, chat_id: str) -> Scope:
        """Return the scope of a group or channel: ``room:telegram:-5``."""
        return cls(key=f"room:{platform}:{chat_id}")

    @property
    def is_group(self) -> bool:
        return self.key.startswith("room:")

    def speaker(self, user_id: str) -> Account:
        """Return the account of the user `user_id` in this scope.

        In a direct chat, this is always the account that owns the chat.
        """
        _, _, scope_id = self.key.partition(":")
        platform, _, own_id = scope_id.partition(":")
        return Account(platform=platform, user_id=user_id if self.is_group else own_id)


Scopes = frozenset[Scope]

LOCAL_SCOPE = Scope.account("terminal", "local")
"""The scope of the terminal, whose user is always the owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The person or bot that sent a message."""

    id: str
    name: str
    # An anonymous admin, a channel, a webhook or a bot. It never matches a person or access list.
    is_anonymous: bool = False
    # The ids of the sender's roles in the server, on platforms that have them.
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A slash command."""

    # Lower case, without the slash.
    name: str
    # The text after the name, stripped.
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that came with a message."""

    kind: str
    name: str
    mime: str | None = None
    size_bytes: int | None = None
    # The platform's id or URL of the file.
    reference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The message that another message replies to or forwards."""

    # "part" means that the sender selected a part of the message that they reply to.
    kind: Literal["reply", "part", "forward"]
    # Empty for a forward, and for a message that was erased.
    text: str = ""
    # Empty if the platform doesn't report the author.
    name: str = ""
    user_id: str = ""
    at: datetime | None = None
    # Written by the assistant.
    is_ours: bool = False
    # The id of the quoted message in the store, if the message is stored.
    message_id: int | None = None


@dataclass(frozen=True, slots=True)
class ToolCallKey:
    """Identifies one tool call of a model."""

    session_id: int
    # The id of the ``tool_use`` block.
    call_id: str


@dataclass(frozen=True, slots=True)
class ErasureEpoch:
    """Marks when data was read, so that a later write can be refused if data was erased meanwhile.

    A write that passes an epoch fails if anything in its scopes was erased after the epoch. See
    `check_epoch` in `core/store/visibility.py`.
    """

    # The value of `visibility.scope_parameter`.
    scopes: str
    number: int
    # The tool call that the writes carry out, and record (see `core/store/tool_calls.py`).
    call: ToolCallKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """An event of a platform, such as a message or a button press, in a common form."""

    kind: InboundKind
    address: Address
    # Set by the adapter, because only the adapter knows the kind of chat.
    scope: Scope
    sender: Sender
    # An edit has the new text; an action, an id of `actions`; a reaction, "up", "down" or "".
    text: str
    # The id of the message; for an action, of the button press; else of the message it is about.
    message_id: str
    sent_at: datetime
    is_direct: bool
    # False for a group message that doesn't mention the bot, reply to it or give a command.
    is_addressed: bool = True
    # The text mentions the bot.
    is_mention: bool = False
    # The id of the server that a channel belongs to, on platforms that have servers.
    server_id: str = ""
    # The message is in the topic "General" of a Telegram forum, which has no thread id.
    is_in_general: bool = False
    command: Command | None = None
    reply_to: str | None = None
    # As reported by the platform.
    quote: Quote | None = None
    attachments: tuple[Attachment, ...] = ()
    # Files of the group message that it replies to. A question takes them as its `attachments`.
    replied_files: tuple[Attachment, ...] = ()
    # A Discord interaction. Its reply expires.
    is_interaction: bool = False
    # Which messages the platform passes on from where the person used a command or a button.
    heard_replies: Literal["all", "mentions", "replies", "none"] = "all"
    # Forwarded text and text from a bot can't run a command or confirm anything.
    origin: Origin = "typed"
    # The link to a message is this URL followed by the message's id.
    link_base: str | None = None
    group_id: str | None = None  # of the album that the message belongs to
    heading: str = ""  # a line that is shown above the answer
    # The text that was typed into the form of a button. Only for an action.
    form_text: str = ""
    # A code such as "de": first as the platform reports it, then the language of the answer.
    language: str = ""
    # Set if the text was read from the store, like the text of a job. The epoch isn't stored.
    epoch: ErasureEpoch | None = None

    @property
    def account(self) -> Account:
        """The sender's account."""
        return Account(platform=self.address.platform, user_id=self.sender.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button below an answer."""

    label: str
    # Stored in `actions` before the answer is sent.
    command: Command
    # The row in `actions`, filled in when it is stored.
    id: str = ""
    # On some platforms, a press opens a form for text that follows the command's line. Elsewhere,
    # the command is run without the text and explains what to type.
    form: Form | None = None
    # The title of the list that the button belongs to. A platform may show the buttons of one list
    # as a menu to open, each with its `details`.
    menu: str = ""
    details: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form with one field, which opens when its button is pressed."""

    title: str
    # Without a form, the button would be of little use, so other platforms leave it out.
    is_needed: bool = False
    # What the field contains at first, such as the text to change.
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that is sent with an answer."""

    name: str
    content: bytes
    mime: str = "application/octet-stream"
    # Sent as a file without changes, because platforms reduce the quality of pictures.
    is_document: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to an inbound event."""

    # Markdown.
    text: str
    buttons: tuple[Button, ...] = ()
    files: tuple[File, ...] = ()
    # Visible only to the person who asked.
    is_private: bool = False
    # The parts of the text. A platform may show each as a card, below `cards_title`.
    cards: tuple[str, ...] = ()
    cards_title: str = ""
    # One of several pages. A platform may show it in place of the page whose button was pressed.
    is_page: bool = False
    # This command runs if the person's next message is "yes". Its arguments are ids, never words;
    # see `gateway/commands/registry.py`.
    confirm_command: Command | None = None
    # Stored in place of a `text` that contains a secret.
    stored_text: str | None = None
    # The command erased data. Its answer doesn't repeat the erased text, so the answer may be
    # stored although the text was read before the erasure.
    has_erased_data: bool = False
    # If set, this question is asked again, and the answer isn't sent. /retry uses it.
    asks_again: Inbound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The token counts of one or more model calls, and the web searches that their server made."""

    # Input tokens that were neither read from the cache nor written to it.
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    # The part of `cache_write` that is cached for an hour.
    cache_write_hour: int = 0
    web_searches: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            cache_write_hour=self.cache_write_hour + other.cache_write_hour,
            web_searches=self.web_searches + other.web_searches,
        )

    @property
    def total_input(self) -> int:
        """All input tokens, whether cached or not."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryOver:
    """The ids of messages from earlier sessions that are part of a session's history."""

    # The history includes the parent's messages from this one on. None for no messages.
    parent_from: int | None = None
    # The first exchange of the lineage, which stays in a compression. Both ids are inclusive.
    head_from: int | None = None
    head_until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPrompt:
    """The system prompt of a session. It's empty until the first turn writes it."""

    text: str = ""
    # The scopes whose text the prompt and the recalled memory of the session may contain.
    visible_scopes: frozenset[Scope] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """When and why a session ended."""

    at: datetime
    reason: EndReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation at one address, with a system prompt that doesn't change."""

    id: int = 0
    address: Address
    scope: Scope
    started_at: datetime
    # See `Inbound`.
    link_base: str | None = None
    prompt: SessionPrompt = SessionPrompt()
    model: str = ""
    title: str | None = None
    # The session that this one continues, branches off from, or works for.
    parent_id: int | None = None
    # The first session of the lineage.
    root_id: int | None = None
    carry_over: CarryOver = CarryOver()
    # The id of an imported session in the system that it comes from.
    external_id: str | None = None
    last_at: datetime | None = None
    # None while the session is open.
    end: SessionEnd | None = None
    # The number of chat messages.
    messages: int = 0
    # An incognito session exists in memory only.
    is_incognito: bool = False
    # A task of the parent session, in a lineage of its own, on which the model works alone.
    is_delegated: bool = False

    @property
    def is_remembered(self) -> bool:
        """Whether facts and notes are learned: not in scheduled and incognito sessions."""
        return self.address.platform != "cron" and not self.is_incognito


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a session, as a row of state.db."""

    role: Role
    text: str
    session_id: int
    created_at: datetime
    id: int = 0
    kind: MessageKind = "chat"
    # Content blocks of the Messages API. None stands for a single text block equal to `text`.
    blocks: tuple[Json, ...] | None = None
    # The exact blocks that are sent to the model for a person's message.
    sent_blocks: tuple[Json, ...] | None = None
    external_id: str | None = None
    sender: Sender | None = None
    origin: Origin = "typed"
    quote: Quote | None = None
    tool_name: str | None = None
    # Tool calls as searchable text.
    tools: str | None = None
    usage: Usage | None = None

    @property
    def sender_name(self) -> str:
        """The display name of the sender, or "" if it's unknown."""
        return self.sender.name if self.sender is not None else ""

    @property
    def memory_blocks(self) -> tuple[Json, ...]:
        """The blocks of `sent_blocks` with recalled memory."""
        return tuple(block for block in self.sent_blocks or () if is_memory_block(block))


def is_memory_block(block: Json) -> bool:
    """Return whether a block of a sent message contains recalled memory."""
    return str(block.get("text", "")).startswith(MEMORY_TAG)


def join_text(blocks: Sequence[Json]) -> str:
    """Return the text of the blocks, with a paragraph break where other blocks are in between."""
    groups = groupby(blocks, lambda block: block["type"] == "text")
    texts = ["".join(block["text"] for block in group) for is_text, group in groups if is_text]
    return "\n\n".join(text for text in texts if text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The session, the person and the message for which a tool runs."""

    session: Session
    # The tool writes to `scope`, and may read `scopes`, as of `epoch`.
    scope: Scope
    scopes: frozenset[Scope]
    sender: Sender
    now: datetime
    message_id: int | None = None
    # Recall leaves these messages out, because they are already in the model's context.
    window: Window = ()
    epoch: ErasureEpoch | None = None
    # Set by `core/review/gate.py`: a clause that says why the call waits for approval, and a noun
    # phrase for the text by others in every request. Both may be empty.
    hold_reason: str = ""
    foreign_source: str = ""
    # The budget of the turn to which the call belongs. None outside of a model's turn.
    budget: TurnBudget | None = None
    # Shows a sentence below the answer so far, in this language. None if no one waits for it.
    show_status: Callable[[str], None] | None = None
    language: str = ""
    zone: str = ""  # The person's, as an IANA name. "" means the zone in settings.

    @property
    def account(self) -> Account:
        """The sender's account."""
        return Account(platform=self.session.address.platform, user_id=self.sender.id)

    @property
    def asker(self) -> Account:
        """The account of the person for whom a tool runs, or the author of a scheduled question."""
        is_scheduled = self.session.address.platform == "cron"
        return self.scope.speaker(self.sender.id) if is_scheduled else self.account


class Effect(Enum):
    """The kind of change that a tool call makes. The approval gate decides by it."""

    # Shows data that is stored here or in a memory service that the owner chose.
    READ = "read"
    ADD = "add"
    CHANGE = "change"
    # Lowers trust, unpins, pauses or disables something.
    WEAKEN = "weaken"
    REMOVE = "remove"
    # Sets or resumes a job.
    PLAN = "plan"
    # Costs money: model calls and paid tools.
    SPEND = "spend"
    # Sends something to others: a message, a file, a link or a search query.
    SEND = "send"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A stored item that a tool call changes, such as a note or a reminder."""

    # A noun phrase for the item: "reminder 4", "the note", "fact 7", "the skill".
    label: str
    text: str
    # The digits of the number by which a person may name the item, or "".
    number: str = ""
    is_pinned: bool = False
    # The kind of the item: "reminder", "memory" (a note or a fact) or "skill".
    kind: str = ""
    # The texts of the other items of its kind that the person can see.
    others: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the model can call."""

    name: str
    description: str
    # The JSON schema of the arguments.
    schema: Json
    # The effect of each action, by the value of the argument `action_argument`. A tool without
    # actions has one effect, under the key "". A tool without effects can't be registered.
    effects: Mapping[str, Effect] = field(default_factory=dict)
    # The argument that names the action. It may also be an argument of the items of a list.
    action_argument: str = "action"
    # The argument that contains the arguments of another tool, if the tool calls others.
    inner_argument: str = ""
    # Returns the text for the model, or raises ToolError or Refused.
    run: Callable[[Json, ToolContext], Awaitable[str]]
    # The result repeats stored text, so it isn't indexed.
    is_quote: bool = False
    # The tool stores nothing and sends no data to others, so an incognito session may use it.
    is_read_only: bool = False
    # An external service may store the arguments. Incognito and scheduled sessions can't use it.
    is_external: bool = False
    # Scheduled sessions may still use the tool, to read and to look things up.
    is_schedulable: bool = False
    # The tool looks something up outside: its arguments are an address or search words.
    is_lookup: bool = False
    # The model has the tool only in groups of this platform. Empty: everywhere.
    group_platform: str = ""
    timeout_s: float = 0.0  # Used instead of the general timeout if it's longer.
    # Returns the stored items that a call changes. None if the tool can't tell.
    find_subjects: Callable[[Json, ToolContext], Awaitable[Sequence[Subject]]] | None = None
    # The tool counts the model calls that it makes against the budget of the turn. Each call of
    # another tool with the effect `SPEND` counts as one model call.
    counts_own_calls: bool = False
    # The tool itself asks the person if `ToolContext.hold_reason` is set. The gate stores calls of
    # other tools, and they run after the person has approved them.
    can_hold: bool = False


@dataclass(slots=True, kw_only=True)
class TurnBudget:
    """The model calls and tokens that all tools and tasks of one turn may use together."""

    max_calls: int
    max_tokens: int
    # The model calls that the tools make, and the calls of tools that cost money.
    calls: int = 0
    tokens: int = 0

    def has_calls_left(self, calls: int = 1) -> bool:
        """Return whether the turn may still make this many calls."""
        return self.calls + calls <= self.max_calls and self.tokens < self.max_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingScope:
    """The scope and the person that a model call is charged to.

    If `scope` is None, the session's scope is charged. In a group, `user_id` is the asking member.
    """

    session_id: int | None = None
    # The first session of the lineage. None if this is the first one, or if that is unknown.
    root_id: int | None = None
    scope: Scope | None = None
    user_id: str = ""
    # The budget of the turn whose tool makes the call.
    budget: TurnBudget | None = field(default=None, compare=False)


UNBILLED = BillingScope()  # Calls for this scope aren't logged.


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A model call in the form of the Messages API, including its ``cache_control`` marks."""

    # Text blocks.
    system: tuple[Json, ...]
    # ``{"role": ..., "content": [blocks]}``.
    messages: tuple[Json, ...]
    # Tool definitions.
    tools: tuple[Json, ...] = ()
    model: str = ""
    max_tokens: int = 8192
    # How much the model thinks: a level such as "high", or a number of tokens. "": its default.
    effort: str | int = ""
    # For the usage log.
    kind: CallKind = "chat"
    billing: BillingScope = UNBILLED
    turn_key: str = ""  # The key of the turn that the call belongs to.
    is_single_attempt: bool = False  # A failed call isn't retried.
    has_pictures: bool | None = None  # Whether `messages` have any. None if that isn't known.
    # Whether the last resort, which is no model, may answer if all models fail.
    has_fallback: bool = True
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The result of a model call."""

    # Exactly as the model returned them.
    blocks: tuple[Json, ...]
    # The text blocks, joined.
    text: str
    # A stop reason of the Messages API, such as "end_turn" or "tool_use".
    stop_reason: str
    model: str
    usage: Usage = Usage()
