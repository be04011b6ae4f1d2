"""Looks after state.db while the house runs: notices what another process wrote, and tends the text indexes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from core.errors import StoreError
from core.ports import Recall

LOOK_EVERY_S = 0.5
"""The command line promises that a running gateway notices it within a second."""
TEND_EVERY_S = 5.0
STEP_REST_S = 0.05


class _Versioned(Protocol):
    async def data_version(self) -> int: ...


class Caretaker:
    """`on_change` is awaited when another process has written, or when `changed` is set by this one. `chores` do one
    small step a call, besides the indexes, and say whether there is more to do now."""

    def __init__(
        self,
        database: _Versioned,
        recall: Recall,
        changed: asyncio.Event,
        on_change: Callable[[], Awaitable[None]],
        chores: Sequence[Callable[[], Awaitable[bool]]] = (),
    ) -> None:
        self._database = database
        self._changed = changed
        self._on_change = on_change
        self._chores = (recall.tend, *chores)
        self._log = structlog.get_logger("caretaker")

    async def watch(self) -> None:
        """Until cancelled. What could not be told is told at the next look."""
        known: int | None = None
        is_changed = False
        while True:
            try:
                version = await self._database.data_version()
                is_changed = is_changed or (known is not None and version != known)
                known = version
                if is_changed:
                    await self._on_change()
                    is_changed = False
            except StoreError as error:
                self._log.error("state.db cannot be read", error=str(error))
                is_changed = True
            is_changed = await self._told() or is_changed

    async def _told(self) -> bool:
        """Waits until this process says that something changed, or until it is time to look for what others did."""
        try:
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    async def tend(self) -> None:
        """Until cancelled: small steps, so that no message waits for the indexes."""
        while True:
            try:
                has_more = any([await chore() for chore in self._chores])
            except StoreError as error:
                self._log.error("the indexes cannot be tended", error=str(error))
                has_more = False
            await asyncio.sleep(STEP_REST_S if has_more else TEND_EVERY_S)
