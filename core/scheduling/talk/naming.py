"""Find the reminders that a message names, by words of their text or by their next time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from core.dates.requests.reader import read_request
from core.scheduling.phrases import is_answer, plain_words, strip_name
from core.scheduling.talk.steps import Move, Situation, Step
from core.store.jobs import Job


def names_only_time(words: str, situation: Situation) -> bool:
    """Return whether words consist of a time: "tomorrow at 9", "10 minutes"."""
    for line in (words, f"in {words}"):
        reading = read_request(
            line, situation.now, situation.zone, situation.languages, is_request=True
        )
        if reading.names_time and not reading.task:
            return True
    return False


def match_jobs_by_time(words: str, situation: Situation) -> list[Job]:
    """Return the reminders with the next time that the words name, like "at 9".

    Returns none if the words contain anything else.
    """
    if not names_only_time(words, situation):
        return []
    reading = read_request(
        words, situation.now, situation.zone, situation.languages, is_request=True
    )
    parts = reading.parts
    minutes = {clock.minute % 720 if clock.is_bare else clock.minute for clock in parts.clocks}
    matches: list[Job] = []
    for job in situation.jobs:
        if job.next_at is None:
            continue
        local = job.next_at.astimezone(situation.zone)
        minute = local.hour * 60 + local.minute
        is_at_clock = not minutes or minute in minutes or (minute % 720) in minutes
        is_on_day = not parts.days or local.date() == parts.days[0]
        is_on_weekday = not parts.weekdays or local.weekday() in parts.weekdays
        if is_at_clock and is_on_day and is_on_weekday:
            matches.append(job)
    return matches


def match_jobs(words: str, jobs: Sequence[Job]) -> list[Job]:
    """Return the reminders whose text contains the words, ignoring words such as "the"."""
    name = strip_name(words)
    if not name:
        return []
    exact = [job for job in jobs if name in plain_words(job.text)]
    if exact:
        return exact
    terms = [term[:5] for term in name.split() if len(term) > 2]
    if not terms:
        return []
    return [job for job in jobs if all(term in plain_words(job.text) for term in terms)]


def find_named(words: str, situation: Situation, move: Move, *, is_sure: bool) -> Step:
    """Return a step for the reminder that the words name.

    "it" is the dialogue's reminder, or the only one. If no reminder fits, the step is UNKNOWN if
    the message is certainly about reminders (`is_sure`), and otherwise NONE.
    """
    dialogue = situation.dialogue
    if not words or is_answer("last", words):
        if dialogue is not None and dialogue.job is not None:
            return Step(move=move, job=dialogue.job)
        if len(situation.jobs) == 1:
            return Step(move=move, job=situation.jobs[0])
        return Step(move=Move.UNKNOWN if words else Move.NONE)
    active = [job for job in situation.jobs if job.next_at is not None and job.paused_at is None]
    if active and is_answer("first_one", words):
        return Step(move=move, job=min(active, key=_due_at))
    matches = match_jobs(words, situation.jobs)
    if len(matches) == 1:
        return Step(move=move, job=matches[0])
    return Step(move=Move.UNKNOWN if matches or is_sure else Move.NONE)


def _due_at(job: Job) -> datetime:
    assert job.next_at is not None
    return job.next_at
