"""A canvas that behaves like a platform: messages exist or not, text has a limit, too many calls are refused, calls can
be slow or fail. Keeps what a person would see.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from core.errors import DeliveryError
from core.markup import to_telegram, utf16_length
from core.types import Answer


class ListReceipt:
    """Fills the role Receipt in memory."""

    def __init__(self, key: str = "turn:1", posted: Sequence[str] = ()) -> None:
        self.key = key
        self.posted: list[str] = list(posted)

    async def record(self, message_id: str) -> None:
        self.posted.append(message_id)


class ChatCanvas:
    """Fills the role Canvas. `messages` maps ids to what is shown, in order; `calls` lists what was asked.

    `refusals`: errors that the next calls (typing excepted) raise instead of doing anything, one each; None lets one
    pass. `gate`: while cleared, calls do not get through.
    """

    def __init__(self, limit_chars: int = 4096, pace_s: float = 0.001) -> None:
        self.limit_chars = limit_chars
        self.pace_s = pace_s
        self.messages: dict[str, str] = {}
        self.answers: dict[str, Answer] = {}
        self.calls: list[str] = []
        self.nonces: list[str] = []
        self.typed = 0
        self.refusals: deque[DeliveryError | None] = deque()
        self.typing_refusal: DeliveryError | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_called = asyncio.Event()
        self._changed = asyncio.Condition()
        self._running = 0

    def measure(self, markdown: str) -> int:
        return utf16_length(to_telegram(markdown)[0])

    async def typing(self) -> None:
        self.typed += 1
        await self._notify()
        if self.typing_refusal is not None:
            raise self.typing_refusal

    async def post(self, markdown: str, answer: Answer | None, nonce: str) -> str:
        await self._call(f"post {markdown}")
        if not (answer and answer.files):
            self._check(markdown)
        self.nonces.append(nonce)
        message_id = str(100 + len(self.nonces))
        await self._show(message_id, markdown, answer)
        return message_id

    async def edit(self, message_id: str, markdown: str, answer: Answer | None) -> None:
        await self._call(f"edit {message_id} {markdown}")
        if message_id not in self.messages:
            raise DeliveryError("message to edit not found", is_missing=True)
        self._check(markdown)
        await self._show(message_id, markdown, answer)

    async def remove(self, message_id: str) -> None:
        await self._call(f"remove {message_id}")
        if self.messages.pop(message_id, None) is None:
            raise DeliveryError("message to delete not found", is_missing=True)
        await self._notify()

    @property
    def shown(self) -> list[str]:
        """The texts that a person sees, in order."""
        return list(self.messages.values())

    async def until_shown(self, *texts: str) -> None:
        """Waits until exactly these messages are seen."""
        await self._until(lambda: self.shown == list(texts))

    async def until_typed(self, count: int) -> None:
        """Waits until typing was shown so many times."""
        await self._until(lambda: self.typed >= count)

    async def until_calls(self, count: int) -> None:
        """Waits until so many calls have been made, refused ones included."""
        await self._until(lambda: len(self.calls) >= count)

    async def _until(self, holds: object) -> None:
        assert callable(holds)
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: bool(holds()))

    async def _call(self, name: str) -> None:
        assert self._running == 0, f"two calls of one answer at the same time: {name}"
        self._running += 1
        try:
            self.calls.append(name)
            self.is_called.set()
            await self._notify()
            await self.gate.wait()
            refusal = self.refusals.popleft() if self.refusals else None
            if refusal is not None:
                raise refusal
        finally:
            self._running -= 1

    def _check(self, markdown: str) -> None:
        length = self.measure(markdown)
        if length == 0:
            raise DeliveryError("message text is empty")
        if length > self.limit_chars:
            raise DeliveryError("message is too long")

    async def _show(self, message_id: str, markdown: str, answer: Answer | None) -> None:
        self.messages[message_id] = markdown
        if answer is not None:
            self.answers[message_id] = answer
        await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
