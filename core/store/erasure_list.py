"""What one erasure takes, as lists of ids that can be kept while it is asked about and worked off. No words."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Literal

from core.types import Account, Address, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequest:
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
class ErasureItem:
    """One thing that is to be erased, for the person to look at. `kind`: message, fact, note or job."""

    kind: Literal["message", "fact", "note", "job"]
    text: str
    at: datetime
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """What was found to erase, under the `token` that a yes carries. `counts`: how many of what, most telling first;
    `first`: the beginning of it. `derived`: answers, copies and the like that go along. `has_more`: so much was found
    that some was left for another time."""

    token: str
    counts: tuple[tuple[str, int], ...]
    first: tuple[ErasureItem, ...]
    derived: int = 0
    has_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReceipt:
    """What was erased. `is_clean`: not a byte of it is left in state.db and its log; otherwise somebody reads an older
    state, and it goes when he is done. `pending`: sentences about what others still have."""

    counts: tuple[tuple[str, int], ...]
    derived: int
    is_clean: bool
    pending: tuple[str, ...] = ()


@dataclass(kw_only=True)
class ErasureList:
    """Ids by kind. `messages`: those that were looked for; `repeats`: rows of the conversation that repeat them;
    `waiting`: what has come in and is not answered yet (address, external id), `unread` of it not a message yet;
    `asked`: the command that asked for it, and its answer; `fences`: rows whose sent form repeats it; `titles` and
    `prompts`: sessions; `sources` and `names`: sessions and messages whose name in another system says it; `entries`:
    digests of notes, of which `notes` stand in the files now; `typed`: digests of lines of the terminal's history;
    `upto`: the last message there was, so that the very question can be erased too; `where` it was asked (a scope), and
    whether by the owner."""

    scopes: list[str] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)
    fences: list[int] = field(default_factory=list)
    titles: list[int] = field(default_factory=list)
    prompts: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    names: list[int] = field(default_factory=list)
    touched: list[int] = field(default_factory=list)
    facts: list[int] = field(default_factory=list)
    fact_changes: list[int] = field(default_factory=list)
    note_changes: list[int] = field(default_factory=list)
    pending_notes: list[int] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)
    parcels: list[int] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    updates: list[int] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    notes: int = 0
    unread: int = 0
    upto: int = 0
    where: str = ""
    is_owner: bool = False

    def dump(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, encoded: str) -> ErasureList:
        """The reverse of `dump`."""
        return cls(**json.loads(encoded))

    def widen(self, later: ErasureList) -> None:
        """Takes along what was made of it since: all that another list of the same messages has besides."""
        for kind in (*_COPIES, "sources", "names", "touched", "entries", "facts", "jobs"):
            known = getattr(self, kind)
            known.extend(sorted(set(getattr(later, kind)).difference(known)))

    @property
    def is_limited(self) -> bool:
        """Whether it takes what one member of a room has said, and nothing of the others."""
        return self.where.startswith("room:") and not self.is_owner

    @property
    def derived(self) -> int:
        """How many rows only repeat or copy what goes."""
        return sum(len(getattr(self, kind)) for kind in _COPIES)

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """How many of what a person knows by name; nothing of what there is none."""
        numbers = {
            "message": len(self.messages) + self.unread,
            "fact": len(self.facts),
            "note": self.notes,
            "job": len(self.jobs),
        }
        return tuple((name, number) for name, number in numbers.items() if number)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to erase."""
        return not (self.counts or self.derived)


_COPIES = (
    "repeats", "fences", "titles", "prompts", "fact_changes", "note_changes", "pending_notes",
    "parcels", "actions", "updates", "typed",
)  # fmt: skip
