"""Notices to the owner that must not be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.types import Account, Address, Scope
from gateway.owner_notices import OwnerNotices
from tests.fixtures.gateway_harness import notices, open_gateway

pytestmark = pytest.mark.slow


async def test_a_notice_is_left_once(home: Path) -> None:
    async with open_gateway(home) as harness:
        services = harness.services
        await harness.say("I moved to Zanzibar in May.")
        notices = OwnerNotices(services)
        for _ in range(2):
            await notices.tell_of_memory("down", "diary", "no")
            await notices.tell_of_memory("keeps", "diary", "")
        due = await services.outbox.due(services.clock.now(), ["telegram"])
        texts = [outbox_item.answer.text for outbox_item in due if outbox_item.kind == "notice" and outbox_item.answer]
        assert texts == [
            "My memory “diary” is out of order (no). I go on without it and try it again.",
            "My memory “diary” did not erase what it was asked to; `mneme memory providers` says why. Have it erased "
            "there, or let `mneme memory sync diary` ask it again.",
        ]


async def test_an_outage_is_told_on_another_platform(home: Path) -> None:
    async with open_gateway(home) as harness:
        owner_notices = OwnerNotices(harness.services)
        await harness.say("hello")
        await owner_notices.tell_of_outage("telegram", "out of reach (no route to host), trying again")
        assert await notices(harness) == [], "there is no other place"
        await harness.services.people.set_owner(
            [Account(platform=name, user_id="42") for name in ("telegram", "discord")], []
        )
        address = Address(platform="discord", chat_id="9")
        await harness.say("hello", address=address, scope=Scope.account("discord", "42"))
        await harness.say("hello again")
        await owner_notices.tell_of_outage("telegram", "out of reach (no route to host), trying again")
        await owner_notices.tell_of_outage("telegram", "given up: telegram: the token was refused.")
        await owner_notices.tell_of_outage("telegram", "connected")
        assert await notices(harness) == [
            (
                "discord:9",
                "Telegram has not worked for a while: out of reach (no route to host), trying again. "
                "I will tell you when it is back.",
            ),
            (
                "discord:9",
                "Telegram has not worked for a while: given up: telegram: the token was refused. "
                "Once that is put right, start me again.",
            ),
            ("discord:9", "Telegram works again."),
        ]
