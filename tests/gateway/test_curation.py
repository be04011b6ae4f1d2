"""The chore that the scheduler runs while it is quiet: notes that are nearly full are spoken of once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.errors import StoreError
from gateway.maintenance import NotesChore
from gateway.owner_notices import OwnerNotices
from tests.fixtures.clock import SteadyClock
from tests.fixtures.corridor import open_corridor
from tests.fixtures.lifetime import lifetime

pytestmark = pytest.mark.slow


async def test_notes_that_are_nearly_full_are_spoken_of_once_and_to_whose_they_are(home: Path) -> None:
    async with open_corridor(home) as corridor:
        services = corridor.services
        await corridor.say("hello")
        await corridor.say("hello", "7")
        clock = SteadyClock(services.clock.now())
        curation = NotesChore(
            search=services.fact_search,
            idle_s=services.settings.curator.idle_s,
            notebook=services.notebook,
            limits={"memory": 100, "user": 100},
            people=services.people,
            clock=clock,
            owner_notices=OwnerNotices(services.people, services.transcripts, services.outbox, clock, lambda: None),
        )

        async def told() -> list[str]:
            due = [
                outbox_item for outbox_item in await services.outbox.due(clock.now()) if outbox_item.kind == "notice"
            ]
            assert all(outbox_item.address.chat_id == "42" for outbox_item in due)
            return [outbox_item.answer.text for outbox_item in due if outbox_item.answer]

        clock.advance(minutes=11)
        await curation.run()
        assert await told() == []
        await corridor.say("/memory add " + "x" * 81)
        clock.moment = services.clock.now()
        await curation.run()
        assert await told() == [], "somebody is there"
        clock.advance(minutes=11)
        await curation.run()
        (notice,) = await told()
        assert "MEMORY.md are 81 % full (81 of 100 characters)" in notice
        await curation.run()
        assert len(await told()) == 1
        await corridor.say("/memory add " + "y" * 99, "7")
        clock.moment = services.clock.now()
        clock.advance(minutes=11)
        await curation.run()
        due = [outbox_item for outbox_item in await services.outbox.due(clock.now()) if outbox_item.kind == "notice"]
        assert [outbox_item.address.chat_id for outbox_item in due] == ["42", "7"], "each person of his own"
        assert due[1].answer is not None
        assert "99 % full" in due[1].answer.text


async def test_the_scheduler_does_chores_again_and_again_also_after_a_failure(tmp_path: Path) -> None:
    async with lifetime(tmp_path) as life:
        runs = 0
        is_enough = asyncio.Event()

        async def work() -> None:
            nonlocal runs
            runs += 1
            if runs == 1:
                raise StoreError("The disk is full.")
            if runs == 3:
                is_enough.set()

        life.cron.plan_chore("curator", 0.01, work)
        async with life.listening(), asyncio.timeout(5):
            await is_enough.wait()
        ended = runs
        assert ended >= 3
