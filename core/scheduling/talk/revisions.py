"""Read a dialogue's messages together, and apply an answer or a correction to a reminder."""

from __future__ import annotations

import re
from dataclasses import replace
from zoneinfo import ZoneInfo

from core.dates.requests.halves import ClockTime
from core.dates.requests.intents import Intent
from core.dates.requests.parts import Missing, Problem, TimeParts
from core.dates.requests.reader import (
    ReminderReading,
    read_request,
    revise_all_rhythms,
    revise_reading,
)
from core.dates.rules import find_clock, move_clock, to_recurrences
from core.scheduling.phrases import (
    drop_denied,
    drop_phrases,
    find_phrase,
    is_answer,
    list_templates,
    meant_words,
    plain_words,
    split_command,
)
from core.scheduling.shifts import read_hour_as_length, read_new_length
from core.scheduling.talk.naming import names_only_time
from core.scheduling.talk.steps import Dialogue, Situation
from core.scheduling.talk.wording import (
    drop_proposal,
    is_question,
    proposes_time,
    task_of,
    with_clock,
    with_preposition,
)
from core.store.jobs import Job

# An answer that only names a time may have this many other characters, such as "then".
MAX_REST_CHARS = 12
NOON_MINUTES = 12 * 60
_BARE_NUMBER = re.compile(r"\d{1,3}\W*")
_LENGTH_NUMBER = re.compile(r"\b\d{1,3}\b")
_LONE_HOUR = re.compile(r"\d{1,2}")
# An answer that is a bare hour, perhaps after words such as "no" and "make it".
_BARE_HOUR = re.compile(r"(?:[^\W\d]+ ){0,3}(\d{1,2})")


def read_dialogue(dialogue: Dialogue, situation: Situation) -> ReminderReading:
    """Read all messages of a dialogue together, as of the time of the dialogue."""
    zone = situation.zone
    languages = situation.languages
    reading: ReminderReading | None = None
    for line in dialogue.lines:
        if reading is None:
            reading = read_request(line, dialogue.asked_at, zone, languages, is_request=True)
            continue
        revision = revise(reading, line, replace(situation, now=dialogue.asked_at))
        if revision is not None:
            reading = revision
        elif Missing.TASK in reading.missing:
            missing = reading.missing - {Missing.TASK}
            reading = replace(reading, task=task_of(line), missing=missing)
    if reading is not None:
        reading = fix_day(reading, zone)
    if dialogue.job is None:
        return reading or ReminderReading(intent=Intent.SET, missing=frozenset(Missing))
    return take_from_job(reading, dialogue.job)


def fix_day(reading: ReminderReading, zone: ZoneInfo) -> ReminderReading:
    """Name the date of a reading such as "in two weeks", so that a new hour keeps the day."""
    parts = reading.parts
    offset = parts.offset
    is_day = offset is not None and not offset.seconds and not parts.weekdays and not parts.days
    if not is_day or reading.moment is None:
        return reading
    day = reading.moment.astimezone(ZoneInfo(parts.zone) if parts.zone else zone).date()
    return replace(reading, parts=replace(parts, days=(day,), offset=None))


def take_from_job(reading: ReminderReading | None, job: Job) -> ReminderReading:
    """Return a reading with the text of a reminder.

    If the reading has no time, it gets that of the reminder, unless the reminder recurs.
    """
    if reading is not None and reading.names_time:
        return replace(reading, task=job.text, missing=frozenset())
    parts = TimeParts()
    if job.schedule.at is not None:
        local = job.schedule.at.astimezone(ZoneInfo(job.schedule.zone))
        clock = ClockTime(local.hour * 60 + local.minute)
        parts = TimeParts(days=(local.date(),), clocks=(clock,))
    language = reading.language if reading is not None else "en"
    return ReminderReading(intent=Intent.SET, language=language, task=job.text, parts=parts)


