"""Define the parts of a time, and compute the moment or recurrence that they mean together.

The result lists the missing parts and the assumptions, so a missing or ambiguous part is never
guessed silently. The current time is a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from core.dates.requests.halves import NOON, ClockTime, clock_in_part, fits_part
from core.dates.schedule import add_months, date_if_valid, nth_weekday, resolve_wall_time
from core.dates.tokens import Unit

FIRST_LIKELY_HOUR = 6
"""An hour before 6 without "am" probably means the afternoon: "at 5" is 17:00."""
LAST_MONTH_DAY_EVERYWHERE = 28
MAX_YEARS_AHEAD = 100
DAY_MINUTES = 1440
_WEEKDAY_NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY = timedelta(days=1)


class Missing(Enum):
    """A part that the request doesn't name, so Mneme must ask for it."""

    TIME = "time"
    DATE = "date"
    TASK = "task"


class Problem(Enum):
    """The reason why a request's time can't be used."""

    PAST = "past"
    NO_SUCH_DATE = "no such date"
    WRONG_WEEKDAY = "wrong weekday"
    SEVERAL_TIMES = "several times"
    # Like SEVERAL_TIMES, but on several days, of which an answer must name one.
    SEVERAL_DAYS = "several days"
    # The answer to a question about several days names only an hour.
    NO_DAY = "no day"
    VAGUE = "vague"
    # "Some day": vague unless the request names a day.
    VAGUE_DAY = "vague day"
    TOO_FAR = "too far"


class Assumption(Enum):
    """A choice among several meanings, which the receipt must mention."""

    HOUR = "the hour of a part of the day, or the present hour"
    HALF_OF_DAY = "the afternoon, not the morning"
    MORNING = "the morning, not the evening"
    DAY_ORDER = "the order of day and month"
    MINUTES = "minutes as the unit"
    FIRST_DAY = "the first day of a recurrence"
    WEEKDAY = "which weekday is the next one"
    SHORT_MONTHS = "the last day of months that are shorter"
    RHYTHM = "every week"


_SHORT_UNITS = (Unit.SECOND, Unit.MINUTE, Unit.HOUR)


class Span(NamedTuple):
    """A length of time."""

    months: int = 0
    days: int = 0
    seconds: int = 0

    def plus(self, other: Span) -> Span:
        """Return the sum of two spans."""
        return Span(
            self.months + other.months, self.days + other.days, self.seconds + other.seconds
        )


