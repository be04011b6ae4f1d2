"""What follows an answer that was delivered: a new session gets its title, memory is told of the turn."""

from __future__ import annotations

from core.agent.sessions import window_of
from core.agent.titles import Titles
from core.memory.manager import MemoryManager, last_turn
from core.ports import Conversations
from core.types import Address, Scope, ToolContext


class PostTurn:
    """Runs after the answer has left; nobody waits for it."""

    def __init__(self, conversations: Conversations, memory: MemoryManager, titler: Titles) -> None:
        self._conversations = conversations
        self._memory = memory
        self._titler = titler

    async def settle(self, address: Address, scopes: frozenset[Scope]) -> None:
        """Tends to the open session of `address` after one of its turns."""
        session = await self._conversations.current(address)
        if session is None:
            return
        rows = await self._conversations.history(session, scopes)
        if not session.is_incognito:
            await self._titler.title(session, rows)
        await self._memory.turn_over(session, rows)
        asked = [row for row in last_turn(rows) if row.role == "user" and row.sender is not None]
        if asked and asked[-1].sender is not None:
            context = ToolContext(
                session=session,
                scope=session.scope,
                scopes=scopes,
                sender=asked[-1].sender,
                now=rows[-1].created_at,
                message_id=asked[-1].id,
                window=window_of(session, rows),
            )
            await self._memory.queue_prefetch("\n".join(row.text for row in asked), context)
