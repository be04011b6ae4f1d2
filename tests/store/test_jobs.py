"""The contract of Jobs: kept as given, only where they may be heard, each due time once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.dates.schedule import Schedule
from core.errors import Refused
from core.store.engine import Database
from core.store.jobs import Job, Jobs
from core.store.ownership.people import People
from core.store.sessions import Conversations
from core.types import Account, Address, Scope, SessionEnd
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, BOB, CHAT, NOON, opened, session
from tests.store.conftest import OpenStore

MINE = frozenset((ANA,))
SOON = NOON + timedelta(minutes=5)
ONCE = Schedule(zone="Europe/Lisbon", at=SOON)
WEEKLY = Schedule(zone="Europe/Lisbon", cron="0 9 * * 1")
LOCAL = Scope.account("terminal", "local")


@pytest.fixture
async def conversations(database: Database, clock: SteadyClock) -> Conversations:
    made = Conversations(database, clock)
    await opened(made, "hello")
    return made


@pytest.fixture
def jobs(database: Database, conversations: Conversations) -> Jobs:
    return Jobs(database)


def job(**changes: Any) -> Job:
    return Job(
        **{
            "schedule": ONCE,
            "text": "ferry",
            "target": CHAT,
            "scope": ANA,
            "created_at": NOON,
            "next_at": SOON,
            **changes,
        }
    )


async def test_stored_job_is_loaded_unchanged(jobs: Jobs) -> None:
    wanted = job(
        schedule=Schedule(zone="Asia/Tokyo", every_s=3600, start_at=NOON),
        text="",
        is_prompt=True,
        account=Account(platform="telegram", user_id="42"),
        origin="telegram:42#5",
    )
    stored = await jobs.add(wanted)
    assert stored == replace(wanted, id=stored.id)
    assert await jobs.find(stored.id, MINE) == stored
    assert await jobs.find_by_origin("telegram:42#5", ANA) == stored
    assert await jobs.find_by_origin("telegram:42#5", BOB) is None
    other = await jobs.add(job())
    assert other == replace(job(), id=other.id)
    assert await jobs.list_active() == [stored, other]


async def test_a_job_must_have_the_scope_of_its_target(
    jobs: Jobs, conversations: Conversations
) -> None:
    group = Address(platform="telegram", chat_id="-5")
    room = Scope.group("telegram", "-5")
    await conversations.create(session(address=group, scope=room))
    assert (await jobs.add(job(target=group, scope=room))).target == group
    for target, scope in ((CHAT, BOB), (group, ANA), (CHAT, room)):
        with pytest.raises(Refused, match="other people could read it"):
            await jobs.add(job(target=target, scope=scope))
    with pytest.raises(Refused, match="No one has written to me at telegram:8"):
        await jobs.add(
            job(
                target=Address(platform="telegram", chat_id="8"),
                scope=Scope.account("telegram", "8"),
            )
        )
    assert len(await jobs.list_active()) == 1


@pytest.mark.parametrize("platform", ["cron", "terminal"])
async def test_job_for_a_chat_without_any_session_is_accepted_only_for_the_terminal(
    jobs: Jobs, platform: str
) -> None:
    target = Address(platform=platform, chat_id="local")
    assert (await jobs.add(job(target=target, scope=LOCAL))).scope == LOCAL
    with pytest.raises(Refused):
        await jobs.add(job(target=target))


async def test_imported_session_does_not_decide_which_scope_a_chat_belongs_to(
    jobs: Jobs, conversations: Conversations
) -> None:
    await conversations.create(session(scope=BOB, end=SessionEnd(at=NOON, reason="import")))
    await jobs.add(job())
    with pytest.raises(Refused):
        await jobs.add(job(scope=BOB))
    past = Address(platform="telegram", chat_id="77")
    await conversations.create(session(address=past, end=SessionEnd(at=NOON, reason="import")))
    with pytest.raises(Refused):
        await jobs.add(job(target=past))


async def test_a_job_whose_target_is_another_persons_by_now_does_not_run(
    jobs: Jobs, conversations: Conversations
) -> None:
    stored = await jobs.add(job())
    await conversations.create(session(scope=BOB))
    with pytest.raises(Refused):
        await jobs.check_scope(stored)


async def test_jobs_are_listed_by_their_next_time_without_ended_ones(jobs: Jobs) -> None:
    late = await jobs.add(job(next_at=SOON + timedelta(hours=1)))
    never = await jobs.add(job(next_at=None))
    soon = await jobs.add(job())
    gone = await jobs.add(job())
    await jobs.update(gone.id, ended_at=NOON, next_at=None)
    assert await jobs.list_visible(MINE) == [soon, late, never]
    assert await jobs.find(gone.id, MINE) == replace(gone, ended_at=NOON, next_at=None)


async def test_paused_job_is_not_due_until_it_is_resumed(jobs: Jobs) -> None:
    stored = await jobs.add(job())
    await jobs.update(stored.id, paused_at=NOON)
    assert await jobs.list_active() == []
    assert await jobs.list_visible(MINE) == [replace(stored, paused_at=NOON)]
    await jobs.update(stored.id, paused_at=None, next_at=SOON + timedelta(days=1))
    assert await jobs.list_active() == [replace(stored, next_at=SOON + timedelta(days=1))]
    await jobs.update(stored.id, ended_at=NOON, next_at=None)
    await jobs.update(stored.id, next_at=SOON)
    await jobs.update(stored.id, paused_at=SOON)
    assert await jobs.find(stored.id, MINE) == replace(stored, next_at=None, ended_at=NOON)


async def test_a_job_of_one_moment_has_ended_after_it(jobs: Jobs) -> None:
    once, weekly, other = (
        await jobs.add(job()),
        await jobs.add(job(schedule=WEEKLY)),
        await jobs.add(job()),
    )
    for stored in (once, weekly):
        await jobs.finish(stored, SOON + timedelta(seconds=1), None)
    await jobs.finish(other, SOON, SOON + timedelta(days=7))
    await jobs.finish(replace(once, id=99), SOON, None)
    assert await jobs.list_active() == [
        replace(weekly, next_at=None),
        replace(other, next_at=SOON + timedelta(days=7)),
    ]
    assert await jobs.find(once.id, MINE) == replace(
        once, next_at=None, ended_at=SOON + timedelta(seconds=1)
    )


async def test_job_number_beyond_the_integer_range_is_not_found(jobs: Jobs) -> None:
    assert await jobs.find(10**30, MINE) is None


async def test_job_of_a_group_follows_it_to_its_new_id(
    database: Database, conversations: Conversations, jobs: Jobs
) -> None:
    room = Scope.group("telegram", "-5")
    old, new = (
        Address(platform="telegram", chat_id="-5"),
        Address(platform="telegram", chat_id="-1005"),
    )
    await conversations.create(session(address=old, scope=room))
    planned = await jobs.add(job(target=old, scope=room))
    await People(database).migrate_group("telegram", "-5", "-1005")
    [moved] = await jobs.list_active()
    assert (moved.id, moved.target, moved.scope) == (planned.id, new, room)
    await jobs.check_scope(moved)


async def test_hundred_and_first_job_of_one_account_is_refused_but_not_another_accounts_first(
    jobs: Jobs, conversations: Conversations
) -> None:
    ana, bob = (Account(platform="telegram", user_id=number) for number in ("42", "43"))
    group = Address(platform="telegram", chat_id="-5")
    room = Scope.group("telegram", "-5")
    await conversations.create(session(address=group, scope=room))
    everywhere: list[dict[str, Any]] = [{}, {"target": group, "scope": room}]
    for number in range(100):
        await jobs.add(job(account=ana, is_prompt=number < 20, **everywhere[number % 2]))
    for place in everywhere:
        with pytest.raises(Refused, match="You have 100 reminders, which is the maximum"):
            await jobs.add(job(account=ana, **place))
    for is_prompt in (True, False):
        await jobs.add(job(account=bob, is_prompt=is_prompt, **everywhere[1]))
    first = (await jobs.list_visible(frozenset((room,))))[0]
    await jobs.update(first.id, ended_at=NOON)
    await jobs.add(job(account=ana))


async def test_the_twenty_first_question_is_refused_and_a_reminder_is_not(jobs: Jobs) -> None:
    for _ in range(20):
        await jobs.add(job(is_prompt=True))
    with pytest.raises(Refused, match="You have 20 scheduled questions"):
        await jobs.add(job(is_prompt=True))
    await jobs.add(job())


async def test_limit_of_jobs_holds_for_two_processes_adding_at_once(
    jobs: Jobs, database: Database, open_store: OpenStore
) -> None:
    async with open_store() as other:
        both = (Jobs(database, 20), Jobs(other, 20))
        done = await asyncio.gather(
            *(both[number % 2].add(job()) for number in range(60)), return_exceptions=True
        )
    assert sum(isinstance(one, Job) for one in done) == len(await jobs.list_visible(MINE)) == 20
    assert all(isinstance(one, Job | Refused) for one in done)


async def test_job_for_a_group_that_is_no_longer_the_owners_is_refused(
    database: Database, jobs: Jobs, conversations: Conversations
) -> None:
    group, room, people = (
        Address(platform="telegram", chat_id="-5"),
        Scope.group("telegram", "-5"),
        People(database),
    )
    await people.set_owner([], [room])
    await conversations.create(session(address=group, scope=room))
    await people.set_owner([], [])
    with pytest.raises(Refused, match="other people could read it"):
        await jobs.add(job(target=group, scope=room))
    present = Scope(key="room:telegram:-5#2")
    assert (await jobs.add(job(target=group, scope=present))).scope == present
