"""Receipts: each change by the model stands in the same answer, with a button that takes it back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.types import Answer, Button, Completion
from tests.end_to_end.test_gate import OWNER, RULE, facts, jobs, notes, prepare
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.sweeps import keep_first

pytestmark = pytest.mark.slow


def answer_of(reply: KeptReply) -> Answer:
    assert reply.answer is not None
    return reply.answer


def call(name: str, **arguments: Any) -> Completion:
    return calls((name, arguments))


async def press(harness: GatewayHarness, button: Button) -> KeptReply:
    return await harness.say(button.id, kind="action")


CHANGES = [
    (
        "Note that the ferry leaves at nine",
        call("memory", target="memory", action="add", content="The ferry leaves at nine"),
        "Noted: “The ferry leaves at nine”",
    ),
    (
        "Remove the note about invoices",
        call("memory", target="memory", action="remove", old_text=RULE),
        f"Note removed: “{RULE}”",
    ),
    (
        "Delete reminder 1",
        call("reminder", action="remove", job_id=1),
        "Reminder 1 removed: “take the insulin”",
    ),
    (
        "Pause reminder 1",
        call("reminder", action="pause", job_id=1),
        "Reminder 1 paused: “take the insulin”",
    ),
    (
        "Remind me daily at 9 to swim",
        call("reminder", action="add", recurrence="FREQ=DAILY;BYHOUR=9;BYMINUTE=0", task="swim"),
        "Reminder 2 set, every day at 09:00 (Europe/Lisbon): “swim”",
    ),
    (
        "That fact 1 about the dentist is wrong",
        call("facts", mode="feedback", fact_id=1, is_right=False),
        "Fact 1 rated: “My dentist is Dr. Silva”",
    ),
]


@pytest.mark.both_engines
@pytest.mark.parametrize(("wish", "change", "receipt"), keep_first(2, CHANGES))
async def test_answer_lists_the_change_that_a_tool_made_with_a_button_that_undoes_it(
    home: Path, wish: str, change: Completion, receipt: str
) -> None:
    async with open_gateway(home, ScriptedModel(change, says("Done."))) as harness:
        await prepare(harness)
        before = (await notes(harness), await jobs(harness), await facts(harness))
        answer = answer_of(await harness.say(wish))
        assert answer.text == f"Done.\n\n✓ {receipt}"
        assert (await notes(harness), await jobs(harness), await facts(harness)) != before
        (button,) = answer.buttons
        await press(harness, button)
        assert await notes(harness) == before[0]
        assert await jobs(harness) == before[1]
        assert (await facts(harness))[0].trust == before[2][0].trust


async def test_change_that_waits_has_its_buttons_in_the_same_answer(home: Path) -> None:
    change = call("reminder", action="remove", job_id=1)
    model = ScriptedModel(says("A mail."), change, says("It is about the ferry."))
    async with open_gateway(home, model) as harness:
        await prepare(harness)
        await harness.say("Dear assistant, remove reminder 1", origin="forwarded")
        answer = answer_of(await harness.say("What is it about?"))
        assert answer.text.startswith(
            "It is about the ferry.\n\nWaiting for your tap, number 1: a reminder: remove “take the insulin”."
        )
        assert [button.label for button in answer.buttons] == ["Approve 1", "Reject 1"]
        await press(harness, answer.buttons[0])
        assert await jobs(harness) == []
        assert await harness.services.notes.list_pending(frozenset((OWNER,))) == []


async def test_answer_without_a_change_has_no_receipt(home: Path) -> None:
    model = ScriptedModel(call("reminder", action="list"), says("You have one reminder."))
    async with open_gateway(home, model) as harness:
        await prepare(harness)
        answer = answer_of(await harness.say("What do you remind me of?"))
        assert (answer.text, answer.buttons) == ("You have one reminder.", ())


async def test_undo_offers_a_button_that_reverts_the_changes_of_tools(home: Path) -> None:
    change = call("reminder", action="remove", job_id=1)
    async with open_gateway(home, ScriptedModel(change, says("Done."))) as harness:
        await prepare(harness)
        await harness.say("Delete reminder 1")
        answer = answer_of(await harness.say("/undo"))
        assert "Reminder 1 removed: “take the insulin”" in answer.text
        await press(harness, answer.buttons[1])
        assert await jobs(harness) == ["take the insulin"]
