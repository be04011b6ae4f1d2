"""Sets a person's time zone, and the hours that hold reminders back: /timezone and /quiet."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, time, timedelta

from core.dates.schedule import load_zone
from core.errors import MnemeError, Refused
from core.markup.markdown import escape
from core.scheduling.changes import JobChanges
from core.scheduling.zones import find_zones
from core.store.jobs import Job
from core.types import Account, Answer, Command
from gateway.commands.registry import CommandContext, load_specs
from gateway.services import Services
from gateway.texts.catalog import Texts
from gateway.texts.zone_names import find_native_zones

# "22:00-7:00", "22 to 7", "from 22:30 until 06:45".
# Two times with short words of any language around them: "22-7", "von 22 Uhr bis 7 Uhr".
_HOURS = re.compile(
    r"\D{0,8}(\d{1,2})(?:[:h](\d\d))?\D{1,14}(\d{1,2})(?:[:h](\d\d))?\D{0,8}", re.IGNORECASE
)
_HALF_OF_DAY = re.compile(r"\b\d*[ap]\.?m\b", re.IGNORECASE)
# A new reminder mentions at most this many events of the same time.
MAX_EVENTS = 3
# A new reminder waits at most this long for the calendar.
CALENDAR_TIMEOUT_S = 5.0
HOURS_PER_DAY = 24
# The owner knows that the zone of the machine is used, and has chosen no other.
MACHINE_ZONE = ""
_OFF_WORDS = frozenset({"off", "none", "never", "no"})


class TimeCommands:
    specs = load_specs("timezone", "quiet")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._changes = JobChanges(services.appointments)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Run /timezone or /quiet: show or change the setting."""
        words = command.arguments.strip()
        if command.name == "quiet":
            return await self._set_quiet_hours(words, context)
        action, _, zone = words.partition(" ")
        if action == "move" and zone:
            return await self._move_jobs(zone, context)
        return await self._set_zone(words, context)

    async def _set_zone(self, words: str, context: CommandContext) -> Answer:
        """Set the time zone, and ask whether to move the person's jobs to it.

        Without words, show the current zone. Raises Refused unless the words name exactly one zone.
        """
        texts = context.texts
        current = await self._services.appointments.zone_of(context.account)
        if not words:
            return Answer(text=texts.ZONE_SHOWN.format(zone=current))
        zones = find_zones(words) or await asyncio.to_thread(find_native_zones, words)
        if not zones:
            raise Refused(texts.ZONE_UNKNOWN.format(words=words[:40]))
        if len(zones) > 1:
            raise Refused(texts.ZONE_AMBIGUOUS.format(zones=", ".join(zones)))
        (zone,) = zones
        await self._services.preferences.save(context.account, zone=zone)
        now = self._services.clock.now().astimezone(load_zone(zone))
        text = texts.ZONE_SET.format(zone=zone, time=f"{now:%H:%M}")
        jobs = await self._list_elsewhere(zone, context)
        if not jobs:
            return Answer(text=text)
        count = texts.format_count(len(jobs), "reminder")
        text += "\n\n" + texts.ZONE_ASK_TO_MOVE.format(count=count, zone=zone)
        return Answer(text=text, confirm_command=Command(name="timezone", arguments=f"move {zone}"))

    async def _move_jobs(self, zone: str, context: CommandContext) -> Answer:
        """Move the person's jobs to another zone, and keep their clock times.

        Raises Refused if there is no such zone.
        """
        texts = context.texts
        if find_zones(zone) != [zone]:
            raise Refused(texts.ZONE_UNKNOWN.format(words=zone[:40]))
        moved_count = 0
        for job in await self._list_elsewhere(zone, context):
            moved_count += await self._changes.move_to_zone(job, zone, context.epoch)
        count = texts.format_count(moved_count, "reminder")
        return Answer(text=texts.ZONE_MOVED.format(count=count, zone=zone))

    async def _list_elsewhere(self, zone: str, context: CommandContext) -> list[Job]:
        """List the person's own jobs whose clock times are in another zone."""
        jobs = await self._services.jobs.list_visible(context.scopes)
        return [job for job in jobs if job.account == context.account and job.schedule.zone != zone]

    async def _set_quiet_hours(self, words: str, context: CommandContext) -> Answer:
        """Show, set or remove the quiet hours."""
        texts = context.texts
        preferences = self._services.preferences
        if not words:
            preference = await self._services.load_preference(context.account)
            if preference.quiet_from is None:
                return Answer(text=texts.QUIET_NONE)
            return Answer(
                text=texts.QUIET_SHOWN.format(
                    begin=preference.quiet_from, end=preference.quiet_until
                )
            )
        if words.lower() in _OFF_WORDS:
            await preferences.save(context.account, quiet_from=None, quiet_until=None)
            return Answer(text=texts.QUIET_OFF)
        begin, end = _parse_hours(texts, words)
        await preferences.save(context.account, quiet_from=begin, quiet_until=end)
        return Answer(text=texts.QUIET_SET.format(begin=begin, end=end))


