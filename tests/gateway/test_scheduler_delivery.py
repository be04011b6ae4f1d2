"""What is due to be asked is asked as an ordinary turn, and said where its job belongs, and nowhere
else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from core.dates.schedule import Schedule
from core.errors import DeliveryError
from core.store.sqlite.database import Database
from core.types import Account, Address, Answer, Scope
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.scheduler_harness import (
    ANA,
    CHAT,
    GROUP,
    NOON,
    ROOM,
    SchedulerHarness,
    lifetime,
)

pytestmark = pytest.mark.slow


@pytest.fixture
async def life(tmp_path: Path) -> AsyncIterator[SchedulerHarness]:
    async with lifetime(tmp_path) as opened:
        yield opened


async def test_scheduled_question_is_asked_and_its_answer_delivered(life: SchedulerHarness) -> None:
    account = Account(platform="telegram", user_id="42")
    job = await life.add(is_prompt=True, text="any news?", account=account)
    async with life.listening():
        await life.watch.until(lambda: life.sink.served == 1)
        row = await life.settled(job)
    ((inbound, _),) = life.sink.admitted
    assert inbound.kind == "message"
    assert inbound.address == Address(platform="cron", chat_id=str(job.id))
    assert (inbound.scope, inbound.text, inbound.is_direct, inbound.is_addressed) == (
        ANA,
        "any news?",
        True,
        True,
    )
    assert (inbound.sender.id, inbound.sender.name, inbound.sender.is_anonymous) == (
        "42",
        "schedule",
        False,
    )
    assert inbound.message_id == f"{job.id}@2026-11-20T11:59:50+00:00"
    assert life.said == [(CHAT, "ANY NEWS?")]
    assert [receipt.key for receipt in life.replies[0].receipts] == [
        f"turn:cron:{job.id}:message:{inbound.message_id}"
    ]
    assert row.ended_at is not None
    assert await life.parcels() == []


async def test_late_scheduled_question_in_a_group_has_a_late_heading_and_is_not_direct(
    life: SchedulerHarness,
) -> None:
    await life.add(
        is_prompt=True, text="news?", target=GROUP, scope=ROOM, due_at=NOON - timedelta(minutes=90)
    )
    async with life.listening():
        await life.watch.until(lambda: life.sink.served == 1)
    assert life.said == [(GROUP, "NEWS?")]
    heading = life.sink.admitted[0][0].heading
    assert heading == "⏰ Question 1 (due 10:30, 1 hour 30 minutes late: I was away): news?"
    assert not life.sink.admitted[0][0].is_direct
    assert life.sink.admitted[0][0].sender.id == "cron"


async def test_scheduled_turn_in_progress_finishes_after_intake_of_new_jobs_was_stopped(
    life: SchedulerHarness,
) -> None:
    await life.add(is_prompt=True)
    life.sink.gate.clear()
    await life.cron.open()
    intake = asyncio.create_task(life.cron.listen(life.sink, ()))
    # The row of the job is seen before its run goes on to the turn.
    await life.watch.until(lambda: life.sink.begun == 1)
    intake.cancel()
    await asyncio.wait([intake])
    late = await life.add(text="too late for this process")
    await life.cron.reload()
    life.sink.gate.set()
    await life.watch.until(lambda: life.sink.served == 1)
    await life.cron.close()
    assert life.said == [(CHAT, "CALL BOB")]
    assert (await life.jobs.get(late.id)) == late
    assert life.jobs.queued == 0


async def test_private_reminder_to_a_chat_that_others_can_read_is_paused_instead_of_delivered(
    life: SchedulerHarness, tmp_path: Path
) -> None:
    job = await life.add()
    async with Database.open(tmp_path / "state.db") as other:
        scope = await other.write(
            lambda connection: connection.execute(
                "INSERT INTO scopes (key) VALUES ('account:telegram:7') RETURNING id"
            ).fetchall()[0]["id"]
        )
        await other.write(
            lambda connection: connection.execute(
                "UPDATE jobs SET scope_id = :scope WHERE id = :id", {"scope": scope, "id": job.id}
            ).close()
        )
    prompt = await life.add(is_prompt=True)
    async with life.listening():
        await life.watch.until(lambda: life.sink.served == 1)
        row = await life.settled(replace(job, scope=Scope.account("telegram", "7")))
        await life.settled(prompt)
    assert row.paused_at is not None
    assert life.jobs.queued == 0
    assert len(life.said) == 1


async def test_answers_that_a_crash_held_up_find_their_way(life: SchedulerHarness) -> None:
    job = await life.add(is_prompt=True, due_at=NOON - timedelta(hours=2))
    await life.jobs.update(job.id, ended_at=NOON, next_at=None)
    reply = life.cron.reply(Address(platform="cron", chat_id=str(job.id)))
    reply.begin(ListRecord("some key"))
    reply.show("nothing")
    await reply.finish(Answer(text="news"))
    await reply.abandon()
    assert life.said == [(CHAT, "news")]


async def test_answer_of_a_job_to_an_unknown_place_is_dropped(life: SchedulerHarness) -> None:
    async def answer(chat_id: str) -> None:
        reply = life.cron.reply(Address(platform="cron", chat_id=chat_id))
        reply.begin(ListRecord())
        await reply.finish(Answer(text="x"))

    for chat_id in ("99", "0", "x", "", "-1"):
        with pytest.raises(DeliveryError, match="There is no job") as error:
            await answer(chat_id)
        assert error.value.is_permanent
    local = Address(platform="terminal", chat_id="local")
    job = await life.add(target=local, scope=Scope.account("terminal", "local"))
    with pytest.raises(DeliveryError, match="terminal is not connected") as error:
        await answer(str(job.id))
    assert not error.value.is_permanent
    life.error = DeliveryError("blocked", is_permanent=True)
    job = await life.add()
    with pytest.raises(DeliveryError, match="blocked"):
        await answer(str(job.id))


async def test_a_zone_that_vanished_pauses_its_job_and_that_is_told(life: SchedulerHarness) -> None:
    job = await life.add(schedule=Schedule(zone="Mars/Olympus", cron="0 9 * * *"))
    async with life.listening():
        row = await life.settled(job)
    assert row.paused_at is not None
    assert life.paused == [
        (job, "'Mars/Olympus' is not a time zone. Write an IANA name like Europe/Lisbon.")
    ]
