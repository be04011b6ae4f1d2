"""One body for three faces: kept, limited, changed by who may, silent about what is somebody
else's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from core.dates.schedule import ParsedSchedule
from core.errors import Refused
from core.scheduling.appointments import ACTIONS, Action, Appointments
from core.store.jobs import Job, Jobs
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Account, Address, Scope, Session
from tests.fixtures.clock import SteadyClock

pytestmark = pytest.mark.slow

ZONE = "Europe/Lisbon"
CHAT = Address(platform="telegram", chat_id="42")
ANA = Scope.account("telegram", "42")
BOB = Scope.account("telegram", "43")
MINE = frozenset((ANA,))


async def every_s(account: Account | None) -> float | None:
    """How far apart the questions of account 8 have to be; account 9 has none."""
    return {"8": 3600.0, "9": None}.get(account.user_id if account else "", 0.0)


class _Calls:
    """Counts how often somebody was told of a change."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def changes() -> _Calls:
    return _Calls()


@pytest.fixture
async def appointments(database: Database, clock: SteadyClock, changes: _Calls) -> Appointments:
    conversations = Conversations(database, clock)
    for scope, chat_id in ((ANA, "42"), (BOB, "43")):
        await conversations.create(_session(scope, chat_id, clock))
    return Appointments(Jobs(database, 3, 2), clock, ZONE, changes, every_s)


def _session(scope: Scope, chat_id: str, clock: SteadyClock) -> Session:
    return Session(
        address=Address(platform="telegram", chat_id=chat_id), scope=scope, started_at=clock.now()
    )


async def _added(appointments: Appointments, said: str | ParsedSchedule, **values: Any) -> Job:
    """The job that is made of a line, or of what was read of one."""
    reading = await appointments.interpret(said) if isinstance(said, str) else said
    whose = {"target": CHAT, "scope": ANA, "account": None, "origin": None, **values}
    receipt = await appointments.add(reading, **whose)
    noun, number = receipt.partition(" is set for ")[0].rsplit(" ", 1)
    assert noun == ("Scheduled question" if reading.is_prompt else "Reminder")
    return await _listed(appointments, int(number))


async def _listed(appointments: Appointments, number: int) -> Job:
    return next(
        job
        for job in await appointments.jobs.list_visible(frozenset((ANA, BOB)))
        if job.id == number
    )


async def _changed(appointments: Appointments, action: Action, job: Job) -> Job:
    await appointments.change(action, job.id, MINE)
    return await _listed(appointments, job.id)


async def test_reminder_line_is_stored_as_a_job_with_its_account_scope_and_time(
    appointments: Appointments, changes: _Calls, clock: SteadyClock
) -> None:
    account = Account(platform="telegram", user_id="42")
    job = await _added(appointments, "tomorrow at 9 call Ana", account=account)
    assert (job.text, job.target, job.scope, job.account) == ("call Ana", CHAT, ANA, account)
    assert job.next_at == job.schedule.at == datetime(2026, 11, 21, 9, tzinfo=UTC)
    assert job.created_at == clock.now()
    assert not job.is_prompt
    assert changes.count == 1
    assert await appointments.jobs.list_visible(MINE) == [job]
    assert (
        appointments.describe_job(job) == f"{job.id}: Saturday 21 November 2026 at 09:00: call Ana"
    )


@pytest.mark.parametrize(
    ("line", "when"),
    [
        ("tomorrow at 9 call Ana", "Saturday 21 November 2026 at 09:00 (Europe/Lisbon)"),
        (
            "on the 1st of every month pay rent",
            "every month on the 1st at 09:00, next Tuesday 1 December 2026 at 09:00 (Europe/Lisbon)",
        ),
        ("every 2 hours drink", "every 2 hours, next at 14:00 (Europe/Lisbon)"),
    ],
)
async def test_reminder_time_is_confirmed_with_its_date_and_time_zone(
    appointments: Appointments, line: str, when: str
) -> None:
    job = await _added(appointments, line)
    assert appointments.describe_time(job) == when


