"""Compute when recurrences are due.

A recurrence is a text with the DTSTART and RRULE of RFC 5545.
``DTSTART;TZID=Europe/Lisbon:20261123T070000`` with ``RRULE:FREQ=WEEKLY;BYDAY=MO`` is due at 7:00 by
the clocks of Lisbon, even across clock changes. Intervals of minutes and hours have a DTSTART in
UTC, such as ``DTSTART:20261120T103000Z``, because clock changes don't affect them. A job may have
several recurrences, because no single RRULE is due at 8:00 and 20:30. Between DTSTART and RRULE,
``EXDATE;VALUE=DATE:20261130,20261214`` leaves out all moments on these days, and
``EXDATE:20261130T180000`` leaves out this wall time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from core.dates.schedule import load_zone, resolve_wall_time
from core.errors import Refused

if TYPE_CHECKING:
    from dateutil.rrule import rrule  # type: ignore[import-untyped]

_DATE = re.compile(r"\d{8}")
_TEXT = re.compile(
    r"DTSTART(?:;TZID=(?P<zone>[\w+/-]+))?:(?P<start>\d{8}T\d{6})(?P<utc>Z?)\s+"
    r"(?:EXDATE;VALUE=DATE:(?P<excluded>\d{8}(?:,\d{8})*)\s+)?"
    r"(?:EXDATE:(?P<excluded_times>\d{8}T\d{6}(?:,\d{8}T\d{6})*)\s+)?"
    r"RRULE:(?P<rule>[A-Z0-9=;,+-]+)"
)
_FIXED_UNITS = {
    "SECONDLY": timedelta(seconds=1),
    "MINUTELY": timedelta(minutes=1),
    "HOURLY": timedelta(hours=1),
}
_DAYS = {"DAILY": 1, "WEEKLY": 7}
"""The number of days in a period, for rules whose periods all have the same length."""
_RANGES = {
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (-31, 31),
    "BYYEARDAY": (-366, 366),
    "BYWEEKNO": (-53, 53),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
    "BYSECOND": (0, 59),
}
"""The lowest and highest number of each field. dateutil accepts any number, and then searches up to
the year 9999."""
_MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_CLOCK_CHANGE = timedelta(hours=3)
"""No clock change is longer than this."""
MAX_STEPS = 100_000
"""A rule without a due time among this many candidates is never due."""


def next_recurrences(texts: Sequence[str], after: datetime, count: int) -> list[datetime]:
    """Return the first `count` moments (UTC) of all recurrences after `after` (aware).

    Raises Refused if a text isn't a valid recurrence.
    """
    moments: set[datetime] = set()
    for text in texts:
        moments.update(_next_of_one(text, after, count))
    return sorted(moments)[:count]


def next_recurrence(texts: Sequence[str], after: datetime) -> datetime | None:
    """Return the first moment (UTC) of all recurrences after `after` (aware), or None.

    Raises Refused if a text isn't a valid recurrence.
    """
    moments = next_recurrences(texts, after, 1)
    return moments[0] if moments else None


def find_excluded_days(text: str) -> frozenset[date]:
    """Return the days that a recurrence leaves out. Raises Refused if it's invalid."""
    return _load(text).excluded_days


def find_excluded_times(text: str) -> frozenset[datetime]:
    """Return the wall times that a recurrence leaves out. Raises Refused if it's invalid."""
    return _load(text).excluded_times


def easter_sunday(year: int, *, is_orthodox: bool = False) -> date:
    """Return the date of Easter Sunday, for the Western or the Orthodox churches."""
    from dateutil.easter import (  # type: ignore[import-untyped]
        EASTER_ORTHODOX,
        EASTER_WESTERN,
        easter,
    )

    method = EASTER_ORTHODOX if is_orthodox else EASTER_WESTERN
    sunday: date = easter(year, method)
    return sunday


class _Recurrence(NamedTuple):
    """A recurrence, parsed from its DTSTART and RRULE."""

    zone: ZoneInfo
    # The first wall time, without a zone.
    start: datetime
    # The names and values of the RRULE. UNTIL is a wall time.
    fields: dict[str, str]
    # The days and the wall times of the EXDATEs.
    excluded_days: frozenset[date] = frozenset()
    excluded_times: frozenset[datetime] = frozenset()

    @property
    def interval(self) -> int:
        return int(self.fields.get("INTERVAL", "1"))

    def excludes(self, wall_time: datetime) -> bool:
        """Return whether an EXDATE leaves out a wall time."""
        return wall_time.date() in self.excluded_days or wall_time in self.excluded_times

    @property
    def text(self) -> str:
        """The RRULE, in wall time."""
        return ";".join(f"{name}={value}" for name, value in self.fields.items())


def _next_of_one(text: str, after: datetime, count: int) -> list[datetime]:
    """Return the first `count` moments of one recurrence that are later than `after`."""
    recurrence = _load(text)
    step = _fixed_step(recurrence)
    if step is not None:
        return _next_of_fixed(recurrence, step, after, count)
    zone = recurrence.zone
    local_after = after.astimezone(zone).replace(tzinfo=None) - _CLOCK_CHANGE
    rule = _rule_near(recurrence, local_after)
    moments: list[datetime] = []
    for wall_time in _wall_times(rule, local_after):
        if recurrence.excludes(wall_time):
            continue
        moment = resolve_wall_time(wall_time, zone)
        # Two wall times may be one moment if a clock change skips the first one.
        if moment > after and moment not in moments:
            moments.append(moment)
            if len(moments) == count:
                break
    return moments


