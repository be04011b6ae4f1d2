"""Find the reminders that a message names, by words of their text or by their next time."""

from __future__ import annotations

from collections.abc import Sequence

from core.dates.requests.reader import read_request
from core.scheduling.phrases import plain_words, strip_name
from core.scheduling.talk.steps import Situation
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
