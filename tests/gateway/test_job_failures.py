"""Scheduled questions that fail, and questions that are due at the same full hour."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.dates.schedule import Schedule
from core.errors import ModelError
from core.models.wrappers import FallbackModel
from core.store.jobs import Job
from tests.end_to_end.test_job_messages import planned, run
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scheduler_harness import NOON, ZONE, RunningClock, lifetime
from tests.fixtures.scripted_model import ScriptedModel, says

DAILY = Schedule(
    zone=ZONE, recurrences=("DTSTART;TZID=Europe/Lisbon:20261101T080000\nRRULE:FREQ=DAILY",)
)
FAILED_FIVE_TIMES = "It failed 5 times in a row. The last reason: The model is away."


async def _run_once(harness: GatewayHarness, job: Job) -> list[str]:
    due_at = harness.services.clock.now() - timedelta(seconds=1)
    await harness.services.jobs.update(job.id, next_at=due_at)
    return await run(harness)


@pytest.mark.slow
async def test_question_that_fails_says_why_once_quotes_no_memory_and_is_paused_after_five_times(
    home: Path,
) -> None:
    failing = ScriptedModel(says("Noted."), *[ModelError("The model is away.")] * 5)
    model = FallbackModel(failing, OfflineModel("UTC"), SteadyClock())
    async with open_gateway(home, model) as harness:
        await harness.say("The zeppelin news come at nine.")
        job = await planned(harness, "any zeppelin news?", is_prompt=True, schedule=DAILY)
        deliveries = [await _run_once(harness, job) for _ in range(5)]
        ((first,), *others, (last,)) = deliveries
        assert "The model is away." in first
        assert "I'll try again at its next times." in first
        assert "come at nine" not in str(deliveries)
        assert others == [[], [], []]
        assert f"I paused reminder 1: {FAILED_FIVE_TIMES}" in last
        paused = await harness.services.jobs.get(job.id)
        assert paused is not None
        assert paused.failures == 5
        assert (paused.pause_reason or "").startswith(FAILED_FIVE_TIMES)
        await harness.say("/cron resume 1")
        resumed = await harness.services.jobs.get(job.id)
        assert resumed is not None
        assert (resumed.failures, resumed.paused_at) == (0, None)


@pytest.mark.slow
async def test_repeated_job_failure_is_reported_again_only_after_a_success(
    home: Path,
) -> None:
    away = ModelError("The model is away.")
    model = ScriptedModel(says("ok"), away, away, says("It rains."), away)
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        job = await planned(harness, "rain?", is_prompt=True, schedule=DAILY)
        counts = []
        for _ in range(4):
            deliveries = await _run_once(harness, job)
            current = await harness.services.jobs.get(job.id)
            assert current is not None
            counts.append((len(deliveries), current.failures))
        assert counts == [(1, 1), (0, 2), (1, 0), (1, 1)]


@pytest.mark.slow
async def test_daily_brief_without_the_model_lists_the_reminders_and_names_the_error_once(
    home: Path,
) -> None:
    away = ModelError("The model is away.")
    async with open_gateway(home, ScriptedModel(says("ok"), away, away)) as harness:
        await harness.say("hello")
        await harness.say("/cron brief 7:00")
        (job,) = await harness.services.jobs.list_active()
        first = await _run_once(harness, job)
        second = await _run_once(harness, job)
        assert "The model is away." in str(first)
        assert "The model is away." not in str(second)
        assert all("You have no reminders today." in str(texts) for texts in (first, second))


async def test_scheduled_questions_of_one_full_hour_are_spread_over_two_minutes_unlike_reminders(
    tmp_path: Path,
) -> None:
    clock = RunningClock(NOON + timedelta(milliseconds=10))
    hourly = Schedule(zone=ZONE, recurrences=("DTSTART:20261101T080000Z\nRRULE:FREQ=HOURLY",))
    async with lifetime(tmp_path, clock) as life:
        questions = [await life.add(schedule=hourly, due_at=NOON, is_prompt=True) for _ in range(4)]
        for _ in range(3):
            await life.add(schedule=hourly, due_at=NOON)
        async with life.listening():
            await life.settled(questions[0])
            await life.watch.until(lambda: life.jobs.queued == 3 and life.sink.served == 1)
            rows = [await life.jobs.get(job.id) for job in questions]
            starts = [row.next_at - NOON for row in rows if row is not None and row.next_at]
            assert starts == [timedelta(seconds=seconds) for seconds in (3600, 30, 60, 90)]
            clock.advance(seconds=91)
            await life.cron.reload()
            await life.watch.until(lambda: life.sink.served == 4)
        assert len(await life.parcels()) == 3
        rows = [await life.jobs.get(job.id) for job in questions]
        assert {row.next_at for row in rows if row is not None} == {NOON + timedelta(hours=1)}


async def test_question_that_is_alone_at_its_hour_or_late_starts_at_once(tmp_path: Path) -> None:
    hourly = Schedule(zone=ZONE, recurrences=("DTSTART:20261101T080000Z\nRRULE:FREQ=HOURLY",))
    async with lifetime(tmp_path, RunningClock(NOON + timedelta(minutes=10))) as life:
        for _ in range(3):
            await life.add(schedule=hourly, due_at=NOON, is_prompt=True)
        async with life.listening():
            await life.watch.until(lambda: life.sink.served == 3)
    (tmp_path / "alone").mkdir()
    async with lifetime(tmp_path / "alone", RunningClock(NOON)) as life:
        await life.add(schedule=hourly, due_at=NOON, is_prompt=True)
        async with life.listening():
            await life.watch.until(lambda: life.sink.served == 1)
