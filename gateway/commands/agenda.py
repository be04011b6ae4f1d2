"""Lists the events and reminders of a day or another period: /agenda."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from core.dates.coming_day import read_coming_period
from core.dates.period_name import Interval
from core.dates.schedule import load_zone
from core.errors import Refused, ToolError
from core.markup.markdown import escape
from core.scheduling.due import next_due
from core.store.jobs import Job
from core.types import Answer, Command
from gateway.commands.privacy import is_owner_alone
from gateway.commands.registry import CommandContext, load_specs
from gateway.services import Services
from gateway.texts.catalog import Texts

MAX_LISTED = 40
MAX_REMINDERS = 10
CALENDAR_TIMEOUT_S = 20.0
_UNDO = re.compile(r"undo ([0-9a-f]{32}) (\S.*)")


if TYPE_CHECKING:
    from core.tools.calendars import Calendars


class AgendaCommands:
    specs = load_specs("agenda")

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """List the events and reminders of a day.

        Raises Refused if the sender isn't the owner, in a group, without a calendar, or if the
        words aren't a time.
        """
        texts = context.texts
        if not is_owner_alone(context):
            raise Refused(texts.AGENDA_OWNER_ONLY)
        calendars = self._services.calendars
        if calendars is None:
            raise Refused(texts.NO_CALENDAR)
        zone: ZoneInfo = load_zone(await self._services.appointments.zone_of(context.account))
        words = command.arguments.strip()
        if words.startswith("undo "):
            return await self._undo(texts, calendars, words)
        period = read_coming_period(words, self._services.clock.now(), zone)
        if period is None:
            raise Refused(texts.AGENDA_USAGE.format(words=words[:40]))
        agenda = await calendars.list_events(*period, zone)
        lines: list[str] = []
        previous_heading = ""
        for event in agenda.events[:MAX_LISTED]:
            heading = f"**{texts.format_weekday(event.start)}**"
            if heading != previous_heading:
                lines.append(heading)
            previous_heading = heading
            lines.append(f"- {escape(texts.describe_event(event))}")
        if len(agenda.events) > MAX_LISTED:
            lines.append(texts.MORE_EVENTS.format(count=len(agenda.events) - MAX_LISTED))
        lines += [escape(texts.word(problem)) for problem in agenda.problems]
        return Answer(text="\n".join(lines) or texts.NO_EVENTS)

    async def _undo(self, texts: Texts, calendars: Calendars, words: str) -> Answer:
        """Remove an event that the model added. The "Undo" button of the receipt runs this.

        Raises Refused if the words don't name such an event, or if the calendar can't be changed.
        """
        match = _UNDO.fullmatch(words)
        if match is None:
            raise Refused(texts.AGENDA_USAGE.format(words=words[:40]))
        uid, name = match.groups()
        try:
            await calendars.remove_event(name, uid)
        except ToolError as error:
            raise Refused(texts.word(error)) from error
        return Answer(text=texts.EVENT_REMOVED.format(calendar=escape(name)))


async def describe_period(
    services: Services, period: Interval, context: CommandContext
) -> tuple[str, Sequence[Job]]:
    """Return the text about a chat's reminders and the owner's events of a period.

    The second value contains these reminders, earliest first.
    """
    jobs = await _list_due_in(services, period, context)
    texts = context.texts
    lines = [texts.REMINDERS_HEADING]
    for job in jobs[:MAX_REMINDERS]:
        lines.append(f"- {escape(texts.describe_job(services.appointments, job))}")
    if len(jobs) > MAX_REMINDERS:
        lines.append(texts.MORE_REMINDERS.format(count=len(jobs) - MAX_REMINDERS))
    if jobs and is_owner_alone(context):
        lines += await _describe_events(services, period, context)
    return "\n".join(lines), jobs


async def _list_due_in(
    services: Services, period: Interval, context: CommandContext
) -> Sequence[Job]:
    """Return the reminders of a chat that are still due in a period, earliest first."""
    start, end = max(period[0], services.clock.now()), period[1]
    due_jobs = []
    for job in await services.appointments.jobs.list_visible(context.scopes):
        if job.is_prompt or job.paused_at is not None or job.next_at is None:
            continue
        due_at = job.next_at if job.next_at >= start else next_due(job.schedule, start)
        if due_at is not None and due_at < end:
            due_jobs.append((due_at, job.id, job))
    return [job for _, _, job in sorted(due_jobs, key=lambda entry: entry[:2])]


async def _describe_events(
    services: Services, period: Interval, context: CommandContext
) -> list[str]:
    """Return a heading and a line for each calendar event of a period.

    The list is empty without events. If the calendar doesn't answer in time, one line says so.
    """
    calendars = services.calendars
    if calendars is None:
        return []
    texts = context.texts
    zone: ZoneInfo = load_zone(await services.appointments.zone_of(context.account))
    try:
        async with asyncio.timeout(CALENDAR_TIMEOUT_S):
            agenda = await calendars.list_events(*period, zone)
    except TimeoutError:
        return [texts.BRIEF_NO_CALENDAR]
    events = agenda.events[:MAX_LISTED]
    lines = [f"- {escape(texts.describe_event(event, has_date=True))}" for event in events]
    heading = [texts.BRIEF_EVENTS] if lines else []
    return [*heading, *lines, *(escape(texts.word(problem)) for problem in agenda.problems)]
