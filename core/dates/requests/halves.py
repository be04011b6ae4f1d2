"""Decide whether an hour without "am" or "pm" is in the morning, afternoon or evening."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

EVENING = 18
"""From this hour on, a part of the day such as "night" moves "10:30" to the evening."""
NIGHT = 20
FIRST_MORNING_HOUR = 5
NOON = 12


class ClockTime(NamedTuple):
    """A clock time, perhaps without "am" or "pm"."""

    minute: int
    # Whether "am" or "pm" is missing, as in "at 5".
    is_bare: bool = False
    # Whether the time has minutes in digits. "5:30" is more likely in the morning than "5". A time
    # that isn't bare, such as "10:30", is in the evening only with a word such as "night".
    is_written: bool = False


def clock_in_part(clock: ClockTime, part: int | None) -> ClockTime:
    """Return a clock time in the half of the day to which `part` belongs."""
    if part is None:
        return clock
    if clock.is_written and not clock.is_bare and part >= EVENING:
        return _written_clock_in_evening(clock, part)
    if not clock.is_bare:
        return clock
    if part < 12:
        return ClockTime(clock.minute % 720)
    is_night = part >= NIGHT and (clock.minute < 5 * 60 or clock.minute >= 720)
    if is_night:
        return ClockTime(clock.minute % 720)
    if part == 12 and 10 * 60 <= clock.minute < 12 * 60:
        return ClockTime(clock.minute)
    return ClockTime(clock.minute % 720 + 720)


def _written_clock_in_evening(clock: ClockTime, part: int) -> ClockTime:
    """Return the time of "every night at 10:30", which is 22:30, and of "12:30 at night"."""
    if clock.minute < NOON * 60:
        return ClockTime(clock.minute + 720)
    return ClockTime(clock.minute - 720) if part >= NIGHT else clock


def fits_part(clocks: Sequence[ClockTime], part: int | None) -> bool:
    """Return whether hours without "am" or "pm" are likely in a part of the day.

    For example, 12 and 3 are unlikely in the morning.
    """
    if part is None or part >= EVENING:
        return True
    for clock in clocks:
        hour = clock.minute // 60 % 12
        is_likely = hour >= FIRST_MORNING_HOUR if part < NOON else hour < FIRST_MORNING_HOUR + 2
        if clock.is_bare and not is_likely:
            return False
    return True
