"""Change a job for its person: snooze it, mark it done, skip it once, or end it.

`core.scheduling.appointments` creates, pauses and removes jobs. Every refusal is a sentence for the
person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.lexicon import lexicon_languages, load_lexicon
from core.dates.requests.parts import Problem
from core.dates.requests.reader import read_request, read_whole_length, revise_reading
from core.dates.rules import end_at, find_clock, to_recurrences
from core.dates.schedule import (
    ParsedSchedule,
    Schedule,
    load_zone,
    resolve_wall_time,
)
from core.errors import Refused
from core.scheduling.appointments import Appointments, Requester
from core.scheduling.due import next_due, next_due_after_skips
from core.scheduling.phrases import is_answer
from core.scheduling.shifts import Shift
from core.scheduling.zones import move_to_zone
from core.store.jobs import Job
from core.types import Account, Address, ErasureEpoch

# More hours than this are a clock time if they can be one: French "18h", Portuguese "18 horas".
_MAX_HOURS_IN_WORDS = 12
_HOURS_OF_DAY = 24
_END_OF_DAY = time(23, 59)


@dataclass(frozen=True, slots=True)
class Snooze:
    """The end of a snooze: `at`, or the same time tomorrow if `at` is None."""

    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SkippedTime:
    """A skipped time of a recurring job, and the time after it."""

    job: Job
    skipped: datetime
    following: datetime


@dataclass(frozen=True, slots=True)
class JobChanges:
    """Changes the jobs of `appointments`."""

    appointments: Appointments

    async def finish(self, job_id: int, requester: Requester) -> Job:
        """Mark a reminder as done, and return it.

        A job with a single time ends, even if it was snoozed. A recurring job continues.
        """
        job = await self.appointments.find_changeable(job_id, requester, include_ended=True)
        if job.ended_at is not None or is_recurring(job):
            return job
        now = self.appointments.clock.now()
        await self.appointments.jobs.update(job.id, requester.epoch, ended_at=now, next_at=None)
        self.appointments.on_change()
        return replace(job, ended_at=now, next_at=None)

    async def snooze(
        self, job_id: int, snooze: Snooze, requester: Requester, origin: str | None = None
    ) -> Job:
        """Remind the person again later, and return the reminder for that time.

        A recurring job continues as before and gets an additional reminder, whose key is `origin`
        (see `Job.origin`). Raises Refused if the job is a scheduled question, or if the person may
        not change it.
        """
        job = await self.appointments.find_changeable(job_id, requester, include_ended=True)
        if job.is_prompt:
            raise Refused("is_a_question", id=job.id)
        until = snooze.at or _same_time_tomorrow(job, self.appointments.clock.now())
        if is_recurring(job):
            return await self._snooze_copy(job, until, requester, origin)
        await self.appointments.jobs.reopen(job.id, until, requester.epoch)
        self.appointments.on_change()
        return replace(job, ended_at=None, next_at=until)

    async def skip(self, job_id: int, requester: Requester) -> SkippedTime:
        """Skip the next time of a recurring job.

        Raises Refused if the job has no later time, or if the person may not change it.
        """
        job = await self.appointments.find_changeable(job_id, requester)
        if not is_recurring(job):
            raise Refused("due_once", id=job.id)
        if job.next_at is None:
            raise Refused("no_next_time", id=job.id)
        following = next_due(job.schedule, job.next_at)
        if following is None:
            raise Refused("no_time_after_next", id=job.id)
        await self.appointments.jobs.update(job.id, requester.epoch, next_at=following)
        self.appointments.on_change()
        return SkippedTime(job, job.next_at, following)

    async def edit(
        self, job_id: int, requester: Requester, schedule: Schedule | None, text: str
    ) -> Job:
        """Change the time of a job, its text, or both, and return the changed job.

        Pass None to keep the time, and "" to keep the text. An ended reminder continues if it gets
        a new time. Occurrences that the person skipped stay skipped.
        """
        job = await self.appointments.find_changeable(job_id, requester, include_ended=True)
        jobs = self.appointments.jobs
        if schedule is not None:
            now = self.appointments.clock.now()
            schedule = to_recurrences(schedule, now)
            next_at = await self.appointments.check_schedule(schedule, job)
            next_at = next_due_after_skips(schedule, job.schedule, job.next_at, now) or next_at
            await jobs.reschedule(job.id, schedule, next_at, requester.epoch)
        if text and text != job.text:
            await jobs.update(job.id, requester.epoch, text=self.appointments.clean_text(text))
        self.appointments.on_change()
        return await self.appointments.find_changeable(job_id, requester, include_ended=True)

    async def limit_times(self, job_id: int, count: int, requester: Requester) -> Job:
        """End a recurring job after its next `count` times, and return it."""
        job = await self._find_recurring(job_id, requester)
        moments = self.appointments.list_next_moments(job, count)
        if len(moments) < count:
            raise Refused("ends_before", id=job.id)
        last = moments[-1]
        if find_clock(job.schedule) is not None:
            # The end of the last day, so that the job may later move to another time of day.
            local = last.astimezone(load_zone(job.schedule.zone))
            last = local.replace(hour=23, minute=59, second=59)
        return await self._end_at(job, last, requester)

    async def end(
        self, job_id: int, words: str, requester: Requester, languages: Sequence[str] = ()
    ) -> Job:
        """End a recurring job at a time such as "Christmas", and return it.

        Without a clock time, the named day is the last one. "never" removes the end. Words with
        several meanings are read in the first of `languages`.
        """
        job = await self._find_recurring(job_id, requester)
        if is_answer("never", words):
            return await self._end_at(job, None, requester)
        now = self.appointments.clock.now()
        zone = load_zone(job.schedule.zone)
        last = await asyncio.to_thread(read_end, words, now, zone, languages)
        if last is None:
            raise Refused("end_not_understood", id=job.id)
        return await self._end_at(job, last, requester)

    async def _find_recurring(self, job_id: int, requester: Requester) -> Job:
        """Return a recurring job. Raises Refused if it has a single time, or can't have an end."""
        job = await self.appointments.find_changeable(job_id, requester)
        if not is_recurring(job):
            raise Refused("due_once", id=job.id)
        if not job.schedule.recurrences:
            raise Refused("cron_line_has_no_end", id=job.id, line=job.schedule.cron)
        return job

    async def _end_at(self, job: Job, last: datetime | None, requester: Requester) -> Job:
        """End a recurring job at `last`, or never. Raises Refused if no time would be left."""
        schedule = end_at(job.schedule, last)
        now = self.appointments.clock.now()
        next_at = next_due(schedule, now)
        if next_at is None:
            raise Refused("not_due_before", id=job.id)
        if job.next_at is not None and job.next_at > next_at and next_due(schedule, job.next_at):
            # The next time was skipped.
            next_at = job.next_at
        await self.appointments.jobs.reschedule(job.id, schedule, next_at, requester.epoch)
        self.appointments.on_change()
        return await self.appointments.find_changeable(job.id, requester)

    async def retarget(self, job_id: int, target: Address, requester: Requester) -> Job:
        """Deliver a job in another chat of the same scope from now on, and return it.

        Raises Refused if people outside of the job's scope could read it there.
        """
        job = await self.appointments.find_changeable(job_id, requester)
        await self.appointments.jobs.retarget(job, target, requester.epoch)
        return await self.appointments.find_changeable(job_id, requester)

    async def move_to_zone(self, job: Job, zone: str, epoch: ErasureEpoch | None) -> bool:
        """Move a job to another time zone, at the same clock times.

        If the job would have no time left, return False and change nothing.
        """
        schedule = move_to_zone(job.schedule, zone)
        now = self.appointments.clock.now()
        next_at = next_due_after_skips(schedule, job.schedule, job.next_at, now)
        if next_at is None:
            return False
        await self.appointments.jobs.reschedule(job.id, schedule, next_at, epoch)
        self.appointments.on_change()
        return True

    async def toggle_urgent(self, job_id: int, requester: Requester) -> bool:
        """Make a reminder urgent, or no longer urgent. Returns whether it's urgent now."""
        job = await self.appointments.find_changeable(job_id, requester)
        is_urgent = not job.is_urgent
        await self.appointments.jobs.update(job.id, requester.epoch, is_urgent=is_urgent)
        return is_urgent

    # --- Times ---

    async def read_snooze(
        self,
        words: str,
        account: Account | None,
        languages: Sequence[str] = (),
        said_at: datetime | None = None,
    ) -> Snooze | None:
        """Read how long to snooze: "10 minutes", "18:00", "tomorrow", or "" for ten minutes.

        Times are in the zone of `account`. Words with several meanings are read in the first of
        `languages`. The words were said at `said_at`, which is now by default. Returns None if the
        words aren't a single time.
        """
        words = words.strip() or "10 minutes"
        zone = await self.appointments.zone_of(account)
        now = said_at or self.appointments.clock.now()
        length = await asyncio.to_thread(read_whole_length, words, (*languages, "en"))
        hour = await asyncio.to_thread(_read_hour, words, languages)
        if hour is not None:
            words = f"{hour}:00"
        if length is None or length.seconds > _MAX_HOURS_IN_WORDS * 3_600:
            snooze = await self._read_snooze_time(words, zone, languages, now)
            if snooze is not None:
                return snooze
        if length is None:
            length = await asyncio.to_thread(read_whole_length, words, lexicon_languages())
        if length is None:
            return None
        try:
            return Snooze(Shift(length, is_earlier=False, name="").apply(now, load_zone(zone)))
        except (ValueError, OverflowError):
            # "1000000 years" ends after the last date that a calendar has.
            return None

    async def _read_snooze_time(
        self, words: str, zone: str, languages: Sequence[str], now: datetime
    ) -> Snooze | None:
        """Read a time that isn't a length: "18:00", "next Friday at 10" or "tomorrow"."""
        if await asyncio.to_thread(_names_tomorrow, words, now, load_zone(zone), languages):
            return Snooze()
        # "in 15" means minutes.
        for line in (words, f"in {words}"):
            try:
                reading = await self.appointments.parse_line(line, zone, languages, now)
            except Refused:
                continue
            if not reading.text and reading.schedule.at is not None:
                return Snooze(reading.schedule.at)
        return None

    async def _snooze_copy(
        self, job: Job, until: datetime, requester: Requester, origin: str | None
    ) -> Job:
        """Create a reminder for the snoozed time of a recurring job."""
        schedule = Schedule(zone=job.schedule.zone, at=until)
        reading = ParsedSchedule(schedule=schedule, text=job.text, is_certain=True)
        return await self.appointments.add_job(
            reading,
            job.target,
            job.scope,
            account=job.account,
            origin=origin,
            epoch=requester.epoch,
        )


