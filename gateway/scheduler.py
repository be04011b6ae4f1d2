"""Runs jobs when they are due: sends reminders, and asks the agent scheduled questions.

The rows in state.db decide which jobs are due. APScheduler only provides the timers for the next
look at these rows.

The scheduler implements `Adapter` for the platform "cron". A scheduled question is an ordinary turn
on that platform, and its answer is delivered to the chat of its job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-untyped]
from apscheduler.triggers.date import DateTrigger  # type: ignore[import-untyped]
from apscheduler.triggers.interval import IntervalTrigger  # type: ignore[import-untyped]

from adapters.streaming import QuietReply
from core.errors import ConfigError, DeliveryError, Refused
from core.guard.origin_and_fence import WATCH_INSTRUCTION
from core.markup.markdown import escape
from core.menus.command_specs import CommandSpec
from core.ports import Clock, DeliveryRecord, InboundSink, Reply
from core.scheduling.due import latest_due, next_due
from core.store.actions import ButtonAction
from core.store.jobs import Job, JobRun, Jobs, RunResult, is_nothing_new
from core.store.mailbox import Outbox, OutboxItem
from core.store.media.files import AttachedFile
from core.store.ownership.people import View
from core.text.normalize import language_data, shorten
from core.types import Account, Address, Answer, Button, ErasureEpoch, Inbound, Scope, Sender
from gateway.commands.registry import assign_button_ids, make_button, make_button_actions
from gateway.texts.catalog import ENGLISH, Texts
from gateway.texts.languages import Languages

PLATFORM = "cron"
# How long `close` waits for runs that have begun. If a run is interrupted, it's repeated later.
CLOSE_TIMEOUT_S = 5.0
# A failed run is repeated after this time, for example if the disk was full.
RETRY_DELAY = timedelta(seconds=2)
# The maximum length of the question that is quoted above its answer.
HEADING_CHARS = 80
# Questions that are due at the same full hour start within this time.
SPREAD = timedelta(minutes=2)
# After this many failures in a row, a scheduled question is paused.
MAX_FAILURES = 5
# The maximum number of reminders that are queued in one transaction, so that other writes wait only
# briefly.
BATCH_SIZE = 200
# After a batch has failed and this many of its reminders have also failed alone, the rest isn't
# tried.
MAX_FAILED_REMINDERS = 3
# A reminder offers to send at most this many files of the message that set it.
MAX_FILE_BUTTONS = 3
FILE_LABEL_CHARS = 24


@dataclass(eq=False, slots=True)
class _Batch:
    """Reminders to queue in one transaction. The data of each person is read only once."""

    now: datetime
    runs: list[JobRun] = field(default_factory=list)
    # Reminders of people with quiet hours, and the time when these hours end.
    delays: list[tuple[Job, datetime]] = field(default_factory=list)
    _views: dict[tuple[Scope, Account | None], View] = field(default_factory=dict)
    _quiet_ends: dict[tuple[Account | None, bool], datetime | None] = field(default_factory=dict)

    async def load_view(self, job: Job, load: Callable[[Job], Awaitable[View]]) -> View:
        key = (job.scope, job.account)
        if key not in self._views:
            self._views[key] = await load(job)
        return self._views[key]

    async def load_quiet_end(
        self, job: Job, load: Callable[[Job], Awaitable[datetime | None]]
    ) -> datetime | None:
        key = (job.account, job.is_urgent)
        if key not in self._quiet_ends:
            self._quiet_ends[key] = await load(job)
        return self._quiet_ends[key]


@dataclass(eq=False, kw_only=True)
class Scheduler:
    """Runs each active job when it's due."""

    platform = PLATFORM
    problem = ""
    contact = ""
    accepted_at = 0.0
    hint = language_data("hints", "adapters")[PLATFORM]
    # The rows are also read at this interval, because timers are late if the machine was asleep or
    # its clock was changed.
    poll_interval_s = 30.0

    jobs: Jobs
    outbox: Outbox
    clock: Clock
    # Opens a reply to a job's chat. Raises LookupError if the platform isn't connected.
    open_reply: Callable[[Address], Reply]
    # A reminder or answer that is sent later than this says that it is late.
    late_after_s: float
    # Called after an item was put into the outbox.
    on_wake: Callable[[], None]
    # Returns the scopes that a job may read. Raises Refused if its author has lost access.
    load_view: Callable[[Job], Awaitable[View]]
    # Called with a job and the reason before the job is paused. After a crash, it may be called
    # again.
    on_pause: Callable[[Job, str], Awaitable[None]] | None = None
    # Returns the facts for a brief or a check-in, from what these scopes contain. Returns None for
    # any other job.
    write_brief: Callable[[Job, frozenset[Scope]], Awaitable[str | None]] | None = None
    # Whether a model answers scheduled questions. Without one, a brief is only its facts.
    has_model: bool = True
    # The languages of people and groups. If this is None, all texts are in English.
    languages: Languages | None = None
    # Returns the stored files of the message that set a job.
    list_files: Callable[[Job], Awaitable[Sequence[AttachedFile]]] | None = None
    # Returns when the quiet hours of a job's author end, or None if the job needn't wait.
    find_quiet_end: Callable[[Job], Awaitable[datetime | None]] | None = None

    def __post_init__(self) -> None:
        self._timers = AsyncIOScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True}
        )
        # Takes scheduled questions; None while the scheduler isn't listening.
        self._sink: InboundSink | None = None
        # Held while due jobs run.
        self._reload_lock = asyncio.Lock()
        self._log = structlog.get_logger("cron")

    async def open(self) -> None:
        """Start the timers. No job runs before `listen` is called."""
        interval = IntervalTrigger(seconds=self.poll_interval_s, timezone=UTC)
        self._timers.add_job(self.reload, interval, id="pulse", replace_existing=True)
        self._timers.start()

    async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
        """Run due jobs until cancelled. Turns that have begun continue."""
        self._sink = sink
        try:
            await self.reload()
            await asyncio.Event().wait()
        finally:
            self._sink = None

    async def close(self) -> None:
        """Wait for the runs that have begun, and stop the timers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S), self._reload_lock:
                pass
        if self._timers.running:
            self._timers.shutdown(wait=False)
            await asyncio.sleep(0)

    async def reload(self) -> None:
        """Run due jobs, and set a timer for the next due time.

        Call this whenever jobs have changed. Before `listen`, this does nothing.
        """
        async with self._reload_lock:
            sink = self._sink
            now = self.clock.now()
            if sink is None:
                return
            next_times = await self._run_all(await self.jobs.list_due(now), sink, now)
            next_at = await self.jobs.find_next_due(now)
            if next_at is not None:
                next_times.append(next_at)
            if next_times:
                self._set_timer(min(next_times))

    async def _run_all(
        self, jobs: Sequence[Job], sink: InboundSink, now: datetime
    ) -> list[datetime]:
        """Run jobs in order of their due times, and return when they run next.

        Reminders come first, many of them in one transaction. Questions that are due at the same
        full hour are spread out (see `_spread_questions`). If a run fails, it's retried after
        `RETRY_DELAY`, and the other jobs continue.
        """
        delays = _spread_questions(jobs, now)
        await self.jobs.delay([(job, delays[job.id]) for job in jobs if job.id in delays])
        next_times = list(delays.values())
        due_jobs = [job for job in jobs if job.id not in delays]
        due_jobs.sort(key=lambda job: _find_latest_due(job, now))
        reminders = [job for job in due_jobs if job.text and not job.is_prompt]
        for start in range(0, len(reminders), BATCH_SIZE):
            next_times += await self._remind(reminders[start : start + BATCH_SIZE])
        for job in due_jobs:
            if job.text and not job.is_prompt:
                continue
            (result,) = await asyncio.gather(self._run(job, sink), return_exceptions=True)
            if isinstance(result, BaseException):
                self._log.error("a run failed", job=job.id, error=str(result))
                next_times.append(now + RETRY_DELAY)
            elif result is not None:
                next_times.append(result)
        return next_times

    def _set_timer(self, next_at: datetime) -> None:
        """Call `reload` at the given time. This replaces the earlier timer."""
        # APScheduler uses the machine's clock, which may differ from ours.
        run_date = datetime.now(UTC) + (next_at - self.clock.now())
        trigger = DateTrigger(run_date, timezone=UTC)
        self._timers.add_job(self.reload, trigger, id="next", replace_existing=True)

    async def _remind(self, jobs: Sequence[Job]) -> list[datetime]:
        """Queue the reminders that are due, and return when they run next.

        If this fails for several reminders at once, each is tried alone, so that an invalid one
        doesn't delay the others. If they also fail alone, the store can't be written, and all of
        them wait.
        """
        (result,) = await asyncio.gather(self._remind_at_once(jobs), return_exceptions=True)
        if not isinstance(result, BaseException):
            return result
        self._log.error("reminders failed", jobs=len(jobs), error=str(result))
        next_times = [self.clock.now() + RETRY_DELAY]
        failures = 0
        for job in jobs if len(jobs) > 1 else ():
            (result,) = await asyncio.gather(self._remind_at_once([job]), return_exceptions=True)
            if not isinstance(result, BaseException):
                next_times += result
                continue
            self._log.error("a run failed", job=job.id, error=str(result))
            failures += 1
            if failures == MAX_FAILED_REMINDERS:
                break
        return next_times

    async def _remind_at_once(self, jobs: Sequence[Job]) -> list[datetime]:
        """Queue reminders in one transaction, and return when they run next.

        A reminder in quiet hours is moved to their end, and one that may no longer be sent is
        paused. If a person has just changed a reminder, it's checked again after `RETRY_DELAY`.
        """
        batch = _Batch(self.clock.now())
        for job in jobs:
            await self._prepare(job, batch)
        await self.jobs.delay(batch.delays)
        next_times = [quiet_end for _, quiet_end in batch.delays]
        results = await self.jobs.queue_runs(batch.runs, batch.now) if batch.runs else []
        if RunResult.QUEUED in results:
            self.on_wake()
        for run, result in zip(batch.runs, results, strict=True):
            if isinstance(result, Refused):
                await self._pause(run.job, str(result), batch.now)
            elif result is RunResult.CHANGED:
                next_times.append(batch.now + RETRY_DELAY)
            elif run.next_at is not None:
                next_times.append(run.next_at)
        return next_times

    async def _prepare(self, job: Job, batch: _Batch) -> None:
        """Add a reminder to the runs or the delays of a batch, or pause it."""
        now = batch.now
        try:
            due_at = latest_due(job.schedule, job.next_at or now, now)
            next_at = next_due(job.schedule, now)
            view = await batch.load_view(job, self.load_view)
        except (Refused, ConfigError) as error:
            await self._pause(job, str(error), now)
            return
        quiet_end = None
        if self.find_quiet_end is not None:
            quiet_end = await batch.load_quiet_end(job, self.find_quiet_end)
        if quiet_end is not None:
            batch.delays.append((job, quiet_end))
            return
        late = self._render_lateness(job, due_at, now)
        texts = self._load_texts(job)
        files = [] if self.list_files is None else await self.list_files(job)
        buttons = [*make_reminder_buttons(texts, job), *make_file_buttons(texts, files)]
        answer = Answer(
            text=texts.REMINDER.format(id=job.id, late=late, text=job.text),
            buttons=assign_button_ids(buttons),
        )
        item = _make_item(job, answer, due_at, now)
        actions = _make_actions(item, job, now)
        batch.runs.append(
            JobRun(job=job, next_at=next_at, item=item, actions=actions, epoch=view.epoch)
        )

    async def _run(self, job: Job, sink: InboundSink) -> datetime | None:
        """Run a question once for its latest due time, and return its next due time.

        Returns None if the job doesn't run again because it's over, paused or erased. If a crash
        repeats a run, nothing is sent twice, because the outbox and the inbox recognize repeated
        items by their keys.
        """
        now = self.clock.now()
        try:
            due_at = latest_due(job.schedule, job.next_at or now, now)
            next_at = next_due(job.schedule, now)
            await self.jobs.check_scope(job)
            view = await self.load_view(job)
        except (Refused, ConfigError) as error:
            await self._pause(job, str(error), now)
            return None
        # Read the job again: it may have been erased after it was read and before the epoch was
        # read.
        current = await self.jobs.get(job.id)
        if current is None or current.paused_at or current.ended_at:
            return None
        if current.next_at is not None and current.next_at > now:
            # A person has snoozed or changed the job since it was read.
            return current.next_at
        quiet_end = await self.find_quiet_end(current) if self.find_quiet_end is not None else None
        if quiet_end is not None:
            await self.jobs.update(job.id, next_at=quiet_end)
            return quiet_end
        if current.text:
            await self._ask(current, due_at, now, view, sink)
        await self.jobs.finish(current, now, next_at)
        return next_at

    async def _pause(self, job: Job, reason: str, now: datetime) -> None:
        """Notify the job's author, then pause the job."""
        self._log.warning("a job was paused", job=job.id, reason=reason)
        if self.on_pause is not None:
            await self.on_pause(job, reason)
        await self.jobs.update(job.id, paused_at=now, pause_reason=reason)

    async def record_failure(self, address: Address, reason: str) -> str | None:
        """Count a failed run of a scheduled question. Returns the notice for the person, or None.

        `address` is the question's own address. Only the first of several failures in a row gets a
        notice. After `MAX_FAILURES` in a row, the job is paused, and its author gets a separate
        notice. A brief or a check-in is never paused, and its facts are returned after each
        failure.
        """
        job = await self.jobs.get(_read_job_id(address))
        if job is None:
            return reason
        failures = await self.jobs.count_failure(job.id)
        facts = await self._write_facts(job)
        if facts is not None:
            return f"{reason}\n\n{facts}" if failures == 1 else facts
        texts = self._load_texts(job)
        if failures == 1:
            return reason if job.ended_at else f"{reason} {texts.JOB_WILL_RETRY}"
        if failures >= MAX_FAILURES and job.paused_at is None and job.ended_at is None:
            pause_reason = texts.JOB_FAILED_OFTEN.format(count=failures, reason=reason)
            await self._pause(job, pause_reason, self.clock.now())
        return None

    async def _write_facts(self, job: Job) -> str | None:
        """Return the facts of a brief or a check-in, or None for other jobs.

        Returns None, too, if the author of the job has lost access.
        """
        if self.write_brief is None:
            return None
        try:
            view = await self.load_view(job)
        except Refused:
            return None
        return await self.write_brief(job, view.scopes)

    async def _ask(
        self, job: Job, due_at: datetime, now: datetime, view: View, sink: InboundSink
    ) -> None:
        """Admit a scheduled question as an event, and let the agent answer it.

        Without a model, the facts of a brief or a check-in are sent instead.
        """
        facts = None
        if self.write_brief is not None:
            facts = await self.write_brief(job, view.scopes)
        if facts is not None and not self.has_model:
            await self.outbox.put(
                _make_item(job, Answer(text=facts), due_at, now), epoch=view.epoch
            )
            self.on_wake()
            return
        texts = self._load_texts(job)
        question = escape(shorten(job.text, HEADING_CHARS))
        late = self._render_lateness(job, due_at, now)
        heading = texts.QUESTION.format(id=job.id, late=late, text=question)
        inbound = _build_question(texts, job, due_at, now, view.epoch, heading)
        if facts is not None:
            inbound = replace(inbound, text=f"{inbound.text}\n\n{facts}")
        entry_id = await sink.admit(inbound, self.reply(inbound.address))
        if entry_id is not None:
            # Serve the question now, before the caller's next write. If that write fails, the run
            # is repeated, but the question isn't admitted again and would never be served.
            sink.serve(entry_id)

    def _load_texts(self, job: Job) -> Texts:
        """Return the texts in the language of the job's group or author."""
        if self.languages is None:
            return ENGLISH
        return self.languages.of_scope(job.scope, job.account)

    def _render_lateness(self, job: Job, due_at: datetime, now: datetime) -> str:
        """Return a clause that says how late a job is, or "" if it's on time."""
        if (now - due_at).total_seconds() <= self.late_after_s:
            return ""
        return self._load_texts(job).describe_lateness(due_at, now, job.schedule.zone)

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        """Return a reply that sends the answer to the chat of a job.

        `address.chat_id` is the number of the job. Sending raises DeliveryError if the job was
        removed, if its author has lost access, or if the platform isn't connected.
        """
        job_id = _read_job_id(address)

        async def send(record: DeliveryRecord, answer: Answer) -> None:
            """Send the answer to the chat of the job, unless it's a watch with nothing to report.

            Raises DeliveryError if that isn't possible.
            """
            job = await self.jobs.get(job_id)
            if job is None:
                raise DeliveryError(f"There is no job {job_id}.", is_permanent=True)
            if job.is_watch and is_nothing_new(answer.text):
                self._log.info("a watch has nothing to tell", job=job.id)
                return
            try:
                await self.jobs.check_scope(job)
                await self.load_view(job)
                reply = self.open_reply(job.target)
            except Refused as refusal:
                raise DeliveryError(str(refusal), is_permanent=True) from refusal
            except LookupError as error:
                raise DeliveryError(
                    f"{job.target.platform} is not connected.", is_unreachable=True
                ) from error
            reply.begin(record)
            await reply.finish(answer)

        return QuietReply(send)


