"""Reminders and schedules: behind the chat command and the command line, and the tool `reminder` of the model.

Every refusal is a sentence for the person. What belongs to somebody else answers exactly like what does not exist.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

from core.dates.parsing import parse
from core.dates.schedule import Reading, Schedule, describe, exact, next_after, spell
from core.errors import Refused, ToolError
from core.guard.guard import Arguments, tool_of
from core.ports import Clock
from core.review.pending import Review, is_foreign
from core.store.jobs import Job, Jobs
from core.store.notes import QUESTION, REMINDER, Author, Operation, PendingNote
from core.store.sessions import Conversations
from core.store.usage import UsageLog
from core.text.normalize import shortened
from core.types import Account, Address, ErasureEpoch, Payer, Scope, Tool, ToolContext

if TYPE_CHECKING:
    from core.facts.evidence import EvidenceSearch

TEXT_CHARS = 2000
_SHOWN_CHARS = 160

Action = Literal["pause", "resume", "run", "remove"]
ACTIONS = get_args(Action)
_TEXTLESS = (
    "What should I remind you of? Write it behind the time, like 'tomorrow at 9 call Ana'.",
    "What should I be asked then? Write it behind the time, like 'daily at 8 | what is on my list?'.",
)
"""Of a reminder, of a scheduled question."""
QuestionEvery = Callable[[Account | None], Awaitable[float | None]]
"""How many seconds apart an account's scheduled questions have to be; None: it may have none."""
_DONE: Mapping[Action, str] = {"pause": "Paused", "resume": "Resumed", "run": "Due now", "remove": "Removed"}


@dataclass
class Appointments:
    """Over `jobs`. Wall times without a zone are those of `zone`; `on_change` is called after every change.
    `question_every_s`: see `QuestionEvery`; `usage_log` knows how many may be set in a day."""

    jobs: Jobs
    clock: Clock
    zone: str
    on_change: Callable[[], None]
    question_every_s: QuestionEvery
    usage_log: UsageLog | None = None

    def __post_init__(self) -> None:
        self._adding = asyncio.Lock()
        self._reading = asyncio.Lock()

    async def read(self, when: str, text: str | None = None, *, is_prompt: bool = False) -> Reading:
        """What is understood, not stored; without a `text` it stands in the line with the time. Raises Refused."""
        # Another language may take a while to be looked at, so it is done beside the event loop, one at a time.
        async with self._reading:
            reading = await asyncio.to_thread(parse, when, self.clock.now(), self.zone)
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
        past by now or more than this account may have."""
        async with self._adding:
            job = None if origin is None else await self.jobs.of_origin(origin, scope)
            if job is None:
                now = self.clock.now()
                if reading.is_prompt:
                    await self._check_question(reading.schedule, account, now)
                if self.usage_log is not None and account is not None:
                    payer = Payer(scope=scope, user_id=account.user_id)
                    await self.usage_log.check(payer, now, "scheduled_questions" if reading.is_prompt else "reminders")
                if (next_at := next_after(reading.schedule, now)) is None:
                    raise Refused(f"{describe(reading.schedule, self.zone, now)} is past.")
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
                job = await self.jobs.add(job, epoch)
                self.on_change()
        noun = "Scheduled question" if job.is_prompt else "Reminder"
        return f"{noun} {job.id} is set: {self.when(job)}: “{job.text}”."

    async def _check_question(self, schedule: Schedule, account: Account | None, now: datetime) -> None:
        """Raises Refused for a question of somebody who may schedule none, or none that comes so often."""
        every_s = await self.question_every_s(account)
        if every_s is None:
            raise Refused("Only people whom my owner has let in may schedule questions. Reminders are for everybody.")
        due = [now]
        while len(due) < 4 and (next_at := next_after(schedule, due[-1])) is not None:
            due.append(next_at)
        # Two in one hour come one after the other in the first three.
        if any((later - sooner).total_seconds() < every_s for sooner, later in pairwise(due[1:])):
            raise Refused(f"A scheduled question comes again after {spell(every_s)} at the soonest.")

    async def approve(self, note: PendingNote, epoch: ErasureEpoch | None = None) -> str:
        """Sets what the model wanted to plan and a person has approved; returns the receipt. Raises Refused."""
        if note.address is None:
            raise Refused("Where this was to be said is not known any more.")
        reading = await self.read(note.operations[0].content, is_prompt=note.target == QUESTION)
        return await self.add(
            reading, note.address, note.scope, account=note.account, origin=f"pending:{note.id}", epoch=epoch
        )

    async def change(self, action: Action, job_id: int, scopes: frozenset[Scope], by: Account | None = None) -> str:
        """`pause` stops a job until `resume`, which goes on with its next time; `run` makes it due now, besides its
        schedule. `by`: who wants it, None for the owner, who may with every job. Returns what was done; raises Refused
        when there is none such here, and when it is another's in a room."""
        job, now = await self._mine(job_id, scopes), self.clock.now()
        if by is not None and job.scope.is_room and job.account != by:
            raise Refused("In a room only who made a reminder, or my owner with `/cron`, changes it.")
        is_paused = job.paused_at is not None
        if action == "remove":
            await self.jobs.change(job.id, ended_at=now, next_at=None)
        elif action == "run":
            if by is not None and job.is_prompt:
                raise Refused("A scheduled question runs at its times only; what you want to know now, just ask me.")
            if is_paused:
                raise Refused(f"Reminder {job.id} is paused. Resume it first.")
            await self.jobs.change(job.id, next_at=now.replace(microsecond=0))
        elif action == "pause" and not is_paused:
            await self.jobs.change(job.id, paused_at=now)
        elif action == "resume" and is_paused:
            if (next_at := next_after(job.schedule, now)) is None:
                raise Refused(f"The time of reminder {job.id} passed while it was paused. Remove it and set a new one.")
            await self.jobs.change(job.id, paused_at=None, pause_reason=None, next_at=next_at)
        self.on_change()
        return f"{_DONE[action]}: {self.describe(job if action == 'remove' else await self._mine(job.id, scopes))}"

    def when(self, planned: Job | Reading, *, is_full: bool = True) -> str:
        """In words: ``every Monday at 08:30 (Europe/Lisbon)``; `is_full`: always with the zone and the next date."""
        return describe(planned.schedule, self.zone, self.clock.now(), is_full=is_full)

    def exact(self, reading: Reading) -> str:
        """An unambiguous line of the same meaning: ``2026-11-21 17:00 | call Ana``."""
        return f"{exact(reading.schedule, self.zone)} | {reading.text}"

    def describe(self, job: Job) -> str:
        """A job in one line: ``7: every Monday at 08:30 (Europe/Lisbon): stand-up``."""
        why = f": {job.pause_reason}" if job.pause_reason else ""
        state = f" [paused{why}]" if job.paused_at else " [over]" if job.ended_at else ""
        ask = "asks me: " if job.is_prompt else ""
        return f"{job.id}: {self.when(job, is_full=False)}{state}: {ask}{shortened(job.text, _SHOWN_CHARS)}"

    async def _mine(self, job_id: int, scopes: frozenset[Scope]) -> Job:
        job = await self.jobs.find(job_id, scopes)
        if job is None or job.ended_at is not None:
            raise Refused(f"There is no reminder {job_id} here.")
        return job


