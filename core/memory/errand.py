"""What a parcel to a memory says: which hook of whom, about what. All of it stands in the key; words are in none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.types import Address

PLATFORM = "memory"
Hook = Literal["sync_turn", "on_session_end", "on_session_switch", "on_memory_write"]
HOOKS: tuple[Hook, ...] = ("sync_turn", "on_session_end", "on_session_switch", "on_memory_write")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """`session`: a session id, or ``notes``. `turn`: the ids it is about, by hook: the first messages of the first and
    last turn, ``12-18``; the last message of a session; its parent, the reason and when, ``7.length.1790000000``; a
    change of notes."""

    provider: str
    session: str
    turn: str
    hook: Hook

    @property
    def key(self) -> str:
        """Unique for ever."""
        return f"{PLATFORM}:{self.provider}:{self.session}:{self.turn}:{self.hook}"

    @property
    def address(self) -> Address:
        """Its lane in the outbox: what concerns one session keeps its order."""
        return Address(platform=PLATFORM, chat_id=self.provider, thread_id=self.session)

    @classmethod
    def parse(cls, key: str) -> Errand | None:
        """The reverse of `key`; None for what is no errand."""
        platform, _, rest = key.partition(":")
        parts = rest.split(":")
        if platform != PLATFORM or len(parts) != 4:
            return None
        hook = next((hook for hook in HOOKS if hook == parts[3]), None)
        return None if hook is None else cls(provider=parts[0], session=parts[1], turn=parts[2], hook=hook)