def _fixed_step(recurrence: _Recurrence) -> timedelta | None:
    """Return the length of an interval if it never varies. Returns None for other rules."""
    unit = _FIXED_UNITS.get(recurrence.fields["FREQ"])
    is_plain = recurrence.fields.keys() <= {"FREQ", "INTERVAL", "COUNT", "UNTIL"}
    is_plain = is_plain and not recurrence.excluded_days and not recurrence.excluded_times
    is_utc = recurrence.zone.key == "UTC"
    return unit * recurrence.interval if unit and is_plain and is_utc else None


def _next_of_fixed(
    recurrence: _Recurrence, step: timedelta, after: datetime, count: int
) -> list[datetime]:
    """Return the next moments of an interval without computing the earlier ones."""
    start = recurrence.start.replace(tzinfo=UTC)
    index = max((after - start) // step + 1, 0)
    last = index + count
    if "COUNT" in recurrence.fields:
        last = min(last, int(recurrence.fields["COUNT"]))
    if "UNTIL" in recurrence.fields:
        until = _parse_time(recurrence.fields["UNTIL"]).replace(tzinfo=UTC)
        last = min(last, (until - start) // step + 1)
    return [start + number * step for number in range(index, last)]


def _rule_near(recurrence: _Recurrence, after: datetime) -> rrule:
    """Return dateutil's rule for a recurrence.

    If it doesn't change the later moments, the rule starts shortly before `after` and not at its
    own start.
    """
    start = recurrence.start
    days = _DAYS.get(recurrence.fields["FREQ"])
    if days is not None and "COUNT" not in recurrence.fields and after > start:
        period = timedelta(days=days * recurrence.interval)
        start += max((after - start) // period - 1, 0) * period
    return _build_rule(recurrence.text, start)


def _wall_times(rule: rrule, after: datetime) -> Iterator[datetime]:
    try:
        for step, wall_time in enumerate(rule.xafter(after)):
            if step > MAX_STEPS:
                return
            yield wall_time
    except (OverflowError, ValueError):
        return  # There are no dates after the year 9999.


def _build_rule(text: str, start: datetime) -> rrule:
    """Return dateutil's rule for a text. Raises Refused if the text is invalid."""
    from dateutil.rrule import rrulestr

    try:
        return rrulestr(text, dtstart=start, cache=False)
    except (ValueError, KeyError, TypeError) as error:
        raise Refused("recurrence_invalid", text=text[:80], reason=str(error)) from error


def _parse_time(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%S")  # noqa: DTZ007
    except ValueError as error:
        raise Refused("recurrence_bad_time", text=text[:20]) from error


@lru_cache(maxsize=4_096)
def _load(text: str) -> _Recurrence:
    """Parse a recurrence. Raises Refused if it is invalid."""
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise Refused("recurrence_unreadable")
    zone = load_zone("UTC" if match["utc"] else match["zone"] or "UTC")
    start = _parse_time(match["start"])
    fields = dict(part.partition("=")[::2] for part in match["rule"].split(";"))
    until = fields.get("UNTIL", "")
    if _DATE.fullmatch(until):
        # The whole last day counts.
        fields["UNTIL"] = f"{until}T235959"
    if until.endswith("Z"):
        moment = _parse_time(until[:-1]).replace(tzinfo=UTC)
        fields["UNTIL"] = f"{moment.astimezone(zone):%Y%m%dT%H%M%S}"
    excluded_days = frozenset(
        _parse_time(f"{day}T000000").date()
        for day in filter(None, (match["excluded"] or "").split(","))
    )
    excluded_times = frozenset(
        map(_parse_time, filter(None, (match["excluded_times"] or "").split(",")))
    )
    recurrence = _Recurrence(zone, start, fields, excluded_days, excluded_times)
    is_number = all(fields.get(name, "1").isdecimal() for name in ("INTERVAL", "COUNT"))
    if "FREQ" not in fields or not is_number or recurrence.interval < 1:
        raise Refused("recurrence_needs_frequency")
    _check_numbers(fields)
    _build_rule(recurrence.text, start)
    return recurrence


def _check_numbers(fields: dict[str, str]) -> None:
    """Raise Refused if a number is out of range, or if no month has the named days."""
    for name, (least, greatest) in _RANGES.items():
        if not all(least <= number <= greatest for number in _read_numbers(fields, name)):
            raise Refused("recurrence_out_of_range", field=name, least=least, greatest=greatest)
    days = [abs(number) for number in _read_numbers(fields, "BYMONTHDAY")]
    months = _read_numbers(fields, "BYMONTH")
    if days and months and min(days) > max(_MONTH_LENGTHS[month - 1] for month in months):
        raise Refused("recurrence_never_due", month=months[0], day=min(days))


def _read_numbers(fields: dict[str, str], name: str) -> list[int]:
    """Return a field's numbers. Raises Refused if one isn't a number."""
    if name not in fields:
        return []
    try:
        return [int(number) for number in fields[name].split(",")]
    except ValueError as error:
        raise Refused("recurrence_needs_numbers", field=name) from error
