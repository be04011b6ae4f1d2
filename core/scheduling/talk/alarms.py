"""Reads requests for an alarm, such as "set my alarm for 7"."""

from __future__ import annotations

import re
from dataclasses import replace

from core.dates.lexicon import load_lexicon
from core.dates.requests.reader import ReminderReading, read_request
from core.scheduling.phrases import find_phrase, list_templates, split_command
from core.scheduling.talk.steps import Situation

_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}(?:[:.h]\d\d)?(?![\d:.])")


def read_alarm(text: str, situation: Situation) -> tuple[ReminderReading, str] | None:
    """Return the reading of a request for a new alarm and the line that it was read from, or None.

    After an alarm was set, such a message moves that alarm, so the result is None.
    """
    dialogue = situation.dialogue
    job = dialogue.job if dialogue is not None else None
    if not find_phrase("alarm", text) or split_command("set_alarm", text) is None:
        return None
    if job is not None and find_phrase("alarm", job.text):
        return None
    line = text
    reading = _read(text, situation)
    alarm = load_lexicon(reading.language).alarm
    if _lacks_clock(reading):
        # Some languages have no word for "at", or one with another meaning, as in "sur 7h".
        clocks = _CLOCK.findall(text)
        if len(clocks) != 1:
            return None
        line = list_templates("alarm_at")[0].format(clocks[0].replace("h", ":"))
        reading = _read(line, situation)
    if not reading.parts.clocks:
        return None
    task = alarm if not reading.task or find_phrase("alarm", reading.task) else reading.task
    return replace(reading, task=task), line


def _lacks_clock(reading: ReminderReading) -> bool:
    """Return whether a reading has neither a day nor a clock time that is surely meant."""
    parts = reading.parts
    if parts.days or parts.weekdays or parts.repeat is not None:
        return False
    return not any(clock for clock in parts.clocks if parts.part is not None or not clock.is_bare)


def _read(line: str, situation: Situation) -> ReminderReading:
    return read_request(line, situation.now, situation.zone, situation.languages, is_request=True)
