"""Reads calendars from ICS feeds and CalDAV servers (RFC 4791), and adds events to the latter.

Only this module imports `caldav` and `recurring_ical_events`, when a calendar is first used. Both
libraries block, so they run in threads: each calendar has its own, so it can't delay the others.
The content of a feed is cached for `FEED_CACHE_S` seconds.

Events come from others, and one rule of recurrence can have millions of occurrences or none until
the year 9999. So the number of steps per event and the time per calendar are limited.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from math import ceil
from time import monotonic
from types import FrameType
from typing import Any, TypeVar
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
from core.guard.origin_and_fence import neutralise
from core.text.normalize import to_single_line
from core.text.terms import word_terms
from core.tools.addresses import IPAddress
from core.tools.web_client import WebClient

FEED_CACHE_S = 600.0
MAX_FEED_BYTES = 10_000_000
MAX_EVENTS = 200
MAX_STEPS = 300_000
"""An event with more function calls during its expansion is left out. An event of each day needs
about 8,000 calls per year since its start."""
MAX_PROBLEM_EVENTS = 3
MAX_DAYS = 400
"""A longer span of time, in days, isn't searched."""
NO_TITLE = "(no title)"
_MAX_NAME_CHARS = 60
# The errors with which the libraries respond to damaged events.
_DAMAGE = (ArithmeticError, ValueError, LookupError, TypeError, AttributeError)
_log = structlog.get_logger("calendars")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarEvent:
    """One occurrence of an event."""

    calendar: str
    # The title. Empty for an event without one.
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
    # A sentence for each calendar that couldn't be read, and for events that were left out.
    problems: Sequence[Sentence] = ()


@dataclass(slots=True)
class _Occurrences:
    """The occurrences in calendar files, as components of `icalendar`."""

    components: list[Any] = field(default_factory=list)
    # The titles of events that repeat too often to be expanded.
    endless: list[str] = field(default_factory=list)
    # The titles of events that can't be read.
    damaged: list[str] = field(default_factory=list)


def _has_words(event: CalendarEvent, name: str) -> bool:
    """Return whether the title or the place of an event contains all words of a name."""
    return set(word_terms(name)) <= set(word_terms(f"{event.text} {event.place}"))


class _TooManySteps(Exception):
    """The expansion of one event takes too many steps."""


