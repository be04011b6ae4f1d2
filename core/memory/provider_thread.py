"""The room in which the code of somebody else runs: a thread with an event loop of its own.

What it does there, blocking included, holds up nobody but itself; what does not end is left behind at the end.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from core.errors import DeliveryError

T = TypeVar("T")

CLOSING_S = 1.0
"""How long the end of what still runs is waited for."""


class ProviderThread:
    """The thread is made when it is first needed, and dies with the process at the latest. `hands` do what is handed
    to threads there."""

    def __init__(self, name: str, hands: ThreadPoolExecutor) -> None:
        self._name = name
        self._hands = hands
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_over = threading.Event()

    async def do(self, call: Callable[[], Awaitable[T]]) -> T:
        """What `call` gives or raises, awaited in the room. Who is cancelled here is cancelled there. Raises
        DeliveryError when it wanted to end the process."""

        async def work() -> T:
            try:
                return await call()
            except (SystemExit, KeyboardInterrupt) as error:
                # They would end the loop of the room and everything else in it.
                raise DeliveryError(f"{self._name} wanted to end the process ({type(error).__name__})") from error

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._opened()))

    async def close(self) -> None:
        """Cancels what still runs. A thread that does not end is given up: it cannot keep the process alive."""
        if self._loop is None or self._thread is None:
            return
        self._is_over.set()
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, CLOSING_S)
        self._loop = self._thread = None

    def _opened(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop, self._is_over = asyncio.new_event_loop(), threading.Event()
            self._loop.set_default_executor(self._hands)
            self._thread = threading.Thread(
                target=_live, args=(self._loop, self._is_over), name=f"memory {self._name}", daemon=True
            )
            self._thread.start()
        return self._loop


def _live(loop: asyncio.AbstractEventLoop, is_over: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    while not is_over.is_set():
        # Whoever works here may stop the loop, and not the work of the others.
        loop.run_forever()
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.wait(rest, timeout=CLOSING_S / 2))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
