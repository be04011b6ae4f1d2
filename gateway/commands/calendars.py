"""Imports a calendar file: lists the reminders that it would set, and sets them."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from core.dates.calendar_file import CalendarItem
from core.dates.schedule import ParsedSchedule, Schedule
from core.errors import Refused
from core.scheduling.appointments import TEXT_CHARS
from core.scheduling.due import next_due
from core.scheduling.recurrence_words import describe_recurrences
from core.store.jobs import CALENDAR_FILE_ORIGIN
from core.text.normalize import join_sentences, shorten
from core.types import LOCAL_SCOPE
from gateway.commands.registry import CommandContext
from gateway.services import Services
from gateway.texts.catalog import Texts

# The question before an import lists at most this many items.
MAX_LISTED = 20
MAX_ZONE_CHARS = 60


def describe_items(texts: Texts, items: Sequence[CalendarItem], zone: ZoneInfo) -> str:
    """Return a question that lists the reminders that an import would set."""
    lines = [texts.CALENDAR_QUESTION.format(count=texts.format_count(len(items), "reminder"))]
    for item in items[:MAX_LISTED]:
        if item.moment is not None:
            when = texts.format_moment(item.moment, zone)
        else:
            when = describe_recurrences(item.recurrences, zone.key, texts.schedule_words)
        lines.append(f"- {texts.pair(when, item.text)}")
    if len(items) > MAX_LISTED:
        lines.append(texts.MORE_REMINDERS.format(count=len(items) - MAX_LISTED))
    return "\n".join([*lines, *_list_unknown_zones(texts, items, zone)])


def _list_unknown_zones(texts: Texts, items: Sequence[CalendarItem], zone: ZoneInfo) -> list[str]:
    """Return a sentence for each zone that a calendar file names and that isn't known."""
    names = dict.fromkeys(item.unknown_zone for item in items if item.unknown_zone)
    return [
        texts.CALENDAR_UNKNOWN_ZONE.format(zone=shorten(name, MAX_ZONE_CHARS), own_zone=zone.key)
        for name in names
    ]


async def set_reminders(
    services: Services, items: Sequence[CalendarItem], zone: ZoneInfo, context: CommandContext
) -> str:
    """Set a reminder for each item, and return a report of how many were set.

    Items that were imported before or are in the past are skipped. The report says so if the
    account has reached its maximum number of reminders. The reminders are delivered to the private
    chat that the owner used last, or to the terminal.
    """
    texts = context.texts
    target, scope = context.inbound.address, context.scope
    private_chat = await services.find_private_chat(LOCAL_SCOPE)
    if private_chat is not None and scope == LOCAL_SCOPE:
        target, scope = private_chat
    set_count = 0
    problems: list[str] = []
    for item in items:
        schedule = Schedule(zone=zone.key, at=item.moment, recurrences=item.recurrences)
        origin = f"{CALENDAR_FILE_ORIGIN}{scope.key}:{item.uid}"
        is_known = await services.jobs.find_by_origin(origin, scope) is not None
        if is_known or next_due(schedule, services.clock.now()) is None:
            continue
        reading = ParsedSchedule(
            schedule=schedule,
            text=services.appointments.clean_text(item.text[:TEXT_CHARS]),
            is_certain=True,
        )
        try:
            await services.appointments.add_job(
                reading, target, scope, account=context.account, origin=origin
            )
        except Refused as refusal:
            problems.append(texts.word(refusal))
            break
        set_count += 1
    report = texts.CALENDAR_SET.format(count=texts.format_count(set_count, "reminder"))
    return join_sentences([report, *_list_unknown_zones(texts, items, zone), *problems])
