"""Read answers in a dialogue about reminders that are a task, or a time without its preposition."""

from __future__ import annotations

import re

from core.dates.requests.halves import NOON
from core.dates.requests.reader import ReminderReading
from core.scheduling.phrases import (
    drop_leads,
    drop_phrases,
    find_phrase,
    is_answer,
    plain_words,
    strip_lead,
)

MAX_TASK_CHARS = 300
"""A longer message never becomes a task."""
NOON_MINUTES = NOON * 60
_SIGNS_AT_END = re.compile(r"[^\w?？]+$")
_PAST_HOUR = {"half past": 30, "quarter past": 15}
_HALF_OF_DAY = re.compile(r"(?:no |nope |make it |i mean |i meant |in the )*([ap]) ?m")


def with_clock(previous: ReminderReading, text: str) -> str:
    """Return "at 5:50 am" for "am" after "at 5:50", and "at 5:30" for "half past" after "at 5"."""
    minute_words = drop_phrases("preference", text)
    if minute_words in _PAST_HOUR and len(previous.parts.clocks) == 1:
        minutes = previous.parts.clocks[0].minute // 60 * 60 + _PAST_HOUR[minute_words]
        return f"at {minutes // 60}:{minutes % 60:02}"
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
    is_short = len(text) <= MAX_TASK_CHARS and bool(plain_words(text))
    return is_short and not is_question(text) and not is_answer("yes", text)


def is_question(text: str) -> bool:
    """Return whether a message has a question mark at its end, or words of a question."""
    return (
        _SIGNS_AT_END.sub("", text).endswith(("?", "？"))
        or drop_leads("question", text) is not None
        or find_phrase("question_anywhere", text)
    )


def proposes_time(question: str, words: str) -> bool:
    """Return whether a question only proposes a time, like "could we do 11?".

    `words` are its words without the time. "What's on Saturday?" asks about the time.
    """
    has_question_word = drop_leads("question", question) is not None
    if has_question_word and drop_leads("proposal_question", question) is None:
        return False
    return not drop_proposal(words)


def drop_proposal(text: str) -> str:
    """Return the plain words of a text without those that propose a time."""
    return drop_phrases("preference", drop_phrases("proposal", text))


def task_of(text: str) -> str:
    return strip_lead(" ".join(text.split()).strip(" .。!"))
