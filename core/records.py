"""What waits in state.db besides the conversation: inbox, outbox, buttons, pairings, jobs, note versions.

Frozen values like those of `types.py`; times are aware UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from core.types import Account, Address, Answer, Command, Inbound, Scope

ParcelKind = Literal["answer", "reminder", "notice"]


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
    """A button as a row: pressing it runs `command` as its person, in its scope, until it expires."""

    id: str
    scope: Scope
    account: Account | None
    command: Command
    expires_at: datetime


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
    """One version of a curated note file: who changed what, from which message. `target`: memory or user."""

    scope: Scope
    target: str
    action: str
    before: str | None
    after: str | None
    at: datetime
    account: Account | None = None
    message_id: int | None = None
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who changes a note, and with which message."""

    account: Account | None = None
    message_id: int | None = None


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
