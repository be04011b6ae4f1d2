"""Read answers in a dialogue about reminders that are a task, or a time without its preposition."""

from __future__ import annotations

import re

from core.dates.requests.halves import NOON
from core.dates.requests.reader import ReminderReading
from core.scheduling.phrases import (
    MAX_ANSWER_CHARS,
    drop_leads,
    drop_phrases,
    find_phrase,
    is_answer,
    list_phrases,
    plain_words,
    strip_lead,
)

MAX_TASK_CHARS = 300
"""A longer message never becomes a task."""
NOON_MINUTES = NOON * 60
DAY_MINUTES = 2 * NOON_MINUTES
_SIGNS_AT_END = re.compile(r"[^\w?？]+$")
_MINUTES_PAST = {"half_past": 30, "quarter_past": 15, "quarter_to": -15}
_HALVES_OF_DAY = {"before_noon": "am", "after_noon": "pm"}


def with_clock(previous: ReminderReading, text: str) -> str:
    """Return "at 5:50 am" for "am" after "at 5:50", and "at 5:30" for "half past" after "at 5"."""
    if len(previous.parts.clocks) != 1 or len(text) > MAX_ANSWER_CHARS:
        return text
    clock = previous.parts.clocks[0].minute
    words = drop_phrases("preference", drop_leads("amendment", text) or text)
    for kind, minutes_past in _MINUTES_PAST.items():
        if words in list_phrases(kind):
            hour, minute = divmod((clock // 60 * 60 + minutes_past) % DAY_MINUTES, 60)
            return f"at {hour}:{minute:02}"
    for kind, half in _HALVES_OF_DAY.items():
        if words in list_phrases(kind):
            hour, minute = divmod(clock % NOON_MINUTES, 60)
            return f"at {hour or 12}:{minute:02} {half}"
    return text


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
