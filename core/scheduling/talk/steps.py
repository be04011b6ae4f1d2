"""Define the steps of a dialogue about reminders, and the facts that decide them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from zoneinfo import ZoneInfo

from core.dates.period_name import Interval
from core.dates.requests.parts import Missing, Problem
from core.dates.requests.reader import ReminderReading
from core.store.jobs import Job


class Move(Enum):
    """The kind of a step, such as setting a reminder or asking for its time."""

    # The message isn't about reminders.
    NONE = "none"
    SET = "set"
    # Ask for the missing part.
    ASK = "ask"
    # Change the time or the text of the dialogue's reminder.
    CHANGE = "change"
    REMOVE = "remove"
    CONFIRM = "confirm"
    # Cancel a reminder that wasn't created yet.
    DROP = "drop"
    # Skip the next time of a recurring reminder.
    SKIP = "skip"
    PAUSE = "pause"
    REMOVE_ALL = "remove all"
    # Explain how to set a reminder.
    EXPLAIN = "explain"
    # Explain that only a model can watch for events.
    EXPLAIN_WATCH = "explain watch"
    # Explain that Mneme reminds no other people, and offer to set the reminder for this person.
    OFFER_OWN = "offer own"
    LIST = "list"
    # List the reminders of a period: "what do I have tomorrow?"
    LIST_PERIOD = "list period"
    NEXT = "next"
    SNOOZE = "snooze"
    DONE = "done"
    # The request doesn't name an existing reminder, or it names several.
    UNKNOWN = "unknown"
    # Ask what to change, because the person rejects the new reminder without a reason.
    ASK_CHANGE = "ask change"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """The messages that led to an open question, or to a reminder."""

    lines: tuple[str, ...] = ()
    asked_at: datetime
    # The reminder that was last created, changed or delivered. None while a question is open.
    job: Job | None = None
    # The message after which the person was asked which reminder they mean: "cancel the call".
    unclear_request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The next step of a dialogue, with the data that the gateway needs for it."""

    move: Move
    reading: ReminderReading | None = None
    # The messages that led to `reading`.
    lines: tuple[str, ...] = ()
    job: Job | None = None
    # For SNOOZE: the length of the snooze, in the person's words.
    words: str = ""
    # For LIST_PERIOD.
    period: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The facts, besides its text, that decide the meaning of a message."""

    now: datetime
    zone: ZoneInfo
    # The reminders that the person can change here.
    jobs: Sequence[Job] = ()
    dialogue: Dialogue | None = None
    # The languages that the person is likely to use.
    languages: tuple[str, ...] = ()


def ask_if_past(step: Step, now: datetime) -> Step:
    """Return a step that asks for another time, if the time passed while the message waited."""
    reading = step.reading
    is_set = step.move in (Move.SET, Move.CHANGE)
    if not is_set or reading is None or reading.moment is None or reading.moment > now:
        return step
    missing = reading.missing | {Missing.TIME}
    reading = replace(reading, moment=None, missing=missing, problem=Problem.PAST)
    return replace(step, move=Move.ASK, reading=reading)
