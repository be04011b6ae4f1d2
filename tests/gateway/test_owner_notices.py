"""Notices to the owner that must not be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from config.settings import Settings
from core.errors import AccessRefused
from core.types import LOCAL_SCOPE, Account, Address, Scope
from gateway.chats.admins import ChatAdmins
from gateway.services import Services
from gateway.sharing.home_lock import LOCK_FILE
from gateway.supervisor import CONNECTED
from tests.fixtures.command_line import good
from tests.fixtures.english_words import find_english
from tests.fixtures.exports import telegram_account, telegram_chat, telegram_message, write
from tests.fixtures.gateway_harness import notices, open_gateway

pytestmark = pytest.mark.slow

LATER = 400_000  # minutes after the noon of an export: newer than all that is said in a test
ROOM = {
    "address": Address(platform="telegram", chat_id="-5"),
    "scope": Scope.group("telegram", "-5"),
    "is_direct": False,
}


@pytest.mark.parametrize(
    "scope", ["account:terminal:local", "account:telegram:42", "account:telegram:777"]
)
async def test_an_imported_chat_with_somebody_else_hears_no_notice(
    home: Path, tmp_path: Path, scope: str
) -> None:
    chats = [telegram_chat([telegram_message(LATER, "see you")], number) for number in (777, 4242)]
    async with open_gateway(home) as harness:
        good(
            home,
            "import",
            str(write(tmp_path / "result.json", telegram_account(chats))),
            "--scope",
            scope,
        )
        await harness.services.owner_notices.notify("asks", "Somebody wants to talk to me.")
        assert await notices(harness) == [], "what was imported is no place to talk to the owner"
        await harness.say("hello")
        await harness.services.owner_notices.notify("asks again", "Somebody wants to talk to me.")
        assert await notices(harness) == [("telegram:42", "Somebody wants to talk to me.")]


async def test_notice_of_a_program_without_the_tokens_goes_to_the_chat_of_the_running_gateway(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("hello")
    async with Services.open(Settings.load({"MNEME_HOME": str(home)})) as services:
        await services.save_platform_states({"telegram": CONNECTED})
        assert await services.find_private_chat(LOCAL_SCOPE) is None
        with FileLock(home / LOCK_FILE):
            chat = await services.find_private_chat(LOCAL_SCOPE)
    assert chat is not None
    assert chat[0].key == "telegram:42"


async def test_neither_a_room_nor_a_planned_question_hears_a_notice(home: Path) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-5"]') as harness:
        await harness.say("hello")
        await harness.say("hello all", "42", **ROOM)
        assert [address for address, _ in await notices(harness)] == ["telegram:-5"]
        planned: Any = {"address": Address(platform="cron", chat_id="7")}
        await harness.say("what is open?", **planned)
        assert (
            len(
                await harness.services.conversations.list_recent(
                    frozenset([Scope.account("telegram", "42")]), 9
                )
            )
            == 2
        )
        await harness.services.owner_notices.notify("asks", "Somebody wants to talk to me.")
        assert await notices(harness) == [("telegram:42", "Somebody wants to talk to me.")]


async def test_missed_messages_are_reported_with_the_name_of_their_channel(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def load_place_name(self: ChatAdmins, address: Address) -> str:
        return "#travel" if address.chat_id == "77" else ""

    monkeypatch.setattr(ChatAdmins, "load_place_name", load_place_name)
    async with open_gateway(home) as harness:
        await harness.say("hello")
        for chat_id in ("77", "78"):
            await harness.admission.report_missed(Address(platform="discord", chat_id=chat_id))
        named, unnamed = [text for _, text in await notices(harness)]
        assert "travel”" in named
        assert "discord:77" not in named
        assert "`discord:78`" in unnamed


async def test_paused_job_is_reported_to_its_person_and_in_a_group_to_the_owner(
    home: Path,
) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-5"]') as harness:
        for who in ("42", "7"):
            await harness.say("hello", who)
        await harness.say("hello all", "7", **ROOM)
        # The group is told what is kept there.
        assert [address for address, _ in await notices(harness)] == ["telegram:-5"]
        places: list[Any] = [{"who": "7"}, {"who": "7", **ROOM}]
        for place in places:
            await harness.say("/remind tomorrow at 9 call Ana", **place)
        for job in await harness.services.jobs.list_active():
            await harness.services.owner_notices.notify_paused_job(job, "Its zone is gone.")
        assert await notices(harness) == [
            (
                "telegram:7",
                "I paused reminder 1: Its zone is gone. `/cron` lists your reminders.",
            ),
            (
                "telegram:42",
                "I paused reminder 2 of the group `room:telegram:-5`: Its zone is gone. `/cron` lists your "
                "reminders.",
            ),
        ]


async def test_each_owner_notice_about_a_memory_service_is_left_only_once(home: Path) -> None:
    async with open_gateway(home) as harness:
        services = harness.services
        await harness.say("I moved to Zanzibar in May.")
        notices = services.owner_notices
        for _ in range(2):
            await notices.notify_memory_problem("down", "diary", "no")
            await notices.notify_memory_problem("keeps", "diary", "")
        due = await services.outbox.list_due(services.clock.now(), ["telegram"])
        texts = [
            outbox_item.answer.text
            for outbox_item in due
            if outbox_item.kind == "notice" and outbox_item.answer
        ]
        assert texts == [
            "The memory service “diary” isn't working (no). I go on without it and keep trying.",
            "The memory service “diary” didn't erase what I asked it to. `mneme memory providers` says "
            "why. Erase it there yourself, or run `mneme memory sync diary` to ask again.",
        ]


async def test_owner_is_told_of_a_platform_outage_on_another_platform(home: Path) -> None:
    async with open_gateway(home) as harness:
        owner_notices = harness.services.owner_notices
        await harness.say("hello")
        await owner_notices.notify_outage(
            "telegram", "out of reach (no route to host), trying again"
        )
        assert await notices(harness) == [], "there is no other place"
        await harness.services.people.set_owner(
            [Account(platform=name, user_id="42") for name in ("telegram", "discord")], []
        )
        address = Address(platform="discord", chat_id="9")
        await harness.say("hello", address=address, scope=Scope.account("discord", "42"))
        await harness.say("hello again")
        await owner_notices.notify_outage(
            "telegram", "out of reach (no route to host), trying again"
        )
        await owner_notices.notify_outage("telegram", "given up: telegram: the token was refused.")
        await owner_notices.notify_outage("telegram", "off: telegram: the token was refused.")
        await owner_notices.notify_outage("telegram", "connected")
        assert await notices(harness) == [
            (
                "discord:9",
                "Telegram has been down for a while: out of reach (no route to host), trying again. "
                "I'll tell you when it is back.",
            ),
            (
                "discord:9",
                "Telegram has been down for a while: given up: telegram: the token was refused. "
                "Fix that, then start me again.",
            ),
            (
                "discord:9",
                "Telegram is off, so I get no messages there. telegram: the token was refused. "
                "Then start me again. Until then I try once an hour.",
            ),
            ("discord:9", "Telegram works again."),
        ]
        await harness.say("/language de", address=address, scope=Scope.account("discord", "42"))
        refusal = AccessRefused("telegram_token_refused", root="https://t.example", reason="401")
        states = ["out of reach (no answer in time), trying again", f"off: {refusal}"]
        for state in states:
            await owner_notices.notify_outage("telegram", state)
        for _, notice in (await notices(harness))[-2:]:
            typed = ["TELEGRAM_BOT_TOKEN MNEME_TELEGRAM_API_URL API Token mybots"]
            assert find_english(notice, "de", typed) == [], notice


@pytest.mark.parametrize(
    ("lines", "model", "end"),
    [
        ('chat = ["claude-a", "claude-b"]', "claude-a", "Until then, claude-b answers."),
        ('chat = "claude-a"', "claude-a", "Until then, I answer without a model."),
        ('chat = "claude-a"\nchoices = ["claude-c"]', "claude-c", "Until then, claude-a answers."),
        ('chat = "claude-a"\nhelper = ["h1", "h2"]', "h1", "Until then, h2 helps."),
        (
            'chat = "claude-a"\nhelper = "h1"',
            "h1",
            "Until then, no model helps with titles, summaries and facts.",
        ),
    ],
)
async def test_owner_notice_about_a_retired_model_names_its_replacement(
    home: Path, lines: str, model: str, end: str
) -> None:
    async with open_gateway(home) as harness:
        (home / "mneme.toml").write_text(f"[model]\n{lines}\n")
        options = Settings.load({"MNEME_HOME": str(home)}).model
        await harness.say("hello")
        await harness.services.owner_notices.notify_retired_model(options, model, "")
        ((_, text),) = await notices(harness)
    assert text.endswith(end)
