"""Locks a folder that several processes use, and protects work from cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from core.errors import Refused

LOCK_TIMEOUT_S = 10.0
T = TypeVar("T")


@dataclass
class FolderLock:
    """A lock for a folder. It excludes all other tasks and processes."""

    folder: Path
    # The key of the sentence for people if another program holds the lock for too long.
    busy_key: str
    _task_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Acquire the lock for a block of code. Raises Refused if that takes too long."""
        # Tasks of this process wait here and not for the file lock. Waiting for the file lock
        # blocks a thread. If all threads were blocked, the task that holds the lock would have none
        # to continue with.
        async with self._task_lock:
            # Imported here because it takes a while to load.
            from filelock import FileLock, Timeout

            lock = FileLock(self.folder / ".lock", timeout=LOCK_TIMEOUT_S, thread_local=False)
            try:
                await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True, mode=0o700)
                await asyncio.to_thread(lock.acquire)
            except Timeout as error:
                raise Refused(self.busy_key) from error
            except OSError as error:
                raise Refused(
                    "folder_unusable", folder=self.folder.name, reason=error.strerror or error
                ) from error
            try:
                yield
            finally:
                lock.release()


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result, even if the caller is cancelled.

    Otherwise a cancellation could come between the replacement of a file and its log entry.
    """
    task = asyncio.create_task(work, name="note")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise
