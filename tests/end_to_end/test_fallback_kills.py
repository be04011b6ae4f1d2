"""The process is killed before each write of a turn that a fallback answers with a tool.

After the next start, the person gets one answer, and the tool's effect is there once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.agent.tool_runner import NOT_DONE
from tests.end_to_end.test_command_kills import kills
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.tool_calls import memory_file

pytestmark = [pytest.mark.slow, pytest.mark.sweep, pytest.mark.timeout(400)]

ANSWERS = "SELECT count(*) FROM messages WHERE role = 'assistant' AND text LIKE '%All kept.%'"


def answer_first(body: dict[str, Any]) -> ModelReply:
    """Be out of credit for everything."""
    return ModelReply.fail(402, "Your credit balance is too low.")


def answer_second(body: dict[str, Any]) -> ModelReply:
    """Keep a note with the tool, again if that wasn't carried out, and then say so."""
    if not body.get("tools"):
        return ModelReply.say("[]")
    last = body["messages"][-1]
    if last["role"] == "tool" and last["content"] != NOT_DONE:
        return ModelReply.say("All kept.")
    question = next(item for item in reversed(body["messages"]) if item["role"] == "user")
    text = question["content"].partition("<memory-context>")[0]
    number = text.strip().rsplit("number ", 1)[-1].split()[0].strip(".")
    note = {"action": "add", "target": "memory", "content": f"My locker has number {number}."}
    return ModelReply.call(("memory", note), text="Let me keep that.")


async def test_turn_killed_while_a_fallback_answers_is_answered_once(home: Path) -> None:
    async with ChatApi(answer_second) as second:
        options = (
            '[model]\nchat = ["claude-sonnet-5-5", "other/gpt-6-astra"]\n'
            f'[model.servers.other]\napi = "chat-completions"\nurl = "{second.url}"\n'
        )
        async with LiveSystem.open(home, MessagesApi(answer_first, key=KEY), options) as live:
            await live.start()
            tries = 0
            async for tries in kills(live, "Remember: my locker has number 70{}."):
                assert live.query(ANSWERS) == [(tries,)]
                texts = live.telegram.texts(PERSON)
                assert sum("All kept." in text for text in texts) == tries
                assert memory_file(live).count(f"number 70{tries - 1}") == 1
            assert tries > 3
            assert live.model.refusals == []
    assert second.refusals == []
    assert json.dumps(second.requests).count('"name": "memory"') > tries
