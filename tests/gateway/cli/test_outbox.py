"""`mneme outbox`: undeliverable messages are listed with their reason, sent again, or deleted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from config.settings import Settings
from core.store.mailbox import OutboxItem
from core.types import Address, Answer
from gateway.check import run_checks
from gateway.commands.status import StatusCommands
from gateway.services import Services
from gateway.texts.catalog import ENGLISH
from tests.fixtures.command_line import good, mneme
from tests.fixtures.gateway_harness import open_gateway

pytestmark = pytest.mark.slow

REASON = "Telegram does not let the bot write there: bot was blocked by the user"


async def bury(home: Path, *chat_ids: str) -> list[int]:
    """Make one reminder for each chat undeliverable, and return their numbers."""
    async with open_gateway(home) as harness:
        await harness.say("hello")
        outbox = harness.services.outbox
        for chat_id in chat_ids:
            item = OutboxItem(
                key=f"job:{chat_id}:x",
                kind="reminder",
                address=Address(platform="telegram", chat_id=chat_id),
                answer=Answer(text=f"call Bob from {chat_id}"),
                next_at=harness.services.clock.now(),
            )
            await outbox.put(item)
            await outbox.record_failure(item.key, REASON)
        return [dead_item.item.id for dead_item in await outbox.list_dead()]


async def test_time_of_a_failure_is_in_the_zone_that_the_owner_chose(home: Path) -> None:
    await bury(home, "7")
    async with open_gateway(home) as harness:
        await harness.say("/timezone Tokyo", message_id="90")
        (dead_item,) = await harness.services.outbox.list_dead()
    moment = dead_item.dead_at.astimezone(ZoneInfo("Asia/Tokyo"))
    assert f"{moment:%H:%M}" in good(home, "outbox")
    assert f"{moment:%H:%M}" in mneme(home, "check").stdout


async def due_texts(home: Path) -> Sequence[str]:
    async with Services.open(Settings.load({"MNEME_HOME": str(home)})) as services:
        items = await services.outbox.list_due(services.clock.now())
        return [item.answer.text for item in items if item.answer]


async def test_undeliverable_messages_are_listed_and_only_the_owners_are_quoted(home: Path) -> None:
    own, other = await bury(home, "42", "7")
    lines = good(home, "outbox").splitlines()
    assert lines[0].startswith(f"{own}: reminder for telegram:42, ")
    assert lines[0].endswith(REASON)
    assert lines[1].strip() == "“call Bob from 42”"
    assert lines[2].startswith(f"{other}: reminder for telegram:7, ")
    assert "call Bob from 7" not in "".join(lines)
    listed = json.loads(good(home, "outbox", "list", "--json"))
    assert [(row["number"], row["error"]) for row in listed] == [(own, REASON), (other, REASON)]


async def test_undeliverable_messages_are_in_the_status_and_in_the_check(home: Path) -> None:
    (number,) = await bury(home, "42")
    settings = Settings.load({"MNEME_HOME": str(home)})
    async with Services.open(settings) as services:
        lines = await StatusCommands(services, None).render_lines(ENGLISH)
    assert "**messages to be sent**: 1 undeliverable (`mneme outbox list` shows why)" in lines
    (found,) = [result for result in await run_checks(settings) if result.subject == "outbox"]
    assert found.state == "wrong"
    assert found.text.startswith(f"{number}: reminder for telegram:42, ")
    assert "mneme outbox retry" in found.advice


async def test_undeliverable_message_is_due_after_a_retry_and_gone_after_a_drop(home: Path) -> None:
    first, second, third = await bury(home, "42", "7", "8")
    assert "will send 1 message when you start it" in good(home, "outbox", "retry", str(first))
    assert await due_texts(home) == ["call Bob from 42"]
    assert good(home, "outbox", "drop", str(second)) == "Deleted 1 message.\n"
    assert good(home, "outbox", "retry", "all").count("1 message") == 1
    assert await due_texts(home) == ["call Bob from 42", "call Bob from 8"]
    assert good(home, "outbox") == "There are no undeliverable messages.\n"
    assert good(home, "outbox", "drop", "all") == "There are no undeliverable messages.\n"
    refused = mneme(home, "outbox", "retry", str(third))
    assert refused.returncode == 2
    assert f"No undeliverable message has the number {third}" in " ".join(
        refused.stderr.replace("│", " ").split()
    )


async def test_numbers_beside_all_are_refused_and_nothing_is_deleted_or_sent(home: Path) -> None:
    first, second = await bury(home, "42", "7")
    for arguments in (("drop", str(first), "all"), ("drop", "all", "999"), ("retry", "x", "all")):
        refused = mneme(home, "outbox", *arguments)
        assert refused.returncode == 2
        assert "Give either numbers or all, not both." in " ".join(
            refused.stderr.replace("│", " ").split()
        )
    listed = json.loads(good(home, "outbox", "list", "--json"))
    assert [row["number"] for row in listed] == [first, second]
    assert await due_texts(home) == []
