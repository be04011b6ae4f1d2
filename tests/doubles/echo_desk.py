"""A router small enough to see through, over a real inbox: admits all but nobodies, echoes what is addressed to us."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from core.ports import Clock, Inbox, Reply
from core.types import Answer, Button, Command, Inbound
from tests.doubles.slip import Slip


class EchoDesk:
    """Fills the role Sink. `answer` may be replaced; `is_idle` is set whenever everything admitted was served."""

    def __init__(self, inbox: Inbox, clock: Clock) -> None:
        self.inbox = inbox
        self.clock = clock
        self.admitted: list[Inbound] = []
        self.moves: list[tuple[str, str, str]] = []
        self.answer: Callable[[Inbound, Reply], Awaitable[None]] = self.echo
        self.is_idle = asyncio.Event()
        self._open: dict[int, tuple[Inbound, Reply]] = {}

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        if inbound.sender.is_nobody:
            return None
        entry_id = await self.inbox.accept(inbound, self.clock.now())
        if entry_id is not None:
            self.admitted.append(inbound)
            self._open[entry_id] = (inbound, reply)
            self.is_idle.clear()
        return entry_id

    async def serve(self, entry_id: int) -> None:
        inbound, reply = self._open[entry_id]
        if inbound.is_addressed:
            await self.answer(inbound, reply)
        await self.inbox.close([entry_id])
        del self._open[entry_id]
        if not self._open:
            self.is_idle.set()

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        self.moves.append((platform, old_chat_id, new_chat_id))

    @staticmethod
    async def echo(inbound: Inbound, reply: Reply) -> None:
        """One message with what kind of event it was, its text, and a button."""
        reply.begin(Slip())
        buttons = (Button(label="Again", command=Command(name="again"), id=f"act-{inbound.message_id}"[:60]),)
        await reply.finish(Answer(text=f"*{inbound.kind}*: {inbound.text}", buttons=buttons))

    @property
    def texts(self) -> list[str]:
        return [inbound.text for inbound in self.admitted]
