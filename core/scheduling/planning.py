"""Decide whether the model may create a job at once, by its time, frequency and kind.

While the conversation contains foreign text, the person must have typed the time and all words of
the text. A question to the model then always waits for approval, because each run costs money. A
question that runs very often waits unless the person typed its time. If the words of the text
aren't the person's, the helper model may decide (`may_be_meant`).

`find_typed_alternative` compares the model's time with the time that the person's own words mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from core.dates.parsing import to_schedule
from core.dates.requests.halves import ClockTime
from core.dates.requests.parts import DAY_MINUTES, Assumption, Missing
from core.dates.requests.reader import ReminderReading, read_request, revise_reading
from core.dates.rules import to_recurrences
from core.dates.schedule import ParsedSchedule, Schedule, load_zone, resolve_wall_time
from core.dates.tokenizer import MAX_TEXT_CHARS
from core.errors import word_clause
from core.review.doubts import mentions_other_text, split_lead
from core.review.naming import consists_of, is_about_words_of, resembles
from core.review.phrases import (
    find_languages,
    joint_pattern,
    small_words,
    to_plain,
)
from core.review.transcript import Transcript
from core.review.wishes import asks_to_tell, find_wishes, is_polite
from core.scheduling.due import next_due
from core.scheduling.phrases import plain_words
from core.store.jobs import Job
from core.text.normalize import to_normal_form
from core.types import Effect

# This many times are enough to show the days and hours of a schedule.
_MANY_TIMES = 40
# This many times are compared if schedules end or leave out months. They cover a year of days.
_YEAR_TIMES = 400
_DAY = timedelta(days=1)
# The day on which summer time begins.
_SHORTEST_DAY = timedelta(hours=23)
_END = re.compile(r"\b(?:COUNT|UNTIL)\b[^;\s]*")
# Matches the parts of a rule that leave out months or days. The first times of an hourly schedule
# don't show these gaps.
_GAP = re.compile(r"(?:BYDAY|BYMONTHDAY|BYMONTH|BYSETPOS|BYWEEKNO|BYYEARDAY|EXDATE|RDATE)\b[^;\s]*")
# "In 20 minutes" and the model's moment may differ by the time that the answer takes.
_RELATIVE_TOLERANCE = timedelta(minutes=1)
_START_CLOCK = re.compile(r"(DTSTART;TZID=[^:]+:\d{8}T)\d{6}")
_PUNCTUATION = ".,!?;:\u2026\"'()\u201c\u201d\u3002\uff0c\uff01\uff1f"
_COMMENT_SIGN = re.compile(r"[;(\u2013\u2014\uff1b\uff08]|[:\uff1a](?!\d)|\s-\s")
# A sign before a request that may show a quotation: "> Remind me". Emojis don't.
_QUOTING_SIGN = re.compile(
    r"\s*[^\w\s\u00bf\u00a1@#\U0001f000-\U0001faff\u2600-\u27bf\u23f0-\u23ff]"
)
_NAME = r"[A-Z\u00c0-\u00de\u0410-\u042f][^\W\d_]+"
# A name before a request: "Eve / remind me", "A wish from Eve. Remind me".
_NAME_LEAD = re.compile(rf"(?:.*\b(?i:from|by|von|de|\u043e\u0442)\s+)?{_NAME}\s*[^\w\s',]\s")
# A name as a signature: "\u2026 (Eve)", "\u2026. Eve".
_SIGNATURE = re.compile(rf"[.!?(\u2014-]\s*{_NAME}\)?\W*$")
# The end of a Turkish verb: "almak", and "almam\u0131" before a word such as "remind".
_TURKISH_INFINITIVE = re.compile(
    r"(?<=\w\w)m[ae](?:k|m[\u0131i]|n[\u0131i]|m[\u0131i]z[\u0131i])?$"
)
# Parts of a time that name an hour but no day.
_CLOCK_PARTS = {"clocks", "part", "assumptions", "zone"}


def explain_untyped_schedule(
    reading: ParsedSchedule,
    typed_reading: ParsedSchedule | None,
    transcript: Transcript,
    now: datetime,
    min_interval: timedelta,
) -> str | None:
    """Return why a job by the model waits for approval, as a clause, or None.

    `typed_reading` is the meaning of the typed text as a request, or None if it isn't a request.
    """
    is_relative = bool(transcript.messages) and _is_relative(reading, transcript, now)
    is_typed = typed_reading is not None and _is_same(
        typed_reading.schedule, reading.schedule, now, is_relative=is_relative
    )
    if reading.is_prompt and not is_typed:
        interval = _shortest_interval(reading.schedule, now)
        if interval is not None and interval < min_interval:
            minutes = max(1, round(interval.total_seconds() / 60))
            return word_clause("waits_asks_often", minutes=minutes)
    if not transcript.foreign:
        return None
    source = transcript.foreign[0].source
    if reading.is_prompt:
        return word_clause("waits_costs", source=source)
    if not is_typed:
        return word_clause("waits_time_not_typed", source=source)
    request = find_typed_request(reading.text, transcript)
    messages = transcript.messages if transcript.questions else [request]
    is_request = bool(find_wishes(messages, Effect.PLAN, transcript.questions))
    if typed_reading is None or not is_request or not _is_exact_task(reading, typed_reading):
        return word_clause("waits_other_words", source=source)
    return None


def _may_have_comment(task: str) -> bool:
    """Return whether words after a comma or colon may be a comment: "pay Eve, nice try".

    A list such as "milk, bread and eggs" has no comment.
    """
    if _COMMENT_SIGN.search(task):
        return True
    _, comma, rest = task.rpartition(",")
    languages = find_languages(task)
    return bool(comma) and joint_pattern(languages).search(f" {to_plain(rest)} ") is None


def find_typed_request(task: str, transcript: Transcript) -> str:
    """Return the typed text with which a job by the model is compared.

    Several messages may be answered together, each with a request. In that case, return the last
    message that contains all words of the task. If there is none, return all messages.
    """
    messages = transcript.messages
    if len(messages) < 2 or transcript.questions:
        return transcript.typed
    candidates = [message for message in messages if consists_of(task, message)]
    if not candidates or not all(find_wishes([each], Effect.PLAN) for each in messages):
        return transcript.typed
    return candidates[-1]


def _is_exact_task(reading: ParsedSchedule, typed_reading: ParsedSchedule) -> bool:
    """Return whether a task consists of typed words that are clearly a reminder's text."""
    if asks_to_tell(to_plain(reading.text)) or _may_have_comment(reading.text):
        return False
    return is_same_task(reading, typed_reading)


