"""Write and read calendar files (iCalendar, RFC 5545), such as those of Thunderbird."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
_SEVERAL_PER_DAY = frozenset({"MINUTELY", "HOURLY"})


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
    # Days and wall times of the rule that are left out.
    excluded_days: frozenset[date] = frozenset()
    excluded_times: frozenset[datetime] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarItem:
    """An event or a task from a calendar file."""

    uid: str
    text: str
    # Set for a single moment (UTC).
    moment: datetime | None = None
    # Texts with DTSTART and RRULE for a recurrence; see `core.dates.recurrence`.
    recurrences: tuple[str, ...] = ()
    # A zone that the file names and that isn't known. The time is then in the person's zone.
    unknown_zone: str = ""


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
        for day in sorted(entry.excluded_days):
            event.add("exdate", entry.start.replace(year=day.year, month=day.month, day=day.day))
        for wall_time in sorted(entry.excluded_times):
            event.add("exdate", wall_time.replace(tzinfo=entry.start.tzinfo))
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


def group_events(events: Sequence[Any]) -> Calendar:
    """Return a calendar with some components of parsed calendars, and without other properties."""
    calendar = Calendar()
    calendar.subcomponents = list(events)
    return calendar


def _read_items(components: Sequence[Any], now: datetime, zone: ZoneInfo) -> Iterator[CalendarItem]:
    """Yield an item for each event and task in the future.

    Cancelled and completed items are left out. So are items without a text or a readable start,
    and events that repeat every few seconds, because no one wants a reminder that often. A moved
    occurrence of a recurring event is an item of its own.
    """
    moved: dict[str, list[Any]] = {}
    for component in components:
        if "RECURRENCE-ID" in component and "UID" in component:
            moved.setdefault(str(component["UID"]), []).append(component["RECURRENCE-ID"])
    for component in components:
        status = str(component.get("STATUS", "")).upper()
        if component.name in ("VEVENT", "VTODO") and status not in ("CANCELLED", "COMPLETED"):
            item = _read_item(component, moved, zone)
            if item is None:
                continue
            for each in (item, *_read_added(component, item, zone)):
                if _is_due_later(each, now):
                    yield each


def _read_item(
    component: Any, moved: Mapping[str, Sequence[Any]], zone: ZoneInfo
) -> CalendarItem | None:
    """Return the item of an event or a task, or None if it can't be a reminder.

    `moved` contains the occurrences of recurring events that are components of their own, by UID.
    """
    text = " ".join(str(component.get("SUMMARY", "")).split())
    start = component.get("DUE") if component.name == "VTODO" else None
    start = start or component.get("DTSTART")
    rule = component.get("RRULE")
    if not text or start is None or (rule is not None and "SECONDLY" in rule.get("FREQ", ())):
        return None
    try:
        wall_time, own_zone = _read_start(start.dt, zone)
    except ValueError:
        # The value isn't a date, such as "yesterday".
        return None
    moment = resolve_wall_time(wall_time, own_zone)
    uid = str(component.get("UID", f"{text}@{moment.isoformat()}"))
    item = CalendarItem(uid=uid, text=text, moment=moment, unknown_zone=_find_unknown_zone(start))
    if "RECURRENCE-ID" in component:
        return replace(item, uid=f"{uid}@{moment.isoformat()}")
    if rule is None:
        return item
    excluded = [*moved.get(uid, ()), *_list_values(component, "EXDATE")]
    recurrence = _build_recurrence(wall_time, own_zone, rule, excluded)
    return replace(item, moment=None, recurrences=(recurrence,))


def _read_added(component: Any, item: CalendarItem, zone: ZoneInfo) -> Iterator[CalendarItem]:
    """Yield an item for each moment that the RDATE lines of an event add."""
    for value in _list_values(component, "RDATE"):
        try:
            start = value.dt[0] if isinstance(value.dt, tuple) else value.dt
            wall_time, own_zone = _read_start(start, zone)
        except ValueError:
            continue
        moment = resolve_wall_time(wall_time, own_zone)
        if moment != item.moment:
            uid = f"{item.uid}@{moment.isoformat()}"
            yield replace(item, uid=uid, moment=moment, recurrences=())


def _list_values(component: Any, name: str) -> list[Any]:
    """Return the values of the EXDATE or RDATE lines of an event."""
    lines = component.get(name, [])
    lines = lines if isinstance(lines, list) else [lines]
    return [value for line in lines for value in line.dts]


def _list_excluded(values: Sequence[Any], zone: ZoneInfo) -> tuple[set[date], set[datetime]]:
    """Return the days, and the wall times in a zone, of values that are dates or moments."""
    days: set[date] = set()
    times: set[datetime] = set()
    for value in values:
        try:
            moment = value.dt
        except ValueError:
            continue
        if not isinstance(moment, datetime):
            days.add(moment)
            continue
        local = moment if moment.tzinfo is None else moment.astimezone(zone)
        times.add(local.replace(tzinfo=None))
    return days, times


def _find_unknown_zone(start: Any) -> str:
    """Return the zone that a start names if it isn't known, or ""."""
    name = str(start.params.get("TZID", ""))
    is_unread = isinstance(start.dt, datetime) and start.dt.tzinfo is None
    return name if is_unread else ""


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


def _build_recurrence(start: datetime, zone: ZoneInfo, rule: Any, excluded: Sequence[Any]) -> str:
    """Return a recurrence without the excluded days and moments.

    A rule that is due at most once a day leaves out the whole day of a moment.
    """
    lines = [f"DTSTART;TZID={zone.key}:{start:%Y%m%dT%H%M%S}"]
    is_frequent = not _SEVERAL_PER_DAY.isdisjoint(rule.get("FREQ", ()))
    is_frequent |= any(len(rule.get(name, ())) > 1 for name in ("BYHOUR", "BYMINUTE"))
    days, times = _list_excluded(excluded, zone)
    if not is_frequent:
        days |= {wall_time.date() for wall_time in times}
        times = set()
    if days:
        lines.append("EXDATE;VALUE=DATE:" + ",".join(f"{day:%Y%m%d}" for day in sorted(days)))
    if times:
        lines.append("EXDATE:" + ",".join(f"{each:%Y%m%dT%H%M%S}" for each in sorted(times)))
    return "\n".join([*lines, f"RRULE:{rule.to_ical().decode()}"])


def _is_due_later(item: CalendarItem, now: datetime) -> bool:
    """Return whether an item is valid and has a moment after `now`."""
    if item.moment is not None:
        return item.moment > now
    try:
        return next_recurrence(item.recurrences, now) is not None
    except Refused:
        return False
