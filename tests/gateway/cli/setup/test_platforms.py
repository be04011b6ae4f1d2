"""The wait for the owner's first message in `mneme setup`."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.console import Console

from config.draft import SettingsDraft
from core.ports import FirstMessage
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

    output = io.StringIO()
    dialog = Dialog(is_interactive=True, console=Console(file=output))
    setup = Setup(dialog=dialog, draft=SettingsDraft())
    with asyncio.Runner() as runner:
        _wait_for_owner(setup, runner, "Write something.", "telegram", watch)
    assert "Left out. `mneme setup telegram` does it later." in output.getvalue()
