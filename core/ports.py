"""The roles that can be filled by more than one class, each the size of a hand.

Floors above the core are reached through these only; `gateway/app.py` decides which class fills which role.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from core.records import Action, Entry, Job, Pairing, Parcel, RawUpdate
from core.store.query import Findings, Query
from core.types import (
    Account,
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


class Clock(Protocol):
    """The time, injected, so that tests need not wait for it."""

    def now(self) -> datetime:
        """The present as aware UTC."""


class Receipt(Protocol):
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

    def begin(self, receipt: Receipt) -> None:
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

    async def open(self) -> None:
        """Connects what is needed to send; raises ConfigError when the token is refused."""

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        """Takes events in until cancelled. Sending must go on working afterwards, until `close`."""

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        """A way to send to an address without an event beside it (reminders, answers after a restart)."""

    async def close(self) -> None:
        """Ends all connections."""


class Canvas(Protocol):
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
        """Ends a session and clears the sent forms of its messages."""

    async def reopen(self, session_id: int, at: datetime) -> Session:
        """Continues an ended session at its own address, with its stored prompt; the one open there ends."""

    async def find(self, session_id: int, scopes: frozenset[Scope]) -> Session | None:
        """A session by id; None when it does not exist or is not of these scopes, which is the same answer."""

    async def retitle(self, session_id: int, title: str) -> None:
        """Gives a session its title."""

    async def append(
        self, messages: Sequence[Message], closing: Sequence[int] = (), parcel: Parcel | None = None
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


class Transcripts(Protocol):
    """Sessions as people look at them: lists, texts, costs. Never writes."""

    async def recent(self, scopes: frozenset[Scope], limit: int, text: str | None = None) -> list[Session]:
        """The sessions that something was said in, latest first; with `text`, those that have it in their title or
        in their first message, whatever its case."""

    async def transcript(self, session_id: int, scopes: frozenset[Scope]) -> list[Message]:
        """All that was said in a session, oldest first; empty for one that is not theirs."""


class Recall(Protocol):
    """Search over all history. Every statement goes through the one scope predicate."""

    async def recall(self, query: Query) -> Findings:
        """Discovery, scroll or browse, by what the query carries. Never raises for anything a person can type."""

    async def tend(self) -> bool:
        """Rebuilds what is flagged stale and merges the indexes a small step; True while there is more to do."""


class Inbox(Protocol):
    """What was accepted and not yet answered."""

    def is_veiled(self, address: Address) -> bool:
        """Whether of what is said there nothing but the id is written down: the conversation is incognito."""

    async def keep_raw(self, updates: Sequence[RawUpdate]) -> None:
        """Stores updates as they came; those known already are left alone. Committed when it returns. Forgets those
        that failed 30 days ago."""

    async def raw(self, platform: str) -> list[RawUpdate]:
        """Updates kept and not yet dropped, in order, without those that failed."""

    async def drop_raw(self, platform: str, update_id: int) -> None:
        """The update was normalised and admitted (or is nothing for us)."""

    async def fail_raw(self, platform: str, update_id: int, error: str) -> None:
        """The update cannot be parsed: it stays, marked, and is not offered again."""

    async def accept(self, inbound: Inbound, received_at: datetime) -> int | None:
        """Writes an event down; None when (address, message id) is known, waiting or answered."""

    async def waiting(self) -> list[Entry]:
        """Entries without an answer, oldest first: what a restart has to go on with."""

    async def still(self, entry_ids: Sequence[int]) -> frozenset[int]:
        """Those of the entries that are to be answered, and were not closed or forgotten."""

    async def reword(self, entry: Entry) -> None:
        """What waits was edited on the platform: it is stored as it is now."""

    async def close(self, entry_ids: Sequence[int]) -> None:
        """The entries need nothing more."""


class Outbox(Protocol):
    """What must leave, once."""

    async def hold(self, parcel: Parcel) -> Parcel:
        """Makes the parcel, not yet due, unless its key exists; returns what is stored."""

    async def fill(self, key: str, answer: Answer, next_at: datetime | None) -> None:
        """Gives a held parcel its content; due at `next_at`, None: this process delivers it itself."""

    async def record(self, key: str, message_id: str) -> None:
        """One more platform message exists for the parcel."""

    async def due(self, now: datetime, platforms: Collection[str] | None = None, limit: int = 50) -> list[Parcel]:
        """Parcels to deliver now, oldest first, at most one for each address; None: on whatever platform."""

    async def next_at(self, platforms: Collection[str] | None = None) -> datetime | None:
        """When the earliest parcel for these platforms becomes due."""

    async def is_behind(self, key: str) -> bool:
        """Whether an older parcel with content has yet to leave for the same address."""

    async def done(self, key: str) -> None:
        """Delivered. The key stays, so that the same thing never leaves twice."""

    async def postpone(self, key: str, next_at: datetime, error: str) -> None:
        """Failed for now: counts the attempt."""

    async def bury(self, key: str, error: str) -> None:
        """Failed for good: kept for the owner to see, not tried again."""

    async def claim(self, key: str) -> None:
        """A live process delivers the parcel itself: not due any more until postponed."""

    async def counts(self) -> dict[str, int]:
        """How many are held, due and dead."""

    async def recover(self, now: datetime) -> None:
        """At the start of a process: what one before it had claimed is due again; answers that nothing works on any
        more are buried; delivered keys and updates that failed are kept 30 days."""


class People(Protocol):
    """Who is served, and what they may see."""

    async def set_owner(self, accounts: Sequence[Account], rooms: Sequence[Scope]) -> None:
        """Makes exactly these accounts (and the terminal) the owner's, and these rooms his own. From settings only."""

    async def is_owner(self, account: Account) -> bool:
        """Whether the account belongs to the owner."""

    async def is_admitted(self, account: Account) -> bool:
        """Whether the account was approved by pairing (settings are asked elsewhere)."""

    async def scopes(self, scope: Scope) -> frozenset[Scope]:
        """Everything that may be seen where `scope` is spoken: for an account, the scopes of its person's accounts; for
        a room, the room's; for a room the owner declared his own, and for the owner, the owner's whole set."""

    async def greet(self, account: Account, name: str) -> None:
        """Notes the account and its present name."""

    async def ask(self, account: Account, name: str, now: datetime) -> Pairing | None:
        """A pairing code for a stranger; None when one was given within the hour or too many are pending."""

    async def pending(self, now: datetime) -> list[Pairing]:
        """Requests that can still be approved."""

    async def approve(self, code: str, now: datetime, is_owner: bool = False) -> Pairing | None:
        """Admits the account behind a code; None when the code is wrong, used or expired. Raises Refused after too many
        wrong codes within the hour."""

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """The room's scope stays that of the old id."""

    async def room(self, scope: Scope) -> Scope:
        """The scope a room has kept through its moves."""


