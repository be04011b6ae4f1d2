"""What the relay needs of the store: what was said and noted, by id. `core.store.sync_source` fills it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from core.memory.sync_task import Past
from core.records import NoteChange
from core.types import Address, Message, Scope, Session


class Minutes(Protocol):
    """Sessions, turns and changes of notes as they stand, for whoever carries them to a memory; for nobody's eyes."""

    async def session(self, session_id: int) -> Session | None:
        """A session by id, whosever it is."""

    async def rows(self, session_id: int) -> Sequence[Message]:
        """What the model may see of the session itself, oldest first, without what was erased."""

    async def lately(self, since: datetime) -> Sequence[Session]:
        """The sessions that something was said in since, but imported ones; open or ended."""

    async def past(self, past: Past, limit: int) -> Sequence[Session]:
        """The first sessions of what is to be told of the past, also imported ones."""

    async def changes(self, since: datetime, after_id: int) -> Sequence[int]:
        """The ids of the changes of notes since, and after that one, oldest first."""

    async def change(self, change_id: int) -> tuple[NoteChange, Session | None] | None:
        """A change of notes, with the session it was made in where that is known; None when it is gone."""

    async def owners(self, change_ids: Sequence[int]) -> Sequence[tuple[Scope, Sequence[int]]]:
        """Whose these changes of notes are."""

    async def places(self, message_ids: Sequence[int]) -> Sequence[tuple[Session, Sequence[int]]]:
        """The sessions that these messages are in, erased ones too."""

    async def message(self, address: Address, external_id: str) -> tuple[Session, int] | None:
        """The message that a platform knows by this id, with its session."""
