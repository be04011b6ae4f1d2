"""Read messages that move a reminder by a length of time: "push it back an hour".

The words are in `data/shifts.toml`; see `core.scheduling.vocabularies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from core.dates.requests.parts import Span
from core.dates.requests.reader import ReminderReading, read_length, read_whole_length
from core.dates.schedule import add_months, resolve_wall_time
from core.scheduling.phrases import drop_phrases, list_phrases
from core.scheduling.vocabularies import load_vocabularies

MAX_SHIFT_CHARS = 120
"""A longer message never moves a reminder."""


MAX_PREPOSITION_CHARS = 2
MAX_HOUR = 24


class Shift(NamedTuple):
    """The length of time by which a reminder moves, and the direction."""

    span: Span
    is_earlier: bool
    # The words that name the reminder, in plain form. "" means the last reminder.
    name: str
    # Whether the message says "later" or "earlier", not only "move".
    has_direction: bool = True

    def apply(self, moment: datetime, zone: ZoneInfo) -> datetime:
        """Return a moment (UTC) after the shift. Days and months are added in wall time."""
        sign = -1 if self.is_earlier else 1
        local = moment.astimezone(zone)
        day = add_months(local.date(), sign * self.span.months)
        day += timedelta(days=sign * self.span.days)
        if day != local.date():
            wall_time = datetime.combine(day, local.time().replace(tzinfo=None))
            moment = resolve_wall_time(wall_time, zone)
        return moment + sign * timedelta(seconds=self.span.seconds)


def is_preposition(words: str) -> bool:
    """Return whether words are only prepositions and can't name a reminder.

    `words` are in plain form. An example is "a", from French "à", which comes before a time of day.
    """
    return 0 < len(words) <= MAX_PREPOSITION_CHARS and words.isascii()


def read_shift(text: str) -> Shift | None:
    """Return the shift that a message asks for, or None."""
    if len(text) > MAX_SHIFT_CHARS:
        return None
    shifts: list[Shift] = []
    for vocabulary in load_vocabularies("shifts"):
        roles, words = vocabulary.split(text)
        if not roles & {"later", "earlier", "move"}:
            continue
        length = read_length(words, vocabulary.language)
        if length is not None and not is_preposition(length[1]):
            has_direction = bool(roles & {"later", "earlier"})
            shifts.append(Shift(length[0], "earlier" in roles, length[1], has_direction))
    return min(shifts, key=lambda shift: len(shift.name), default=None)


def read_snooze_length(words: str, languages: Sequence[str]) -> Span | None:
    """Return the length in the words after "snooze", such as "for two hours", or None.

    The languages are tried in order, English last.
    """
    for language in dict.fromkeys((*languages, "en")):
        length = read_length(words, language)
        if length is not None and length[1] in ("", *list_phrases("snooze_preposition")):
            return length[0]
    return None


def read_hour_as_length(previous: ReminderReading, answer: ReminderReading) -> int | None:
    """Return the hour of an answer that looks like a duration: French "change pour 11h".

    Returns None for any other answer. Only a recurring reminder has a duration.
    """
    duration = answer.parts.duration
    is_alone = answer.parts.names() - {"assumptions"} == {"duration"}
    if duration is None or not is_alone or previous.parts.repeat is not None:
        return None
    hour, rest = divmod(duration.seconds, 3_600)
    has_days = bool(duration.days or duration.months)
    return hour if not has_days and not rest and 0 < hour <= MAX_HOUR else None


def read_new_length(previous: ReminderReading, words: str) -> str | None:
    """Return "in 60 minutes" for "it an hour" after "in 45 minutes", or None."""
    offset = previous.parts.offset
    if offset is None or not offset.seconds:
        return None
    span = read_whole_length(drop_phrases("fillers", words), (previous.language, "en"))
    if span is None or not span.seconds or span.days or span.months:
        return None
    return f"in {span.seconds // 60} minutes"
