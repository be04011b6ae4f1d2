"""Code of somebody else in a thread of its own: what it blocks is only itself."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from core.memory.http import JsonService
from core.memory.provider_thread import ProviderThread


async def test_provider_thread_returns_results_and_raises_errors_of_its_work() -> None:
    room = ProviderThread("guest")

    async def told() -> str:
        return threading.current_thread().name

    async def broken() -> None:
        raise KeyError("x")

    assert await room.run(told) == "memory guest"
    assert await room.run(lambda: threading.current_thread().name) == "memory guest"  # type: ignore[arg-type, return-value]
    with pytest.raises(KeyError):
        await room.run(broken)
    await room.close()
    assert "memory guest" not in [thread.name for thread in threading.enumerate()]


async def test_cancelled_call_is_cancelled_in_the_provider_thread() -> None:
    room, begun, ended = ProviderThread("guest"), threading.Event(), threading.Event()

    async def waiting() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(room.run(waiting))
    assert await asyncio.to_thread(begun.wait, 5)
    task.cancel()
    await asyncio.wait([task])
    assert await asyncio.to_thread(ended.wait, 5)
    await room.close()


async def test_closing_a_provider_thread_cancels_its_work_and_may_be_repeated() -> None:
    room, begun, ended = ProviderThread("guest"), threading.Event(), threading.Event()

    async def waiting() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(room.run(waiting))
    assert await asyncio.to_thread(begun.wait, 5)
    await room.close()
    await room.close()
    assert await asyncio.to_thread(ended.wait, 5)
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.slow
async def test_service_call_that_connects_while_its_thread_closes_is_cancelled_with_its_tasks() -> (
    None
):
    room, service = ProviderThread("guest"), JsonService("guest", "http://127.0.0.1:9")
    here, begun, may_go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    async def asking() -> None:
        here.call_soon_threadsafe(begun.set)
        may_go.wait(5)
        await service.call("GET", "/")

    task = asyncio.create_task(room.run(asking))
    await begun.wait()
    # Its loop is told to end in the round in which the call has a task made that connects.
    closing = asyncio.create_task(room.close())
    here.call_soon(may_go.set)
    await asyncio.wait([task, closing])
    assert task.cancelled()
    # What has never begun would be reported as an error now.
    del task
    gc.collect()
