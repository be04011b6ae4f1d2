"""Reads calendars from ICS feeds and CalDAV servers (RFC 4791), and adds events to the latter.

Only this module imports `caldav` and `recurring_ical_events`, when a calendar is first used. Both
libraries block, so they run in threads. The content of a feed is cached for `FEED_CACHE_S` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from math import ceil
from time import monotonic
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import structlog

from config.field_types import fill_placeholders
from config.tool_options import CalendarSource
from config.variables import PLACEHOLDER
from core.dates.schedule import resolve_wall_time
from core.errors import (
    MnemeError,
    Refused,
    Sentence,
    ToolError,
    UncertainCallError,
    to_sentence,
)
from core.tools.addresses import IPAddress
from core.tools.web_client import WebClient

FEED_CACHE_S = 600.0
MAX_FEED_BYTES = 10_000_000
MAX_EVENTS = 200
MAX_THREADS = 2
MAX_DAYS = 400
"""A longer span of time, in days, isn't searched."""
_TOO_FREQUENT = ("SECONDLY", "MINUTELY")
_log = structlog.get_logger("calendars")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarEvent:
    """One occurrence of an event."""

    calendar: str
    text: str
    # Aware. An event of whole days begins and ends at midnight in the person's zone.
    start: datetime
    end: datetime
    is_all_day: bool = False
    place: str = ""
    # The id of an event that was added here.
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Agenda:
    """The events of a span of time, earliest first."""

    events: Sequence[CalendarEvent]
    # A sentence for each calendar that couldn't be read.
    problems: Sequence[Sentence] = ()


@dataclass(eq=False)
class Calendars:
    """All configured calendars."""

    sources: Mapping[str, CalendarSource]
    # The values of the variables that the sources name.
    variables: Mapping[str, str]
    _feeds: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    # A separate pool, so that slow calendars don't block other work.
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(MAX_THREADS, "calendar")
    )

    async def list_events(self, start: datetime, end: datetime, zone: ZoneInfo) -> Agenda:
        """Return the events that overlap a span of time. `start` and `end` are aware.

        Raises Refused if the span is longer than `MAX_DAYS`.
        """
        if end - start > timedelta(days=MAX_DAYS):
            raise Refused("calendar_span", days=MAX_DAYS)
        names = list(self.sources)
        results = await asyncio.gather(
            *(self._list_source(name, start, end, zone) for name in names), return_exceptions=True
        )
        events: list[CalendarEvent] = []
        problems: list[Sentence] = []
        for name, result in zip(names, results, strict=True):
            if isinstance(result, MnemeError):
                reason = to_sentence(result)
                problems.append(Sentence("calendar_unreadable", {"name": name, "reason": reason}))
            elif isinstance(result, BaseException):
                raise result
            else:
                events += result
        events.sort(key=lambda event: (event.start, event.text))
        return Agenda(events[:MAX_EVENTS], problems)

    async def add_event(
        self, text: str, start: datetime, end: datetime, zone: ZoneInfo, name: str = ""
    ) -> CalendarEvent:
        """Add an event to a calendar, by default to the first writable one.

        Raises ToolError if there is no such calendar, or if its server refuses.
        """
        writable = [each for each, source in self.sources.items() if source.kind == "caldav"]
        if name and name not in writable:
            raise ToolError("calendar_read_only", name=name)
        if not writable:
            raise ToolError("calendars_read_only")
        name = name or writable[0]
        uid = uuid4().hex
        await self._run(name, lambda: self._add_caldav(name, uid, text, start, end))
        return CalendarEvent(
            calendar=name,
            text=text,
            start=start.astimezone(zone),
            end=end.astimezone(zone),
            uid=uid,
        )

    async def remove_event(self, name: str, uid: str) -> None:
        """Remove an event that Mneme added. Raises ToolError if the event no longer exists."""
        if name not in self.sources or self.sources[name].kind != "caldav":
            raise ToolError("calendar_read_only", name=name)
        if not await self._run(name, lambda: self._remove_caldav(name, uid)):
            raise ToolError("calendar_event_gone")

    async def probe(self, name: str) -> Sentence:
        """Read today's events of one calendar, and return a sentence about the answer.

        Raises ToolError with a sentence about the failure.
        """
        now = datetime.now(UTC)
        events = await self._list_source(name, now, now + timedelta(days=7), ZoneInfo("UTC"))
        return Sentence("probe_calendar", {"count": len(events)})

    async def _list_source(
        self, name: str, start: datetime, end: datetime, zone: ZoneInfo
    ) -> list[CalendarEvent]:
        """Return the events of one calendar that overlap a span of time."""
        source = self.sources[name]
        # Whole days, and times without a zone, are compared in the zone of the span.
        start, end = start.astimezone(zone), end.astimezone(zone)
        if source.kind == "caldav":
            components = await self._run(name, lambda: self._search_caldav(name, start, end))
        else:
            content = await self._load_feed(name)
            components = await self._run(name, lambda: _list_occurrences(content, start, end))
        events = []
        for component in components:
            # A damaged event is left out, so that the others are shown.
            with contextlib.suppress(AttributeError, TypeError, ValueError, OverflowError):
                events += _read_event(name, component, zone)
        return events

    async def _run(self, name: str, work: Any) -> Any:
        """Run blocking work in a thread.

        Raises ToolError if it fails, and UncertainCallError if it takes too long.
        """
        from caldav.lib.error import DAVError
        from niquests.exceptions import RequestException

        timeout_s = self.sources[name].timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except TimeoutError as error:
            raise UncertainCallError("calendar_no_answer", seconds=f"{timeout_s:g}") from error
        except (
            *(DAVError, RequestException, OSError, ArithmeticError),
            *(ValueError, LookupError, TypeError, AttributeError),
        ) as error:
            _log.warning("a calendar can't be read", calendar=name, error=type(error).__name__)
            # A request that broke off may have reached the server.
            kind = UncertainCallError if isinstance(error, RequestException) else ToolError
            raise kind("calendar_failed", kind=type(error).__name__) from error

    async def _load_feed(self, name: str) -> bytes:
        """Return the content of a feed, which may be up to `FEED_CACHE_S` seconds old."""
        content, expires_at = self._feeds.get(name, (b"", 0.0))
        if expires_at > monotonic():
            return content
        source = self.sources[name]
        url = re.sub(r"^webcals?://", "https://", self._fill_variables(source.url))
        client = WebClient(
            source.timeout_s,
            is_allowed=_allow_any_address,
            max_bytes=MAX_FEED_BYTES,
            respects_robots=False,
            is_only_first_trusted=True,
        )
        try:
            download = await client.download(url)
        except Refused as error:
            # The error may quote the address, which is a secret.
            raise ToolError("calendar_no_feed") from error
        self._feeds[name] = (download.body, monotonic() + FEED_CACHE_S)
        return download.body

    def _fill_variables(self, value: str) -> str:
        """Replace each ``${NAME}`` with its variable. Raises ToolError if a variable isn't set."""
        for match in PLACEHOLDER.finditer(value):
            if match[1] not in self.variables:
                raise ToolError("calendar_no_variable", name=match[1])
        return fill_placeholders(value, self.variables)

    @contextlib.contextmanager
    def _open_caldav(self, name: str) -> Iterator[list[Any]]:
        """Yield the calendars of a CalDAV account, and close the connections afterwards."""
        from caldav.davclient import DAVClient

        source = self.sources[name]
        client = DAVClient(
            url=self._fill_variables(source.url),
            username=source.user or None,
            password=self._fill_variables(f"${{{source.key}}}") if source.key else None,
            timeout=ceil(source.timeout_s),
        )
        with client:
            principal = client.principal()  # type: ignore[no-untyped-call]
            yield list(principal.calendars())

    def _search_caldav(self, name: str, start: datetime, end: datetime) -> list[Any]:
        components = []
        with self._open_caldav(name) as calendars:
            for calendar in calendars:
                for item in calendar.search(start=start, end=end, event=True, expand=True):
                    components += item.icalendar_instance.walk("VEVENT")
        return components

    def _add_caldav(self, name: str, uid: str, text: str, start: datetime, end: datetime) -> None:
        with self._open_caldav(name) as calendars:
            if not calendars:
                raise ToolError("calendar_account_empty", name=name)
            calendars[0].add_event(
                uid=uid, summary=text, dtstart=start.astimezone(UTC), dtend=end.astimezone(UTC)
            )

    def _remove_caldav(self, name: str, uid: str) -> bool:
        """Remove an event, and return whether it existed."""
        from caldav.lib.error import NotFoundError

        with self._open_caldav(name) as calendars:
            for calendar in calendars:
                with contextlib.suppress(NotFoundError):
                    calendar.event_by_uid(uid).delete()
                    return True
        return False


