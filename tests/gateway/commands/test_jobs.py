"""What is planned in a room is changed by who planned it, or by the owner."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.types import Address, Scope
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, notices, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.usefixtures("at_once")

ROOM = Scope.group("telegram", "-100")


async def in_room(harness: GatewayHarness, text: str, who: str) -> KeptReply:
    address = Address(platform="telegram", chat_id="-100")
    return await harness.say(text, who, address=address, scope=ROOM, is_direct=False)


async def test_in_a_room_a_plan_is_its_makers_and_the_owners(home: Path) -> None:
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
        assert "It waits for the person to say yes" in asked.text
        [(lane, told)] = await notices(harness)
        assert (lane, told[:21]) == ("telegram:42", "Before I plan somethi")
        pending = (await harness.say("/memory pending")).text
        assert "a reminder, for telegram:42; no one here has typed" in pending
        assert "pay Bob" in pending
        assert "Reminder 1 is set for " in (await harness.say("/memory approve 1")).text
        assert "pay Bob" in (await harness.say("/cron")).text


async def test_what_an_account_may_have_counts_everywhere(home: Path) -> None:
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


async def test_who_may_schedule_questions_and_how_often(home: Path) -> None:
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


@pytest.mark.parametrize("is_prompt", [False, True])
async def test_a_job_makes_no_job_however_it_is_worded(home: Path, is_prompt: bool) -> None:
    wish = {"action": "add", "when": "in 5 minutes", "text": "again", "is_prompt": is_prompt}
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
