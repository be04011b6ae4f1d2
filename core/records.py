"""What waits in state.db besides the conversation: inbox, outbox, buttons, pairings, jobs, note versions.

Frozen values like those of `types.py`; times are aware UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from core.types import Account, Address, Answer, CallKind, Command, EndReason, Inbound, Payer, Scope, Usage

Cause = Literal[
    "first",
    "length",
    "rights",
    "resumed",
    "forget",
    "edit",
    "model",
    "system",
    "tools",
    "messages",
    "idle",
    "evicted",
]
"""Why a request was not read from the cache as far as it might have been."""
ParcelKind = Literal["answer", "reminder", "notice", "memory"]
FactKind = Literal["identity", "project", "episode", "working"]
"""identity: who somebody is and what they prefer. working: what matters for some days only."""
FactOrigin = Literal["person", "rule", "model"]
"""person: they asked for it to be remembered. rule, model: what took it out of their words."""
Grain = Literal["day", "month", "year"]
"""How exactly a moment is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of the inbox: an accepted event that has not been answered yet."""

    id: int
    inbound: Inbound
    received_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RawUpdate:
    """An update exactly as the platform sent it, kept until it was normalised."""

    platform: str
    update_id: int
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A row of the outbox: something that must leave reliably, once. `key` is unique for ever.

    answer None: a turn is still working on it. `posted`: ids of the platform messages already made for it, in order.
    next_at None: held by a live turn, not due. is_over: delivered or buried, nothing more leaves for this key.
    """

    key: str
    kind: ParcelKind
    address: Address
    answer: Answer | None = None
    posted: tuple[str, ...] = ()
    reply_to: str | None = None
    attempts: int = 0
    next_at: datetime | None = None
    is_over: bool = False
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A button as a row: pressing it runs `command` as its person, in its scope, until it expires. With an `address` it
    is a question that waits for the person's yes there: it is taken once, by a press or by the next message. One that
    leaves in a `parcel` of that key waits only from when it has arrived. One that `takes_words` waits for a sentence
    instead, which is put behind the command's arguments. `origin` names the event that it was asked for: asked again,
    after a crash or since the work was begun anew, it takes the place of the first one."""

    id: str
    scope: Scope
    account: Account | None
    command: Command
    expires_at: datetime
    address: Address | None = None
    parcel: str | None = None
    takes_words: bool = False
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A stranger's request to be admitted. The owner approves `code` after seeing platform, name and id."""

    code: str
    account: Account
    name: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a job is due. Exactly one of: `cron` (five fields, wall time in `zone`), `every_s` seconds counted from
    `start_at`, or one moment `at`. `zone` is an IANA name."""

    zone: str
    cron: str | None = None
    every_s: int | None = None
    start_at: datetime | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A reminder (`is_prompt` False: `text` is delivered as it stands) or a cron session (`text` is asked of the agent
    and the answer delivered). `scope` must equal the scope of `target` at creation and at run. `origin` is unique, so
    that a command handled twice makes one job."""

    schedule: Schedule
    text: str
    target: Address
    scope: Scope
    created_at: datetime
    is_prompt: bool = False
    account: Account | None = None
    origin: str | None = None
    next_at: datetime | None = None
    paused_at: datetime | None = None
    ended_at: datetime | None = None
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteChange:
    """One version of a curated note file: who changed what, from which message. `target`: memory or user. `action`:
    add, replace, remove, edited (by hand), approve (what stands in the file by hand), or undo of the change `undoes`.
    `message_id`: of the conversation; `address` and `external_id`: of a command, as its platform has it. `is_insisted`:
    it reads like an order, and a person who may decide that has kept it all the same."""

    scope: Scope
    target: str
    action: str
    before: str | None
    after: str | None
    at: datetime
    account: Account | None = None
    message_id: int | None = None
    address: Address | None = None
    external_id: str | None = None
    undoes: int | None = None
    is_insisted: bool = False
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who changes a note, and with which message (see `NoteChange`). `is_typed`: by his own hand, where he may decide
    what is kept; what reads like an order is then asked about, or kept when `is_insisting`, and put aside otherwise."""

    account: Account | None = None
    message_id: int | None = None
    address: Address | None = None
    external_id: str | None = None
    is_typed: bool = False
    is_insisting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What became of the lines or messages of an import. `known`: they were here already. `reasons`: the first of the
    `refused` lines, as ``line 7: reason``. `skipped`: what was left out on purpose, as (what it is, how many), most
    first. `broken`: why the file could not be read to its end; what came before is taken. `scopes`: whose the messages
    of the file are, taken now or known, as (scope's key, how many), most first."""

    lines: int = 0
    taken: int = 0
    known: int = 0
    refused: int = 0
    sessions: int = 0
    reasons: tuple[str, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    broken: str | None = None
    scopes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something in a file to import that is not taken. With `line`, a line that is refused, `reason` says why; without,
    `reason` names what it is, in the plural, from a fixed set: they are counted."""

    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that a person has said to be so. `attribute` names what can have one value only, such as ``me|home``,
    `value` its folded value; None where several are true side by side. `trust` is from 0 to 1, `said` how often they
    said it. It holds from `valid_from` (known to the `grain`; None: it was not said) until before `valid_to`;
    `closed_at`: since when it is known not to hold any more, `closed_by` by which fact. `account` and `speaker`: who
    said it; `message_id`: where they said it last."""

    scope: Scope
    content: str
    kind: FactKind
    origin: FactOrigin
    created_at: datetime
    trust: float = 0.6
    attribute: str | None = None
    value: str = ""
    entities: tuple[str, ...] = ()
    said: int = 1
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    grain: Grain = "day"
    last_at: datetime | None = None
    closed_at: datetime | None = None
    closed_by: int | None = None
    message_id: int | None = None
    account: Account | None = None
    speaker: str = ""
    is_pinned: bool = False
    id: int = 0

    @property
    def is_open(self) -> bool:
        """Whether nothing is known against it."""
        return self.closed_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """One step in the life of a fact. `action`: learn, repeat, close, correct, pin, unpin, trust, merge, flag, undo.
    `before` and `after` are its content then; None: it was not there."""

    fact_id: int
    scope: Scope
    action: str
    before: str | None
    after: str | None
    at: datetime
    reason: str = ""
    account: Account | None = None
    message_id: int | None = None
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Who wants something to be forgotten: `scopes` is all he sees, `scope` and `address` where he asks."""

    account: Account
    scope: Scope
    scopes: frozenset[Scope]
    address: Address
    is_owner: bool

    @property
    def is_limited(self) -> bool:
        """Whether only his own words are his to erase: in a room, unless he is the owner."""
        return self.scope.is_room and not self.is_owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One thing that is to be erased, for the person to look at. `kind`: message, fact, note or job."""

    kind: Literal["message", "fact", "note", "job"]
    text: str
    at: datetime
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What was found to erase, under the `token` that a yes carries. `counts`: how many of what, most telling first;
    `first`: the beginning of it. `derived`: answers, copies and the like that go along. `has_more`: so much was found
    that some was left for another time."""

    token: str
    counts: tuple[tuple[str, int], ...]
    first: tuple[Trace, ...]
    derived: int = 0
    has_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was erased. `is_clean`: not a byte of it is left in state.db and its log; otherwise somebody reads an older
    state, and it goes when he is done. `pending`: sentences about what others still have."""

    counts: tuple[tuple[str, int], ...]
    derived: int
    is_clean: bool
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One model call that was paid for. `missed` counts the tokens that might have been read from the cache and were
    not, for the cause `miss`. `reply_id` is the server's name for the answer, `imprint` what the request was like."""

    kind: CallKind
    model: str
    usage: Usage
    at: datetime
    payer: Payer
    miss: Cause | None = None
    missed: int = 0
    reply_id: str | None = None
    imprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedent:
    """What came before a call of a session: its last one, what has happened to its prefix since (`disturbance`), and
    how it had come to be: why the session ended that it took the place of (`origin`)."""

    call: Call | None = None
    disturbance: Cause | None = None
    origin: EndReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Calls of one kind and model, added up."""

    kind: CallKind
    model: str
    calls: int
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """How often a prefix was not in the cache for one cause, and the tokens that had to be sent anew."""

    cause: Cause
    times: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """An account and the name it goes by."""

    account: Account
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two accounts that are about to be one person: `offered` asked for the code, `claimed` has typed it; each with
    all its accounts, itself first. `address`: where the first can be told. `token`: what a yes names it by, shown to
    nobody. `is_joined`: both have said yes."""

    id: int
    token: str
    offered: tuple[Named, ...]
    claimed: tuple[Named, ...]
    address: Address
    scope: Scope
    claimed_address: Address
    is_joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What some calls came to. `cost` is None where no call has a price, `plain_cost` what it would have been without
    a cache; both leave out the `unpriced` models. `kinds` counts the calls of each kind."""

    usage: Usage
    cost: float | None
    plain_cost: float | None
    kinds: tuple[tuple[CallKind, int], ...] = ()
    unpriced: tuple[str, ...] = ()
    bills: tuple[Bill, ...] = ()
    misses: tuple[Miss, ...] = ()

    @property
    def calls(self) -> int:
        """How many there were."""
        return sum(count for _, count in self.kinds)

    @property
    def cached(self) -> float:
        """Which part of the input was read from the cache, 0 to 1."""
        return self.usage.cache_read / self.usage.sent if self.usage.sent else 0.0