def _read_job_id(address: Address) -> int:
    """Return the number of the job that asks questions at this address, or 0."""
    return int(address.chat_id) if address.chat_id.isdecimal() else 0


def make_reminder_buttons(texts: Texts, job: Job) -> tuple[Button, ...]:
    """Return the buttons below a reminder: done, remind me later, and edit."""
    return (
        make_button(texts.BUTTON_DONE, "cron", f"done {job.id}"),
        make_button(texts.BUTTON_TEN_MINUTES, "snooze", f"{job.id} 10 minutes"),
        make_button(texts.BUTTON_ONE_HOUR, "snooze", f"{job.id} 1 hour"),
        make_button(texts.BUTTON_TOMORROW, "snooze", f"{job.id} tomorrow"),
        make_button(texts.BUTTON_EDIT, "cron", f"edit {job.id}"),
    )


def make_file_buttons(texts: Texts, files: Sequence[AttachedFile]) -> list[Button]:
    """Return the buttons that send the first files of the message that set a job."""
    buttons: list[Button] = []
    for file in files[:MAX_FILE_BUTTONS]:
        label = texts.FILE_SEND.format(name=shorten(file.name, FILE_LABEL_CHARS))
        buttons.append(make_button(label, "files", f"send {file.id}"))
    return buttons


