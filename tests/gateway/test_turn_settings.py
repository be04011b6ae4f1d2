"""The settings of turns: how long messages are gathered, what interrupts, where failures are told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fixtures.gateway_harness import KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.gateway.chats.test_setup import GROUP
from tests.gateway.test_bursts import SilentModel

pytestmark = pytest.mark.slow


def settings(**values: object) -> str:
    lines = [f"{name} = {value!r}".replace("'", '"') for name, value in values.items()]
    return "[turn]\n" + "\n".join(lines)


async def test_messages_sent_within_the_gather_time_become_one_turn_even_with_a_fast_model(
    home: Path,
) -> None:
    model = ScriptedModel(*[says(f"answer {number}") for number in range(3)])
    async with open_gateway(home, model, settings(gather_s=1.2)) as harness:
        replies = []
        serving = []
        for text in ("the first part", "the second part", "the third part"):
            reply = KeptReply()
            entry_id = await harness.admission.admit(harness.inbound(text), reply)
            assert entry_id is not None
            replies.append(reply)
            serving.append(asyncio.ensure_future(harness.admission.serve(entry_id)))
            await asyncio.sleep(0.2)
        await asyncio.gather(*serving)
        assert [reply.answer is not None for reply in replies] == [False, False, True]
        assert len(model.requests) == 1
        sent = str(model.requests[0].messages)
        assert "the first part" in sent
        assert "the third part" in sent


@pytest.mark.parametrize(
    ("policy", "first", "requests"),
    [
        ("join", "", 2),
        ("queue", "answer 1", 2),
        ("interrupt", "", 2),
    ],
)
async def test_message_during_an_answer_with_nothing_shown_yet_follows_the_configured_policy(
    home: Path, policy: str, first: str, requests: int
) -> None:
    model = SilentModel()
    options = settings(gather_s=0.0, while_answering=policy)
    async with open_gateway(home, model, options) as harness:
        replies = [KeptReply(), KeptReply()]
        serving = []
        for text, reply in zip(("one", "two"), replies, strict=True):
            entry_id = await harness.admission.admit(harness.inbound(text), reply)
            assert entry_id is not None
            serving.append(asyncio.ensure_future(harness.admission.serve(entry_id)))
            await model.began.wait()
        model.gate.set()
        await asyncio.gather(*serving)
        answers = ["" if reply.answer is None else reply.text for reply in replies]
        assert answers == [first, "answer 2"]
        assert len(model.requests) == requests


async def test_second_message_interrupts_a_partly_shown_answer_if_the_settings_say_so(
    home: Path,
) -> None:
    model = SilentModel("The beginning")
    options = settings(gather_s=0.0, while_answering="interrupt")
    async with open_gateway(home, model, options) as harness:
        first, second = KeptReply(), KeptReply()
        one = await harness.admission.admit(harness.inbound("one"), first)
        assert one is not None
        serving = asyncio.ensure_future(harness.admission.serve(one))
        await model.began.wait()
        two = await harness.admission.admit(harness.inbound("two"), second)
        assert two is not None
        await asyncio.gather(serving, harness.admission.serve(two))
        assert first.text == "The beginning\n\n[stopped]"
        assert second.text == "answer 2"


@pytest.mark.parametrize(
    ("where", "is_told_in_a_group", "is_told_directly"),
    [("everywhere", True, True), ("direct", False, True), ("never", False, False)],
)
async def test_turn_failure_is_reported_only_where_the_settings_allow_and_the_message_is_stored(
    home: Path, where: str, is_told_in_a_group: bool, is_told_directly: bool
) -> None:
    def fail(request: object) -> object:
        raise RuntimeError("a defect")

    model = ScriptedModel(fail, fail)  # type: ignore[arg-type]
    options = f'rooms = ["telegram:-5"]\n{settings(gather_s=0.0, error_replies=where)}'
    async with open_gateway(home, model, options) as harness:
        in_group = await harness.say("the ferry is blue", "7", **GROUP)
        directly = await harness.say("the ferry is red", "7")
        assert (in_group.answer is not None) is is_told_in_a_group
        assert (directly.answer is not None) is is_told_directly
        assert "red" in (await harness.say("/recall ferry", "7")).text
        assert await harness.services.inbox.list_waiting() == []
