"""Runs the code of external memory providers, which may block, fail in any way, or end a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TypeVar

from core.errors import ConfigError, DeliveryError, MnemeError
from core.memory.provider import await_result, describe_error

T = TypeVar("T")
# How long `close` waits for the thread.
CLOSE_TIMEOUT_S = 1.0


class ProviderThread:
    """A thread with its own event loop for the code of one provider, which may block.

    The first call starts the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call an async or plain function in the thread and return its result.

        Cancelling this coroutine also cancels the function. Raises DeliveryError if the function
        raises an exception such as SystemExit, which isn't a subclass of `Exception`.
        """

        async def run_call() -> T:
            """Await the call. An exception that would end the thread becomes a DeliveryError."""
            try:
                return await await_result(call())
            except Exception:
                raise
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                    raise
                # SystemExit would end the loop of this thread. A CancelledError that the provider
                # raises itself would look like a cancellation of the turn.
                raise DeliveryError(
                    "service_raised", name=self._name, kind=type(error).__name__
                ) from error

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(
                target=_run_loop, args=(self._loop,), name=f"memory {self._name}", daemon=True
            )
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run_call(), self._loop))

    async def close(self) -> None:
        """Cancel running calls and end the thread.

        A thread that doesn't end in time is abandoned. It doesn't prevent the process from exiting.
        """
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
            await asyncio.to_thread(self._thread.join, CLOSE_TIMEOUT_S)


def _is_being_cancelled() -> bool:
    """Return whether the current task has been asked to cancel."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop until it's stopped, then cancel its tasks and close it."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()
        if running := asyncio.all_tasks(loop):
            for task in running:
                # `call_soon` lets each task take its first step before it's cancelled. Otherwise
                # its coroutine would be reported as never awaited.
                loop.call_soon(task.cancel)
            loop.run_until_complete(asyncio.wait(running))


@contextmanager
def translate_foreign_errors(name: str) -> Iterator[None]:
    """Turn errors in a provider's code into a ConfigError. Keep our own errors.

    `name` is the provider's name, or its file.
    """
    try:
        yield
    except MnemeError:
        raise
    except (Exception, SystemExit) as error:
        reason = describe_error(error, 300)
        raise ConfigError("memory_unusable", name=name, reason=reason) from error
