"""The wait for the owner's first message in `mneme setup`."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from config.draft import SettingsDraft
from core.ports import FirstMessage
from core.types import Address, Sender
from gateway.cli.setup.dialog import Dialog
from gateway.cli.setup.platforms import _wait_for_owner
from gateway.cli.setup.steps import Setup


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, asyncio.CancelledError])
def test_ctrl_c_while_a_request_is_cancelled_leaves_the_step_out(
    home: Path, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    """The runner passes the second one on if Ctrl-C meets a request that is being cancelled."""
    monkeypatch.setenv("MNEME_HOME", str(home))

    async def watch() -> AsyncIterator[FirstMessage]:
        await asyncio.sleep(0)
        raise interruption
        yield

    with asyncio.Runner() as runner:
        shown = wait_for_owner(runner, watch)
    assert "Skipped. `mneme setup telegram` does it later." in shown


def test_ctrl_c_before_the_wait_begins_leaves_the_step_out(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_HOME", str(home))

    async def watch() -> AsyncIterator[FirstMessage]:
        await asyncio.Event().wait()
        yield FirstMessage(
            sender=Sender(id="1", name="Ana"),
            text="",
            address=Address(platform="telegram", chat_id="1"),
            message_id="1",
        )

    with asyncio.Runner() as runner:
        begun: list[asyncio.Task[Any]] = []

        def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
            """Get Ctrl-C after the first task was made, and before the loop runs it."""
            if begun:
                return asyncio.Runner.run(runner, coroutine)
            begun.append(runner.get_loop().create_task(coroutine))
            raise KeyboardInterrupt

        monkeypatch.setattr(runner, "run", run)
        shown = wait_for_owner(runner, watch)
    assert "Skipped. `mneme setup telegram` does it later." in shown


def wait_for_owner(runner: asyncio.Runner, watch: Callable[[], AsyncIterator[FirstMessage]]) -> str:
    """Wait for the owner's first message, and return what is shown."""
    output = io.StringIO()
    dialog = Dialog(is_interactive=True, console=Console(file=output))
    setup = Setup(dialog=dialog, draft=SettingsDraft())
    _wait_for_owner(setup, runner, "Write something.", "telegram", watch)
    return output.getvalue()
