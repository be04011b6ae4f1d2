"""Split a typed line into a schedule and a text: "tomorrow at 9 call Ana" gives "call Ana".

A bar may separate the time from the text: "call Ana | tomorrow at 9". The time may be a cron line,
rules of RFC 5545, an ISO 8601 moment, or everyday words in ten languages, which
`core.dates.requests` reads. In other languages, dateparser reads a time at the beginning or end of
a line; such a result is never certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from core.dates.recurrence import next_recurrence
from core.dates.requests.parts import Assumption, Problem
from core.dates.requests.reader import ReminderReading, read_request
from core.dates.schedule import (
    ISO_MOMENT,
    ParsedSchedule,
    Schedule,
    load_zone,
    next_due_by_clock,
    parse_cron,
    resolve_wall_time,
)
from core.dates.tokenizer import MAX_TEXT_CHARS
from core.errors import Refused
from core.text.normalize import language_data

MAX_LINE_CHARS = 10_000
MAX_TIME_CHARS = 120
"""A longer text next to a bar isn't just a time."""
MAX_SECOND_TIME_CHARS = 80
"""A second time at an end of a long text is searched for in this many characters."""
DEFAULT_HOUR = 9
"""A day without an hour is due at this hour of the morning."""

_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,#-]{1,60}")
"""A field of a cron line: ``*/15``, ``9-17``, ``MON-FRI``."""
_NUMERIC_CRON_FIELD = re.compile(r"[0-9*/,#L-]{1,60}")
"""A field without names, except ``L`` for the last day: ``*``, ``1,15``, ``L``."""
_RULES = re.compile(r"((?:DTSTART\S*\s+(?:EXDATE\S*\s+)*RRULE:\S+\s*)+)(?:\|\s*(.*))?", re.DOTALL)
_RULE = re.compile(
    r"(?P<start>DTSTART(?:;TZID=(?P<zone>[\w+/-]+))?\S*)\s+(?P<excluded>(?:EXDATE\S*\s+)*)"
    r"(?P<rule>RRULE:\S+)"
)
_NUMBER_FIRST = re.compile(r"(?:at |um |à |a las |às |в )?\d", re.IGNORECASE)
_NUMBER_NEAR_START = re.compile(r"(?:\S+ ){0,2}\d{1,2}(?!\d)")
_ASSUMPTIONS_TO_CONFIRM = frozenset(Assumption) - {Assumption.HOUR, Assumption.FIRST_DAY}
"""Choices among several meanings that the person must confirm. An assumed hour doesn't need a
confirmation."""
_PROBLEM_KEYS = {
    Problem.PAST: "time_is_past",
    Problem.NO_SUCH_DATE: "no_such_date",
    Problem.WRONG_WEEKDAY: "wrong_weekday",
    Problem.SEVERAL_TIMES: "several_times",
    Problem.SEVERAL_DAYS: "several_times",
    Problem.VAGUE: "vague_time",
    Problem.TOO_FAR: "time_too_far",
}


def parse_schedule(
    text: str, now: datetime, zone: str, languages: Sequence[str] = ()
) -> ParsedSchedule:
    """Split a line into a schedule and a text. A bar may separate them: ``when | text``.

    `now` is aware, and `zone` is an IANA name. Words that several languages use are read in the
    first of `languages`. Raises Refused if the line contains no time, a time
    in the past, or a date that doesn't exist, such as 30 February.
    """
    info = load_zone(zone)
    valid_text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    line = valid_text[:MAX_LINE_CHARS].strip()
    if not line:
        raise Refused("when_and_what")
    result = _parse_divided(line, now, info, languages)
    result = result or _parse_line(line, now, info, languages)
    if result is None:
        raise Refused("no_time")
    recurrences = result.schedule.recurrences
    following = (
        next_recurrence(recurrences, now)
        if recurrences
        else next_due_by_clock(result.schedule, now)
    )
    if following is None:
        raise Refused("never_due")
    return result


def to_schedule(reading: ReminderReading, zone: ZoneInfo) -> Schedule | None:
    """Convert a reading to a schedule. Returns None if its time is incomplete."""
    own_zone = reading.parts.zone or zone.key
    if reading.moment is not None:
        return Schedule(zone=own_zone, at=reading.moment)
    if reading.recurrences:
        return Schedule(zone=own_zone, recurrences=reading.recurrences)
    return None


