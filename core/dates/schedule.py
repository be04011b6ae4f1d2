"""Schedules: how the named parts of a time become one or are refused with a sentence, when it is due across clock
changes, and how it is said in words.

What people leave out is filled in: the next such day, nine o'clock where no hour is given, the afternoon where the
morning's hour is past. A guess that could be wrong makes it uncertain. Pure: the present is a parameter.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from core.errors import ConfigError, Refused

EXAMPLES = "Write it like 'tomorrow at 9 call Ana', 'in 20 minutes tea' or 'every monday at 8:30 stand-up'."
_DAY = timedelta(days=1)
PARTS = {"morning": 9, "afternoon": 15, "evening": 19, "night": 20}
"""The hour meant by a part of the day without a clock time; by a day alone, the morning's."""
_AT = re.compile(r"At (\d\d:\d\d(?:(?:,| and|, and) \d\d:\d\d)*) (.+)")
_UNITS = ((604800, "week"), (86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


class Span(NamedTuple):
    months: int = 0
    days: int = 0
    seconds: int = 0


class Clock(NamedTuple):
    """A wall time; `is_bare`: an hour that could be of the morning or of the afternoon."""

    hour: int
    minute: int = 0
    is_bare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a job is due: by `cron` (five fields, wall time in `zone`, an IANA name), every `every_s` seconds from
    `start_at`, or at one moment `at`."""

    zone: str
    cron: str | None = None
    every_s: int | None = None
    start_at: datetime | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`text` is the line without the words of time. Not `is_certain`: the words allow another reading, or another
    language was guessed, so the person has to confirm it. `is_prompt` as of a job."""

    schedule: Schedule
    text: str
    is_certain: bool
    is_prompt: bool = False


@dataclass(slots=True, kw_only=True)
class When:
    """Filled word by word, then asked for its `schedule`.

    moment: exactly then. span: "in 20 minutes", or the interval of what `is_repeated`. day: that day and no other.
    weekdays, month_days (-1 the last), month: what recurs, or the next such day. nth: the n-th such weekday of a month,
    -1 the last. part: one of PARTS. said_weekday: named beside a date, with which it should agree.
    """

    moment: datetime | None = None
    is_repeated: bool = False
    span: Span | None = None
    day: date | None = None
    weekdays: tuple[int, ...] = ()
    nth: int | None = None
    month_days: tuple[int, ...] = ()
    month: int | None = None
    clocks: tuple[Clock, ...] = ()
    part: str | None = None
    is_certain: bool = True
    said_weekday: int | None = None

    @property
    def has_day(self) -> bool:
        """Also for a repetition."""
        return bool(self.day or self.weekdays or self.month_days or self.span or self.nth)

    @property
    def has_clock(self) -> bool:
        return bool(self.clocks or self.part or self.moment)

    def schedule(self, now: datetime, zone: str) -> Schedule:
        """The schedule seen from `now` (aware) by a clock in `zone`. Raises Refused."""
        here = now.astimezone(ZoneInfo(zone)).replace(microsecond=0)
        try:
            if self.is_repeated:
                return self._repeated(here, zone)
            moment = self._moment(here)
            local = moment.astimezone(here.tzinfo)
        except (OverflowError, ValueError) as error:
            raise Refused("That is too far away to be kept. Name a moment within the next hundred years.") from error
        if moment <= here:
            raise Refused(f"{_said(local)} is past. Name a moment that is still to come. {EXAMPLES}")
        if self.said_weekday not in (None, local.weekday()):
            self.is_certain = False
        return Schedule(zone=zone, at=moment)

    def _clock(self) -> Clock:
        if not self.clocks:
            return Clock(PARTS[self.part or "morning"])
        hour, minute, _ = self.clocks[0]
        if not self.part or not 1 <= hour <= 12:
            return self.clocks[0]
        if self.part == "morning" or (self.part == "night" and hour <= 5):
            return Clock(hour, minute)
        return Clock(0 if self.part == "night" and hour == 12 else hour % 12 + 12, minute)

    def _plain_clock(self) -> tuple[int, int]:
        """The clock of what repeats or comes in some days: a bare hour before seven may be of the afternoon."""
        hour, minute, is_bare = self._clock()
        is_early = is_bare and hour < 7
        self.is_certain = self.is_certain and not is_early
        return hour + 12 * is_early, minute

    def _moment(self, here: datetime) -> datetime:
        if self.moment is not None:
            return self.moment.astimezone(UTC).replace(microsecond=0)
        today = here.date()
        if self.span is not None:
            day = later(today, self.span.months) + timedelta(days=self.span.days)
            if self.has_clock:
                self.is_certain = self.is_certain and not self.span.seconds
                return wall(day, *self._plain_clock(), here)
            moment = here if day == today else wall(day, here.hour, here.minute, here, here.second)
            return moment.astimezone(UTC) + timedelta(seconds=self.span.seconds)
        clock = self._clock()
        days = self._days(today)
        if self.part == "night" and self.clocks and clock.hour <= 5:
            days = [day + _DAY for day in days]
        choices = [choice for day in days for choice in self._choices(day, clock, here)]
        moment, is_sure = next((choice for choice in choices if choice[0] > here), choices[0])
        self.is_certain = self.is_certain and is_sure
        return moment

    def _choices(self, day: date, clock: Clock, here: datetime) -> list[tuple[datetime, bool]]:
        """What a clock time on a day can mean, and whether that is sure."""
        moment, afternoon = (wall(day, hour, clock.minute, here) for hour in (clock.hour, clock.hour % 12 + 12))
        is_today = day == here.date()
        if not clock.is_bare:
            return [(moment, True)]
        if clock.hour < 7 and self.has_day and not (is_today and moment > here):
            return [(afternoon, is_today)]
        return [(moment, True), (afternoon, False)] if is_today or not self.has_day else [(moment, True)]

    def _days(self, today: date) -> list[date]:
        """The days that are meant, the most likely first; a later one counts when the first is past already."""
        if not self.has_day:
            return [today, today + _DAY, today + 2 * _DAY]
        if self.day is not None:
            return [self.day]
        month_days = ",".join(map(str, self.month_days)) or "*"
        evening = datetime.combine(today - _DAY, time(23, 59))
        days = CronSim(f"0 0 {month_days} {self.month or '*'} {_cron_days(self.weekdays)}", evening)
        return [moment.date() for moment in islice(days, 2)]

    def _repeated(self, here: datetime, zone: str) -> Schedule:
        """A cron line where one can say it, else an interval and the first time."""
        months, days, seconds = self.span or Span()
        clock = self._plain_clock()
        if seconds and not months:
            if (every_s := days * 86400 + seconds) < 60:
                raise Refused("Once a minute is the shortest that can repeat. Write 'every minute' or longer.")
            start = _first_start(here, *clock) if self.has_clock else here.astimezone(UTC)
            return Schedule(zone=zone, every_s=every_s, start_at=start)
        if months or self.month_days or self.nth:
            fields = self._month_fields(months or (12 if self.month else 1), here)
            return Schedule(zone=zone, cron=f"{self._times(*clock)} {fields}")
        if days == 7 and not self.weekdays:
            self.is_certain, self.weekdays = False, (here.weekday(),)
        if days in (0, 1, 7):
            return Schedule(zone=zone, cron=f"{self._times(*clock)} * * {_cron_days(self.weekdays)}")
        return Schedule(zone=zone, every_s=days * 86400, start_at=self._first_day(days, clock, here))

    def _first_day(self, days: int, clock: tuple[int, int], here: datetime) -> datetime:
        if not self.weekdays:
            return _first_start(here, *clock)
        if days % 7 or len(self.weekdays) > 1:
            raise Refused("Only every few weeks, and with one weekday, can that repeat. Make one for each day.")
        return _first_start(here, *clock, (self.weekdays[0] - here.weekday()) % 7, 7)

    def _times(self, hour: int, minute: int) -> str:
        """The two first fields of a cron line; several clock times must share their minute."""
        if any(clock.minute != minute for clock in self.clocks[1:]):
            raise Refused("Two times with different minutes do not fit into one reminder. Make one for each.")
        self.is_certain = self.is_certain and not any(clock.is_bare and clock.hour < 7 for clock in self.clocks[1:])
        hours = sorted({hour, *(clock.hour for clock in self.clocks[1:])})
        return f"{minute} {','.join(map(str, hours))}"

    def _month_fields(self, months: int, here: datetime) -> str:
        """The three last fields of a cron line: days, months, weekdays."""
        if 12 % months:
            raise Refused("Only 1, 2, 3, 4, 6 or 12 months can repeat. Name the months in reminders of their own.")
        start = self.month or here.month
        numbers = sorted((start - 1 + step) % 12 + 1 for step in range(0, 12, months))
        named_months = "*" if months == 1 else ",".join(map(str, numbers))
        if self.nth is not None:
            nth = "L" if self.nth < 0 else f"#{self.nth}"
            return f"* {named_months} {','.join(f'{(day + 1) % 7}{nth}' for day in self.weekdays)}"
        # The last day stands for one that not every month has.
        days, ends = self.month_days, (-1,) if self.month else (-1, 31)
        self.is_certain = self.is_certain and bool(days) and (bool(self.month) or max(days) <= 28)
        named_days = ",".join("L" if day in ends else str(day) for day in sorted(days or (here.day,)))
        return f"{named_days} {named_months} *"


def _first_start(here: datetime, hour: int, minute: int, ahead: int = 0, step: int = 1) -> datetime:
    """This clock time so many days ahead, or `step` days later when it is past."""
    day = here.date() + ahead * _DAY
    start = wall(day, hour, minute, here)
    return start if start > here else wall(day + step * _DAY, hour, minute, here)


def wall(day: date, hour: int, minute: int, here: datetime, second: int = 0) -> datetime:
    """The moment (UTC) at which clocks in the zone of `here` show this."""
    return existing(datetime.combine(day, time(hour, minute, second)), here.tzinfo)


def existing(naive: datetime, zone: tzinfo | None) -> datetime:
    """A wall time in UTC: the first of two equal ones, and as far behind the gap as it stands in it where clocks skip
    it (RFC 5545)."""
    return naive.replace(tzinfo=zone, fold=0).astimezone(UTC)


def later(day: date, months: int) -> date:
    """The same day so many months later, or the last of a month that is too short."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def calendar_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _cron_days(weekdays: tuple[int, ...]) -> str:
    """Weekdays (0 for Monday) as the fifth field of a cron line, where Sunday is 0."""
    if not weekdays or len(weekdays) == 7:
        return "*"
    if len(weekdays) > 2 and weekdays[-1] - weekdays[0] == len(weekdays) - 1 and weekdays[-1] < 6:
        return f"{weekdays[0] + 1}-{weekdays[-1] + 1}"
    return ",".join(str((day + 1) % 7) for day in weekdays)


def from_cron(fields: Sequence[str], zone: ZoneInfo) -> Schedule:
    """Of five fields; raises Refused for a line that never comes."""
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
    """The first due time strictly behind `after` (aware), in UTC; None when there is none. Wall times that a clock
    change skips come at its end; those that it repeats come once. Schedules with a star in the minute or the hour come
    at every such minute, as Debian's cron has it. An interval of whole days keeps its wall time, a shorter one is
    counted in seconds from `start_at`."""
    zone = zone_info(schedule.zone)
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
    every = timedelta(seconds=max(schedule.every_s or 0, 60))
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
        local = schedule.at.astimezone(zone_info(zone))
        return _said(local, is_exact=abs(schedule.at - now) < timedelta(minutes=5)) + f" ({zone})" * is_full
    own = zone_info(schedule.zone)
    local = (next_after(schedule, now) or now).astimezone(own)
    then = f", next {_said(local)}"
    if schedule.cron is not None:
        return f"{_cron_words(schedule.cron)}{then * is_full} ({own.key})"
    every_s = schedule.every_s or 60
    if every_s % 86400 and local.date() == now.astimezone(own).date():
        then = f", next at {local:%H:%M}"
    return f"{_every(every_s, local)}{then} ({own.key})"


def exact(schedule: Schedule, zone: str) -> str:
    """The schedule as words that `parse` reads back as the same and calls certain, typed by somebody in `zone`."""
    if schedule.cron is not None:
        return schedule.cron
    if schedule.at is not None:
        info = zone_info(zone)
        local = schedule.at.astimezone(info).replace(microsecond=0)
        typed = existing(local.replace(tzinfo=None, second=0, fold=0), info)
        return f"{local:%Y-%m-%d %H:%M}" if typed == schedule.at else local.isoformat()
    start = schedule.start_at or datetime(1970, 1, 1, tzinfo=UTC)
    return _every(schedule.every_s or 60, start.astimezone(zone_info(schedule.zone)))


def _every(seconds: int, local: datetime) -> str:
    """``every 36 hours``: in the largest unit that divides it; of whole days with the weekday and clock time."""
    size, name = next((size, name) for size, name in _UNITS if seconds % size == 0)
    weekday = f" on {local:%A}" if name == "week" else ""
    clock = f"{weekday} at {local:%H:%M}" if size >= 86400 else ""
    return (f"every {name}" if seconds == size else f"every {seconds // size} {name}s") + clock


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


def lateness(due_at: datetime, now: datetime, zone: str) -> str:
    """``due 09:00, 2 hours late``, with the day where that was another one by the clocks in `zone`."""
    local, today = due_at.astimezone(zone_info(zone)), now.astimezone(zone_info(zone)).date()
    late_s = (now - due_at).total_seconds()
    due = f"{local:%H:%M}" if local.date() == today else _said(local)
    return f"due {due}, {spell(late_s - (late_s % 60 if late_s >= 60 else 0))} late"


def _said(local: datetime, *, is_exact: bool = False) -> str:
    seconds = f":{local:%S}" if is_exact and local.second else ""
    return f"{local:%A} {local.day} {local:%B %Y} at {local:%H:%M}{seconds}"


def _cron_words(cron: str) -> str:
    """``every Monday at 08:30``, ``on the last day of every month at 09:00``, ``every 15th minute of every hour``."""
    words = CronSim(cron, datetime(2026, 1, 1)).explain()  # noqa: DTZ001
    if found := _AT.fullmatch(words):
        day = found[2] if found[2].startswith(("every", "on the")) else f"every {found[2].removeprefix('on ')}"
        return f"{day} at {found[1]}"
    return words[:1].lower() + words[1:]


def zone_info(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"'{zone[:40]}' is no time zone. Write an IANA name like Europe/Lisbon.") from error
