"""Receipts that are added to an answer after it was sent."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from core.errors import DeliveryError
from core.store.mailbox import OutboxItem
from core.store.notes import Operation, PendingNote
from core.types import Account, Answer, Message, Scope
from gateway.receipts import ReceiptWriter
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.stored_history import StoredHistory

pytestmark = pytest.mark.slow

NOTE = "User's husband works for the railway."


async def _propose_note(harness: GatewayHarness) -> PendingNote:
    """Propose a note in the turn of the first message."""
    note = PendingNote(
        scope=Scope.account("telegram", "42"),
        target="memory",
        operations=(Operation(action="add", content=NOTE),),
        reason="the message may not say this",
        at=harness.services.clock.now(),
        message_id=1,
        account=Account(platform="telegram", user_id="42"),
    )
    await harness.services.notebook.review.add_pending(note, None)
    (stored,) = await harness.services.notes.list_pending(frozenset((note.scope,)))
    return stored


async def _load_due(harness: GatewayHarness) -> dict[str, OutboxItem]:
    """Return the open outbox items by the first part of their key."""
    later = harness.services.clock.now() + timedelta(hours=1)
    items = await harness.services.outbox.list_due(later)
    return {item.key.partition(":")[0]: item for item in items}


async def _deliver(harness: GatewayHarness, item: OutboxItem) -> None:
    reply = KeptReply()
    harness.delivery.begin(item, reply)
    assert item.answer is not None
    assert await harness.delivery.deliver(item, reply, item.answer)


async def test_verdict_waits_until_the_answer_of_its_turn_is_delivered_and_then_edits_it(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("Ok."))) as harness:
        reply = KeptReply(DeliveryError("no connection", retry_after_s=60.0))
        number = await harness.admission.admit(harness.inbound("He works for the railway"), reply)
        assert number is not None
        await harness.admission.serve(number)
        note = await _propose_note(harness)
        receipts = ReceiptWriter(harness.services)

        assert not await receipts.show_verdict(note, None)
        due = await _load_due(harness)
        assert "verdict" not in due

        await _deliver(harness, due["turn"])
        assert await receipts.show_verdict(note, None)
        edit = (await _load_due(harness))["verdict"]
        assert edit.answer is not None
        assert edit.posted
        assert edit.answer.text.startswith("Ok.")
        assert NOTE in edit.answer.text


async def deliver_reminder(harness: GatewayHarness, text: str) -> None:
    """Deliver a reminder, and store it in the conversation of the first message."""
    (session,) = await harness.services.conversations.list_recent(
        frozenset((Scope.account("telegram", "42"),)), limit=1
    )
    now = harness.services.clock.now()
    item = OutboxItem(
        key="job:1@2026-03-02T09:00",
        kind="reminder",
        address=harness.inbound("x").address,
        answer=Answer(text=text),
        next_at=now,
    )
    reminder = Message(
        role="assistant", text=text, session_id=session.id, created_at=now, origin="job"
    )
    await harness.services.conversations.append([reminder], outbox_item=item)
    await _deliver(harness, (await _load_due(harness))["job"])


async def test_verdict_after_a_reminder_edits_the_answer_and_leaves_the_reminder(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("Ok."))) as harness:
        reply = await harness.say("He works for the railway")
        assert reply.text == "Ok."
        await deliver_reminder(harness, "Call mum.")
        (answer, reminder) = await harness.services.database.fetch_all(
            "SELECT posted FROM outbox ORDER BY id"
        )
        note = await _propose_note(harness)

        assert await ReceiptWriter(harness.services).show_verdict(note, None)
        edit = (await _load_due(harness))["verdict"]
    assert answer["posted"] != reminder["posted"]
    assert edit.posted == tuple(json.loads(answer["posted"]))
    assert edit.answer is not None
    assert edit.answer.text.startswith("Ok.")
    assert NOTE in edit.answer.text
    assert "Call mum" not in edit.answer.text


async def test_verdict_waits_for_the_answer_of_an_interrupted_turn_despite_a_reminder(
    home: Path,
) -> None:
    call = calls(("memory", {"action": "read", "target": "memory"}))
    async with open_gateway(home, ScriptedModel(call, says("Ok."))) as harness:
        await harness.say("He works for the railway")
        # A restart interrupts the turn before its answer is stored.
        await StoredHistory(harness.services.database).execute(
            "DELETE FROM messages WHERE text = 'Ok.'"
        )
    async with open_gateway(home, ScriptedModel()) as harness:
        await deliver_reminder(harness, "Call mum.")
        note = await _propose_note(harness)

        assert not await ReceiptWriter(harness.services).show_verdict(note, None)
        assert "verdict" not in await _load_due(harness)
