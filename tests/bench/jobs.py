"""How long the scheduler takes: its start with many jobs, a look at them, and many that are due in the
same second."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from pathlib import Path

from core.store.engine import Connection
from tests.fixtures.scheduler_harness import RunningClock, SchedulerHarness, lifetime

JOBS = 100_000
SAME_SECOND = 1_000
LOOKS = 20
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
    for share in (50, 95, 99):
        value = lateness[len(lateness) * share // 100]
        name = f"lateness of {SAME_SECOND:,} reminders of the same second, p{share}"
        lines.append(f"| {name} | {value:.2f} s |")
    return "\n".join(lines)


async def _fill(life: SchedulerHarness, count: int, first: datetime, step: int) -> None:
    values = {"count": count, "rule": _RULE, "first": first.timestamp(), "step": step}

    def insert(connection: Connection) -> None:
        connection.execute(_FILL, values)

    await life.jobs._database.write(insert)


async def _look(life: SchedulerHarness, due: int) -> float:
    """Return the median time of a look at the jobs, in milliseconds, if `due` of them are due."""
    times = []
    for _ in range(LOOKS if due == 0 else 3):
        if due:
            await _fill(life, due, life.clock.now() - timedelta(seconds=1), step=0)
        begin = time.perf_counter()
        await life.cron.reload()
        times.append((time.perf_counter() - begin) * 1_000)
    return sorted(times)[len(times) // 2]


async def _measure_lateness(folder: Path) -> list[float]:
    """Return how many seconds after its due time each reminder was in the outbox, sorted."""
    async with lifetime(folder, RunningClock()) as life:
        due_at = (life.clock.now() + timedelta(seconds=3)).replace(microsecond=0)
        await _fill(life, SAME_SECOND, due_at, step=0)
        moments: list[datetime] = []

        def note_queued() -> None:
            """Note the moment for each reminder that came into the outbox since the last call."""
            moments.extend([life.clock.now()] * (life.jobs.queued - len(moments)))
            life.watch.tell()

        life.cron.on_wake = note_queued
        async with life.listening():
            await life.watch.until(lambda: len(moments) == SAME_SECOND)
        return sorted((moment - due_at).total_seconds() for moment in moments)
