"""Time is kept: once for each due time, through restarts and kills, late but never lost.

The real scheduler over a real state.db; jobs are due in the past or a few milliseconds ahead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.dates.schedule import Schedule
from core.errors import DeliveryError, Refused, StoreError
from core.store.actions import Actions
from core.store.erasure.epoch import detach_scopes
from core.store.jobs import Job, JobRun, Jobs, RunResult
from core.store.mailbox import OutboxItem
from core.store.ownership.removal import removal_reason
from core.store.sqlite.database import Database
from core.types import Account, Address, Answer, ErasureEpoch
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.scheduler_harness import (
    ANA,
    CHAT,
    NOON,
    ZONE,
    FastScheduler,
    RunningClock,
    SchedulerHarness,
    WatchedJobs,
    lifetime,
)


def _text(outbox_item: OutboxItem) -> str:
    assert outbox_item.answer is not None
    return outbox_item.answer.text


@pytest.fixture
async def life(tmp_path: Path) -> AsyncIterator[SchedulerHarness]:
    async with lifetime(tmp_path) as opened:
        yield opened


async def test_reminder_due_in_a_few_milliseconds_is_delivered_once(life: SchedulerHarness) -> None:
    job = await life.add(due_at=life.clock.now() + timedelta(milliseconds=150))
    assert job.next_at is not None
    async with life.listening():
        (outbox_item,) = await life.woken()
        assert life.clock.now() >= job.next_at
        assert (outbox_item.kind, outbox_item.address, _text(outbox_item)) == (
            "reminder",
            CHAT,
            "⏰ Reminder 1: call Bob",
        )
        assert outbox_item.key.startswith(f"job:{job.id}:2026-11-20T12:00:00")
        ended = await life.settled(job)
    assert ended.ended_at is not None
    assert ended.next_at is None
    assert life.sink.admitted == []


async def test_job_added_while_the_scheduler_runs_is_delivered(life: SchedulerHarness) -> None:
    async with life.listening() as cron:
        await cron.reload()
        await life.add()
        await cron.reload()
        await cron.reload()
        assert len(await life.woken()) == 1
    assert life.jobs.queued == 1


async def test_late_reminder_states_how_late_it_is(life: SchedulerHarness) -> None:
    await life.add(due_at=NOON - timedelta(hours=2), text="two hours")
    await life.add(due_at=NOON - timedelta(days=3, hours=4), text="days")
    await life.add(due_at=NOON - timedelta(seconds=60), text="a minute")
    async with life.listening():
        parcels = await life.woken(3)
    assert sorted(outbox_item.answer.text for outbox_item in parcels if outbox_item.answer) == [
        "⏰ Reminder 1 (due 10:00, 2 hours late: I was away): two hours",
        "⏰ Reminder 2 (due Tuesday 17 November 2026 at 08:00, 3 days 4 hours late: I was away): days",
        "⏰ Reminder 3: a minute",
    ]


async def test_reminders_due_while_the_process_was_down_come_in_order_of_their_due_times(
    life: SchedulerHarness,
) -> None:
    for hours in (5, 6, 3, 4, 2, 1):
        due_at = NOON - timedelta(hours=hours)
        await life.add(due_at=due_at, text=f"{hours} hours ago")
    # Its last due time counts, not the first one that was missed.
    hourly = Schedule(zone=ZONE, every_s=3600, start_at=NOON - timedelta(days=1, minutes=30))
    await life.add(schedule=hourly, due_at=NOON - timedelta(hours=9, minutes=30), text="hourly")
    async with life.listening():
        parcels = await life.woken(7)
    words = [
        outbox_item.answer.text.split(": ")[-1] for outbox_item in parcels if outbox_item.answer
    ]
    assert words == [f"{hours} hours ago" for hours in (6, 5, 4, 3, 2, 1)] + ["hourly"]


async def test_several_missed_runs_of_a_job_become_one_late_reminder(
    life: SchedulerHarness,
) -> None:
    daily = Schedule(zone=ZONE, cron="0 9 * * *")
    job = await life.add(schedule=daily, due_at=datetime(2026, 11, 15, 9, tzinfo=UTC))
    async with life.listening():
        (outbox_item,) = await life.woken()
        row = await life.settled(job)
    assert _text(outbox_item) == "⏰ Reminder 1 (due 09:00, 3 hours late: I was away): call Bob"
    assert outbox_item.key == f"job:{job.id}:2026-11-20T09:00:00+00:00"
    assert row.ended_at is None
    assert row.next_at == datetime(2026, 11, 21, 9, tzinfo=UTC)


async def test_interval_job_that_missed_runs_continues_at_times_counted_from_its_start(
    life: SchedulerHarness,
) -> None:
    hourly = Schedule(zone=ZONE, every_s=3600, start_at=NOON - timedelta(hours=5, minutes=30))
    job = await life.add(schedule=hourly, due_at=NOON - timedelta(hours=4, minutes=30))
    async with life.listening():
        await life.woken()
        row = await life.settled(job)
    assert row.next_at == NOON + timedelta(minutes=30)


async def test_repeated_job_is_delivered_at_each_due_time(life: SchedulerHarness) -> None:
    every = Schedule(zone=ZONE, every_s=60, start_at=NOON - timedelta(seconds=60))
    job = await life.add(schedule=every, due_at=NOON)
    async with life.listening(life.made(life.jobs, FastScheduler)):
        for count in (1, 2, 3):
            await life.woken(count)
            job = await life.settled(job)
            assert job.next_at == NOON + timedelta(seconds=60 * count)
            life.clock.advance(seconds=60 if count < 3 else 0)
    assert life.jobs.queued == 3


async def test_reminder_missed_while_the_machine_slept_is_sent_afterwards(
    life: SchedulerHarness,
) -> None:
    """Timers stand still meanwhile; the clock is looked at now and then all the same."""
    await life.add(due_at=life.clock.now() + timedelta(hours=1))
    async with life.listening(life.made(life.jobs, FastScheduler)) as cron:
        await cron.reload()
        life.clock.advance(hours=3)
        (outbox_item,) = await life.woken()
    assert _text(outbox_item) == "⏰ Reminder 1 (due 13:00, 2 hours late: I was away): call Bob"


async def test_paused_and_removed_reminders_are_never_delivered(life: SchedulerHarness) -> None:
    soon = life.clock.now() + timedelta(hours=1)
    paused = await life.add(text="paused", due_at=soon)
    removed = await life.add(text="removed", due_at=soon)
    beside = await life.add(text="behind the back of the scheduler", due_at=soon)
    kept = await life.add(text="kept", due_at=soon + timedelta(hours=1))
    mine = frozenset((ANA,))
    async with life.listening(life.made(life.jobs, FastScheduler)) as cron:
        await life.appointments.change("pause", paused.id, mine)
        await life.appointments.change("remove", removed.id, mine)
        await cron.reload()
        await life.jobs.update(beside.id, paused_at=NOON)
        life.clock.advance(hours=2)
        (outbox_item,) = await life.woken()
        await life.settled(kept)
    assert _text(outbox_item) == "⏰ Reminder 4: kept"
    assert life.jobs.queued == 1


@pytest.mark.parametrize("is_prompt", [False, True])
async def test_job_of_a_person_without_access_is_paused_with_its_reason(
    life: SchedulerHarness, is_prompt: bool
) -> None:
    account = Account(platform="telegram", user_id="7")
    daily = Schedule(zone=ZONE, cron="0 9 * * *")
    job = await life.add(schedule=daily, account=account, is_prompt=is_prompt)
    life.removed.add(account)
    async with life.listening():
        row = await life.settled(job)
    assert (row.paused_at is not None, row.pause_reason) == (True, removal_reason())
    assert (life.jobs.queued, life.sink.admitted) == (0, [])
    assert f"[paused: {removal_reason()}]" in life.appointments.describe_job(row)
    # Let in again, they go on by themselves.
    life.removed.clear()
    assert "[paused" not in await life.appointments.change("resume", job.id, frozenset((ANA,)))
    resumed = await life.jobs.get(job.id)
    assert resumed is not None
    assert (resumed.paused_at, resumed.pause_reason) == (None, None)


async def test_answer_to_a_scheduled_question_is_not_sent_to_a_person_removed_meanwhile(
    life: SchedulerHarness,
) -> None:
    account = Account(platform="telegram", user_id="7")
    job = await life.add(account=account, is_prompt=True)
    reply = life.cron.reply(Address(platform="cron", chat_id=str(job.id)))
    life.removed.add(account)
    reply.begin(ListRecord("turn"))
    with pytest.raises(DeliveryError, match="no longer has access"):
        await reply.finish(Answer(text="Here it is"))
    assert life.said == []


async def test_moved_job_is_delivered_at_its_new_time(life: SchedulerHarness) -> None:
    job = await life.add(due_at=NOON + timedelta(hours=1))
    async with life.listening() as cron:
        await life.appointments.change("run", job.id, frozenset((ANA,)))
        moved = await life.jobs.get(job.id)
        assert moved is not None
        await cron.reload()
        (outbox_item,) = await life.woken()
        row = await life.settled(moved)
    assert _text(outbox_item) == "⏰ Reminder 1: call Bob"
    assert row.next_at == NOON + timedelta(hours=1)


async def test_scheduler_that_listens_again_after_a_failure_delivers_later_reminders(
    life: SchedulerHarness,
) -> None:
    async with life.listening() as cron:
        await life.add(text="first")
        await cron.reload()
        await life.woken()
    async with life.listening() as cron:
        await life.add(text="second")
        await cron.reload()
        parcels = await life.woken(2)
    assert [_text(outbox_item) for outbox_item in parcels] == ["⏰ Reminder 2: second"]


async def test_a_reminder_has_buttons_that_its_person_may_press_for_a_week(
    tmp_path: Path,
) -> None:
    account = Account(platform="telegram", user_id="42")
    async with lifetime(tmp_path) as life:
        await life.add(account=account)
        async with life.listening():
            (outbox_item,) = await life.woken()
    assert outbox_item.answer is not None
    buttons = outbox_item.answer.buttons
    commands = [f"{button.command.name} {button.command.arguments}" for button in buttons]
    assert commands == [
        "cron done 1",
        "snooze 1 10 minutes",
        "snooze 1 1 hour",
        "snooze 1 tomorrow",
        "cron edit 1",
    ]
    async with Database.open(tmp_path / "state.db") as database:
        actions = Actions(database, life.clock)
        for button in buttons:
            action = await actions.find(button.id, life.clock.now() + timedelta(days=6))
            assert action is not None, "the next process knows the button"
            assert (action.account, action.scope, action.command) == (account, ANA, button.command)


async def test_a_reminder_that_is_snoozed_during_its_run_is_not_ended(
    life: SchedulerHarness,
) -> None:
    later = NOON + timedelta(minutes=10)
    job = await life.add()
    await life.jobs.reopen(job.id, later)
    await life.jobs.finish(job, NOON, None)
    snoozed = await life.jobs.get(job.id)
    assert snoozed is not None
    assert (snoozed.next_at, snoozed.schedule.at, snoozed.ended_at) == (later, later, None)


class _Dying(Jobs):
    """Jobs of a process that is killed before a run is finished."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.is_dead = asyncio.Event()

    async def finish(self, job: Job, now: datetime, next_at: datetime | None) -> None:
        self.is_dead.set()
        await asyncio.Event().wait()

    async def queue_runs(self, runs: Sequence[JobRun], now: datetime) -> list[RunResult | Refused]:
        self.is_dead.set()
        await asyncio.Event().wait()
        return []


