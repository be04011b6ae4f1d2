"""Lists the events and reminders of a day or another period: /agenda."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from core.dates.schedule import load_zone
from core.errors import Refused, ToolError
from core.markup.markdown import escape
from core.tools.agenda import read_coming_period
from core.types import Answer, Command
from gateway.commands.privacy import is_owner_alone
from gateway.commands.registry import CommandContext, load_specs
from gateway.services import Services
from gateway.texts.catalog import Texts

MAX_LISTED = 40
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
