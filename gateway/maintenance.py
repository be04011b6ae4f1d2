"""Looks after state.db while the gateway runs: notices what another process wrote, and tends the text indexes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import structlog

from core.errors import StoreError

LOOK_EVERY_S = 0.5  # the command line promises that a running gateway notices changes within a second
TEND_EVERY_S = 5.0
STEP_REST_S = 0.05
_log = structlog.get_logger("maintenance")


async def watch(
    data_version: Callable[[], Awaitable[int]], changed: asyncio.Event, on_change: Callable[[], Awaitable[None]]
) -> None:
    """Until cancelled: awaits `on_change` when `data_version` tells of a write of another process, or this one has set
    `changed`. One that failed is repeated."""
    known: int | None = None
    is_changed = False
    while True:
        try:
            version = await data_version()
            is_changed = is_changed or (known is not None and version != known)
            known = version
            if is_changed:
                await on_change()
                is_changed = False
        except StoreError as error:
            _log.error("state.db cannot be read", error=str(error))
            is_changed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await changed.wait()
        is_changed = is_changed or changed.is_set()
        changed.clear()


async def tend(chores: Sequence[Callable[[], Awaitable[bool]]]) -> None:
    """Until cancelled: each of the chores does one small step a call and says whether there is more, so that no message
    waits for the indexes."""
    while True:
        try:
            has_more = any([await chore() for chore in chores])
        except StoreError as error:
            _log.error("the indexes cannot be tended", error=str(error))
            has_more = False
        await asyncio.sleep(STEP_REST_S if has_more else TEND_EVERY_S)