class _Arguments(Arguments):
    action: Literal["add", "list", "pause", "resume", "remove"]
    when: str = ""
    text: str = ""
    job_id: int | None = None
    is_prompt: bool = False


Ask = Callable[[Reading, ToolContext, str | None], Awaitable[str]]
"""Lets a reading wait for the person's yes, and returns the question; the last is the origin of what it makes."""


def reminder(
    appointments: Appointments, conversations: Conversations, evidence: EvidenceSearch, review: Review, ask: Ask
) -> Tool:
    """What `evidence` does not find in what people typed is asked about, and waits in the list for a yes where other
    texts were read as well. A whole line that allows another reading (`core.agent.offline` passes such lines on) is
    asked about too."""

    async def add(asked: _Arguments, context: ToolContext) -> str:
        address, account = context.session.address, None if context.sender.is_nobody else context.account
        if address.platform == "cron":
            raise ToolError("A scheduled session cannot make reminders or schedules. Say in your answer what to set.")
        if not asked.when.strip():
            raise ToolError("add needs when, the time of the reminder. Ask the person if you do not know it.")
        text = asked.text if asked.text.strip() else None
        when = f"remind me {asked.when}" if text is None else asked.when
        reading = await appointments.read(when, text, is_prompt=asked.is_prompt and text is not None)
        rows = await conversations.history(context.session, context.scopes)
        reason = await evidence.unsaid([reading.text], context)
        if reason and any(is_foreign(row, context.sender, ("reminder",)) for row in rows):
            author = Author(account=account, message_id=context.message_id, address=address, epoch=context.epoch)
            line = Operation(action="add", content=appointments.exact(reading))
            target = QUESTION if asked.is_prompt else REMINDER
            return await review.put_aside(context.scope, target, [line], author, reason)
        origin = _origin(asked, context)
        if reason or (not reading.is_certain and text is None):
            return await ask(reading, context, origin)
        receipt = await appointments.add(
            reading, address, context.scope, account=account, origin=origin, epoch=context.epoch
        )
        doubt = "" if reading.is_certain else " (The words allow another reading: ask whether that time is meant.)"
        return receipt + doubt

    async def run(asked: _Arguments, context: ToolContext) -> str:
        if asked.action == "add":
            return await add(asked, context)
        if asked.action == "list":
            jobs = await appointments.jobs.of(context.scopes)
            return "\n".join(map(appointments.describe, jobs)) or "There are no reminders here."
        if asked.job_id is None:
            raise ToolError(f"{asked.action} needs job_id, the number of the reminder; action 'list' shows them.")
        return await appointments.change(asked.action, asked.job_id, context.scopes, context.account)

    return tool_of("reminder", _Arguments, run, "core.scheduling")


def _origin(asked: _Arguments, context: ToolContext) -> str | None:
    """The same for the same request in one turn, so that a turn repeated after a crash makes no second reminder."""
    if context.message_id is None:
        return None
    request = json.dumps([asked.when, asked.text, asked.is_prompt])
    return f"tool:{context.message_id}:{hashlib.sha256(request.encode('utf-8', 'replace')).hexdigest()[:16]}"
