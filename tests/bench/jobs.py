"""Measures the scheduler: its start with many jobs, its search for due jobs, and many reminders for
the same second.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.store.engine import Connection
from tests.fixtures.live_system import PERSON, LiveSystem
from tests.fixtures.scheduler_harness import RunningClock, SchedulerHarness, lifetime
from tests.fixtures.stores import run_statement

JOBS = 100_000
SAME_SECOND = 1_000
LOOKS = 20
LEAD_S = 60
"""The reminders that Telegram's double gets are due so long after they are stored, because the
process starts in between."""
DELIVERY_TIMEOUT_S = 900
_FILL = """
WITH RECURSIVE numbers (number) AS (
    SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < :count
)
INSERT INTO jobs (scope_id, address_id, account, text, zone, recurrences, at, created_at, next_at)
SELECT scope_id, address_id, 'telegram:' || (number % 1000), 'reminder ' || number, 'Europe/Lisbon',
    CASE WHEN number % 2 AND :step THEN :rule ELSE '[]' END,
    CASE WHEN number % 2 AND :step THEN NULL ELSE :first + number * :step END,
    :first, :first + number * :step
FROM numbers, (SELECT scope_id, address_id FROM sessions LIMIT 1)
"""
"""Inserts jobs that are due `step` seconds apart; every second one recurs, unless `step` is 0."""
_FILL_TELEGRAM = """
WITH RECURSIVE numbers (number) AS (
    SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < :count
)
INSERT INTO jobs (scope_id, address_id, account, text, zone, recurrences, at, created_at, next_at)
SELECT scope_id, address_id, :account, 'reminder ' || number, 'Europe/Lisbon', '[]', :due, :now, :due
FROM numbers, (
    SELECT scope_id, address_id FROM sessions JOIN addresses ON addresses.id = address_id
    WHERE platform = 'telegram' LIMIT 1
)
"""
_RULE = '["DTSTART;TZID=Europe/Lisbon:20261101T080000\\nRRULE:FREQ=DAILY"]'


async def measure(folder: Path) -> str:
    """Return the figures as Markdown."""
    lines = ["| | |", "| --- | ---: |"]
    (folder / "many").mkdir()
    async with lifetime(folder / "many", RunningClock()) as life:
        await _fill(life, JOBS, life.clock.now() + timedelta(hours=1), step=1)
        begin = time.perf_counter()
        async with life.listening() as cron:
            await asyncio.sleep(0)
            assert cron._sink is not None
            # This waits for the first look.
            await cron.reload()
            lines.append(f"| start with {JOBS:,} jobs | {time.perf_counter() - begin:.3f} s |")
            for due in (0, 10, 100):
                lines.append(f"| a look, {due} of them due | {await _look(life, due):.1f} ms |")
    (folder / "same").mkdir()
    lateness = await _measure_lateness(folder / "same")
    lines += _list_shares("in the outbox", lateness)
    (folder / "delivered").mkdir()
    lines += _list_shares("at Telegram's double", await _measure_delivery(folder / "delivered"))
    return "\n".join(lines)


def _list_shares(place: str, lateness: list[float]) -> list[str]:
    """Return the rows of the table for the lateness of reminders at one point."""
    lines = []
    for share in (50, 95, 99):
        value = lateness[len(lateness) * share // 100]
        name = f"lateness of {SAME_SECOND:,} reminders of the same second {place}, p{share}"
        lines.append(f"| {name} | {value:.2f} s |")
    return lines


async def _fill(life: SchedulerHarness, count: int, first: datetime, step: int) -> None:
    values = {"count": count, "rule": _RULE, "first": first.timestamp(), "step": step}

    def insert(connection: Connection) -> None:
        connection.execute(_FILL, values)

    await life.jobs._database.write(insert)


async def _look(life: SchedulerHarness, due: int) -> float:
    """Return the median time of a search for due jobs in milliseconds, with `due` due jobs."""
    times = []
    for _ in range(LOOKS if due == 0 else 3):
        if due:
            await _fill(life, due, life.clock.now() - timedelta(seconds=1), step=0)
        begin = time.perf_counter()
        await life.cron.reload()
        times.append((time.perf_counter() - begin) * 1_000)
    return sorted(times)[len(times) // 2]


async def _measure_lateness(folder: Path) -> list[float]:
    """Return how many seconds late each reminder reached the outbox, sorted."""
    async with lifetime(folder, RunningClock()) as life:
        due_at = (life.clock.now() + timedelta(seconds=3)).replace(microsecond=0)
        await _fill(life, SAME_SECOND, due_at, step=0)
        moments: list[datetime] = []

        def note_queued() -> None:
            """Record the time for each reminder that reached the outbox since the last call."""
            moments.extend([life.clock.now()] * (life.jobs.queued - len(moments)))
            life.watch.tell()

        life.cron.on_wake = note_queued
        async with life.listening():
            await life.watch.until(lambda: len(moments) == SAME_SECOND)
        return sorted((moment - due_at).total_seconds() for moment in moments)


async def _measure_delivery(folder: Path) -> list[float]:
    """Return how many seconds late each reminder reached the test double of Telegram, sorted.

    The real process sends them to one chat with python-telegram-bot.
    """
    async with LiveSystem.open(folder, is_loop_watched=False) as live:
        await live.start(is_fresh=True)
        live.tells_telegram("good morning")
        await live.until(lambda: bool(live.telegram.texts(PERSON)))
        assert await live.stop() == 0
        due_at = (datetime.now(UTC) + timedelta(seconds=LEAD_S)).replace(microsecond=0)
        values = {
            "count": SAME_SECOND,
            "account": f"telegram:{PERSON}",
            "now": datetime.now(UTC).timestamp(),
            "due": due_at.timestamp(),
        }
        await asyncio.to_thread(run_statement, folder, _FILL_TELEGRAM, values)
        earlier = len(live.telegram.texts(PERSON))
        await live.start(is_fresh=True)
        assert datetime.now(UTC) < due_at, "the process started too late"
        moments: list[datetime] = []

        def have_arrived() -> bool:
            """Record the time for each reminder that arrived since the last call."""
            count = len(live.telegram.texts(PERSON)) - earlier
            moments.extend([datetime.now(UTC)] * (count - len(moments)))
            return count >= SAME_SECOND

        await live.telegram.wait_for(have_arrived, DELIVERY_TIMEOUT_S)
        return sorted((moment - due_at).total_seconds() for moment in moments)
