"""Notices to the owner that must not be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.owner_notices import OwnerNotices
from tests.fixtures.gateway_harness import open_gateway

pytestmark = pytest.mark.slow


async def test_a_notice_is_left_once(home: Path) -> None:
    async with open_gateway(home) as harness:
        services = harness.services
        await harness.say("I moved to Zanzibar in May.")
        notices = OwnerNotices(services.people, services.transcripts, services.outbox, services.clock, lambda: None)
        await notices.tell("memory-down:diary", "My memory “diary” is out of order.")
        await notices.tell("memory-down:diary", "My memory “diary” is out of order.")
        due = await services.outbox.due(services.clock.now(), ["telegram"])
        texts = [outbox_item.answer.text for outbox_item in due if outbox_item.kind == "notice" and outbox_item.answer]
        assert texts == ["My memory “diary” is out of order."]
