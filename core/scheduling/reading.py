"""Reads the line after /remind: everyday words in ten languages, cron lines, and ``when | what``.

`core.dates.requests` reads everyday words. `core.dates.parsing` reads cron lines, lines with a bar,
and other languages. If both read a line, the reading that uses more words of it as the time wins.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from core.dates.parsing import parse_schedule
from core.dates.requests.lexicon import MAX_REQUEST_CHARS
from core.dates.requests.reader import ReminderReading, read_request
from core.dates.schedule import ParsedSchedule, Schedule, load_zone
from core.errors import Refused

_RULES = re.compile(r"((?:DTSTART\S*\s+RRULE:\S+\s+)+)\|\s*(.*)", re.DOTALL)
_RULE = re.compile(r"(DTSTART(?:;TZID=([\w+/-]+))?\S*)\s+(RRULE:\S+)")


def parse_reminder_line(line: str, now: datetime, zone: str) -> ParsedSchedule:
    """Split a line into a schedule and a text. Raises Refused if it contains no time."""
    rules = _RULES.match(line.strip())
    if rules is not None:
        return _parse_rules(rules, zone)
    everyday = _parse_everyday(line, now, load_zone(zone))
    try:
        other = parse_schedule(line, now, zone)
    except Refused:
        if everyday is None:
            raise
        return everyday
    if everyday is None or len(everyday.text) > len(other.text):
        return other
    is_same_time = everyday.schedule.at is not None and everyday.schedule.at == other.schedule.at
    return other if is_same_time and everyday.text == other.text else everyday


def format_rules(schedule: Schedule) -> str:
    """Return recurrences as words that `parse_reminder_line` reads as the same schedule."""
    return " ".join(" ".join(text.split()) for text in schedule.recurrences)


def _parse_rules(match: re.Match[str], zone: str) -> ParsedSchedule:
    """Read rules of RFC 5545 as `format_rules` writes them."""
    recurrences = []
    own_zone = zone
    for rule in _RULE.finditer(match[1]):
        recurrences.append(f"{rule[1]}\n{rule[3]}")
        own_zone = rule[2] or own_zone
    schedule = Schedule(zone=own_zone, recurrences=tuple(recurrences))
    return ParsedSchedule(schedule=schedule, text=match[2].strip(), is_certain=True)


def _parse_everyday(line: str, now: datetime, zone: ZoneInfo) -> ParsedSchedule | None:
    """Read everyday words. Returns None if they don't name a complete time, or are too many."""
    if len(line) > MAX_REQUEST_CHARS:
        return None
    if "|" not in line:
        schedule_and_text = _parse_reading(read_request(line, now, zone, is_request=True), zone)
        return None if schedule_and_text is None else _with_question_mark(schedule_and_text, line)
    when, _, text = line.partition("|")
    schedule_and_text = _parse_reading(read_request(when, now, zone, is_request=True), zone)
    if schedule_and_text is None or schedule_and_text.text:
        return None
    return ParsedSchedule(schedule=schedule_and_text.schedule, text=text.strip(), is_certain=True)


def _with_question_mark(parsed: ParsedSchedule, line: str) -> ParsedSchedule:
    """Return a reading whose text has the question mark with which the line ends."""
    mark = line.rstrip()[-1:]
    if mark in ("?", "？") and line.rstrip()[:-1].rstrip().endswith(parsed.text):
        return replace(parsed, text=f"{parsed.text}{mark}")
    return parsed


def to_schedule(reading: ReminderReading, zone: ZoneInfo) -> Schedule | None:
    """Return the schedule of a reading, or None if its time isn't complete."""
    own_zone = reading.parts.zone or zone.key
    if reading.moment is not None:
        return Schedule(zone=own_zone, at=reading.moment)
    if reading.recurrences:
        return Schedule(zone=own_zone, recurrences=reading.recurrences)
    return None


def _parse_reading(reading: ReminderReading, zone: ZoneInfo) -> ParsedSchedule | None:
    schedule = to_schedule(reading, zone)
    if schedule is None:
        return None
    return ParsedSchedule(schedule=schedule, text=reading.task, is_certain=True)
