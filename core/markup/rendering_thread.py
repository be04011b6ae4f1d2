"""Processes long texts in a thread without pausing other threads.

Rendering a long text creates hundreds of thousands of objects. Python's garbage collector would
scan them again and again, and stop all threads for a tenth of a second each time. Rendering creates
no reference cycles, so it's safe to turn the collector off.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

T = TypeVar("T")


class _CollectorPause:
    """Keeps the garbage collector turned off while at least one thread is inside."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._threads = 0
        self._was_enabled = True

    def __enter__(self) -> None:
        with self._lock:
            if self._threads == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._threads += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._threads -= 1
            if self._threads == 0 and self._was_enabled:
                gc.enable()


_collector_pause = _CollectorPause()


async def run_in_thread(work: Callable[[str], T], text: str) -> T:
    """Return ``work(text)``, computed in a thread while the garbage collector is turned off."""

    def run() -> T:
        with _collector_pause:
            return work(text)

    return await asyncio.to_thread(run)