def keep_rhythm(reading: ReminderReading, job: Job, situation: Situation) -> ReminderReading:
    """Let a recurring reminder keep its days, if the reading contains only a clock time.

    "9:30" for a daily reminder at 8 means every day at 9:30. An hour without "am" or "pm" means the
    hour that is closer to the old time.
    """
    parts = reading.parts
    is_clock = parts.names() - {"assumptions", "part"} == {"clocks"} and len(parts.clocks) == 1
    schedule = to_recurrences(job.schedule, situation.now)
    old_minutes = find_clock(schedule)
    if not is_clock or reading.moment is None:
        return reading
    if old_minutes is None:
        if job.schedule.at is not None:
            return reading
        # It's unclear which of several clock times changes.
        missing = reading.missing | {Missing.TIME}
        return replace(reading, moment=None, missing=missing, problem=Problem.SEVERAL_TIMES)
    local = reading.moment.astimezone(situation.zone)
    minutes = 60 * local.hour + local.minute
    if parts.clocks[0].is_bare and parts.part is None:
        choices = (minutes, (minutes + NOON_MINUTES) % (2 * NOON_MINUTES))
        minutes = min(choices, key=lambda choice: abs(choice - old_minutes))
    recurrences = move_clock(schedule, minutes).recurrences
    return replace(reading, recurrences=recurrences, moment=None, assumptions=frozenset())


def revise(previous: ReminderReading, text: str, situation: Situation) -> ReminderReading | None:
    """Return a reading with the time in an answer, or None if the message isn't an answer."""
    length = _read_other_length(previous, text) if _BARE_NUMBER.fullmatch(text.strip()) else None
    if length is not None:
        return revise_reading(previous, length, situation.now, situation.zone)
    text = with_clock(previous, with_preposition(drop_denied(_simplify_proposal(text))))
    for words in (split_command("move", text), meant_words(text)):
        if words and names_only_time(words, situation):
            text = words
    languages = (previous.language, *situation.languages)
    answer = read_request(text, situation.now, situation.zone, languages, is_request=True)
    if previous.parts.correction is not None and is_answer("everything", text):
        return revise_all_rhythms(previous, situation.now, zone=situation.zone)
    if not answer.names_time:
        return _revise_without_preposition(previous, text, situation)
    if is_question(text):
        if not proposes_time(text, answer.task):
            return None
    elif previous.task and not _is_loose(answer.task):
        return None
    hour = read_hour_as_length(previous, answer)
    if hour is not None:
        return revise(previous, f"at {hour}", situation)
    previous = replace(previous, language=answer.language)
    return revise_reading(
        previous, text, situation.now, situation.zone, is_addition=find_phrase("addition", text)
    )


def _simplify_proposal(text: str) -> str:
    """Return "at 11" for "could we do 11?". Other messages are unchanged."""
    lone_hour = _LONE_HOUR.fullmatch(drop_proposal(text)) if is_question(text) else None
    return text if lone_hour is None else f"at {lone_hour[0]}"


def _is_loose(words: str) -> bool:
    """Return whether the words around an answer's time are few, or only state a preference."""
    return len(plain_words(words)) <= MAX_REST_CHARS or not drop_phrases("preference", words)


def _revise_without_preposition(
    previous: ReminderReading, text: str, situation: Situation
) -> ReminderReading | None:
    """Apply an answer such as "30 actually" or "make it 11", or return None."""
    length = _read_other_length(previous, text)
    if length is not None:
        return revise_reading(previous, length, situation.now, situation.zone)
    words = drop_phrases("preference", meant_words(text) or text)
    moved_words = split_command("move", text)
    new_length = read_new_length(previous, moved_words or words)
    if new_length is not None:
        return revise_reading(previous, new_length, situation.now, situation.zone)
    for line in (words, moved_words or ""):
        hour = _BARE_HOUR.fullmatch(line)
        if hour is not None:
            return revise(previous, f"at {hour[1]}", situation)
    if moved_words is None:
        return None
    # Some languages have no word for "at" in a request to move a reminder.
    languages = (previous.language,)
    for template in list_templates("at"):
        line = template.format(words)
        reading = read_request(line, situation.now, situation.zone, languages, is_request=True)
        if reading.parts.clocks:
            return revise_reading(previous, line, situation.now, situation.zone)
    return None


def _read_other_length(previous: ReminderReading, text: str) -> str | None:
    """Return "in 30 minutes" for "30 actually" after "in 20 minutes", or None."""
    offset = previous.parts.offset
    if offset is None or not offset.seconds:
        return None
    words = plain_words(text)
    number = _LENGTH_NUMBER.search(words)
    if number is None:
        return None
    other_words = _LENGTH_NUMBER.sub("", words).strip()
    if other_words and not is_answer("fillers", other_words):
        return None
    unit = "minutes" if offset.seconds % 3600 else "hours"
    return f"in {number[0]} {unit}"
