"""Looks after state.db while the gateway runs: notices what another process wrote, and tends the text indexes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import structlog

from core.errors import StoreError
from core.search.recall import Recall

LOOK_EVERY_S = 0.5  # the command line promises that a running gateway notices changes within a second
TEND_EVERY_S = 5.0
STEP_REST_S = 0.05


class Maintenance:
    """`data_version` changes with every write of another process, `changed` is set by this one; then `on_change` is
    awaited. `chores` do one small step a call and say whether there is more to do."""

    def __init__(
        self,
        data_version: Callable[[], Awaitable[int]],
        recall: Recall,
        changed: asyncio.Event,
        on_change: Callable[[], Awaitable[None]],
        chores: Sequence[Callable[[], Awaitable[bool]]] = (),
    ) -> None:
        self._data_version = data_version
        self._changed = changed
        self._on_change = on_change
        self._chores = (recall.tend, *chores)
        self._log = structlog.get_logger("maintenance")

    async def watch(self) -> None:
        """Until cancelled; a failed `on_change` is repeated."""
        known: int | None = None
        is_changed = False
        while True:
            try:
                version = await self._data_version()
                is_changed = is_changed or (known is not None and version != known)
                known = version
                if is_changed:
                    await self._on_change()
                    is_changed = False
            except StoreError as error:
                self._log.error("state.db cannot be read", error=str(error))
                is_changed = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._changed.wait()
            is_changed = is_changed or self._changed.is_set()
            self._changed.clear()

    async def tend(self) -> None:
        """Until cancelled: small steps, so that no message waits for the indexes."""
        while True:
            try:
                has_more = any([await chore() for chore in self._chores])
            except StoreError as error:
                self._log.error("the indexes cannot be tended", error=str(error))
                has_more = False
            await asyncio.sleep(STEP_REST_S if has_more else TEND_EVERY_S)