@dataclass(eq=False)
class Calendars:
    """All configured calendars."""

    sources: Mapping[str, CalendarSource]
    # The values of the variables that the sources name.
    variables: Mapping[str, str]
    _feeds: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    # The accounts whose server was too slow to find the events of a span of time, such as Radicale
    # if an event repeats each second. All their events are loaded instead.
    _unfiltered: set[str] = field(default_factory=set)
    # One thread for each calendar.
    _threads: dict[str, ThreadPoolExecutor] = field(default_factory=dict)

    async def list_events(
        self, start: datetime, end: datetime, zone: ZoneInfo, *, name: str = ""
    ) -> Agenda:
        """Return the events that overlap a span of time. `start` and `end` are aware.

        With a `name`, only events with all words of it are returned. Raises Refused if the span is
        longer than `MAX_DAYS`.
        """
        if end - start > timedelta(days=MAX_DAYS):
            raise Refused("calendar_span", days=MAX_DAYS)
        sources = list(self.sources)
        results = await asyncio.gather(
            *(self._list_source(source, start, end, zone) for source in sources),
            return_exceptions=True,
        )
        events: list[CalendarEvent] = []
        problems: list[Sentence] = []
        for source, result in zip(sources, results, strict=True):
            if isinstance(result, MnemeError):
                values = {"name": source, "reason": to_sentence(result)}
                problems.append(Sentence("calendar_unreadable", values))
            elif isinstance(result, BaseException):
                raise result
            else:
                events += result[0]
                problems += result[1]
        if name:
            events = [event for event in events if _has_words(event, name)]
        events.sort(key=lambda event: (event.start, event.text))
        return Agenda(events[:MAX_EVENTS], problems)

    async def add_event(
        self,
        text: str,
        start: datetime,
        end: datetime,
        zone: ZoneInfo,
        name: str = "",
        *,
        is_all_day: bool = False,
    ) -> CalendarEvent:
        """Add an event to a calendar, by default to the first writable one.

        An event of whole days ends at the midnight after its last day in `zone`.

        Raises ToolError if there is no such calendar, or if its server refuses.
        """
        writable = [each for each, source in self.sources.items() if source.kind == "caldav"]
        if name and name not in writable:
            raise ToolError("calendar_read_only", name=name)
        if not writable:
            raise ToolError("calendars_read_only")
        name = name or writable[0]
        uid = uuid4().hex
        start, end = start.astimezone(zone), end.astimezone(zone)
        values: dict[str, date | datetime]
        if is_all_day:
            values = {"dtstart": start.date(), "dtend": end.date()}
        else:
            values = {"dtstart": start.astimezone(UTC), "dtend": end.astimezone(UTC)}
        await self._run(name, lambda: self._add_caldav(name, uid, text, values))
        return CalendarEvent(
            calendar=name, text=text, start=start, end=end, is_all_day=is_all_day, uid=uid
        )

    async def remove_event(self, name: str, uid: str) -> None:
        """Remove an event that Mneme added. Raises ToolError if the event no longer exists."""
        if name not in self.sources or self.sources[name].kind != "caldav":
            raise ToolError("calendar_read_only", name=name)
        if not await self._run(name, lambda: self._remove_caldav(name, uid)):
            raise ToolError("calendar_event_gone")

    async def probe(self, name: str) -> Sentence:
        """Read one calendar's events of the next 7 days, and return a sentence about the answer.

        Raises ToolError with a sentence about the failure.
        """
        now = datetime.now(UTC)
        events, _ = await self._list_source(name, now, now + timedelta(days=7), ZoneInfo("UTC"))
        return Sentence("probe_calendar", {"count": len(events)})

    async def _list_source(
        self, name: str, start: datetime, end: datetime, zone: ZoneInfo
    ) -> tuple[list[CalendarEvent], list[Sentence]]:
        """Return the events of one calendar that overlap a span of time.

        The second list has a sentence for each event that was left out.
        """
        source = self.sources[name]
        # Whole days, and times without a zone, are compared in the zone of the span.
        start, end = start.astimezone(zone), end.astimezone(zone)
        if source.kind == "caldav":
            result = await self._run(name, lambda: self._search_caldav(name, start, end))
        else:
            content = await self._load_feed(name)
            result = await self._run(
                name, lambda: _list_occurrences([content], start, end, source.timeout_s)
            )
        events = []
        for component in result.components:
            try:
                events += _read_event(name, component, zone)
            except _DAMAGE:
                result.damaged.append(_name_event(component))
        problems = []
        for code, titles in (
            ("calendar_event_left_out", result.endless),
            ("calendar_event_damaged", result.damaged),
        ):
            for title in list(dict.fromkeys(titles))[:MAX_PROBLEM_EVENTS]:
                problems.append(Sentence(code, {"name": name, "text": title or NO_TITLE}))
        return events, problems

    async def _run(self, name: str, work: Callable[[], T]) -> T:
        """Run blocking work in the thread of a calendar.

        Raises ToolError if it fails, and UncertainCallError if it takes too long.
        """
        timeout_s = self.sources[name].timeout_s
        threads = self._threads.setdefault(name, ThreadPoolExecutor(1, f"calendar {name}"))
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.get_running_loop().run_in_executor(
                    threads, _convert_errors, name, work
                )
        except TimeoutError as error:
            raise UncertainCallError("calendar_no_answer", seconds=f"{timeout_s:g}") from error

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
                raise ToolError("variable_not_set", name=match[1])
        return fill_placeholders(value, self.variables)

    @contextlib.contextmanager
    def _open_caldav(self, name: str, timeout_s: float = 0.0) -> Iterator[list[Any]]:
        """Yield the calendars of a CalDAV account, and close the connections afterwards.

        `timeout_s` limits each request. By default, the limit is the one of the settings.
        """
        from caldav.davclient import DAVClient

        source = self.sources[name]
        client = DAVClient(
            url=self._fill_variables(source.url),
            username=source.user or None,
            password=self._fill_variables(f"${{{source.key}}}") if source.key else None,
            timeout=ceil(timeout_s or source.timeout_s),
        )
        with client:
            principal = client.principal()  # type: ignore[no-untyped-call]
            yield list(principal.calendars())

    def _search_caldav(self, name: str, start: datetime, end: datetime) -> _Occurrences:
        """Return the occurrences in all calendars of an account.

        The server may need very long to find the events of a span of time, such as Radicale if an
        event repeats each second. So it gets half of the time, and then all events are loaded.
        """
        from niquests.exceptions import Timeout

        timeout_s = self.sources[name].timeout_s
        contents: list[bytes] = []
        if name not in self._unfiltered:
            try:
                contents = self._load_caldav(name, timeout_s / 2, start=start, end=end)
            except Timeout:
                self._unfiltered.add(name)
        if name in self._unfiltered:
            try:
                contents = self._load_caldav(name, timeout_s)
            except Timeout:
                self._unfiltered.remove(name)
                raise
        return _list_occurrences(contents, start, end, timeout_s)

    def _load_caldav(self, name: str, timeout_s: float, **span: datetime) -> list[bytes]:
        """Return the events of an account as calendar files, or those of a span of time."""
        contents = []
        with self._open_caldav(name, timeout_s) as calendars:
            for calendar in calendars:
                # The library would expand and filter the events without a limit.
                items = calendar.search(event=True, post_filter=False, **span)
                contents += [item.data.encode() for item in items]
        return contents

    def _add_caldav(
        self, name: str, uid: str, text: str, values: Mapping[str, date | datetime]
    ) -> None:
        with self._open_caldav(name) as calendars:
            if not calendars:
                raise ToolError("calendar_account_empty", name=name)
            calendars[0].add_event(uid=uid, summary=text, **values)

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


