"""Turns the parts of a time, such as a weekday and an hour, into a schedule.

Missing parts are guessed: a weekday means the next such day, a day without an hour means nine in
the morning, and an hour that has passed this morning means the afternoon. A guess that may be wrong
makes the expression uncertain. The functions don't read the system clock: the present time is a
parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from core.dates.schedule import (
    Schedule,
    add_months,
    format_moment,
    next_cron_dates,
    wall_moment,
)
from core.errors import Refused

EXAMPLES = (
    "Write it like 'tomorrow at 9 call Ana', 'in 20 minutes tea' or "
    "'every monday at 8:30 stand-up'."
)
PART_OF_DAY_HOURS = {"morning": 9, "afternoon": 15, "evening": 19, "night": 20}
"""The hour that a part of the day means. A day without a clock time means the morning."""
FIRST_LIKELY_HOUR = 7
"""A bare hour before 7 probably means the afternoon: "at 5" is 17:00."""
LAST_MONTH_DAY_EVERYWHERE = 28
"""The last day that every month has."""

_DAY = timedelta(days=1)


class Span(NamedTuple):
    """A length of time."""

    months: int = 0
    days: int = 0
    seconds: int = 0


class ClockTime(NamedTuple):
    """A time of day as clocks show it."""

    hour: int
    minute: int = 0
    # Whether the hour may be in the morning or in the afternoon: "at 5".
    is_bare: bool = False


@dataclass(slots=True, kw_only=True)
class TimeExpression:
    """The parts of a time, which the rules of `core.dates.grammar` set word by word."""

    # A moment with an offset from UTC. It needs no other part.
    moment: datetime | None = None
    # Whether the time repeats ("every"). The other parts are then the days and the interval.
    is_repeated: bool = False
    # The time from now ("in 20 minutes") or, if `is_repeated`, the interval.
    span: Span | None = None
    # A specific date.
    day: date | None = None
    # Weekdays (0 for Monday). The next one is meant or, if `is_repeated`, each of them.
    weekdays: tuple[int, ...] = ()
    # Which of these weekdays in a month: 1 for the first, -1 for the last.
    nth: int | None = None
    # Days of the month (-1 for the last). The next one is meant or, if `is_repeated`, each of them.
    month_days: tuple[int, ...] = ()
    month: int | None = None
    clocks: tuple[ClockTime, ...] = ()
    # A part of the day: a key of PART_OF_DAY_HOURS.
    part: str | None = None
    # False if the words may mean another time.
    is_certain: bool = True
    # A weekday next to a date, as in "friday 27 november". If it is wrong, the time is uncertain.
    stated_weekday: int | None = None

    @property
    def has_day(self) -> bool:
        """Whether a day, a repetition or a time from now has been set."""
        return bool(self.day or self.weekdays or self.month_days or self.span or self.nth)

    @property
    def has_clock(self) -> bool:
        return bool(self.clocks or self.part or self.moment)

    def to_schedule(self, now: datetime, zone: str) -> Schedule:
        """Return the schedule that the parts mean at `now` (aware) in the time zone `zone`.

        Sets `is_certain` to False if a part must be guessed. Raises Refused if the time is in the
        past or too far away, or if it can't be expressed as a single schedule.
        """
        here = now.astimezone(ZoneInfo(zone)).replace(microsecond=0)
        try:
            if self.is_repeated:
                return self._repeated_schedule(here, zone)
            moment = self._next_moment(here)
            local = moment.astimezone(here.tzinfo)
        except (OverflowError, ValueError) as error:
            raise Refused(
                "That is too far away. Name a time within the next hundred years."
            ) from error
        if moment <= here:
            raise Refused(
                f"{format_moment(local)} is in the past. Name a time in the future. {EXAMPLES}"
            )
        if self.stated_weekday not in (None, local.weekday()):
            self.is_certain = False
        return Schedule(zone=zone, at=moment)

    # --- One moment ---

    def _next_moment(self, here: datetime) -> datetime:
        """Return the moment (UTC) of a time that doesn't repeat. `here` is the present local time.

        A moment in the past is returned only if no later one is possible.
        """
        if self.moment is not None:
            return self.moment.astimezone(UTC).replace(microsecond=0)
        if self.span is not None:
            return self._moment_after(self.span, here)
        clock = self._clock()
        days = self._likely_days(here.date())
        if self.part == "night" and self.clocks and clock.hour <= 5:
            # "Friday night at 2" is on Saturday.
            days = [day + _DAY for day in days]
        candidates: list[tuple[datetime, bool]] = []
        for day in days:
            candidates += self._candidate_moments(day, clock, here)
        future = [candidate for candidate in candidates if candidate[0] > here]
        moment, is_sure = future[0] if future else candidates[0]
        if not is_sure:
            self.is_certain = False
        return moment

    def _moment_after(self, span: Span, here: datetime) -> datetime:
        """Return the moment (UTC) at the end of a span that begins now.

        If a clock time is set ("in 2 days at 9"), the result has that time of day.
        """
        today = here.date()
        day = add_months(today, span.months) + timedelta(days=span.days)
        if self.has_clock:
            if span.seconds:
                self.is_certain = False
            hour, minute = self._likely_clock()
            return wall_moment(day, hour, minute, here)
        moment = here
        if day != today:
            moment = wall_moment(day, here.hour, here.minute, here, here.second)
        return moment.astimezone(UTC) + timedelta(seconds=span.seconds)

    def _likely_days(self, today: date) -> list[date]:
        """Return the possible days, ascending.

        If the clock time has already passed on the first day, the caller takes the next day.
        """
        if not self.has_day:
            return [today, today + _DAY, today + 2 * _DAY]
        if self.day is not None:
            return [self.day]
        month_days = ",".join(map(str, self.month_days)) or "*"
        fields = f"{month_days} {self.month or '*'} {_cron_days(self.weekdays)}"
        return next_cron_dates(fields, today, 2)

    def _candidate_moments(
        self, day: date, clock: ClockTime, here: datetime
    ) -> list[tuple[datetime, bool]]:
        """Return the moments that a clock time may mean on a day, best first.

        Each moment comes with True if it is certain, or with False if it is a guess.
        """
        moment = wall_moment(day, clock.hour, clock.minute, here)
        if not clock.is_bare:
            return [(moment, True)]
        afternoon = wall_moment(day, clock.hour % 12 + 12, clock.minute, here)
        is_today = day == here.date()
        is_later_today = is_today and moment > here
        if clock.hour < FIRST_LIKELY_HOUR and self.has_day and not is_later_today:
            # "tomorrow at 5" is 17:00.
            return [(afternoon, is_today)]
        if is_today or not self.has_day:
            # "at 9" is 9:00, or 21:00 if 9:00 has passed.
            return [(moment, True), (afternoon, False)]
        return [(moment, True)]

    # --- Clock times ---

    def _clock(self) -> ClockTime:
        """Return the first clock time, adjusted to the part of the day.

        For example, "9 in the evening" is 21:00. Without a clock time, the result is the usual hour
        of the part of the day (`PART_OF_DAY_HOURS`).
        """
        if not self.clocks:
            return ClockTime(PART_OF_DAY_HOURS[self.part or "morning"])
        clock = self.clocks[0]
        if not self.part or not 1 <= clock.hour <= 12:
            return clock
        if self.part == "morning" or (self.part == "night" and clock.hour <= 5):
            return ClockTime(clock.hour, clock.minute)
        if self.part == "night" and clock.hour == 12:
            return ClockTime(0, clock.minute)
        return ClockTime(clock.hour % 12 + 12, clock.minute)

    def _likely_clock(self) -> tuple[int, int]:
        """Return the hour and minute of a time that repeats or that ends a span.

        A bare hour before 7 is read as an hour of the afternoon, and the expression becomes
        uncertain.
        """
        hour, minute, is_bare = self._clock()
        if is_bare and hour < FIRST_LIKELY_HOUR:
            self.is_certain = False
            return hour + 12, minute
        return hour, minute

    # --- Repetition ---

    def _repeated_schedule(self, here: datetime, zone: str) -> Schedule:
        """Return a cron schedule if cron can express the repetition, otherwise an interval.

        For example, "every monday" is a cron line, and "every 3 days" is an interval. Raises
        Refused if neither can express the repetition.
        """
        span = self.span or Span()
        clock = self._likely_clock()
        if span.seconds and not span.months:
            return self._short_interval(span, clock, here, zone)
        if span.months or self.month_days or self.nth:
            months = span.months or (12 if self.month else 1)
            dates = self._cron_dates(months, here)
            return Schedule(zone=zone, cron=f"{self._cron_times(*clock)} {dates}")
        if span.days == 7 and not self.weekdays:
            self.is_certain = False
            self.weekdays = (here.weekday(),)
        if span.days in (0, 1, 7):
            weekdays = _cron_days(self.weekdays)
            return Schedule(zone=zone, cron=f"{self._cron_times(*clock)} * * {weekdays}")
        start = self._first_day(span.days, clock, here)
        return Schedule(zone=zone, every_s=span.days * 86400, start_at=start)

    def _short_interval(
        self, span: Span, clock: tuple[int, int], here: datetime, zone: str
    ) -> Schedule:
        """Return an interval that isn't a number of whole days, such as "every 36 hours".

        Raises Refused if the interval is shorter than a minute.
        """
        every_s = span.days * 86400 + span.seconds
        if every_s < 60:
            raise Refused("Once a minute is the shortest interval. Write 'every minute' or longer.")
        start = _first_start(here, *clock) if self.has_clock else here.astimezone(UTC)
        return Schedule(zone=zone, every_s=every_s, start_at=start)

    def _first_day(self, days: int, clock: tuple[int, int], here: datetime) -> datetime:
        """Return the start of an interval of `days` days, on the weekday if one is set.

        Raises Refused if an interval with a weekday isn't a number of whole weeks, or if several
        weekdays are set.
        """
        if not self.weekdays:
            return _first_start(here, *clock)
        if days % 7 or len(self.weekdays) > 1:
            raise Refused(
                "Only a single weekday can repeat every few weeks. Make one reminder for each day."
            )
        days_ahead = (self.weekdays[0] - here.weekday()) % 7
        return _first_start(here, *clock, days_ahead, 7)

    def _cron_times(self, hour: int, minute: int) -> str:
        """Return the minute and hour fields of a cron line, such as ``30 9,21``.

        Raises Refused if the clock times have different minutes.
        """
        further = self.clocks[1:]
        if any(clock.minute != minute for clock in further):
            raise Refused(
                "A reminder can't have two times with different minutes. Make a reminder for each."
            )
        if any(clock.is_bare and clock.hour < FIRST_LIKELY_HOUR for clock in further):
            self.is_certain = False
        hours = sorted({hour, *(clock.hour for clock in further)})
        return f"{minute} {','.join(map(str, hours))}"

    def _cron_dates(self, months: int, here: datetime) -> str:
        """Return the day, month and weekday fields of a cron line.

        `months` is the interval in months. For example, ``* * 1#1`` is the first Monday of every
        month. Raises Refused if the interval doesn't divide a year, because cron can't express it.
        """
        if 12 % months:
            raise Refused(
                "Only 1, 2, 3, 4, 6 or 12 months can repeat. "
                "Name each month in a reminder of its own."
            )
        start = self.month or here.month
        numbers = sorted((start - 1 + step) % 12 + 1 for step in range(0, 12, months))
        month_field = "*" if months == 1 else ",".join(map(str, numbers))
        if self.nth is not None:
            nth = "L" if self.nth < 0 else f"#{self.nth}"
            weekday_field = ",".join(f"{_cron_weekday(day)}{nth}" for day in self.weekdays)
            return f"* {month_field} {weekday_field}"
        return f"{self._cron_month_days(here)} {month_field} *"

    def _cron_month_days(self, here: datetime) -> str:
        """Return the day-of-month field of a cron line, such as ``1,15`` or ``L`` for the last day.

        If no day is set, the day of today's date is used. If no month is set, the 31st means the
        last day of each month. The expression becomes uncertain if no day is set, or if some months
        don't have the day.
        """
        last_day = max(self.month_days, default=0)
        may_be_missing = not self.month and last_day > LAST_MONTH_DAY_EVERYWHERE
        if not self.month_days or may_be_missing:
            self.is_certain = False
        last_days = (-1,) if self.month else (-1, 31)
        days = sorted(self.month_days or (here.day,))
        return ",".join("L" if day in last_days else str(day) for day in days)


def _cron_weekday(weekday: int) -> int:
    """Convert a weekday (0 for Monday) to its number in cron (0 for Sunday)."""
    return (weekday + 1) % 7


def _cron_days(weekdays: tuple[int, ...]) -> str:
    """Return weekdays (0 for Monday) as a field of a cron line: ``*``, ``1-5``, ``1,3``."""
    if not weekdays or len(weekdays) == 7:
        return "*"
    first, last = weekdays[0], weekdays[-1]
    is_consecutive = last - first == len(weekdays) - 1
    # A range can't include Sunday, which is 0 in cron.
    if len(weekdays) > 2 and is_consecutive and last < 6:
        return f"{first + 1}-{last + 1}"
    return ",".join(str(_cron_weekday(day)) for day in weekdays)


def _first_start(
    here: datetime, hour: int, minute: int, days_ahead: int = 0, step_days: int = 1
) -> datetime:
    """Return the moment (UTC) of a clock time in `days_ahead` days.

    If that moment isn't in the future, the result is `step_days` days later.
    """
    day = here.date() + days_ahead * _DAY
    start = wall_moment(day, hour, minute, here)
    if start > here:
        return start
    return wall_moment(day + step_days * _DAY, hour, minute, here)
