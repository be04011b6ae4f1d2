"""What one turn is about: who asked what, where, within which scopes, and which rows its answer closes."""

from __future__ import annotations

from dataclasses import dataclass

from core.records import Entry, Parcel
from core.types import Address, Scope, Sender


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One or several waiting messages, answered together. `entries` are in order of arrival; `parcel` is where the
    answer leaves through; `hint` is the platform's, for a new session's prompt; `is_fresh` asks for a new session."""

    address: Address
    scope: Scope
    scopes: frozenset[Scope]
    entries: tuple[Entry, ...]
    parcel: Parcel
    hint: str = ""
    is_fresh: bool = False

    @property
    def sender(self) -> Sender:
        """Who spoke last."""
        return self.entries[-1].inbound.sender

    @property
    def text(self) -> str:
        """All that was said, joined."""
        return "\n".join(entry.inbound.text for entry in self.entries)