def _parse_divided(
    line: str, now: datetime, zone: ZoneInfo, languages: Sequence[str]
) -> ParsedSchedule | None:
    """Read ``when | text`` or ``text | when``.

    Returns None if the line has no bar, or if neither side of a bar is just a time.
    """
    if "|" not in line:
        return None
    rules = _RULES.fullmatch(line)
    if rules is not None:
        return _parse_rules(rules, zone)
    front, _, after_first_bar = line.partition("|")
    before_last_bar, _, end = line.rpartition("|")
    divisions = ((front.strip(), after_first_bar.strip()), (end.strip(), before_last_bar.strip()))
    for when, text in divisions:
        try:
            is_short = 0 < len(when) <= MAX_TIME_CHARS
            result = _parse_line(when, now, zone, languages) if is_short else None
        except Refused:
            if when == front.strip():
                raise
            return None
        # If no text is left, this whole side of the bar is a time.
        if result is not None and not result.text:
            return replace(result, text=text)
    return None


def _parse_line(
    line: str, now: datetime, zone: ZoneInfo, languages: Sequence[str]
) -> ParsedSchedule | None:
    """Read a line without a bar. Returns None if it contains no time.

    Raises Refused if its time can't be used, for example because it is in the past.
    """
    exact = _parse_cron_line(line, zone) or _parse_instant(line, now, zone)
    if exact is not None:
        return exact
    reading = read_request(
        line[:MAX_TEXT_CHARS],
        now,
        zone,
        languages,
        is_request=True,
        default_hour=DEFAULT_HOUR,
    )
    schedule = to_schedule(reading, zone)
    if schedule is None:
        return _parse_other(line, reading, now, zone)
    text = reading.task + line[MAX_TEXT_CHARS:]
    has_number = bool(_NUMBER_NEAR_START.match(text))
    foreign = _parse_foreign(line, now, zone) if has_number else None
    if foreign is not None and len(foreign.text) < len(text):
        return foreign  # reads more of the line: Dutch "morgen om 18 uur eten"
    is_assumed = bool(reading.assumptions & _ASSUMPTIONS_TO_CONFIRM)
    may_lack_hour = has_number and Assumption.HOUR in reading.assumptions
    has_time = may_lack_hour or _seems_to_contain_time(text, now, zone)
    is_certain = not is_assumed and not has_time
    return ParsedSchedule(
        schedule=schedule, text=_add_question_mark(text, line), is_certain=is_certain
    )


def _seems_to_contain_time(text: str, now: datetime, zone: ZoneInfo) -> bool:
    """Return whether a reminder's text starts or ends with words that may be part of its time."""
    if _NUMBER_FIRST.match(text):
        return True
    if len(text) <= 2 * MAX_SECOND_TIME_CHARS:
        return _has_time_at_end(text, now, zone)
    # A word that is cut at the inner end is at most read as a time that isn't at an end.
    start = text[:MAX_SECOND_TIME_CHARS].rpartition(" ")[0]
    end = text[-MAX_SECOND_TIME_CHARS:].partition(" ")[2]
    return _has_time_at_end(start, now, zone) or _has_time_at_end(end, now, zone)


def _has_time_at_end(text: str, now: datetime, zone: ZoneInfo) -> bool:
    """Return whether a time is at the start or at the end of a text."""
    reading = read_request(text, now, zone, is_request=True)
    is_at_end = text.startswith(reading.task) or text.endswith(reading.task)
    return reading.names_time and is_at_end


def _parse_other(
    line: str, reading: ReminderReading, now: datetime, zone: ZoneInfo
) -> ParsedSchedule | None:
    """Read a line in a language without a lexicon.

    Raises Refused if `reading` has a time that can't be used. Returns None if the line contains no
    time.
    """
    if reading.names_time:
        raise Refused(_PROBLEM_KEYS[reading.problem or Problem.VAGUE])
    return _parse_foreign(line, now, zone)


def _add_question_mark(text: str, line: str) -> str:
    """Return a text with the question mark at the end of its line, if there is one."""
    mark = line.rstrip()[-1:]
    if mark in ("?", "？") and line.rstrip()[:-1].rstrip().endswith(text):
        return text + mark
    return text


# --- Exact times ---