def _convert_errors(name: str, work: Callable[[], T]) -> T:
    """Do blocking work. Raises ToolError if it fails.

    The error is UncertainCallError if a request broke off, because it may have reached the server.
    """
    # Imported here, in a thread, because the libraries take more than a second.
    from caldav.lib.error import DAVError
    from niquests.exceptions import RequestException

    access_errors = (DAVError, RequestException, OSError)
    try:
        return work()
    except (*access_errors, *_DAMAGE, SyntaxError) as error:
        _log.warning("a calendar can't be read", calendar=name, error=type(error).__name__)
        kind = UncertainCallError if isinstance(error, RequestException) else ToolError
        code = "calendar_failed" if isinstance(error, access_errors) else "calendar_bad_content"
        raise kind(code, kind=type(error).__name__) from error


def _list_occurrences(
    contents: Sequence[bytes], start: datetime, end: datetime, timeout_s: float
) -> _Occurrences:
    """Return the occurrences in calendar files that overlap a span of time.

    Events that are damaged or repeat too often are left out, and the result names them. Raises
    TimeoutError after `timeout_s` seconds, and ValueError if the only file isn't a calendar.
    """
    from core.dates.calendar_file import parse_calendar

    expires_at = monotonic() + timeout_s
    result = _Occurrences()
    for content in contents:
        try:
            calendar = parse_calendar(content)
        except _DAMAGE:
            if len(contents) == 1:
                raise
            result.damaged.append(_find_title(content))
            continue
        for events in _group_by_series(calendar.walk("VEVENT")):
            title = _name_event(events[0])
            try:
                with _limit_steps(expires_at):
                    result.components += _expand(events, start, end)
            except _TooManySteps:
                result.endless.append(title)
            except TimeoutError:
                raise
            except _DAMAGE:
                result.damaged.append(title)
    return result


def _group_by_series(events: Sequence[Any]) -> list[list[Any]]:
    """Return the components of each series: an event, and its occurrences that were changed."""
    groups: dict[str, list[Any]] = {}
    for index, event in enumerate(events):
        uid = event.get("UID")
        groups.setdefault(f"unique {index}" if uid is None else f"uid {uid}", []).append(event)
    return list(groups.values())


def _expand(events: Sequence[Any], start: datetime, end: datetime) -> list[Any]:
    """Return the occurrences of one series that overlap a span of time.

    Raises one of the errors in `_DAMAGE` if an event of the series is damaged.
    """
    import recurring_ical_events  # type: ignore[import-untyped]

    from core.dates.calendar_file import group_events

    for event in events:
        _check_properties(event)
    occurrences: list[Any] = []
    for series in recurring_ical_events.of(group_events(events)).series:
        occurrences += [each.as_component(False) for each in series.between(start, end)]
    return occurrences


def _name_event(component: Any) -> str:
    """Return the text of an event on one line, for a sentence about it."""
    return _shorten_title(str(component.get("SUMMARY", "")))


def _find_title(content: bytes) -> str:
    """Return the title in a file that can't be parsed, or "" if it has none."""
    match = re.search(rb"^SUMMARY[^:\r\n]*:([^\r\n]*)", content, re.MULTILINE)
    return _shorten_title(match[1].decode(errors="replace")) if match else ""


def _shorten_title(text: str) -> str:
    return neutralise(to_single_line(text))[:_MAX_NAME_CHARS]


@contextlib.contextmanager
def _limit_steps(expires_at: float) -> Iterator[None]:
    """Limit the function calls of this thread to `MAX_STEPS`.

    A profile function is the only way to interrupt the loops of `dateutil`, which run to the year
    9999 if a rule has no date. Raises _TooManySteps, or TimeoutError at the time `expires_at` of
    the monotonic clock.
    """
    steps = 0

    def count_step(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += 1
        if steps > MAX_STEPS:
            raise _TooManySteps
        if steps % 1_000 == 0 and monotonic() > expires_at:
            raise TimeoutError

    profiler = sys.getprofile()
    sys.setprofile(count_step)
    try:
        yield
    finally:
        sys.setprofile(profiler)


def _check_properties(event: Any) -> None:
    """Raise ValueError if an event repeats a property that it may have once, or ends too early.

    A repeated property becomes a list, which `recurring_ical_events` can't read.
    """
    for name in ("DTSTART", "DTEND", "DURATION", "RRULE"):
        if isinstance(event.get(name), list):
            raise ValueError(f"{name} is repeated")
    duration = event.get("DURATION")
    if duration is not None and duration.dt < timedelta(0):
        raise ValueError("The duration is negative")


def _read_event(name: str, component: Any, zone: ZoneInfo) -> list[CalendarEvent]:
    """Return a list with the occurrence, or [] if it is cancelled or has no start."""
    text = " ".join(str(component.get("SUMMARY", "")).split())
    start = component.get("DTSTART")
    if start is None or str(component.get("STATUS", "")).upper() == "CANCELLED":
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
