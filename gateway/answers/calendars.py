"""Builds a calendar file from the events that an answer lists, such as "12 May, 14:00: dentist"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from core.dates.parsing import parse_schedule
from core.dates.schedule import ParsedSchedule
from core.errors import Refused
from core.markup.markdown import to_plain
from core.store.jobs import Job
from core.types import LOCAL_SCOPE, Address

# Further lines of an answer aren't read.
MAX_LINES = 200
# Longer lines are prose and not the line of a list.
MAX_LINE_CHARS = 300
# The sign of a list item, and the number of an item that stays before its text.
_BULLET = re.compile(r"^\s*[-–•*+]\s+")
_NUMBER = re.compile(r"^\d{1,3}[.)]\s+")
_EDGES = " \t:,;.–—-|"
_NOWHERE = Address(platform="calendar", chat_id="0")


def build_calendar(
    markdown: str, now: datetime, zone: str, languages: Sequence[str]
) -> bytes | None:
    """Return a calendar file with the events in the lines of an answer.

    A line that is only a date belongs to the lines below it. Events in the past are left out.
    Returns None if there is no event. `now` is aware, and `zone` is an IANA name.
    """
    # Imported here because the calendar library takes a while to load.
    from core.dates.calendar_file import write_calendar
    from core.scheduling.rules import list_calendar_entries

    jobs = [
        Job(
            id=number,
            schedule=event.schedule,
            text=event.text,
            target=_NOWHERE,
            scope=LOCAL_SCOPE,
            created_at=now,
        )
        for number, event in enumerate(_list_events(markdown, now, zone, languages), start=1)
    ]
    entries = list_calendar_entries(jobs, now)
    return write_calendar(entries) if entries else None


def _list_events(
    markdown: str, now: datetime, zone: str, languages: Sequence[str]
) -> Iterator[ParsedSchedule]:
    """Yield the schedule and the text of each line that names a time to come and an event."""
    heading = ""
    for line in to_plain(markdown).splitlines()[:MAX_LINES]:
        line = " ".join(_BULLET.sub("", line).replace("|", " ").split())
        if not line or len(line) > MAX_LINE_CHARS:
            continue
        event = None
        for candidate in (f"{heading} {line}", line) if heading else (line,):
            try:
                event = parse_schedule(candidate, now, zone, languages)
            except Refused:
                continue
            break
        if event is None:
            continue
        text = _NUMBER.sub("", event.text.strip(_EDGES)).strip(_EDGES)
        if text:
            yield ParsedSchedule(schedule=event.schedule, text=text, is_certain=event.is_certain)
        else:
            heading = line.strip(_EDGES)
