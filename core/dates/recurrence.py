"""Computes when recurrences are due. A recurrence is a text of RFC 5545: DTSTART and RRULE.

``DTSTART;TZID=Europe/Lisbon:20261123T070000`` with ``RRULE:FREQ=WEEKLY;BYDAY=MO`` is due at 7:00
by the clocks of Lisbon, also across clock changes. A DTSTART in UTC, such as
``DTSTART:20261120T103000Z``, is used for intervals of minutes and hours, whose length doesn't
depend on clock changes. A job may have several recurrences, because one RRULE can't be due at 8:00
and 20:30.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from core.dates.schedule import load_zone, resolve_wall_time
from core.errors import Refused

if TYPE_CHECKING:
    from dateutil.rrule import rrule  # type: ignore[import-untyped]

_TEXT = re.compile(
    r"DTSTART(?:;TZID=(?P<zone>[\w+/-]+))?:(?P<start>\d{8}T\d{6})(?P<utc>Z?)\s+"
    r"RRULE:(?P<rule>[A-Z0-9=;,+-]+)"
)
_UNTIL = re.compile(r"UNTIL=(\d{8}T\d{6})Z")
_CLOCK_CHANGE = timedelta(hours=3)
"""No clock change is longer than this."""
MAX_STEPS = 100_000
"""A rule that has no due time among so many candidates has none."""


def next_recurrences(texts: Sequence[str], after: datetime, count: int) -> list[datetime]:
    """Return the first `count` moments (UTC) later than `after` (aware) of all recurrences.

    Raises Refused if a text isn't a valid recurrence.
    """
    moments: set[datetime] = set()
    for text in texts:
        moments.update(_next_of_one(text, after, count))
    return sorted(moments)[:count]


def next_recurrence(texts: Sequence[str], after: datetime) -> datetime | None:
    """Return the first moment (UTC) later than `after` of all recurrences, or None."""
    moments = next_recurrences(texts, after, 1)
    return moments[0] if moments else None


def _next_of_one(text: str, after: datetime, count: int) -> list[datetime]:
    zone, rule = _load(text)
    local_after = after.astimezone(zone).replace(tzinfo=None) - _CLOCK_CHANGE
    moments: list[datetime] = []
    for wall_time in _wall_times(rule, local_after):
        moment = resolve_wall_time(wall_time, zone)
        # Two wall times may be one moment if a clock change skips the first one.
        if moment > after and moment not in moments:
            moments.append(moment)
            if len(moments) == count:
                break
    return moments


def _wall_times(rule: rrule, after: datetime) -> Iterator[datetime]:
    try:
        for step, wall_time in enumerate(rule.xafter(after)):
            if step > MAX_STEPS:
                return
            yield wall_time
    except (OverflowError, ValueError):
        return  # No date after the year 9999.


@lru_cache(maxsize=4_096)
def _load(text: str) -> tuple[ZoneInfo, rrule]:
    """Return the zone and the rule, in wall time, of a recurrence."""
    from dateutil.rrule import rrulestr

    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise Refused("That isn't a valid recurrence. Write DTSTART and RRULE as in RFC 5545.")
    zone = ZoneInfo("UTC") if match["utc"] else load_zone(match["zone"] or "UTC")

    def to_wall_time(until: re.Match[str]) -> str:
        moment = datetime.strptime(until[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        return f"UNTIL={moment.astimezone(zone):%Y%m%dT%H%M%S}"

    rule = _UNTIL.sub(to_wall_time, match["rule"])
    start = datetime.strptime(match["start"], "%Y%m%dT%H%M%S")  # noqa: DTZ007
    try:
        parsed = rrulestr(rule, dtstart=start, cache=False)
    except (ValueError, KeyError) as error:
        raise Refused(f"'{rule[:80]}' isn't a valid recurrence ({error}).") from error
    return zone, parsed
