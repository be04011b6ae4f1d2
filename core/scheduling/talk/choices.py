"""Read the answer to "Which reminder do you mean?", and requests that name no reminder."""

from __future__ import annotations

import re

from core.scheduling.phrases import find_phrase, is_answer, plain_words, split_command
from core.scheduling.talk.naming import find_named, match_jobs_by_time, names_only_time
from core.scheduling.talk.steps import Move, Situation, Step
from core.store.jobs import Job

MAX_NAME_WORDS = 4
"""A request to remove or move something longer isn't about a reminder."""
MAX_UNSPACED_CHARS = 12
"""The same limit for scripts without spaces, in characters."""
_NUMBER = re.compile(r"\W*(\d{1,9})\W*")
_MOVES = {
    "remove": Move.REMOVE,
    "stop_reminding": Move.REMOVE,
    "skip": Move.SKIP,
    "pause": Move.PAUSE,
}


def choose_job(text: str, situation: Situation) -> Job | None:
    """Return the reminder that an answer names by its number, its words or its time, or None."""
    number = _NUMBER.fullmatch(text)
    if number is not None:
        return next((job for job in situation.jobs if job.id == int(number[1])), None)
    step = find_named(plain_words(text), situation, Move.CHANGE, is_sure=False)
    if step.job is not None:
        return step.job
    matches = match_jobs_by_time(text, situation)
    return matches[0] if len(matches) == 1 else None


def decide_for_choice(request: str, job: Job) -> Step | None:
    """Return the step for a request such as "cancel the call", after the person chose `job`.

    Returns None for a request that needs a time, such as "move the call to 11".
    """
    if is_answer("stop", request):
        return Step(move=Move.REMOVE, job=job)
    for kind, move in _MOVES.items():
        if split_command(kind, request) is None:
            continue
        is_over = move is Move.SKIP and job.schedule.at is not None
        return Step(move=Move.REMOVE if is_over else move, job=job)
    return None


def names_unknown_reminder(text: str, situation: Situation) -> bool:
    """Return whether a message asks to remove or move something that is no reminder.

    Examples are "cancel the dentist" and "move it to 11". "Delete the note" isn't about a reminder.
    """
    removed, moved = split_command("remove", text), split_command("move", text)
    if removed and find_phrase("other_things", removed):
        return False
    if removed and _is_short(removed):
        return True
    if not moved or not _is_short(moved):
        return False
    if split_command("make", text) is not None and not find_phrase("last", moved):
        return False
    return any(map(str.isdigit, moved)) or names_only_time(moved, situation)


def _is_short(words: str) -> bool:
    is_unspaced = not words.isascii() and " " not in words
    return len(words.split()) <= MAX_NAME_WORDS and not (
        is_unspaced and len(words) > MAX_UNSPACED_CHARS
    )
