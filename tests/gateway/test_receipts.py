"""Receipts that are added to an answer after it was sent."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from core.errors import DeliveryError
from core.store.mailbox import OutboxItem
from core.store.notes import Operation, PendingNote
from core.types import Account, Scope
from gateway.receipts import ReceiptWriter
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

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
