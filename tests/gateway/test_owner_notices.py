"""Notices to the owner that must not be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.types import Account, Address, Scope
from gateway.owner_notices import OwnerNotices
from tests.fixtures.command_line import good
from tests.fixtures.exports import telegram_account, telegram_chat, telegram_message, write
from tests.fixtures.gateway_harness import notices, open_gateway

pytestmark = pytest.mark.slow

LATER = 400_000  # minutes after the noon of an export: newer than all that is said in a test
ROOM = {
    "address": Address(platform="telegram", chat_id="-5"),
    "scope": Scope.room("telegram", "-5"),
    "is_direct": False,
}


@pytest.mark.parametrize("scope", ["account:terminal:local", "account:telegram:42", "account:telegram:777"])
async def test_an_imported_chat_with_somebody_else_hears_no_notice(home: Path, tmp_path: Path, scope: str) -> None:
    chats = [telegram_chat([telegram_message(LATER, "see you")], number) for number in (777, 4242)]
    async with open_gateway(home) as harness:
        good(home, "import", str(write(tmp_path / "result.json", telegram_account(chats))), "--scope", scope)
        await OwnerNotices(harness.services).tell("asks", "Somebody asks to be let in.")
        assert await notices(harness) == [], "what was imported is no place to talk to the owner"
        await harness.say("hello")
        await OwnerNotices(harness.services).tell("asks again", "Somebody asks to be let in.")
        assert await notices(harness) == [("telegram:42", "Somebody asks to be let in.")]


async def test_neither_a_room_nor_a_planned_question_hears_a_notice(home: Path) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-5"]') as harness:
        await harness.say("hello")
        await harness.say("hello all", "42", **ROOM)
        planned: Any = {"address": Address(platform="cron", chat_id="7")}
        await harness.say("what is open?", **planned)
        assert len(await harness.services.conversations.recent(frozenset([Scope.account("telegram", "42")]), 9)) == 2
        await OwnerNotices(harness.services).tell("asks", "Somebody asks to be let in.")
        assert await notices(harness) == [("telegram:42", "Somebody asks to be let in.")]


async def test_that_a_job_was_paused_is_told_to_its_person_and_of_a_room_to_the_owner(home: Path) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-5"]') as harness:
        for who in ("42", "7"):
            await harness.say("hello", who)
        await harness.say("hello all", "7", **ROOM)
        places: list[Any] = [{"who": "7"}, {"who": "7", **ROOM}]
        for place in places:
            await harness.say("/remind tomorrow at 9 call Ana", **place)
        for job in await harness.services.jobs.active():
            await OwnerNotices(harness.services).tell_of_pause(job, "Its zone is gone.")
        assert await notices(harness) == [
            ("telegram:7", "I have paused reminder 1: Its zone is gone. `/cron` lists what is planned."),
            (
                "telegram:42",
                "I have paused reminder 2 of the room `room:telegram:-5`: Its zone is gone. `/cron` lists what is "
                "planned.",
            ),
        ]


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
