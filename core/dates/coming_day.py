"""Read the names of coming days and periods: "in 3 days", "Friday week", "next month".

`core.dates.period_name` reads a name without a year as the latest such period, as in a filter. Here
it means the next one.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.lexicon import lexicon_languages, load_lexicon
from core.dates.period_name import MAX_PERIOD_WORDS, Interval, read_period
from core.dates.requests.parts import Problem, TimeParts
from core.dates.requests.reader import read_in_language, read_request
from core.dates.schedule import add_months, resolve_wall_time

_DAY_PARTS = frozenset({"days", "weekdays", "week_offset", "month_offset", "nths", "offset"})
_OTHER_PARTS = frozenset({"part", "assumptions"})
NOON = 12
UNSPACED_START = "\u2e80"
"""Chinese and Japanese letters come after this character."""
_MAX_DAY_CHARS = 60
"""No name of a day is longer. Reading a text takes longer than its length suggests."""
_WEEK = timedelta(days=7)


def read_coming_period(text: str, now: datetime, zone: ZoneInfo) -> Interval | None:
    """Return the next period that a text names, such as "tomorrow" or "friday", or None.

    An empty text means today. A period in the past is moved to the next week or year.
    """
    period = read_period(text or "today", now, zone)
    if period is None:
        period = read_coming_day(text, now, zone)
    if period is None:
        return None
    start, end = (each.astimezone(zone).replace(tzinfo=None) for each in period)
    is_short = end - start <= _WEEK and now - period[0] < 2 * _WEEK
    today = now.astimezone(zone).replace(tzinfo=None)
    while end <= today:
        start = start + _WEEK if is_short else _add_year(start)
        end = end + _WEEK if is_short else _add_year(end)
    return resolve_wall_time(start, zone), resolve_wall_time(end, zone)


def _add_year(day: datetime) -> datetime:
    """Return the same day of the next year. 29 February becomes 28 February."""
    return datetime.combine(add_months(day.date(), 12), day.time())


def is_past_name(text: str, now: datetime, zone: ZoneInfo) -> bool:
    """Return whether a text names a period in the past in any language: "yesterday", "上周"."""
    for language in lexicon_languages():
        reading = read_in_language(text, load_lexicon(language), now, zone, is_request=True)
        if reading.problem is Problem.PAST and not reading.task:
            return True
    return False


def read_coming_day(
    text: str, now: datetime, zone: ZoneInfo, languages: tuple[str, ...] = ()
) -> Interval | None:
    """Return the coming day that a text names, in UTC, or None if the text is anything else.

    A day begins at midnight in `zone`. `core.dates.period_name` reads the names of other periods.
    """
    if len(text) > _MAX_DAY_CHARS or not 0 < len(text.split()) <= MAX_PERIOD_WORDS:
        return None
    if not _may_name_day(text):
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
