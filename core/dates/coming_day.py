"""Read the name of a coming day as requests for reminders do: "in 3 days", "Friday week"."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.period_name import MAX_PERIOD_WORDS, Interval
from core.dates.requests.parts import TimeParts
from core.dates.requests.reader import read_request
from core.dates.schedule import resolve_wall_time

_DAY_PARTS = frozenset({"days", "weekdays", "week_offset", "month_offset", "nth", "offset"})
_OTHER_PARTS = frozenset({"part", "assumptions"})
NOON = 12
UNSPACED_START = "\u2e80"
"""Chinese and Japanese letters come after this character."""


def read_coming_day(
    text: str, now: datetime, zone: ZoneInfo, languages: tuple[str, ...] = ()
) -> Interval | None:
    """Return the coming day that a text names, in UTC, or None if the text is anything else.

    A day begins at midnight in `zone`. `core.dates.period_name` reads the names of other periods.
    """
    if not 0 < len(text.split()) <= MAX_PERIOD_WORDS or not _may_name_day(text):
        return None
    reading = read_request(text, now, zone, languages, is_request=True, default_hour=NOON)
    if reading.task or reading.moment is None or not _names_only_day(reading.parts):
        return None
    day = reading.moment.astimezone(zone).date()
    start, end = datetime.combine(day, time()), datetime.combine(day + timedelta(days=1), time())
    return resolve_wall_time(start, zone), resolve_wall_time(end, zone)


def _may_name_day(text: str) -> bool:
    """Return whether a text has several words, a digit, or letters of a script without spaces."""
    is_single_word = text.strip().isalpha() and text < UNSPACED_START
    return not is_single_word


def _names_only_day(parts: TimeParts) -> bool:
    """Return whether the parts name a day, without a time of day."""
    names = parts.names()
    is_time_of_day = parts.offset is not None and parts.offset.seconds > 0
    return bool(names & _DAY_PARTS) and names <= _DAY_PARTS | _OTHER_PARTS and not is_time_of_day
