"""When something is due: read from a line that a person typed, calculated across clock changes, said in words.

Pure functions; the present is a parameter. Raises Refused with examples, ConfigError for an unknown zone.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from core.dates import parsing
from core.dates.grammar import WEEKDAYS
from core.dates.resolution import EXAMPLES, Reading, Schedule, existing
from core.errors import ConfigError, Refused

SHORTEST = timedelta(minutes=1)
"""Nothing repeats more often."""
_LONGEST_CHARS = 10_000
_FIELD = re.compile(r"[0-9A-Za-z*/,#-]{1,60}")
_CRONLIKE = re.compile(r"[0-9*/,#L-]{1,60}")
_DAY = timedelta(days=1)
_DIGIT = re.compile(r"\d")
_AT = re.compile(r"At (\d\d:\d\d(?:(?:,| and|, and) \d\d:\d\d)*) (.+)")
_UNITS = ((604800, "week"), (86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def parse(text: str, now: datetime, zone: str) -> Reading:
    """The schedule at the start or the end of a line, and the rest of it; ``when | text`` separates the two. `now` is
    aware, `zone` an IANA name. Raises Refused when there is no time in it, the moment is past, or it never comes."""
    info = _zone_info(zone)
    line = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")[:_LONGEST_CHARS].strip()
    if not line:
        raise Refused(f"When, and what? {EXAMPLES}")
    reading = _divided(line, now, info) or _one(line, now, info)
    if reading is None:
        raise Refused(f"I cannot see when that should be. {EXAMPLES}")
    if "|" in reading.text and line.startswith(reading.text):
        # Somebody parted when and what, and the time was found in the what.
        reading = replace(reading, is_certain=False)
    if next_after(reading.schedule, now) is None:
        raise Refused(f"That never comes. {EXAMPLES}")
    return reading


def _divided(line: str, now: datetime, zone: ZoneInfo) -> Reading | None:
    """``when | text`` or ``text | when``; None when there is no bar, or it belongs to the text."""
    front, bar, rest = line.partition("|")
    other, _, end = line.rpartition("|")
    for read in (_ruled, _one) if bar else ():
        for when, text in ((front.strip(), rest.strip()), (end.strip(), other.strip())):
            reading = read(when, now, zone) if when else None
            if reading is not None and not reading.text:
                return Reading(schedule=reading.schedule, text=text, is_certain=reading.is_certain)
    return None


def _one(line: str, now: datetime, zone: ZoneInfo) -> Reading | None:
    ruled = _ruled(line, now, zone)
    if ruled is not None and not (ruled.schedule.at and ruled.schedule.at - now < _DAY and _DIGIT.search(ruled.text)):
        return ruled
    # Of "ужин 3 мая в 18:00" English rules see the hour and not the day.
    foreign = parsing.read_foreign(line, now, zone)
    return foreign if foreign and (ruled is None or len(foreign.text) < len(ruled.text)) else ruled


def _ruled(line: str, now: datetime, zone: ZoneInfo) -> Reading | None:
    """A cron line of five fields at the front, or what English rules read."""
    words = line.split(maxsplit=5)
    is_cron = all(map(_FIELD.fullmatch, words[:5])) and all(map(_CRONLIKE.fullmatch, words[:3]))
    if len(words) < 5 or not is_cron:
        return parsing.read(line, now, zone)
    text = words[5] if len(words) > 5 else ""
    # A sixth field would be the seconds of another dialect, in front.
    is_five = not (text and _CRONLIKE.fullmatch(text.split(maxsplit=1)[0]))
    return Reading(schedule=_checked(words[:5], zone), text=text, is_certain=is_five)


def _checked(fields: list[str], zone: ZoneInfo) -> Schedule:
    cron = " ".join(fields)
    try:
        CronSim(cron, datetime(2026, 1, 1))  # noqa: DTZ001
    except (CronSimError, ValueError) as error:
        raise Refused(
            f"'{cron}' is no cron line that ever comes ({error}). Five fields: minute, hour, day of the month, month, "
            "weekday; for instance '0 9 * * 1-5 stand-up'."
        ) from error
    return Schedule(zone=zone.key, cron=cron)


def next_after(schedule: Schedule, after: datetime) -> datetime | None:
    """The first due time strictly behind `after` (aware), in UTC; None when there is none.

    Wall times that a clock change skips come at its end; those that it repeats come once. Schedules with a star in the
    minute or the hour come at every such minute, as Debian's cron has it. An interval of whole days keeps its wall
    time, a shorter one is counted in seconds from `start_at`.
    """
    zone = _zone_info(schedule.zone)
    try:
        if schedule.at is not None:
            return schedule.at.astimezone(UTC) if schedule.at > after else None
        if schedule.cron is None:
            return _next_interval(schedule, zone, after)
        # In an hour that clocks show twice, CronSim begins again with its first showing.
        due = (moment.astimezone(UTC) for moment in CronSim(schedule.cron, after.astimezone(zone)))
        return next((moment for moment in due if moment > after), None)
    except (OverflowError, StopIteration):
        return None


def latest(schedule: Schedule, first: datetime, now: datetime) -> datetime:
    """The last due time of those from `first` (itself one) until `now`: several that were missed are one run."""
    due = first
    # Near the end first: a schedule of every minute may have missed a year.
    for days in (1 / 24, 1, 32, 367, 367 * 9):
        found = next_after(schedule, max(now - timedelta(days=days), first))
        while found is not None and found <= now:
            due, found = found, next_after(schedule, found)
        if due > first:
            break
    return due


def _next_interval(schedule: Schedule, zone: ZoneInfo, after: datetime) -> datetime:
    every = max(timedelta(seconds=schedule.every_s or 0), SHORTEST)
    start = (schedule.start_at or datetime(1970, 1, 1, tzinfo=UTC)).astimezone(UTC)
    if start > after:
        return start
    if every % timedelta(days=1):
        return start + ((after - start) // every + 1) * every
    first = start.astimezone(zone).replace(tzinfo=None, fold=0)
    steps = max((after.astimezone(zone).replace(tzinfo=None) - first) // every - 1, 0)
    while (moment := existing(first + steps * every, zone)) <= after:
        steps += 1
    return moment


def describe(schedule: Schedule, zone: str, now: datetime, *, is_full: bool = False) -> str:
    """The schedule in plain words: a moment as the clocks in `zone` show it, what recurs with the zone it follows;
    `is_full`: always with the zone and the next date."""
    if schedule.at is not None:
        local = schedule.at.astimezone(_zone_info(zone))
        return _moment(local, is_exact=abs(schedule.at - now) < timedelta(minutes=5)) + f" ({zone})" * is_full
    own = _zone_info(schedule.zone)
    local = (next_after(schedule, now) or now).astimezone(own)
    then = f", next {_moment(local)}"
    if schedule.cron is not None:
        return f"{_cron_words(schedule.cron)}{then * is_full} ({own.key})"
    every_s = schedule.every_s or 60
    if every_s % 86400 and local.date() == now.astimezone(own).date():
        then = f", next at {local:%H:%M}"
    weekday = f" on {local:%A}" if every_s % 604800 == 0 else ""
    clock = "" if every_s % 86400 else f"{weekday} at {local:%H:%M}"
    return f"{_every(every_s)}{clock}{then} ({own.key})"


def exact(schedule: Schedule, zone: str) -> str:
    """The schedule as words that `parse` reads back as the same and calls certain, typed by somebody in `zone`."""
    own = _zone_info(schedule.zone)
    if schedule.cron is not None:
        return schedule.cron
    if schedule.at is not None:
        info = _zone_info(zone)
        local = schedule.at.astimezone(info).replace(microsecond=0)
        typed = existing(local.replace(tzinfo=None, second=0, fold=0), info)
        return f"{local:%Y-%m-%d %H:%M}" if typed == schedule.at else local.isoformat()
    every_s, start = schedule.every_s or 60, (schedule.start_at or datetime(1970, 1, 1, tzinfo=UTC)).astimezone(own)
    if every_s % 86400:
        return f"every {every_s // 60} minutes" if every_s % 60 == 0 else f"every {every_s} seconds"
    days = every_s // 86400
    count = f"every {days // 7} weeks on {WEEKDAYS[start.weekday()]}" if days % 7 == 0 else f"every {days} days"
    return f"{count} at {start:%H:%M}"


def _every(seconds: int) -> str:
    """``every day``, ``every 36 hours``: in the largest unit that divides it."""
    size, name = next((size, name) for size, name in _UNITS if seconds % size == 0)
    return f"every {name}" if seconds == size else f"every {seconds // size} {name}s"


def spell(seconds: float) -> str:
    """A length of time in its two largest units: ``2 hours``, ``1 day 3 hours``, ``1 minute 30 seconds``."""
    rest, parts = max(int(seconds), 0), []
    for size, name in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 seconds"


def _moment(local: datetime, *, is_exact: bool = False) -> str:
    seconds = f":{local:%S}" if is_exact and local.second else ""
    return f"{local:%A} {local.day} {local:%B %Y} at {local:%H:%M}{seconds}"


def _cron_words(cron: str) -> str:
    """``every Monday at 08:30``, ``on the last day of every month at 09:00``, ``every 15th minute of every hour``."""
    words = CronSim(cron, datetime(2026, 1, 1)).explain()  # noqa: DTZ001
    if found := _AT.fullmatch(words):
        day = found[2] if found[2].startswith(("every", "on the")) else f"every {found[2].removeprefix('on ')}"
        return f"{day} at {found[1]}"
    return words[:1].lower() + words[1:]


def _zone_info(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"'{zone[:40]}' is no time zone. Write an IANA name like Europe/Lisbon.") from error