async def test_job_is_added_from_its_time_and_its_text_apart(appointments: Appointments) -> None:
    reading = await appointments.interpret(
        "every monday at 8:30", "what is new at 5?", is_prompt=True
    )
    job = await _added(appointments, reading)
    assert job.schedule.recurrences[0].endswith("\nRRULE:FREQ=WEEKLY;BYDAY=MO")
    assert job.next_at == datetime(2026, 11, 23, 8, 30, tzinfo=UTC)
    assert job.text == "what is new at 5?"
    assert appointments.describe_job(job).endswith(
        "every Monday at 08:30 (Europe/Lisbon): asks me: what is new at 5?"
    )
    with pytest.raises(Refused, match="but not 'call Bob'"):
        await appointments.interpret("tomorrow at 9 call Bob", "x")
    with pytest.raises(Refused, match="Which question should I answer then"):
        await appointments.interpret("every monday at 8:30", is_prompt=True)


async def test_ambiguous_reminder_time_is_not_stored_until_it_is_confirmed(
    appointments: Appointments, changes: _Calls
) -> None:
    reading = await appointments.interpret("at 5 call Ana")
    assert not reading.is_certain
    assert appointments.format_exact_line(reading, "Europe/Lisbon") == "2026-11-20 17:00 | call Ana"
    assert changes.count == 0
    assert await appointments.jobs.list_visible(MINE) == []
    job = await _added(appointments, reading)
    assert job.next_at == datetime(2026, 11, 20, 17, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("buy milk", "find a time in that"),
        ("tomorrow at 9", "What should I remind you about"),
        ("tomorrow at 9 | \0", "What should I remind you about"),
        ("2020-01-01 10:00 call", "is in the past"),
        ("tomorrow at 9 " + "x" * 2001, "A reminder can have 2,000 characters; this one has 2,001"),
    ],
)
async def test_reminder_line_without_a_usable_time_is_refused_with_a_sentence(
    appointments: Appointments, changes: _Calls, line: str, sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        await _added(appointments, line)
    assert changes.count == 0


async def test_time_that_passed_while_the_line_was_read_is_due_at_once(
    appointments: Appointments, clock: SteadyClock
) -> None:
    reading = await appointments.interpret("in 2 seconds tea")
    clock.advance(seconds=30)

    job = await _added(appointments, reading)

    assert job.next_at == reading.schedule.at
    clock.advance(hours=1)
    with pytest.raises(Refused, match="is in the past"):
        await _added(appointments, replace(reading, text="coffee"))


async def test_reminder_text_of_maximum_length_is_stored_whole_and_shortened_in_its_description(
    appointments: Appointments,
) -> None:
    job = await _added(appointments, "tomorrow at 9 " + "ö" * 2000)
    assert job.text == "ö" * 2000
    assert len(appointments.describe_job(job)) < 250


async def test_reminder_request_handled_twice_from_one_message_creates_one_job(
    appointments: Appointments, changes: _Calls, clock: SteadyClock
) -> None:
    job = await _added(appointments, "in 20 minutes tea", origin="telegram:42#5")
    clock.advance(hours=1)
    assert await _added(appointments, "in 20 minutes tea", origin="telegram:42#5") == job
    assert await appointments.jobs.list_visible(MINE) == [job]
    assert changes.count == 1


async def test_account_over_its_limit_of_reminders_is_refused_until_one_is_removed(
    appointments: Appointments,
) -> None:
    jobs = [
        await _added(appointments, f"in {minutes} minutes tea", origin=f"o{minutes}")
        for minutes in (10, 20, 30)
    ]
    with pytest.raises(Refused, match="You have 3 reminders, which is the maximum"):
        await _added(appointments, "in 40 minutes tea")
    assert await _added(appointments, "in 20 minutes tea", origin="o20") == jobs[1]
    place = Address(platform="telegram", chat_id="43")
    with pytest.raises(Refused, match="You have 3"):
        await _added(appointments, "in 40 minutes tea", target=place, scope=BOB)
    bob = Account(platform="telegram", user_id="43")
    bobs = await _added(appointments, "in 5 minutes tea", target=place, scope=BOB, account=bob)
    assert bobs.scope == BOB
    await appointments.change("remove", jobs[0].id, MINE)
    assert (await _added(appointments, "in 40 minutes tea")).text == "tea"


@pytest.mark.parametrize(
    ("line", "is_kept"),
    [
        ("every hour", True),
        ("every 59 minutes", False),
        ("0 * * * *", True),
        ("*/30 * * * *", False),
        ("0,59 9 * * *", False),
        ("59 9 1 1 *", True),
        ("tomorrow at 9", True),
    ],
)
async def test_scheduled_questions_of_non_owners_must_be_an_hour_apart(
    appointments: Appointments, line: str, is_kept: bool
) -> None:
    reading = await appointments.interpret(f"{line} | what is new?", is_prompt=True)
    member, guest = (Account(platform="telegram", user_id=number) for number in ("8", "9"))
    if is_kept:
        await _added(appointments, reading, account=member)
    else:
        with pytest.raises(Refused, match="must be at least 1 hour apart"):
            await _added(appointments, reading, account=member)
    with pytest.raises(Refused, match="Only people whom my owner has approved"):
        await _added(appointments, reading, account=guest)
    await _added(appointments, replace(reading, is_prompt=False), account=guest)
    await _added(appointments, reading, account=None)


async def test_job_can_be_paused_resumed_and_removed(
    appointments: Appointments, changes: _Calls, clock: SteadyClock
) -> None:
    job = await _added(appointments, "every day at 9 water")
    paused = await _changed(appointments, "pause", job)
    assert paused.paused_at == clock.now()
    assert "[paused]" in appointments.describe_job(paused)
    assert await _changed(appointments, "pause", job) == paused
    clock.advance(days=3)
    resumed = await _changed(appointments, "resume", job)
    assert resumed.paused_at is None
    assert resumed.next_at == datetime(2026, 11, 24, 9, tzinfo=UTC)
    assert await _changed(appointments, "resume", job) == resumed
    assert (
        await appointments.change("remove", job.id, MINE)
        == f"Removed: {appointments.describe_job(resumed)}"
    )
    assert await appointments.jobs.list_visible(MINE) == []
    assert changes.count >= 4


async def test_paused_reminder_whose_time_has_passed_cannot_be_resumed(
    appointments: Appointments, clock: SteadyClock
) -> None:
    job = await _added(appointments, "in 20 minutes tea")
    await appointments.change("pause", job.id, MINE)
    clock.advance(hours=1)
    with pytest.raises(Refused, match="passed while it was paused"):
        await appointments.change("resume", job.id, MINE)


async def test_job_that_is_run_is_due_now_unless_it_is_paused(
    appointments: Appointments, changes: _Calls, clock: SteadyClock
) -> None:
    job = await _added(appointments, "every day at 9 water")
    assert (await _changed(appointments, "run", job)).next_at == clock.now()
    assert changes.count == 2
    await appointments.change("pause", job.id, MINE)
    with pytest.raises(Refused, match="is paused"):
        await appointments.change("run", job.id, MINE)


async def test_changing_another_persons_reminder_is_refused_like_a_missing_reminder(
    appointments: Appointments, changes: _Calls
) -> None:
    job = await _added(appointments, "every day at 9 water")
    told = changes.count
    assert await appointments.jobs.list_visible(frozenset((BOB,))) == []
    assert await appointments.jobs.list_visible(frozenset()) == []
    for action in ACTIONS:
        for scopes in (frozenset((BOB,)), frozenset[Scope]()):
            with pytest.raises(Refused, match=f"^There is no reminder {job.id} here\\.$"):
                await appointments.change(action, job.id, scopes)
        for missing in (job.id + 1, 0, -1, 10**30):
            with pytest.raises(Refused, match=f"^There is no reminder {missing} here\\.$"):
                await appointments.change(action, missing, MINE)
    assert changes.count == told
    await appointments.change("remove", job.id, MINE)
    with pytest.raises(Refused, match="There is no reminder"):
        await appointments.change("remove", job.id, MINE)


async def test_reminder_for_a_chat_that_other_people_can_read_is_refused(
    appointments: Appointments,
) -> None:
    with pytest.raises(Refused, match="other people could read it"):
        await _added(appointments, "in 5 minutes x", scope=BOB)
