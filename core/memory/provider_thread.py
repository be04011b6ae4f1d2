"""Where the code of a memory service runs: a thread with an event loop of its own, one for each service.

What it does there, blocking included, holds up nobody but itself; what does not end is left behind at the end.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from core.errors import DeliveryError

T = TypeVar("T")
P = ParamSpec("P")

CLOSING_S = 1.0
"""How long the end of what still runs is waited for."""


class ProviderThread:
    """The thread is made when it is first needed, and dies with the process at the latest."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_over = threading.Event()

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """What `call` gives or raises, awaited there. Who is cancelled here is cancelled there. Raises DeliveryError
        for what would pass by every ``except Exception``, such as SystemExit."""

        async def work() -> T:
            try:
                return await call()
            except Exception:
                raise
            except BaseException as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                # It would end the loop of this thread, or pass for a cancellation of the turn.
                did = (
                    "wanted to end the process with" if isinstance(error, SystemExit | KeyboardInterrupt) else "raised"
                )
                raise DeliveryError(f"{self._name} {did} {type(error).__name__}") from error

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
            self._loop.set_default_executor(_DaemonThreads())
            work, arguments = _run_loop, (self._loop, self._is_over)
            self._thread = threading.Thread(target=work, args=arguments, name=f"memory {self._name}", daemon=True)
            self._thread.start()
        return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop, is_over: threading.Event) -> None:
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


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each call, which the end of the process does not wait for, as it does for those of a pool."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                answer = fn(*args, **kwargs)
            except BaseException as error:
                # It belongs to whoever waits for the future.
                future.set_exception(error)
            else:
                future.set_result(answer)

        threading.Thread(target=work, daemon=True).start()
        return future
