"""Write and read calendar files (iCalendar, RFC 5545), such as those of Thunderbird."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from icalendar import Alarm, Calendar, Event, vRecur

from core.dates.recurrence import next_recurrence
from core.dates.schedule import resolve_wall_time
from core.errors import Refused

PRODUCT = "-//Mneme//Reminders//EN"
ALL_DAY_HOUR = 9
"""A day without a clock time becomes a reminder at this hour."""
MAX_FILE_BYTES = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarEntry:
    """A reminder for a calendar file."""

    uid: str
    text: str
    created_at: datetime
    # The first moment, in the zone of the reminder.
    start: datetime
    # The RRULE without its name, such as ``FREQ=DAILY``. Empty for a single moment.
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarItem:
    """An event or a task from a calendar file."""

    uid: str
    text: str
    # Set for a single moment (UTC).
    moment: datetime | None = None
    # Texts with DTSTART and RRULE for a recurrence; see `core.dates.recurrence`.
    recurrences: tuple[str, ...] = ()


def write_calendar(entries: Sequence[CalendarEntry]) -> bytes:
    """Return a calendar file with an event and an alarm for each entry."""
    calendar = Calendar()
    calendar.add("prodid", PRODUCT)
    calendar.add("version", "2.0")
    for entry in entries:
        event = Event()
        event.add("uid", entry.uid)
        event.add("summary", entry.text)
        event.add("dtstamp", entry.created_at.astimezone(UTC))
        event.add("dtstart", entry.start)
        event.add("duration", timedelta(minutes=5))
        if entry.rule:
            event.add("rrule", vRecur.from_ical(entry.rule))
        alarm = Alarm()
        alarm.add("action", "DISPLAY")
        alarm.add("description", entry.text)
        alarm.add("trigger", timedelta(0))
        event.add_component(alarm)
        calendar.add_component(event)
    calendar.add_missing_timezones()
    return bytes(calendar.to_ical())


def read_calendar(content: bytes, now: datetime, zone: ZoneInfo) -> list[CalendarItem]:
    """Return the events and open tasks of a file that are due after `now` (aware).

    Times without a zone are in `zone`. Raises Refused if the file isn't a calendar.
    """
    if len(content) > MAX_FILE_BYTES:
        raise Refused("calendar_file_too_large")
    components = []
    try:
        for calendar in Calendar.from_ical(content, multiple=True):
            components += calendar.walk()
    except (ValueError, KeyError, IndexError) as error:
        raise Refused("not_a_calendar_file", reason=str(error)[:80]) from error
    return list(_read_items(components, now, zone))


def parse_calendar(content: bytes) -> Calendar:
    """Parse a calendar file with icalendar. Raises ValueError if it isn't a calendar."""
    return Calendar.from_ical(content)


def _read_items(components: Sequence[Any], now: datetime, zone: ZoneInfo) -> Iterator[CalendarItem]:
    """Yield an item for each event and task in the future.

    Cancelled and completed items are left out. So are items without a text or a readable start,
    and events that repeat every few seconds, because no one wants a reminder that often.
    """
    for component in components:
        if component.name not in ("VEVENT", "VTODO"):
            continue
        status = str(component.get("STATUS", "")).upper()
        text = " ".join(str(component.get("SUMMARY", "")).split())
        start = component.get("DUE") if component.name == "VTODO" else None
        start = start or component.get("DTSTART")
        if not text or start is None or status in ("CANCELLED", "COMPLETED"):
            continue
        try:
            wall_time, own_zone = _read_start(start.dt, zone)
        except ValueError:
            # The value isn't a date, such as "yesterday".
            continue
        moment = resolve_wall_time(wall_time, own_zone)
        uid = str(component.get("UID", f"{text}@{moment.isoformat()}"))
        rule = component.get("RRULE")
        if rule is not None and "SECONDLY" in rule.get("FREQ", ()):
            continue
        if rule is not None:
            recurrence = _build_recurrence(wall_time, own_zone, rule)
            if _is_due_later(recurrence, now):
                yield CalendarItem(uid=uid, text=text, recurrences=(recurrence,))
        elif moment > now:
            yield CalendarItem(uid=uid, text=text, moment=moment)


def _read_start(value: date | datetime, zone: ZoneInfo) -> tuple[datetime, ZoneInfo]:
    """Read the wall time of a start, and its zone. A whole day begins at `ALL_DAY_HOUR`."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time(ALL_DAY_HOUR)), zone
    if value.tzinfo is None:
        return value, zone
    own_zone = _zone_of(value.tzinfo)
    if own_zone is None:
        value = value.astimezone(zone)
        own_zone = zone
    return value.replace(tzinfo=None), own_zone


def _zone_of(info: tzinfo) -> ZoneInfo | None:
    """Return the IANA name of a zone, or None if it has no such name."""
    key = getattr(info, "key", None) or getattr(info, "zone", None)
    if info is UTC or key is None:
        return None
    try:
        return ZoneInfo(str(key))
    except (ValueError, OSError, KeyError):
        return None


def _build_recurrence(wall_time: datetime, zone: ZoneInfo, rule: Any) -> str:
    text = rule.to_ical().decode()
    return f"DTSTART;TZID={zone.key}:{wall_time:%Y%m%dT%H%M%S}\nRRULE:{text}"


def _is_due_later(recurrence: str, now: datetime) -> bool:
    """Return whether a recurrence is valid and has an occurrence after `now`."""
    try:
        return next_recurrence((recurrence,), now) is not None
    except Refused:
        return False