def read_end(
    words: str, now: datetime, zone: ZoneInfo, languages: Sequence[str] = ()
) -> datetime | None:
    """Return the moment after which a job ends, or None if the words contain no time.

    A day without a clock time ends at midnight. If the time is in the past, the job ends now.
    Words with several meanings, and dates in digits, are read in the first of `languages`.
    """
    reading = read_request(words, now, zone, languages, is_request=True)
    if not reading.names_time and not any(map(str.isalpha, words)):
        # After "on", "31.12." is a date and not a clock time.
        reading = read_request(f"on {words.strip()}", now, zone, is_request=True)
    if reading.problem is Problem.PAST:
        return now
    if not reading.names_time:
        return None
    if reading.parts.until is not None:
        reading = replace(reading, parts=reading.parts.until)
    if reading.parts.has_clock:
        return reading.moment
    if reading.moment is not None:
        day = reading.moment.astimezone(zone).date()
        return resolve_wall_time(datetime.combine(day, _END_OF_DAY), zone)
    whole_day = revise_reading(reading, f"at {_END_OF_DAY:%H:%M}", now, zone)
    if whole_day is None:
        return None
    return now if whole_day.problem is Problem.PAST else whole_day.moment


def _read_hour(words: str, languages: Sequence[str]) -> int | None:
    """Return the hour of a clock time that is written like a length: French "18 heures".

    Only some languages write clock times in this way. Up to twelve hours, it is a length.
    """
    for language in languages:
        length = read_whole_length(words, (language,))
        if length is None:
            continue
        hours, seconds = divmod(length.seconds, 3_600)
        is_hour = _MAX_HOURS_IN_WORDS < hours < _HOURS_OF_DAY and seconds == 0
        return hours if is_hour and load_lexicon(language).has_hours_as_clock else None
    return None


def _names_tomorrow(words: str, now: datetime, zone: ZoneInfo, languages: Sequence[str]) -> bool:
    """Return whether words mean tomorrow and name no clock time and nothing else."""
    reading = read_request(words, now, zone, languages, is_request=True)
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    is_day = reading.parts.names() == {"days"} and reading.parts.days == (tomorrow,)
    return is_day and not reading.task


def is_recurring(job: Job) -> bool:
    return job.schedule.at is None


def _same_time_tomorrow(job: Job, now: datetime) -> datetime:
    """Return the wall time of a job's schedule on the day after `now`."""
    zone = load_zone(job.schedule.zone)
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    due = job.schedule.at or job.next_at or now
    clock_time = due.astimezone(zone).time().replace(second=0, microsecond=0, tzinfo=None)
    return resolve_wall_time(datetime.combine(tomorrow, clock_time), zone)