def _parse_rules(match: re.Match[str], zone: ZoneInfo) -> ParsedSchedule:
    """Read the rules of RFC 5545 that `format_rules` writes."""
    recurrences = []
    zone_name = zone.key
    for rule in _RULE.finditer(match[1]):
        lines = (rule["start"], *rule["excluded"].split(), rule["rule"])
        recurrences.append("\n".join(lines))
        zone_name = rule["zone"] or zone_name
    schedule = Schedule(zone=zone_name, recurrences=tuple(recurrences))
    return ParsedSchedule(schedule=schedule, text=(match[2] or "").strip(), is_certain=True)


def _parse_cron_line(line: str, zone: ZoneInfo) -> ParsedSchedule | None:
    """Read a line that begins with the five fields of cron.

    Returns None for other lines. Raises Refused if the fields are invalid.
    """
    fields = line.split(maxsplit=5)
    is_cron = (
        len(fields) >= 5
        and all(map(_CRON_FIELD.fullmatch, fields[:5]))
        and all(map(_NUMERIC_CRON_FIELD.fullmatch, fields[:3]))
    )
    if not is_cron:
        return None
    schedule = parse_cron(fields[:5], zone)
    if len(fields) == 5:
        return ParsedSchedule(schedule=schedule, text="", is_certain=True)
    text = fields[5]
    first_word = text.split(maxsplit=1)[0]
    # The text of "0 0 9 * * 1 stand-up" begins with a sixth field. In dialects with six fields,
    # the first one is the seconds.
    has_sixth_field = bool(_NUMERIC_CRON_FIELD.fullmatch(first_word))
    return ParsedSchedule(schedule=schedule, text=text, is_certain=not has_sixth_field)


def _parse_instant(line: str, now: datetime, zone: ZoneInfo) -> ParsedSchedule | None:
    """Read a line that begins with an ISO 8601 moment. Raises Refused if it is in the past.

    Returns None for other lines.
    """
    match = ISO_MOMENT.match(line)
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match[1].upper())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = resolve_wall_time(moment, zone)
    moment = moment.astimezone(UTC)
    if moment <= now:
        raise Refused("moment_is_past", moment=moment.astimezone(zone))
    schedule = Schedule(zone=zone.key, at=moment)
    text = line[match.end() :].strip(" \t\r\n,;:-–—")
    return ParsedSchedule(schedule=schedule, text=text, is_certain=True)


# --- Other languages ---

