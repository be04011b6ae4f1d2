"""People are told elsewhere what couldn't be delivered to the chat it was meant for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import ChatRefused, DeliveryError, StoreError
from core.store.mailbox import OutboxItem
from core.types import Address, Answer, Scope, Sender
from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.gateway.commands.test_links import link, notices, on_discord

pytestmark = pytest.mark.slow

GROUP: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-5"),
    "scope": Scope.group("telegram", "-5"),
    "is_direct": False,
}
BLOCKED = ChatRefused("Forbidden: bot was blocked by the user", "blocked")
DELETED = ChatRefused("Bad Request: TOPIC_DELETED", "deleted")
KICKED = ChatRefused("Forbidden: bot was kicked from the group chat", "gone")


async def say_refused(
    harness: GatewayHarness, text: str, who: str, error: DeliveryError, **changes: object
) -> None:
    """Send a message whose answer the platform refuses."""
    inbound = harness.inbound(text, who, **changes)
    entry_id = await harness.admission.admit(inbound, KeptReply(error))
    assert entry_id is not None
    await harness.admission.serve(entry_id)


async def test_answer_undeliverable_to_a_blocked_bot_is_sent_to_the_persons_other_platform(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("The ferry leaves at nine."))) as harness:
        await link(harness)
        await say_refused(harness, "when does the ferry leave?", "7", BLOCKED)
        [(address, notice)] = await notices(harness)
        assert address == on_discord()["address"]
        assert notice.text == (
            "I couldn't deliver this on Telegram. I'm blocked there, or the account no longer "
            "exists. Unblock me there, and write to me.\n\nThe ferry leaves at nine."
        )
        [dead_item] = await harness.services.outbox.list_dead()
        assert (dead_item.cause, dead_item.item.attempts) == ("blocked", 1)


async def test_answer_refused_in_a_group_is_told_in_the_direct_chat_without_its_text(
    home: Path,
) -> None:
    model = ScriptedModel(says("hello to you"), says("The ferry leaves at nine."))
    async with open_gateway(home, model) as harness:
        await harness.say("hello", "7")
        harness.platforms["telegram"].place_names["telegram:-5"] = "The Flat"
        await say_refused(harness, "@mneme when?", "7", KICKED, **GROUP)
        [(_, introduction), (address, notice)] = await notices(harness)
        assert introduction.text == texts.INTRODUCTION
        assert address == Address(platform="telegram", chat_id="7")
        assert "in “The Flat” on Telegram" in notice.text
        assert "Add me to it again." in notice.text
        assert "ferry" not in notice.text


async def test_command_whose_answer_a_group_refuses_is_told_in_the_direct_chat(home: Path) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-5"]\n') as harness:
        await harness.say("/help")
        for number, command in enumerate(("/facts", "/setup", "/export")):
            await say_refused(harness, command, "42", KICKED, **GROUP, message_id=f"7{number}")
        told = [notice for address, notice in await notices(harness) if address.chat_id == "42"]
        assert ["`telegram:-5` on Telegram" in notice.text for notice in told] == [True] * 3


async def test_answer_refused_in_a_topic_is_told_the_owner_once_a_day_for_each_person(
    home: Path,
) -> None:
    model = ScriptedModel(*[says(answer) for answer in ("Good day.", "One.", "Two.", "Three.")])
    topic = {**GROUP, "address": Address(platform="telegram", chat_id="-5", thread_id="7")}
    async with open_gateway(home, model, 'rooms = ["telegram:-5"]\n') as harness:
        await harness.say("hello")
        for number, who in enumerate(("9", "9", "10")):
            sender = Sender(id=who, name=f"Person {who}")
            place = {**topic, "sender": sender, "message_id": f"7{number}"}
            await say_refused(harness, "@mneme when?", who, DELETED, **place)
        told = [notice for address, notice in await notices(harness) if address.chat_id == "42"]
        for notice, name in zip(told, ("“Person 9”", "“Person 10”"), strict=True):
            assert f"a message for {name} in `telegram:-5/7` on Telegram" in notice.text
            assert "The topic was deleted." in notice.text
            assert "One" not in notice.text


async def test_reminder_undeliverable_to_a_deleted_chat_is_sent_to_the_persons_other_platform(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await link(harness)
        await harness.say("/remind in 5 minutes | call Bob", "7")
        await harness.say("yes", "7")
        [job] = await harness.services.jobs.list_visible(
            frozenset({Scope.account("telegram", "7")})
        )
        item = await put_reminder(harness, job.id)
        await harness.delivery.record_failure(item, BLOCKED)
        [(address, notice)] = await notices(harness)
        assert address == on_discord()["address"]
        assert notice.text.endswith("call Bob")


async def test_undeliverable_answer_without_another_chat_stays_listed_for_the_owner(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("The ferry leaves at nine."))) as harness:
        await say_refused(harness, "when does the ferry leave?", "7", BLOCKED)
        assert await notices(harness) == []
        [dead_item] = await harness.services.outbox.list_dead()
        assert dead_item.item.answer == Answer(text="The ferry leaves at nine.")


async def test_incognito_answer_that_is_refused_is_told_nowhere(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("The ferry leaves at nine."))) as harness:
        await link(harness)
        await harness.say("/incognito on", "7")
        await say_refused(harness, "when does the ferry leave?", "7", BLOCKED)
        assert await notices(harness) == []


async def test_notice_that_repeats_an_undelivered_answer_is_erased_with_its_message(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("The ferry leaves at nine."))) as harness:
        await link(harness)
        await say_refused(harness, "when does the ferry leave?", "7", BLOCKED)
        await harness.say("/forget ferry", "7")
        assert "Forgotten" in (await harness.say("yes", "7")).text
        assert not [answer for _, answer in await notices(harness) if "nine" in answer.text]


async def test_notice_of_an_undeliverable_answer_is_stored_only_together_with_its_failure(
    home: Path,
) -> None:
    """After a kill between the two, the answer may arrive, and the notice would be wrong."""
    async with open_gateway(home, ScriptedModel(says("The ferry leaves at nine."))) as harness:
        await link(harness)
        await refuse_changes(harness, "UPDATE OF dead_at ON outbox", "NEW.dead_at IS NOT NULL")
        await say_refused(harness, "when does the ferry leave?", "7", BLOCKED)
        assert await notices(harness) == []
        assert await harness.services.outbox.list_dead() == []
        await harness.services.database.execute("DROP TRIGGER refuse")
        await harness.delivery._repeat_failed_writes()
        assert len(await notices(harness)) == 1
        assert len(await harness.services.outbox.list_dead()) == 1


async def test_event_that_cannot_be_handled_is_set_aside_only_together_with_the_owners_notice(
    home: Path,
) -> None:
    """After a kill between the two, the owner would never be told."""
    async with open_gateway(home) as harness:
        await harness.say("hello")
        inbox = harness.services.inbox
        entry_id = await inbox.accept(harness.inbound("odd", "7"), harness.services.clock.now())
        assert entry_id is not None
        await refuse_changes(harness, "INSERT ON outbox", "NEW.key LIKE 'dead:%'")
        with pytest.raises(StoreError):
            await inbox.store_dead_letter("telegram", 5, {"update_id": 5}, "odd")
        with pytest.raises(StoreError):
            await inbox.close_as_dead_letter(entry_id, "telegram", "odd")
        assert await inbox.list_dead_letters() == []
        assert [entry.id for entry in await inbox.list_waiting()] == [entry_id]
        await harness.services.database.execute("DROP TRIGGER refuse")
        await inbox.close_as_dead_letter(entry_id, "telegram", "odd")
        await inbox.store_dead_letter("telegram", 5, {"update_id": 5}, "odd")
        [(address, notice)] = await notices(harness)
        assert address == Address(platform="telegram", chat_id="42")
        assert notice.text == texts.SET_ASIDE.format(platform="Telegram")


async def refuse_changes(harness: GatewayHarness, change: str, condition: str) -> None:
    """Make state.db refuse a kind of change, until the trigger is dropped."""
    await harness.services.database.execute(
        f"CREATE TRIGGER refuse BEFORE {change} WHEN {condition} "
        "BEGIN SELECT RAISE(ABORT, 'the process was killed'); END"
    )


async def put_reminder(harness: GatewayHarness, job_id: int) -> OutboxItem:
    """Put the message of a job's run into the outbox, and return the item."""
    item = OutboxItem(
        key=f"job:{job_id}:2026-05-03T09:00:00+00:00",
        kind="reminder",
        address=Address(platform="telegram", chat_id="7"),
        answer=Answer(text="call Bob"),
    )
    await harness.services.outbox.put(item)
    return item
