"""Create, list and change jobs: reminders and scheduled questions.

The commands /remind and /cron, the shell, and the model's tool `reminder` use this module. Every
refusal is a sentence for the person. If a person may not see a job, the answer is the same as for a
job that doesn't exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Literal, get_args

from core.dates.rules import format_rules, to_recurrences
from core.dates.schedule import (
    Duration,
    ParsedSchedule,
    Schedule,
    describe_cron,
    load_zone,
    to_parseable_text,
)
from core.errors import Refused
from core.ports import Clock
from core.scheduling.due import next_due, next_due_after_skips
from core.scheduling.phrases import find_phrase
from core.scheduling.recurrence_words import (
    ENGLISH_WORDS,
    ScheduleWords,
    describe_recurrences,
    has_clock_times,
)
from core.store.jobs import Job, Jobs
from core.store.notes import JOB_CHANGE, QUESTION, PendingNote
from core.store.preferences import Preference
from core.store.usage_limits import UsageLog
from core.text.normalize import shorten
from core.types import (
    Account,
    Address,
    BillingScope,
    ErasureEpoch,
    Scope,
)

if TYPE_CHECKING:
    pass

# A job's text has at most this many characters.
TEXT_CHARS = 2000
# On a busy machine, "in 5 seconds" may be over when the job is created. It is then due at once.
_GRACE = timedelta(seconds=30)
# Lists and refusals show at most this many characters of a text.
_PREVIEW_CHARS = 160

Action = Literal["pause", "resume", "run", "remove", "restore"]
ACTIONS = get_args(Action)
# The changes that may wait for approval, as actions of a pending operation.
HELD_ACTIONS: Mapping[Action, Literal["pause", "resume", "remove"]] = {
    "pause": "pause",
    "resume": "resume",
    "remove": "remove",
}
QuestionInterval = Callable[[Account | None], Awaitable[float | None]]
"""Returns the shortest allowed interval of an account's scheduled questions, in seconds. Returns
None if the account may not schedule questions."""

PreferenceLoader = Callable[[Account | None], Awaitable[Preference]]
"""Returns the preferences of an account's person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """A person who wants to change a job, with the scopes that they may see."""

    scopes: frozenset[Scope]
    # None for the owner, who may change every job.
    account: Account | None
    epoch: ErasureEpoch | None = None