def is_same_task(reading: ParsedSchedule, typed_reading: ParsedSchedule) -> bool:
    """Return whether two tasks have the same words in the same order.

    If so, the request contains no other words, such as a denial, a second task or a comment.
    Accents and signs count: "1.5" isn't "15", and "40 \u20ac" isn't "40 $".
    """
    words, typed_words = (_drop_lead(each.text) for each in (reading, typed_reading))
    return bool(words) and words == typed_words


def _drop_lead(task: str) -> list[str]:
    """Return the words of a task without small words such as "to the" at its beginning.

    Turkish verbs are shortened, because people type "almam\u0131 hat\u0131rlat" for "almak".
    """
    small = {word for language in find_languages(task) for word in small_words(language)}
    words = [word.strip(_PUNCTUATION) for word in to_normal_form("NFC", task).casefold().split()]
    words = [word for word in words if word]
    while words and to_plain(words[0]) in small:
        words = words[1:]
    if "tr" in find_languages(task):
        words = [_TURKISH_INFINITIVE.sub("", word) for word in words]
    return words


def may_be_meant(
    planned: ParsedSchedule,
    transcript: Transcript,
    now: datetime,
    zone: ZoneInfo,
    languages: Sequence[str] = (),
) -> bool:
    """Return whether the helper model may decide if the person asked for a new reminder.

    The time must be the one that the person's words mean, and at least half of the words must be
    theirs. A question to the model always waits for approval. Words that fit several languages
    equally well are read in the first of `languages`.
    """
    typed = transcript.typed
    if planned.is_prompt or not resembles(planned.text, typed):
        return False
    if any(_may_show_other_text(line, planned.text) for line in typed.splitlines()):
        return False
    reading = _read_typed(planned.text, typed, now, zone, languages)
    if reading.problem is not None or not reading.names_time:
        return False
    schedule = to_schedule(reading, zone)
    return schedule is not None and _agree(reading, schedule, planned.schedule, now)


def _may_show_other_text(message: str, task: str) -> bool:
    """Return whether a message may show a request that somebody else has written.

    "Mallory's mail, remind me daily …" mentions a text that the task doesn't. "Mallory: remind me
    …" has a lead about something else, and "> Remind me …" a sign before the request.
    """
    languages = find_languages(message)
    if mentions_other_text(to_plain(message), to_plain(task), languages):
        return True
    if _QUOTING_SIGN.match(message) or _SIGNATURE.search(message):
        return True
    name_lead = _NAME_LEAD.match(message)
    if name_lead and not _names_nothing(name_lead[0], languages):
        return True
    name, _, request = message.strip().partition(" ")
    is_led_by_name = re.fullmatch(_NAME, name) and not find_wishes([message], Effect.PLAN)
    if is_led_by_name and find_wishes([request], Effect.PLAN):
        return True
    lead, sign, rest = split_lead(message)
    if not sign or not find_wishes([rest], Effect.PLAN) or is_polite(to_plain(lead), languages):
        return False
    is_about_text = mentions_other_text(to_plain(lead), "", languages)
    return is_about_text or not is_about_words_of(lead, task)