def _allow_any_address(ip: IPAddress) -> bool:
    """Allow every IP address, because the owner configured the calendar's address."""
    return True


def _list_occurrences(content: bytes, start: datetime, end: datetime) -> list[Any]:
    """Return the occurrences in a calendar file that overlap a span of time.

    Damaged events are left out. So are events that recur every minute or second, because a month
    has too many of them.
    """
    import recurring_ical_events  # type: ignore[import-untyped]

    from core.dates.calendar_file import parse_calendar

    calendar = parse_calendar(content)
    calendar.subcomponents = [each for each in calendar.subcomponents if _can_expand(each)]
    return list(recurring_ical_events.of(calendar).between(start, end))


def _can_expand(component: Any) -> bool:
    """Return whether a component has each of its times once and doesn't recur too often."""
    times = ("DTSTART", "DTEND", "DURATION", "RRULE")
    if any(isinstance(component.get(name), list) for name in times):
        return False
    rule = component.get("RRULE")
    return rule is None or str(rule.get("FREQ", [""])[0]).upper() not in _TOO_FREQUENT


def _read_event(name: str, component: Any, zone: ZoneInfo) -> list[CalendarEvent]:
    """Return a list with the occurrence, or [] if it is cancelled or has no start or text."""
    text = " ".join(str(component.get("SUMMARY", "")).split())
    start = component.get("DTSTART")
    if not text or start is None or str(component.get("STATUS", "")).upper() == "CANCELLED":
        return []
    is_all_day = not isinstance(start.dt, datetime)
    begin = _to_moment(start.dt, zone)
    end_value = component.get("DTEND")
    if end_value is not None:
        end = _to_moment(end_value.dt, zone)
    elif component.get("DURATION") is not None:
        end = begin + component.get("DURATION").dt
    else:
        end = begin + (timedelta(days=1) if is_all_day else timedelta(0))
    place = " ".join(str(component.get("LOCATION", "")).split())
    return [
        CalendarEvent(
            calendar=name, text=text, start=begin, end=end, is_all_day=is_all_day, place=place
        )
    ]


def _to_moment(value: date | datetime, zone: ZoneInfo) -> datetime:
    """Return the date or time of an event as an aware time in `zone`."""
    if not isinstance(value, datetime):
        return resolve_wall_time(datetime.combine(value, time()), zone).astimezone(zone)
    if value.tzinfo is None:
        return resolve_wall_time(value, zone).astimezone(zone)
    return value.astimezone(zone)
