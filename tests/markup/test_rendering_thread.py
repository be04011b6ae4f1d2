"""Long texts are rendered in threads, and the garbage collector doesn't interrupt everybody."""

from __future__ import annotations

import asyncio
import gc
from threading import Event

import pytest

from core.markup.markdown import render
from core.markup.rendering_thread import run_in_thread


async def test_collector_is_off_while_any_long_text_is_worked_on() -> None:
    began, may_end = Event(), Event()

    def work(text: str) -> bool:
        began.set()
        may_end.wait(30)
        return gc.isenabled()

    async with asyncio.TaskGroup() as tasks:
        slow = tasks.create_task(run_in_thread(work, "slow"))
        await asyncio.to_thread(began.wait, 30)
        assert await run_in_thread(lambda text: gc.isenabled(), "quick") is False
        assert gc.isenabled() is False
        may_end.set()
    assert slow.result() is False
    assert gc.isenabled() is True


async def test_collector_is_on_again_after_work_that_failed() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        await run_in_thread(float, "no number")
    assert gc.isenabled() is True


@pytest.mark.slow
def test_markdown_rendering_leaves_no_reference_cycles_for_the_garbage_collector() -> None:
    markdown = "| a | b |\n|---|---|\n" + "| **x** | [y](http://a.b) |\n" * 200 + "\n> * a\n"
    render(markdown)
    gc.collect()
    gc.disable()
    try:
        render(markdown)
        assert gc.collect() < 100
    finally:
        gc.enable()