def _names_nothing(lead: str, languages: frozenset[str]) -> bool:
    """Return whether a lead is polite, or only names a time: "Thanks!", "Tomorrow:"."""
    return is_polite(to_plain(lead), languages) or is_about_words_of(lead, "")


def _is_relative(planned: ParsedSchedule, transcript: Transcript, now: datetime) -> bool:
    """Return whether the person typed a waiting time, such as "in 20 minutes"."""
    zone = load_zone(planned.schedule.zone)
    return _read_typed(planned.text, transcript.typed, now, zone).parts.offset is not None


def _is_close(typed_at: datetime, planned_at: datetime, *, is_relative: bool) -> bool:
    """Return whether two moments are the same minute or, for a relative time, the next one."""
    minutes = [moment.replace(second=0, microsecond=0) for moment in (typed_at, planned_at)]
    return abs(minutes[0] - minutes[1]) <= (_RELATIVE_TOLERANCE if is_relative else timedelta(0))


def repeats_job(reading: ParsedSchedule, job: Job, now: datetime) -> bool:
    """Return whether a new job repeats a job: the same words, and the same times up to a minute."""
    schedule = to_recurrences(reading.schedule, now)
    is_same_task = _drop_lead(reading.text) == _drop_lead(job.text)
    return is_same_task and _is_same(job.schedule, schedule, now, is_relative=True)


def _is_same(
    schedule: Schedule,
    other: Schedule,
    now: datetime,
    *,
    is_relative: bool,
    is_start_open: bool = False,
) -> bool:
    """Return whether two schedules are due at the same times, and end at the same time.

    People don't type when an interval under a day begins, so its beginning isn't compared. With
    `is_start_open`, the first day of longer intervals isn't compared, either.
    """
    if schedule.at is not None and other.at is not None:
        return _is_close(schedule.at, other.at, is_relative=is_relative)
    if schedule.at is not None or other.at is not None:
        return False
    if schedule.zone != other.zone or _has_end(schedule) != _has_end(other):
        return False
    return _recur_alike(schedule, other, now, is_start_open=is_start_open)


def _recur_alike(
    schedule: Schedule, other: Schedule, now: datetime, *, is_start_open: bool
) -> bool:
    """Return whether two recurrences, with or without an end, are due at the same times."""
    skips = _skips(schedule) != _skips(other)
    count = _YEAR_TIMES if skips or _has_end(schedule) else _MANY_TIMES
    due, other_due = (_list_first(each, now, count) for each in (schedule, other))
    if len(due) == count and _list_ends(schedule) != _list_ends(other):
        return False
    interval = min(_list_gaps(due), default=None)
    if interval is not None and interval < _SHORTEST_DAY:
        tolerance = _DAY if is_start_open else interval
        return not skips and _have_same_gaps(due, other_due, tolerance)
    if interval is not None and is_start_open:
        return _have_same_rhythm(due, other_due, interval)
    return due == other_due


def _have_same_gaps(
    due: Sequence[datetime], other_due: Sequence[datetime], tolerance: timedelta
) -> bool:
    """Return whether two lists of times begin at about the same time, and have the same gaps."""
    is_near = bool(other_due) and abs(due[0] - other_due[0]) <= tolerance
    return is_near and _list_gaps(due) == _list_gaps(other_due)


def _have_same_rhythm(
    due: Sequence[datetime], other_due: Sequence[datetime], interval: timedelta
) -> bool:
    """Return whether two lists of times begin within one interval, and have about the same rhythm.

    Months have different lengths, so single gaps may differ.
    """
    if len(due) != len(other_due) or abs(due[0] - other_due[0]) > interval:
        return False
    span, other_span = due[-1] - due[0], other_due[-1] - other_due[0]
    return min(_list_gaps(other_due)) == interval and abs(span - other_span) <= interval


def _list_gaps(moments: Sequence[datetime]) -> list[timedelta]:
    return [later - earlier for earlier, later in pairwise(moments)]


def _has_end(schedule: Schedule) -> bool:
    return _END.search(" ".join(schedule.recurrences).upper()) is not None


def _list_ends(schedule: Schedule) -> list[str]:
    return sorted(_END.findall(" ".join(schedule.recurrences).upper()))