class Repeat(NamedTuple):
    """The rhythm of a recurrence: once every `interval` units."""

    unit: Unit
    interval: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeParts:
    """The parts of a time. Parts that the request doesn't name are empty."""

    # The possible dates, likeliest first.
    days: tuple[date, ...] = ()
    # Weekdays (0 for Monday), on which of them in a month, and in how many weeks.
    weekdays: tuple[int, ...] = ()
    nths: tuple[int, ...] = ()
    week_offset: int | None = None
    # Days of the month (-1 for the last), and in how many months.
    month_days: tuple[int, ...] = ()
    month_offset: int | None = None
    clocks: tuple[ClockTime, ...] = ()
    # The usual hour of a part of the day.
    part: int | None = None
    # The time from now, and the time before the named moment.
    offset: Span | None = None
    lead: Span | None = None
    repeat: Repeat | None = None
    # "Twice a day": how many times in a unit.
    times: int | None = None
    # "Between 9 and 18".
    window: tuple[ClockTime, ClockTime] | None = None
    # The end of a recurrence: a moment, a number of occurrences, or a length of time.
    until: TimeParts | None = None
    count: int | None = None
    duration: Span | None = None
    start: TimeParts | None = None
    except_weekdays: tuple[int, ...] = ()
    zone: str | None = None
    # Further rhythms: the Tuesdays of "every Monday at 9 and every Tuesday at 10".
    also: tuple[TimeParts, ...] = ()
    # A correction that doesn't say which of the rhythms it changes.
    correction: TimeParts | None = None
    problem: Problem | None = None
    assumptions: frozenset[Assumption] = frozenset()

    def merge(self, other: TimeParts) -> TimeParts:
        """Merge these parts with those of `other`. If both name the same part, `other` wins."""
        changes = {name: getattr(other, name) for name in other.names()}
        changes["assumptions"] = self.assumptions | other.assumptions
        return replace(self, **changes)

    def revise(self, other: TimeParts) -> TimeParts:
        """Replace the day or the clock time with that of `other`, as a correction does."""
        changes: dict[str, Any] = {"problem": None}
        names = other.names()
        if self.problem in _NO_SINGLE_DAY and not names & _DAY_PARTS:
            changes["problem"] = Problem.NO_DAY
        if names & _DAY_PARTS:
            kept_names = {"repeat"} if names & {"weekdays", "month_days"} else set()
            changes |= dict.fromkeys(_DAY_PARTS - kept_names - {"days", "weekdays"})
            changes |= {"days": (), "weekdays": (), "month_days": ()}
            if other.has_clock or (self.has_clock and self.offset is not None):
                changes["offset"] = None
        if other.clocks or other.offset or other.window:
            changes |= {"clocks": (), "offset": None, "window": None}
            changes["assumptions"] = self.assumptions - {Assumption.MORNING}
            if other.offset is not None or not fits_part(other.clocks, self.part):
                changes |= {"part": None}
        elif other.part == NOON:
            changes |= {"clocks": ()}
        return replace(self, **changes).merge(other)._in_same_half_of_day(self)

    def _in_same_half_of_day(self, previous: TimeParts) -> TimeParts:
        """Move an hour to the afternoon if the previous one was: "at 5pm … no, at 6".

        The hour stays in the morning if that is nearer: "at 3pm … no, at 11".
        """
        if len(previous.clocks) != 1 or len(self.clocks) != 1 or self.part is not None:
            return self
        old, new = previous.clocks[0], self.clocks[0]
        later = new.minute % 720 + 720
        is_nearer_in_the_morning = old.minute - new.minute % 720 < later - old.minute
        if old.is_bare or not new.is_bare or old.minute < 720 or is_nearer_in_the_morning:
            return self
        return replace(self, clocks=(ClockTime(later),))

    def with_default_hour(self, hour: int | None) -> TimeParts:
        """Add a clock time at `hour` to parts that name only a day."""
        is_short = self.repeat is not None and self.repeat.unit in _SHORT_UNITS
        has_hour = self.clocks or self.part is not None or self.window or self.offset
        if hour is None or has_hour or is_short or not self.has_day:
            return self
        return replace(self, part=hour)

    def names(self) -> set[str]:
        """Return the names of the parts that aren't empty."""
        return {
            part.name
            for part in fields(self)
            if getattr(self, part.name) not in (None, (), frozenset())
        }

    @property
    def has_day(self) -> bool:
        """Whether the parts name a day, a rhythm or a time from now."""
        return bool(self.names() & _DAY_PARTS)

    @property
    def has_clock(self) -> bool:
        return bool(self.clocks or self.window or (self.offset and self.offset.seconds))

    @property
    def is_time(self) -> bool:
        """Whether the parts name a time, not just a duration or a lead time ("an hour before")."""
        return bool(self.names() & (_DAY_PARTS | {"clocks", "part", "window", "problem"}))


