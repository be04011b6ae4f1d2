"""What is planned in a room is changed by who planned it, or by the owner."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.types import Address, Answer, Scope
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, notices, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

ROOM = Scope.group("telegram", "-100")


async def in_room(harness: GatewayHarness, text: str, who: str) -> KeptReply:
    address = Address(platform="telegram", chat_id="-100")
    return await harness.say(text, who, address=address, scope=ROOM, is_direct=False)


async def test_reminder_in_a_group_can_be_changed_by_its_author_and_the_owner_only(
    home: Path,
) -> None:
    async with open_gateway(
        home, OfflineModel("UTC"), options='rooms = ["telegram:-100"]\n'
    ) as harness:
        await in_room(harness, "/remind tomorrow at 9 call Ana", "42")
        await in_room(harness, "/remind tomorrow at 10 feed the cat", "7")
        for action in ("pause", "resume", "remove"):
            assert (
                "only my owner and the person"
                in (await in_room(harness, f"/cron {action} 1", "7")).text
            )
        assert (
            "only my owner and the person" in (await in_room(harness, "/cron remove 2", "8")).text
        )
        assert "call Ana" in (await in_room(harness, "/cron", "7")).text
        assert (
            "add, pause, resume, run and remove" in (await in_room(harness, "/cron frob", "7")).text
        )
        assert (
            "Which question should I answer then?"
            in (await in_room(harness, "/cron add daily at 8", "7")).text
        )
        assert (await in_room(harness, "/cron pause 2", "7")).text.startswith("Paused")
        assert (await in_room(harness, "/cron remove 2", "42")).text.startswith("Removed")


async def test_a_forwarded_request_is_planned_after_a_yes(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        asked = await harness.say("remind me tomorrow at 9:00 to pay Bob", origin="forwarded")
        assert "Waiting for your tap" in asked.text
        assert asked.answer is not None
        assert [button.label for button in asked.answer.buttons] == ["Approve 1", "Reject 1"]
        assert await notices(harness) == [], "the answer has told it"
        pending = (await harness.say("/memory pending")).text
        assert "a reminder, for telegram:42; " in pending
        assert "pay Bob" in pending
        assert "Reminder 1 is set for " in (await harness.say("/memory approve 1")).text
        assert "pay Bob" in (await harness.say("/cron")).text


async def test_limit_of_reminders_counts_all_chats_of_an_account(home: Path) -> None:
    options = 'rooms = ["telegram:-100"]\n[limits]\njobs = 2\n'
    async with open_gateway(home, OfflineModel("UTC"), options=options) as harness:
        assert "is set" in (await harness.say("/remind tomorrow at 9 tea", "7")).text
        assert "is set" in (await in_room(harness, "/remind tomorrow at 9 tea", "7")).text
        for say in (harness.say, partial(in_room, harness)):
            assert (
                "You have 2 reminders, which is the maximum"
                in (await say("/remind tomorrow at 10 tea", "7")).text
            )
        assert (
            "You have 2 reminders"
            in (await in_room(harness, "remind me tomorrow at 10 to eat", "7")).text
        )
        assert "is set" in (await in_room(harness, "/remind tomorrow at 9 tea", "8")).text


async def test_scheduled_question_is_refused_if_too_frequent_or_not_allowed(home: Path) -> None:
    options = 'rooms = ["telegram:-100"]\n'
    daily, often = (
        "/cron add daily at 8 | what is new?",
        "/cron add every 10 minutes | what is new?",
    )
    async with open_gateway(home, OfflineModel("UTC"), options=options) as harness:
        assert "is set" in (await harness.say(often, "42")).text
        assert "at least 1 hour apart" in (await harness.say(often, "7")).text
        assert "is set" in (await harness.say(daily, "7")).text
        assert "is set" in (await in_room(harness, daily, "7")).text, "let in by himself"
        assert "Only people whom my owner has approved" in (await in_room(harness, daily, "8")).text
        assert "is set" in (await in_room(harness, "/remind daily at 8 tea", "8")).text
        assert (
            "Only my owner can run a scheduled question"
            in (await harness.say("/cron run 2", "7")).text
        )
        assert "Due now" in (await harness.say("/cron run 1", "42")).text
    async with open_gateway(
        home, OfflineModel("UTC"), options=f"{options}[limits]\nroom_questions = true\n"
    ) as harness:
        assert "at least 1 hour apart" in (await in_room(harness, often, "8")).text
        assert "is set" in (await in_room(harness, daily, "8")).text


@pytest.mark.parametrize("kind", ["reminder", "question"])
async def test_running_job_cannot_create_another_job(home: Path, kind: str) -> None:
    wish = {"action": "add", "moment": "2030-01-01T09:00", "task": "again", "kind": kind}
    model = ScriptedModel(
        calls(("reminder", wish), ("memory", {"target": "user", "action": "list"})), says("/remind")
    )
    async with open_gateway(home, model) as harness:
        await harness.say("/cron add daily at 8 | /remind in 5 minutes again")
        scheduled = Address(platform="cron", chat_id="1")
        for text in (
            "/cron add in 5 minutes | again",
            "/remind in 5 minutes again",
            "remind me in 5 minutes of tea",
        ):
            await harness.say(text, address=scheduled, command=None)
        assert "can't set reminders" in str(model.requests[1].messages)
        assert len(await harness.services.jobs.list_active()) == 1
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me in 5 minutes of tea", address=scheduled, command=None)
        assert len(await harness.services.jobs.list_active()) == 1


async def deliver_due(harness: GatewayHarness) -> list[Answer]:
    """Run the scheduler once over what is due, and return the reminders that it delivers."""
    scheduler = harness.path.scheduler
    await scheduler.open()
    listening = asyncio.create_task(scheduler.listen(harness.admission, ()))
    delivered: list[Answer] = []
    async with asyncio.timeout(30):
        while not delivered:
            for item in await harness.services.outbox.list_due(harness.services.clock.now()):
                assert item.answer is not None
                if item.kind == "reminder":
                    delivered.append(item.answer)
                await harness.services.outbox.mark_done(item.key)
            await asyncio.sleep(0.01)
    listening.cancel()
    await asyncio.wait([listening])
    await scheduler.close()
    return delivered


async def _press(harness: GatewayHarness, answer: Answer, label: str, who: str = "42") -> str:
    (button,) = [button for button in answer.buttons if button.label == label]
    return (await harness.say(button.id, who, kind="action", command=None)).text


async def test_a_delivered_reminder_is_snoozed_and_then_done_by_its_buttons(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("/remind in 1 day call Ana")
        await harness.say("/cron run 1")
        (first,) = await deliver_due(harness)
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        assert "There is no reminder 1" not in await _press(harness, first, "1 h")
        (job,) = await harness.services.jobs.list_active()
        assert job.next_at is not None
        wait_s = (job.next_at - harness.services.clock.now()).total_seconds()
        assert 3500 < wait_s <= 3600
        assert "Done: “call Ana”" in await _press(harness, first, "Done")
        assert await harness.services.jobs.list_active() == []
        tomorrow = await _press(harness, first, "Tomorrow")
        assert tomorrow.startswith("I'll remind you again on ")
        assert "“call Ana”" in tomorrow


async def test_snoozing_a_recurring_reminder_adds_one_time_and_keeps_its_recurrence(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("/remind every monday at 8:30 stand-up")
        (before,) = await harness.services.jobs.list_active()
        await harness.say("/cron run 1")
        (answer,) = await deliver_due(harness)
        assert "Reminder 2 is set for " in await _press(harness, answer, "10 min")
        weekly, extra = await harness.services.jobs.list_active()
        assert (weekly.next_at, weekly.text) == (before.next_at, "stand-up")
        assert extra.text == "stand-up"
        assert extra.schedule.at is not None


async def test_snooze_without_a_number_means_the_reminder_delivered_last(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        assert "No reminder was delivered here" in (await harness.say("/snooze")).text
        for words in ("2 yesterday", "2 1000000 years"):
            assert "I don't understand the time" in (await harness.say(f"/snooze {words}")).text
        await harness.say("/remind in 1 day call Ana")
        await harness.say("/remind in 1 day feed the cat")
        await harness.say("/cron run 2")
        await deliver_due(harness)
        assert "“feed the cat”" in (await harness.say("/snooze 20 minutes")).text
        assert "“feed the cat”" in (await harness.say("/snooze")).text
        assert "“call Ana”" in (await harness.say("/snooze 1 tomorrow")).text
        assert "I don't understand the time" in (await harness.say("/snooze whenever")).text


async def test_a_recurring_reminder_is_skipped_once(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("/remind every monday at 8:30 stand-up")
        await harness.say("/remind in 1 day call Ana")
        (before, _) = await harness.services.jobs.list_active()
        assert (await harness.say("/cron skip 1")).text.startswith("Skipped Monday ")
        (after, _) = await harness.services.jobs.list_active()
        assert before.next_at is not None
        assert after.next_at is not None
        assert 6 <= (after.next_at - before.next_at).days <= 7
        assert "is due only once" in (await harness.say("/cron skip 2")).text


async def test_in_a_group_only_its_author_and_the_owner_snooze_a_reminder(home: Path) -> None:
    async with open_gateway(
        home, OfflineModel("UTC"), options='rooms = ["telegram:-100"]\n'
    ) as harness:
        await in_room(harness, "/remind in 1 day feed the cat", "7")
        assert (
            "only my owner and the person" in (await in_room(harness, "/snooze 1 1 hour", "8")).text
        )
        assert "“feed the cat”" in (await in_room(harness, "/snooze 1 1 hour", "42")).text
        assert "“feed the cat”" in (await in_room(harness, "/snooze 1 1 hour", "7")).text