@dataclass
class Appointments:
    """Creates, changes and describes jobs for people, commands and the model."""

    jobs: Jobs
    clock: Clock
    # The time zone for times without a time zone.
    zone: str
    # Called after every change.
    on_change: Callable[[], None]
    question_interval_s: QuestionInterval
    # Checks how many jobs an account has set today. None means no limit.
    usage_log: UsageLog | None = None
    # Returns a person's preferences, such as their time zone. None means only defaults.
    load_preference: PreferenceLoader | None = None
    # The shortest interval, in seconds, at which the model may schedule a question that the person
    # didn't type, without approval.
    planned_question_every_s: float = 900.0

    def __post_init__(self) -> None:
        self._add_lock = asyncio.Lock()
        self._parse_lock = asyncio.Lock()

    async def zone_of(self, account: Account | None) -> str:
        """Return the time zone in which a person gives times."""
        if self.load_preference is None:
            return self.zone
        preference = await self.load_preference(account)
        return preference.zone or self.zone

    async def parse_line(
        self,
        line: str,
        zone: str | None = None,
        languages: Sequence[str] = (),
        said_at: datetime | None = None,
    ) -> ParsedSchedule:
        """Split a line into a schedule and a text. Raises Refused if it contains no time.

        "In 10 minutes" counts from `said_at`, which is now by default.
        """
        now = said_at or self.clock.now()
        # Parsing can take long, so it runs in a thread, one line at a time.
        async with self._parse_lock:
            return await asyncio.to_thread(_parse, line, now, zone or self.zone, languages)

    async def interpret(
        self,
        when: str,
        text: str | None = None,
        *,
        is_prompt: bool = False,
        account: Account | None = None,
        languages: Sequence[str] = (),
        said_at: datetime | None = None,
    ) -> ParsedSchedule:
        """Parse the time and the text of a new job. Nothing is stored.

        If `text` is None, `when` also contains the text: "tomorrow at 9 call Ana". `is_prompt`
        marks a scheduled question. Times are in the zone of `account`. Ambiguous words are read in
        the first of `languages`. The words were said at `said_at`, which is now by default. Raises
        Refused if the time or the text is missing or invalid.
        """
        zone = await self.zone_of(account)
        reading = await self.parse_line(when, zone, languages, said_at)
        if text is None:
            text = reading.text
        elif reading.text:
            time = shorten(when, _PREVIEW_CHARS)
            raise Refused("time_half_read", time=time, rest=reading.text)
        text = self.clean_text(text)
        if not text:
            raise Refused("ask_question_text" if is_prompt else "ask_reminder_text")
        return replace(reading, text=text, is_prompt=is_prompt)

    def clean_text(self, text: str) -> str:
        """Return the text of a job as valid Unicode. Raises Refused if it is too long."""
        text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "").strip()
        if len(text) > TEXT_CHARS:
            raise Refused("reminder_too_long", limit=TEXT_CHARS, chars=len(text))
        return text

    async def check_schedule(self, schedule: Schedule, job: Job) -> datetime:
        """Return when a job with a new schedule would be due next.

        Raises Refused if the time is in the past, or if a scheduled question would be too frequent.
        """
        now = self.clock.now()
        if job.is_prompt:
            await self._check_question_interval(schedule, job.account, now)
        next_at = next_due(schedule, now)
        if next_at is None:
            raise Refused("time_is_past")
        return next_at

    async def add(
        self,
        reading: ParsedSchedule,
        target: Address,
        scope: Scope,
        *,
        account: Account | None,
        origin: str | None,
        epoch: ErasureEpoch | None = None,
    ) -> str:
        """Create a job that is delivered to `target`, and return a receipt.

        A receipt reads ``Reminder 7 is set for Saturday 21 November 2026 at 09:00 (Europe/Lisbon):
        “call Ana”.`` Raises Refused in the same cases as `add_job`.
        """
        job = await self.add_job(
            reading, target, scope, account=account, origin=origin, epoch=epoch
        )
        return self.describe_receipt(job)

    def describe_receipt(
        self, job: Job, words: ScheduleWords = ENGLISH_WORDS, *, is_full: bool = True
    ) -> str:
        """Describe a new or changed job with its time, zone and text."""
        template: str = words.templates["question_set" if job.is_prompt else "reminder_set"]
        when = self.describe_time(job, words, is_full=is_full)
        return template.format(id=job.id, when=when, text=job.text)

    async def add_job(
        self,
        reading: ParsedSchedule,
        target: Address,
        scope: Scope,
        *,
        account: Account | None,
        origin: str | None,
        epoch: ErasureEpoch | None = None,
    ) -> Job:
        """Create a job that is delivered to `target`, and return it.

        Cron lines and intervals are stored as recurrences. If a job with this `origin` exists, for
        example because the command runs again after a crash, that job is returned. Raises Refused
        if the time is in the past, or if the account may not create the job.
        """
        async with self._add_lock:
            if origin is not None:
                existing_job = await self.jobs.find_by_origin(origin, scope)
                if existing_job is not None:
                    return existing_job
            now = self.clock.now()
            next_at = await self._check_new(reading, scope, account, now)
            new_job = Job(
                schedule=to_recurrences(reading.schedule, now),
                text=reading.text,
                target=target,
                scope=scope,
                created_at=now,
                account=account,
                origin=origin,
                is_prompt=reading.is_prompt,
                is_watch=reading.is_prompt and find_phrase("watch", reading.text),
                next_at=next_at,
            )
            job = await self.jobs.add(new_job, epoch)
            self.on_change()
            return job

    async def approve(
        self,
        note: PendingNote,
        epoch: ErasureEpoch | None = None,
        words: ScheduleWords = ENGLISH_WORDS,
    ) -> str:
        """Create a job that the model proposed and a person approved, and return the receipt.

        Raises Refused if the job can no longer be created.
        """
        if note.target == JOB_CHANGE:
            return await self._approve_change(note, epoch, words)
        if note.address is None:
            raise Refused("no_chat_known")
        reading = await self.interpret(
            note.operations[0].content, is_prompt=note.target == QUESTION, account=note.account
        )
        job = await self.add_job(
            reading,
            note.address,
            note.scope,
            account=note.account,
            origin=f"pending:{note.id}",
            epoch=epoch,
        )
        return self.describe_receipt(job, words)

    async def _approve_change(
        self, note: PendingNote, epoch: ErasureEpoch | None, words: ScheduleWords
    ) -> str:
        """Make a change that the model proposed and a person approved, and return a sentence.

        Raises Refused if the job no longer exists, or if its text has changed.
        """
        operation = note.operations[0]
        requester = Requester(scopes=frozenset((note.scope,)), account=note.account, epoch=epoch)
        job = await self.find_changeable(int(operation.path), requester)
        if job.text != operation.old_text:
            raise Refused("reminder_has_other_text", id=job.id)
        action = next(key for key, value in HELD_ACTIONS.items() if value == operation.action)
        return await self.change(
            action, job.id, frozenset((note.scope,)), note.account, epoch, words
        )

    async def change(
        self,
        action: Action,
        job_id: int,
        scopes: frozenset[Scope],
        by: Account | None = None,
        epoch: ErasureEpoch | None = None,
        words: ScheduleWords = ENGLISH_WORDS,
    ) -> str:
        """Change a job, and return a sentence about the change.

        "pause" stops the job until "resume", after which it continues with the next time of its
        schedule. "run" makes the job due now, in addition to its schedule. "restore" takes "remove"
        back. `by` is the account that gives the command, or None for the owner, who may change
        every job. Raises Refused if these scopes have no such job, if it belongs to another member
        of a group, if a paused job is to run, if a job is to resume after its only time, or if
        someone other than the owner runs a scheduled question.
        """
        requester = Requester(scopes=scopes, account=by, epoch=epoch)
        job = await self.find_changeable(job_id, requester, include_ended=action == "restore")
        is_paused = job.paused_at is not None
        if action == "remove":
            await self.jobs.update(job.id, epoch, ended_at=self.clock.now(), next_at=None)
        elif action == "restore":
            await self._restore(job, epoch)
        elif action == "run":
            await self._run_now(job, epoch, is_owner=by is None)
        elif action == "pause" and not is_paused:
            await self.jobs.update(job.id, epoch, paused_at=self.clock.now())
        elif action == "resume" and is_paused:
            await self._resume(job, epoch)
        self.on_change()
        if action != "remove":
            job = await self.find_changeable(job.id, requester)
        template: str = words.templates["done"]
        return template.format(
            change=words.templates[f"done_{action}"], job=self.describe_job(job, words)
        )

    async def _resume(self, job: Job, epoch: ErasureEpoch | None) -> None:
        """Continue a paused job. Raises Refused if its only time is in the past."""
        schedule = job.schedule
        next_at = next_due_after_skips(schedule, schedule, job.next_at, self.clock.now())
        if next_at is None:
            raise Refused("reminder_time_passed", id=job.id)
        await self.jobs.update(
            job.id, epoch, paused_at=None, pause_reason=None, failures=0, next_at=next_at
        )

    def describe_time(
        self,
        planned: Job | ParsedSchedule,
        words: ScheduleWords = ENGLISH_WORDS,
        *,
        is_full: bool = True,
    ) -> str:
        """Describe a schedule in words: ``every Monday at 08:30 (Europe/Lisbon)``.

        With `is_full`, always include the time zone and the next date. Intervals of minutes or
        hours always include the next time.
        """
        now = self.clock.now()
        schedule = to_recurrences(planned.schedule, now)
        zone = load_zone(schedule.zone)

        def with_zone(text: str) -> str:
            with_zone_text: str = words.templates["with_zone"].format(text=text, zone=schedule.zone)
            return with_zone_text

        if schedule.at is not None:
            # Times within the next minutes are shown with seconds.
            is_soon = abs(schedule.at - now) < timedelta(minutes=5)
            text = words.format_moment(schedule.at.astimezone(zone), has_seconds=is_soon)
            return with_zone(text) if is_full else text
        text = _describe_rhythm(schedule, words)
        has_short_interval = bool(schedule.recurrences) and not has_clock_times(
            schedule.recurrences
        )
        moments = self.list_next_moments(planned, 1) if is_full or has_short_interval else []
        if not moments:
            return with_zone(text)
        if has_short_interval and moments[0].date() == now.astimezone(zone).date():
            text = words.templates["next_today"].format(when=text, clock=f"{moments[0]:%H:%M}")
        else:
            text = words.templates["next"].format(when=text, moment=words.format_moment(moments[0]))
        return with_zone(text)

    def list_next_moments(self, planned: Job | ParsedSchedule, count: int = 3) -> list[datetime]:
        """Return the next moments at which a job is due, in the time zone of its schedule.

        The list is empty for an ended job, and for a job whose only time is in the past.
        """
        return list(islice(self.list_moments(planned), count))

    def list_moments(
        self, planned: Job | ParsedSchedule, first: datetime | None = None
    ) -> Iterator[datetime]:
        """Yield the moments at which a job is due from `first` (or now) on, in its time zone."""
        if isinstance(planned, Job):
            moment = planned.next_at
        else:
            moment = next_due(planned.schedule, self.clock.now())
        if moment is not None and first is not None and moment < first:
            moment = next_due(planned.schedule, first - timedelta(microseconds=1))
        zone = load_zone(planned.schedule.zone)
        while moment is not None:
            yield moment.astimezone(zone)
            moment = next_due(planned.schedule, moment)

    def format_exact_line(self, reading: ParsedSchedule, zone: str) -> str:
        """Return an unambiguous line for the same job: ``2026-11-21 17:00 | call Ana``.

        `zone` is the time zone of the person who would send the line.
        """
        schedule = reading.schedule
        if schedule.recurrences:
            return f"{format_rules(schedule)} | {reading.text}"
        return f"{to_parseable_text(schedule, zone)} | {reading.text}"

    def describe_job(self, job: Job, words: ScheduleWords = ENGLISH_WORDS) -> str:
        """Describe a job in one line: ``7: every Monday at 08:30 (Europe/Lisbon): stand-up``."""
        templates = words.templates
        state = ""
        if job.paused_at:
            reason = f": {job.pause_reason}" if job.pause_reason else ""
            state = f" [{templates['paused']}{reason}]"
        elif job.ended_at:
            state = f" [{templates['ended']}]"
        kind = ""
        if job.is_prompt:
            kind = templates["watches" if job.is_watch else "asks"]
        line: str = templates["line"]
        return line.format(
            id=job.id,
            time=self.describe_time(job, words, is_full=False),
            state=state,
            kind=kind,
            text=shorten(job.text, _PREVIEW_CHARS),
        )

    async def _check_new(
        self, reading: ParsedSchedule, scope: Scope, account: Account | None, now: datetime
    ) -> datetime:
        """Return when a new job is first due. Raises Refused if the job may not be created."""
        if reading.is_prompt:
            await self._check_question_interval(reading.schedule, account, now)
        if self.usage_log is not None and account is not None:
            billing_scope = BillingScope(scope=scope, user_id=account.user_id)
            await self.usage_log.check_limits(
                billing_scope, now, "scheduled_questions" if reading.is_prompt else "reminders"
            )
        is_once = reading.schedule.at is not None
        next_at = next_due(reading.schedule, now - _GRACE if is_once else now)
        if next_at is None:
            # A schedule without a next time has only a single time, which `at` contains.
            moment = reading.schedule.at or now
            local = moment.astimezone(load_zone(reading.schedule.zone))
            raise Refused("next_time_is_past", time=local)
        return next_at

    async def _check_question_interval(
        self, schedule: Schedule, account: Account | None, now: datetime
    ) -> None:
        """Raise Refused if the account may not schedule questions, or not as often."""
        min_interval_s = await self.question_interval_s(account)
        if min_interval_s is None:
            raise Refused("questions_need_approval")
        # If a schedule has two times within an hour, they are among its first three.
        due_times: list[datetime] = []
        next_at = next_due(schedule, now)
        while next_at is not None and len(due_times) < 3:
            due_times.append(next_at)
            next_at = next_due(schedule, next_at)
        for earlier, later in pairwise(due_times):
            if (later - earlier).total_seconds() < min_interval_s:
                raise Refused("questions_too_close", interval=Duration(min_interval_s))

    async def _restore(self, job: Job, epoch: ErasureEpoch | None) -> None:
        """Restore a removed job. Raises Refused if its only time is in the past."""
        if job.ended_at is None:
            return
        next_at = next_due(job.schedule, self.clock.now())
        if next_at is None:
            raise Refused("reminder_time_is_past", id=job.id)
        await self.jobs.reschedule(job.id, job.schedule, next_at, epoch)

    async def _run_now(self, job: Job, epoch: ErasureEpoch | None, *, is_owner: bool) -> None:
        """Make a job due now.

        Raises Refused if the job is paused, or if someone other than the owner runs a scheduled
        question.
        """
        if job.is_prompt and not is_owner:
            raise Refused("question_by_owner")
        if job.paused_at is not None:
            raise Refused("reminder_is_paused", id=job.id)
        next_at = self.clock.now().replace(microsecond=0)
        await self.jobs.update(job.id, epoch, next_at=next_at)

    async def find_changeable(
        self, job_id: int, requester: Requester, *, include_ended: bool = False
    ) -> Job:
        """Return a job that the requester may change.

        Raises Refused if they can't see such a job, if it was erased, if it has ended (unless
        `include_ended`), or if it belongs to another member of a group.
        """
        job = await self.jobs.find(job_id, requester.scopes)
        is_over = job is not None and job.ended_at is not None and not include_ended
        if job is None or not job.text or is_over:
            raise Refused("no_such_reminder", id=job_id)
        by = requester.account
        if by is not None and job.scope.is_group and job.account != by:
            raise Refused("reminder_of_others")
        return job


def _parse(line: str, now: datetime, zone: str, languages: Sequence[str]) -> ParsedSchedule:
    """Parse a line. See `parse_schedule`."""
    # Imported here because loading the rules of ten languages takes a while.
    from core.dates.parsing import parse_schedule

    return parse_schedule(line, now, zone, languages)


def _describe_rhythm(schedule: Schedule, words: ScheduleWords) -> str:
    """Describe a recurring schedule without its next time and zone.

    A cron line that can't become a recurrence is explained in English. Other languages show the
    line itself.
    """
    if schedule.recurrences:
        return describe_recurrences(schedule.recurrences, schedule.zone, words)
    if words is ENGLISH_WORDS:
        return describe_cron(schedule.cron or "")
    text: str = words.templates["cron"].format(line=schedule.cron)
    return text
