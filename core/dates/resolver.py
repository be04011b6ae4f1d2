"""The parts of a time that words named, put together to one schedule, or refused with a sentence.

Knows what people mean by what they leave out: the next such day, nine o'clock where no hour is given, the afternoon
where the hour of the morning is past. Every such guess that could be wrong makes it uncertain.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.scanner import PARTS, Clock, Span
from core.dates.schedule import Schedule
from core.errors import Refused

DEFAULT_HOUR = 9
EXAMPLES = "Write it like 'tomorrow at 9 call Ana', 'in 20 minutes tea' or 'every monday at 8:30 stand-up'."
_YEARS_AHEAD = 8
"""How far a day is looked for: 29 February comes within eight years."""


@dataclass(slots=True, kw_only=True)
class When:
    """Filled word by word, then asked for its `schedule`.

    moment: exactly then. span: "in 20 minutes", or the interval of what `is_repeated`. day: that day and no other.
    weekdays, month_day, month: what recurs, or the next such day; month_days: several, -1 the last. nth: the n-th such
    weekday of a month, -1 the last. hours: of "every hour from 9 to 17". part: morning, afternoon, evening, night.
    """

    moment: datetime | None = None
    is_repeated: bool = False
    span: Span | None = None
    day: date | None = None
    weekdays: tuple[int, ...] = ()
    nth: int | None = None
    month_day: int | None = None
    month_days: tuple[int, ...] = ()
    month: int | None = None
    clocks: tuple[Clock, ...] = ()
    part: str | None = None
    hours: tuple[int, int] | None = None
    zone: str | None = None
    is_certain: bool = True

    @property
    def has_day(self) -> bool:
        """Whether a day, or what comes again, was named."""
        return bool(self.day or self.weekdays or self.month_day or self.month_days or self.span or self.nth)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was named."""
        return not (self.has_day or self.clocks or self.part)

    def schedule(self, now: datetime, zone: str) -> Schedule:
        """The schedule seen from `now` (aware) by a clock in `zone`. Raises Refused."""
        zone = self.zone or zone
        here = now.astimezone(ZoneInfo(zone)).replace(microsecond=0)
        try:
            if self.is_repeated:
                return self._repeated(here, zone)
            return Schedule(zone=zone, at=self._moment(here))
        except (OverflowError, ValueError) as error:
            raise Refused("That is too far away to be kept. Name a moment within the next hundred years.") from error

    def _clock(self) -> Clock:
        if not self.clocks:
            return (PARTS.get(self.part or "", DEFAULT_HOUR), 0, False)
        hour, minute, is_bare = self.clocks[0]
        if self.part and 1 <= hour <= 12:
            if self.part == "morning" or (self.part == "night" and hour <= 5):
                return (hour % 12 if self.part == "night" else hour, minute, False)
            if self.part == "night" and hour == 12:
                return (0, minute, False)
            return (hour % 12 + 12, minute, False)
        return (hour, minute, is_bare)

    def _plain_clock(self) -> tuple[int, int]:
        """The clock of something that repeats: a bare hour before seven is taken for the afternoon, uncertain."""
        hour, minute, is_bare = self._clock()
        if is_bare and hour < 7:
            self.is_certain = False
            hour += 12
        return hour, minute

    def _moment(self, here: datetime) -> datetime:
        if self.moment is not None:
            return self._future(self.moment.astimezone(here.tzinfo).replace(microsecond=0), here)
        if self.span is not None:
            return self._after_span(here)
        hour, minute, is_bare = self._clock()
        if not self.has_day:
            return self._next_clock(here, hour, minute, is_bare)
        days = self._days(here.date())
        is_after_midnight = self.part == "night" and bool(self.clocks) and hour <= 5
        for day in days:
            day += timedelta(days=1) if is_after_midnight else timedelta()
            is_today = day == here.date()
            if is_bare and hour < 7 and not (is_today and _is_behind(wall(day, hour, minute, here), here)):
                self.is_certain = self.is_certain and is_today
                return self._future(wall(day, hour + 12, minute, here), here)
            moment = wall(day, hour, minute, here)
            if _is_behind(moment, here):
                return moment.astimezone(UTC)
            if is_today and is_bare and hour < 12 and _is_behind(wall(day, hour + 12, minute, here), here):
                self.is_certain = False
                return wall(day, hour + 12, minute, here).astimezone(UTC)
        return self._future(wall(days[0], hour, minute, here), here)

    def _next_clock(self, here: datetime, hour: int, minute: int, is_bare: bool) -> datetime:
        today, afternoon = here.date(), hour % 12 + 12
        for day in (today, today + timedelta(days=1)):
            moment = wall(day, hour, minute, here)
            if _is_behind(moment, here):
                return moment.astimezone(UTC)
            if is_bare and _is_behind(wall(day, afternoon, minute, here), here):
                self.is_certain = False
                return wall(day, afternoon, minute, here).astimezone(UTC)
        return wall(today + timedelta(days=2), hour, minute, here).astimezone(UTC)

    def _future(self, moment: datetime, here: datetime) -> datetime:
        if not _is_behind(moment, here):
            told = f"{moment:%A} {moment.day} {moment:%B %Y} at {moment:%H:%M}"
            raise Refused(f"{told} is past. Name a moment that is still to come. {EXAMPLES}")
        return moment.astimezone(UTC)

    def _days(self, today: date) -> list[date]:
        """The days that are meant, the most likely first; a later one counts when the first is past already."""
        if self.day is not None:
            return [self.day]
        if self.weekdays:
            ahead = min((weekday - today.weekday()) % 7 for weekday in self.weekdays)
            return [today + timedelta(days=ahead), today + timedelta(days=ahead + 7)]
        found = []
        for year in range(today.year, today.year + _YEARS_AHEAD + 1):
            for month in [self.month] if self.month else range(1, 13):
                day = calendar_day(year, month, self.month_day or 1)
                if day is not None and day >= today:
                    found.append(day)
            if len(found) > 1:
                break
        if not found:
            raise Refused(f"There is no such day. {EXAMPLES}")
        return found

    def _after_span(self, here: datetime) -> datetime:
        months, days, seconds = self.span or (0, 0, 0)
        day = later(here.date(), months) + timedelta(days=days)
        if self.clocks or self.part:
            hour, minute, is_bare = self._clock()
            self.is_certain = self.is_certain and not seconds and not (is_bare and hour < 7)
            return self._future(wall(day, hour + 12 if is_bare and hour < 7 else hour, minute, here), here)
        moment = here if day == here.date() else wall(day, here.hour, here.minute, here, here.second)
        return self._future(moment.astimezone(UTC) + timedelta(seconds=seconds), here.astimezone(UTC))

    def _repeated(self, here: datetime, zone: str) -> Schedule:
        months, days, seconds = self.span or (0, 0, 0)
        if seconds and not months:
            return self._by_hours(days * 86400 + seconds, here, zone)
        hour, minute = self._plain_clock()
        if months or self.month_day or self.month_days or self.nth:
            return Schedule(zone=zone, cron=self._by_months(months or (12 if self.month else 1), here))
        if days % 7 == 0 and days > 7 and self.weekdays:
            return self._by_weeks(days, here, zone)
        if days and self.weekdays and days != 7:
            raise Refused(f"That cannot repeat on weekdays. {EXAMPLES}")
        if days == 7 and not self.weekdays:
            self.is_certain = False
            self.weekdays = (here.weekday(),)
        if days <= 1 or self.weekdays:
            return Schedule(zone=zone, cron=f"{self._times(hour, minute)} * * {_cron_days(self.weekdays)}")
        start = self._future_start(wall(here.date(), hour, minute, here), here)
        return Schedule(zone=zone, every_s=days * 86400, start_at=start.astimezone(UTC))

    def _times(self, hour: int, minute: int) -> str:
        """The two first fields of a cron line; several clock times must share their minute."""
        hours = {hour} | {clock[0] for clock in self.clocks[1:]}
        if any(clock[1] != minute for clock in self.clocks[1:]):
            raise Refused("Two times with different minutes do not fit into one reminder. Make one for each.")
        self.is_certain = self.is_certain and not any(clock[2] and clock[0] < 7 for clock in self.clocks[1:])
        return f"{minute} {','.join(map(str, sorted(hours)))}"

    def _by_hours(self, every_s: int, here: datetime, zone: str) -> Schedule:
        if every_s < 60:
            raise Refused("Once a minute is the shortest that can repeat. Write 'every minute' or longer.")
        if self.hours is None and not self.weekdays:
            start = here
            if self.clocks or self.part:
                hour, minute = self._plain_clock()
                start = self._future_start(wall(here.date(), hour, minute, here), here)
            return Schedule(zone=zone, every_s=every_s, start_at=start.astimezone(UTC))
        days = _cron_days(self.weekdays)
        if every_s % 3600 == 0 and every_s < 86400:
            step = f"/{every_s // 3600}" if every_s > 3600 else ""
            hours = f"{self.hours[0]}-{self.hours[1]}" if self.hours else "*"
            return Schedule(zone=zone, cron=f"0 {hours}{step} * * {days}")
        if every_s < 3600 and 3600 % every_s == 0 and every_s % 60 == 0:
            hours = f"{self.hours[0]}-{self.hours[1] - 1}" if self.hours else "*"
            step = f"*/{every_s // 60}" if every_s > 60 else "*"
            return Schedule(zone=zone, cron=f"{step} {hours} * * {days}")
        raise Refused("That interval does not fit into these hours. Write for instance 'every 2 hours from 9 to 17'.")

    def _by_weeks(self, days: int, here: datetime, zone: str) -> Schedule:
        if len(self.weekdays) > 1:
            raise Refused("Every few weeks works with one weekday only. Make one reminder for each day.")
        hour, minute = self._plain_clock()
        first = here.date() + timedelta(days=(self.weekdays[0] - here.weekday()) % 7)
        start = self._future_start(wall(first, hour, minute, here), here, 7)
        return Schedule(zone=zone, every_s=days * 86400, start_at=start.astimezone(UTC))

    def _future_start(self, start: datetime, here: datetime, days: int = 1) -> datetime:
        if _is_behind(start, here):
            return start
        return wall(start.date() + timedelta(days=days), start.hour, start.minute, here)

    def _by_months(self, months: int, here: datetime) -> str:
        hour, minute = self._plain_clock()
        if 12 % months:
            raise Refused("Only 1, 2, 3, 4, 6 or 12 months can repeat. Name the months in reminders of their own.")
        if self.nth is not None:
            days = ",".join(f"{(day + 1) % 7}{'L' if self.nth < 0 else f'#{self.nth}'}" for day in self.weekdays)
            return f"{self._times(hour, minute)} * {self._months(months, here)} {days}"
        named = self.month_days or ((self.month_day,) if self.month_day else ())
        if not named:
            self.is_certain = False
            named = (here.day,)
        if self.month is None and any(day > 28 for day in named):
            self.is_certain = False
        fields = ",".join("L" if day < 0 or (day == 31 and self.month is None) else str(day) for day in sorted(named))
        if self.month is not None and not any(self._exists(day) for day in named):
            raise Refused(f"There is no such day. {EXAMPLES}")
        return f"{self._times(hour, minute)} {fields} {self._months(months, here)} *"

    def _exists(self, day: int) -> bool:
        return day < 0 or calendar_day(2028, self.month or 1, day) is not None

    def _months(self, months: int, here: datetime) -> str:
        first = self.month or here.month
        if months == 1 and not self.month:
            return "*"
        if months == 12 or self.month:
            return str(first)
        return ",".join(map(str, sorted({(first - 1 + step) % 12 + 1 for step in range(0, 12, months)})))


