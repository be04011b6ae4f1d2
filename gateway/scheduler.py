"""Keeps time for the jobs of state.db: hands reminders to the outbox, and asks the agent what is due to be asked.

The rows are the only truth; the scheduler holds one date for each job and is loaded from them. Fills the role Adapter
for the platform "cron", so that a cron session is an ordinary turn whose answer is delivered where its job belongs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.events import EVENT_JOB_ERROR, JobExecutionEvent  # type: ignore[import-untyped]
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-untyped]
from apscheduler.triggers.date import DateTrigger  # type: ignore[import-untyped]
from apscheduler.triggers.interval import IntervalTrigger  # type: ignore[import-untyped]

from core.errors import ConfigError, DeliveryError, Refused
from core.ports import Clock, DeliveryRecord, Reply, Sink
from core.scheduling.schedule import latest, next_after, spell
from core.store.jobs import Job, Jobs
from core.store.outbox import Outbox, OutboxItem
from core.store.people import People
from core.types import Address, Answer, CommandSpec, Inbound, Scope, Sender

PLATFORM = "cron"
CLOSING_S = 5.0


class Scheduler:
    """One date in the scheduler for each active job. `deliver` gives the way to a job's target; `on_wake` is called
    when something lies in the outbox; what is more than `late_after_s` late says so."""

    platform = PLATFORM
    problem = ""
    hint = (
        "This is a scheduled session: nobody is waiting and nobody can answer a question. The message is a task that "
        "was planned earlier. Do it and answer with the result alone; it is delivered to the chat it was planned in."
    )
    retry_s = 30.0
    """After a run that failed (a full disk, say), when it is tried again."""
    pulse_s = 30.0
    """How often the clock is looked at anyway: a machine that slept, or a clock set anew, moves no timer."""

    def __init__(
        self,
        *,
        jobs: Jobs,
        outbox: Outbox,
        people: People,
        clock: Clock,
        deliver: Callable[[Address], Reply],
        late_after_s: float,
        on_wake: Callable[[], None],
    ) -> None:
        self._jobs = jobs
        self._outbox = outbox
        self._people = people
        self._clock = clock
        self._deliver = deliver
        self._late_after_s = late_after_s
        self._on_wake = on_wake
        self._over: Callable[[frozenset[Scope]], AbstractAsyncContextManager[None]] = lambda _: nullcontext()
        self._scheduler: AsyncIOScheduler | None = None
        self._sink: Sink | None = None
        self._planned: dict[int, datetime] = {}
        self._runs: set[asyncio.Task[None]] = set()
        self._turns: set[asyncio.Task[None]] = set()
        self._chores: dict[str, tuple[float, Callable[[], Awaitable[None]]]] = {}
        self._log = structlog.get_logger("cron")

    def connect(self, over: Callable[[frozenset[Scope]], AbstractAsyncContextManager[None]]) -> None:
        """`over` refuses what is written inside of it once something in the scopes was erased."""
        self._over = over

    def plan_chore(self, name: str, every_s: float, work: Callable[[], Awaitable[None]]) -> None:
        """From `open` on, `work` is done every so many seconds while we listen, never twice at a time. One that fails
        is logged, and done again in its turn. It should take no longer than a reminder may wait at the end."""
        self._chores[name] = (every_s, work)

    async def open(self) -> None:
        """Starts the scheduler, with nothing to do yet but the chores."""
        self._scheduler = AsyncIOScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        )
        self._scheduler.add_listener(self._failed, EVENT_JOB_ERROR)
        self._scheduler.add_job(self._look, IntervalTrigger(seconds=self.pulse_s, timezone=UTC), id="pulse")
        for name, (every_s, _) in self._chores.items():
            self._scheduler.add_job(self._tend, IntervalTrigger(seconds=every_s, timezone=UTC), args=[name], id=name)
        self._scheduler.start(paused=True)

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        """Runs what is due until cancelled. Turns that have begun go on until they end or `close`."""
        self._sink = sink
        try:
            self._planned.clear()
            await self.reload()
            if self._scheduler is not None:
                self._scheduler.resume()
            await asyncio.Event().wait()
        finally:
            self._sink = None
            if self._scheduler is not None:
                self._scheduler.pause()

    async def close(self) -> None:
        """Ends the scheduler and gives up turns that still run; they are stored, and go on after the next start."""
        if self._runs:
            # A run takes a few writes only; cut short it would be done again, and end in the scheduler's log.
            await asyncio.wait(self._runs, timeout=CLOSING_S)
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)
            self._scheduler = None
            await asyncio.sleep(0)
        for turn in self._turns:
            turn.cancel()
        if self._turns:
            await asyncio.wait(self._turns)

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        """The way from a cron session to the chat its job belongs to."""
        return _Reply(self, int(address.chat_id) if address.chat_id.isdecimal() else 0, _due(reply_to or ""))

    async def reload(self) -> None:
        """Makes the scheduler hold what the rows say. To be called whenever they have changed; cheap when not."""
        if self._sink is None:
            return
        due = {job.id: job.next_at for job in await self._jobs.active() if job.next_at is not None}
        for job_id in [*self._planned]:
            if job_id not in due:
                self._plan(job_id, None)
        for job_id, next_at in due.items():
            if self._planned.get(job_id) != next_at:
                self._plan(job_id, next_at)

    def _plan(self, job_id: int, due_at: datetime | None, run_at: datetime | None = None) -> None:
        """Sets the date of a job, or takes it away. `run_at`: when to run what is due at `due_at`."""
        if self._scheduler is None:
            return
        self._planned.pop(job_id, None)
        if due_at is None:
            if self._scheduler.get_job(str(job_id)) is not None:
                self._scheduler.remove_job(str(job_id))
            return
        self._planned[job_id] = due_at
        # The scheduler looks at the machine's clock and we at ours: what counts is how long it is from now.
        run_date = datetime.now(UTC) + ((run_at or due_at) - self._clock.now())
        self._scheduler.add_job(
            self._fire, DateTrigger(run_date, timezone=UTC), args=[job_id], id=str(job_id), replace_existing=True
        )

    def _failed(self, event: JobExecutionEvent) -> None:
        """Called by the scheduler when a run raised: the row is unchanged, so the same run is tried again."""
        if event.job_id in self._chores:
            self._log.error("a chore failed", chore=event.job_id, error=str(event.exception))
        if not str(event.job_id).isdecimal() or self._sink is None:
            return
        job_id = int(event.job_id)
        self._log.error("a run failed and is tried again", job=job_id, error=str(event.exception))
        now = self._clock.now()
        self._plan(job_id, self._planned.get(job_id, now), now + timedelta(seconds=self.retry_s))

    async def _look(self) -> None:
        """Runs what is due by our clock and still waits in the scheduler; one that runs is not there any more."""
        now = self._clock.now()
        for job_id, due_at in [*self._planned.items()]:
            if due_at <= now and self._scheduler is not None and self._scheduler.get_job(str(job_id)) is not None:
                self._plan(job_id, due_at)

    async def _tend(self, name: str) -> None:
        self._own_run()
        if self._sink is not None:
            await self._chores[name][1]()

    def _own_run(self) -> None:
        """Lets `close` wait for the task that the scheduler has made for this run."""
        task = asyncio.current_task()
        assert task is not None
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)

    async def _fire(self, job_id: int) -> None:
        self._own_run()
        sink = self._sink
        job = await self._jobs.behind(job_id)
        if sink is not None and job is not None and _is_due(job, self._clock.now()):
            await self._run(job, sink)
            job = await self._jobs.behind(job_id)
        if self._sink is None:
            self._planned.pop(job_id, None)
            return
        is_active = job is not None and job.ended_at is None and job.paused_at is None
        self._plan(job_id, job.next_at if job is not None and is_active else None)

    async def _run(self, job: Job, sink: Sink) -> None:
        """One run for one due time, whatever happened before: every step finds what a dead process left of it."""
        now = self._clock.now()
        entry_id: int | None = None
        try:
            due_at = latest(job.schedule, job.next_at or now, now)
            next_at = next_after(job.schedule, max(due_at, now))
            await self.check(job)
            is_started = await self._jobs.start(job.id, due_at, now)
        except (Refused, ConfigError) as error:
            self._log.warning("a job was paused", job=job.id, reason=str(error))
            await self._jobs.pause(job.id, now)
            return
        async with self._over(frozenset({job.scope})):
            # Only now is it sure that nothing of what is read is forgotten before it is written.
            standing = await self._jobs.behind(job.id)
            if is_started and standing is not None and standing.text:
                if standing.is_prompt:
                    entry_id = await sink.admit(_inbound(standing, due_at, now), _Reply(self, job.id, due_at))
                else:
                    await self._remind(standing, due_at, now)
        await self._jobs.finish(job.id, due_at, now, next_at)
        if entry_id is not None:
            turn = asyncio.create_task(sink.serve(entry_id))
            self._turns.add(turn)
            turn.add_done_callback(self._turns.discard)

    async def _remind(self, job: Job, due_at: datetime, now: datetime) -> None:
        key = f"job:{job.id}:{due_at.isoformat()}"
        held = await self._outbox.hold(OutboxItem(key=key, kind="reminder", address=job.target))
        if held.answer is None and not held.is_over:
            late = self.lateness(due_at, now)
            await self._outbox.fill(key, Answer(text=f"⏰ {job.text}{f' ({late})' if late else ''}"), now)
        self._on_wake()

    def lateness(self, due_at: datetime | None, now: datetime | None = None) -> str:
        """``late by 2 hours``, or nothing when it is about in time."""
        late_s = ((now or self._clock.now()) - due_at).total_seconds() if due_at is not None else 0.0
        return (
            f"late by {spell(late_s - late_s % 60 if late_s >= 60 else late_s)}" if late_s > self._late_after_s else ""
        )

    async def check(self, job: Job) -> None:
        """Raises Refused when the scope of a job is not that of its target: what is due would be said to others."""
        target = job.target
        if job.scope.is_room:
            rooms = {Scope.room(target.platform, target.chat_id)}
            if target.thread_id:
                rooms.add(Scope.room(target.platform, target.thread_id))
            is_same = job.scope in {await self._people.room(room) for room in rooms}
        else:
            is_same = job.scope.key.startswith(f"account:{target.platform}:")
        if not is_same:
            raise Refused(f"What is planned in {job.scope.key} cannot be delivered at {target.key}.")

    async def way(self, job_id: int) -> Reply:
        """The way to the target of a job. Raises DeliveryError when there is none (any more)."""
        job = await self._jobs.behind(job_id)
        if job is None:
            raise DeliveryError(f"There is no job {job_id}.", is_permanent=True)
        try:
            await self.check(job)
            return self._deliver(job.target)
        except Refused as refusal:
            raise DeliveryError(str(refusal), is_permanent=True) from refusal
        except LookupError as error:
            raise DeliveryError(f"{job.target.platform} is not connected.") from error


class _Reply:
    """Fills the role Reply: the answer of a cron session goes to the target of its job. Nothing is shown meanwhile."""

    def __init__(self, cron: Scheduler, job_id: int, due_at: datetime | None) -> None:
        self._cron = cron
        self._job_id = job_id
        self._due_at = due_at
        self._late = cron.lateness(due_at)
        self._receipt: DeliveryRecord | None = None

    def begin(self, receipt: DeliveryRecord) -> None:
        self._receipt = receipt
        if self._due_at is None:
            self._due_at = _due(receipt.key)
            self._late = self._cron.lateness(self._due_at)

    def show(self, text: str) -> None:
        return

    async def finish(self, answer: Answer) -> None:
        way = await self._cron.way(self._job_id)
        if self._receipt is not None:
            way.begin(self._receipt)
        await way.finish(replace(answer, text=f"({self._late}) {answer.text}") if self._late else answer)

    async def abandon(self) -> None:
        return


def _is_due(job: Job, now: datetime) -> bool:
    is_active = job.ended_at is None and job.paused_at is None
    return is_active and job.next_at is not None and job.next_at <= now


def _inbound(job: Job, due_at: datetime, now: datetime) -> Inbound:
    return Inbound(
        kind="message",
        address=Address(platform=PLATFORM, chat_id=str(job.id)),
        scope=job.scope,
        sender=Sender(id=job.account.user_id if job.account else PLATFORM, name="schedule"),
        text=job.text,
        message_id=f"{job.id}@{due_at.isoformat()}",
        sent_at=now,
        is_direct=not job.scope.is_room,
    )


def _due(name: str) -> datetime | None:
    """The due time in the name of a run (``7@2026-11-20T12:00:00+00:00``), which also ends the key of its parcel."""
    try:
        due_at = datetime.fromisoformat(name.rpartition("@")[2])
    except ValueError:
        return None
    return due_at if due_at.tzinfo is not None else None
