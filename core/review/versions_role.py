"""The role of whoever keeps the versions of curated notes: every change with who made it, never changed itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from core.notes.provenance import Provenance
from core.records import Author, NoteChange
from core.types import Scope


class Versions(Protocol):
    """The history of the notes; the notes themselves are files."""

    async def check(self) -> None:
        """Raises StoreError where a change that is about to be made could not be logged any more."""

    async def log(self, change: NoteChange) -> None:
        """Keeps one version, which stands in its file already: also where `check` would say no by now."""

    async def changes(self, scopes: frozenset[Scope], limit: int = 20, offset: int = 0) -> list[NoteChange]:
        """The latest versions, newest first, without the first `offset` of them."""

    async def since(self, scopes: frozenset[Scope], session_id: int, at: datetime) -> Sequence[NoteChange]:
        """What was changed from a moment on, oldest first, and not from within that session."""

    async def find(self, scopes: frozenset[Scope], number: int) -> NoteChange | None:
        """The change with this id; None when it is not theirs or not there."""

    async def made(self, scopes: frozenset[Scope], author: Author) -> Sequence[NoteChange]:
        """What the command with the address and the external id of `author` has changed, oldest first; nothing without
        them."""

    async def undoable(self, scopes: frozenset[Scope]) -> Sequence[NoteChange]:
        """The latest changes that are no undoing and were not undone, newest first."""

    async def standing(self, scope: Scope, target: str) -> Sequence[str]:
        """The entries that all changes of a file come to."""

    async def origin(self, scopes: frozenset[Scope], entry: str) -> Provenance:
        """The last change that brought an entry, and the message it came from where that may be seen."""

    async def sources(self, scopes: frozenset[Scope], changes: Sequence[NoteChange]) -> Sequence[Provenance]:
        """Each change with the message it came from, where that may be seen."""

    async def insisted(self, scopes: frozenset[Scope]) -> frozenset[str]:
        """The entries that read like orders and were kept all the same."""

    async def idle(self, scopes: frozenset[Scope], session_id: int) -> tuple[int, int]:
        """How many turns of a session have begun since anything was noted or remembered on purpose in these scopes,
        and the id of the last change of notes, 0 for none."""
