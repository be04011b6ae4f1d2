"""Decides whether the model may set a job at once: when, how often and of which kind.

The text of a job is checked elsewhere (`core/facts/evidence.py`). While the conversation contains
foreign text, the time must be one that the person typed, and a question to the model always waits
for a tap, because each of its runs costs money. A question that runs very often waits unless the
person typed its time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from core.dates.schedule import ParsedSchedule, Schedule, format_duration
from core.review.transcript import Transcript
from core.scheduling.due import next_due

# So many times of a schedule show its shortest interval: neighbours among its first three.
_COMPARED_TIMES = 3


def explain_untyped_schedule(
    reading: ParsedSchedule,
    typed_reading: ParsedSchedule | None,
    transcript: Transcript,
    now: datetime,
    min_interval: timedelta,
) -> str | None:
    """Return why a job of the model waits for a tap, as a clause, or None.

    `typed_reading` is what the typed text means if it's read as a request; None if it isn't one.
    """
    is_typed = typed_reading is not None and _is_same(typed_reading.schedule, reading.schedule, now)
    if reading.is_prompt and not is_typed:
        interval = _shortest_interval(reading.schedule, now)
        if interval is not None and interval < min_interval:
            return (
                f"it would ask me every {format_duration(interval.total_seconds())}, and nobody "
                "typed that"
            )
    if not transcript.foreign:
        return None
    source = transcript.foreign[0].source
    if reading.is_prompt:
        return f"each run costs money, and the conversation has {source}"
    return None if is_typed else f"nobody typed that time here, and the conversation has {source}"


def _is_same(schedule: Schedule, other: Schedule, now: datetime) -> bool:
    """Return True if two schedules both recur or both don't, and are due next at the same time."""
    has_same_kind = (schedule.at is None) == (other.at is None)
    return has_same_kind and next_due(schedule, now) == next_due(other, now)


def _shortest_interval(schedule: Schedule, now: datetime) -> timedelta | None:
    """Return the shortest time between the first runs of a schedule; None if it runs once."""
    due_times: list[datetime] = []
    next_at = next_due(schedule, now)
    while next_at is not None and len(due_times) < _COMPARED_TIMES:
        due_times.append(next_at)
        next_at = next_due(schedule, next_at)
    return min((later - earlier for earlier, later in pairwise(due_times)), default=None)