def _make_item(job: Job, answer: Answer, due_at: datetime, now: datetime) -> OutboxItem:
    """Return the outbox item of a run. Its key depends only on the job and the due time."""
    return OutboxItem(
        key=f"job:{job.id}:{due_at.isoformat()}",
        kind="reminder",
        address=job.target,
        answer=answer,
        next_at=now,
    )


def _make_actions(item: OutboxItem, job: Job, now: datetime) -> Sequence[ButtonAction]:
    """Return the rows to store for a reminder's buttons. In a group, everyone may press them."""
    assert item.answer is not None
    presser = None if job.scope.is_group else job.account
    return make_button_actions(item.answer.buttons, job.scope, presser, now)


def _spread_questions(jobs: Sequence[Job], now: datetime) -> dict[int, datetime]:
    """Return later start times for recurring questions that are due at the same full hour.

    The questions start at equal intervals within `SPREAD`, and the first one starts at once.
    Reminders and questions that are already late aren't moved.
    """
    groups: dict[datetime, list[Job]] = {}
    for job in jobs:
        due_at = job.next_at
        is_full_hour = due_at is not None and (due_at.minute, due_at.second) == (0, 0)
        if not (job.is_prompt and job.schedule.at is None and is_full_hour):
            continue
        assert due_at is not None
        if now - due_at < SPREAD:
            groups.setdefault(due_at, []).append(job)
    times: dict[int, datetime] = {}
    for due_at, group in groups.items():
        for index, job in enumerate(sorted(group, key=lambda job: job.id)):
            start = due_at + SPREAD * index / len(group)
            if start > now:
                times[job.id] = start
    return times


def _find_latest_due(job: Job, now: datetime) -> datetime:
    """Return the latest past due time of a job, or the first one if its schedule is invalid."""
    first_due = job.next_at or now
    try:
        return latest_due(job.schedule, first_due, now)
    except (Refused, ConfigError):
        return first_due


def _build_question(
    texts: Texts, job: Job, due_at: datetime, now: datetime, epoch: ErasureEpoch, heading: str
) -> Inbound:
    """Build the event of a scheduled question.

    A repeated run gets the same message id, so the inbox recognizes the event.
    """
    return Inbound(
        kind="message",
        address=Address(platform=PLATFORM, chat_id=str(job.id)),
        scope=job.scope,
        sender=Sender(id=job.account.user_id if job.account else PLATFORM, name="schedule"),
        text=f"{job.text}{WATCH_INSTRUCTION}" if job.is_watch else job.text,
        message_id=f"{job.id}@{due_at.isoformat()}",
        sent_at=now,
        is_direct=not job.scope.is_group,
        heading=heading,
        language=texts.language,
        epoch=epoch,
    )