MAX_FOREIGN_WORDS = 8
MAX_FOREIGN_CHARS = 60
EDGE_CHARS = 200
"""A time is searched for only in this many characters at each end of a line."""
MAX_YEARS_AHEAD = 50
"""A guessed date that is more years ahead is probably a misreading."""
_LETTER_OR_DIGIT = re.compile(r"\d|[^\W\d_]{4}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
"""A digit, four letters, or a character of an East Asian script. Every date has one of these."""
_NOT_IN_DATES = re.compile(r"[*_{}=<>#~^|$%&\\\[\]]")
"""A sign that no date has. Asking dateparser would take about a millisecond."""
_ONLY_NUMBERS = re.compile(r"[\d\s.,:;/+()-]{1,60}")
"""Numbers and punctuation, such as ``3.5`` or ``12/24``, which `grammar` has already tried."""


def _load_settings() -> Mapping[str, Any]:
    """Return the content of `data/foreign.toml`."""
    return language_data("foreign", "core.dates")


@cache
def _day_and_clock() -> re.Pattern[str]:
    """Return the pattern of a day and a clock time: "3 maggio alle 18", "morgen om 18 uur"."""
    joints = "|".join(map(re.escape, _load_settings()["clock_joints"]))
    clock = r"(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d{2}))? ?(?:h|uur|godz\.?)?"
    return re.compile(rf"(?P<day>.{{2,40}}?),? (?:(?:{joints}) )?{clock}")


def _parse_foreign(line: str, now: datetime, zone: ZoneInfo) -> ParsedSchedule | None:
    """Read a time in another language at the beginning of a line, or else at its end.

    Returns None if neither is a time in the future.
    """
    script = _script_of(line)
    if script is None:
        return None
    here = now.astimezone(zone).replace(tzinfo=None, microsecond=0)
    for piece, task in _edge_pieces(line):
        wall_time = _read_foreign(piece.strip().rstrip(".!? ").lower(), script, here)
        if wall_time is None:
            continue
        moment = resolve_wall_time(wall_time, zone)
        if moment > now:
            return ParsedSchedule(
                schedule=Schedule(zone=zone.key, at=moment),
                text=task.strip(" \t\n,;:"),
                is_certain=False,
            )
    return None


def _script_of(line: str) -> Mapping[str, Any] | None:
    """Return the settings of a line's script from `data/foreign.toml`, or None.

    The script is the first in the file that occurs in the first `EDGE_CHARS` characters of the
    line.
    """
    script: Mapping[str, Any]
    for script in _load_settings()["script"]:
        if re.search(script["letters"], line[:EDGE_CHARS]):
            return script
    return None


def _edge_pieces(line: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a line that may be a time, each with the rest of the line.

    Pieces at the beginning come first, then those at the end. Of both, the longer pieces come
    first.
    """
    words = list(re.finditer(r"\S+", line[:EDGE_CHARS]))[:MAX_FOREIGN_WORDS]
    ends = [word.end() for word in reversed(words)]
    for end in ends:
        yield line[:end], line[end:]
    offset = max(len(line) - EDGE_CHARS, 0)
    for word in list(re.finditer(r"\S+", line[offset:]))[-MAX_FOREIGN_WORDS:]:
        start = offset + word.start()
        if start > 0:
            yield line[start:], line[:start]


def _read_foreign(piece: str, script: Mapping[str, Any], here: datetime) -> datetime | None:
    """Return the wall time that a piece of a line means, or None if it isn't just a time.

    A day without an hour means the morning.
    """
    first, _, rest = piece.partition(" ")
    if first in _load_settings()["day_leads"]:
        piece = rest
    match = _day_and_clock().fullmatch(piece)
    wall_time = _read_day_and_clock(match.groupdict(), script, here) if match else None
    if wall_time is not None:
        return wall_time
    guess = _guess_date(piece, script, here)
    if guess is None:
        return None
    if guess.has_hour:
        return guess.wall_time
    return guess.wall_time.replace(hour=DEFAULT_HOUR, minute=0, second=0)


def _read_day_and_clock(
    parts: Mapping[str, str | None], script: Mapping[str, Any], here: datetime
) -> datetime | None:
    """Read a day with a clock time, such as "3 maggio alle 18:00", as a wall time.

    `parts` are the groups of the pattern `_day_and_clock`. Returns None if the group "day" isn't a
    day, or if the clock time is invalid.
    """
    hour = int(parts["hour"] or 0)
    minute = int(parts["minute"] or 0)
    guess = _guess_date(parts["day"] or "", script, here)
    if guess is None or guess.has_hour or hour > 23 or minute > 59:
        return None
    return guess.wall_time.replace(hour=hour, minute=minute, second=0)


@dataclass(frozen=True, slots=True)
class _Guess:
    """The date and time that dateparser found in a text."""

    wall_time: datetime
    has_hour: bool


def _guess_date(piece: str, script: Mapping[str, Any], here: datetime) -> _Guess | None:
    """Read a date with dateparser, relative to the wall time `here`.

    Returns None if the text isn't a date.
    """
    if len(piece) > MAX_FOREIGN_CHARS or _ONLY_NUMBERS.fullmatch(piece):
        return None
    if not _LETTER_OR_DIGIT.search(piece) or _NOT_IN_DATES.search(piece):
        return None
    # Imported here because importing dateparser takes a tenth of a second.
    from dateparser.date import DateDataParser

    settings = {
        "RELATIVE_BASE": here,
        "PREFER_DATES_FROM": "future",
        "RETURN_TIME_AS_PERIOD": True,
        "DATE_ORDER": script.get("order", "DMY"),
    }
    try:
        parser = DateDataParser(languages=script["languages"], settings=settings)
        result = parser.get_date_data(piece)
    except (ValueError, OverflowError, TypeError, LookupError, AttributeError, RecursionError):
        # dateparser raises these errors for some texts that aren't dates.
        return None
    moment = result.date_obj
    # dateparser reads "3. Mai 18" as a day of the year 2118.
    if moment is None or moment.year >= here.year + MAX_YEARS_AHEAD:
        return None
    return _Guess(moment.replace(tzinfo=None, microsecond=0), result.period == "time")
