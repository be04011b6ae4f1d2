"""Reminders and schedules as people and the model handle them, behind the chat command, the tool and the command line.

Every refusal is a sentence for the person. What belongs to somebody else answers exactly like what does not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, get_args

from core.dates.parsing import parse
from core.dates.schedule import Reading, describe, exact, next_after
from core.errors import Refused
from core.ports import Clock
from core.store.jobs import Job, Jobs
from core.store.notes import QUESTION, PendingNote
from core.text.normalize import shortened
from core.types import Account, Address, ErasureEpoch, Scope

TEXT_CHARS = 2000
MAX_JOBS = 100
_SHOWN_CHARS = 160

Action = Literal["pause", "resume", "run", "remove"]
ACTIONS = get_args(Action)
_TEXTLESS = (
    "What should I remind you of? Write it behind the time, like 'tomorrow at 9 call Ana'.",
    "What should I be asked then? Write it behind the time, like 'daily at 8 | what is on my list?'.",
)
"""Of a reminder, of a scheduled question."""
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
        if text is None:
            text = reading.text
        elif reading.text:
            time = shortened(when, _SHOWN_CHARS)
            raise Refused(f"I understand only a part of the time '{time}': what is '{reading.text}'?")
        text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "").strip()
        if not text:
            raise Refused(_TEXTLESS[is_prompt])
        if len(text) > TEXT_CHARS:
            raise Refused(f"That is {len(text):,} characters long; a reminder holds {TEXT_CHARS:,}.")
        return replace(reading, text=text, is_prompt=is_prompt)

    async def add(
        self,
        reading: Reading,
        target: Address,
        scope: Scope,
        *,
        account: Account | None,
        origin: str | None,
        epoch: ErasureEpoch | None = None,
    ) -> str:
        """Plans for `target` what was read, and returns what was set: ``Reminder 7 is set: Saturday 21 November 2026 at
        09:00 (Europe/Lisbon): “call Ana”.`` What has the `origin` of a known job is that job. Raises Refused when it is
        past by now or one too many."""
        async with self._adding:
            job = None if origin is None else await self._jobs.of_origin(origin, scope)
            if job is None:
                count, now = len(await self._jobs.of(frozenset((scope,)))), self._clock.now()
                if count >= self._max_jobs:
                    raise Refused(
                        f"There are {count} reminders here already, which is the most I keep. Remove one first."
                    )
                if (next_at := next_after(reading.schedule, now)) is None:
                    raise Refused(f"{describe(reading.schedule, self._zone, now)} is past.")
                job = Job(
                    schedule=reading.schedule,
                    text=reading.text,
                    target=target,
                    scope=scope,
                    created_at=now,
                    account=account,
                    origin=origin,
                    is_prompt=reading.is_prompt,
                    next_at=next_at,
                )
                job = await self._jobs.add(job, epoch)
                self._on_change()
        noun = "Scheduled question" if job.is_prompt else "Reminder"
        return f"{noun} {job.id} is set: {self.when(job)}: “{job.text}”."

    async def approve(self, note: PendingNote, epoch: ErasureEpoch | None = None) -> str:
        """Sets what the model wanted to plan and a person has approved; returns the receipt. Raises Refused."""
        if note.address is None:
            raise Refused("Where this was to be said is not known any more.")
        reading = await self.read(note.operations[0].content, is_prompt=note.target == QUESTION)
        return await self.add(
            reading, note.address, note.scope, account=note.account, origin=f"pending:{note.id}", epoch=epoch
        )

    async def list(self, scopes: frozenset[Scope]) -> list[Job]:
        return await self._jobs.of(scopes)

    async def change(self, action: Action, job_id: int, scopes: frozenset[Scope], by: Account | None = None) -> str:
        """`pause` stops a job until `resume`, which goes on with its next time; `run` makes it due now, besides its
        schedule. `by`: who wants it, None for the owner, who may with every job. Returns what was done; raises Refused
        when there is none such here, and when it is another's in a room."""
        job, now = await self._mine(job_id, scopes), self._clock.now()
        if by is not None and job.scope.is_room and job.account != by:
            raise Refused("In a room only who made a reminder, or my owner with `/cron`, changes it.")
        is_paused = job.paused_at is not None
        if action == "remove":
            await self._jobs.remove(job.id, now)
        elif action == "run":
            if is_paused:
                raise Refused(f"Reminder {job.id} is paused. Resume it first.")
            await self._jobs.resume(job.id, now.replace(microsecond=0))
        elif action == "pause" and not is_paused:
            await self._jobs.pause(job.id, now)
        elif action == "resume" and is_paused:
            if (next_at := next_after(job.schedule, now)) is None:
                raise Refused(f"The time of reminder {job.id} passed while it was paused. Remove it and set a new one.")
            await self._jobs.resume(job.id, next_at)
        self._on_change()
        return f"{_DONE[action]}: {self.describe(job if action == 'remove' else await self._mine(job.id, scopes))}"

    def when(self, planned: Job | Reading, *, is_full: bool = True) -> str:
        """In words: ``every Monday at 08:30 (Europe/Lisbon)``; `is_full`: always with the zone and the next date."""
        return describe(planned.schedule, self._zone, self._clock.now(), is_full=is_full)

    def exact(self, reading: Reading) -> str:
        """An unambiguous line of the same meaning: ``2026-11-21 17:00 | call Ana``."""
        return f"{exact(reading.schedule, self._zone)} | {reading.text}"

    def describe(self, job: Job) -> str:
        """A job in one line: ``7: every Monday at 08:30 (Europe/Lisbon): stand-up``."""
        state = " [paused]" if job.paused_at else " [over]" if job.ended_at else ""
        ask = "asks me: " if job.is_prompt else ""
        return f"{job.id}: {self.when(job, is_full=False)}{state}: {ask}{shortened(job.text, _SHOWN_CHARS)}"

    async def _mine(self, job_id: int, scopes: frozenset[Scope]) -> Job:
        job = await self._jobs.find(job_id, scopes)
        if job is None or job.ended_at is not None:
            raise Refused(f"There is no reminder {job_id} here.")
        return job
