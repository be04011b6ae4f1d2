"""Notices to the owner that must not be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.privacy.epoch_guard import EpochGuard
from core.types import Scope
from gateway.owner_notices import OwnerNotices
from tests.fixtures.gateway_harness import open_gateway

pytestmark = pytest.mark.slow


async def test_a_notice_is_left_although_something_was_forgotten_meanwhile(home: Path) -> None:
    async with open_gateway(home) as harness:
        services = harness.services
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/forget Zanzibar")
        doorbell = OwnerNotices(services.people, services.transcripts, services.outbox, services.clock, lambda: None)
        async with EpochGuard(services.database, lambda: None).over(Scope.account("telegram", "42")):
            await harness.say("yes")
            await doorbell.tell("memory-down:diary", "My memory “diary” is out of order.")
            await doorbell.tell("memory-down:diary", "My memory “diary” is out of order.")
        due = await services.outbox.due(services.clock.now(), ["telegram"])
        texts = [outbox_item.answer.text for outbox_item in due if outbox_item.kind == "notice" and outbox_item.answer]
        assert texts == ["My memory “diary” is out of order."]
