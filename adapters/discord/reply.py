"""The way back to Discord: a painter, with a guard before the last word that keeps private answers private."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from core.errors import DeliveryError
from core.ports import Receipt, Reply
from core.types import Answer


class DiscordReply:
    """Fills the role Reply. `before_private` runs before a private answer is painted and raises DeliveryError when the
    place cannot keep it private; `after_abandon` cleans up when there will be no answer."""

    def __init__(
        self,
        painter: Reply,
        before_private: Callable[[], Awaitable[None]],
        after_abandon: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._painter = painter
        self._before_private = before_private
        self._after_abandon = after_abandon

    def begin(self, receipt: Receipt) -> None:
        self._painter.begin(receipt)

    def show(self, text: str) -> None:
        self._painter.show(text)

    async def finish(self, answer: Answer) -> None:
        if answer.is_private:
            try:
                await self._before_private()
            except DeliveryError:
                await self._painter.abandon()
                raise
        await self._painter.finish(answer)

    async def abandon(self) -> None:
        await self._painter.abandon()
        if self._after_abandon is not None:
            await self._after_abandon()