@pytest.mark.parametrize("is_prompt", [False, True])
async def test_job_run_interrupted_by_a_kill_is_delivered_exactly_once(
    tmp_path: Path, is_prompt: bool
) -> None:
    clock, known = RunningClock(), set[str]()
    async with (
        lifetime(tmp_path, clock, known) as life,
        Database.open(tmp_path / "state.db") as other,
    ):
        job = await life.add(is_prompt=is_prompt)
        dying = _Dying(other)
        cron = life.made(dying)
        await cron.open()
        intake = asyncio.create_task(cron.listen(life.sink, ()))
        async with asyncio.timeout(30):
            await dying.is_dead.wait()
        intake.cancel()
        await asyncio.wait([intake])
        await cron.close()
        assert (await life.jobs.get(job.id)) == job
        delivered = await life.parcels()
    clock.advance(hours=1)
    async with lifetime(tmp_path, clock, known) as life:
        await life.outbox.recover(clock.now())
        async with life.listening():
            row = await life.settled(job)
        again = await life.parcels()
    assert row.ended_at is not None
    assert len(known) == int(is_prompt)
    assert delivered == []
    assert len(again) == int(not is_prompt)


async def test_repeated_job_run_does_not_make_a_claimed_delivery_due_again(
    life: SchedulerHarness,
) -> None:
    """The worker has claimed it when the run that was cut short is done again."""
    job = await life.add()
    key = f"job:{job.id}:2026-11-20T11:59:50+00:00"
    answer = Answer(text="⏰ Reminder 1: call Bob")
    await life.outbox.put(
        OutboxItem(key=key, kind="reminder", address=CHAT, answer=answer, next_at=NOON)
    )
    await life.outbox.claim(key)
    async with life.listening():
        assert await life.woken() == []


