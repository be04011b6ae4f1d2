"""What a parcel to a memory says: which hook of whom, about what. All of it are ids; words are in none.

How much of what was said before a memory service was there it has still to be told.
What lies in the outbox for one memory service.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from core.types import Address, Scope

PLATFORM = "memory"
NOTES = "notes"
Hook = Literal["sync_turn", "on_session_end", "on_session_switch", "on_memory_write", "on_forget"]
HOOKS: tuple[Hook, ...] = ("sync_turn", "on_session_end", "on_session_switch", "on_memory_write", "on_forget")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """`session`: a session id, or ``notes``. `turn`: what it is about, by hook: the first messages of the first and
    last turn, ``12-18``, or ``12-18.3f09`` when they are told anew; the last message of a session; its parent, the
    reason and when, ``7.length.1790000000``; a change of notes; ``forgotten.3f09``. `scope` and `ids`, of on_forget
    only, are inside the parcel: whose the messages or changes of notes were that are to be forgotten."""

    provider: str
    session: str
    turn: str
    hook: Hook
    scope: Scope | None = None
    ids: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """Unique for ever."""
        return f"{PLATFORM}:{self.provider}:{self.session}:{self.turn}:{self.hook}"

    @property
    def address(self) -> Address:
        """Its lane in the outbox: what concerns one session keeps its order."""
        return Address(platform=PLATFORM, chat_id=self.provider, thread_id=self.session)

    @property
    def turns(self) -> tuple[int, int]:
        """Of sync_turn: the first messages of the first and last turn."""
        first, _, last = self.turn.partition(".")[0].partition("-")
        return int(first), int(last)

    @property
    def is_anew(self) -> bool:
        """Of sync_turn: whether it was told already, together with something that was to be forgotten."""
        return "." in self.turn

    @property
    def burden(self) -> str:
        """What is inside the parcel."""
        return json.dumps([self.scope.key, *self.ids]) if self.scope else ""

    @classmethod
    def parse(cls, key: str, burden: str = "") -> Errand | None:
        """The reverse of `key` and `burden`; None for what is no errand."""
        platform, _, rest = key.partition(":")
        parts = rest.split(":")
        if platform != PLATFORM or len(parts) != 4:
            return None
        hook = next((hook for hook in HOOKS if hook == parts[3]), None)
        if hook is None:
            return None
        errand = cls(provider=parts[0], session=parts[1], turn=parts[2], hook=hook)
        if not burden:
            return errand
        scope, *ids = json.loads(burden)
        return replace(errand, scope=Scope(key=scope), ids=tuple(ids))


def forgetting(provider: str, session: str, scope: Scope, ids: Sequence[int], stamp: str = "") -> Errand:
    """The errand to forget these ids. `stamp`: what tells it from another one about the same ids."""
    name = f"{zlib.crc32(json.dumps([*ids, stamp]).encode()):08x}"
    return Errand(
        provider=provider, session=session, turn=f"forgotten.{name}", hook="on_forget", scope=scope, ids=tuple(ids)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The sessions from `next_id` to `last_id` that something was said in since then are to be told."""

    since: datetime
    next_id: int
    last_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrears:
    """How many parcels are `waiting` and were given up (`dead`), and why the latest of them failed."""

    waiting: int = 0
    dead: int = 0
    reason: str = ""