class Jobs(Protocol):
    """Reminders and cron sessions."""

    async def add(self, job: Job) -> Job:
        """Stores a job; one with the same origin is returned as it stands. Raises Refused when the scope is not the
        target's."""

    async def of(self, scopes: frozenset[Scope]) -> list[Job]:
        """Jobs of these scopes that have not ended, by next time."""

    async def find(self, job_id: int, scopes: frozenset[Scope]) -> Job | None:
        """A job by id, ended or not; None when it is not of these scopes."""

    async def behind(self, job_id: int) -> Job | None:
        """A job by id, whosever it is, ended or not: to run it and to deliver what it made, for nobody's eyes."""

    async def active(self) -> list[Job]:
        """All jobs that are neither paused nor ended: what the scheduler keeps time for."""

    async def pause(self, job_id: int, at: datetime) -> None:
        """Stops a job until `resume`."""

    async def resume(self, job_id: int, next_at: datetime | None) -> None:
        """Lets a paused job go on."""

    async def remove(self, job_id: int, at: datetime) -> None:
        """Ends a job; its row and runs stay as history."""

    async def start(self, job_id: int, due_at: datetime, now: datetime) -> bool:
        """Notes that the run due at this moment begins; False when it was finished already, or the job has ended.
        Raises Refused when the scope is no longer the target's."""

    async def finish(self, job_id: int, due_at: datetime, now: datetime, next_at: datetime | None) -> None:
        """The run was handed over for delivery; the job is next due at `next_at`, or has ended."""


class Actions(Protocol):
    """Buttons that survive a restart."""

    async def add(self, actions: Sequence[Action]) -> None:
        """Stores buttons; their ids are random and short."""

    async def find(self, action_id: str, now: datetime) -> Action | None:
        """The button behind an id, unless it has expired, or is a question, which is only ever taken."""

    async def take(self, address: Address, account: Account, taker: str, now: datetime) -> Sequence[Action]:
        """The questions that wait for this account here, the latest first, which wait for nothing else from then on;
        the same `taker` (a message, a press) gets them again, after a crash."""