async def test_a_restart_delivers_what_was_planned_before(tmp_path: Path) -> None:
    clock = RunningClock()
    async with lifetime(tmp_path, clock) as life:
        due_at = clock.now() + timedelta(minutes=20)
        job = await life.add(due_at=due_at)
        async with life.listening() as cron:
            await cron.reload()
    clock.advance(hours=3)
    async with lifetime(tmp_path, clock) as life:
        async with life.listening():
            (outbox_item,) = await life.woken()
            await life.settled(job)
        assert (
            _text(outbox_item)
            == "⏰ Reminder 1 (due 12:20, 2 hours 40 minutes late: I was away): call Bob"
        )
    async with lifetime(tmp_path, clock) as life, life.listening() as cron:
        await cron.reload()
        assert await life.jobs.list_active() == []
        assert await life.parcels() == []


async def test_an_error_of_the_store_is_tried_again(life: SchedulerHarness) -> None:
    job = await life.add(is_prompt=True)
    life.sink.errors = [StoreError("the disk is full"), StoreError("the disk is full")]
    async with life.listening(life.made(life.jobs, FastScheduler)):
        await life.watch.until(lambda: life.sink.served == 1)
        await life.settled(job)
    assert life.said == [(CHAT, "CALL BOB")]


async def test_scheduled_question_is_answered_once_even_if_recording_its_end_fails_first(
    life: SchedulerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, errors, finish = (
        await life.add(is_prompt=True),
        [StoreError("the disk is full")],
        life.jobs.finish,
    )

    async def refused(job: Job, now: datetime, next_at: datetime | None) -> None:
        if errors:
            raise errors.pop()
        await finish(job, now, next_at)

    monkeypatch.setattr(life.jobs, "finish", refused)
    async with life.listening(life.made(life.jobs, FastScheduler)):
        assert (await life.settled(job)).ended_at is not None
        await life.watch.until(lambda: life.sink.served == 1)
    assert life.said == [(CHAT, "CALL BOB")]


async def test_scheduler_delivers_nothing_before_listening_and_after_closing(
    life: SchedulerHarness,
) -> None:
    await life.add()
    await life.cron.reload()
    await life.cron.close()
    await life.cron.open()
    await life.cron.reload()
    await life.cron.close()
    await life.cron.close()
    assert life.jobs.queued == 0
    assert life.cron.platform == "cron"
    assert "scheduled" in life.cron.hint


class _FailingJobs(WatchedJobs):
    """Jobs whose transaction fails if it contains the run of a job with this text."""

    async def queue_runs(self, runs: Sequence[JobRun], now: datetime) -> list[RunResult | Refused]:
        if any(run.job.text == "broken" for run in runs):
            raise StoreError("this row can't be written")
        return await super().queue_runs(runs, now)


async def test_broken_reminder_of_a_batch_delays_no_other(
    life: SchedulerHarness, tmp_path: Path
) -> None:
    for text in ("first", "broken", "last"):
        await life.add(text=text)
    async with Database.open(tmp_path / "state.db") as database:
        jobs = _FailingJobs(database, life.watch)
        async with life.listening(life.made(jobs)):
            await life.watch.until(lambda: jobs.queued == 2)
        parcels = await life.parcels()
    assert [_text(parcel) for parcel in parcels] == ["⏰ Reminder 1: first", "⏰ Reminder 3: last"]
    assert [job.text for job in await life.jobs.list_active()] == ["broken"]


async def test_reminders_of_a_batch_that_were_changed_or_erased_meanwhile_are_not_sent(
    life: SchedulerHarness,
) -> None:
    kept, snoozed, reworded, erased = [await life.add(text=f"number {n}") for n in range(4)]
    old_view = await life.load_view(erased)
    await life.jobs._database.write(lambda connection: detach_scopes(connection, frozenset({ANA})))
    view = await life.load_view(kept)

    def run_of(job: Job, epoch: ErasureEpoch) -> JobRun:
        item = OutboxItem(
            key=f"job:{job.id}",
            kind="reminder",
            address=CHAT,
            answer=Answer(text=job.text),
            next_at=NOON,
        )
        return JobRun(job=job, next_at=None, item=item, actions=(), epoch=epoch)

    await life.jobs.reopen(snoozed.id, NOON + timedelta(minutes=10))
    await life.jobs.update(reworded.id, text="another text")
    runs = [run_of(job, view.epoch) for job in (kept, snoozed, reworded)]
    runs.append(run_of(erased, old_view.epoch))
    results = await life.jobs.queue_runs(runs, NOON)
    assert results == [RunResult.QUEUED, *[RunResult.CHANGED] * 3]
    assert [parcel.key for parcel in await life.parcels()] == [f"job:{kept.id}"]


async def test_sixty_jobs_due_at_once_are_each_delivered_once(life: SchedulerHarness) -> None:
    jobs: Sequence[Job] = [await life.add(text=f"number {number}") for number in range(60)]
    async with life.listening():
        parcels = await life.woken(60)
        for job in jobs:
            await life.settled(job)
    assert len({outbox_item.key for outbox_item in parcels}) == 60
