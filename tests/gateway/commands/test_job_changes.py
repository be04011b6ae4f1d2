"""/cron end, count and target, and the ready-made questions of /cron brief and /cron checkin."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.store.jobs import Job
from core.types import Address
from gateway import services
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

OFFLINE = OfflineModel("UTC")


async def _job(harness: GatewayHarness, number: int = 1) -> Job:
    job = await harness.services.jobs.get(number)
    assert job is not None
    return job


async def _make_due(harness: GatewayHarness, number: int) -> None:
    due_at = harness.services.clock.now() - timedelta(seconds=1)
    await harness.services.jobs.update(number, next_at=due_at)


@pytest.mark.parametrize(
    ("words", "end"),
    [
        ("31 December 2031", "UNTIL=20311231T235900Z"),
        ("31.12.2031", "UNTIL=20311231T235900Z"),
        ("bis 31. Dezember 2031", "UNTIL=20311231T235900Z"),
        ("1 July 2031 at 18:00", "UNTIL=20310701T170000Z"),
    ],
)
async def test_end_limits_a_recurring_reminder_and_is_read_back(
    home: Path, words: str, end: str
) -> None:
    async with open_gateway(home, OFFLINE) as harness:
        await harness.say("/remind every monday at 8:30 | stand-up")
        answer = await harness.say(f"/cron end 1 {words}")
        assert answer.text.startswith("Reminder 1 is set for every Monday at 08:30 until ")
        assert (await _job(harness)).schedule.recurrences[0].endswith(f"BYDAY=MO;{end}")
        await harness.say("/cron end 1 never")
        assert (await _job(harness)).schedule.recurrences[0].endswith("BYDAY=MO")


async def test_end_and_snooze_are_read_in_the_persons_language(home: Path) -> None:
    async with open_gateway(home, OFFLINE) as harness:
        await harness.say("/remind every monday at 8:30 | stand-up")
        await harness.say("/language zh")
        await harness.say("/cron end 1 5/3")
        # In Chinese, the month comes first.
        assert "0503T" in (await _job(harness)).schedule.recurrences[0].partition("UNTIL=")[2]
        await harness.say("/language de")
        await harness.say("/cron end 1 nie")
        assert (await _job(harness)).schedule.recurrences[0].endswith("BYDAY=MO")
        snoozed = await harness.say("/snooze 1 morgen")
        assert "08:30" in snoozed.text
        assert (await _job(harness, 2)).text == "stand-up"


async def test_count_of_a_reminder_with_two_rules_limits_its_occurrences_in_total(
    home: Path,
) -> None:
    async with open_gateway(home, OFFLINE) as harness:
        await harness.say("/remind 0 9 13 * 5 | beware")
        before = harness.services.appointments.list_next_moments(await _job(harness), 5)
        await harness.say("/cron count 1 4")
        after = harness.services.appointments.list_next_moments(await _job(harness), 10)
        assert after == before[:4]


async def test_counted_reminder_keeps_its_count_when_it_moves_to_a_later_time(home: Path) -> None:
    async with open_gateway(home, OFFLINE) as harness:
        await harness.say("/remind daily at 9 | tea")
        await harness.say("/cron count 1 3")
        await harness.say("/cron edit 1 11:00")
        moments = harness.services.appointments.list_next_moments(await _job(harness), 5)
    assert len(moments) == 3


@pytest.mark.parametrize(
    ("line", "command", "sentence"),
    [
        ("tomorrow at 9 | tea", "end 1 31 December 2031", "is due only once"),
        ("daily at 9 | tea", "end 1", "Say when it ends"),
        ("daily at 9 | tea", "end 1 soonish", "I don't understand when to end"),
        ("daily at 9 | tea", "end 1 1 January 2020", "isn't due before that"),
        ("daily at 9 | tea", "count 1 often", "Say when it ends"),
        ("daily at 9 | tea", "count 1 0", "Say when it ends"),
        ("0 9 L * * | tea", "end 1 31 December 2031", "which can't have an end"),
        ("daily at 9 | tea", "end 7 31 December", "There is no reminder 7 here."),
        ("daily at 9 | tea", "target 1 telegram:-5", "can't be delivered there"),
    ],
)
async def test_impossible_end_of_a_recurring_reminder_is_refused_and_changes_nothing(
    home: Path, line: str, command: str, sentence: str
) -> None:
    async with open_gateway(home, OFFLINE) as harness:
        await harness.say(f"/remind {line}")
        before = await _job(harness)
        assert sentence in (await harness.say(f"/cron {command}")).text
        assert await _job(harness) == before


async def test_target_moves_a_reminder_to_another_topic_and_not_to_another_person(
    home: Path,
) -> None:
    topic = Address(platform="telegram", chat_id="42", thread_id="7")
    async with open_gateway(home, OFFLINE) as harness:
        await harness.say("/remind daily at 9 | tea")
        await harness.say("hello", address=topic)
        await harness.say("hello", "7")
        listing = (await harness.say("/cron target 1")).text
        assert f"`{topic.key}`" in listing
        assert "telegram:7`" not in listing
        moved = await harness.say("/cron target 1 here", address=topic)
        assert moved.text == f"From now on, reminder 1 is delivered to `{topic.key}`."
        assert (await _job(harness)).target == topic
        await harness.say("/cron target 1 telegram:42")
        assert (await _job(harness)).target == Address(platform="telegram", chat_id="42")


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch, clock: SteadyClock) -> None:
    """It is Friday noon, so that the day is long enough."""
    monkeypatch.setattr(services, "WallClock", lambda: clock)


@pytest.mark.usefixtures("noon")
async def test_brief_without_a_model_lists_the_day_and_what_waits(home: Path) -> None:
    async with open_gateway(home, OFFLINE) as harness:
        assert "is set for every day at 07:30" in (await harness.say("/cron brief")).text
        assert "You have that already" in (await harness.say("/cron brief 8:00")).text
        await harness.say("/remind every 10 minutes | stretch")
        await harness.say("/remind tomorrow at 23:59 | not today")
        brief = await _run_without_model(harness, 1)
        assert brief.startswith("Today, ")
        assert "stretch" in brief
        assert "not today" not in brief


async def test_checkin_without_a_model_asks_how_things_are_going(home: Path) -> None:
    async with open_gateway(home, OFFLINE) as harness:
        assert "every Monday" in (await harness.say("/cron checkin mondays at 18:00")).text
        assert (await _run_without_model(harness, 1)).startswith("How are things going?")


@pytest.mark.usefixtures("noon")
async def test_brief_with_a_model_gives_it_the_facts_of_the_day(home: Path) -> None:
    model = ScriptedModel(says("Good morning!"))
    async with open_gateway(home, model) as harness:
        await harness.say("/cron brief 7:00")
        await harness.say("/remind every 10 minutes | stretch")
        await _make_due(harness, 1)
        scheduler = harness.path.scheduler
        scheduler._sink = harness.admission
        await scheduler.reload()
        await harness.turns.drain(10)
        question = str(model.requests[-1].messages[-1])
        assert "Write my morning brief" in question
        assert "stretch" in question


async def _run_without_model(harness: GatewayHarness, number: int) -> str:
    """Make a job due, run the gateway's own scheduler, and return what it put into the outbox."""
    await _make_due(harness, number)
    scheduler = harness.path.scheduler
    scheduler._sink = harness.admission
    await scheduler.reload()
    texts = [
        item.answer.text
        for item in await harness.services.outbox.list_due(harness.services.clock.now())
        if item.answer is not None and item.kind == "reminder"
    ]
    (text,) = texts
    return text


@pytest.mark.usefixtures("noon")
@pytest.mark.parametrize(
    "changes",
    [("/cron edit 1 11:00",), ("/cron pause 1", "/cron resume 1"), ("/timezone Madrid", "yes")],
)
async def test_skipped_time_stays_skipped_after_a_change(
    home: Path, changes: tuple[str, ...]
) -> None:
    async with open_gateway(home, OFFLINE) as harness:
        await harness.say("/remind daily at 8:30 | stretch")
        await harness.say("/cron skip 1")
        skipped = (await _job(harness)).next_at
        assert skipped is not None
        for change in changes:
            await harness.say(change)
        next_at = (await _job(harness)).next_at
        assert next_at is not None
        assert next_at.date() == skipped.date()