def _skips(schedule: Schedule) -> list[str]:
    """Return the parts of a schedule that leave out months or days, such as BYMONTH=1."""
    rules = " ".join(schedule.recurrences).upper()
    return sorted({*_GAP.findall(rules)})


def _shortest_interval(schedule: Schedule, now: datetime) -> timedelta | None:
    """Return the shortest time between the first runs of a schedule, or None if it runs once.

    Dense times may follow sparse ones: "at minute 1, 17, 33, 49 and 50 of hour 9".
    """
    due_times = _list_first(schedule, now, _YEAR_TIMES)
    return min((later - earlier for earlier, later in pairwise(due_times)), default=None)


def _list_first(schedule: Schedule, now: datetime, count: int) -> list[datetime]:
    """Return the first times of a schedule, without seconds."""
    due_times: list[datetime] = []
    next_at = next_due(schedule, now)
    while next_at is not None and len(due_times) < count:
        due_times.append(next_at)
        next_at = next_due(schedule, next_at)
    return [moment.replace(second=0, microsecond=0) for moment in due_times]


# --- The person's own words ---


def find_typed_alternative(
    planned: ParsedSchedule,
    typed: str,
    now: datetime,
    zone: ZoneInfo,
    languages: Sequence[str] = (),
) -> Schedule | None:
    """Return the schedule of the person's words if the model's schedule differs from it.

    Only the parts that the words name are compared: after "at 11", the model chooses the day.
    Words with several meanings, and dates in digits, are read in the first of `languages`. Returns
    None if the words mean the same time, contain no time, or are unclear.
    """
    schedule = planned.schedule
    reading = _read_typed(planned.text, typed, now, zone, languages)
    first = next_due(schedule, now)
    if first is None or reading.problem is not None or not reading.names_time:
        return None
    local = first.astimezone(ZoneInfo(reading.parts.zone) if reading.parts.zone else zone)
    has_hour = Missing.TIME not in reading.missing and Assumption.HOUR not in reading.assumptions
    if has_hour and reading.moment is not None and reading.parts.names() <= _CLOCK_PARTS:
        return _move_clock(schedule, reading.parts.clocks[0], local, now)
    if not has_hour:
        if not reading.parts.has_day:
            return None
        # The words name a day but no hour, so the model chose the hour.
        whole_reading = revise_reading(reading, f"at {local:%H:%M}", now, zone)
        if whole_reading is None:
            return None
        reading = whole_reading
    typed_schedule = to_schedule(reading, zone)
    if typed_schedule is None or _agree(reading, typed_schedule, schedule, now):
        return None
    return typed_schedule


def _read_typed(
    task: str, typed: str, now: datetime, zone: ZoneInfo, languages: Sequence[str] = ()
) -> ReminderReading:
    """Read the typed line that contains the task.

    If no line with the task has a time, read the whole text.
    """
    text = typed[:MAX_TEXT_CHARS]
    words = set(plain_words(task).split())
    for line in text.splitlines():
        if words <= set(plain_words(line).split()):
            reading = read_request(line, now, zone, languages, is_request=True)
            if reading.names_time:
                return reading
    return read_request(text, now, zone, languages, is_request=True)


def _agree(reading: ReminderReading, typed: Schedule, planned: Schedule, now: datetime) -> bool:
    """Return whether two schedules agree in all parts that the typed words name."""
    # "Every other day" names no first day.
    is_start_open = Assumption.FIRST_DAY in reading.assumptions or not reading.parts.has_clock
    is_relative = reading.parts.offset is not None
    return _is_same(typed, planned, now, is_relative=is_relative, is_start_open=is_start_open)


def _move_clock(
    planned: Schedule, clock: ClockTime, local: datetime, now: datetime
) -> Schedule | None:
    """Return the planned days at the typed clock time, or None if the plan already has it.

    `local` is the first planned time. An hour without "am" or "pm" is the one nearer to it.
    """
    planned_minute = local.hour * 60 + local.minute
    minutes = [clock.minute]
    if clock.is_bare:
        minutes.append((clock.minute + DAY_MINUTES // 2) % DAY_MINUTES)
    minute = min(minutes, key=lambda minute: abs(minute - planned_minute))
    if minute == planned_minute:
        return None
    wall_time = local.replace(hour=minute // 60, minute=minute % 60, second=0, tzinfo=None)
    if planned.at is not None:
        moment = resolve_wall_time(wall_time, local.tzinfo)
        return replace(planned, at=moment) if moment > now else None
    recurrences = tuple(
        _START_CLOCK.sub(rf"\g<1>{wall_time:%H%M%S}", text) for text in planned.recurrences
    )
    alternative = replace(planned, recurrences=recurrences)
    return alternative if next_due(alternative, now) != next_due(planned, now) else None
