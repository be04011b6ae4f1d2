"""A thumb on an answer is feedback about the facts that it repeats, and counts in /usage."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.types import Scope, Scopes
from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

OWN: Scopes = frozenset((Scope.account("telegram", "42"),))


async def react(harness: GatewayHarness, reply: KeptReply, thumb: str, who: str = "42") -> None:
    """Put a thumb on an answer, or remove it ("")."""
    assert reply.receipt is not None
    (message_id,) = reply.receipt.message_ids
    inbound = harness.inbound(thumb, who, kind="reaction", message_id=message_id)
    assert await harness.admission.admit(inbound, KeptReply()) is None


async def trust_in(harness: GatewayHarness, fact_id: int = 1) -> float:
    fact = await harness.services.facts.find(fact_id, OWN)
    assert fact is not None
    return fact.trust


async def ask_about_home(harness: GatewayHarness) -> KeptReply:
    await harness.say("/remember My boat is called Seagull.")
    return await harness.say("What is my boat called?")


async def test_thumb_up_raises_the_trust_once_and_counts_in_usage(home: Path) -> None:
    model = ScriptedModel(says("Your boat is called Seagull."))
    async with open_gateway(home, model) as harness:
        reply = await ask_about_home(harness)
        before = await trust_in(harness)
        await react(harness, reply, "up")
        after = await trust_in(harness)
        assert after > before
        await react(harness, reply, "")
        assert "Thumbs" not in (await harness.say("/usage")).text
        await react(harness, reply, "up")
        assert await trust_in(harness) == after
        assert "1 up, 0 down" in (await harness.say("/usage")).text


async def test_thumb_down_asks_which_fact_is_wrong_and_changes_nothing_before(home: Path) -> None:
    model = ScriptedModel(says("Your boat is called Seagull."))
    async with open_gateway(home, model) as harness:
        reply = await ask_about_home(harness)
        before = await trust_in(harness)
        await react(harness, reply, "down")
        (item,) = await harness.services.outbox.list_due(harness.services.clock.now())
        question = item.answer
        assert question is not None
        assert "My boat is called Seagull" in question.text
        assert await trust_in(harness) == before
        assert [button.label for button in question.buttons] == ["f1 is wrong"]
        assert "sure of it" in (await harness.say(question.buttons[0].id, kind="action")).text
        assert await trust_in(harness) < before


async def test_thumb_changes_no_trust_of_facts_that_the_answer_does_not_use(home: Path) -> None:
    model = ScriptedModel(says("I can't say."))
    async with open_gateway(home, model) as harness:
        reply = await ask_about_home(harness)
        before = await trust_in(harness)
        await react(harness, reply, "up")
        await react(harness, reply, "down")
        assert await trust_in(harness) == before
        assert await harness.services.outbox.list_due(harness.services.clock.now()) == []


async def test_thumb_of_a_stranger_or_on_a_persons_own_message_is_ignored(home: Path) -> None:
    model = ScriptedModel(says("Your boat is called Seagull."))
    async with open_gateway(home, model) as harness:
        reply = await ask_about_home(harness)
        before = await trust_in(harness)
        await react(harness, reply, "up", who="99")
        own = harness.inbound("up", kind="reaction", message_id="2")
        await harness.admission.admit(own, KeptReply())
        assert await trust_in(harness) == before
        assert "Thumbs" not in (await harness.say("/usage")).text


async def test_thumb_is_erased_with_its_answer(home: Path) -> None:
    model = ScriptedModel(says("Your boat is called Seagull."))
    async with open_gateway(home, model) as harness:
        reply = await ask_about_home(harness)
        await react(harness, reply, "up")
        await harness.say("/forget Seagull")
        await harness.say("yes")
        rows = await harness.services.database.fetch_all("SELECT * FROM thumbs")
        assert rows == []


async def react_to_question(
    harness: GatewayHarness, question: KeptReply, thumb: str, who: str = "42"
) -> str:
    """Put a thumb on a question, and return the answer, or "" if there is none."""
    assert question.receipt is not None
    (message_id,) = question.receipt.message_ids
    reply = await harness.say(thumb, who, kind="reaction", message_id=message_id)
    return "" if reply.answer is None else reply.text


async def test_thumb_up_on_a_confirmation_question_counts_as_yes(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("the ferry is blue")
        question = await harness.say("/forget ferry")
        assert "Forgotten" in await react_to_question(harness, question, "up")
        assert await react_to_question(harness, question, "up") == ""


async def test_thumb_down_on_a_question_cancels_it(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("the ferry is blue")
        question = await harness.say("/forget ferry")
        answer = await react_to_question(harness, question, "down")
        assert answer == texts.QUESTION_CANCELLED
        assert "Forgotten" not in (await harness.say("yes")).text
        assert "blue" in (await harness.say("/recall ferry")).text


async def test_thumb_on_an_earlier_message_answers_no_question(home: Path) -> None:
    async with open_gateway(home) as harness:
        other = await harness.say("the ferry is blue")
        await harness.say("/forget ferry")
        assert await react_to_question(harness, other, "up") == ""
        assert "blue" in (await harness.say("/recall ferry")).text


async def test_thumb_of_somebody_else_answers_no_question(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("the ferry is blue")
        question = await harness.say("/forget ferry")
        assert question.receipt is not None
        (message_id,) = question.receipt.message_ids
        address = harness.inbound("x").address
        reply = await harness.say(
            "up", "7", kind="reaction", message_id=message_id, address=address
        )
        assert reply.answer is None


async def test_thumb_down_takes_back_the_only_change_that_the_answer_reports(home: Path) -> None:
    note = calls(("memory", {"action": "add", "content": "My boat is called Seagull."}))
    model = ScriptedModel(note, says("Noted."), says("Nothing."))
    async with open_gateway(home, model) as harness:
        reply = await harness.say("Remember that my boat is called Seagull.")
        assert reply.receipt is not None
        (message_id,) = reply.receipt.message_ids
        thumb = harness.inbound("down", kind="reaction", message_id=message_id)
        undone = KeptReply()
        entry_id = await harness.admission.admit(thumb, undone)
        assert entry_id is not None
        await harness.admission.serve(entry_id)
        assert undone.text.startswith("Undone: change 1.")
        assert "0/2,200 characters" in (await harness.say("/memory list")).text
        # A second thumb finds nothing to take back.
        again = harness.inbound("down", kind="reaction", message_id=message_id)
        assert await harness.admission.admit(again, KeptReply()) is None


async def test_thumb_down_of_a_stranger_undoes_no_change(home: Path) -> None:
    note = calls(("memory", {"action": "add", "content": "My boat is called Seagull."}))
    async with open_gateway(home, ScriptedModel(note, says("Noted."))) as harness:
        reply = await harness.say("Remember that my boat is called Seagull.")
        await react(harness, reply, "down", "7")
        assert "Seagull" in (await harness.say("/memory list")).text