async def hint_at_zone(
    texts: Texts, services: Services, account: Account | None, *, is_owner: bool
) -> str:
    """Return a sentence with the time zone that is used for a person's times, or "".

    Each person gets the sentence once, when they first name a time. The zone then counts as their
    choice until they change it. The owner gets it only if the settings name no zone, and keeps the
    zone of the machine.
    """
    if account is None or (is_owner and services.settings.general.is_zone_chosen):
        return ""
    preference = await services.load_preference(account)
    if preference.zone is not None:
        return ""
    zone = services.appointments.zone
    await services.preferences.save(account, zone=MACHINE_ZONE if is_owner else zone)
    return " " + texts.ZONE_HINT.format(zone=zone)


async def hint_at_events(
    texts: Texts, services: Services, account: Account | None, moment: datetime | None
) -> str:
    """Return a sentence about calendar events at the time of a new reminder, or "".

    Call this only if no one but the owner reads the answer. If the calendar can't be read in time,
    returns "", because the reminder is set anyway.
    """
    calendars = services.calendars
    if calendars is None or moment is None:
        return ""
    zone = load_zone(await services.appointments.zone_of(account))
    try:
        async with asyncio.timeout(CALENDAR_TIMEOUT_S):
            agenda = await calendars.list_events(moment, moment + timedelta(minutes=1), zone)
    except (TimeoutError, MnemeError):
        return ""
    events = []
    for event in agenda.events:
        if not event.is_all_day:
            is_of_day = event.start.date() == moment.astimezone(zone).date()
            events.append(escape(texts.describe_event(event, has_date=not is_of_day)))
    if not events:
        return ""
    return " " + texts.EVENTS_THEN.format(events=texts.SEMICOLON.join(events[:MAX_EVENTS]))


def _read_time(hour: str, minute: str | None) -> time:
    """Return a time of day. 24:00 is midnight. Raises ValueError if there is no such time."""
    if int(hour) == HOURS_PER_DAY:
        hour = "0"
    return time(int(hour), int(minute or 0))


def _parse_hours(texts: Texts, words: str) -> tuple[str, str]:
    """Return the start and end of quiet hours, such as ("22:00", "07:00").

    Raises Refused if the words aren't two different times.
    """
    match = _HOURS.fullmatch(words.strip())
    if match is None or _HALF_OF_DAY.search(words):
        raise Refused(texts.QUIET_USAGE)
    try:
        begin, end = _read_time(match[1], match[2]), _read_time(match[3], match[4])
    except ValueError as error:
        raise Refused(texts.QUIET_USAGE) from error
    if begin == end:
        raise Refused(texts.QUIET_USAGE)
    return f"{begin:%H:%M}", f"{end:%H:%M}"
