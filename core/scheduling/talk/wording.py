"""Read answers in a dialogue about reminders that are a task, or a time without its preposition."""

from __future__ import annotations

import re

from core.dates.requests.halves import NOON
from core.dates.requests.reader import ReminderReading
from core.scheduling.phrases import (
    drop_leads,
    find_phrase,
    is_answer,
    plain_words,
    strip_lead,
)

MAX_TASK_CHARS = 300
"""A longer message never becomes a task."""
NOON_MINUTES = NOON * 60
_HALF_OF_DAY = re.compile(r"(?:no |nope |make it |i mean |i meant |in the )*([ap]) ?m")


def with_clock(previous: ReminderReading, text: str) -> str:
    """Return "at 5:50 am" for "am" after "at 5:50"."""
    half_of_day = _HALF_OF_DAY.fullmatch(plain_words(text))
    if half_of_day is None or len(previous.parts.clocks) != 1:
        return text
    hour, minute = divmod(previous.parts.clocks[0].minute % NOON_MINUTES, 60)
    return f"at {hour or 12}:{minute:02} {half_of_day[1]}m"


def with_preposition(text: str) -> str:
    """Return "at 10:00" for "10:00", because digits alone don't show a language."""
    return text if any(map(str.isalpha, text)) else f"at {text.strip()}"


def may_be_task(text: str) -> bool:
    """Return whether an answer may be the text of a reminder. A question isn't."""
    is_question = (
        text.rstrip(' )"”»').endswith(("?", "？"))
        or drop_leads("question", text) is not None
        or find_phrase("question_anywhere", text)
    )
    is_short = len(text) <= MAX_TASK_CHARS and bool(plain_words(text))
    return is_short and not is_question and not is_answer("yes", text)


def task_of(text: str) -> str:
    return strip_lead(" ".join(text.split()).strip(" .。!"))
