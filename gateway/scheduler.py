"""Keeps time for the jobs of state.db: hands reminders to the outbox, and asks the agent what is due to be asked.

The rows are the only truth; APScheduler holds the next date at which to look at them. An Adapter of the platform
"cron", so that a cron session is an ordinary turn whose answer is delivered where its job belongs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-untyped]
from apscheduler.triggers.date import DateTrigger  # type: ignore[import-untyped]
from apscheduler.triggers.interval import IntervalTrigger  # type: ignore[import-untyped]

from adapters.streaming import QuietReply
from core.dates.schedule import lateness, latest, next_after
from core.errors import ConfigError, DeliveryError, Refused
from core.markup.markdown import escape
from core.ports import Clock, DeliveryRecord, Reply, Sink
from core.store.epoch import View
from core.store.jobs import Job, Jobs
from core.store.mailbox import Outbox, OutboxItem
from core.text.normalize import language_data, shortened
from core.types import Address, Answer, CommandSpec, ErasureEpoch, Inbound, Sender
from gateway import texts

PLATFORM = "cron"
CLOSING_S = 5.0
AGAIN = timedelta(seconds=2)
"""After which a run that failed (a full disk, say) is tried again."""
HEADING_CHARS = 80
"""Of a question that its answer names."""


@dataclass(eq=False, kw_only=True)
class Scheduler:
    """Runs each active job when it is due. `deliver` gives the way to a job's target; `on_wake` is called when
    something lies in the outbox; what is more than `late_after_s` late says so. `view`: as of `EpochGuard`, raises
    Refused where whoever planned a job is not served any more."""

    platform = PLATFORM
    problem = contact = ""
    hint = language_data("hints", "adapters")[PLATFORM]
    pulse_s = 30.0
    """How often the rows are looked at anyway: a machine that slept, or a clock set anew, moves no timer."""

    jobs: Jobs
    outbox: Outbox
    clock: Clock
    deliver: Callable[[Address], Reply]
    late_after_s: float
    on_wake: Callable[[], None]
    view: Callable[[Job], Awaitable[View]]
    on_pause: Callable[[Job, str], Awaitable[None]] | None = None
    """Gets a job before it is paused, and why; again after a crash in between."""

    def __post_init__(self) -> None:
        self._scheduler = AsyncIOScheduler(timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True})
        self._sink: Sink | None = None
        self._looking = asyncio.Lock()
        self._log = structlog.get_logger("cron")

    async def open(self) -> None:
        """Starts the scheduler, which does nothing until `listen`."""
        pulse = IntervalTrigger(seconds=self.pulse_s, timezone=UTC)
        self._scheduler.add_job(self.reload, pulse, id="pulse", replace_existing=True)
        self._scheduler.start()

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        """Runs what is due until cancelled. Turns that have begun go on."""
        self._sink = sink
        try:
            await self.reload()
            await asyncio.Event().wait()
        finally:
            self._sink = None

    async def close(self) -> None:
        """Ends the scheduler; turns that still run are the router's."""
        with suppress(TimeoutError):
            # Runs take a few writes only; cut short they would be done again.
            async with asyncio.timeout(CLOSING_S), self._looking:
                pass
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
            await asyncio.sleep(0)

    async def reload(self) -> None:
        """Does what is due and sets the date of the next look; called whenever the rows have changed."""
        async with self._looking:
            sink, now = self._sink, self.clock.now()
            if sink is None:
                return
            planned = [(job, job.next_at) for job in await self.jobs.active() if job.next_at is not None]
            due = [job for job, next_at in planned if next_at <= now]
            runs = await asyncio.gather(*(self._run(job, sink) for job in due), return_exceptions=True)
            ahead = [next_at for _, next_at in planned if next_at > now]
            for job, outcome in zip(due, runs, strict=True):
                if isinstance(outcome, BaseException):
                    self._log.error("a run failed", job=job.id, error=str(outcome))
                    ahead.append(now + AGAIN)
                elif outcome is not None:
                    ahead.append(outcome)
            if ahead:
                # APScheduler looks at the machine's clock and we at ours: what counts is how long it is from now.
                run_date = datetime.now(UTC) + (min(ahead) - self.clock.now())
                trigger = DateTrigger(run_date, timezone=UTC)
                self._scheduler.add_job(self.reload, trigger, id="next", replace_existing=True)

    async def _run(self, job: Job, sink: Sink) -> datetime | None:
        """One run for one due time, whatever happened before: outbox and inbox know by their keys what a dead process
        has handed over. Returns when the job is due next."""
        now = self.clock.now()
        try:
            due_at = latest(job.schedule, job.next_at or now, now)
            next_at = next_after(job.schedule, now)
            await self.jobs.check(job)
            epoch = (await self.view(job)).epoch
        except (Refused, ConfigError) as error:
            self._log.warning("a job was paused", job=job.id, reason=str(error))
            if self.on_pause is not None:
                await self.on_pause(job, str(error))
            await self.jobs.change(job.id, paused_at=now, pause_reason=str(error))
            return None
        # Only now is it sure that nothing of what is read is forgotten before it is written.
        standing = await self.jobs.get(job.id)
        if standing is None or standing.paused_at or standing.ended_at:
            return None
        is_late = (now - due_at).total_seconds() > self.late_after_s
        late = texts.LATE.format(late=lateness(due_at, now, standing.schedule.zone)) if is_late else ""
        if standing.text and standing.is_prompt:
            question = escape(shortened(standing.text, HEADING_CHARS))
            heading = texts.QUESTION.format(id=standing.id, late=late, text=question)
            inbound = _inbound(standing, due_at, now, epoch, heading)
            entry_id = await sink.admit(inbound, self.reply(inbound.address))
            if entry_id is not None:
                # At once: should the next write fail, it is known when it is tried again.
                sink.serve(entry_id)
        elif standing.text:
            key = f"job:{job.id}:{due_at.isoformat()}"
            answer = Answer(text=texts.REMINDER.format(id=standing.id, late=late, text=standing.text))
            item = OutboxItem(key=key, kind="reminder", address=standing.target, answer=answer, next_at=now)
            await self.outbox.put(item, epoch=epoch)
            self.on_wake()
        await self.jobs.finish(job.id, now, next_at)
        return next_at

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        """The answer of a cron session goes to the target of its job; a DeliveryError when there is none (any more)."""
        job_id = int(address.chat_id) if address.chat_id.isdecimal() else 0

        async def send(record: DeliveryRecord, answer: Answer) -> None:
            job = await self.jobs.get(job_id)
            if job is None:
                raise DeliveryError(f"There is no job {job_id}.", is_permanent=True)
            try:
                await self.jobs.check(job)
                await self.view(job)
                reply = self.deliver(job.target)
            except Refused as refusal:
                raise DeliveryError(str(refusal), is_permanent=True) from refusal
            except LookupError as error:
                raise DeliveryError(f"{job.target.platform} is not connected.") from error
            reply.begin(record)
            await reply.finish(answer)

        return QuietReply(send)


def _inbound(job: Job, due_at: datetime, now: datetime, epoch: ErasureEpoch, heading: str) -> Inbound:
    return Inbound(
        kind="message",
        address=Address(platform=PLATFORM, chat_id=str(job.id)),
        scope=job.scope,
        sender=Sender(id=job.account.user_id if job.account else PLATFORM, name="schedule"),
        text=job.text,
        message_id=f"{job.id}@{due_at.isoformat()}",
        sent_at=now,
        is_direct=not job.scope.is_room,
        heading=heading,
        epoch=epoch,
    )