_DAY_PARTS = {
    *("days", "weekdays", "week_offset", "month_days", "month_offset"),
    *("offset", "repeat", "nths", "times"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The moment or recurrences that the parts mean, or the reason why they mean none."""

    moment: datetime | None = None
    # iCalendar texts with DTSTART and RRULE; see `core.dates.recurrence`.
    recurrences: tuple[str, ...] = ()
    missing: frozenset[Missing] = frozenset()
    problem: Problem | None = None
    assumptions: frozenset[Assumption] = frozenset()


class _Unclear(Exception):
    """A part is missing or can't be used."""

    def __init__(self, missing: Missing, problem: Problem | None = None) -> None:
        super().__init__(missing)
        self.missing = missing
        self.problem = problem


def resolve_parts(parts: TimeParts, now: datetime, zone: ZoneInfo) -> Resolution:
    """Return the moment or recurrences that the parts mean at `now` (aware) in `zone`."""
    if parts.problem is Problem.VAGUE_DAY:
        parts = replace(parts, problem=None if parts.has_day else Problem.VAGUE)
    if parts.problem is not None:
        missing = Missing.DATE if parts.problem in _DATE_PROBLEMS else Missing.TIME
        return Resolution(missing=frozenset({missing}), problem=parts.problem)
    if parts.repeat is None and parts.duration is not None and parts.duration.days > 1:
        # "At 9 for the next 5 days" is daily.
        parts = replace(parts, repeat=Repeat(Unit.DAY))
    resolver = _Resolver(parts, now.astimezone(ZoneInfo(parts.zone) if parts.zone else zone))
    try:
        if parts.repeat is not None or len(parts.clocks) > 1:
            recurrences = resolver.recurrences() if parts.repeat else resolver.moments_of_day()
            return Resolution(recurrences=recurrences, assumptions=frozenset(resolver.assumptions))
        moment = resolver.moment()
        return Resolution(moment=moment, assumptions=frozenset(resolver.assumptions))
    except _Unclear as error:
        return Resolution(missing=frozenset({error.missing}), problem=error.problem)
    except (OverflowError, ValueError):
        return Resolution(missing=frozenset({Missing.DATE}), problem=Problem.TOO_FAR)


_NO_SINGLE_DAY = (Problem.SEVERAL_DAYS, Problem.NO_DAY)
_DATE_PROBLEMS = (Problem.NO_SUCH_DATE, Problem.WRONG_WEEKDAY, Problem.NO_DAY)


@dataclass
class _Resolver:
    """Computes the moment or the recurrences that parts mean."""

    parts: TimeParts
    # The current wall time, aware.
    here: datetime
    assumptions: set[Assumption] = field(init=False)
    # Whether part of the current second has passed.
    has_fraction: bool = field(init=False)

    def __post_init__(self) -> None:
        self.assumptions = set(self.parts.assumptions)
        self.has_fraction = self.here.microsecond > 0
        self.here = self.here.replace(microsecond=0)

    @property
    def today(self) -> date:
        return self.here.date()

    # --- One moment ---

    def moment(self) -> datetime:
        """Return the moment (UTC) of a request without a recurrence."""
        parts = self.parts
        if parts.until is not None or parts.start is not None or parts.except_weekdays:
            raise _Unclear(Missing.TIME, Problem.VAGUE)  # Only a recurrence has an end.
        if parts.window is not None:
            raise _Unclear(Missing.TIME, Problem.SEVERAL_TIMES)  # "Tonight between 8 and 9".
        if parts.lead is not None and (parts.lead.days or parts.lead.months) and not parts.has_day:
            raise _Unclear(Missing.DATE)
        if parts.offset is not None and not parts.days and not parts.weekdays:
            moment = self._moment_after(parts.offset)
        else:
            moment = self._next_moment()
        if parts.lead is not None:
            moment = self._shift(moment, parts.lead, -1)
        now = self.here.astimezone(UTC)
        if moment <= now:
            raise _Unclear(Missing.TIME, Problem.PAST)
        if moment.year - now.year > MAX_YEARS_AHEAD:
            raise _Unclear(Missing.DATE, Problem.TOO_FAR)
        return moment

    def moments_of_day(self) -> tuple[str, ...]:
        """Return one recurrence per clock time of a single day: "tomorrow at 9 and 17".

        Each is due once.
        """
        parts = self.parts
        is_certain = parts.has_day or not any(clock.is_bare for clock in parts.clocks)
        if parts.offset is not None or parts.lead is not None or not is_certain:
            raise _Unclear(Missing.TIME, Problem.SEVERAL_TIMES)
        day = self._candidate_days()[0]
        minutes = sorted({self._likely_minute(clock, day != self.today) for clock in parts.clocks})
        if self._at(day, minutes[0]) <= self.here:
            raise _Unclear(Missing.TIME, Problem.PAST if parts.has_day else Problem.SEVERAL_TIMES)
        zone = str(self.here.tzinfo)
        midnight = datetime.combine(day, datetime.min.time())
        moments = [midnight + timedelta(minutes=minute) for minute in minutes]
        return tuple(
            f"DTSTART;TZID={zone}:{moment:%Y%m%dT%H%M%S}\nRRULE:FREQ=DAILY;COUNT=1"
            for moment in moments
        )

    def _shift(self, moment: datetime, span: Span, sign: int) -> datetime:
        """Add a span to a moment. Days and months are added to the wall time."""
        local = moment.astimezone(self.here.tzinfo)
        day = add_months(local.date(), sign * span.months) + sign * span.days * _DAY
        wall_time = datetime.combine(day, local.time())
        result = moment
        if day != local.date():
            result = resolve_wall_time(wall_time, self.here.tzinfo)
        return result + sign * timedelta(seconds=span.seconds)

    def _moment_after(self, span: Span) -> datetime:
        """Return the moment after a span from now, at the named clock time if there is one."""
        moment = self._shift(self.here.astimezone(UTC), span, 1)
        if self.has_fraction and span.seconds < 60 and not span.days and not span.months:
            moment += timedelta(seconds=1)  # "In 2 seconds" must never be sooner than 2 seconds.
        if not self.parts.clocks and self.parts.part is None:
            if not span.seconds:
                self.assumptions.add(Assumption.HOUR)
            return moment
        day = moment.astimezone(self.here.tzinfo).date()
        return self._at(day, self._likely_clock(day != self.today))

    def _at(self, day: date, minute: int) -> datetime:
        wall_time = datetime.combine(day, datetime.min.time()) + timedelta(minutes=minute)
        return resolve_wall_time(wall_time, self.here.tzinfo)

    def _next_moment(self) -> datetime:
        """Return the first moment after now on the named day at the named clock time."""
        parts = self.parts
        days = self._candidate_days()
        if not parts.clocks and parts.part is None:
            raise _Unclear(Missing.TIME)
        now = self.here.astimezone(UTC)
        candidates: list[datetime] = []
        for day in days:
            candidates += self._candidate_moments(day)
        for moment in candidates:
            if moment > now:
                return moment
        raise _Unclear(Missing.TIME, Problem.PAST)

    def _candidate_moments(self, day: date) -> list[datetime]:
        """Return the moments on a day that the clock time may mean, the likeliest first."""
        if not self.parts.clocks:
            self.assumptions.add(Assumption.HOUR)
            return [self._at(day, (self.parts.part or 0) * 60)]
        clock = clock_in_part(self.parts.clocks[0], self.parts.part)
        if self._is_after_midnight(clock):
            day += _DAY  # "Friday night at 2" is on Saturday.
        if not clock.is_bare:
            return [self._at(day, clock.minute)]
        morning, evening = self._at(day, clock.minute), self._at(day, clock.minute % 720 + 720)
        if day != self.today:
            is_later = self._is_later(clock) and self.parts.has_day
            return [self._assume_afternoon(evening) if is_later else morning]
        if morning > self.here or self._is_surely_morning(clock):
            return [morning]
        if self.parts.weekdays and not self._is_later(clock):
            # On Friday at 10, "Friday at 9" may mean this evening or next Friday.
            raise _Unclear(Missing.TIME, Problem.SEVERAL_TIMES)
        return [self._assume_afternoon(evening)]

    def _is_surely_morning(self, clock: ClockTime) -> bool:
        """Return whether a clock time such as "Friday at 9:30" is in the morning.

        It is in the morning if it has minutes and the parts name a day.
        """
        is_early = clock.minute < FIRST_LIKELY_HOUR * 60
        is_day = self.parts.days or (self.parts.weekdays and not is_early)
        return clock.is_written and bool(is_day)

    def _is_later(self, clock: ClockTime) -> bool:
        """Return whether an hour without "am" or "pm" is more likely in the afternoon."""
        return clock.minute < FIRST_LIKELY_HOUR * 60 and not clock.is_written

    def _assume_afternoon(self, moment: datetime) -> datetime:
        self.assumptions.add(Assumption.HALF_OF_DAY)
        return moment

    def _is_after_midnight(self, clock: ClockTime) -> bool:
        is_night = (self.parts.part or 0) >= 20 and clock.minute < 6 * 60
        return is_night and (self.parts.clocks[0].is_bare or self.parts.clocks[0].is_written)

    def _candidate_days(self) -> list[date]:
        """Return the possible days. Raises _Unclear if there is none."""
        parts = self.parts
        if parts.days:
            if parts.weekdays and parts.days[0].weekday() not in parts.weekdays:
                raise _Unclear(Missing.DATE, Problem.WRONG_WEEKDAY)
            return list(parts.days)
        if parts.month_days:
            days = self._month_dates(parts.month_days[0], parts.month_offset)
            if parts.weekdays and days[0].weekday() not in parts.weekdays:
                raise _Unclear(Missing.DATE, Problem.WRONG_WEEKDAY)
            return days
        if parts.nths:
            return self._nth_dates()
        if parts.weekdays and parts.month_offset is None:
            return self._weekday_dates(parts.weekdays[0])
        if parts.week_offset is not None or parts.month_offset is not None:
            raise _Unclear(Missing.DATE)
        return [self.today, self.today + _DAY]

    def _weekday_dates(self, weekday: int) -> list[date]:
        """Return the next dates on a weekday, or its date in the named week."""
        parts = self.parts
        if parts.week_offset is not None:
            monday = self.today - self.today.weekday() * _DAY
            return [monday + (weekday + 7 * parts.week_offset) * _DAY]
        first = self.today + (weekday - self.today.weekday()) % 7 * _DAY
        if parts.offset is not None:
            return [first + parts.offset.days * _DAY]
        return [first, first + 7 * _DAY]

    def _month_dates(self, month_day: int, month_offset: int | None) -> list[date]:
        """Return the next dates on a day of the month. -1 is the last day."""
        first = self.today.replace(day=1)
        offsets = range(13) if month_offset is None else (month_offset,)
        days = []
        for offset in offsets:
            month = add_months(first, offset)
            last = add_months(month, 1) - _DAY
            day = last if month_day < 0 else date_if_valid(month.year, month.month, month_day)
            if day is not None and day >= self.today:
                days.append(day)
        if not days:
            raise _Unclear(Missing.DATE, Problem.NO_SUCH_DATE)
        return days

    def _nth_dates(self) -> list[date]:
        """Return the next dates for parts such as "the first Monday of a month".

        Raises _Unclear if there is no such date.
        """
        first = self.today.replace(day=1)
        months = range(3) if self.parts.month_offset is None else (self.parts.month_offset,)
        days = []
        for offset in months:
            month = add_months(first, offset)
            day = nth_weekday(month, self.parts.nths[0], self.parts.weekdays)
            if day is not None and day >= self.today:
                days.append(day)
        if not days:
            raise _Unclear(Missing.DATE, Problem.NO_SUCH_DATE)
        return days

    # --- Clock times ---

    def _likely_clock(self, is_other_day: bool) -> int:
        """Return the minute of the day of the first clock time, or of the part of the day."""
        if not self.parts.clocks:
            self.assumptions.add(Assumption.HOUR)
            return (self.parts.part or 9) * 60
        return self._likely_minute(self.parts.clocks[0], is_other_day)

    def _likely_minute(self, clock: ClockTime, is_other_day: bool = True) -> int:
        likely_clock = clock_in_part(clock, self.parts.part)
        if not likely_clock.is_bare:
            return likely_clock.minute
        if not self._is_later(likely_clock) or not is_other_day:
            return likely_clock.minute
        self.assumptions.add(Assumption.HALF_OF_DAY)
        return likely_clock.minute + 720

    # --- Recurrences ---

    def recurrences(self) -> tuple[str, ...]:
        """Return the recurrences in iCalendar format."""
        repeat = self.parts.repeat
        assert repeat is not None
        if repeat.unit in _SHORT_UNITS:
            return self._short_intervals(repeat)
        minutes = self._minutes_of_day()
        rule = self._date_rule(repeat)
        return self._rules_at(minutes, rule)

    def _minutes_of_day(self) -> list[int]:
        """Return the minutes of the day at which a daily or longer recurrence is due."""
        parts = self.parts
        if parts.times is not None and parts.times > 1 and len(parts.clocks) != parts.times:
            raise _Unclear(Missing.TIME)
        if parts.clocks:
            minutes = sorted({self._likely_minute(clock) for clock in parts.clocks})
        elif parts.part is not None:
            self.assumptions.add(Assumption.HOUR)
            minutes = [parts.part * 60]
        else:
            raise _Unclear(Missing.TIME)
        if parts.lead is not None:
            lead = parts.lead.seconds // 60
            if parts.lead.months or parts.lead.days or minutes[0] < lead:
                raise _Unclear(Missing.TIME)
            minutes = [minute - lead for minute in minutes]
        return minutes

    def _date_rule(self, repeat: Repeat) -> str:
        """Return the part of an RRULE that names the days: ``FREQ=WEEKLY;BYDAY=MO,TH``."""
        parts = self.parts
        interval = f";INTERVAL={repeat.interval}" if repeat.interval > 1 else ""
        weekdays = parts.weekdays
        if parts.except_weekdays:
            weekdays = tuple(sorted(set(weekdays or range(7)).difference(parts.except_weekdays)))
        if repeat.unit is Unit.YEAR:
            return self._yearly_rule(interval)
        if repeat.unit is Unit.MONTH:
            return self._monthly_rule(repeat, interval)
        if weekdays:
            days = ",".join(_WEEKDAY_NAMES[day] for day in weekdays)
            return f"FREQ=WEEKLY{interval};BYDAY={days}"
        if repeat.unit is Unit.WEEK:
            raise _Unclear(Missing.DATE)
        return f"FREQ=DAILY{interval}"

    def _yearly_rule(self, interval: str) -> str:
        days = self.parts.days
        if len({(day.month, day.day) for day in days}) != 1:  # for example, a movable feast
            raise _Unclear(Missing.DATE, Problem.NO_SUCH_DATE if days else None)
        return f"FREQ=YEARLY{interval};BYMONTH={days[0].month};BYMONTHDAY={days[0].day}"

    def _monthly_rule(self, repeat: Repeat, interval: str) -> str:
        """Return the RRULE of every `repeat.interval` months.

        Raises _Unclear if the days of the month are missing.
        """
        parts = self.parts
        months = interval
        if repeat.interval in (2, 3, 4, 6) and parts.start is None:
            numbers = range(1, 13, repeat.interval)
            months = ";BYMONTH=" + ",".join(map(str, numbers))
            if repeat.interval != 3:
                self.assumptions.add(Assumption.FIRST_DAY)
        if parts.nths and parts.weekdays:
            return f"FREQ=MONTHLY{months};{_nth_rule(parts.nths, parts.weekdays)}"
        if not parts.month_days:
            raise _Unclear(Missing.DATE)
        last = max(parts.month_days)
        if last > LAST_MONTH_DAY_EVERYWHERE and len(parts.month_days) == 1:
            self.assumptions.add(Assumption.SHORT_MONTHS)
            days = ",".join(map(str, range(LAST_MONTH_DAY_EVERYWHERE, last + 1)))
            return f"FREQ=MONTHLY{months};BYMONTHDAY={days};BYSETPOS=-1"
        return f"FREQ=MONTHLY{months};BYMONTHDAY={','.join(map(str, parts.month_days))}"

    def _rules_at(self, minutes: Sequence[int], rule: str) -> tuple[str, ...]:
        """Return one RRULE per minute of the hour.

        A rule is due at every combination of its hours and minutes. So 8:00 and 20:00 need one
        rule, and 8:00 and 20:30 need two.
        """
        by_minute: dict[int, list[int]] = {}
        for minute in minutes:
            by_minute.setdefault(minute % 60, []).append(minute // 60)
        start = self._start_day(minutes)
        texts = []
        for minute, hours in sorted(by_minute.items(), key=lambda item: item[1]):
            times = ""
            if len(hours) > 1:
                times = f";BYHOUR={','.join(map(str, hours))};BYMINUTE={minute};BYSECOND=0"
            first = datetime.combine(start, datetime.min.time()).replace(
                hour=hours[0] % 24, minute=minute
            )
            texts.append((first, f"{rule}{times}"))
        return self._limit(texts)

    def _start_day(self, minutes: Sequence[int]) -> date:
        """Return the first day of a recurrence.

        "Every other day" and "every two weeks" count from this day.
        """
        parts = self.parts
        repeat = parts.repeat
        assert repeat is not None
        start = self.today
        if parts.start is not None:
            start = _Resolver(parts.start, self.here)._candidate_days()[0]
        elif parts.days and repeat.unit is not Unit.YEAR:
            start = parts.days[0]
        elif all(self._at(start, minute) <= self.here for minute in minutes):
            start += _DAY
        if repeat.interval > 1 and repeat.unit in (Unit.DAY, Unit.WEEK):
            self.assumptions.add(Assumption.FIRST_DAY)
            if parts.weekdays:
                start += (parts.weekdays[0] - start.weekday()) % 7 * _DAY
        return start

    def _limit(self, texts: Sequence[tuple[datetime, str]]) -> tuple[str, ...]:
        """Add a DTSTART to recurrences, and the end that the parts name."""
        end = self._end_of(texts)
        zone = str(self.here.tzinfo)
        return tuple(
            f"DTSTART;TZID={zone}:{first:%Y%m%dT%H%M%S}\nRRULE:{rule}{end}" for first, rule in texts
        )

    def _end_of(self, texts: Sequence[tuple[datetime, str]]) -> str:
        """Return the UNTIL or COUNT of daily or longer recurrences, or ""."""
        parts = self.parts
        if parts.count is not None:
            if len(texts) > 1:
                raise _Unclear(Missing.DATE)
            return f";COUNT={parts.count}"
        last: date | None = None
        if parts.until is not None:
            last = self._last_day(parts.until)
        elif parts.duration is not None:
            span = parts.duration
            first = min(text[0] for text in texts).date()
            last = add_months(first, span.months) + (span.days - 1) * _DAY
        if last is None:
            return ""
        return f";UNTIL={self._at(last, DAY_MINUTES - 1):%Y%m%dT%H%M%SZ}"

    def _last_day(self, until: TimeParts) -> date:
        """Return the last day of a recurrence.

        If today is a Friday, "until Friday" means a week later.
        """
        days = _Resolver(until, self.here)._candidate_days()
        is_next_week = until.weekdays and days[0] == self.today and len(days) > 1
        return days[1] if is_next_week else days[0]

    def _short_intervals(self, repeat: Repeat) -> tuple[str, ...]:
        """Return the recurrences for an interval of minutes or hours."""
        parts = self.parts
        size = 60 if repeat.unit is Unit.HOUR else 1
        every = repeat.interval * size
        if repeat.unit is Unit.SECOND:
            every = max(repeat.interval // 60, 1)
        if parts.window is not None:
            return self._rules_within_window(every)
        first = self.here.astimezone(UTC) + timedelta(minutes=every)
        if parts.clocks:
            first = self._next_moment()
        if parts.start is not None and parts.start.has_day:
            if not parts.clocks:
                raise _Unclear(Missing.TIME)
            first = self._at(self._start_day([DAY_MINUTES]), self._likely_minute(parts.clocks[0]))
        unit, interval = ("HOURLY", every // 60) if every % 60 == 0 else ("MINUTELY", every)
        rule = f"FREQ={unit}" + (f";INTERVAL={interval}" if interval > 1 else "")
        if parts.weekdays:
            # A rule with days of the week is due in wall time.
            raise _Unclear(Missing.TIME)
        return (f"DTSTART:{first:%Y%m%dT%H%M%SZ}\nRRULE:{rule}{self._short_end()}",)

    def _short_end(self) -> str:
        """Return the end of a recurrence of minutes or hours as part of its RRULE, or ""."""
        parts = self.parts
        now = self.here.astimezone(UTC)
        if parts.count is not None:
            return f";COUNT={parts.count}"
        end: datetime | None = None
        if parts.duration is not None:
            end = self._shift(now, parts.duration, 1)
        elif parts.until is not None:
            resolver = _Resolver(parts.until, self.here)
            if parts.until.clocks:
                end = resolver.moment()
            else:
                end = self._at(resolver._candidate_days()[0], DAY_MINUTES - 1)
        return f";UNTIL={end:%Y%m%dT%H%M%SZ}" if end is not None else ""

    def _rules_within_window(self, every: int) -> tuple[str, ...]:
        """Return recurrences every `every` minutes within a daily window ("from 9 to 17")."""
        assert self.parts.window is not None
        part = self.parts.part
        low, high = (clock_in_part(clock, part).minute for clock in self.parts.window)
        if high <= low and self.parts.window[1].is_bare:
            high += 720
        if high <= low:
            raise _Unclear(Missing.TIME)
        minutes = list(range(low, high + 1, every))
        self.assumptions.add(Assumption.FIRST_DAY)
        self.parts = replace(self.parts, repeat=Repeat(Unit.DAY), times=None)
        return self._rules_at(minutes, self._date_rule(Repeat(Unit.DAY)))


def _nth_rule(nths: Sequence[int], weekdays: Sequence[int]) -> str:
    """Return the part of an RRULE for a month's nth weekdays or nth working days."""
    if len(weekdays) > 1:
        days = ",".join(_WEEKDAY_NAMES[day] for day in weekdays)
        return f"BYDAY={days};BYSETPOS={','.join(map(str, nths))}"
    return "BYDAY=" + ",".join(f"{nth}{_WEEKDAY_NAMES[weekdays[0]]}" for nth in nths)
