"""When the first model is asked, and when the second answers at once, over the real client and a
server that fails."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from core.agent.offline import OfflineModel
from core.models.wrappers import FallbackModel
from core.types import Completion
from tests.fixtures.model_reply import ModelReply
from tests.models.test_claude import Caller, calling, request

pytestmark = pytest.mark.slow

SECOND = "offline"


class Conversation:
    """Asks as turns do, by number."""

    def __init__(self, caller: Caller) -> None:
        self.clock = caller.clock
        self.model = FallbackModel(
            caller.claude, OfflineModel("UTC", "The model is out of reach"), caller.clock
        )
        self.texts: list[str] = []

    async def say(self, turn: str) -> Completion:
        asked = replace(request("The ferry leaves at nine."), turn_key=turn)
        return await self.model.complete(asked, self.texts.append, self.texts.append)


async def test_one_turn_with_all_its_tries_does_not_silence_the_model_for_others() -> None:
    async with calling([*[ModelReply.fail(529)] * 5, "Here."]) as (api, caller):
        talk = Conversation(caller)
        failed = await talk.say("1")
        assert (failed.model, len(api.requests)) == (SECOND, 5)
        assert failed.text.startswith("_The model is overloaded._")
        assert (await talk.say("1")).model == SECOND, "the rest of the turn goes on without it"
        assert len(api.requests) == 5
        assert (await talk.say("2")).text == "Here."


async def test_after_failures_of_two_turns_one_call_at_a_time_tries_whether_it_is_back() -> None:
    held = asyncio.Event()
    replies: list[Any] = [ModelReply.fail(503)] * 11 + [
        ModelReply.say("Here.", hold=held),
        "And here.",
    ]
    async with calling(replies) as (api, caller):
        talk = Conversation(caller)
        for turn in ("1", "2"):
            assert (await talk.say(turn)).model == SECOND
        assert len(api.requests) == 10
        assert (await talk.say("3")).text.startswith("_The model's server is out of service._")
        assert len(api.requests) == 10, "for five seconds nobody waits for it"
        talk.clock.advance(seconds=5)
        assert (await talk.say("4")).model == SECOND
        assert len(api.requests) == 11, "a trial is one try"
        talk.clock.advance(seconds=5)
        async with asyncio.TaskGroup() as tasks:
            trial = tasks.create_task(talk.say("5"))
            await api.until(lambda: api.held > 0)
            assert (await talk.say("6")).model == SECOND
            held.set()
        assert trial.result().text == "Here."
        assert (await talk.say("7")).text == "And here."


async def test_what_a_server_repeats_of_a_message_is_shown_to_nobody_else() -> None:
    async with calling(
        [ModelReply.fail(418, "no: The ferry leaves at nine", x_should_retry="true")] * 10
    ) as (
        _,
        caller,
    ):
        talk = Conversation(caller)
        for turn in ("1", "2"):
            assert "ferry leaves" in (await talk.say(turn)).text.partition("\n")[0]
        shown = (await talk.say("3")).text
        assert shown.startswith("_The model's server refused the request (418): …._")


async def test_what_concerns_one_request_does_not_count() -> None:
    async with calling([*[ModelReply.fail(400, "bad")] * 3, "Here."]) as (_, caller):
        talk = Conversation(caller)
        for turn in ("1", "2", "3"):
            assert (await talk.say(turn)).model == SECOND
        assert (await talk.say("4")).text == "Here."
