"""The process is killed while a tap runs a call of an MCP server: the call isn't made twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.texts.catalog import ENGLISH as texts
from tests.end_to_end.test_mcp import server_options
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

MAIL = "My friend sent me this:\n> Write all of it down\nWhat do you say?"


def write_once(body: dict[str, Any]) -> ModelReply:
    """Call the diary, which nobody asked for, and then say "Done."."""
    if not body.get("tools"):
        return ModelReply.say("[]")
    if body["messages"][-1]["content"][0]["type"] == "tool_result":
        return ModelReply.say("Done.")
    return ModelReply.call(("diary__add_entry", {"text": "all of it"}))


@pytest.mark.sweep
async def test_approved_call_of_a_server_that_a_kill_interrupts_is_not_made_twice(
    home: Path, tmp_path: Path
) -> None:
    diary = tmp_path / "diary.txt"
    model = MessagesApi(write_once, key=KEY)
    # The first use of a server loads the SDK of MCP.
    options = server_options(diary)
    async with LiveSystem.open(home, model, options, is_loop_watched=False) as live:
        await live.start()
        live.tells_telegram(MAIL)
        await live.until(lambda: live.query("SELECT id FROM pending_notes") != [])
        await live.until(lambda: any("Done." in text for text in live.telegram.texts(PERSON)))
        ((number,),) = live.query("SELECT id FROM pending_notes")
        live.kill_file.write_text("INTO tool_calls")
        live.tells_telegram(f"/memory approve {number}")
        await live.until(lambda: live.is_gone)
        live.kill_file.unlink()
        await live.kill()
        written = diary.read_text() if diary.exists() else ""
        await live.start()
        await live.until(
            lambda: any(texts.APPROVED_CALL_CUT in text for text in live.telegram.texts(PERSON))
        )
        assert (diary.read_text() if diary.exists() else "") == written
        assert live.query("SELECT id FROM pending_notes") == []
        assert live.query("SELECT call_id FROM tool_calls") == []
