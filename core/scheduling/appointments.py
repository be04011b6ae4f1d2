"""Reminders and schedules as people and the model handle them, behind the chat command, the tool and the command line.

Every refusal is a sentence for the person. What belongs to somebody else answers exactly like what does not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, get_args

from core.dates.resolution import Reading
from core.errors import Refused
from core.ports import Clock
from core.scheduling.schedule import describe, exact, next_after, parse
from core.store.jobs import Job, Jobs
from core.store.notes import QUESTION, PendingNote
from core.types import Account, ErasureEpoch, Scope

TEXT_CHARS = 2000
MAX_JOBS = 100
_SHOWN_CHARS = 160

Action = Literal["pause", "resume", "run", "remove"]
ACTIONS = get_args(Action)
_DONE: Mapping[Action, str] = {"pause": "Paused", "resume": "Resumed", "run": "Due now", "remove": "Removed"}


class Appointments:
    """Over `jobs`. Wall times without a zone are those of `zone`; `on_change` is called after every change."""

    def __init__(
        self, jobs: Jobs, clock: Clock, zone: str, on_change: Callable[[], None], max_jobs: int = MAX_JOBS
    ) -> None:
        self._jobs = jobs
        self._clock = clock
        self._zone = zone
        self._on_change = on_change
        self._max_jobs = max_jobs
        self._adding = asyncio.Lock()
        self._reading = asyncio.Lock()

    async def read(self, when: str, text: str | None = None, *, is_prompt: bool = False) -> Reading:
        """What is understood, not stored; without a `text` it stands in the line with the time. Raises Refused."""
        # Another language may take a while to be looked at, so it is done beside the event loop, one at a time.
        async with self._reading:
            reading = await asyncio.to_thread(parse, when, self._clock.now(), self._zone)
        if text is not None and reading.text:
            raise Refused(f"I understand only a part of the time '{_shortened(when)}': what is '{reading.text}'?")
        return _checked(reading if text is None else replace(reading, text=text), is_prompt=is_prompt)

    async def add(self, job: Job, epoch: ErasureEpoch | None = None) -> Job:
        """Stores a job as it is understood now; a known `origin` gives the one it made. Raises Refused when it is past
        by now or one too many."""
        async with self._adding:
            if job.origin is not None and (known := await self._jobs.of_origin(job.origin, job.scope)):
                return known
            if (count := len(await self._jobs.of(frozenset((job.scope,))))) >= self._max_jobs:
                raise Refused(f"There are {count} reminders here already, which is the most I keep. Remove one first.")
            now = self._clock.now()
            if (next_at := next_after(job.schedule, now)) is None:
                raise Refused(f"{describe(job.schedule, self._zone, now)} is past.")
            job = await self._jobs.add(replace(job, created_at=now, next_at=next_at), epoch)
        self._on_change()
        return job

    async def approve(self, note: PendingNote, epoch: ErasureEpoch | None = None) -> str:
        """Sets what the model wanted to plan and a person has approved; returns the receipt. Raises Refused."""
        if note.address is None:
            raise Refused("Where this was to be said is not known any more.")
        is_prompt, origin = note.target == QUESTION, f"pending:{note.id}"
        reading = await self.read(note.operations[0].content, is_prompt=is_prompt)
        job = Job(
            schedule=reading.schedule,
            text=reading.text,
            target=note.address,
            scope=note.scope,
            created_at=self._clock.now(),
            account=note.account,
            origin=origin,
            is_prompt=is_prompt,
        )
        return self.receipt(await self.add(job, epoch))

    async def list(self, scopes: frozenset[Scope]) -> list[Job]:
        return await self._jobs.of(scopes)

    async def change(self, action: Action, job_id: int, scopes: frozenset[Scope], by: Account | None = None) -> Job:
        """`pause` stops a job until `resume`, which goes on with its next time; `run` makes it due now, besides its
        schedule. `by`: who wants it, None for the owner, who may with every job. Raises Refused when there is none such
        here, and when it is another's in a room."""
        job, now = await self._mine(job_id, scopes, by), self._clock.now()
        if action == "remove":
            await self._jobs.remove(job.id, now)
        elif action == "run":
            if job.paused_at is not None:
                raise Refused(f"Reminder {job.id} is paused. Resume it first.")
            await self._jobs.resume(job.id, now.replace(microsecond=0))
        elif (action == "pause") == (job.paused_at is not None):
            return job
        elif action == "pause":
            await self._jobs.pause(job.id, now)
        else:
            if (next_at := next_after(job.schedule, now)) is None:
                raise Refused(f"The time of reminder {job.id} passed while it was paused. Remove it and set a new one.")
            await self._jobs.resume(job.id, next_at)
        self._on_change()
        return job if action == "remove" else await self._mine(job.id, scopes)

    def changed(self, action: Action, job: Job) -> str:
        return f"{_DONE[action]}: {self.describe(job)}"

    def when(self, planned: Job | Reading) -> str:
        return describe(planned.schedule, self._zone, self._clock.now(), is_full=True)

    def schedule_of(self, job: Job) -> str:
        """What is planned, in words: ``every Monday at 08:30 (Europe/Lisbon)``."""
        return describe(job.schedule, self._zone, self._clock.now())

    def exact(self, reading: Reading) -> str:
        """An unambiguous line of the same meaning: ``2026-11-21 17:00 | call Ana``."""
        return f"{exact(reading.schedule, self._zone)} | {reading.text}"

    def receipt(self, job: Job) -> str:
        """What was set: ``Reminder 7 is set: Saturday 21 November 2026 at 09:00 (Europe/Lisbon): “call Ana”.``"""
        noun = "Scheduled question" if job.is_prompt else "Reminder"
        return f"{noun} {job.id} is set: {self.when(job)}: “{job.text}”."

    def describe(self, job: Job) -> str:
        """A job in one line: ``7: every Monday at 08:30 (Europe/Lisbon): stand-up``."""
        state = " [paused]" if job.paused_at else " [over]" if job.ended_at else ""
        ask = "asks me: " if job.is_prompt else ""
        return f"{job.id}: {self.schedule_of(job)}{state}: {ask}{_shortened(job.text)}"

    async def _mine(self, job_id: int, scopes: frozenset[Scope], by: Account | None = None) -> Job:
        job = await self._jobs.find(job_id, scopes)
        if job is None or job.ended_at is not None:
            raise Refused(f"There is no reminder {job_id} here.")
        if by is not None and job.scope.is_room and job.account != by:
            raise Refused("In a room only who made a reminder, or my owner with `/cron`, changes it.")
        return job


def _checked(reading: Reading, *, is_prompt: bool) -> Reading:
    text = reading.text.encode("utf-8", "replace").decode("utf-8").replace("\0", "").strip()
    if not text and is_prompt:
        raise Refused("What should I be asked then? Write it behind the time, like 'daily at 8 | what is on my list?'.")
    if not text:
        raise Refused("What should I remind you of? Write it behind the time, like 'tomorrow at 9 call Ana'.")
    if len(text) > TEXT_CHARS:
        raise Refused(f"That is {len(text):,} characters long; a reminder holds {TEXT_CHARS:,}.")
    return replace(reading, text=text)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