def _is_behind(moment: datetime, here: datetime) -> bool:
    """Compared as moments: two times of one zone are compared by their digits, which is wrong where clocks go back."""
    return moment.astimezone(UTC) > here.astimezone(UTC)


def wall(day: date, hour: int, minute: int, here: datetime, second: int = 0) -> datetime:
    """The moment at which clocks in the zone of `here` show this; where they skip it, the first they show after."""
    return existing(datetime.combine(day, time(hour, minute, second)), here.tzinfo)


def existing(naive: datetime, zone: object) -> datetime:
    """A wall time as a moment: the first of two equal ones, the end of the gap where clocks skip it."""
    assert isinstance(zone, ZoneInfo)
    moment = naive.replace(tzinfo=zone, fold=0)
    back = moment.astimezone(UTC).astimezone(zone)
    if back.replace(tzinfo=None) == naive:
        return moment
    # In a gap the old offset (fold 0) points behind it, the new one (fold 1) before it; the jump lies between.
    late, early = back, naive.replace(tzinfo=zone, fold=1).astimezone(UTC).astimezone(zone)
    first, last = early.astimezone(UTC), late.astimezone(UTC)
    offset = early.utcoffset()
    while last - first > timedelta(seconds=1):
        middle = first + (last - first) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            first = middle
        else:
            last = middle
    return last.replace(microsecond=0).astimezone(zone)


def later(day: date, months: int) -> date:
    """The same day so many months later, or the last of a month that is too short."""
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    for last in range(day.day, 27, -1):
        if (found := calendar_day(year, month + 1, last)) is not None:
            return found
    return date(year, month + 1, day.day)


def calendar_day(year: int, month: int, day: int) -> date | None:
    """The day, unless the calendar has none such."""
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
