"""Stands where the router stands: takes events, answers them as the test says, keeps what it saw."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from core.errors import DeliveryError
from core.ports import Reply
from core.types import Answer, Inbound


class Receipt:
    """Fills the role Receipt, in memory."""

    def __init__(self, key: str, posted: list[str] | None = None) -> None:
        self.key = key
        self.posted = posted or []

    async def record(self, message_id: str) -> None:
        self.posted.append(message_id)


class Desk:
    """Fills the role Sink. `handler` answers an admitted event; `is_open` False admits nothing."""

    def __init__(self) -> None:
        self.seen: list[Inbound] = []
        self.replies: list[Reply] = []
        self.served: list[Inbound] = []
        self.errors: list[DeliveryError] = []
        self.receipts: list[Receipt] = []
        self.is_open = True
        self.handler: Callable[[Inbound, Reply], Awaitable[None]] | None = None

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        self.seen.append(inbound)
        self.replies.append(reply)
        return len(self.seen) if self.is_open else None

    async def serve(self, entry_id: int) -> None:
        inbound, reply = self.seen[entry_id - 1], self.replies[entry_id - 1]
        try:
            if self.handler is not None:
                await self.handler(inbound, reply)
        except DeliveryError as error:
            self.errors.append(error)
        self.served.append(inbound)

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        raise AssertionError("nothing moves here")

    def begin(self, inbound: Inbound, reply: Reply) -> Receipt:
        """Begins an answer with a receipt of its own."""
        receipt = Receipt(f"turn:{inbound.address.key}:{inbound.message_id}")
        self.receipts.append(receipt)
        reply.begin(receipt)
        return receipt

    def answering(self, answer: Answer | str) -> None:
        """From here on every event is answered with this."""
        said = Answer(text=answer) if isinstance(answer, str) else answer

        async def handle(inbound: Inbound, reply: Reply) -> None:
            self.begin(inbound, reply)
            await reply.finish(said)

        self.handler = handle
