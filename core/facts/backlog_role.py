"""What the core needs of the store to miss no fact: which messages were not read for facts yet, durably.
`core.store.fact_search` fills it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from core.records import Fact
from core.types import Message, Scope, Session


class Backlog(Protocol):
    """People's own messages that have yet to be read for facts."""

    async def behind(self, since: datetime) -> Sequence[Session]:
        """The sessions with such messages since a moment, open or ended."""

    async def unread(self, session_id: int, since: datetime, limit: int) -> Sequence[Message]:
        """Those of a session, oldest first."""

    async def keep(self, read: Sequence[Message], facts: Sequence[tuple[Fact, str]]) -> Sequence[Fact]:
        """Learns the facts that were read out of these messages, each with the text it was read from, and counts the
        messages as read, all at once."""

    async def source(self, message_id: int) -> tuple[Scope, str] | None:
        """Whose a message is and on which platform it was said; None when it is gone."""
