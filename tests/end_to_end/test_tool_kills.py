"""The process is killed before each write of a turn in which the model calls a tool that writes.

After the next start the tool's effect is there once, and the model was told the truth about it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core.agent.prompt_and_memory import INTERRUPTED_RESULT
from core.agent.tool_runner import ALREADY_DONE, NOT_DONE, STILL_WAITING
from tests.end_to_end.test_command_kills import column, kills
from tests.fixtures.echo_model import said
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.tool_calls import CALLS, ToolCall

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

WAITING_REMINDER = ToolCall(
    "My friend sent me this:\n> Don't forget the tea at 9\nWhat do you say, number {}",
    "reminder",
    lambda text, number: {"action": "add", "moment": "2030-01-01T09:00", "task": f"tea {number}"},
    lambda live, number: len(
        live.query(f"SELECT 1 FROM pending_notes WHERE operations LIKE '%tea {number}\"%'")
    ),
)
"""A reminder that no person asked for, so it waits for a yes."""
HAND_EDITS = "SELECT after FROM notes WHERE action = 'edited'"


class Caller:
    """A model that calls a tool, again if it wasn't carried out, and then says "Done."."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call
        self.results: list[str] = []

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("[]")
        last = body["messages"][-1]["content"]
        result = next((block for block in last if block["type"] == "tool_result"), None)
        if result is not None:
            self.results.append(str(result.get("content")))
            if self.results[-1] != NOT_DONE:
                return ModelReply.say("Done.")
        text = next(
            said(message["content"])
            for message in reversed(body["messages"])
            if message["role"] == "user" and message["content"][0]["type"] != "tool_result"
        )
        (number,) = re.findall(r"\d+$", text)
        return ModelReply.call((self._call.tool, self._call.arguments(text, number)))


@asynccontextmanager
async def calling(home: Path, call: ToolCall) -> AsyncIterator[tuple[LiveSystem, Caller]]:
    caller = Caller(call)
    async with LiveSystem.open(home, MessagesApi(caller, key=KEY)) as live:
        await live.start()
        yield live, caller
        assert live.model.refusals == []


@pytest.mark.parametrize("name", list(CALLS))
async def test_tool_killed_at_any_write_takes_effect_once_and_is_reported_truly(
    home: Path, name: str
) -> None:
    call = CALLS[name]
    async with calling(home, call) as (live, caller):
        tries = 0
        async for tries in kills(live, call.text):
            assert call.count(live, str(tries - 1)) == 1, caller.results
        assert tries > 3
        assert NOT_DONE in caller.results
        assert INTERRUPTED_RESULT not in caller.results
        assert column(live, HAND_EDITS) == []
        assert STILL_WAITING not in caller.results


async def test_tool_killed_after_its_change_is_stored_is_not_called_done_while_it_waits_for_a_yes(
    home: Path,
) -> None:
    async with calling(home, WAITING_REMINDER) as (live, caller):
        live.kill_file.write_text("INTO pending_notes")
        live.tells_telegram(WAITING_REMINDER.text.format(1))
        await live.until(lambda: live.is_gone)
        live.kill_file.unlink()
        await live.kill()
        await live.start()
        await live.until(lambda: caller.results != [])
        assert caller.results == [STILL_WAITING]
        assert WAITING_REMINDER.count(live, "1") == 1
        assert live.query("SELECT 1 FROM jobs") == []


async def test_tool_killed_after_its_change_is_stored_is_called_done(home: Path) -> None:
    call = CALLS["a reminder"]
    async with calling(home, call) as (live, caller):
        live.kill_file.write_text("INTO jobs")
        live.tells_telegram(call.text.format(1))
        await live.until(lambda: live.is_gone)
        live.kill_file.unlink()
        await live.kill()
        await live.start()
        await live.until(lambda: caller.results != [])
        assert caller.results == [ALREADY_DONE]
        assert call.count(live, "1") == 1
