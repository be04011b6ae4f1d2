"""What follows an answer that was delivered: memory is told of the turn, a new session gets its title."""

from __future__ import annotations

from core.memory.provider import MemoryProvider
from core.ports import Conversations
from core.titler import Titler
from core.types import Address, Scope


class Aftercare:
    """Runs after the answer has left; nobody waits for it."""

    def __init__(self, conversations: Conversations, memory: MemoryProvider, titler: Titler) -> None:
        self._conversations = conversations
        self._memory = memory
        self._titler = titler

    async def settle(self, address: Address, scopes: frozenset[Scope]) -> None:
        """Tends to the open session of `address` after one of its turns."""
        session = await self._conversations.current(address)
        if session is None:
            return
        rows = await self._conversations.history(session, scopes)
        start = max((i for i, row in enumerate(rows) if row.role == "user"), default=0)
        await self._memory.sync_turn(session, rows[start:])
        await self._titler.title(session, rows)
