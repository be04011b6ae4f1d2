"""Reactions on both platforms: thumbs that people add to messages, and Mneme's own mark.

The mark on a person's message means that an answer is being prepared. The mark is removed when the
answer is delivered or abandoned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import structlog

from core.errors import DeliveryError

WORKING = "👀"
_THUMBS = {"👍": "up", "👎": "down"}
# Emoji modifiers for the tone of the skin.
_SKIN_TONES = dict.fromkeys(range(0x1F3FB, 0x1F400))
_log = structlog.get_logger("reactions")


def read_thumb(emojis: Iterable[str]) -> str:
    """Return "up" or "down" for the first thumb among the emojis of reactions, or ""."""
    for emoji in emojis:
        thumb = _THUMBS.get(emoji.translate(_SKIN_TONES).rstrip("\ufe0f"))
        if thumb is not None:
            return thumb
    return ""


class WorkingMark:
    """The mark on one message. `change` adds it (True) or removes it (False).

    The mark appears together with the typing indicator, so a fast answer needs no calls for it.
    """

    def __init__(self, change: Callable[[bool], Awaitable[object]]) -> None:
        self._change = change
        self._is_shown = False

    async def show(self) -> None:
        """Add the mark once. If the platform refuses, the answer is sent without it."""
        if self._is_shown:
            return
        self._is_shown = True
        await self._try(is_shown=True)

    async def remove(self) -> None:
        """Remove the mark if it was added."""
        if self._is_shown:
            self._is_shown = False
            await self._try(is_shown=False)

    async def _try(self, *, is_shown: bool) -> None:
        try:
            await self._change(is_shown)
        except DeliveryError as error:
            _log.info("the mark isn't changed", is_shown=is_shown, error=str(error))
