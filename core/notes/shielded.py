"""Work on files that is done to its end although whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

T = TypeVar("T")

_log = structlog.get_logger("notebook")


async def finished(write: Coroutine[Any, Any, T]) -> T:
    """Runs `write` to its end even when the caller is cancelled, who is then cancelled after it: a file that has been
    replaced must be logged as well."""
    task = asyncio.create_task(write, name="note")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("a note failed after its caller was gone", error=str(error))
        raise
