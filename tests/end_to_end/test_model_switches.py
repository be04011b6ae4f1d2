"""Switches between models of both APIs, with pictures, tool calls and thinking in the history.

Both doubles are strict: they refuse thinking of another server, calls without results, and more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from config.settings import Settings
from core.agent.offline import OfflineModel
from core.models.wrappers import FallbackModel
from gateway.services import create_model_client
from gateway.texts.catalog import word_sentence
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.media_samples import make_photo
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.sweeps import keep_first

pytestmark = pytest.mark.slow

KEY = "sk-ant-switches"
OTHER_KEY = "sk-other-switches"
CLAUDE, OTHER, SMALL = "claude-sonnet-5-5", "other/gpt-6-astra", "small/gpt-6-astra"
THINKING = {"type": "thinking", "thinking": "Zirconium is what the ferry carries."}
CALL = {"type": "tool_use", "name": "session_search", "input": {"query": "ferry"}}


class Down:
    """Says whether the first server fails, and after how many events of its stream."""

    def __init__(self) -> None:
        self.clock = SteadyClock()
        self.is_down = False
        self.after_events: int | None = None


def reply_to(text: str, *, is_result: bool, name: str, call_id: str = "") -> ModelReply:
    """Think, and look the ferry up if the message says so."""
    call = {**CALL, "id": call_id} if call_id else CALL
    if is_result:
        return ModelReply(blocks=(THINKING, {"type": "text", "text": f"{name} has looked."}))
    if "look" in text:
        return ModelReply(blocks=(THINKING, {"type": "text", "text": "Let me see."}, call))
    return ModelReply(blocks=(THINKING, {"type": "text", "text": f"{name} answers."}))


def answer_claude(down: Down, body: dict[str, Any]) -> ModelReply:
    if down.is_down and down.after_events is None:
        return ModelReply.fail(402, "pay")
    last = body["messages"][-1]["content"]
    is_result = any(block["type"] == "tool_result" for block in last)
    text = " ".join(block.get("text", "") for block in last).partition("<memory-context>")[0]
    reply = reply_to(text, is_result=is_result, name="Claude")
    if down.is_down:
        return ModelReply(blocks=reply.blocks, fault="cut", after_events=down.after_events or 0)
    return reply


def answer_other(body: dict[str, Any], call_id: str = "") -> ModelReply:
    """Answer like the first server, but name each tool call `call_id`, if it is given."""
    last = body["messages"][-1]
    content = last["content"]
    if isinstance(content, list):
        content = " ".join(part.get("text", "") for part in content)
    text = content.partition("<memory-context>")[0]
    is_result = last["role"] == "tool"
    return reply_to(text, is_result=is_result, name="Other", call_id=call_id or uuid4().hex)


@asynccontextmanager
async def switching(
    home: Path, down: Down | None = None
) -> AsyncIterator[tuple[GatewayHarness, MessagesApi, ChatApi, ChatApi]]:
    """Run a gateway with a model of each API, and a third one without tools and pictures."""
    state = down or Down()
    async with (
        MessagesApi(lambda body: answer_claude(state, body), key=KEY) as first,
        ChatApi(answer_other, key=OTHER_KEY, wants_reasoning=True) as second,
        ChatApi(
            # It uses the same id for each of its calls.
            lambda body: answer_other(body, "call_0"),
            lacks=["tools", "pictures"],
        ) as third,
    ):
        options = (
            f'[model]\nchat = ["{CLAUDE}", "{OTHER}"]\nchoices = ["{SMALL}"]\neffort = "high"\ntries = 2\n'
            f'[model.servers.other]\napi = "chat-completions"\nurl = "{second.url}"\n'
            f'key = "OTHER_KEY"\n'
            f'[model.servers.small]\napi = "chat-completions"\nurl = "{third.url}"\n'
        )
        variables = {"ANTHROPIC_BASE_URL": first.url, "OTHER_KEY": OTHER_KEY}
        (home / "mneme.toml").write_text(options)
        settings = Settings.load({"MNEME_HOME": str(home), "ANTHROPIC_API_KEY": KEY, **variables})
        client = create_model_client(settings, state.clock)
        assert client is not None
        model = FallbackModel(
            client,
            OfflineModel("UTC"),
            state.clock,
            settings.model.chat_models,
            word=word_sentence,
        )
        try:
            async with open_gateway(home, model, options, variables=variables) as harness:
                yield harness, first, second, third
        finally:
            await client.close()


async def test_conversation_continues_across_switches_between_three_models(home: Path) -> None:
    names = {CLAUDE: "Claude", OTHER: "Other", SMALL: "Other"}
    async with switching(home) as (harness, first, second, third):
        for round_number in range(3):
            for model, name in names.items():
                assert model in (await harness.say(f"/model {model}")).text
                answer = await harness.send(make_photo(), "p.jpg", "photo", "What is this?")
                assert f"{name} answers." in answer.text, (first.refusals, second.refusals)
                answer = await harness.say(f"Please look up ferry {round_number}.")
                end = "Let me see." if model == SMALL else f"{name} has looked."
                assert end in answer.text
                assert "irconium" not in answer.text
        stored = await harness.services.database.fetch_all("SELECT text FROM messages")
        assert not any("irconium" in row["text"] for row in stored)
        found = (await harness.say("/recall zirconium carries")).text
        assert "is what the ferry carries" not in found
    assert (first.refusals, second.refusals) == ([], [])
    # The third model has taught what it lacks.
    assert len(third.refusals) == 2


@pytest.mark.parametrize("after_events", keep_first(2, [0, 2, 4, 6, 9]))
async def test_second_model_takes_over_when_the_first_breaks_off_while_streaming(
    home: Path, after_events: int
) -> None:
    down = Down()
    async with switching(home, down) as (harness, first, second, _):
        assert "Claude has looked." in (await harness.say("Please look up the ferry.")).text
        down.is_down, down.after_events = True, after_events
        reply = await harness.say("Please look up the ferry again.")
        assert reply.text.startswith(f"_{CLAUDE} is out of reach, so {OTHER} answers._")
        assert reply.text.count("Let me see.") == 1
        assert reply.text.count("Other has looked.") == 1
        down.is_down = False
        down.clock.advance(seconds=10)
        assert "Claude has looked." in (await harness.say("And please look once more.")).text
    assert second.refusals == []
    assert first.refusals == []
