"""Writes morning briefs and check-ins: scheduled questions that contain facts about the day.

The model gets the question together with the day's reminders and the number of changes that wait
for confirmation. Without a model, these facts are the whole message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from core.dates.schedule import load_zone, resolve_wall_time
from core.markup.markdown import escape
from core.scheduling.due import next_due
from core.store.jobs import Job
from core.types import Scope
from gateway.services import Services
from gateway.texts.catalog import list_languages, load_texts

# If a job is due more than this many times on one day, only the first times are listed.
MAX_TIMES = 3
MAX_LISTED = 20
# The maximum time to wait for calendars. Other reminders wait while a brief is written.
CALENDAR_TIMEOUT_S = 5.0


class BriefWriter:
    """Collects the facts that morning briefs and check-ins begin with."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def write(self, job: Job, scopes: frozenset[Scope]) -> str | None:
        """Return the facts for a brief or a check-in, or None for any other job."""
        briefs = _list_questions("BRIEF_QUESTION")
        checkins = _list_questions("CHECKIN_QUESTION")
        if job.text not in briefs | checkins:
            return None
        texts = self._services.languages.of_scope(job.scope, job.account)
        now = self._services.clock.now()
        zone = load_zone(await self._services.appointments.zone_of(job.account))
        jobs = await self._services.jobs.list_visible(scopes)
        reminders = list_day(jobs, now, zone)
        is_brief = job.text in briefs
        lines: list[str] = []
        if is_brief:
            local = now.astimezone(zone)
            lines.append(texts.BRIEF_TODAY.format(day=texts.format_weekday(local)))
            lines += reminders or [texts.BRIEF_NOTHING]
            lines += await self._list_events(job, zone)
        else:
            lines.append(texts.CHECKIN_ASK)
            if reminders:
                lines += [texts.BRIEF_LATER, *reminders]
        pending = await self._services.notes.list_pending(scopes)
        if pending:
            count = texts.format_count(len(pending), "change")
            lines.append(texts.BRIEF_PENDING.format(count=count))
        return "\n".join(lines)

    async def _list_events(self, job: Job, zone: ZoneInfo) -> list[str]:
        """Return one line for each of today's calendar events that hasn't ended.

        Only the owner gets events.
        """
        calendars = self._services.calendars
        if calendars is None or job.account is None or job.scope.is_group:
            return []
        access = await self._services.people.load_access(job.account, job.scope)
        if not access.is_owner:
            return []
        texts = self._services.languages.of_scope(job.scope, job.account)
        # Imported here because most homes have no calendar.
        from core.tools.agenda import list_today

        try:
            async with asyncio.timeout(CALENDAR_TIMEOUT_S):
                agenda = await list_today(calendars, self._services.clock.now(), zone)
        except TimeoutError:
            return [texts.BRIEF_NO_CALENDAR]
        lines = [f"- {escape(texts.describe_event(event))}" for event in agenda.events[:MAX_LISTED]]
        heading = [texts.BRIEF_EVENTS] if lines else []
        problems = [escape(texts.word(problem)) for problem in agenda.problems]
        return [*heading, *lines, *problems]


@cache
def _list_questions(key: str) -> frozenset[str]:
    """Return a question in all languages, because its author may have changed theirs."""
    return frozenset(load_texts(language)[key] for language in list_languages())


def list_day(jobs: Sequence[Job], now: datetime, zone: ZoneInfo) -> list[str]:
    """Return the reminders that are due between `now` and midnight in `zone`, earliest first."""
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    midnight = resolve_wall_time(datetime.combine(tomorrow, time()), zone)
    entries: list[tuple[list[str], str]] = []
    for job in jobs:
        if job.is_prompt or job.paused_at is not None:
            continue
        times: list[str] = []
        moment = job.next_at
        while moment is not None and moment < midnight and len(times) <= MAX_TIMES:
            times.append(f"{moment.astimezone(zone):%H:%M}")
            moment = next_due(job.schedule, moment)
        if len(times) > MAX_TIMES:
            times[-1] = "…"
        if times:
            entries.append((times, job.text))
    entries.sort()
    return [f"- {', '.join(times)} {escape(text)}" for times, text in entries[:MAX_LISTED]]
