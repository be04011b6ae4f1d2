"""Read requests that name the reminder as such and its new time: "change the reminder to 10"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from core.dates.requests.parts import Missing
from core.dates.requests.reader import read_request
from core.scheduling.phrases import plain_words, strip_name
from core.scheduling.shifts import is_preposition
from core.scheduling.talk.naming import find_named
from core.scheduling.talk.revisions import keep_rhythm, revise, take_from_job
from core.scheduling.talk.steps import Move, Situation, Step
from core.text.normalize import language_data, plain_with_offsets

MAX_REQUEST_CHARS = 120
"""A longer message never moves a reminder."""
MAX_NAME_CHARS = 20
_UNSPACED_LANGUAGES = frozenset({"ja", "zh"})
_NAME_FIRST_LANGUAGES = frozenset({"ja", "ko", "tr", "zh"})
_MARKS = r"[\s,.!?¿¡:、，。！？：]*"
_BARE_HOUR = re.compile(r"(?:^|.*\s)(\d{1,2})\W*$")


class NewTime(NamedTuple):
    """The words of a request to move a reminder, without those for the reminder as such."""

    # "to 11". The words may also name the reminder.
    words: str
    # The words before "reminder" that name it, in plain form.
    name: str


def decide_move_of_reminder(text: str, situation: Situation) -> Step | None:
    """Return the step for "move the reminder to 11", or None for any other message.

    The words before or after the reminder may name it: "move the reminder about the dentist to 11".
    Without a name, the dialogue's reminder moves, or the only one. Otherwise, the person is asked.
    """
    request = read_new_time(text)
    if request is None:
        return None
    line = _with_preposition(request.words, situation)
    answer = read_request(line, situation.now, situation.zone, situation.languages, is_request=True)
    if not answer.names_time:
        return None
    rest = strip_name(plain_words(answer.task))
    name = request.name or ("" if is_preposition(rest) else rest)
    step = find_named(name or "it", situation, Move.CHANGE, is_sure=True)
    if step.job is None:
        return step
    previous = replace(take_from_job(None, step.job), language=answer.language)
    if name and not request.name:
        # The line also names the reminder.
        previous = replace(previous, task="")
    reading = revise(previous, line, situation)
    if reading is None:
        return Step(move=Move.ASK_CHANGE, job=step.job)
    missing = reading.missing - {Missing.TASK}
    reading = replace(reading, task=step.job.text, missing=missing)
    reading = keep_rhythm(reading, step.job, situation)
    move = Move.CHANGE if reading.is_complete else Move.ASK
    return Step(move=move, reading=reading, job=step.job, lines=(line,))


def _with_preposition(words: str, situation: Situation) -> str:
    """Return "at 11" for "to 11", because a number alone isn't always an hour."""
    reading = read_request(
        words, situation.now, situation.zone, situation.languages, is_request=True
    )
    hour = _BARE_HOUR.match(words)
    if hour is None or reading.names_time:
        return words
    return f"{words[: hour.start(1)]} at {hour[1]}"


def read_new_time(text: str) -> NewTime | None:
    """Return the words for the new time in a request to move a reminder.

    Returns None for other messages.
    """
    if len(text) > MAX_REQUEST_CHARS:
        return None
    plain, offsets = plain_with_offsets(text.replace("’", "'"))
    for pattern in _load_patterns():
        match = pattern.fullmatch(plain)
        if match is None:
            continue
        start, end = match.span("words")
        if offsets is not None:
            ends = [*offsets, len(text)]
            start, end = ends[start], ends[end]
        name = match["name"] if "name" in match.groupdict() else ""
        return NewTime(text[start:end].strip(), strip_name(plain_words(name)))
    return None


@cache
def _load_patterns() -> Sequence[re.Pattern[str]]:
    """Return patterns for requests with the verb at the beginning, and at the end."""
    patterns: list[re.Pattern[str]] = []
    for language, tables in language_data("moves", "core.scheduling").items():
        gap = r"\s*" if language in _UNSPACED_LANGUAGES else r"\s+"
        lead = rf"{_MARKS}(?:(?:{_join(tables['lead'])}){_MARKS})*"
        tail = rf"(?:{_MARKS}(?:{_join(tables['tail'])}))*{_MARKS}"
        reminder = f"(?:{_join(tables['reminder'])})"
        if language in _NAME_FIRST_LANGUAGES:
            reminder = rf"(?P<name>.{{0,{MAX_NAME_CHARS}}}?){reminder}"
        first, last = _join(tables["first"]), _join(tables["last"])
        words = rf"(?P<words>{gap}\S.*?)"
        patterns.append(re.compile(f"{lead}(?:{first}){gap}{reminder}{words}{tail}"))
        patterns.append(re.compile(f"{lead}{reminder}{words}{gap}(?:{last}){tail}"))
        if language in _UNSPACED_LANGUAGES:
            patterns.append(re.compile(f"{lead}{reminder}(?:{first}){words}{tail}"))
    return patterns


def _join(phrases: str) -> str:
    """Return a pattern that matches any of the phrases, which are separated by commas."""
    forms: set[str] = set()
    for phrase in re.split(r"[,\n]", phrases):
        plain, _ = plain_with_offsets(phrase.strip())
        if plain:
            forms.add(re.escape(plain))
    return "|".join(sorted(forms, key=len, reverse=True)) or "(?!)"
